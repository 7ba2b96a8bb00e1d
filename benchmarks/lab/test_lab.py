# SPDX-License-Identifier: MIT
"""What the lab makes of what a guest printed, on made-up runs; and with a kernel's name, real calls.

    test_lab.py                figures, tables, plots, and calls that need no guest
    test_lab.py KERNEL BUILD   benchmarks/run in a guest, tiny; exit status 77 when there can be none
    test_lab.py KERNEL BUILD native   the same within a guest, as on hardware that has slow nodes
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'tests', 'numa'))

import contenders  # noqa: E402
import figures  # noqa: E402
import matrix  # noqa: E402
import model  # noqa: E402
import native  # noqa: E402
import onerun  # noqa: E402
import plots  # noqa: E402
import report  # noqa: E402
import workloads  # noqa: E402
from guestrun import Tap  # noqa: E402

RUN = os.path.join(model.HERE, '..', 'run')
FAST = ['0', '1']


class SETTINGS:
    passes, measured, period, accesses, model, programs, guest = 3, 2, 100, 1000, True, '', True


PRINTED = '''@room 105
@before
pgfault 100
pgmigrate_success 5
node2.numa_hit 7
{"begin": true, "pages": 10, "nodes": {"2": 10}, "unknown": 0}
{"pass": 1, "accesses": 100, "share": 0.2, "ms": 1.0, "nodes": {"2": 10}}
{"pass": 2, "accesses": 100, "share": 0.8, "ms": 1.0, "nodes": {"2": 10}}
{"pass": 3, "accesses": 100, "share": 0.9, "ms": 1.0, "nodes": {"0": 4, "2": 6}}
{"end": true, "share": 0.6, "best_static": 0.96, "best_moving": 0.96}
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


def named(workload, contender, seed, speed, share=0.0):
    """A run as it is in the results; speed 2 takes half as long."""
    run = made_up(1000, 10, 40e6 / speed, 2e6)
    for p in run['passes']:
        p['share'] = min(1.0, p['share'] + share)
    return {'workload': workload, 'contender': contender, 'seed': seed, 'seconds': 20.0, **run}


class Checks:
    """Results of checks, and what they compare."""

    def __init__(self, tap):
        self.tap = tap

    def same(self, found, wanted, title):
        self.tap.result(found == wanted, title, '' if found == wanted else '%r, wanted %r' % (found, wanted))

    def holds(self, ok, title, detail=''):
        self.tap.result(bool(ok), title, '' if ok else str(detail))

    def raises(self, kind, fn, part, title):
        try:
            fn()
        except kind as e:
            self.holds(part in str(e), title, str(e))
        else:
            self.holds(False, title, 'nothing was raised')


# ---- figures ------------------------------------------------------------------------------------

def check_figures(t):
    base, run = made_up(1000, 10, 40e6, 2e6), made_up(1000, 60, 10e6, 20e6)
    t.same(run['vmstat'], {'pgfault': 30, 'pgmigrate_success': 20}, 'counters are differences')
    t.same(run['numastat'], {'node2': {'numa_hit': 3, 'numa_miss': 1}}, 'counters of nodes are, too')
    t.same(run['room_mib'], 105, 'room')
    row = figures.of_run(run, base, FAST, 500)
    t.same((row['first'], row['settled'], row['best']), (0.2, 0.9, 0.96), 'shares')
    t.same(row['passes_to_90'], 3, 'the pass that has nine tenths of the best share')
    t.same(row['seconds_to_90'], 1.001, 'and when it ended: two periods and a millisecond')
    t.same(row['moved'], 20, 'moved')
    t.same(round(row['cost'], 9), round((4 * 60 - 4 * 10) / 3000, 9),
           'cost is a part of what the program executes itself')
    t.same((row['ms'], row['time']), (20.0, 0.5), 'a pass takes as long as its slowest CPU')
    helped = dict(run, cpus=[0])
    t.same(figures.settled_ms(helped), 10.0, 'a CPU that only helpers have makes no pass longer')
    t.same(figures.settled_ms(dict(run, cpus=[0, 1], in_turn=True)), 30.0, 'those that work in turn do so together')
    t.same(row['per_second'], 100 / 20.0 * 1000, 'accesses per modelled second')
    t.same(round(row['ms_of_all'], 3), round((3 * 30 + 1) / 3, 3), 'all CPUs, with the pauses')
    run['phases']['pass 3']['misses'] = {'0': 10, '1': 20, '2': 70, 'other': 50}
    t.same((figures.fast_misses(run, FAST), figures.fast_misses(base, FAST)), (0.3, None), 'misses to fast nodes')
    t.same(figures.of_run(run, None, FAST, 500)['time'], None, 'no ratio without a run to compare with')
    late = made_up(1000, 10, 1e6)
    late['phases']['pass 1'] = phase(1000, 1010, 1e6)
    t.same((round(figures.cost(late, base), 6), figures.cost(late, base, last=True)), (round(1 / 3, 6), 0.0),
           'cost of what was long ago is none of the settled state')
    longer = made_up(1000, 10, 40e6, 2e6)
    longer['passes'].append(dict(longer['passes'][-1], **{'pass': 4}))
    longer['phases']['pass 4'] = phase(1000, 10, 40e6)
    t.holds(abs(figures.cost(longer, base)) < 0.01, 'cost is per pass', figures.cost(longer, base))
    end = made_up(1000, 10, 40e6, 2e6)
    for name in ('pass 1', 'pause 1', 'pass 2'):
        del end['phases'][name]
    row = figures.of_run(end, base, FAST, 500)
    t.same((row['settled'], row['ms'], row['ms_of_all'], row['cost'], row['cost_settled']), (0.9, 40.0, 42.0, None, 0.0),
           'of a run that is measured at its end only the settled state is known')
    server = onerun.parse('@room 3\n{"pass": 1, "nodes": {"0": 256, "1": 256, "2": 512}}\n')
    onerun.add_shares(server)
    t.same((server['passes'][0]['share'], server['end']), (0.5, {'best_static': 0.75}), 'shares of a server')
    plain = dict(run, phases=None)
    t.same((figures.clock(plain), figures.pass_ms(plain)), (None, []), "an emulated CPU's time is no figure")
    by_clock = dict(plain, native=True, cpu_s=3.0)
    t.same((figures.clock(by_clock), figures.settled_ms(by_clock)), ('wall', 1.0), 'natively it is the clock')
    t.same(figures.cost(by_clock, dict(by_clock, cpu_s=2.0)), 0.5, 'and cost is CPU time')
    for p, ms in zip(by_clock['passes'], (9, 9, 5)):
        p['p99_ms'] = ms
    t.same((figures.latencies(by_clock), figures.latencies(run)), ({'p99_ms': 5}, {}),
           'latencies are measured, but not by an emulated CPU')
    row = report.workload_table(figures.of_workload({'none': {1: by_clock}}, FAST, 500))
    t.holds('| p99 ms |' in row[0] and row[2].endswith('| 5 |'), 'and have a column', row)
    blind = dict(run, passes=[{'pass': 1, 'ms': 2.0, 'nodes': {}}], end=None)
    row = figures.of_run(blind, blind, FAST, 500)
    t.same((row['settled'], row['of_best'], row['passes_to_90'], row['per_second'], row['time']),
           (None, None, None, None, 1.0), 'a load that tells no places has a time')
    t.same(figures.shares({1: blind}), [], 'and no line')
    seeds = figures.of_workload({'none': {1: base, 2: base}, 'x': {1: run, 2: base}}, FAST, 500)
    t.same((seeds['x']['time'].median, seeds['x']['time'].low, seeds['x']['time'].high), (0.75, 0.5, 1.0),
           'median and spread, by round')
    t.same(figures.of_workload({'x': {1: run}}, FAST, 500)['x']['time'], None, 'unknown stays unknown')


def check_room(t):
    """A guest whose kernel took room that it should not have is started again, and not for ever."""
    tries = []

    def one(*_):
        tries.append(len(tries))
        if len(tries) % 3:
            raise onerun.OtherRoom('52 MiB')
        return 'a run'
    real, onerun.run_one = onerun.run_one, one
    try:
        t.same((onerun.run_guest(None, None, None, 1, '', ''), len(tries)), ('a run', 3), 'once more, and once more')
        onerun.ROOM_TRIES, tries[:] = 2, []
        t.raises(onerun.Failure, lambda: onerun.run_guest(None, None, None, 1, '', ''), '52 MiB', 'and then it has failed')
    finally:
        onerun.run_one, onerun.ROOM_TRIES = real, 3


def check_wasted(t):
    def run(begin, end, vmstat, **more):
        ret = onerun.parse(PRINTED)
        ret['begin'] = {'nodes': begin}
        ret['passes'][-1]['nodes'] = end
        ret['vmstat'] = vmstat
        ret['end'].update(more)
        return ret
    up = run({'2': 100}, {'0': 40, '2': 60}, {'pgmigrate_success': 40})
    t.same((figures.demoted(up, FAST), figures.wasted(up, FAST)), (0, 0), 'moves that last are not wasted')
    both = run({'2': 100}, {'0': 40, '2': 60}, {'pgmigrate_success': 60})
    t.same((figures.demoted(both, FAST), figures.wasted(both, FAST)), (10, 20), 'up and down again is two moves')
    there = run({'1': 10, '2': 90}, {'0': 40, '2': 60}, {'pgmigrate_success': 50})
    t.same((figures.demoted(there, FAST), figures.wasted(there, FAST)), (10, 0),
           'who was up in the beginning may go down')
    kernel = run({'2': 100}, {'0': 40, '2': 60}, {
        'pgmigrate_success': 90, 'pgpromote_success': 65, 'numa_pages_migrated': 65, 'pgdemote_kswapd': 20,
        'pgdemote_direct': 5})
    t.same((figures.demoted(kernel, FAST), figures.wasted(kernel, FAST)), (25, 50), 'the kernel counts its own')
    mixed = run({'2': 100}, {'0': 30, '2': 70}, {
        'pgmigrate_success': 60, 'pgpromote_success': 10, 'numa_pages_migrated': 10})
    t.same(figures.demoted(mixed, FAST), 15, 'moves by both: 10 up by the kernel, 35 up and 15 down by calls')
    t.same(figures.wasted(run({'2': 100}, {'2': 100}, {'pgmigrate_success': 60}, best_static=0.5), FAST), None,
           'not known when the hot set moves')
    t.same(figures.wasted(run({'2': 100}, {'2': 100}, {}), FAST), None, 'not known without counters')
    moving = {'passes': [{'ms': ms, 'nodes': {'0': 60, '2': 40}, 'migrated': n}
                         for ms, n in ((9, 0), (9, 500), (9, 500), (900, 510), (100, 515))]}
    t.same(round(figures.moving_rate(moving, 500), 6), round(0.15 / (1.4 / 60), 6),
           'moves a minute are those of the second half, by the time from pass to pass')
    del moving['passes'][-1]['migrated']
    t.same(figures.moving_rate(moving, 500), None, 'and not known without counts')
    lost = run({'2': 100}, {'2': 100}, {'pgmigrate_success': 10})
    lost['begin'] = None
    t.same(figures.wasted(lost, FAST), None, 'not known without a beginning')


# ---- tables and plots ---------------------------------------------------------------------------

def results_of(runs, **more):
    return {'settings': {'place': 'guest', 'quick': True, 'kernel': '6.12', 'accesses': 1000, 'period': 500,
                         'env': ['NUMALIFT_BUDGET=100%'], 'fast': FAST},
            'about': {'command': 'benchmarks/run --quick', 'kernel': '6.12.95', 'date': '2026-01-31'},
            'runs': runs, 'left_out': [], 'failed': [], **more}


def cells_of(text, first):
    """The cells of the row that begins with this."""
    return [[c.strip() for c in line.strip('|').split('|')] for line in text.splitlines()
            if line.startswith('| %s |' % first)]


def check_markdown(t):
    runs = [named(w, c, seed, speed) for w in ('hot', 'zipf') for seed in (1, 2)
            for c, speed in (('numalift', 2 + 2 * (seed == 2)), ('none', 1))]
    runs.append({'workload': 'hot', 'contender': 'balancing-2', 'seed': 1, 'not_there': 'no | such file'})
    text = report.markdown(results_of(runs, failed=[['zipf', 'fast', 2, 'status 3']], left_out=['fast: hot, zipf']),
                           'plots', {'hot': ['share-hot.svg']})
    lines = text.splitlines()
    t.same(cells_of(text, 'hot')[0], ['hot', '1.00', '0.38'], 'the summary has medians')
    t.same(cells_of(text, 'geometric mean of 2')[0][1:], ['1.00', '0.38'], 'and their mean')
    partly = report.markdown(results_of(runs[:8] + [named('hot', 'fast', 1, 4)]), '', {})
    t.same(cells_of(partly, 'geometric mean of 2')[0][1:], ['1.00', '0.38', ''], 'of those that have all')
    row = cells_of(text, 'numalift')[0]
    t.holds('0.38 (0.25..0.50)' in row, 'the spread over the rounds is beside the median', row)
    heads = [i for i, line in enumerate(lines) if line.startswith('| ---')]
    columns = [len(lines[i].split('|')) for i in heads]
    whole = all(len(lines[j].split('|')) == n for i, n in zip(heads, columns) for j in range(i - 1, len(lines))
                if lines[j].startswith('|') and all(k == '' or k for k in [lines[j]]) and contiguous(lines, i, j))
    t.holds(heads and whole, 'all rows of a table have its columns')
    t.holds(lines.index('## hot') < lines.index('## zipf'), 'workloads in the order of their table')
    t.holds('![share hot](plots/share-hot.svg)' in lines, 'plots are shown')
    t.holds('- balancing-2: no \\| such file' in lines, 'what is not there is said')
    t.holds('- zipf, fast, round 2: status 3' in lines, 'what failed is said')
    t.holds('- fast: hot, zipf' in lines, 'what was left out is said')
    t.holds('NUMALIFT_BUDGET=100%' in text, 'the budget is said')
    t.holds('`benchmarks/run --quick`' in text and '6.12.95' in text and '2026-01-31' in text, 'how it came about')
    empty = report.markdown(results_of([]), '', {})
    t.holds('No run has come to its end.' in empty, 'nothing is a table, too')
    unknown = report.markdown(results_of([named('gone', 'numalift', 1, 1)]), '', {})
    t.same([r[1] for r in cells_of(unknown, 'gone')], ['-', '90 %', '-'],
           'a row that is no longer there is shown; no base, no ratio')


def contiguous(lines, head, j):
    return all(lines[k].startswith('|') for k in range(min(head, j), max(head, j) + 1))


SVG = '{http://www.w3.org/2000/svg}'


def boxes(root):
    """[(left, top, right, bottom, text)] of all texts. Widths are those of a usual font, not the generous ones
    that plots.py reckons with."""
    ret = []
    for e in root.iter(SVG + 'text'):
        size = float(e.get('font-size'))
        width = len(e.text) * size * 0.52
        x, y = float(e.get('x')), float(e.get('y'))
        left = x - {'start': 0, 'middle': width / 2, 'end': width}[e.get('text-anchor', 'start')]
        ret.append((left, y - 0.75 * size, left + width, y + 0.2 * size, e.text))
    return ret


def overlaps(found):
    return [(a[4], b[4]) for i, a in enumerate(found) for b in found[i + 1:]
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]


def check_svg(t, title, text):
    try:
        root = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError as e:
        t.holds(False, title + ': is XML', e)
        return None
    t.same(overlaps(boxes(root)), [], title + ': no text lies on another')
    width, height = (float(root.get(k)) for k in ('width', 'height'))
    t.same([b[4] for b in boxes(root) if b[0] < 0 or b[1] < 0 or b[2] > width or b[3] > height], [],
           title + ': all text is within')
    return root


def check_plots(t):
    names = [c.name for c in contenders.CONTENDERS]
    spread = figures.Spread
    for title, lines, best in (
            ('lines that end alike', {n: [(k, spread([0.5])) for k in range(1, 9)] for n in names}, 0.5),
            ('lines at the bottom', {n: [(k, spread([0.0, 0.01])) for k in range(1, 4)] for n in names}, 0.01),
            ('lines at the top', {n: [(k, spread([1.0])) for k in range(1, 41)] for n in names}, 1.0),
            ('one point', {'none': [(1, spread([0.25]))]}, None)):
        root = check_svg(t, title, plots.shares('a < b & "c"', 'word ' * 60, lines, best, 'pass'))
        texts = [e.text for e in root.iter(SVG + 'text')] if root is not None else []
        t.holds(all(sum(x.startswith(n) for x in texts) >= 2 for n in lines),
                title + ': in the legend, and by its line')
    one = plots.bars('t', 'a', {n: (spread([1e6 * (i + 1), 1.3e6 * (i + 1)]), '(1.50 times none)')
                                for i, n in enumerate(names)}, 'unit')
    root = check_svg(t, 'bars', one)
    widths = [float(e.get('width')) for e in root.iter(SVG + 'rect')][1:]
    t.holds(len(widths) == len(names) and widths == sorted(widths) and widths[0] > 0, 'bars are as long as figures',
            widths)
    check_svg(t, 'bars of tiny figures', plots.bars('t', 'a', {'none': (spread([0.004]), '')}, 'unit'))
    t.same([plots.ticks(v)[-1] for v in (1, 4.1e6, 99, 0.03)], [1, 5e6, 100, 0.03], 'axes end in round figures')
    t.same([plots.number(v) for v in (0, 3.14159, 999, 4310000, 25e9)], ['0', '3.14', '999', '4.31 M', '25 G'],
           'figures are short')
    t.same(plots.apart([5, 5, 5, 100], 10, 0, 100), [5, 15, 25, 100], 'labels are pushed apart')
    t.same(plots.apart([99, 98, 100], 10, 0, 100), [90, 80, 100], 'and not out')
    looks = plots.looks(names)
    t.same(len({look[1:] for look in looks.values()}), min(len(names), len(plots.LOOKS) + len(plots.OTHERS)),
           'contenders look different from each other')


def check_files(t, folder):
    runs = [named('hot', c, 1, speed) for c, speed in (('none', 1), ('numalift', 2))]
    stale = os.path.join(folder, 'docs', 'results', 'share-gone.svg')
    os.makedirs(os.path.dirname(stale))
    report.write(stale, 'old')
    path = os.path.join(folder, 'docs', 'results.md')
    report.write_all(results_of(runs), path, os.path.join(folder, 'docs', 'results'))
    t.same(sorted(os.listdir(os.path.dirname(stale))), ['share-hot.svg', 'throughput-hot.svg'],
           'plots are written, old ones are gone')
    with open(path, encoding='utf-8') as f:
        text = f.read()
    named_there = [line[line.index('(') + 1:-1] for line in text.splitlines() if line.startswith('![')]
    t.holds(named_there and all(os.path.exists(os.path.join(folder, 'docs', n)) for n in named_there),
            'the text finds them', named_there)


# ---- results, order, progress -------------------------------------------------------------------

def check_results(t, folder):
    path = os.path.join(folder, 'results.json')
    settings = {'kernel': '6.12', 'env': ['A=1'], 'model': True}
    first = matrix.Results(path, settings)
    first.read({})
    first.add_failure(('hot', 'none', 1), 'status 3')
    first.add(named('hot', 'none', 1, 1))
    first.add_failure(('hot', 'fast', 1), 'status 4')
    again = matrix.Results(path, dict(settings))
    again.read({})
    t.same((again.has(('hot', 'none', 1)), again.has(('hot', 'fast', 1)), again.has(('hot', 'none', 2))),
           (True, False, False), 'what came to its end is there; what failed is tried again')
    t.same(again.failed, [['hot', 'fast', 1, 'status 4']], 'a failure is forgotten when the run has succeeded')
    t.raises(matrix.Refused, lambda: matrix.Results(path, dict(settings, kernel='6.1')).read({'kernel': '--kernel'}),
             '--kernel is 6.1, and was 6.12', 'other settings are refused, and named')
    t.raises(matrix.Refused, lambda: matrix.Results(path, {}).read({}), 'not given', 'so are missing ones')
    t.same(matrix.differences({'p': {'a': 1, 'b': 2}}, {'p': {'b': 2, 'c': 3}}, {}), [], 'more programs do not differ')
    t.same(matrix.differences({'p': {'a': 1, 'b': 2}}, {'p': {'b': 3}}, {'p': 'the build of'}),
           ['the build of b is another'], 'other programs do')
    other = 'import sys; sys.path.insert(0, %r); import matrix; print(matrix.Results(%r, {}).lock())' % (
        model.HERE, path)

    def lock_elsewhere():
        return subprocess.run([sys.executable, '-B', '-c', other], stdout=subprocess.PIPE, text=True,
                              check=False).stdout.strip()
    t.same((first.lock(), lock_elsewhere()), (True, 'False'), 'one call at a time')
    first.locked.close()
    t.same(lock_elsewhere(), 'True', 'and then the next')
    report.write(path, '{"format": 2, "runs"')
    t.raises(matrix.Refused, lambda: matrix.Results(path, settings).read({}), '--again', 'damage is told')
    report.write(path, '{"format": 1, "runs": []}')
    t.raises(matrix.Refused, lambda: matrix.Results(path, settings).read({}), 'another version', 'so is age')
    report.write(path, '[]')
    t.raises(matrix.Refused, lambda: matrix.Results(path, settings).read({}), '--again', 'and anything else')


def check_order(t):
    t.same(matrix.in_turn(['a', 'b'], lambda w: ['x', 'y'] if w == 'a' else ['x'], 2),
           [('a', 'x', 1), ('a', 'y', 1), ('b', 'x', 1), ('a', 'x', 2), ('a', 'y', 2), ('b', 'x', 2)],
           'contenders take turns within a round')
    took = {('a', 'x', 1): 10, ('a', 'y', 1): 30, ('b', 'x', 1): 50}
    t.same([matrix.expected(k, took) for k in (('a', 'x', 2), ('a', 'z', 1), ('c', 'x', 1))], [10, 20, 30],
           'a run takes as long as the same did, as others of its workload, as any')
    t.same(matrix.time_left([], {}, {}, 2), None, 'nothing is known in the beginning')
    t.same(matrix.time_left([('a', 'x', 2), ('a', 'y', 2)], {('b', 'x', 2): 30}, took, 2), 30.0,
           'several at a time share what is left')
    t.same(matrix.time_left([], {('b', 'x', 2): 30}, took, 2), 20, 'and the last is alone')
    t.same(matrix.time_left([], {('b', 'x', 2): 70}, took, 2), 0.0, 'late is late')
    t.same([matrix.duration(s) for s in (None, 40, 600, 7500)],
           ['time left unknown', 'about 40 s left', 'about 10 min left', 'about 2 h 05 min left'], 'durations')


class Screen(io.StringIO):
    def isatty(self):
        return True


def check_progress(t):
    key = ('hot', 'none', 1)
    plain = io.StringIO()
    p = matrix.Progress(plain, 4)
    p.now(0, {key: 3}, None)
    p.ended(key, '21 s', 1, 63)
    t.same(plain.getvalue(), 'run: hot, none, round 1: 21 s (1 of 4, about 63 s left)\n', 'a line for each run')
    screen = Screen()
    p = matrix.Progress(screen, 4, columns=40)
    p.now(1, {key: 3}, 63)
    p.ended(key, '21 s', 1, 63)
    p.clear()
    text = screen.getvalue()
    t.holds('\n' not in text and text.count('\r') == 2 and len(text.split('\x1b')[0]) <= 40,
            'a line that is rewritten, and fits the terminal', repr(text))


# ---- many runs ----------------------------------------------------------------------------------

def gone(pid):
    """It has ended, though nobody may have asked yet."""
    try:
        with open('/proc/%d/stat' % pid, encoding='ascii', errors='replace') as f:
            return f.read().rpartition(')')[2].split()[0] in 'ZX'
    except OSError:
        return True


def wait_for(condition, seconds=120):
    """Whether it came to hold. The bound is for a machine on which nothing moves any more."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def check_running(t, folder):
    def one(key):
        if key[1] == 'lost':
            os._exit(7)
        if key[1] == 'bad':
            raise onerun.Failure('status 9')
        if key[1] == 'odd':
            raise ZeroDivisionError('of ours')
        if key[1] == 'absent':
            raise onerun.NotThere('no such thing')
        if key[1] == 'litter':
            left = subprocess.Popen(['sh', '-c', 'sleep 1000 & echo $!'], stdout=subprocess.PIPE,
                                    start_new_session=True)
            return dict(named(*key, 1), left=int(left.stdout.readline()))
        if key[1] == 'busy':
            subprocess.run([sys.executable, '-c', 'import time\nwhile time.process_time() < 0.3: pass'], check=True)
        return named(*key, 1)
    results = matrix.Results(os.path.join(folder, 'many.json'), {})
    out = io.StringIO()
    keys = [('hot', c, 1) for c in ('none', 'lost', 'bad', 'odd', 'absent', 'litter', 'busy')]
    prepared = []
    ok = matrix.run_all(keys, one, 2, results, matrix.Progress(out, len(keys)), prepared.append)
    t.same((ok, prepared), (True, keys), 'all are run, and prepared for, in order')
    with open(results.path, encoding='utf-8') as f:
        there = json.load(f)
    t.same(sorted(r['contender'] for r in there['runs']), ['absent', 'busy', 'litter', 'none'], 'those that ended are kept')
    t.same({f[1]: f[3] for f in there['failed']}, {
        'bad': 'status 9', 'odd': 'ZeroDivisionError: of ours',
        'lost': 'the process of the run ended with status 7'}, 'of the others it is known why')
    t.same([r['not_there'] for r in there['runs'] if r['contender'] == 'absent'], ['no such thing'],
           'what is not there has not failed')
    t.holds(next(r['cpu_seconds'] for r in there['runs'] if r['contender'] == 'busy') >= 0.3,
            'and what CPU time a run took')
    t.same(len(out.getvalue().splitlines()), len(keys), 'a line each')
    pid = next(r['left'] for r in there['runs'] if r['contender'] == 'litter')
    t.holds(wait_for(lambda: gone(pid)), 'what a run leaves behind is ended')

    def none(key):
        raise onerun.NoGuest('no QEMU')
    results = matrix.Results(os.path.join(folder, 'none.json'), {})
    t.same((matrix.run_all(keys, none, 1, results, matrix.Progress(out, 6)), results.runs, results.failed),
           (False, [], []), 'without a guest it ends with the first')


