# SPDX-License-Identifier: MIT
"""What is run and checked on each machine description of scripts/guest.d/machines."""
import re
import shlex
import shutil

import mariadbdata
from guestrun import FOLDER, Failed, deviation

ANON = ('slab', 'anon', 'anon-huge', 'malloc-large', 'anon-shared', 'sysv', 'memfd-private')
FILE = ('memfd', 'shm_open')
KINDS = ANON + FILE
# One or two of each class.
FEW = ('slab', 'anon', 'malloc-large', 'memfd')
EPERM, ENOSYS = '1', '38'


def sizes(g, nodes):
    """A function that tells, after the boot, how large these nodes are."""
    step = g.shell('grep MemTotal /sys/devices/system/node/node*/meminfo', 'sizes of nodes')

    def fn():
        found = dict(re.findall(r'Node (\d+) MemTotal: +(\d+) kB', '\n'.join(step.need().out)))
        return {n: int(found[str(n)]) for n in nodes}
    return fn


def kinds(*more, kind=None, size=32):
    return ['kinds', '-s', str(size), '-k', kind or ','.join(KINDS), *more]


def huge_kept(g, step, control, of):
    def check(kind):
        def fn():
            have, was = step.kind(kind)['huge'], control.kind(kind)['huge']
            if have < was:
                raise Failed('%d kB in huge pages, %d without the library' % (have, was))
            return '%d kB in huge pages, %d without the library' % (have, was)
        g.check('%s: %s keeps its huge pages' % (step.title, kind), fn)
    for kind in of:
        check(kind)


