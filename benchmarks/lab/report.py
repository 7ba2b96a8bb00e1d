# SPDX-License-Identifier: MIT
"""Tables in Markdown and plots, made of what results.json holds. README.md says what the figures mean."""
import os

import contenders
import figures
import plots
import workloads


def place_of(table, name):
    """Where it stands there; what is not there any more comes last."""
    return next((i for i, row in enumerate(table) if row.name == name), len(table))


def by_workload(runs):
    """{workload: {contender: {seed: run}}} in the order of the tables, without what could not be there."""
    ret = {}
    for run in sorted(runs, key=lambda r: (place_of(workloads.WORKLOADS, r['workload']),
                                           place_of(contenders.CONTENDERS, r['contender']), r['seed'])):
        if 'not_there' not in run:
            ret.setdefault(run['workload'], {}).setdefault(run['contender'], {})[run['seed']] = run
    return ret


def about_workload(name):
    return next((w.about for w in workloads.WORKLOADS if w.name == name), '')


# ---- cells --------------------------------------------------------------------------------------

def cell(spread, how, both=True):
    """The median, and with several rounds what they lie between, unless one would not see a difference."""
    if spread is None:
        return '-'
    median, low, high = (how(v) for v in (spread.median, spread.low, spread.high))
    return '%s (%s..%s)' % (median, low, high) if both and low != high else median


def times(value):
    return '%.2f' % value


def percent(value):
    return '%.0f %%' % (100 * value)


def signed(value):
    return '%+.1f %%' % (100 * value)


def count(value):
    return format(int(value), ',')


def arrived(row):
    if row['passes_to_90'] is None:
        return '-'
    return '%d (%.1f s)' % (row['passes_to_90'].median, row['seconds_to_90'].median)


def fraction_wasted(row):
    if row['wasted'] is None:
        return '-'
    if not row['moved'] or not row['moved'].median:
        return cell(row['wasted'], count)
    return '%s (%s)' % (count(row['wasted'].median), percent(row['wasted'].median / row['moved'].median))


COLUMNS = (     # title, its cell
    ('time', lambda row: cell(row['time'], times)),
    ('time of all CPUs', lambda row: cell(row['all_time'], times)),
    ('per second', lambda row: cell(row['per_second'], plots.number, False)),
    ('fast share at first', lambda row: cell(row['first'], percent, False)),
    ('settled', lambda row: cell(row['settled'], percent)),
    ('of best', lambda row: cell(row['of_best'], percent, False)),
    ('misses to fast', lambda row: cell(row['fast_misses'], percent, False)),
    ('to 90 % of best', arrived),
    ('moved', lambda row: cell(row['moved'], count)),
    ('wasted', fraction_wasted),
    ('a minute', lambda row: cell(row.get('moving'), percent, False)),
    ('cost', lambda row: cell(row['cost'], signed)),
    ('cost settled', lambda row: cell(row['cost_settled'], signed)),
    ('CPU s', lambda row: cell(row['cpu_s'], times, False)),
)


def table(head, rows):
    """The first column is text, all others are figures."""
    lines = ['| %s |' % ' | '.join(head), '| --- |' + ' ---: |' * (len(head) - 1)]
    return lines + ['| %s |' % ' | '.join(row) for row in rows]


def workload_table(rows):
    """Columns that nobody has a figure for are left out."""
    more = dict.fromkeys(key for row in rows.values() for key in row if key.endswith(figures.LATENCY))
    columns = COLUMNS + tuple(
        (key[:-len(figures.LATENCY)] + ' ms', lambda row, key=key: cell(row.get(key), plots.number)) for key in more)
    cells = {name: [fn(row) for _, fn in columns] for name, row in rows.items()}
    used = [i for i in range(len(columns)) if any(c[i] != '-' for c in cells.values())]
    return table([''] + [columns[i][0] for i in used],
                 [[name] + [c[i] for i in used] for name, c in cells.items()])


# ---- the summary --------------------------------------------------------------------------------

def matrix(found, names, key, how):
    return table([''] + names, [
        [workload] + [cell(rows[n][key], how, False) if n in rows else '' for n in names]
        for workload, rows in found.items()])


