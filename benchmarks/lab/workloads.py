# SPDX-License-Identifier: MIT
"""What the lab runs: a row for each load.

The machine is the same for all but for its sizes: nodes 0 and 1 are fast with a CPU each, node 2 is slow
and has none. The program's memory fits on the slow node; `room` of it fits on the fast ones.
"""
import shlex

FOLDER = '/opt/lab'
SOCKET = '/tmp/memcached'
FAST = '0,1'
# Enough for what the guest takes of its first node, and for what any node costs its kernel (MiB). What
# is left over is taken away in the guest, so that there is as much room on every kernel.
GUEST_MIB = 120
NODE_MIB = 60

MACHINE = '''node 0 mem=%dM cpus=1 latency=80  bandwidth=20000
node 1 mem=%dM cpus=1 latency=80  bandwidth=20000
node 2 mem=%dM cpus=0 latency=300 bandwidth=5000
distance 0 1 21
distance 0 2 31
distance 1 2 31
'''


TIERLOAD = r'''
echo @before
cat /proc/vmstat
%(start)s %(folder)s/tierload %(options)s --capacity $room ${eater:+--eater $eater}
'''

MEMCACHED = r'''
%(start)s memcached -s %(socket)s -m 1024 -t 1 &
server=$!
%(folder)s/mcpasses --socket %(socket)s %(keys)s --fill > /dev/null || exit
if [ "$eater" ]; then
	kill -9 $eater
	wait $eater
fi
echo @before
cat /proc/vmstat
%(folder)s/mcpasses --socket %(socket)s %(keys)s %(options)s --pid $server
'''


class Workload:
    """MiB of memory, of which `room` fit on the fast nodes. A subclass says how it is run."""

    own = ()            # programs of the lab that it needs
    programs = ()       # and of this machine

    def __init__(self, name, about, size, room, passes=12):
        self.name = name
        self.about = about
        self.size = size
        self.room = room
        self.passes = passes

    def room_for(self, contender):
        """MiB on each fast node."""
        return self.size + 64 if contender.everything_fast else self.room // 2

    def machine(self, contender):
        room = self.room_for(contender)
        return MACHINE % (GUEST_MIB + room, NODE_MIB + room, self.size + 160)

    def steps(self, start, settings, seed):
        """Shell, as an ordinary user in the guest. `start` goes before the program's words. There are $room and
        $eater; the eater has to be gone when memory is filled. It prints @before and /proc/vmstat when passes
        begin, and a line of JSON for each pass."""
        raise NotImplementedError

    def common(self, settings):
        """Options of all the lab's own loads."""
        return ['--passes', str(settings.passes or self.passes), '--period', str(settings.period)
                ] + ['--mark'] * settings.model


class Tierload(Workload):
    own = ('tierload',)

    def __init__(self, name, about, size, room, options, **more):
        super().__init__(name, about, size, room, **more)
        self.options = options

    def steps(self, start, settings, seed):
        options = self.common(settings) + [
            '--size', str(self.size), '--accesses', str(settings.accesses), '--seed', str(seed),
            '--fast', FAST, '--pin'] + self.options
        return TIERLOAD % {'folder': FOLDER, 'start': start, 'options': shlex.join(options)}


class Memcached(Workload):
    own = ('mcpasses',)
    programs = ('memcached',)

    def __init__(self, name, about, size, room, keys, value_bytes, **more):
        super().__init__(name, about, size, room, **more)
        self.keys = keys
        self.value_bytes = value_bytes

    def steps(self, start, settings, seed):
        keys = ['--keys', str(self.keys), '--bytes', str(self.value_bytes)]
        return MEMCACHED % {'folder': FOLDER, 'start': start, 'socket': SOCKET, 'keys': shlex.join(keys),
                            'options': shlex.join(self.common(settings))}


WORKLOADS = [
    Tierload('hot', '40 of 192 MiB get 95 % of the reads, in runs of 32 KiB all over it', 192, 105,
             ['--hot', '40', '--run', '32']),
    Tierload('pages', 'the same in single pages', 192, 105, ['--hot', '40', '--run', '4']),
    Tierload('zipf', 'runs of 32 KiB by Zipf 0.99 over all of it', 192, 105,
             ['--hot', '192', '--share', '100', '--zipf', '0.99']),
    Tierload('scan', 'hot runs of 64 KiB are walked from end to end', 192, 105,
             ['--hot', '40', '--run', '64', '--scan']),
    Tierload('moving', 'the hot set moves every 4 passes', 192, 105,
             ['--hot', '40', '--run', '32', '--move', '4'], passes=16),
    Tierload('wide', 'a hot set larger than the fast nodes', 192, 70, ['--hot', '110', '--run', '32']),
    Tierload('uniform', 'all pages alike: there is nothing to gain', 192, 105, ['--hot', '0']),
    Tierload('writes', 'as hot, and every fifth access writes', 192, 105,
             ['--hot', '40', '--run', '32', '--writes', '20']),
    Tierload('threads', 'as hot, two threads on two nodes', 192, 105,
             ['--hot', '40', '--run', '32', '--threads', '2']),
    Tierload('heap', 'as hot, in blocks of 256 KiB from malloc', 192, 105,
             ['--hot', '40', '--run', '32', '--alloc', 'malloc', '--block', '256']),
    # A get costs so many instructions that few of them are enough, and more would take too long.
    Memcached('memcached', 'every key once in each pass, in another order', 128, 60,
              keys=30000, value_bytes=3000, passes=8),
]
