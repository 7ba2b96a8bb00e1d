# SPDX-License-Identifier: MIT
"""One workload under one contender in one guest, and the figures of it."""
import json
import os
import re
import shutil
import subprocess
import tempfile

import contenders
import model
import workloads

ABSENT = 'lab: not there: '

VMSTAT = ('pgfault', 'pgmigrate_success', 'pgmigrate_fail', 'pgpromote_success', 'pgdemote_kswapd',
          'pgdemote_direct', 'numa_hint_faults', 'numa_pages_migrated')

# The kernel does not trust the emulated processor's clock, and the other one is a device that CPUs wait for.
CLOCK = 'clocksource=tsc tsc=reliable'
# Its files are to be on the first node, whose CPU starts it, and not where some helper happens to unpack them.
UNPACK = 'initramfs_async=0'

# An emulated CPU is so many times slower than a real one: its time is what a move costs by the guest's clock, so
# what the guest is told that a move saves has to be in the same measure. With the cost model, and without.
SLOWER = 100
SLOWER_PLAIN = 30

# About one start in fifty has other room on the fast nodes.
ROOM_TRIES = 3

# Without fast string moves, which are fast on a real CPU alone: here each byte would be an instruction, and without
# them kernel and libc move words.
CPU = model.vm.CPU + ',erms=off,fsrm=off'

# What the kernel does not give away of a node, in MiB.
LOW = r'''
low() {
	awk -v n=$1 '/^Node/ { at = ($2 == n ",") } at && $1 == "low" { s += $2 } END { print int(s / 256) }' \
		/proc/zoneinfo
}
'''

# As root: on each fast node stays free what is wanted, and what the kernel keeps.
BALLAST = LOW + r'''
absent() {
	echo "%(absent)s$*" >&2
	exit 1
}
%(ready)s
damon=/sys/module/damon_stat/parameters/enabled
for node in %(fast)s; do
	%(folder)s/eater $node:$(($(low $node) + %(room)d)) > /tmp/ballast$node &
done
# a monitor that newer kernels run by default: it costs, and it clears the marks of use
[ ! -e $damon ] || echo N > $damon
for node in %(fast)s; do
	until [ -s /tmp/ballast$node ]; do usleep 50000; done
done
# When what fills the nodes is gone; sooner, and the kernel would move the pages of that.
filled() {
	until [ -s /tmp/eater ]; do usleep 20000; done
	while read -r state < /proc/$(cat /tmp/eater)/stat; do
		case $state in *') Z '*) break ;; esac
		usleep 20000
	done
}
switch() {
	filled
	sh -e %(folder)s/switch > /tmp/switched 2>&1 || echo "it ended with $?" >> /tmp/switched
}
switch > /dev/null 2>&1 &
# What helps, and can run beside the program, has a CPU of its own. None of it is there from the beginning.
apart() {
	for n in 1 2 3 4 5 6; do
		for at in $(grep -slE '^(numalift|kswapd|kcompactd|kdamond)' /proc/[0-9]*/task/[0-9]*/comm); do
			at=${at%%/comm}
			taskset -p %(helpers)x ${at##*/}
		done
		usleep 700000
	done
}
{
	taskset -p %(helpers)x $(exec sh -c 'echo $PPID')
	filled
	apart
} > /dev/null 2>&1 &
'''

SCRIPT = LOW + r'''
cd /tmp
taskset -p %(cpus)x $$ > /dev/null
room_now() {
	room=0
	for node in %(fast)s; do
		free=$(awk '/MemFree/ { print int($4 / 1024) }' /sys/devices/system/node/node$node/meminfo)
		room=$((room + free - $(low $node)))
	done
}
room_now
tries=50
# what was freed lately is in the CPUs' lists, and comes out of them with time
while [ $((room * 16)) -lt $((%(room)d * 15)) ] && [ $tries -gt 0 ]; do
	usleep 200000
	tries=$((tries - 1))
	room_now
done
echo "@room $room"
# then no pass is worth its time
if [ $((room * 8)) -lt $((%(room)d * 7)) ] && [ %(strict)d = 1 ]; then
	cat /sys/devices/system/node/node[01]/meminfo >&2
	exit 0
fi
echo $((room * 256)) > room_pages
place=%(place)s
eater=
if [ %(late)d = 1 ]; then
	%(folder)s/eater %(nodes)s:1 > full &
	eater=$!
	echo $eater > eater
	while [ ! -s full ]; do
		kill -0 $eater || exit 3
		usleep 50000
	done
else
	echo none > eater
fi
%(program)s
rc=$?
%(after)s
if [ -s switched ]; then
	echo 'what root does when memory is full went wrong:' >&2
	cat switched >&2
	exit 4
fi
exit $rc
'''