def mean_row(found, names):
    """For the contenders that have a figure wherever there is any."""
    timed = [rows for rows in found.values() if any(row['time'] for row in rows.values())]
    if len(timed) < 2:
        return []

    def mean(name):
        if not all(name in rows and rows[name]['time'] for rows in timed):
            return ''
        return times(figures.geometric_mean([rows[name]['time'].median for rows in timed]))
    return ['| geometric mean of %d | %s |' % (len(timed), ' | '.join(mean(n) for n in names))]


def summary(found, timed):
    names = sorted({n for rows in found.values() for n in rows},
                   key=lambda n: (place_of(contenders.CONTENDERS, n), n))
    lines = []
    if timed:
        lines += ['Time of a pass in the settled state, as a multiple of that without balancing (less is better):', '']
        lines += matrix(found, names, 'time', times) + mean_row(found, names) + ['']
    lines += ['Share of the accesses that go to fast nodes, settled:', '']
    lines += matrix(found, names, 'settled', percent) + ['']
    if timed:
        key = 'cost_settled' if timed == 'modelled' else 'cost'
        lines += ['Cost in the settled state: executed more than without balancing:' if timed == 'modelled' else
                  'Cost: CPU time used more than without balancing:', '']
        lines += matrix(found, names, key, signed) + ['']
    return lines


# ---- the whole text -----------------------------------------------------------------------------

MODELLED = (
    'time: modelled time of a pass on the CPU of the program that took longest (of servers and '
    'compilers: on all its CPUs together), mean of the last third of the passes; 1 '
    'is without balancing in the same round. Of all CPUs: all passes and pauses, with what moving costs',
    'per second: accesses (of a server: requests) per modelled second',
    'misses to fast: share of the cache misses, settled; of a server, which cannot count its accesses by page, the '
    'share before it is that of its pages',
    "cost: instructions executed more than without balancing, kernel and helper threads included, as a part of the "
    "program's own; settled: in the last third of the passes")
BY_CLOCK = (
    'time: wall time of a pass, mean of the last third of the passes; 1 is without balancing in the same round',
    'CPU s: CPU time of the program per pass, its helper threads included',
    'cost: CPU time of the program more than without balancing')
UNTIMED = ('No times: without the cost model those of an emulated CPU would say nothing',)
ALWAYS = (
    'fast share: of the accesses; settled is the mean of the last third of the passes, best what the hottest pages '
    'that fit would get',
    'to 90 % of best: the first pass with that share, and how long after the first began it ended, by the clock that '
    'the program sees',
    'moved: pages that changed their node, whoever moved them. Wasted: of these, pages that went to a slow node and '
    'had come from one, both ways counted; at least so many. `-`: cannot be known, as where the hot set itself moves')
BUDGET = ('An emulated CPU is some 30 times slower than a real one, and a share of its time buys that much less '
          'sampling: numalift runs with %s')


def read_as(timed, settings):
    """What the columns are, in a line each."""
    lines = ALWAYS + {'modelled': MODELLED, 'wall': BY_CLOCK, None: UNTIMED}[timed]
    if settings.get('place') == 'guest':
        lines += (BUDGET % (', '.join(settings.get('env') or ['its own budget'])),)
    return ['- %s.' % line for line in lines]


def cpu_minutes(runs):
    """Of all of them; runs of earlier versions do not say."""
    return sum(run.get('cpu_seconds', 0) for run in runs) / 60


def facts(results):
    about = results['about']
    rows = [(title, about[key]) for key, title in (
        ('command', 'command'), ('date', 'date'), ('version', 'version of numalift'), ('kernel', 'kernel'),
        ('qemu', 'QEMU'), ('machine', 'machine')) if about.get(key)]
    rows.append(('rounds', '%d' % max([r['seed'] for r in results['runs']] or [0])))
    settings = results['settings']
    rows.append(('a pass', '%s accesses, one every %.1f s' % (
        format(settings['accesses'], ','), settings['period'] / 1e3)))
    if settings.get('quick'):
        rows.append(('passes', '30 to 40 (servers 9 to 24, memcaslap 4, where memory fits 5, `scan` 50, where the hot '
                     'set moves 68); 4 of `tierload` and `numaload` under those who move nothing'))
    if settings.get('measured'):
        rows.append(('measured', 'the last %d passes at most' % settings['measured']))
    used = cpu_minutes(results['runs'])
    if used:
        rows.append(('CPU time', '%.1f minutes in all' % used))
    return ['| | |', '| --- | --- |'] + ['| %s | %s |' % (k, '`%s`' % v if k == 'command' else v) for k, v in rows]