# A call of two runs that never end by themselves, to be interrupted: see check_interrupted().
HANGING = r'''
import os, signal, subprocess, sys
sys.dont_write_bytecode = True
sys.path.insert(0, %r)
import matrix
def one(key):
    if key[1] == 'none':
        return {'workload': key[0], 'contender': key[1], 'seed': key[2]}
    subprocess.run(['sh', '-c', 'echo $$ > %s/pid-' + key[1] + '; sleep 1000'])
results = matrix.Results(%r, {})
results.read({})
matrix.stop_on(signal.SIGINT, signal.SIGTERM)
todo = [('hot', c, 1) for c in ('none', 'a', 'b')]
try:
    matrix.run_all([k for k in todo if not results.has(k)], one, 2, results, matrix.Progress(sys.stderr, 3))
except matrix.Stopped as e:
    sys.exit(128 + e.number)
'''


def read_number(path):
    try:
        with open(path, encoding='ascii') as f:
            return int(f.read())
    except (OSError, ValueError):
        return None


def check_interrupted(t, folder):
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        name = signal.Signals(number).name
        place = os.path.join(folder, name)
        os.mkdir(place)
        path = os.path.join(place, 'results.json')
        with subprocess.Popen([sys.executable, '-c', HANGING % (model.HERE, place, path)],
                              stderr=subprocess.DEVNULL) as process:
            pids = [os.path.join(place, 'pid-' + c) for c in 'ab']
            begun = wait_for(lambda: all(read_number(p) for p in pids) or process.poll() is not None)
            process.send_signal(number)
            process.wait()
        t.holds(begun and process.returncode == status, name + ': ends, and says by what', process.returncode)
        t.holds(wait_for(lambda: all(gone(read_number(p)) for p in pids)), name + ': nothing is left running')
        found = matrix.Results(path, {})
        found.read({})
        t.same([r['contender'] for r in found.runs], ['none'], name + ': what had ended is kept')


