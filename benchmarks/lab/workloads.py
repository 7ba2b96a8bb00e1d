# SPDX-License-Identifier: MIT
"""What the lab runs: a row for each load.

The machine is the same for all but for its sizes: nodes 0 and 1 are fast with a CPU each for the program, and one for
threads that help, node 2 is slow and has none. The program's memory fits on the slow node; `room` of it fits on the
fast ones.
"""
import os
import shlex
import subprocess

import sysbenchdata

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = '/opt/lab'
SOCKET = '/tmp/server'
FAST = '0,1'
CPUS = (0, 2)       # of the guest: the program's, one of each fast node; helpers have the other
HELPERS = 1
# Enough for what the guest takes of its first node, and for what any node costs its kernel (MiB). What
# is left over is taken away in the guest, so that there is as much room on every kernel.
GUEST_MIB = 120
NODE_MIB = 60

MACHINE = '''node 0 mem=%dM cpus=2 latency=80  bandwidth=20000
node 1 mem=%dM cpus=1 latency=80  bandwidth=20000
node 2 mem=%dM cpus=0 latency=300 bandwidth=5000
distance 0 1 21
distance 0 2 31
distance 1 2 31
'''


def counters(mark):
    """The kernel's counters after a line with the mark; those of a node have its name in front."""
    return r'''
echo %s
cat /proc/vmstat
for node in /sys/devices/system/node/node[0-9]*; do
	sed "s/^/${node##*/}./" $node/numastat
done
''' % mark


BEFORE = counters('@before')

# What has filled the fast nodes goes.
ROOM = r'''
if [ "$eater" ]; then
	kill -9 $eater
	wait $eater 2> /dev/null
fi
'''

TIERLOAD = BEFORE + r'''
%(start)s %(folder)s/tierload %(options)s --capacity $room ${place:+--place} ${eater:+--eater $eater}
'''

NUMALOAD = BEFORE + r'''
%(start)s %(folder)s/numaload %(options)s --capacity $room ${eater:+--eater $eater}
'''

# There is room from the beginning.
FITS = ROOM + BEFORE + r'''
%(command)s
'''

SERVER = r'''
%(together)s
%(start)s %(server)s > server.said 2>&1 &
server=$!
trap 'cat server.said >&2' EXIT
%(fill)s || exit
''' + ROOM + BEFORE + r'''
%(aside)s%(passes)s || exit
kill $server
'''


class Missing(Exception):
    """What a load needs is not on this machine."""


class Workload:
    """MiB of memory, of which `room` fit on the fast nodes. A subclass says how it is run."""

    own = ()            # programs of the lab that it needs
    programs = ()       # and of this machine
    guest_mib = 0       # what it adds to the guest's files, on the first node
    slow_mib = 0        # and on the slow one
    places_itself = False   # with $place it puts its hottest pages on fast nodes
    # Who waits for whom, and on which CPU, is as it happens: what it takes is what its CPUs take together.
    in_turn = False

    def __init__(self, name, about, size, room, passes=12, quick_passes=0):
        self.name = name
        self.about = about
        self.size = size
        self.room = room
        self.passes = passes
        self.quick_passes = quick_passes    # of a quick call, where it needs others than its kind

    def room_for(self, contender):
        """MiB on each fast node."""
        return self.size + 64 if contender.everything_fast else self.room // 2

    def machine(self, contender):
        room = self.room_for(contender)
        return MACHINE % (GUEST_MIB + self.guest_mib + room, NODE_MIB + room, self.size + 160 + self.slow_mib)

    def words(self, settings):
        """More words for scripts/guest. Missing, when something is not there."""
        return []

    def steps(self, start, settings, seed):
        """Shell, as an ordinary user in the guest. `start` goes before the program's words. There are $room and
        $eater; the eater has to be gone when memory is filled. It prints @before and /proc/vmstat when passes
        begin, and a line of JSON for each pass."""
        raise NotImplementedError

    def common(self, settings):
        """Options of all the lab's own loads."""
        passes = settings.passes or self.passes
        first = max(1, passes - settings.measured + 1) if settings.measured else 1
        return ['--passes', str(passes), '--period', str(settings.period)
                ] + ['--mark=%d' % first] * settings.model


