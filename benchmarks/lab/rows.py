# SPDX-License-Identifier: MIT
"""What the lab runs, as rows of two tables: workloads and contenders. A new one is a new row.

The machine is the same for all but for its sizes: nodes 0 and 1 are fast with a CPU each, node 2 is slow
and has none. The program's memory fits on the slow node; `room` of it fits on the fast ones.
"""

FOLDER = '/opt/lab'
SOCKET = '/tmp/memcached'
FAST = '0,1'
# Enough for what the guest takes of its first node, and for what any node costs its kernel (MiB). What
# is left over is taken away in the guest, so that there is as much room on every kernel.
GUEST_MIB = 120
NODE_MIB = 60


class Workload:
    """load: 'tierload' with these options, or 'memcached' with keys of value_bytes each."""

    def __init__(self, name, about, size, room, options=(), load='tierload', **settings):
        self.name = name
        self.about = about
        self.size = size
        self.room = room
        self.options = list(options)
        self.load = load
        self.settings = settings

    def room_for(self, contender):
        """MiB on each fast node."""
        return self.size + 64 if contender.everything_fast else self.room // 2

    def machine(self, contender):
        room = self.room_for(contender)
        return MACHINE % (GUEST_MIB + room, NODE_MIB + room, self.size + 160)


class Contender:
    """How the program is started, and what root sets before."""

    def __init__(self, name, about, prefix='', switch='', env=None, late=True, everything_fast=False,
                 needs=()):
        self.name = name
        self.about = about
        self.prefix = prefix            # words before the program's
        self.switch = switch            # shell, as root, when the program has filled its memory
        self.env = env                  # the library is preloaded, with these variables
        self.late = late                # fast nodes are full while the program fills its memory
        self.everything_fast = everything_fast
        self.needs = needs              # programs of this machine


MACHINE = '''node 0 mem=%dM cpus=1 latency=80  bandwidth=20000
node 1 mem=%dM cpus=1 latency=80  bandwidth=20000
node 2 mem=%dM cpus=0 latency=300 bandwidth=5000
distance 0 1 21
distance 0 2 31
distance 1 2 31
'''

WORKLOADS = [
    Workload('hot', '40 of 192 MiB get 95 % of the reads, in runs of 32 KiB all over it', 192, 105,
             ['--hot', '40', '--run', '32']),
    Workload('pages', 'the same in single pages', 192, 105, ['--hot', '40', '--run', '4']),
    Workload('zipf', 'runs of 32 KiB by Zipf 0.99 over all of it', 192, 105,
             ['--hot', '192', '--share', '100', '--zipf', '0.99']),
    Workload('scan', 'hot runs of 64 KiB are walked from end to end', 192, 105,
             ['--hot', '40', '--run', '64', '--scan']),
    Workload('moving', 'the hot set moves every 4 passes', 192, 105,
             ['--hot', '40', '--run', '32', '--move', '4'], passes=16),
    Workload('wide', 'a hot set larger than the fast nodes', 192, 70, ['--hot', '110', '--run', '32']),
    Workload('uniform', 'all pages alike: there is nothing to gain', 192, 105, ['--hot', '0']),
    Workload('writes', 'as hot, and every fifth access writes', 192, 105,
             ['--hot', '40', '--run', '32', '--writes', '20']),
    Workload('threads', 'as hot, two threads on two nodes', 192, 105,
             ['--hot', '40', '--run', '32', '--threads', '2']),
    Workload('heap', 'as hot, in blocks of 256 KiB from malloc', 192, 105,
             ['--hot', '40', '--run', '32', '--alloc', 'malloc', '--block', '256']),
    # A get costs so many instructions that few of them are enough, and more would take too long.
    Workload('memcached', 'every key once in each pass, in another order', 128, 60,
             load='memcached', keys=30000, value_bytes=3000, passes=8),
]

BALANCING = 'echo %d > /proc/sys/kernel/numa_balancing'
DEMOTION = 'echo 1 > /sys/kernel/mm/numa/demotion_enabled'

CONTENDERS = [
    Contender('none', 'no balancing: pages stay where they were first touched'),
    Contender('numalift', 'preloaded, with the sampler that it chooses', env={'NUMALIFT_PROMOTE': 'on'}),
    Contender('balancing-1', "the kernel's NUMA balancing", switch=BALANCING % 1),
    Contender('balancing-2', "the kernel's memory tiering, with demotion",
              switch=BALANCING % 2 + '\n' + DEMOTION),
    Contender('interleave', 'numactl --interleave=all, all nodes free from the beginning',
              prefix='numactl --interleave=all', late=False, needs=['numactl']),
    Contender('fast', 'fast nodes that hold all of it: the limit', late=False, everything_fast=True),
] + [
    Contender('numalift-' + sampler.replace('+', '-'), 'preloaded, sampler ' + sampler,
              env={'NUMALIFT_PROMOTE': 'on', 'NUMALIFT_SAMPLER': sampler})
    for sampler in ('rwp', 'wp+refs', 'wp', 'refs', 'dirty', 'kernel')
]
