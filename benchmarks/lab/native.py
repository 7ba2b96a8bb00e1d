# SPDX-License-Identifier: MIT
"""One workload under one contender on this machine itself, where that has fast and slow nodes.

Nothing is emulated here, so time is the clock's. What the fast nodes have in excess of a workload's room is taken away
by eaters, as in the guest. Only what changes the kernel's settings needs root; without, such contenders are not there.
"""
import copy
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

import contenders
import matrix
import model
import onerun
import workloads

SYS = '/sys/devices/system/node'
BALANCING = '/proc/sys/kernel/numa_balancing'
PR_SET_THP_DISABLE = 41
MARGIN_MIB = 64         # on a slow node, beside the workload

SCRIPT = r'''
cd "$work" || exit
# what busybox has and others have not
usleep() {
	sleep "$(awk -v us="$1" 'BEGIN { print us / 1e6 }')"
}
room=0
for node in %(fast)s; do
	free=$(awk '/MemFree/ { print int($4 / 1024) }' %(sys)s/node$node/meminfo)
	low=$(awk -v n=$node '/^Node/ { at = ($2 == n ",") } at && $1 == "low" { s += $2 } END { print int(s / 256) }' \
		/proc/zoneinfo)
	room=$((room + free - low))
done
echo "@room $room"
eater=
if [ %(late)d = 1 ]; then
	%(folder)s/eater %(nodes)s:1 > full &
	eater=$!
	while [ ! -s full ]; do
		kill -0 $eater || exit 3
		sleep 0.05
	done
fi
switch() {
	while [ "$eater" ] && kill -0 $eater; do
		sleep 0.02
	done
	%(switch)s
}
switch > /dev/null 2>&1 &
%(program)s
rc=$?
%(after)s
exit $rc
'''

# Becomes the program, and leaves its process's number, so that its CPU time can be looked at.
STARTER = 'sh -c \'echo $$ > "$work/program" && exec "$0" "$@"\''

# ---- what there is ------------------------------------------------------------------------------

def node_list(text):
    """'0,2-3' -> [0, 2, 3]"""
    ret = []
    for part in text.strip().split(','):
        if part:
            first, _, last = part.partition('-')
            ret += range(int(first), int(last or first) + 1)
    return ret


class Node:
    def __init__(self, number, cpus, total_mib, free_mib):
        self.number = number
        self.cpus = cpus
        self.total_mib = total_mib
        self.free_mib = free_mib


def nodes(path=SYS):
    """{number: Node} of those with memory."""
    ret = {}
    for name in sorted(os.listdir(path)) if os.path.isdir(path) else []:
        found = re.fullmatch(r'node(\d+)', name)
        if not found:
            continue
        with open(os.path.join(path, name, 'cpulist'), encoding='ascii') as f:
            cpus = node_list(f.read())
        with open(os.path.join(path, name, 'meminfo'), encoding='ascii') as f:
            sizes = dict(re.findall(r'(MemTotal|MemFree):\s+(\d+) kB', f.read()))
        if int(sizes.get('MemTotal', 0)):
            number = int(found.group(1))
            ret[number] = Node(number, cpus, int(sizes['MemTotal']) >> 10, int(sizes['MemFree']) >> 10)
    return ret


class Machine:
    """Which nodes count as fast: those that have CPUs, if there are others; else the first, and programs run there."""

    def __init__(self, found, fast=None):
        if fast is None:
            with_cpus = [n for n in sorted(found) if found[n].cpus]
            fast = with_cpus if len(with_cpus) < len(found) else with_cpus[:1]
        for n in fast:
            if n not in found:
                raise onerun.NotThere('node %d has no memory' % n)
        self.nodes = found
        self.fast = sorted(fast)
        self.slow = [n for n in sorted(found) if n not in fast]
        if not self.fast or not self.slow:
            raise onerun.NotThere('fast and slow memory takes two nodes, and there is %s' % (
                'none that is slow' if self.fast else 'none that is fast'))
        self.cpus = [c for n in self.fast for c in found[n].cpus]
        if not self.cpus:
            raise onerun.NotThere('no fast node has CPUs')

    def tiers(self):
        """For numalift: nodes of one speed to the hardware can be fast and slow here."""
        return ';'.join(join(tier) for tier in (self.fast, self.slow))