class Failure(Exception):
    """A run that did not come to a proper end."""


class NotThere(Failure):
    """What was asked for does not exist here. Nobody's fault."""


class OtherRoom(Failure):
    """The fast nodes have other room than they should: the guest's kernel put its files where it likes."""


class NoGuest(Failure):
    """No guest can be started here."""


class Settings:
    """What all runs share; see the options of benchmarks/run."""

    def __init__(self, options):
        self.kernel = options.kernel
        self.build = os.path.abspath(options.build)
        self.programs = os.path.join(self.build, 'benchmarks', 'lab')
        self.library = os.path.abspath(options.numalift or os.path.join(self.build, 'shim', 'libnumalift.so'))
        self.model = not options.plain
        self.passes = options.passes
        self.measured = options.measured    # passes at the end; 0: all
        self.accesses = options.accesses
        self.period = options.period
        self.env = dict(pair.split('=', 1) for pair in options.env)
        self.keep = options.keep
        self.guest = True


def write(folder, name, text):
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
        f.write(text)


def room_on_fast(workload, contender):
    """MiB on all of them."""
    return workload.room_for(contender) * len(workloads.FAST.split(','))


def script(workload, contender, settings, seed):
    return SCRIPT % {
        'folder': workloads.FOLDER, 'fast': workloads.FAST.replace(',', ' '), 'nodes': workloads.FAST,
        'room': room_on_fast(workload, contender), 'late': contender.late,
        'cpus': sum(1 << cpu for cpu in workloads.CPUS), 'strict': not contender.everything_fast,
        'place': '1' if contender.by_counts else '', 'after': workloads.counters('@after'),
        'program': workload.steps(contender.start(settings, workload), settings, seed)}


