# SPDX-License-Identifier: MIT
"""Promotion in the guest: programs whose memory is moved to and fro, and what must come of it.

    run_promote.py --guest scripts/guest --library libnumalift.so --programs FOLDER --launch PROGRAM --cli PROGRAM
                   [--short] KERNEL [PART...]

One guest runs everything, on three-small.machine: 0 and 1 are fast, 2 is slow; `vanish` has one of its own, in which 1
is slow and can go. Exit status as for run_guest.py.
--short: the parts that are worth most on this kernel, in two minutes instead of seven or more.
"""
import argparse
import os
import re
import shlex
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'numa'))

from guestrun import FOLDER, CannotRun, Failed, Guest, Tap  # noqa: E402
import machines  # noqa: E402

SLOW = 2
KEYS = 9000
BYTES = 15800
PERIOD_MS = 3000
PASSES = 6           # of reads, after which pages are to be fast
MORE_PASSES = 3      # where they are not yet, again and again
MOST_TIMES = 8
MOVES = 200          # each way, under fire
MOST_SECONDS = 150
SOCKET = '/tmp/memcached.sock'
# The least of what happens to be hot fits, so pages go up and down all the time.
CONSTANT = {'NUMALIFT_PROMOTE': 'on', 'NUMALIFT_FAST_LIMIT': '48M', 'NUMALIFT_BUDGET': '100%',
            'NUMALIFT_WINDOW': '2M'}


STAT = FOLDER + '/numalift stat --json $pid | tr -d " \\n" | sed "s/^/stat /"; echo'


def figures(step):
    """What the library says that it has done, last."""
    said = [line for line in step.out if line.startswith('stat ')]
    return {name: int(n) for name, n in re.findall(r'"(\w+)":(?:{"value":)?(\d+)', said[-1] if said else '')}


def last_word(step):
    have = figures(step)
    words = re.findall(r'"(?:sampler|state|reason)":"([^"]*)"', ' '.join(
        line for line in step.out if line.startswith('stat ')))
    return ', '.join(words + ['%s %d' % (n, have[n]) for n in (
        'pgpromote_success', 'pgdemote', 'bounced', 'passes', 'worker_cpu_ns', 'fault_est_ns') if n in have]) or 'no statistics'


def text_of(step, name):
    for line in step.need().out:
        words = line.split()
        if len(words) > 1 and words[0] == name:
            return words[1]
    raise Failed('printed no "%s" (status %s): %s' % (name, step.rc, ' / '.join(step.err[:3] + step.out[-2:])))


def equal(g, step, name, wanted):
    def fn():
        have = text_of(step, name)
        if have != wanted:
            raise Failed('%s instead of %s: %s' % (have, wanted, ' / '.join(step.err[:4])))
        return have
    g.check('%s: %s' % (step.title, name), fn)


def at_least(g, step, name, least):
    def fn():
        have = int(text_of(step, name))
        if have < least:
            raise Failed('%d, and not %d; %s' % (have, least, last_word(step)))
        return str(have)
    g.check('%s: %s at least %d' % (step.title, name, least), fn)


def fire(g, seconds, title, env, moves=MOVES, slow=SLOW, beside=':', more=()):
    """Until so many pages have moved each way, if any. Beside: shell that goes on as long as the program does."""
    env = {'NUMALIFT_LOG': 'debug', **env}
    until = [str(moves), str(MOST_SECONDS)] if moves else []
    words = g.command(['fire', str(seconds), str(slow)] + until + list(more), env=env)
    step = g.shell('( %s ) > /dev/null 2>&1 & beside=$!; '
                   '%s 2> /tmp/said; rc=$?; kill $beside 2> /dev/null; '
                   'grep -v "^numalift: " /tmp/said | head -20 >&2; '
                   'grep "^numalift: " /tmp/said | tail -12; cat /tmp/beside 2> /dev/null; exit $rc' % (
                       beside, shlex.join(words)), title)
    def ended_well():
        if step.need().rc != 0:
            raise Failed('status %d: %s' % (step.rc, ' / '.join(step.err[:4] + step.out[-2:])))
    g.check('%s: ends well' % title, ended_well)
    for name in 'wrong', 'bad-children', 'refused', 'astray', 'astray-late':
        equal(g, step, name, '0')
    equal(g, step, 'userfaultfd', 'works')
    for name in ('up', 'down') if moves else ():
        at_least(g, step, name, moves)
    if not moves:
        # the kernel's balancing may bring some up, but it does not take anything down
        equal(g, step, 'down', '0')
    g.measured.append(lambda: '%s: %s s, up %s, down %s, ops %s, checked %s, children %s' % (
        title, *(text_of(step, n) for n in ('seconds', 'up', 'down', 'ops', 'checked', 'children'))))
    return step