# ---- on hardware --------------------------------------------------------------------------------

def write_node(folder, number, cpus, total_mib, free_mib):
    place = os.path.join(folder, 'node%d' % number)
    os.makedirs(place)
    report.write(os.path.join(place, 'cpulist'), cpus + '\n')
    report.write(os.path.join(place, 'meminfo'), 'Node %d MemTotal:  %d kB\nNode %d MemFree:  %d kB\n' % (
        number, total_mib << 10, number, free_mib << 10))


def sys_tree(folder, name, *rows):
    path = os.path.join(folder, name)
    os.makedirs(path)
    report.write(os.path.join(path, 'online'), '0\n')
    for row in rows:
        write_node(path, *row)
    return path


def check_nodes(t, folder):
    cxl = native.machine(sys_tree(folder, 'cxl', (0, '0-1,4', 8000, 7000), (1, '2-3', 8000, 7500),
                                  (2, '', 64000, 63000), (3, '', 0, 0)))
    t.same((cxl.fast, cxl.slow, cxl.cpus), ([0, 1], [2], [0, 1, 4, 2, 3]), 'nodes without CPUs are slow')
    sockets = sys_tree(folder, 'sockets', (0, '0', 8000, 7000), (1, '1', 8000, 7500))
    t.same(cxl.tiers(), '0,1;2', 'as numalift is told')
    two = native.machine(sockets)
    t.same((two.fast, two.slow, two.cpus), ([0], [1], [0]), 'of two sockets the first is fast')
    other = native.machine(sockets, [1])
    t.same((other.fast, other.slow, other.cpus), ([1], [0], [1]), 'unless it is said otherwise')
    t.same(native.machine(sys_tree(folder, 'one', (0, '0-7', 8000, 7000))), None, 'one node is none')
    t.same(native.machine(os.path.join(folder, 'missing')), None, 'neither is no NUMA')
    t.raises(onerun.NotThere, lambda: native.machine(sockets, [5]), 'node 5', 'a node that is not there')
    t.raises(onerun.NotThere, lambda: native.machine(sockets, [0, 1]), 'none that is slow', 'nothing slow is left')
    hot, none = workloads.WORKLOADS[0], contenders.CONTENDERS[0]
    native.fits(native.scaled(hot, 4), none, cxl)
    t.holds(True, 'what fits, fits')
    t.raises(onerun.NotThere, lambda: native.fits(native.scaled(hot, 1000), none, cxl), 'MiB', 'what is too large')
    big = native.scaled(hot, 3)
    t.same((big.size, big.room, big.options[1], hot.options[1]), (3 * hot.size, 3 * hot.room, '120', '40'),
           'a workload in large')
    odd = workloads.Workload('odd', '', 100, 50)
    t.same(native.scaled(odd, 3), odd, 'one that cannot be larger')
    odd.keys, odd.options = ['--keys', '10', '--bytes', '4'], ['--x']
    big = native.scaled(odd, 3)
    t.same((big.keys, big.options, big.room, odd.room), (['--keys', '30', '--bytes', '4'], ['--x'], 150, 50),
           'one whose words say how large it is')
    t.same(native.room_for(hot, none, two), hot.room // 2 * 2, 'one fast node has the room of two')
    zones = 'Node 0, zone DMA\n  pages free 9\n        low      256\nNode 0, zone Normal\n        low      512\n' \
        'Node 1, zone Normal\n        low      1024\n'
    t.same((native.low_mib(zones, 0), native.low_mib(zones, 1)), (3, 4), 'what the kernel keeps')


def check_settings(t):
    rows = {c.name: c for c in contenders.CONTENDERS}

    def lacking(name, root, now):
        return native.lacking(rows[name], root, now.get)
    demotion = '/sys/kernel/mm/numa/demotion_enabled'
    off, on = {native.BALANCING: '0', demotion: 'false'}, {native.BALANCING: '2', demotion: 'true'}
    t.same([lacking(n, False, off) for n in ('none', 'numalift', 'interleave')], [None] * 3, 'most need no root')
    t.holds('only root' in lacking('balancing-2', False, off), 'those that change the kernel do')
    t.same(lacking('balancing-2', True, off), None, 'root can')
    t.same(lacking('balancing-2', False, on), None, 'and need not when it is so already')
    t.holds('only root' in lacking('none', False, on), 'who wants it off needs it off', lacking('none', False, on))
    t.same(lacking('none', False, {}), None, 'a kernel without balancing has it off')
    t.holds('no ' + native.BALANCING in lacking('balancing-1', True, {}), 'and cannot have it on')
    odd = contenders.Contender('odd', '', switch='modprobe x')
    t.holds('needs root: modprobe x' == native.lacking(odd, False, off.get), 'anything else is for root')
    with subprocess.Popen(['sh', '-c', 'while [ $((i += 1)) -lt 200000 ]; do :; done; (while :; do :; done)']) as busy:
        grown = wait_for(lambda: native.ticks(busy.pid) > 20)
        found = [native.ticks(busy.pid)] + [native.ticks(c) for c in matrix.children(busy.pid)]
        for pid in matrix.children(busy.pid) + [busy.pid]:
            os.kill(pid, signal.SIGKILL)
    t.holds(grown and (len(found) == 1 or found[0] >= found[1]), 'CPU time is that of children, too', found)
    t.same(native.ticks(busy.pid), 0, 'who is gone has none')
    t.same(native.cpu_per_pass([(False, 1.0), (True, 3.0), (True, 5.0), (True, None)]), 2.0, 'CPU time per pass')
    t.same(native.cpu_per_pass([(False, None), (True, 3.0)]), None, 'not known without a beginning')


# ---- calls --------------------------------------------------------------------------------------

def call(*words, **how):
    return subprocess.run([sys.executable, RUN] + list(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **how)


def check_rows(t):
    for table in (workloads.WORKLOADS, contenders.CONTENDERS):
        names = [row.name for row in table]
        t.same(len(set(names)), len(names), 'names are there once')
    for workload in workloads.WORKLOADS:
        for contender in contenders.CONTENDERS:
            described = model.machines.parse(workload.machine(contender), workload.name)
            if described.nodes[2].mem < workload.size << 20:
                t.holds(False, '%s under %s fits the slow node' % (workload.name, contender.name))
    # what each would bring along for programs that may not be here
    for workload in workloads.WORKLOADS:
        missing = [w for w in workload.own if not os.path.exists(os.path.join(model.HERE, w + '.c'))]
        t.same(missing, [], '%s: the lab has its programs' % workload.name)
        text = workload.steps('START', SETTINGS, 7)
        wrong = [what for what in ('START ', '@before\n', '--passes 3', '--mark=2', '$eater') if what not in text]
        t.same(wrong, [], '%s: steps' % workload.name)
        t.same('\ntaskset 2 ' in text, isinstance(workload, (workloads.MariaDB, workloads.Memcaslap)),
               '%s: are clients aside?' % workload.name)
        t.same('\ntaskset -p 1 $$' in text, workload.name in ('memcached', 'redis'),
               '%s: are they together?' % workload.name)
        done = subprocess.run(['sh', '-n'], input=text, stderr=subprocess.PIPE, text=True, check=False)
        t.holds(done.returncode == 0, '%s: a shell can read them' % workload.name, done.stderr.strip())
    main = load_main()
    known = {c.name for c in contenders.CONTENDERS}
    t.same(set(main.MAIN) - known, set(), 'the contenders of a usual call are there')
    t.holds(figures.BASE in main.MAIN, 'so is the one to compare with')
    loads = {w.name for w in workloads.WORKLOADS}
    t.same((set(main.QUICK_ALL) - known, set(main.QUICK_OTHERS).union(*main.QUICK_SOME.values()) - loads,
            set(main.QUICK_SOME) - known), (set(), set(), set()), 'and what a quick one has')
    args = main.options(['--quick'])
    peers = [c for c in contenders.CONTENDERS if c.name in main.MAIN]
    without, said = main.left_out(args, workloads.WORKLOADS, peers)
    t.holds(('zipf', 'fast') in without and ('heap', 'fast') not in without and ('zipf', 'numalift') not in without
            and 'fast: all but heap' in said, 'a quick call leaves out some',
            said)
    small = {w.name: main.smaller(w) for w in workloads.WORKLOADS if isinstance(w, workloads.Server)}
    steps = {name: w.steps('START', SETTINGS, 1) for name, w in small.items()}
    same = [w.name for w in workloads.WORKLOADS if w.name in small and w.steps('START', SETTINGS, 1) == steps[w.name]]
    t.same(same, [], 'it asks servers less')
    t.same(main.left_out(main.options(['--quick', '--contender', 'fast']), workloads.WORKLOADS, peers), (set(), []),
           'but not what was asked for')
    without, _ = main.left_out(main.options([]), workloads.WORKLOADS, peers)
    t.same({c for _, c in without}, {c.name for c in peers if c.only}, 'and a full one what is for some loads alone')
    t.holds(('scan', 'window-0') not in without and ('hot', 'window-0') in without, 'but not for these', without)
    t.same(main.call_of(['--quick', '--out', '/a', '--publish=b', '--rounds', '3', '--again']),
           'benchmarks/run --quick --rounds 3', 'a call is shown without places')


def check_contenders(t):
    rows = {c.name: c for c in contenders.CONTENDERS}
    settings = onerun.Settings.__new__(onerun.Settings)
    settings.env = {'NUMALIFT_BUDGET': '5%'}
    workload = workloads.Tierload('made-up', '', 100, 30, [])
    words = shlex.split(rows['memtier'].start(settings, workload))
    t.tap.result('MEMKIND_MEM_TIERS=KIND:DRAM,RATIO:30;KIND:KMEM_DAX,RATIO:70;POLICY:STATIC_RATIO' in words,
               "memtier's ratio is that of what fits to what does not", ' '.join(words))
    words = shlex.split(rows['numalift'].start(settings, workload))
    t.tap.result('NUMALIFT_BUDGET=5%' in words and 'NUMALIFT_PROMOTE=on' in words, "the library's variables",
               ' '.join(words))
    t.tap.result(all('%' not in c.start(settings, workload).replace('5%', '') for c in contenders.CONTENDERS),
               'no word is left to be filled in')
    try:
        onerun.library_path('libnobody-has-this.so.7', 'libnobody7')
        t.tap.result(False, 'a library that is missing is told')
    except onerun.Failure as e:
        t.tap.result('apt-get install libnobody7' in str(e), 'a library that is missing is told', str(e))


def check_counts(t):
    """Counts of misses and a map of pages become a list of addresses."""
    described = model.machines.parse(workloads.MACHINE % (2048, 1024, 1024), 'made-up')
    with tempfile.TemporaryDirectory(prefix='numalift-lab-') as folder:
        path = os.path.join(folder, 'frames')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('10 5\n20 7\n80010 6\n100020 1\n')
        counts = model.frames(path, described)
    # 2 GiB lie below 4 GiB, what follows lies from there on
    t.tap.result(counts == {0x10: 5, 0x20: 7, 0x100010: 6, 0x100020: 1}, 'frames are those of the guest',
               repr(counts))
    t.tap.result(onerun.hottest({0x3000: 0x10, 0x1000: 0x100010, 0x2000: 0x20, 0x4000: 0x99}, counts)
               == [0x2000, 0x1000, 0x3000], 'hottest first, and none without misses')


def load_main():
    loader = importlib.machinery.SourceFileLoader('run', RUN)
    ret = importlib.util.module_from_spec(importlib.util.spec_from_loader('run', loader))
    loader.exec_module(ret)
    return ret


def check_calls(t, folder):
    done = call('--list')
    t.holds(done.returncode == 0 and 'tierload' not in done.stdout and '  hot ' in done.stdout, '--list', done.stdout)
    for words, part in ((['--workload', 'nosuch'], "--workload 'nosuch': expected hot"),
                        (['--contender', 'x'], "--contender 'x': expected none"),
                        (['--env', 'x'], 'expected NAME=VALUE'), (['--rounds', '0'], 'a number from 1 on'),
                        (['--sys', '/x'], '--sys needs --dry-run'), (['--report', '--again'], '--report'),
                        (['--fast', 'x', '--dry-run'], "--fast 'x'"),
                        (['--report', '--out', folder], 'results.json')):
        done = call(*words)
        t.holds(done.returncode == 2 and part in done.stdout and 'Traceback' not in done.stdout,
                'refused: ' + words[0], done.stdout)
    nodes = sys_tree(folder, 'call', (0, '0', 80000, 70000), (1, '', 80000, 75000))
    done = call('--dry-run', '--sys', nodes, '--workload', 'hot', '--contender', 'none,numalift,fast')
    t.holds(done.returncode == 0 and done.stdout.count('FOLDER/tierload') == 3 and
            done.stdout.count('FOLDER/libnumalift.so') == 1 and '--fast 0' in done.stdout and
            'NUMALIFT_TIERS=0;1' in done.stdout and
            '/opt/lab' not in done.stdout, '--dry-run for two nodes prints what would be run', done.stdout[-500:])
    small = sys_tree(folder, 'small', (0, '0', 80000, 70000), (1, '', 100, 50))
    done = call('--dry-run', '--sys', small, '--workload', 'hot', '--contender', 'none')
    t.holds(done.returncode == 0 and '# not there: ' in done.stdout, 'too small a machine is told', done.stdout)
    if not native.machine():
        done = call('--native', '--out', os.path.join(folder, 'never'))
        t.holds(done.returncode == 75 and 'one memory node' in done.stdout, '--native takes two nodes', done.stdout)
    path = os.path.join(folder, 'made-up')
    os.mkdir(path)
    made = matrix.Results(os.path.join(path, 'results.json'), results_of([])['settings'])
    made.add(named('hot', 'none', 1, 1))
    done = call('--report', '--out', path)
    t.holds(done.returncode == 0 and os.path.exists(os.path.join(path, 'share-hot.svg')) and
            os.path.exists(os.path.join(path, 'results.md')), '--report makes tables and plots', done.stdout)


# benchmarks/run, with something else in the place of scripts/guest.
WITH_GUEST = r'''
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader('run', %r)
run = importlib.util.module_from_spec(importlib.util.spec_from_loader('run', loader))
loader.exec_module(run)
run.model.GUEST = %r
sys.argv[0] = 'benchmarks/run'
sys.exit(run.main(sys.argv[1:]))
'''

FAKE_GUEST = r'''#!/bin/sh
case "$*" in
*libnumalift.so*) . %(folder)s/with-library ;;
esac
cat %(folder)s/printed
'''


def check_whole_call(t, folder):
    """Without a guest, what a call does from beginning to end, whatever happens to it."""
    def put(name, text):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        report.write(path, text)
        return path
    guest = put('guest', FAKE_GUEST % {'folder': folder})
    os.chmod(guest, 0o755)
    put('printed', PRINTED)
    for name in ('build/benchmarks/lab/tierload', 'build/benchmarks/lab/eater', 'build/shim/libnumalift.so', 'kernel'):
        put(name, name)
    os.chmod(put('bin/' + model.vm.QEMU, '#!/bin/sh\necho version 7.2\n'), 0o755)
    tools = os.path.join(folder, 'bin') + ':' + os.environ['PATH']
    out = os.path.join(folder, 'out')
    words = [sys.executable, '-c', WITH_GUEST % (RUN, guest), '--guest', '--plain', '--workload', 'hot', '--contender',
             'none,numalift', '--rounds', '1', '--jobs', '1', '--kernel', os.path.join(folder, 'kernel'), '--build',
             os.path.join(folder, 'build'), '--out', out]

    def go(*more, path=tools):
        return subprocess.run(words + list(more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, env=dict(os.environ, PATH=path))

    def text():
        with open(os.path.join(out, 'results.md'), encoding='utf-8') as f:
            return f.read()
    pid = os.path.join(folder, 'pid')
    put('with-library', 'echo $$ > %s; exec sleep 1000' % pid)
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=dict(os.environ, PATH=tools)) as process:
        begun = wait_for(lambda: read_number(pid) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[0]
    t.holds(begun and process.returncode == 130, 'Ctrl-C ends a call', said)
    t.holds('it goes on with: benchmarks/run' in said and out in said, 'which says how to go on', said)
    t.holds(wait_for(lambda: gone(read_number(pid))), 'and leaves no guest behind')
    t.holds(cells_of(text(), 'none') and not cells_of(text(), 'numalift'), 'there is a table of what had ended',
            text())
    put('with-library', 'echo oh >&2; exit 3')
    done = go()
    t.holds(done.returncode == 1 and 'FAILED: hot, numalift, round 1: status 3: oh' in done.stdout and
            '1 of 2 runs are in' in done.stdout, 'a run that fails makes the call fail', done.stdout)
    t.holds('- hot, numalift, round 1: status 3: oh' in text(), 'and is in the text')
    done = go('--contender', 'none')
    t.holds(done.returncode == 0, 'but not one that was not asked for', done.stdout)
    put('with-library', ':')
    done = go()
    t.holds(done.returncode == 0 and 'FAILED' not in text() and cells_of(text(), 'numalift'),
            'the same call tries it again', done.stdout)
    done = go('--quick')
    t.holds(done.returncode == 2 and '--quick is on, and was off' in done.stdout, 'other settings are refused',
            done.stdout)
    put('build/shim/libnumalift.so', 'other')
    done = go()
    t.holds(done.returncode == 2 and 'the build of libnumalift.so is another' in done.stdout,
            'so is another library', done.stdout)
    put('guest', '#!/bin/sh\necho guest: nothing here >&2\nexit 125\n')
    os.chmod(guest, 0o755)
    done = go('--again')
    t.holds(done.returncode == 75 and 'nothing here' in done.stdout, 'no guest: 75, and why', done.stdout)
    done = go('--again', path='/nonexistent')
    t.holds(done.returncode == 75 and 'apt-get install qemu' in done.stdout, 'no emulator: likewise', done.stdout)
    os.unlink(os.path.join(folder, 'build/benchmarks/lab/eater'))
    done = go('--again')
    t.holds(done.returncode == 2 and 'ninja' in done.stdout and 'Traceback' not in done.stdout, 'nothing built: 2',
            done.stdout)


# ---- in a guest ---------------------------------------------------------------------------------

TINY = ('--passes', '2', '--accesses', '20000', '--period', '300', '--rounds', '1', '--jobs', '1')


def check_guest(t, kernel, build):
    with tempfile.TemporaryDirectory(prefix='numalift-lab-') as folder:
        out = os.path.join(folder, 'out')
        words = ('--kernel', kernel, '--build', build, '--workload', 'hot', '--out', out) + TINY
        # so that the no is the guest's also on a machine with two nodes
        done = call('--guest', '--contender', 'none,numalift,weighted,oracle', *words)
        if done.returncode == 75:
            print('# no guest: ' + done.stdout.strip())
            return 1 if os.environ.get('CI') == 'true' else 77
        t.holds(done.returncode == 0, 'benchmarks/run', done.stdout.strip()[-300:])
        if done.returncode:
            return 1
        with open(os.path.join(out, 'results.json'), encoding='utf-8') as f:
            runs = json.load(f)['runs']
        for run in runs:
            title = run['contender']
            t.holds(len(run['passes']) == 2 and run['end'] is not None, title + ': both passes')
            t.holds(figures.instructions(run, 'user') > 20000 * 2 * 10, title + ': instructions')
            t.holds(sum(run['phases']['pass 1']['misses'].values()) > 10000, title + ': misses')
            t.same(run['said'], [], title + ': says nothing')
        t.same([r['contender'] for r in runs], ['none', 'numalift', 'weighted', 'oracle'], 'contenders in turn')
        first = {r['contender']: r['passes'][0]['share'] for r in runs}
        t.holds(first['weighted'] > 2 * first['none'], 'weighted: memory is spread', first)
        t.holds(first['oracle'] > 0.9 * runs[-1]['end']['best_static'], 'oracle: the first pass is the best', first)
        t.holds(runs[-1]['vmstat']['pgmigrate_success'] > 0, 'oracle: pages were moved')

        with open(os.path.join(out, 'results.md'), encoding='utf-8') as f:
            text = f.read()
        t.same([r[1] for r in cells_of(text, 'none')], ['1.00'], 'the table has both')
        for name in ('share-hot.svg', 'throughput-hot.svg'):
            with open(os.path.join(out, name), encoding='utf-8') as f:
                check_svg(t, name, f.read())
        done = call('--guest', '--contender', 'none,numalift,weighted,oracle', *words)
        t.holds(done.returncode == 0 and '4 of 4 runs are in' in done.stdout, 'again there is nothing to do',
                done.stdout)
        done = call('--guest', '--contender', 'none', *words, '--env', 'NUMALIFT_RATE=1')
        t.holds(done.returncode == 2 and '--env is' in done.stdout, 'other settings are refused', done.stdout)
        if kernel in ('6.1', '6.12'):
            check_absent(t, words, folder)
    return 0


def check_absent(t, words, folder):
    """What a kernel lacks is no failure of the run."""
    out = os.path.join(folder, 'absent')
    done = call('--guest', '--contender', 'damon', *words, '--out', out)
    t.holds(done.returncode == 0, 'a contender that is not there is no failure', done.stdout.strip()[-300:])
    with open(os.path.join(out, 'results.json'), encoding='utf-8') as f:
        whys = [run.get('not_there', '') for run in json.load(f)['runs']]
    t.holds(len(whys) == 1 and 'Linux 6.1' in whys[0], 'and it is said why', whys)


# Prints the files of all modules that benchmarks/run takes to run.
MODULES = r'''
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader('run', %r)
loader.exec_module(importlib.util.module_from_spec(importlib.util.spec_from_loader('run', loader)))
import encodings.ascii, encodings.idna, multiprocessing.popen_fork, multiprocessing.util
for module in list(sys.modules.values()):
    if getattr(module, '__file__', None):
        print(module.__file__)
'''


def python_words():
    """For scripts/guest: this Python, with as much of its library as it takes."""
    words = []
    found = subprocess.run([sys.executable, '-c', MODULES % RUN], stdout=subprocess.PIPE, text=True, check=True)
    for path in sorted({os.path.abspath(p) for p in found.stdout.split('\n') if p}):
        words += ['--add', path]
    return words


def check_native(t, kernel, build):
    with tempfile.TemporaryDirectory(prefix='numalift-lab-') as folder:
        programs = os.path.join(build, 'benchmarks', 'lab')
        words = [model.GUEST, '--kernel', kernel, '--machine', 'three-nodes', '--user', 'user', '--out', folder,
                 '--timeout', '1200', '--sysctl', 'kernel.numa_balancing=0', '--setup', 'ulimit -l unlimited'
                 ] + python_words()
        for name in ('tierload', 'mcpasses', 'eater'):
            words += ['--add', os.path.join(programs, name)]
        for path in (os.path.join(build, 'shim', 'libnumalift.so'), os.path.realpath(RUN)):
            words += ['--add', path]
        done = subprocess.run(
            words + ['--', os.path.realpath(sys.executable), os.path.realpath(RUN), '--native', '--scale', '1',
                     '--build', build, '--workload', 'hot,memcached',
                     '--contender', 'none,numalift,balancing-2', '--out', '/out/lab'] + list(TINY),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode == 125:
            print('# no guest: ' + done.stdout.strip())
            return 1 if os.environ.get('CI') == 'true' else 77
        t.holds(done.returncode == 0, 'benchmarks/run --native', done.stdout.strip()[-600:])
        if done.returncode:
            return 1
        with open(os.path.join(folder, 'lab', 'results.json'), encoding='utf-8') as f:
            found = json.load(f)
        runs = {matrix.key_of(r)[:2]: r for r in found['runs']}
        for contender in ('none', 'numalift'):
            run = runs['hot', contender]
            t.same(len(run['passes']), 2, contender + ': both passes')
            t.holds(run['begin']['nodes'].get('2', 0) > 0.5 * run['begin']['pages'],
                    contender + ': most of its memory is on the slow node', run['begin'])
            wanted = workloads.WORKLOADS[0].room
            t.holds(abs(run['room_mib'] - wanted) <= wanted // 8 + 8, contender + ': there is room', run['room_mib'])
            t.holds(figures.settled_ms(run) > 0 and run['cpu_s'] > 0, contender + ': wall and CPU time',
                    (figures.settled_ms(run), run['cpu_s']))
            t.same(run['said'], [], contender + ': says nothing')
        t.holds('only root' in runs['hot', 'balancing-2']['not_there'], 'what needs root is not there for others')
        t.holds('memcached is missing' in runs['memcached', 'none']['not_there'], 'nor what is not installed')
        with open(os.path.join(folder, 'lab', 'results.md'), encoding='utf-8') as f:
            text = f.read()
        t.holds('CPU s' in text and 'only root' in text, 'the table', text)
    return 0


def main():
    tap = Tap()
    t = Checks(tap)
    status = 0
    if len(sys.argv) > 3:
        status = check_native(t, sys.argv[1], sys.argv[2])
    elif len(sys.argv) > 1:
        status = check_guest(t, sys.argv[1], sys.argv[2])
    else:
        check_figures(t)
        check_wasted(t)
        check_room(t)
        check_markdown(t)
        check_plots(t)
        check_order(t)
        check_progress(t)
        check_settings(t)
        check_rows(t)
        check_contenders(t)
        check_counts(t)
        for check in (check_files, check_results, check_running, check_interrupted, check_nodes, check_calls,
                      check_whole_call):
            with tempfile.TemporaryDirectory(prefix='numalift-lab-') as folder, contextlib.ExitStack():
                check(t, folder)
    print('1..%d' % tap.number)
    return 1 if tap.failed else status


if __name__ == '__main__':
    sys.exit(main())