def machine(path=SYS, fast=None):
    """Of this machine; None where it has not got two nodes."""
    found = nodes(path)
    return Machine(found, fast) if len(found) > 1 else None


# ---- larger -------------------------------------------------------------------------------------

SIZES = ('--hot', '--size', '--keys')      # options of loads that grow with their memory


def scaled(workload, times):
    """The same with so many times the memory: a real cache holds what is a lot for a guest. As it is, where nothing
    says how large it is."""
    ret = copy.copy(workload)
    grown = isinstance(workload, workloads.Tierload)
    for name in ('options', 'keys'):
        value = getattr(ret, name, None)
        if isinstance(value, int):
            setattr(ret, name, value * times)
            grown = True
        elif value:
            words = list(value)
            for i, word in enumerate(words[:-1]):
                if word in SIZES:
                    words[i + 1] = str(int(words[i + 1]) * times)
                    grown = True
            setattr(ret, name, words)
    if not grown:
        return workload
    ret.size *= times
    ret.room *= times
    return ret


# ---- the kernel's settings ----------------------------------------------------------------------

def wanted_settings(contender):
    """{file: value} before the program, and while it runs. The rest of what root would do is returned, too."""
    before, during, rest = {BALANCING: '0'}, {}, []
    for line in contender.switch.splitlines():
        found = re.fullmatch(r'\s*echo (\S+) > (/\S+)\s*', line)
        if found:
            during[found.group(2)] = found.group(1)
        elif line.strip():
            rest.append(line.strip())
    return before, during, rest


def read_setting(path):
    try:
        with open(path, encoding='ascii') as f:
            return f.read().strip()
    except OSError:
        return None


SAME = {'true': '1', 'false': '0'}


def lacking(contender, root, read=read_setting):
    """Why this contender cannot be there, or None. Without root the kernel's settings have to be right already."""
    before, during, rest = wanted_settings(contender)
    for path, value in dict(before, **during).items():
        now = read(path)
        if now is None:
            if path == BALANCING and value == '0':
                continue        # a kernel that cannot balance does not
            return 'this kernel has no %s' % path
        if not root and SAME.get(now, now) != value:
            return '%s is %s, and only root can make it %s' % (path, now, value)
    if rest and not root:
        return 'needs root: %s' % '; '.join(rest)
    return None


def write_setting(path, value):
    with open(path, 'w', encoding='ascii') as f:
        f.write(value)


class KernelSettings:
    """As they have to be before the program begins, and afterwards as they were."""

    def __init__(self, contender, root):
        self.before, self.during, _ = wanted_settings(contender)
        self.root = root
        self.saved = {}

    def __enter__(self):
        if self.root:
            paths = list(self.before) + [p for p in self.during if p not in self.before]
            self.saved = {p: read_setting(p) for p in paths}
            for path, value in self.before.items():
                # without root a contender that balances has it on from the beginning
                if self.saved[path] not in (None, value):
                    write_setting(path, value)
        return self

    def __exit__(self, *_):
        for path, value in self.saved.items():
            if value is not None and read_setting(path) != value:
                write_setting(path, value)


# ---- full nodes ---------------------------------------------------------------------------------

def low_mib(text, node):
    """What the kernel keeps of a node, by /proc/zoneinfo."""
    pages, at = 0, None
    for line in text.splitlines():
        found = re.match(r'Node (\d+),', line)
        if found:
            at = int(found.group(1))
        words = line.split()
        if at == node and len(words) == 2 and words[0] == 'low':
            pages += int(words[1])
    return pages >> 8


def zone_info():
    with open('/proc/zoneinfo', encoding='ascii') as f:
        return f.read()