# The kernel moves away what is there, or, when it cannot, leaves the node where it is.
GO_AND_COME = r"""until grep -qs numalift /proc/[0-9]*/task/[0-9]*/comm; do sleep 1; done
sleep 6; n=0; while sleep 2; do
    gone=1
    for s in /sys/devices/system/node/node1/memory[0-9]*/state; do echo offline > $s || gone=0; done
    n=$((n + gone)); echo vanished $n > /tmp/beside.new; mv /tmp/beside.new /tmp/beside
    sleep 2
    for s in /sys/devices/system/node/node1/memory[0-9]*/state; do echo online_movable > $s; done
done"""


def vanish(g):
    step = fire(g, g.settings.seconds, 'the slow node comes and goes', {**CONSTANT, 'NUMALIFT_TIERS': '0,2;1'},
                slow=1, beside=GO_AND_COME, more=['goes'])
    at_least(g, step, 'vanished', 2)


NODES = 'sed -n "/ anon=/s/^/%s /p" /proc/$pid/numa_maps'


def by_node(step, when):
    ret = {}
    for line in step.need().out:
        if line.startswith(when + ' ') and ('file=' not in line or '/dev/zero' in line):
            for node, pages in re.findall(r' N(\d+)=(\d+)', line):
                ret[int(node)] = ret.get(int(node), 0) + int(pages)
    if not ret:
        raise Failed('no numa_maps (status %s): %s' % (step.rc, ' / '.join((step.err + step.out)[-4:])))
    return ret


def balancing(mode):
    """Of the kernel. It scans by the CPU time that a thread has used: each second while no hint fault came, and from
    6.7 on of the mappings without one a single one at a time, the next one in the next scan. A pass of reads takes an
    emulated CPU seconds and a real one a fraction of one: here it comes round within one of those. Hot is for it what
    is touched within 1 s of a scan, in which a real CPU has read everything, and an emulated one a third."""
    values = {'scan_delay_ms': 1000, 'scan_period_min_ms': 1000, 'scan_period_max_ms': 60000, 'hot_threshold_ms': 1000}
    if mode == 2:
        values = {'scan_delay_ms': 200, 'scan_period_min_ms': 200, 'scan_period_max_ms': 200, 'hot_threshold_ms': 6000}
    return 'cd /sys/kernel/debug/sched/numa_balancing; echo %d > /proc/sys/kernel/numa_balancing; %s; cd /' % (
        mode, '; '.join('[ ! -e %s ] || echo %d > %s' % (name, n, name) for name, n in values.items()))


# Nodes 0 and 1 are full until the second. The kernel keeps a part of each free, to which it cannot be filled.
FILL = 'echo 8192 > /proc/sys/vm/min_free_kbytes; rm -f /tmp/full; ' \
       '%s/launch -e 0,1:20 -- /bin/sh -c "echo \\$\\$ > /tmp/full.1; mv /tmp/full.1 /tmp/full; ' \
       'exec sleep 1000" & eater=$!\n' \
       'n=0; while [ ! -e /tmp/full ]; do n=$((n + 1)); [ $n -lt 3000 ] || exit 1; sleep 0.1; done' % FOLDER
