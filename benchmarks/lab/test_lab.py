# SPDX-License-Identifier: MIT
"""What the lab makes of what a guest printed, on made-up runs; and with a kernel's name, one real call.

    test_lab.py              the figures, in no time
    test_lab.py KERNEL BUILD   two tiny runs in a guest; exit status 77 when there can be none
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'tests', 'numa'))

import contenders  # noqa: E402
import lab  # noqa: E402
import model  # noqa: E402
import onerun  # noqa: E402
import workloads  # noqa: E402
from guestrun import Tap  # noqa: E402

class SETTINGS:
    passes, period, accesses, model, programs = 3, 100, 1000, True, ''


PRINTED = '''@room 105
@before
pgfault 100
pgmigrate_success 5
node2.numa_hit 7
{"begin": true, "pages": 10, "nodes": {"2": 10}, "unknown": 0}
{"pass": 1, "accesses": 100, "share": 0.2, "ms": 1.0, "nodes": {"2": 10}}
{"pass": 2, "accesses": 100, "share": 0.8, "ms": 1.0, "nodes": {"2": 10}}
{"pass": 3, "accesses": 100, "share": 0.9, "ms": 1.0, "nodes": {"2": 10}}
{"end": true, "share": 0.6, "best_static": 0.7, "best_moving": 0.96}
@after
pgfault 130
pgmigrate_success 25
node2.numa_hit 10
node2.numa_miss 1
'''


def phase(user, kernel, *ns_of_cpu):
    return {'instructions': {'user': user, 'kernel': kernel}, 'ns': {'user': sum(ns_of_cpu), 'kernel': 0},
            'ns_of_cpu': list(ns_of_cpu), 'misses': {}}


def made_up(user, kernel, *ns_of_cpu):
    run = onerun.parse(PRINTED)
    run['said'] = []
    run['phases'] = {'pass 1': phase(user, kernel, *ns_of_cpu), 'pause 1': phase(0, kernel, 0, 1e6),
                     'pass 2': phase(user, kernel, *ns_of_cpu), 'pass 3': phase(user, kernel, *ns_of_cpu)}
    return run


def check_figures(tap):
    def same(found, wanted, title):
        tap.result(found == wanted, title, '%r, wanted %r' % (found, wanted))
    base, run = made_up(1000, 10, 40e6, 2e6), made_up(1000, 60, 10e6, 20e6)
    same(run['vmstat'], {'pgfault': 30, 'pgmigrate_success': 20}, 'counters are differences')
    same(run['numastat'], {'node2': {'numa_hit': 3, 'numa_miss': 1}}, 'counters of nodes are, too')
    same(run['room_mib'], 105, 'room')
    row = lab.figures(run, base)
    same((row['first'], row['settled'], row['best']), (0.2, 0.9, 0.96), 'shares')
    same(row['passes_to_90'], 3, 'the pass that has nine tenths of the best share')
    same(row['moved'], 20, 'moved')
    same(row['cost'], (4 * 60 - 4 * 10) / 3000, 'cost is a part of what the program executes itself')
    same((row['pass_ms'], row['speedup']), (20.0, 2.0), 'a pass takes as long as its slowest CPU')
    same(round(row['all_ms'], 3), round((3 * 30 + 1) / 3, 3), 'all CPUs, with the pauses')
    server = onerun.parse('@room 3\n{"pass": 1, "nodes": {"0": 256, "1": 256, "2": 512}}\n')
    onerun.add_shares(server)
    same((server['passes'][0]['share'], server['end']), (0.5, {'best_static': 0.75}), 'shares of a server')


def check_rows(tap):
    for table in (workloads.WORKLOADS, contenders.CONTENDERS):
        names = [row.name for row in table]
        tap.result(len(set(names)) == len(names), 'names are there once', ', '.join(names))
    for workload in workloads.WORKLOADS:
        for contender in contenders.CONTENDERS:
            described = model.machines.parse(workload.machine(contender), workload.name)
            if described.nodes[2].mem < workload.size << 20:
                tap.result(False, '%s under %s fits the slow node' % (workload.name, contender.name))
    # what each would bring along for programs that may not be here
    for workload in workloads.WORKLOADS:
        missing = [w for w in workload.own if not os.path.exists(os.path.join(model.HERE, w + '.c'))]
        if missing:
            tap.result(False, '%s: the lab has its programs' % workload.name, ', '.join(missing))
        text = workload.steps('START', SETTINGS, 7)
        wrong = [what for what in ('START ', '@before\n', '--passes 3', '--mark', '$eater') if what not in text]
        tap.result(not wrong, '%s: steps' % workload.name, 'without ' + ', '.join(wrong) if wrong else '')
        done = subprocess.run(['sh', '-n'], input=text, stderr=subprocess.PIPE, text=True, check=False)
        tap.result(done.returncode == 0, '%s: a shell can read them' % workload.name, done.stderr.strip())
    tap.result(lab.BASE in [c.name for c in contenders.CONTENDERS], 'there is a contender to compare with')


def check_contenders(tap):
    rows = {c.name: c for c in contenders.CONTENDERS}
    settings = onerun.Settings.__new__(onerun.Settings)
    settings.env = {'NUMALIFT_BUDGET': '5%'}
    workload = workloads.Tierload('made-up', '', 100, 30, [])
    words = shlex.split(rows['memtier'].start(settings, workload))
    tap.result('MEMKIND_MEM_TIERS=KIND:DRAM,RATIO:30;KIND:KMEM_DAX,RATIO:70;POLICY:STATIC_RATIO' in words,
               "memtier's ratio is that of what fits to what does not", ' '.join(words))
    words = shlex.split(rows['numalift'].start(settings, workload))
    tap.result('NUMALIFT_BUDGET=5%' in words and 'NUMALIFT_PROMOTE=on' in words, "the library's variables",
               ' '.join(words))
    tap.result(all('%' not in c.start(settings, workload).replace('5%', '') for c in contenders.CONTENDERS),
               'no word is left to be filled in')
    try:
        onerun.library_path('libnobody-has-this.so.7', 'libnobody7')
        tap.result(False, 'a library that is missing is told')
    except onerun.Failure as e:
        tap.result('apt-get install libnobody7' in str(e), 'a library that is missing is told', str(e))


def check_counts(tap):
    """Counts of misses and a map of pages become a list of addresses."""
    described = model.machines.parse(workloads.MACHINE % (2048, 1024, 1024), 'made-up')
    with tempfile.TemporaryDirectory(prefix='numalift-lab-') as folder:
        path = os.path.join(folder, 'frames')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('10 5\n20 7\n80010 6\n100020 1\n')
        counts = model.frames(path, described)
    # 2 GiB lie below 4 GiB, what follows lies from there on
    tap.result(counts == {0x10: 5, 0x20: 7, 0x100010: 6, 0x100020: 1}, 'frames are those of the guest',
               repr(counts))
    tap.result(onerun.hottest({0x3000: 0x10, 0x1000: 0x100010, 0x2000: 0x20, 0x4000: 0x99}, counts)
               == [0x2000, 0x1000, 0x3000], 'hottest first, and none without misses')


def check_call(tap, kernel, build):
    with tempfile.TemporaryDirectory(prefix='numalift-lab-') as folder:
        path = os.path.join(folder, 'figures')
        done = subprocess.run(
            [sys.executable, os.path.join(model.HERE, 'lab.py'), '--kernel', kernel, '--build', build,
             '--contender', 'none,numalift,weighted,oracle', '--passes', '2', '--accesses', '20000', '--period', '300',
             '--json', path],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode == 75:
            print('# no guest: ' + done.stdout.strip())
            return 1 if os.environ.get('CI') == 'true' else 77
        tap.result(done.returncode == 0, 'lab.py', done.stdout.strip()[-300:] if done.returncode else '')
        if done.returncode:
            return 1
        with open(path, encoding='utf-8') as f:
            runs = json.load(f)['runs']
        for run in runs:
            title = run['contender']
            tap.result(len(run['passes']) == 2 and run['end'] is not None, title + ': both passes')
            tap.result(lab.instructions(run, 'user') > 20000 * 2 * 10, title + ': instructions')
            tap.result(sum(run['phases']['pass 1']['misses'].values()) > 10000, title + ': misses')
            tap.result(not run['said'], title + ': says nothing', ' / '.join(run['said'][:3]))
        tap.result([r['contender'] for r in runs] == ['none', 'numalift', 'weighted', 'oracle'],
                   'contenders in turn')
        first = {r['contender']: r['passes'][0]['share'] for r in runs}
        tap.result(first['weighted'] > 2 * first['none'], 'weighted: memory is spread', repr(first))
        tap.result(first['oracle'] > 0.9 * runs[-1]['end']['best_static'], 'oracle: the first pass is the best',
                   repr(first))
        tap.result(runs[-1]['vmstat']['pgmigrate_success'] > 0, 'oracle: pages were moved')
    return 0


def main():
    tap = Tap()
    status = 0
    if len(sys.argv) > 1:
        status = check_call(tap, sys.argv[1], sys.argv[2])
    else:
        check_figures(tap)
        check_rows(tap)
        check_contenders(tap)
        check_counts(tap)
    print('1..%d' % tap.number)
    return 1 if tap.failed else status


if __name__ == '__main__':
    sys.exit(main())