class Tierload(Workload):
    own = ('tierload',)
    places_itself = True

    def __init__(self, name, about, size, room, options, passes=40, percent=100, **more):
        super().__init__(name, about, size, room, passes, **more)
        self.options = options
        self.percent = percent      # of the accesses that the others have in a pass

    def steps(self, start, settings, seed):
        options = self.common(settings) + [
            '--size', str(self.size), '--accesses', str(settings.accesses * self.percent // 100), '--seed', str(seed),
            '--fast', FAST, '--pin'] + self.options
        return TIERLOAD % {'folder': FOLDER, 'start': start, 'options': shlex.join(options)}


class Numaload(Workload):
    own = ('numaload',)

    def __init__(self, name, about, size, room, processes, threads, options=(), **more):
        super().__init__(name, about, size, room, **more)
        self.options = ['--processes', str(processes), '--threads', str(threads),
                        '--size', str(size // processes), *options]

    def steps(self, start, settings, seed):
        options = self.common(settings) + ['--fast', FAST, '--pin'] + self.options
        return NUMALOAD % {'folder': FOLDER, 'start': start, 'options': shlex.join(options)}


class Fits(Workload):
    """Memory that fits the fast nodes, and is not kept from them."""

    def command(self, start, settings):
        raise NotImplementedError

    def steps(self, start, settings, seed):
        return FITS % {'command': self.command(start, settings)}


class Flow(Fits):
    own = ('flow',)

    def __init__(self, name, about, size, room, options, **more):
        super().__init__(name, about, size, room, **more)
        self.options = ['--size', str(size), '--fast', FAST, '--pin', *options]

    def command(self, start, settings):
        what, *options = self.options[-1:] + self.common(settings) + self.options[:-1]
        return '%s %s/flow %s' % (start, FOLDER, shlex.join([what] + options))


class Compile(Fits):
    """Some C files, by make with a process per CPU."""

    own = ('passes',)
    in_turn = True
    programs = ('make', 'gcc', 'as')
    guest_mib = 70
    files = 2
    functions = 25

    def words(self, settings):
        found = subprocess.run(['gcc', '-print-prog-name=cc1'], stdout=subprocess.PIPE, text=True, check=False)
        if not os.path.isabs(found.stdout.strip()):
            raise Missing('cc1 is missing: apt-get install gcc')
        return ['--add', found.stdout.strip(), '--add', '%s/sources.awk:%s/sources.awk' % (HERE, FOLDER),
                # a folder to look in for what is included unasked
                '--add', '/usr/include/stdc-predef.h']

    def command(self, start, settings):
        passes = [FOLDER + '/passes'] + self.common(settings) + ['--accesses', str(self.files), '--']
        return 'awk -v files=%d -v functions=%d -f %s/sources.awk || exit\n%s %s make -s -B -j2' % (
            self.files, self.functions, FOLDER, shlex.join(passes), start)


class Server(Workload):
    """A program that others talk to: filled while the fast nodes are full."""

    in_turn = True
    # Where clients are in a guest, in which a CPU that sleeps is slow to wake:
    TOGETHER = 'together'   # with the server's one thread, as they wait for each other
    ASIDE = 'aside'         # with the helpers, as to start them takes longer than what they ask for
    ANYWHERE = 'anywhere'
    clients = TOGETHER

    def server(self):
        raise NotImplementedError

    def fill(self, settings, seed):
        raise NotImplementedError

    def load(self, settings, seed):
        """Words, and $server is the process."""
        raise NotImplementedError

    def steps(self, start, settings, seed):
        clients = self.clients if settings.guest else self.ANYWHERE
        together = 'taskset -p %x $$ > /dev/null' % (1 << CPUS[0]) if clients == self.TOGETHER else ''
        aside = 'taskset %x ' % (1 << HELPERS) if clients == self.ASIDE else ''
        return SERVER % {'start': start, 'server': shlex.join(self.server()), 'fill': self.fill(settings, seed),
                         'together': together, 'aside': aside, 'passes': self.load(settings, seed)}


class Memcached(Server):
    own = ('mcpasses',)
    programs = ('memcached',)

    def __init__(self, name, about, size, room, keys, value_bytes, options=(), threads=1, **more):
        super().__init__(name, about, size, room, **more)
        self.keys = ['%s/mcpasses' % FOLDER, '--socket', SOCKET, '--keys', str(keys), '--bytes', str(value_bytes)]
        self.options = list(options)
        self.threads = threads
        self.clients = self.TOGETHER if threads == 1 else self.ANYWHERE

    def server(self):
        return ['memcached', '-s', SOCKET, '-m', str(max(1024, 2 * self.size)), '-t', str(self.threads)]

    def fill(self, settings, seed):
        return shlex.join(self.keys + ['--fill']) + ' > /dev/null'

    def load(self, settings, seed):
        return shlex.join(self.keys + self.options + self.common(settings) + ['--seed', str(seed)]) + ' --pid $server'


class ByProgram(Server):
    """The load is a program of others, which does as much in each pass."""

    own = ('passes',)
    figures = ()
    accesses = 0

    def asking(self, settings, seed):
        """Words of a pass; %p is its number."""
        raise NotImplementedError

    def load(self, settings, seed):
        words = ['%s/passes' % FOLDER] + self.common(settings) + ['--accesses', str(self.accesses)]
        for figure in self.figures:
            words += ['--figure', figure]
        return '%s --pid $server -- %s' % (shlex.join(words), shlex.join(self.asking(settings, seed)))


class Memcaslap(ByProgram):
    """As many sets as gets. It gets only what it has set in the same pass; the server throws out the oldest. At its
    start it makes keys and values, which takes longer than to ask for them and is not the server's."""

    programs = ('memcached', 'memcaslap')
    clients = Server.ASIDE
    guest_mib = 20
    figures = ('gets=cmd_get: ', 'sets=cmd_set: ', 'misses=get_misses: ')
    accesses = 1500
    ADDRESS = '127.0.0.1:11211'
    CONFIGURATION = r'key\n16 16 1\nvalue\n32768 32768 1\ncmd\n0 0.5\n1 0.5\n'

    def server(self):
        return ['memcached', '-l', self.ADDRESS, '-U', '0', '-m', '150', '-t', '1']

    def words_for(self, number, connections):
        return ['memcaslap', '-s', self.ADDRESS, '-F', 'caslap', '-T', '1', '-c', str(connections), '-w', '1k', '-x',
                str(number)]

    def asking(self, settings, seed):
        # to prepare keys for as many as the fill has would take longer than to ask for some of them
        return self.words_for(self.accesses, 2)

    def fill(self, settings, seed):
        # half of it are sets
        once = shlex.join(self.words_for(9500, 8)) + ' > /dev/null'
        ready = 'until nc 127.0.0.1 11211 < /dev/null 2> /dev/null; do usleep 100000; done'
        return "printf '%s' > caslap && %s && %s" % (self.CONFIGURATION, ready, once)


class Redis(ByProgram):
    programs = ('redis-server', 'redis-benchmark', 'redis-cli')
    accesses = 6000

    def server(self):
        return ['redis-server', '--port', '0', '--unixsocket', SOCKET, '--save', '', '--appendonly', 'no']

    def words_for(self, what, n, *more):
        return ['redis-benchmark', '-s', SOCKET, '-t', what, '-r', str(self.keys), '-n', str(n), '-d',
                str(self.value_bytes), *more]

    keys = 30000
    value_bytes = 5000

    def fill(self, settings, seed):
        return 'until redis-cli -s %s ping > /dev/null 2>&1; do usleep 100000; done; ' % SOCKET + shlex.join(
            self.words_for('set', 2 * self.keys, '-P', '16', '-q')) + ' > /dev/null'

    def asking(self, settings, seed):
        return self.words_for('get', self.accesses, '-c', '4', '-P', '4', '--csv')


class MariaDB(ByProgram):
    """All of sysbench's tables are in the buffer pool before passes begin; the files are on the slow node."""

    programs = ('mariadb', 'sysbench')
    own = ('passes',)
    clients = Server.ASIDE
    figures = ('events=total number of events: ', 'queries=total: ', 'errors=ignored errors: ',
               'p95_ms=95th percentile: ')
    guest_mib = 90
    slow_mib = 240
    tables, rows = 8, 75000
    DATA = '/tmp/data'
    SERVER = '/usr/sbin/mariadbd'
    POOL_MIB = 192

    def __init__(self, name, about, size, room, script, events, options=(), **more):
        super().__init__(name, about, size, room, **more)
        self.script = script
        self.accesses = events
        self.options = list(options)

    def words(self, settings):
        try:
            server, folder = sysbenchdata.folder(os.path.join(settings.programs, 'data'), self.tables, self.rows)
        except sysbenchdata.Missing as e:
            raise Missing(str(e)) from None
        ret = ['--add', server + ':' + self.SERVER, '--add', folder + ':/var/lib/mysql',
               '--add', sysbenchdata.SCRIPTS]
        for place in sysbenchdata.mariadbdata.messages():
            ret += ['--add', place]
        # Where nobody moves them: that would be room that others have not.
        return ret + ['--setup', 'mkdir %s && mount -t tmpfs -o mpol=bind:2,mode=0755 none %s && '
                      'cp -r /var/lib/mysql/. %s && rm -r /var/lib/mysql && chown -R user %s' % (
                          (self.DATA,) * 4)]

    def server(self):
        return sysbenchdata.server_words(self.SERVER, self.DATA, SOCKET, self.POOL_MIB) + [
            '--innodb-buffer-pool-load-at-startup=ON', '--innodb-buffer-pool-dump-at-shutdown=OFF']

    def fill(self, settings, seed):
        return """until mariadb --no-defaults -S %s -u root -N -e "show status like 'innodb_buffer_pool_load_status'" \
	2> /dev/null | grep 'load completed' > /dev/null; do
	kill -0 $server || exit
	usleep 200000
done""" % SOCKET

    def asking(self, settings, seed):
        return sysbenchdata.sysbench_words(
            'sysbench', self.script, SOCKET, self.tables, self.rows, '--threads=2', '--time=0',
            '--events=%d' % self.accesses, '--rand-type=special', '--rand-spec-pct=15', '--rand-spec-res=85',
            '--rand-seed=%d%%p' % seed, *self.options, 'run')


WORKLOADS = [
    Tierload('hot', '40 of 192 MiB get 95 % of the reads, in runs of 32 KiB all over it', 192, 105,
             ['--hot', '40', '--run', '32'], quick_passes=30),
    Tierload('pages', 'the same in single pages', 192, 105, ['--hot', '40', '--run', '4'], quick_passes=30),
    Tierload('stretches', 'the same in stretches of 2 MiB', 192, 105,
             ['--hot', '40', '--run', '2048'], quick_passes=30),
    Tierload('zipf', 'runs of 32 KiB by Zipf 0.99 over all of it', 192, 105,
             ['--hot', '192', '--share', '100', '--zipf', '0.99']),
    # So few that a sample sees no more than a part of what is hot: what it is like is to be guessed.
    Tierload('scan', 'ranges of 32 KiB are walked, 95 % of them in hot runs of 1 MiB', 192, 105,
             ['--hot', '40', '--run', '1024', '--scan', '32'], passes=50, percent=30),
    # So many that it is no idle program, in which a change would be looked for rarely.
    Tierload('moving', 'the hot set moves after 35 passes', 192, 105,
             ['--hot', '40', '--run', '32', '--move', '35'], passes=68, percent=400),
    Tierload('wide', 'a hot set larger than the fast nodes', 192, 70, ['--hot', '110', '--run', '32']),
    Tierload('uniform', 'all pages alike: there is nothing to gain', 192, 105, ['--hot', '0']),
    Tierload('writes', 'as hot, and every fifth access writes', 192, 105,
             ['--hot', '40', '--run', '32', '--writes', '20'], quick_passes=30),
    Tierload('threads', 'as hot, two threads on two nodes', 192, 105,
             ['--hot', '40', '--run', '32', '--threads', '2'], quick_passes=30),
    Tierload('heap', 'as hot, in blocks of 256 KiB from malloc', 192, 105,
             ['--hot', '40', '--run', '32', '--alloc', 'malloc', '--block', '256'], quick_passes=30),
    Tierload('gups', 'updates at random, of a hot set that moves after 35 passes', 192, 105,
             ['--hot', '40', '--run', '32', '--move', '35', '--writes', '100', '--update'], passes=68, percent=400),
    Tierload('gups-uniform', 'updates at random, of all pages alike', 192, 105,
             ['--hot', '0', '--writes', '100', '--update']),
    Tierload('gups-walk', 'updates of a word of each line, one after the other', 192, 105,
             ['--hot', '0', '--walk', '--writes', '100', '--update'], quick_passes=30),
    # The 2024 series' steps: its memory is put on the slow node, and the fast ones, free again, have room for it.
    # A get costs so many instructions that few of them are enough, and more would take too long.
    Memcached('memcached', 'every key once in each pass, in another order; all of it fits', 192, 200,
              keys=45000, value_bytes=3000, options=['--gets', '45000'], passes=8, quick_passes=12),
    Memcached('memcached-zipf', 'gets by Zipf 0.99, two threads, four connections', 160, 75,
              keys=120000, value_bytes=1000, threads=2, quick_passes=24,    # which are short
              options=['--gets', '12000', '--zipf', '0.99', '--connections', '4']),
    Memcached('memcached-sets', 'as memcached-zipf, and a tenth are sets', 160, 75,
              keys=120000, value_bytes=1000, threads=2, quick_passes=24,    # which are short
              options=['--gets', '12000', '--zipf', '0.99', '--connections', '4', '--sets', '10']),
    Memcaslap('memcaslap', "memcached by libmemcached's memcaslap, as many sets as gets", 150, 70, passes=6),
    Redis('redis', 'gets of keys at random by redis-benchmark', 160, 75, passes=8),
    MariaDB('sb-points', 'MariaDB, sysbench oltp_point_select: 15 % of the rows get 85 %', 208, 90,
            'oltp_point_select', 4000),
    # What ranges cost beside the walk is of no interest here: none are sorted, and few rows are sent.
    MariaDB('sb-ranges', 'MariaDB, sums over ranges of 500 rows', 208, 90, 'oltp_read_only', 32,
            ['--point-selects=0', '--simple-ranges=0', '--order-ranges=0', '--distinct-ranges=0', '--sum-ranges=10',
             '--range-size=500'], passes=16, quick_passes=16),
    MariaDB('sb-read', 'MariaDB, sysbench oltp_read_only', 208, 90, 'oltp_read_only', 64),
    MariaDB('sb-write', 'MariaDB, sysbench oltp_read_write', 208, 90, 'oltp_read_write', 64),
    # numa01 and its kin, at a twentieth of their size
    Numaload('numa01', 'two processes, two threads each, all over their process\'s memory', 300, 150, 2, 2),
    Numaload('numa01-local', 'two processes, two threads each over its own memory', 300, 150, 2, 2, ['--own']),
    Numaload('numa02', 'two threads, each over its own memory', 160, 80, 1, 2, ['--own']),
    Numaload('numa02-smt', 'one thread', 160, 80, 1, 1, ['--own']),
    Flow('stream-node', 'triad in half of what a node holds', 40, 160, ['triad']),
    Flow('stream-two', 'triad of one thread in more than its node holds', 120, 160, ['triad']),
    Flow('stream-threads', 'the same by two threads', 120, 160, ['--threads', '2', 'triad']),
    Flow('stream-slow', 'triad in more than the fast nodes hold', 200, 160, ['triad']),
    Flow('faults', 'pages that are mapped, touched and unmapped', 8, 160, ['faults']),
    Flow('faults-2', 'the same by two threads', 8, 160, ['--threads', '2', 'faults']),
    Flow('faults-8', 'the same by eight threads', 8, 160, ['--threads', '8', 'faults']),
    Compile('compile', 'make -j2 of two C files of 175 lines', 96, 192, passes=3),
]