def markdown(results, folder, plotted):
    """folder: where the plots are, as seen from this text. plotted: {workload: [file names]}."""
    settings = results['settings']
    runs = by_workload(results['runs'])
    found = {name: figures.of_workload(of, settings['fast'], settings['period']) for name, of in runs.items()}
    clocks = {figures.clock(run) for of in runs.values() for rounds in of.values() for run in rounds.values()}
    timed = next(iter(clocks - {None}), None)
    lines = ['# What promotion gains, and what it costs', '']
    if settings['place'] == 'guest':
        lines += ['Measured in a virtual machine with two fast nodes and a slow one. Where pages lie and how they move '
                  'is real in it%s: see [benchmarks/lab](%s).' % (
                      ', time is modelled' if timed else '', results.get('readme', 'README.md'))]
    else:
        lines += ['Measured on this machine, fast nodes %s, by the clock: see [benchmarks/lab](%s).' % (
            ', '.join(settings['fast']), results.get('readme', 'README.md'))]
    lines += [''] + facts(results) + ['', '## Summary', '']
    if not found:
        lines += ['No run has come to its end.', '']
    else:
        lines += summary(found, timed)
    lines += ['How to read it:', ''] + read_as(timed, settings) + ['']
    gone = sorted({(r['contender'], r['not_there']) for r in results['runs'] if 'not_there' in r})
    for title, rows in (
            ('Not there', ['%s: %s' % pair for pair in gone]),
            ('Left out, as the call was quick', results.get('left_out', [])),
            ('FAILED', ['%s, %s, round %d: %s' % tuple(f) for f in results.get('failed', [])])):
        if rows:
            lines += ['%s:' % title, ''] + ['- ' + row.replace('|', '\\|') for row in rows] + ['']
    for name, rows in found.items():
        lines += ['## %s' % name, '', about_workload(name)[:1].upper() + about_workload(name)[1:] + '.', '']
        lines += workload_table(rows) + ['']
        for file in plotted.get(name, []):
            lines += ['![%s](%s)' % (file.split('.')[0].replace('-', ' '), os.path.join(folder, file)), '']
    return '\n'.join(lines).rstrip('\n') + '\n'


def plot(results):
    """{workload: {file name: SVG}}"""
    settings = results['settings']
    ret = {}
    for name, of in by_workload(results['runs']).items():
        rows = figures.of_workload(of, settings['fast'], settings['period'])
        about = about_workload(name)
        best = next((r['best'].median for r in rows.values() if r['best']), None)
        title = 'pass (one every %.1f s)' % (settings['period'] / 1e3)
        lines = {c: figures.shares(rounds) for c, rounds in of.items()}
        lines = {c: points for c, points in lines.items() if points}
        files = {}
        if lines:
            files['share-%s.svg' % name] = plots.shares(
                '%s: accesses to fast nodes' % name, about, lines, best, title)
        speeds = {c: (r['per_second'], '(%.2f times none)' % (1 / r['time'].median) if r['time'] and c != figures.BASE
                      else '') for c, r in rows.items() if r['per_second']}
        if speeds:
            modelled = any(run['phases'] for rounds in of.values() for run in rounds.values())
            files['throughput-%s.svg' % name] = plots.bars(
                '%s: throughput' % name, about, speeds,
                'accesses or requests per %ssecond, settled' % ('modelled ' if modelled else ''))
        ret[name] = files
    return ret


def write(path, text):
    with open(path + '.new', 'w', encoding='utf-8') as f:
        f.write(text)
    os.replace(path + '.new', path)


def write_all(results, path, folder):
    """The text to `path`, the plots into `folder`; plots of before go."""
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(folder):
        if old.endswith('.svg') and old.startswith(('share-', 'throughput-')):
            os.unlink(os.path.join(folder, old))
    plotted = plot(results)
    for files in plotted.values():
        for name, text in files.items():
            write(os.path.join(folder, name), text)
    seen_from = os.path.relpath(folder, os.path.dirname(os.path.abspath(path)))
    readme = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'README.md')
    results = dict(results, readme=os.path.relpath(readme, os.path.dirname(os.path.abspath(path))))
    write(path, markdown(results, '' if seen_from == '.' else seen_from,
                         {name: list(files) for name, files in plotted.items()}))