def library_path(name, package):
    """Where the dynamic linker finds a shared library."""
    done = subprocess.run(['/sbin/ldconfig', '-p'], stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.split()[:1] == [name] and 'x86-64' in line:
            return line.split(' => ')[1]
    raise Failure('%s is missing: apt-get install %s' % (name, package))


def slower(text, times):
    """A machine description in which reaching memory takes so many times as long."""
    return re.sub(r'(?<=latency=)\d+', lambda m: str(int(m[0]) * times), text)


def guest_words(workload, contender, settings, folder, counting):
    """The words of scripts/guest up to the command; what it needs is put into the folder."""
    machine = os.path.join(folder, 'lab.machine')
    write(folder, 'lab.machine', workload.machine(contender))
    told = os.path.join(folder, 'guest.machine')
    write(folder, 'guest.machine', slower(workload.machine(contender), SLOWER if settings.model else SLOWER_PLAIN))
    words = [model.GUEST, '--kernel', settings.kernel, '--machine', told, '--user', 'user', '--timeout', '1800',
             '--append', ' '.join(('transparent_hugepage=never', CLOCK, UNPACK)),
             '--qemu-arg=-cpu', '--qemu-arg', CPU,
             '--sysctl', 'kernel.numa_balancing=0',
             # pages that it moves are nobody's merit
             '--sysctl', 'vm.compaction_proactiveness=0',
             '--add', '%s/steps:%s/steps' % (folder, workloads.FOLDER)]
    for name in sorted({*workload.own, *contender.own, 'eater'}):
        of = model.HERE if name.endswith('.sh') else settings.programs
        words += ['--add', '%s/%s:%s/%s' % (of, name, workloads.FOLDER, name)]
    for name, package in contender.libraries:
        words += ['--add', library_path(name, package)]
    if contender.env is not None:
        words += ['--add', '%s:%s/libnumalift.so' % (settings.library, workloads.FOLDER)]
    # its own --setup goes before: what that frees is no room
    try:
        words += workload.words(settings)
    except workloads.Missing as e:
        raise Failure(str(e)) from None
    # in a file: what is named after --setup itself is looked through for programs to bring along
    write(folder, 'ballast', BALLAST % {'fast': workloads.FAST.replace(',', ' '), 'folder': workloads.FOLDER,
                                        'room': workload.room_for(contender), 'absent': ABSENT,
                                        'helpers': 1 << workloads.HELPERS,
                                        'ready': contender.ready})
    write(folder, 'switch', contender.switch + '\n')
    words += ['--add', '%s/ballast:%s/ballast' % (folder, workloads.FOLDER),
              '--add', '%s/switch:%s/switch' % (folder, workloads.FOLDER),
              # and so that the memory of eaters can be kept where it is
              '--setup', 'sh %s/ballast && ulimit -l unlimited' % workloads.FOLDER]
    for name in tuple(contender.needs) + workload.programs:
        path = shutil.which(name)
        if not path:
            raise Failure('%s is missing: apt-get install %s' % (name, name))
        words += ['--add', path]
    if settings.model:
        words += model.guest_arguments(settings.programs, model.load(machine), os.path.join(folder, 'phases'),
                                       frames=os.path.join(folder, 'frames') if counting else None)
    return words


def parse(text):
    """What the guest printed: lines of JSON, and between marks the kernel's counters."""
    run = {'room_mib': None, 'passes': [], 'begin': None, 'end': None}
    counters = {'@before': {}, '@after': {}}
    where = None
    for line in text.splitlines():
        words = line.split()
        if line.startswith('{'):
            fields = json.loads(line)
            where = None
            if 'pass' in fields:
                run['passes'].append(fields)
            else:
                run['begin' if 'begin' in fields else 'end'] = fields
        elif line.startswith('@room '):
            run['room_mib'] = int(words[1])
        elif line in counters:
            where = counters[line]
        elif where is not None and len(words) == 2 and words[1].isdigit():
            where[words[0]] = int(words[1])
    run['numastat'] = {}
    for key, value in counters['@after'].items():
        if '.' in key:
            node, name = key.split('.')
            run['numastat'].setdefault(node, {})[name] = value - counters['@before'].get(key, 0)
    run['vmstat'] = {k: counters['@after'].get(k, 0) - counters['@before'].get(k, 0) for k in VMSTAT
                     if k in counters['@after']}
    return run


def add_shares(run):
    """Memcached's load reads all keys alike: what share of the pages is fast is the share of reads."""
    fast = workloads.FAST.split(',')
    for fields in run['passes']:
        if 'share' not in fields:
            total = sum(fields['nodes'].values())
            fields['share'] = sum(fields['nodes'].get(n, 0) for n in fast) / max(1, total)
    if run['end'] is None and run['passes']:
        total = sum(run['passes'][-1]['nodes'].values())
        run['end'] = {'best_static': min(1.0, run['room_mib'] * 256 / max(1, total))}


def phases_of(path):
    ret = {}
    for name, phase in model.read(path).items():
        ret[name] = {
            'instructions': {m: phase.instructions(m) for m in ('user', 'kernel')},
            'waiting': sum(c['waiting'] for c in phase.cpus),
            'ns': {m: phase.ns(m) for m in ('user', 'kernel')},
            'ns_of_cpu': [sum(c['ns'].values()) for c in phase.cpus],
            'misses': {str(k): v for k, v in phase.misses().items()},
        }
    return ret


def run_guest(workload, contender, settings, seed, folder, name):
    """run_one(); it is seen before the first pass when there is not the right room, and tried again."""
    for _ in range(ROOM_TRIES - 1):
        try:
            return run_one(workload, contender, settings, seed, folder, name)
        except OtherRoom:
            pass
    return run_one(workload, contender, settings, seed, folder, name)


def run_one(workload, contender, settings, seed, folder, name):
    """One guest: a dict of what it printed, and in the folder what it left. Failure when it is worth nothing."""
    counting = contender is contenders.COUNTING
    words = guest_words(workload, contender, settings, folder, counting)
    if contender.switch and '/out/' in contender.switch:
        words += ['--out', folder]
    if contender is contenders.PLACED:
        words += ['--add', '%s/hottest:%s/hottest' % (folder, workloads.FOLDER)]
    write(folder, 'steps', script(workload, contender, settings, seed))
    done = subprocess.run(words + ['--', '/bin/sh', workloads.FOLDER + '/steps'], cwd=folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors='replace', check=False)
    if settings.keep:
        write(settings.keep, '%s.%s.%d' % (workload.name, name, seed), done.stdout + done.stderr)
    if done.returncode != 0:
        for line in done.stderr.splitlines():
            if line.startswith(ABSENT):
                raise NotThere(line[len(ABSENT):])
        why = ' / '.join(done.stderr.strip().split('\n')[-4:])
        # what it printed came after the start
        raise (NoGuest if done.returncode == 125 and not done.stdout else Failure)(
            'status %d: %s' % (done.returncode, why))
    run = parse(done.stdout)
    wanted = room_on_fast(workload, contender)
    if run['room_mib'] is None:
        raise Failure('it did not come to its beginning')
    if not contender.everything_fast and abs(run['room_mib'] - wanted) > wanted // 8:
        raise OtherRoom('%d MiB of room on the fast nodes instead of %d' % (run['room_mib'], wanted))
    if not run['passes']:
        raise Failure('no pass came to its end')
    add_shares(run)
    run['said'] = done.stderr.splitlines()[:20]
    run['phases'] = phases_of(os.path.join(folder, 'phases')) if settings.model else None
    run['cpus'] = list(workloads.CPUS)
    run['in_turn'] = workload.in_turn
    return run


def hottest(mapped, counts):
    """Addresses of pages with counts, hottest first; mapped: {address: frame}, counts: {frame: misses}."""
    counted = [a for a, frame in mapped.items() if counts.get(frame)]
    return sorted(counted, key=lambda a: (-counts[mapped[a]], a))


def run_placed(workload, settings, seed):
    """All slow first, and then with the pages that had most misses on fast nodes from the beginning."""
    with tempfile.TemporaryDirectory(prefix='numalift-lab-') as folder:
        run_guest(workload, contenders.COUNTING, settings, seed, folder, 'counting')
        with open(os.path.join(folder, 'map'), encoding='utf-8') as f:
            mapped = {int(a, 16): int(frame, 16) for a, frame in (line.split() for line in f)}
        counts = model.frames(os.path.join(folder, 'frames'), model.load(os.path.join(folder, 'lab.machine')))
        pages = hottest(mapped, counts)
        if len(mapped) < workload.size * 256 // 2:
            raise NotThere('most of the memory is not that of the process that was started')
        write(folder, 'hottest', ''.join('%x\n' % a for a in pages))
        run = run_guest(workload, contenders.PLACED, settings, seed, folder, 'placed')
        with open(os.path.join(folder, 'placed'), encoding='utf-8') as f:
            run['placed'] = json.load(f)
    room = min(len(pages), run['room_mib'] * 256)
    if run['placed']['fast'] < 0.9 * room:
        raise Failure('only %d of the %d hottest pages could be placed: %s' % (
            run['placed']['fast'], room, run['placed']))
    return run


def run_once(workload, contender, settings, seed):
    """A dict that goes into the results as it is. Failure when the run is worth nothing."""
    if contender.by_counts and not workload.places_itself:
        if not settings.model:
            raise NotThere('misses are counted only with the cost model')
        run = run_placed(workload, settings, seed)
    else:
        with tempfile.TemporaryDirectory(prefix='numalift-lab-') as folder:
            run = run_guest(workload, contender, settings, seed, folder, contender.name)
    return {'workload': workload.name, 'contender': contender.name, 'seed': seed, **run}