def end_with_parent():
    ctypes.CDLL(None).prctl(matrix.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Ballast:
    """Takes away what the fast nodes have in excess of the room that is wanted. It stays from one run to the next, as
    filling a large node takes long."""

    def __init__(self, programs, here):
        self.eater = os.path.join(programs, 'eater')
        self.here = here
        self.room = None
        self.eaters = []

    def still_fits(self, room):
        """Whether what it has left free is still free, once what the last run had has come back."""
        if room != self.room or any(e.poll() is not None for e in self.eaters):
            return False
        if room is None:
            return True
        for _ in range(20):
            found, zones = nodes(), zone_info()
            if all(abs(found[n].free_mib - low_mib(zones, n) - room) <= room // 16 + 2 for n in self.here.fast):
                return True
            time.sleep(0.1)
        return False

    def ensure(self, room):
        """room: MiB on each fast node; None: all of it."""
        if self.still_fits(room):
            return
        self.drop()
        zones = zone_info()
        for n in self.here.fast if room is not None else []:
            self.eaters.append(subprocess.Popen(
                [self.eater, '%d:%d' % (n, low_mib(zones, n) + room)], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, preexec_fn=end_with_parent))
        for eater in self.eaters:
            if eater.stdout.readline() != b'full\n':
                self.drop()
                raise onerun.Failure('the fast nodes could not be filled')
        self.room = room

    def drop(self):
        for eater in self.eaters:
            eater.kill()
        for eater in self.eaters:
            eater.wait()
            eater.stdout.close()
        self.eaters, self.room = [], None


# ---- a run --------------------------------------------------------------------------------------

# As rows were written with.
GUEST = {'FOLDER': workloads.FOLDER, 'SOCKET': workloads.SOCKET, 'FAST': workloads.FAST}


def placed(text, here, folder):
    """Steps for the guest, for this machine: their programs are in `folder`."""
    for there, ours in ((GUEST['FOLDER'] + '/', folder + '/'), (GUEST['SOCKET'], folder + '/socket'),
                        ('--fast %s ' % GUEST['FAST'], '--fast %s ' % join(here.fast))):
        text = text.replace(there, ours)
    # it does not become root unasked
    return text.replace(' memcached -', ' memcached -u root -') if os.geteuid() == 0 else text


def join(numbers):
    return ','.join(str(n) for n in numbers)


def script(workload, contender, settings, seed, here, folder):
    contenders.SLOW = join(here.slow)
    start = (STARTER + ' ' + contender.start(settings, workload)).strip()
    return SCRIPT % {
        'folder': folder, 'fast': ' '.join(str(n) for n in here.fast), 'sys': SYS,
        'nodes': join(here.fast), 'late': contender.late, 'after': workloads.counters('@after'),
        'switch': contender.switch if contender.switch and settings.root else ':',
        'program': placed(workload.steps(start, settings, seed), here, folder)}


def room_for(workload, contender, here):
    """MiB on each fast node, None for no limit: rows of workloads are written for two of them."""
    return None if contender.everything_fast else workload.room_for(contender) * 2 // len(here.fast)


def check(workload, contender, root, here):
    """NotThere, and why."""
    if isinstance(workload, workloads.MariaDB):
        raise onerun.NotThere('%s: its tables are made for the guest' % workload.name)
    if contender.by_counts:
        raise onerun.NotThere('takes the cost model, which counts misses')
    if contender.ready:
        raise onerun.NotThere('what root sets up for it is written for the nodes of the guest')
    why = lacking(contender, root)
    if why:
        raise onerun.NotThere(why)
    fits(workload, contender, here)


def fits(workload, contender, here):
    """NotThere where the machine is too small: by what it has, as what is free now may be taken by ballast."""
    need = room_for(workload, contender, here) or -(-(workload.size + MARGIN_MIB) // len(here.fast))
    for n in here.fast:
        if here.nodes[n].total_mib < need:
            raise onerun.NotThere('%s takes %d MiB on node %d, which has %d' % (
                workload.name, need, n, here.nodes[n].total_mib))
    free = sum(here.nodes[n].free_mib for n in here.slow)
    if free < workload.size + MARGIN_MIB:
        raise onerun.NotThere('%s takes %d MiB, and %d are free on slow nodes' % (
            workload.name, workload.size + MARGIN_MIB, free))


def gather(workload, contender, settings, folder):
    """All that the steps name by its place."""
    for name in {*workload.own, *contender.own, 'eater'}:
        os.symlink(os.path.join(settings.programs, name), os.path.join(folder, name))
    for name, package in contender.libraries:
        try:
            onerun.library_path(name, package)
        except onerun.Failure as e:
            raise onerun.NotThere(str(e)) from None
    for name in os.listdir(model.HERE):
        if name.endswith('.awk'):
            os.symlink(os.path.join(model.HERE, name), os.path.join(folder, name))
    if contender.env is not None:
        os.symlink(settings.library, os.path.join(folder, 'libnumalift.so'))
    for name in tuple(contender.needs) + tuple(workload.programs):
        if not shutil.which(name):
            raise onerun.NotThere('%s is missing: apt-get install %s' % (name, name))


def at_start(cpus):
    """In the process of the steps: on the CPUs of the fast nodes, and with small pages, as in the guest."""
    os.sched_setaffinity(0, cpus)
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def ticks(pid):
    """Of a process, of children that it has waited for, and of those it has."""
    try:
        with open('/proc/%d/stat' % pid, encoding='ascii', errors='replace') as f:
            words = f.read().rpartition(')')[2].split()
    except OSError:
        return 0
    return sum(int(w) for w in words[11:15]) + sum(ticks(child) for child in matrix.children(pid))


def cpu_seconds(folder):
    """Of the program, so far; None when it is not there."""
    try:
        with open(os.path.join(folder, 'program'), encoding='ascii') as f:
            pid = int(f.read())
    except (OSError, ValueError):
        return None
    return ticks(pid) / os.sysconf('SC_CLK_TCK') if os.path.exists('/proc/%d' % pid) else None


def watch(process, folder):
    """Reads what the steps print until they end, though what they leave running has the pipe open, too. Returns it,
    and the program's CPU time when each line of JSON came: [(begun or not, seconds)]."""
    text, rest, times = [], b'', []
    os.set_blocking(process.stdout.fileno(), False)
    while True:
        ended = process.poll() is not None
        if not select.select([process.stdout], [], [], 0 if ended else 0.05)[0]:
            if ended:
                break
            continue
        data = os.read(process.stdout.fileno(), 65536)
        if not data:
            process.wait()
            break
        *lines, rest = (rest + data).split(b'\n')
        for line in lines:
            if line.startswith((b'{"begin"', b'{"pass"')):
                times.append((line.startswith(b'{"pass"'), cpu_seconds(folder)))
        text.append(data)
    return b''.join(text).decode(errors='replace'), times


def cpu_per_pass(times):
    """From the line that began the passes to the last that found the program still there."""
    begun = next((s for passed, s in times if not passed), None)
    passes = [s for passed, s in times if passed]
    known = [i for i, s in enumerate(passes) if s is not None]
    if begun is None or not known:
        return None
    return (passes[known[-1]] - begun) / (known[-1] + 1)


def run_once(workload, contender, settings, seed, here):
    """As onerun.run_once(), with wall time. There is ballast for this room already, and what the steps leave running
    the caller ends."""
    check(workload, contender, settings.root, here)
    with tempfile.TemporaryDirectory(prefix='numalift-lab-') as folder:
        gather(workload, contender, settings, folder)
        onerun.write(folder, 'steps', script(workload, contender, settings, seed, here, folder))
        with KernelSettings(contender, settings.root), open(os.path.join(folder, 'err'), 'w+b') as err:
            begun = time.monotonic()
            with subprocess.Popen(
                    ['/bin/sh', 'steps'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, cwd=folder,
                    env=dict(os.environ, work=folder, LC_ALL='C'),
                    preexec_fn=lambda: at_start(here.cpus)) as process:
                try:
                    text, times = watch(process, folder)
                except BaseException:
                    process.kill()
                    raise
            wall = time.monotonic() - begun
            err.seek(0)
            said = err.read().decode(errors='replace')
        if settings.keep:
            onerun.write(settings.keep, '%s.%s.%d' % (workload.name, contender.name, seed), text + said)
        if process.returncode != 0:
            raise onerun.Failure('status %d: %s' % (
                process.returncode, ' / '.join(said.strip().split('\n')[-4:])))
        run = onerun.parse(text)
        if not run['passes']:
            raise onerun.Failure('no pass came to its end')
        wanted = room_for(workload, contender, here)
        if wanted is not None and abs(run['room_mib'] - wanted * len(here.fast)) > wanted * len(here.fast) // 8 + 8:
            raise onerun.Failure('%d MiB of room on the fast nodes instead of %d' % (
                run['room_mib'], wanted * len(here.fast)))
        workloads.FAST = join(here.fast)    # in this process only
        onerun.add_shares(run)
        run.update(said=said.splitlines()[:20], phases=None, native=True, wall_s=round(wall, 3),
                   cpu_s=cpu_per_pass(times))
    return {'workload': workload.name, 'contender': contender.name, 'seed': seed, **run}