EMPTY = 'kill -9 $eater $(cat /tmp/full); wait $eater 2> /dev/null'


# Sampling takes chances, and the guest's time is not real: what is not there after the first passes may come.
UNTIL_FAST = r"""
n=0
while set -- $(sed 's/.* //' /tmp/held); [ $rc = 0 ] && [ $(($2 * 10)) -gt $1 ] && [ $n -lt %d ]; do
    n=$((n + 1)); %s %d %d; rc=$?; %s > /tmp/held
done
sed 's/^/last-/' /tmp/held; echo again $n
"""


def memcached(g, title, kernel, env=None, lift=True, through=None, passes=PASSES, promoted=True, user=True):
    """Filled while the fast nodes are full, then read. What counts are exactly the pages that are read."""
    start = ['/usr/bin/memcached', '-t', '2', '-m', '300', '-s', SOCKET, '-a', '0777']
    env = {'NUMALIFT_LOG': 'debug', **(env or {})}
    if user:
        line = shlex.join(g.command(start, uid=101, lift=lift, env=env, through=through))
        find = 'pid=$!'
    else:
        # the parent daemonizes, and the child that stays changes its user
        line = shlex.join(g.command(start + ['-d', '-u', 'nobody', '-P', '/tmp/memcached.pid'], uid=0,
                                    lift=lift, env=env))
        find = 'while [ ! -s /tmp/memcached.pid ]; do sleep 0.2; done; pid=$(cat /tmp/memcached.pid)'
    load = '%s/mcreads %s %d %d' % (FOLDER, SOCKET, KEYS, BYTES)
    holds = '%s/holds $pid %d' % (FOLDER, SLOW)
    step = g.shell('\n'.join([
        'rm -f %s /tmp/memcached.pid' % SOCKET,
        balancing(kernel),
        FILL,
        '%s > /tmp/said 2>&1 &' % line,
        find,
        '%s fill' % load,
        holds + ' | sed "s/^/filled-/"',
        EMPTY,
        'echo %d > /sys/kernel/mm/numa/demotion_enabled' % (kernel == 2) if g.kernel != '6.1' else ':',
        '%s %d %d; rc=$?' % (load, passes, PERIOD_MS if promoted else PERIOD_MS // 2),
        holds + ' > /tmp/held; sed "s/^/read-/" /tmp/held',
        UNTIL_FAST % (MOST_TIMES, load, MORE_PASSES, PERIOD_MS, holds) if promoted else ':',
        STAT,
        'grep -E "pgpromote_success|numa_hint_faults " /proc/vmstat; grep Anon /proc/$pid/smaps_rollup',
        'kill $pid; wait $pid 2> /dev/null',
        'echo 0 > /sys/kernel/mm/numa/demotion_enabled' if g.kernel != '6.1' else ':',
        balancing(1), 'exit $rc']), title)
    equal(g, step, 'stored', str(KEYS))

    def all_found():
        have = [int(line.split()[1]) for line in step.need().out if line.startswith('found ')]
        if not have or have[0] != KEYS * passes or any(n != KEYS * MORE_PASSES for n in have[1:]):
            raise Failed('%s (status %s): %s' % (have, step.rc, ' / '.join(step.err[:4])))
        return str(sum(have))
    g.check('%s: found' % title, all_found)

    def slow_share(when):
        pages = int(text_of(step, when + '-value-pages'))
        if pages < KEYS * BYTES / 4096:
            raise Failed('only %d pages hold values' % pages)
        return int(text_of(step, when + '-value-slow')) / pages

    def slow_at_first():
        share = slow_share('filled')
        if share < 0.6:
            raise Failed('%.1f %% of values' % (100 * share))
        return '%.1f %% of values' % (100 * share)
    g.check('%s: is on the slow node when filled' % title, slow_at_first)

    def stays():
        share = slow_share('read')
        text = '%.1f %% of values on fast nodes; %s' % (100 * (1 - share), last_word(step))
        if share < 0.98 * slow_share('filled'):
            raise Failed(text)
        return text

    def fast_afterwards():
        text = '%.1f %% of values on fast nodes after %d passes' % (100 * (1 - slow_share('read')), passes)
        more = MORE_PASSES * int(text_of(step, 'again'))
        if more:
            text += ', %.1f %% after %d' % (100 * (1 - slow_share('last')), passes + more)
        text += '; the longest took %s ms; %s' % (
            max(int(line.split()[1]) for line in step.out if line.startswith('ms ')), last_word(step))
        if slow_share('last') > 0.1:
            raise Failed(text)
        return text
    if promoted:
        g.check('%s: is on fast nodes when read' % title, fast_afterwards)
    else:
        g.check('%s: stays (control)' % title, stays)


def memcached_first(g):
    path = shutil.which('memcached')
    if not path:
        g.skip('memcached', 'memcached is not installed')
        return False
    g.files['/usr/bin/memcached'] = path
    memcached(g, 'memcached', 1)
    return True


def memcached_all(g):
    if not memcached_first(g):
        return
    memcached(g, 'memcached, NUMALIFT_PROMOTE=off', 0, env={'NUMALIFT_PROMOTE': 'off'}, passes=2, promoted=False)
    if g.kernel == '6.1':
        g.measured.append(lambda: 'not with NUMALIFT_SAMPLER=kernel: to this kernel no node is slower than another')
        return
    memcached(g, 'memcached, NUMALIFT_SAMPLER=kernel', 2, env={'NUMALIFT_SAMPLER': 'kernel'})
    if shutil.which('numactl'):
        g.files['/usr/bin/numactl'] = shutil.which('numactl')
        memcached(g, 'memcached under numactl --preferred=2', 2, lift=False, passes=2, promoted=False,
                  through=['/usr/bin/numactl', '--preferred=2'])


def daemon(g):
    path = shutil.which('memcached')
    if path:
        g.files['/usr/bin/memcached'] = path
        memcached(g, 'memcached -d -u nobody', 0, user=False)


RIGHTS = ('setuid', 'seteuid', 'raw', 'capset', 'bounding', 'no-new-privs', 'unshare', 'raw-fork', 'vfork', 'leave')


def rights(g):
    # most of the time each of them waits, so some run at the same time
    together = 5
    for i in range(0, len(RIGHTS), together):
        step = g.shell('\n'.join(
            ['( timeout -s KILL 300 %s > /tmp/rights.%s 2>&1; echo "status $?" >> /tmp/rights.%s ) &' % (
                shlex.join(g.command(['rights', what], uid=0, env={'NUMALIFT_PROMOTE': 'on'})), what, what)
             for what in RIGHTS[i:i + together]] + ['wait'] +
            ['sed "s/^/%s: /" /tmp/rights.%s' % (what, what) for what in RIGHTS[i:i + together]]),
            'rights %d' % (i // together + 1))
        for what in RIGHTS[i:i + together]:
            def fn(step=step, what=what):
                said = [line[len(what) + 2:] for line in step.need().out if line.startswith(what + ': ')]
                if 'status 0' not in said or any(line.startswith(('differs', 'child hung')) for line in said):
                    raise Failed(' / '.join(said)[:400])
                # who has no worker has nothing to compare; after leave nobody is there to tell
                if what != 'leave' and 'threads 2' not in said:
                    raise Failed(' / '.join(said)[:400])
                return ', '.join(line for line in said if line.startswith(('threads', 'child')))
            g.check('rights: %s: all threads have the same' % what, fn)


def ends(g):
    """What ends a program, or doubles it, comes while its pages move."""
    # who asks for promotion by name takes the risk of a filter that kills
    unnamed = {k: v for k, v in CONSTANT.items() if k != 'NUMALIFT_PROMOTE'}
    together = 'exit', 'exec', 'seccomp'
    step = g.shell('\n'.join(
        ['( %s > /tmp/ends.%s 2>&1; echo "status $?" >> /tmp/ends.%s ) &' % (
            shlex.join(g.command(['ends', what, str(SLOW)], env=unnamed)), what, what) for what in together] +
        ['wait'] + ['grep -v "^numalift: " /tmp/ends.%s | sed "s/^/%s: /"' % (what, what) for what in together]),
        'exit, exec, seccomp')
    for what in together:
        def fn(what=what):
            said = [line[len(what) + 2:] for line in step.need().out if line.startswith(what + ': ')]
            if said != ['ends well', 'status 0']:
                raise Failed(' / '.join(said)[:300])
        g.check('%s while pages move' % what, fn)
    fork = g.shell('%s 2>&1 | grep -v "^numalift: "' % shlex.join(
        g.command(['ends', 'fork', str(SLOW)], env=CONSTANT)), 'threads that fork')
    kill = g.shell('for i in 1 5; do timeout -s KILL 4.$i %s 2> /tmp/said; echo "status $?"; done' % shlex.join(
        g.command(['ends', 'run', str(SLOW)], env=CONSTANT)), 'killed')
    for also, wanted in (fork, ['ends well']), (kill, ['status 137'] * 2):
        def all_there(also=also, wanted=wanted):
            if also.need().out != wanted:
                raise Failed(' / '.join(also.out)[:300])
        g.check('%s while pages move' % also.title, all_there)


def kernel_is_well(g):
    words = 'BUG:|Bad page|WARNING:|Oops|blocked for more than'
    if g.machine != 'unplug':
        # of memory that goes while pages move there the kernel says so, and it is told
        words += '|Call Trace|page allocation failure'
    step = g.shell('dmesg | grep -A60 -E "%s"' % words, 'the kernel is well')

    def fn():
        if step.need().out:
            # and what nodes had, where it is about memory
            raise Failed(' / '.join(step.out[:16] + [line for line in step.out[16:] if ' free:' in line][:9]))
    g.check('the kernel complains of nothing', fn)


def cpuset(g):
    """A fast node is taken away while pages move; from then on nothing goes there."""
    step = g.shell('\n'.join([
        'mkdir -p /sys/fs/cgroup/p; echo 0-2 > /sys/fs/cgroup/p/cpuset.mems; '
        'echo 0 > /sys/fs/cgroup/p/cgroup.procs',
        '( sleep 6; echo 1-2 > /sys/fs/cgroup/p/cpuset.mems ) &',
        '%s 2> /tmp/said & pid=$!; sleep 10' % shlex.join(
            g.command(['fire', '11', str(SLOW)], node=1, uid=1000, env=CONSTANT)),
        NODES % 'later', 'wait $pid; rc=$?', 'grep -v "^numalift: " /tmp/said >&2', 'exit $rc']),
        'a node is taken away by the cpuset')
    equal(g, step, 'wrong', '0')

    def fn():
        have = by_node(step, 'later')
        # what was bound to the node stays bound to it
        if have.get(0, 0) > 600:
            raise Failed(str(have))
        return str(have)
    g.check('%s: nothing is moved there' % step.title, fn)


def mariadb(g):
    """Constant moves below InnoDB, which checks its pages' sums, and all rows."""
    found, why = machines.mariadb_folder(g)
    if not found:
        g.skip('MariaDB', why)
        return
    program, client, folder = found
    g.files.update({'/usr/sbin/mariadbd': program, '/usr/bin/mariadb': client, '/var/lib/mysql': folder})
    for name in 'english', 'charsets':
        path = '/usr/share/mysql/' + name
        if os.path.isdir(path):
            g.files[path] = path
    g.shell('chown -R mysql:mysql /var/lib/mysql', 'MariaDB data folder')
    start = ['/usr/sbin/mariadbd', '--no-defaults', '--datadir=/var/lib/mysql', '--socket=/tmp/mysql.sock',
             '--skip-networking', '--innodb-buffer-pool-size=96M', '--innodb-log-file-size=4M',
             '--innodb-data-file-path=ibdata1:10M:autoextend', '--performance-schema=OFF',
             '--innodb-flush-log-at-trx-commit=0', '--innodb-buffer-pool-dump-at-shutdown=OFF',
             '--innodb-buffer-pool-load-at-startup=OFF', '--max-connections=10']
    rows = 16384
    sql = ['create database t', 'create table t.r (id int primary key auto_increment, v varchar(3000))',
           'insert into t.r (v) values (repeat("v", 2000))']
    sql += ['insert into t.r (v) select v from t.r'] * (rows.bit_length() - 1)
    wanted = 'repeat(char(97 + id % 26), 1000 + id % 1000)'
    then = ['update t.r set v = ' + wanted]
    count = 'select concat("n", count(*), ".", sum(v <> %s)) from t.r' % wanted
    then += [count, 'do sleep(1)'] * 6
    then += ['check table t.r']
    # each of both is more than 0
    both = ' && '.join("""grep -q '"%s":\\({"value":\\)*[1-9]' /tmp/stat""" % name
                       for name in ('pgpromote_success', 'pgdemote'))
    talk = '/usr/bin/mariadb --no-defaults -S /tmp/mysql.sock -u root -N'
    env = {'NUMALIFT_LOG': 'debug', **CONSTANT}
    # The kernel's would bring up what the limit has just taken down, and leave nothing to do.
    step = g.shell('\n'.join([
        balancing(0), FILL,
        '%s > /tmp/said 2>&1 & pid=$!' % shlex.join(g.command(start, uid=102, env=env)),
        'n=0; until %s -e "select 1" > /tmp/first 2>&1; do n=$((n + 1)); [ $n -lt 300 ] || exit 1; '
        'kill -0 $pid || exit 1; usleep 200000; done' % talk,
        "%s -e '%s' || exit" % (talk, '; '.join(sql)),
        EMPTY,
        "%s -e '%s'; rc=$?" % (talk, '; '.join(then)),
        'pid=$(pidof mariadbd); n=0',
        'while { %s; } > /tmp/stat; ! { %s; } && [ $rc = 0 ] && [ $n -lt %d ]; do' % (STAT, both, MOST_SECONDS),
        "n=$((n + 1)); %s -e '%s; do sleep(1)'; rc=$?; done; cat /tmp/stat" % (talk, count),
        'grep -v "^numalift: " /tmp/said | grep -i error >&2',
        'kill $pid; wait $pid', balancing(1), 'exit $rc']), 'MariaDB while pages move')

    def fn():
        sums = [line for line in step.need().out if re.match(r'n\d', line)]
        checked = any('check\tstatus\tOK' in line for line in step.out)
        if step.rc != 0 or len(sums) < 6 or set(sums) != {'n%d.0' % rows} or not checked or step.err:
            raise Failed('status %d: %s' % (step.rc, ' / '.join(step.out[-8:] + step.err[-4:])[:600]))
        return '%d rows %d times; %s' % (rows, len(sums), last_word(step))
    g.check('%s: all rows are right' % step.title, fn)

    def moved():
        have = figures(step)
        if have.get('pgpromote_success', 0) == 0 or have.get('pgdemote', 0) == 0:
            raise Failed(last_word(step))
        return last_word(step)
    g.check('%s: pages moved' % step.title, moved)


def whose(g):
    """Pages go to the node of the thread that uses them, where the sampler's faults tell who does."""
    newest = g.kernel == 'newest'
    for title, env in (('whose', {}), ('whose, NUMALIFT_SAMPLER=refs', {'NUMALIFT_SAMPLER': 'refs'}))[:1 + newest]:
        tells = newest and not env
        # the kernel's balancing would do it, too
        step = g.shell('\n'.join([
            balancing(0), '%s 2> /tmp/said; rc=$?' % shlex.join(g.command(['whose', str(SLOW), '100'], env={
                'NUMALIFT_PROMOTE': 'on', 'NUMALIFT_BUDGET': '100%', 'NUMALIFT_LOG': 'debug', **env})),
            'grep -v "^numalift: " /tmp/said >&2', 'tail -4 /tmp/said', balancing(1), 'exit $rc']), title)

        def fn(step=step, tells=tells):
            home, far, slow = (int(text_of(step, name)) for name in ('home', 'far', 'slow'))
            text = '%d pages at home, %d on the other fast node, %d on the slow one' % (home, far, slow)
            # what is promoted before there is an answer may be on either, and stays
            if slow * 5 > home + far or (tells and home < 3 * far):
                raise Failed(' / '.join([text] + step.out[-4:]))
            return text
        g.check('%s: on fast nodes%s' % (title, ', each on its own' if tells else ''), fn)


PARTS = {
    'fire': lambda g: fire(g, g.settings.seconds, 'under fire', CONSTANT),
    'track': lambda g: fire(g, 6, 'tracked only', {**CONSTANT, 'NUMALIFT_PROMOTE': 'track'}, moves=0),
    'cpuset': cpuset,
    'rights': rights,
    'ends': ends,
    'whose': whose,
    'memcached': memcached_all,
    'memcached-first': memcached_first,
    'daemon': daemon,
    'mariadb': mariadb,
    'vanish': vanish,
}
# The others are on three-small.machine.
MACHINES = {'vanish': 'unplug'}
# Each part on at least one kernel; what works differently (samplers, moving, mremap) on each.
SHORT = {
    '6.1': ('fire', 'cpuset', 'mariadb'),
    '6.12': ('fire', 'track', 'ends'),
    'newest': ('fire', 'rights', 'memcached-first'),
}


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--guest', required=True)
    p.add_argument('--library', required=True)
    p.add_argument('--programs', required=True)
    p.add_argument('--launch', required=True)
    p.add_argument('--cli', required=True)
    p.add_argument('--seconds', type=int, default=12, help='under fire')
    p.add_argument('--short', action='store_true')
    p.add_argument('--verbose', action='store_true')
    p.add_argument('kernel')
    p.add_argument('part', nargs='*', choices=[[], *PARTS])
    args = p.parse_args()
    args.guest = os.path.abspath(args.guest)
    args.library = os.path.abspath(args.library)
    args.timeout = 3000
    args.scratch = os.path.abspath(os.path.join(os.path.dirname(args.launch)))
    args.programs = {n: os.path.join(os.path.abspath(args.programs), n) for n in
                     ('ends', 'fire', 'holds', 'mcreads', 'rights', 'whose')}
    args.programs['numalift'] = os.path.abspath(args.cli)
    args.programs['launch'] = os.path.abspath(args.launch)
    ci = os.environ.get('CI') == 'true'
    tap = Tap()
    sys.stdout.reconfigure(line_buffering=True)
    parts = args.part or (SHORT[args.kernel] if args.short else [n for n in PARTS if n != 'memcached-first'])
    small = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'three-small.machine')
    for machine in dict.fromkeys(MACHINES.get(name, small) for name in parts):
        guest = Guest(machine, args.kernel, args)
        for name in parts:
            if MACHINES.get(name, small) == machine:
                PARTS[name](guest)
        kernel_is_well(guest)
        begun = time.monotonic()
        try:
            trouble = guest.boot()
        except CannotRun as e:
            print('# no guest: %s' % e)
            return 1 if ci else 77
        tap.note('%s, %s: %d steps in %.0f s' % (
            args.kernel, guest.name, len(guest.steps), time.monotonic() - begun))
        guest.evaluate(tap)
        if trouble:
            tap.result(False, 'the guest', trouble)
        for line in guest.notes():
            tap.note(line)
    print('1..%d' % tap.number)
    if tap.failed:
        print('# %d of %d checks failed' % (len(tap.failed), tap.number))
    return 1 if tap.failed or (tap.skipped and ci) else 0


if __name__ == '__main__':
    sys.exit(main())