def budget_kept(g, step, control, limit=65530):
    def fn():
        more = step.number_of('maps') - control.number_of('maps')
        if more > limit // 4:
            raise Failed('%d mappings more than without the library' % more)
        return '%d mappings more than without the library, %d allowed' % (more, limit // 4)
    g.check('%s: mappings within the budget' % step.title, fn)


def threads(g, step, tiers):
    """With one tier there is nothing to promote, and no thread for it."""
    def fn():
        n = step.number_of('threads')
        if n > (2 if tiers > 1 else 1):
            raise Failed('%d threads' % n)
        return '%d' % n
    g.check('%s: no thread but for promotion' % step.title, fn)


def main_kinds(g, fast, node, title, uid=1000, slow=None, control=None, of=KINDS):
    """Every kind from a CPU of node, and what is always expected of it."""
    step = g.run(kinds(kind=','.join(of)), title, node=node, uid=uid)
    for kind in of:
        if kind in FILE:
            g.spread(step, kind, fast)
        else:
            g.local(step, kind, node, what='on the node that touched it (node %d)' % node)
    if slow is not None:
        g.none_on(step, of, slow, 'nothing on the slow node %d' % slow)
    if control:
        huge_kept(g, step, control, of)
        budget_kept(g, step, control)
    threads(g, step, 1 if slow is None else 2)
    return step


def controls(g, fast, node):
    """Without the library, and with it switched off: nothing is spread."""
    plain = g.run(kinds(), 'without the library', node=node, lift=False)
    off = g.run(kinds(kind=','.join(FEW)), 'NUMALIFT=off', node=node, env={'NUMALIFT': 'off'})
    for kind in FILE:
        g.not_spread(plain, kind, fast)
    g.not_spread(off, 'memfd', fast)
    g.same(off, plain, FEW)
    return plain


def crowd(g, nodes, slow=None):
    step = g.run(['crowd', 'own', *(str(n) for n in nodes)], 'threads on all nodes at once', node=nodes[0])
    for node in nodes:
        for what in 'slab', 'anon', 'malloc':
            g.local(step, '%s.%d' % (what, node), node)
    if slow is not None:
        g.none_on(step, ['%s.%d' % (w, n) for n in nodes for w in ('slab', 'anon', 'malloc')], slow,
                  'nothing on the slow node %d' % slow)
    # what one thread frees of another's goes back to where it came from
    for how in 'pipe', 'mix':
        step = g.run(['crowd', how, str(nodes[0]), str(nodes[1])], 'freed by the other thread (%s)' % how,
                     node=nodes[0])
        for node in nodes[:2]:
            g.local(step, '%s.%d' % (how, node), node, least=0.95)


REUSE = {'reuse': ('after-exit.B', 'after-own-free.B', 'after-their-free.B', 'after-their-free.A'),
         'churn': ('churn.A', 'churn.B'), 'moved': ('moved.B',)}


def reuse(g, a, b, runs=(('libc', {'lift': False}), ('numalift', {}))):
    """Measured, not judged: how much of the small blocks that a thread takes is on its node, when they were
    used on the other one before. What a heap keeps for the next thread is where the last one touched it."""
    for name, lines in REUSE.items():
        steps = [(who, g.run(['crowd', name, str(a), str(b)], 'freed memory taken again: %s, %s' % (name, who),
                             node=a, **how)) for who, how in runs]
        for line in lines:
            def fn(line=line, steps=steps):
                node = a if line.endswith('A') else b
                shares = []
                for who, step in steps:
                    have = step.kind('%s.%d' % (line[:-2], node))['nodes']
                    shares.append('%s %.0f %%' % (who, 100 * have.get(node, 0) / max(sum(have.values()), 1)))
                return 'measured, local after reuse, %s: %s' % (line, ', '.join(shares))
            g.measured.append(fn)


# --- who wins --------------------------------------------------------------------------------------------

def numactl(g, nodes):
    """Exactly what it asks for: compared with the same run without the library."""
    if not shutil.which('numactl'):
        g.skip('numactl', 'numactl is not installed')
        return
    g.files['/usr/bin/numactl'] = shutil.which('numactl')
    a, b = nodes
    both = '%d,%d' % (a, b)
    for args in ['--membind=%d' % b], ['--preferred=%d' % b], ['--interleave=' + both], ['--localalloc']:
        through = ['/usr/bin/numactl', *args]
        argv = kinds(kind=','.join(FEW), size=32)
        step = g.run(argv, 'numactl ' + args[0], node=a, through=through)
        plain = g.run(argv, 'numactl %s without the library' % args[0], node=a, lift=False, through=through)
        if 'interleave' in args[0]:
            # The kernel's turn also goes on with page tables and whatever else the program makes it
            # allocate, so the shares differ from run to run, without the library too. The policy does not.
            for kind in FEW:
                for s in step, plain:
                    g.policy(s, kind, 'interleave:%d[-,]%d' % nodes, 'interleaved by the kernel')
                g.some_on(step, kind, a, '%s on node %d' % (kind, a))
                g.some_on(step, kind, b, '%s on node %d' % (kind, b))
        else:
            g.same(step, plain, FEW)
        if args[0].startswith(('--membind', '--preferred')):
            for kind in FEW:
                g.local(step, kind, b, least=1.0)
    # numactl itself is under the library as well
    step = g.run(['/usr/bin/numactl', '--membind=%d' % b, FOLDER + '/kinds', '-s', '32', '-k', ','.join(FEW)],
                 'numactl --membind under the library', node=a)
    for kind in FEW:
        g.local(step, kind, b, least=1.0)


def own_policies(g, nodes, fast):
    a, b = nodes

    def own(test):
        return g.run(['own', test, str(b)], 'own policy: ' + test, node=a)

    for test in 'mbind-raw', 'mbind', 'mapped-again', 'early', 'late', 'late-raw', 'move':
        step = own(test)
        for kind in {'mbind-raw': ('anon', 'memfd'), 'mbind': ('anon', 'memfd', 'anon-grown'),
                     'mapped-again': ('memfd',), 'early': ('anon', 'memfd', 'malloc'),
                     'late': ('anon', 'memfd', 'malloc', 'anon-new', 'memfd-new'),
                     'late-raw': ('anon', 'memfd', 'malloc'), 'move': ('anon', 'memfd', 'pages')}[test]:
            # the page in front of a block of malloc was touched by the allocator, which keeps its size there
            g.local(step, kind, b, least=0.999 if kind == 'malloc' else 1.0)
        if test == 'mbind':
            g.spread(step, 'memfd-rest', fast, within=0.05)
        if test == 'late':
            g.local(step, 'anon-back', a)
            g.spread(step, 'memfd-back', fast, within=0.05)
        if test == 'late-raw':
            g.local(step, 'anon-before', a)
    if 'own' not in g.settings.programs:
        g.skip('own policy: libnuma', 'libnuma was not there when the tests were built')
        return
    step = own('libnuma')
    for kind in 'onnode', 'tonode', 'preferred', 'preferred-memfd':
        g.local(step, kind, b, least=1.0)
    # by huge pages, of which there are sixteen
    g.spread(step, 'interleaved', {a: 1, b: 1}, within=0.07)
    g.local(step, 'localalloc-memfd', a, least=1.0)


# 0 is the shell that writes it: the step's own, which ends with the step.
CPUSET = 'mkdir -p /sys/fs/cgroup/t && echo %s > /sys/fs/cgroup/t/cpuset.mems && echo 0 > /sys/fs/cgroup/t/cgroup.procs'


def cpuset(g, nodes, slow):
    a, b = nodes
    step = g.run(kinds(kind=','.join(FEW), size=32), 'cpuset with node %d only' % b, node=a, before=CPUSET % b)
    for kind in FEW:
        g.local(step, kind, b, least=1.0)
    # Changed while the program runs: what comes then goes to the node that is left.
    for first in '%d' % a, '%d,%d' % (a, slow), '%d,%d' % (a, b):
        step = g.run(kinds('-2', 'echo %d > /sys/fs/cgroup/t/cpuset.mems' % b, kind='anon,memfd', size=32),
                     'cpuset from %s to %d while running' % (first, b), node=a, uid=0, before=CPUSET % first)
        for kind in 'anon.2', 'memfd.2':
            g.local(step, kind, b, least=1.0)


def zone_reclaim(g, node):
    g.sysctl('vm.zone_reclaim_mode', 1)
    step = g.run(kinds(kind=','.join(FEW), size=32), 'vm.zone_reclaim_mode=1', node=node)
    for kind in FEW:
        g.local(step, kind, node)
    g.sysctl('vm.zone_reclaim_mode', 0)


def denied(g, node):
    """Where memory policy calls are refused the program runs as without the library, and hears of it once."""
    few = kinds(kind=','.join(FEW), size=32)
    for number, name in (EPERM, 'EPERM'), (ENOSYS, 'ENOSYS'):
        step = g.run(few, 'policy calls refused with ' + name, node=node, deny=number, says=name,
                     env={'NUMALIFT_PLACE': 'file:interleave'})
        for kind in FEW:
            g.local(step, kind, node)
    # a filter that kills: nothing may be tried
    step = g.run(few, 'policy calls are killed for', node=node, deny='kill', says='seccomp')
    for kind in FEW:
        g.local(step, kind, node)


# --- configurations --------------------------------------------------------------------------------------

def placed(g, value, title=None, node=0, size=32, kind=','.join(FEW), name='NUMALIFT_PLACE', more=(), env=None):
    return g.run(kinds(*more, kind=kind, size=size), title or '%s=%s' % (name, value), node=node,
                 env={name: value, **(env or {})})


def configurations(g, fast, slow):
    step = placed(g, 'anon:interleave', size=128, kind='slab,anon,anon-huge,malloc-large')
    for kind in 'anon', 'anon-huge', 'malloc-large':
        g.spread(step, kind, fast, within=0.03)
    g.local(step, 'slab', 0)

    step = placed(g, 'slab:interleave', size=128, kind='slab,anon')
    g.spread(step, 'slab', fast, within=0.05)
    g.local(step, 'anon', 0)

    step = placed(g, 'anon:bind=1')
    for kind in 'anon', 'malloc-large':
        g.local(step, kind, 1, least=1.0)
    g.local(step, 'slab', 0)
    g.spread(step, 'memfd', fast)

    step = placed(g, 'anon:preferred=0,1', node=1)
    g.local(step, 'anon', 1)
    step = placed(g, 'anon:preferred=%d' % slow)
    g.local(step, 'anon', slow)
    g.local(step, 'slab', 0)

    step = placed(g, 'file:local', node=1)
    for kind in FEW:
        g.local(step, kind, 1)

    rule = 'anon>=32M:interleave'
    step = placed(g, rule, size=128, kind='anon,malloc-large', title=rule + ', 128 MiB')
    g.spread(step, 'anon', fast, within=0.03)
    g.spread(step, 'malloc-large', fast, within=0.03)
    step = placed(g, rule, size=24, kind='anon,malloc-large', title=rule + ', 24 MiB')
    g.local(step, 'anon', 0)
    g.local(step, 'malloc-large', 0)

    step = placed(g, 'file:weighted', title='weighted, NUMALIFT_WEIGHTS=0:3,1:1', env={'NUMALIFT_WEIGHTS': '0:3,1:1'})
    g.spread(step, 'memfd', {0: 3, 1: 1})
    g.local(step, 'anon', 0)
    if g.kernel != '6.1':
        for node, weight in (0, 3), (1, 1), (slow, 1):
            g.shell('echo %d > /sys/kernel/mm/mempolicy/weighted_interleave/node%d' % (weight, node))
        step = placed(g, 'file:weighted', title="weighted, the kernel's 3:1:1")
        g.spread(step, 'memfd', {0: 3, 1: 1, slow: 1})
        g.local(step, 'anon', 0)

    step = placed(g, '1;0,%d' % slow, name='NUMALIFT_TIERS')
    for kind in 'slab', 'anon', 'malloc-large':
        g.local(step, kind, 1)

    for value, pages in ('4M', 1024), ('2M', 512):
        step = placed(g, value, name='NUMALIFT_BATCH', more=['-m'], kind='memfd', size=64)
        g.spread(step, 'memfd', fast, within=pages / (64 << 8))
        chunks_of(g, step, pages)


def chunks_of(g, step, pages):
    """numa_maps shows whole chunks: all but the first and the last mapping are multiples of one."""
    def fn():
        runs = []
        for line in step.need().out:
            if line.startswith('map memfd '):
                runs.append(sum(int(n) for n in re.findall(r' N\d+=(\d+)', line)))
        if len(runs) < 4:
            raise Failed('only %d mappings' % len(runs))
        odd = [n for n in runs[1:-1] if n == 0 or n % pages]
        if odd or min(runs[1:-1]) != pages:
            raise Failed('mappings of %s pages' % ', '.join(map(str, runs)))
        return '%d mappings, %d pages each or a multiple' % (len(runs), pages)
    g.check('%s: chunks of %d pages' % (step.title, pages), fn)


def pagecache(g, fast):
    """A file on a real file system, read by the program."""
    g.modules.append('loop')
    g.shell('dd if=/dev/zero of=/tmp/disk bs=1M count=80 && losetup /dev/loop0 /tmp/disk && '
            'mke2fs -q /dev/loop0 && mkdir /tmp/fs && mount -t ext4 /dev/loop0 /tmp/fs && '
            'dd if=/dev/zero of=/tmp/fs/file bs=1M count=48 && chmod 644 /tmp/fs/file', 'a file system')
    cold = 'umount /tmp/fs; echo 1 > /proc/sys/vm/drop_caches; mount -t ext4 /dev/loop0 /tmp/fs'
    argv = kinds('-f', '/tmp/fs/file', kind='pagecache,slab,anon,malloc-large', size=32)
    plain = g.run(argv, 'page cache without the library', node=1, lift=False, before=cold)
    g.not_spread(plain, 'pagecache', {0: 1, 1: 1})
    step = g.run(argv, 'NUMALIFT_PAGECACHE=interleave', node=1, before=cold,
                 env={'NUMALIFT_PAGECACHE': 'interleave'})
    g.spread(step, 'pagecache', {0: 1, 1: 1})
    for kind in 'slab', 'anon', 'malloc-large':
        g.local(step, kind, 1)
    step = g.run(argv, 'NUMALIFT_PAGECACHE off', node=1, before=cold)
    g.local(step, 'pagecache', 1)
    g.shell('umount /tmp/fs; losetup -d /dev/loop0; rm /tmp/disk', 'file system gone')


def remapped(g, fast, node):
    """What is interleaved is many mappings, and mremap must still see one; what it adds is placed as well."""
    argv = kinds(kind='memfd-grown,anon-grown,memfd-moved')
    step = g.run(argv, 'mremap', node=node, env={'NUMALIFT_PLACE': 'anon:interleave'})
    plain = g.run(argv, 'mremap without the library', node=node, lift=False)
    # what is added comes in chunks of a huge page, and one more or less is 6 %
    for kind, within in ('memfd-grown', 0.07), ('memfd-moved', 0.02), ('anon-grown', 0.1):
        g.spread(step, kind, fast, within=within)
    g.not_spread(plain, 'memfd-grown', fast)


def hugetlb(g, fast, node):
    pool = '/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages'
    g.shell('; '.join('echo 72 > ' + pool % n for n in fast_nodes(fast)), 'huge pages reserved')
    step = g.run(kinds(kind='hugetlb,hugetlb-file', size=128), 'hugetlb', node=node)
    g.local(step, 'hugetlb', node)
    # 64 huge pages: one more or less is 1.6 %
    g.spread(step, 'hugetlb-file', fast)
    plain = g.run(kinds(kind='hugetlb-file', size=128), 'hugetlb without the library', node=node, lift=False)
    g.not_spread(plain, 'hugetlb-file', fast)
    g.shell('; '.join('echo 0 > ' + pool % n for n in fast_nodes(fast)), 'huge pages given back')


def fast_nodes(fast):
    return fast.nodes if hasattr(fast, 'nodes') else (0, 1)


# --- limits ----------------------------------------------------------------------------------------------

def full_nodes(g, node, other, slow=None, slowest=None):
    """The next fast node, and only when that is full too a slow one. Nothing fails."""
    few = kinds(kind=','.join(FEW), size=80)
    step = g.run(few, 'node %d is full' % node, node=node, full='%d:48' % node)
    for kind in FEW:
        g.some_on(step, kind, other, '%s goes on on the other fast node' % kind)
    if slow is None:
        return
    g.none_on(step, FEW, slow, 'nothing on the slow node %d' % slow)
    # More than what is left on both together; less would be left to the kernel than it needs.
    more = kinds(kind=','.join(FEW), size=112)
    step = g.run(more, 'all fast nodes are full', node=node, full='%d,%d:48' % (node, other))
    for kind in FEW:
        g.some_on(step, kind, slow, '%s goes on on the slow node' % kind)
    g.none_on(step, FEW, slowest, 'nothing on the slowest node %d' % slowest)


def many_mappings(g):
    limit = 2000
    g.sysctl('vm.max_map_count', limit)
    # Some that merge, so that there can be more than the limit and all of them be placed, and some that cannot.
    for argv, says in (['many', '3000', 'anon'], None), (['many', '1400', 'memfd'], 'budget of mappings'), \
            (['many', '1900', 'memfd'], 'budget of mappings'):
        title = ' '.join(argv) + ', vm.max_map_count=%d' % limit
        step = g.run(argv, title, says=says)
        plain = g.run(argv, title + ' without the library', lift=False)
        for s in step, plain:
            def fn(s=s):
                return mapped(s)
            g.check(s.title + ': all mapped', fn)

        def fits(step=step, plain=plain):
            more = int(step.out[0].split()[-1]) - int(plain.out[0].split()[-1])
            if more > limit // 4:
                raise Failed('%d mappings more than without the library' % more)
            return '%d mappings more than without the library, %d allowed' % (more, limit // 4)
        g.check(title + ': within the budget', fits)
    g.sysctl('vm.max_map_count', 65530)


def mapped(step):
    step.need()
    m = re.fullmatch(r'mapped (\d+) failed (\d+) vmas (\d+)', step.out[0] if step.out else '')
    if not m or int(m.group(2)):
        raise Failed(' / '.join(step.out[:2] + step.err[:2]))
    return step.out[0]


# --- servers ---------------------------------------------------------------------------------------------

HEAP_LOW, HEAP_HIGH = 2 << 40, 30 << 40


def by_class(lines):
    """numa_maps summed: {class: {node: pages}}. The heap is known by mimalloc's range of addresses."""
    ret = {'heap': {}, 'anon': {}, 'shared': {}, 'mapped': {}}
    for line in lines:
        m = re.match(r'([0-9a-f]+) ', line)
        if not m:
            continue
        at = int(m.group(1), 16)
        if re.search(r'file=(/dev/shm|/SYSV|/memfd|/dev/zero|/\[aio\])', line):
            cls = 'shared'
        elif 'file=' in line:
            cls = 'mapped'  # programs and libraries, which are in the guest's root
        elif HEAP_LOW <= at < HEAP_HIGH:
            cls = 'heap'
        else:
            cls = 'anon'
        for node, pages in re.findall(r' N(\d+)=(\d+)', line):
            ret[cls][int(node)] = ret[cls].get(int(node), 0) + int(pages)
    return ret


def server_checks(g, step, slow, local=None, chunks=None):
    def classes():
        lines = step.need().out
        if not any(' N' in line for line in lines):
            raise Failed('no numa_maps: ' + ' / '.join((lines + step.err)[:3]))
        return by_class(lines)

    def no_slow():
        sums = classes()
        bad = {c: n.get(slow, 0) for c, n in sums.items() if c != 'mapped' and n.get(slow, 0)}
        if bad:
            raise Failed(', '.join('%d pages of %s' % (n, c) for c, n in bad.items()))
        return ', '.join('%s %d' % (c, sum(n.values())) for c, n in sums.items()) + ' pages'
    g.check('%s: nothing on the slow node %d' % (step.title, slow), no_slow)

    def check_local(cls):
        def fn():
            have = classes()[cls]
            total = sum(have.values())
            # a program's data and stack are few pages, and one can be older than its first instruction
            if not total or total - have.get(local, 0) > max(2, 0.01 * total):
                raise Failed('%d of %d pages' % (have.get(local, 0), total))
            return '%d of %d pages' % (have.get(local, 0), total)
        g.check('%s: %s on node %d' % (step.title, cls, local), fn)
    for cls in ('heap', 'anon') if local is not None else ():
        check_local(cls)

    def spread_pool():
        # By chunks and not by pages: the pool is used in part only, and InnoDB begins with a few pages in
        # every 8 MiB, which is always the same node's turn where two of them take turns by 2 MiB.
        have = {}
        astray = total = 0
        for line in step.need().out:
            policy = re.search(r'^[0-9a-f]+ prefer[^:]*:(\d+)(?: |$)', line)
            if not policy:
                continue
            have[int(policy[1])] = have.get(int(policy[1]), 0) + 1
            for node, pages in re.findall(r' N(\d+)=(\d+)', line):
                total += int(pages)
                astray += int(pages) if node != policy[1] else 0
        off, text = deviation(have, chunks())
        if off > 0.1 or sum(have.values()) < 40 or astray > 0.01 * total:
            raise Failed('%d chunks: %s; %d of %d pages astray' % (sum(have.values()), text, astray, total))
        return '%d chunks: %s' % (sum(have.values()), text)
    if chunks:
        g.check('%s: its chunks spread' % step.title, spread_pool)



def server(g, start, work, title, lift=True, env=None, node=None, uid=1000):
    """A server in the background, work done with it, and its numa_maps while it still runs."""
    words = [FOLDER + '/launch', '-u', str(uid)]
    if node is not None:
        words += ['-n', str(node)]
    for word in g.preload(env or {}) if lift else []:
        words += ['-p', word]
    text = '\n'.join([
        '%s > /tmp/said 2>&1 &' % shlex.join(words + ['--'] + start),
        'pid=$!',
        '{ %s\n} > /tmp/worked 2>&1 || { cat /tmp/worked /tmp/said >&2; kill -9 $pid; exit 1; }' % work,
        'cat /proc/$pid/numa_maps',
        'sed "s/^/work: /" /tmp/worked',
        'grep -E "^(numalift|libnumalift)" /tmp/said >&2',
        'kill $pid; wait $pid; true',
    ])
    step = g.shell(text, title)

    def ended_well():
        step.need()
        if step.rc != 0 or step.err:
            raise Failed('status %d: %s' % (step.rc, ' / '.join(step.err[-4:])))
        return ' / '.join(line[6:] for line in step.out if line.startswith('work: '))
    g.check('%s: works' % title, ended_well)
    return step


def memcached(g, slow):
    path = shutil.which('memcached')
    if not path:
        g.skip('memcached', 'memcached is not installed')
        return
    g.files['/usr/bin/memcached'] = path
    keys = 4000
    start = ['/usr/bin/memcached', '-t', '2', '-m', '64', '-s', '/tmp/memcached.sock', '-a', '0777']
    load = '%s/mcload /tmp/memcached.sock %d 4000' % (FOLDER, keys)
    for title, node, lift in ('memcached', None, True), ('memcached on node 1', 1, True), \
            ('memcached without the library', 1, False):
        step = server(g, start, load, title, lift=lift, node=node, uid=101)

        def found(step=step):
            wanted = 'work: stored %d found %d' % (keys, keys)
            if wanted not in step.need().out:
                raise Failed(' / '.join(line for line in step.out if line.startswith('work')))
            return wanted[6:]
        g.check('%s: all keys are there' % title, found)
        if lift:
            server_checks(g, step, slow, local=node)
        g.shell('rm -f /tmp/memcached.sock')


def mariadb_folder(g):
    """(server, client, a fresh data folder), and None; or None, and why."""
    try:
        programs = mariadbdata.Programs()
        return (programs.server, programs.client, mariadbdata.fresh(programs, g.settings.scratch)), None
    except mariadbdata.Missing as e:
        return None, str(e)


def mariadb(g, slow, fast):
    found, why = mariadb_folder(g)
    if not found:
        g.skip('MariaDB', why)
        return
    program, client, folder = found
    g.files['/usr/sbin/mariadbd'] = program
    g.files['/usr/bin/mariadb'] = client
    g.files['/var/lib/mysql'] = folder
    g.files.update(mariadbdata.messages())
    g.shell('chown -R mysql:mysql /var/lib/mysql', 'MariaDB data folder')
    start = ['/usr/sbin/mariadbd', '--no-defaults', '--datadir=/var/lib/mysql', '--socket=/tmp/mysql.sock',
             '--skip-networking', '--innodb-buffer-pool-size=96M', '--innodb-log-file-size=4M',
             '--innodb-data-file-path=ibdata1:10M:autoextend', '--key-buffer-size=1M',
             '--aria-pagecache-buffer-size=1M', '--performance-schema=OFF', '--innodb-flush-log-at-trx-commit=0',
             '--innodb-buffer-pool-dump-at-shutdown=OFF', '--innodb-buffer-pool-load-at-startup=OFF',
             '--table-open-cache=64', '--max-connections=10']
    rows = 8192
    sql = ['create database t', 'create table t.r (id int primary key auto_increment, v varchar(500))',
           "insert into t.r (v) values (repeat('v', 400))"]
    sql += ['insert into t.r (v) select v from t.r'] * (rows.bit_length() - 1)
    sql += ['select concat("rows ", count(*), " of ", sum(length(v))) from t.r', 'drop database t']
    talk = '/usr/bin/mariadb --no-defaults -S /tmp/mysql.sock -u root -N'
    work = 'n=0; until %s -e "select 1" > /tmp/first 2>&1; do n=$((n + 1)); [ $n -lt 600 ] || { cat /tmp/first; ' \
           'exit 1; }; kill -0 $pid || exit 1; usleep 200000; done\n%s -e \'%s\'' % (
               talk, talk, '; '.join(sql).replace("'", '"'))
    for title, env, node, lift in (
            ('MariaDB', {}, None, True),
            ('MariaDB on node 1', {}, 1, True),
            ('MariaDB with its buffer pool interleaved', {'NUMALIFT_PLACE': 'anon>=64M:interleave'}, 1, True),
            ('MariaDB without the library', {}, 1, False)):
        step = server(g, start, work, title, lift=lift, env=env, node=node, uid=102)

        def counted(step=step):
            wanted = 'work: rows %d of %d' % (rows, rows * 400)
            if wanted not in step.need().out:
                raise Failed(' / '.join(line for line in step.out if line.startswith('work'))[:300])
            return wanted[6:]
        g.check('%s: all rows are there' % title, counted)
        if lift:
            server_checks(g, step, slow, local=node if not env else None, chunks=fast if env else None)


def balancing(g, fast, node, plain, slow=None):
    """What is placed does not depend on whether the kernel balances."""
    for mode in 1, 2:
        g.sysctl('kernel.numa_balancing', mode)
        main_kinds(g, fast, node, 'kernel.numa_balancing=%d' % mode, slow=slow, control=plain,
                   of=KINDS if mode == 1 else FEW)


# --- machines --------------------------------------------------------------------------------------------

def three_nodes(g):
    fast = sizes(g, (0, 1))
    g.sysctl('kernel.numa_balancing', 0)
    hugetlb(g, fast, 1)
    plain = controls(g, fast, 1)
    main_kinds(g, fast, 1, 'kinds', slow=2, control=plain)
    main_kinds(g, fast, 0, 'kinds as root', uid=0, slow=2, of=FEW)
    crowd(g, (0, 1), slow=2)
    reuse(g, 0, 1)
    configurations(g, fast, 2)
    remapped(g, fast, 1)
    pagecache(g, fast)
    numactl(g, (0, 1))
    own_policies(g, (0, 1), fast)
    cpuset(g, (0, 1), 2)
    zone_reclaim(g, 1)
    denied(g, 1)
    many_mappings(g)
    balancing(g, fast, 1, plain, slow=2)
    memcached(g, 2)
    mariadb(g, 2, fast)


def flat_two(g):
    fast = sizes(g, (0, 1))
    g.sysctl('kernel.numa_balancing', 0)
    plain = controls(g, fast, 1)
    step = main_kinds(g, fast, 1, 'kinds', control=plain)
    for kind in 'slab', 'anon', 'anon-huge', 'malloc-large', 'anon-shared':
        g.policy(step, kind, 'default', 'is left to first touch')
    main_kinds(g, fast, 0, 'kinds as root', uid=0, of=FEW)
    crowd(g, (0, 1))
    step = placed(g, 'file:weighted', title='weighted, NUMALIFT_WEIGHTS=0:1,1:3', env={'NUMALIFT_WEIGHTS': '0:1,1:3'})
    g.spread(step, 'memfd', {0: 1, 1: 3})
    step = placed(g, '1;0', name='NUMALIFT_TIERS', kind='slab,anon')
    g.local(step, 'anon', 1)
    g.local(step, 'slab', 1)
    own_policies(g, (0, 1), fast)
    zone_reclaim(g, 1)
    full_nodes(g, 1, 0)
    balancing(g, fast, 1, plain)


def uneven(g):
    fast = sizes(g, (0, 1))
    g.sysctl('kernel.numa_balancing', 0)
    plain = controls(g, fast, 0)
    step = main_kinds(g, fast, 0, 'kinds', slow=2, control=plain)
    g.none_on(step, KINDS, 3, 'nothing on the slowest node 3')
    main_kinds(g, fast, 1, 'kinds on the small node', slow=2, of=FEW)
    full_nodes(g, 1, 0, slow=2, slowest=3)


def holes(g):
    fast = sizes(g, (0, 5))
    g.sysctl('kernel.numa_balancing', 0)
    plain = controls(g, fast, 5)
    main_kinds(g, fast, 5, 'kinds', slow=6, control=plain)
    main_kinds(g, fast, 0, 'kinds as root', uid=0, slow=6, of=FEW)
    few = kinds(kind=','.join(FEW))
    step = g.run(few, 'kinds on a node without memory', node=2)
    control = g.run(few, 'the same without the library', node=2, lift=False)
    g.same(step, control, [kind for kind in FEW if kind not in FILE])
    g.spread(step, 'memfd', fast)
    g.none_on(step, FEW, 6, 'nothing on the slow node 6')
    crowd(g, (0, 5), slow=6)
    step = placed(g, 'anon:bind=5')
    g.local(step, 'anon', 5, least=1.0)
    step = placed(g, 'file:weighted', title='weighted, NUMALIFT_WEIGHTS=0:1,5:3', env={'NUMALIFT_WEIGHTS': '0:1,5:3'})
    g.spread(step, 'memfd', {0: 1, 5: 3})
    numactl(g, (0, 5))
    balancing(g, fast, 5, plain, slow=6)


def one(g):
    """Nothing to gain, so nothing is done: a filter kills for the first policy call."""
    plain = g.run(kinds(), 'without the library', lift=False)
    step = g.run(kinds(), 'no policy call', deny='kill',
                 env={'NUMALIFT_PLACE': 'anon:local,file:interleave', 'NUMALIFT_PAGECACHE': 'interleave'})
    threads(g, step, 1)
    for kind in KINDS:
        g.policy(step, kind, 'default', 'has no policy')
    huge_kept(g, step, plain, KINDS)
    g.same(step, plain, KINDS)


MACHINES = {
    'three-nodes': three_nodes,
    'flat-two': flat_two,
    'uneven': uneven,
    'holes': holes,
    'one': one,
}
