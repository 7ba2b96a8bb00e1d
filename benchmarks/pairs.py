# SPDX-License-Identifier: MIT
"""What the drivers share: contenders, runs in turn, ratios with their spread, tables, JSON.

Every workload is run by each contender in turn, A B C A B C ..., and a ratio is always taken
between two runs of the same round: what disturbs the machine for longer than a round then
disturbs both sides. The figure shown is the median of the rounds' ratios, with the smallest and
the largest beside it.
"""

import argparse
import glob
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time

BASELINE = 'libmimalloc'
AIM_WALL = 1.03
AIM_PEAK = 1.05

# Preloads by contender; the dynamic linker finds them. libc.so.6 is there for programs that bring
# an allocator of their own (redis-server and its jemalloc): the C library's then comes first.
LIBRARIES = {
    'glibc': (['libc.so.6'], None),
    'libmimalloc': (['libmimalloc.so.3', 'libmimalloc.so.2', 'libmimalloc.so'],
                    'libmimalloc2.0 (Debian 12) or libmimalloc3'),
    'jemalloc': (['libjemalloc.so.2'], 'libjemalloc2'),
    'tcmalloc': (['libtcmalloc_minimal.so.4', 'libtcmalloc.so.4'], 'libtcmalloc-minimal4'),
}

# Settings that would bend a comparison; meson sets the first one for everything it runs.
DROPPED = ('MALLOC_PERTURB_', 'MALLOC_CHECK_', 'MALLOC_ARENA_MAX', 'MALLOC_ARENA_TEST',
           'MALLOC_TOP_PAD_', 'MALLOC_TRIM_THRESHOLD_', 'MALLOC_MMAP_THRESHOLD_',
           'MALLOC_MMAP_MAX_', 'MALLOC_CONF', 'GLIBC_TUNABLES', 'LD_PRELOAD', 'PYTHONMALLOC')


class Failure(Exception):
    """A run that did not come to a proper end."""


class Contender:
    def __init__(self, name, preload):
        self.name = name
        self.preload = preload

    def environment(self, **more):
        env = clean_environment(**more)
        if self.preload:
            env['LD_PRELOAD'] = self.preload
        return env


def clean_environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in DROPPED}
    env['LC_ALL'] = 'C'
    env.update(more)
    return env


def find_library(names):
    """The path under which the dynamic linker would preload one of the names, or None."""
    for name in names:
        listing = subprocess.run(
            [find_program('env') or '/usr/bin/env'],
            env={'LD_TRACE_LOADED_OBJECTS': '1', 'LD_PRELOAD': name},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        wanted = re.escape(os.path.basename(name))
        found = re.search(r'^\s*(?:' + wanted + r' => )?(/\S*' + wanted + r')\s', listing, re.M)
        if found:
            return found.group(1)
    return None


def find_program(name):
    for folder in (os.environ.get('PATH', '') + ':/usr/sbin:/sbin').split(':'):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


# ---- options and contenders ---------------------------------------------------------------------

def add_options(parser, quick):
    parser.add_argument('--rounds', type=int, metavar='N', help='rounds of runs in turn (default 5)')
    parser.add_argument('--quick', action='store_true', help=quick)
    parser.add_argument('--smoke', action='store_true',
                        help='one round of next to no work: whether everything runs at all')
    parser.add_argument('--only', metavar='REGEX', type=pattern,
                        help='only the workloads whose name matches (see --list)')
    parser.add_argument('--list', action='store_true', help='list the workloads and end')
    parser.add_argument('--also', metavar='NAME', action='append', default=[],
                        choices=['jemalloc', 'tcmalloc'],
                        help='one more contender: jemalloc or tcmalloc, where installed')
    parser.add_argument('--without', metavar='NAME', action='append', default=[],
                        choices=['glibc', 'numalift'], help='leave out glibc or numalift')
    parser.add_argument('--numalift', metavar='PATH', help='the libnumalift.so to measure '
                        '(default: the one of the build folder)')
    parser.add_argument('--build', metavar='DIR', help='the build folder (default: the newest '
                        'build* of the source folder)')
    parser.add_argument('--json', metavar='FILE', help='write every figure to FILE (- is stdout, '
                        'and the tables then go to stderr)')


def pattern(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError('not a regular expression: %s' % error) from error


def settle(parser, options):
    """Fills in what depends on other options."""
    if options.rounds is None:
        options.rounds = 1 if options.smoke else 3 if options.quick else 5
    if options.rounds < 1:
        parser.error('--rounds: at least 1')
    options.build = options.build or find_build()
    if options.build is None:
        parser.error('no build folder with benchmarks in it: run '
                     '`meson setup build && ninja -C build`, or name one by --build')
    if not os.path.isfile(tool(options, 'bench_malloc')):
        parser.error('%s holds no benchmarks/bench_malloc: build it with -Dbenchmarks=true'
                     % options.build)


def find_build():
    if os.environ.get('MESON_BUILD_ROOT'):
        return os.environ['MESON_BUILD_ROOT']
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    built = glob.glob(os.path.join(source, 'build*', 'benchmarks', 'bench_malloc'))
    built.sort(key=os.path.getmtime)
    return os.path.dirname(os.path.dirname(built[-1])) if built else None


def tool(options, name):
    return os.path.join(options.build, 'benchmarks', name)


def choose_contenders(options, say):
    """The contenders that are there, in the order in which they run; says which are not."""
    chosen = []
    for name in ['glibc', 'libmimalloc', 'numalift'] + options.also:
        if name in options.without:
            continue
        if name == 'numalift':
            path = options.numalift or os.path.join(options.build, 'shim', 'libnumalift.so')
            path = find_library([os.path.abspath(path)]) if os.path.isfile(path) else None
            remedy = 'build it, or name it by --numalift'
        else:
            path = find_library(LIBRARIES[name][0])
            remedy = 'install %s' % LIBRARIES[name][1]
        if path is None:
            say('%s is left out, it cannot be preloaded: %s' % (name, remedy))
        else:
            chosen.append(Contender(name, path))
    return chosen


# ---- runs ---------------------------------------------------------------------------------------

class Cell:
    """One workload with one number of threads: its runs by contender, round after round."""

    def __init__(self, name, threads=None, **facts):
        self.name = name
        self.threads = threads
        self.facts = facts
        self.runs = {}
        self.notes = []

    def label(self):
        return self.name if self.threads is None else '%s/%d' % (self.name, self.threads)

    def ratios(self, name, metric, base):
        """Round by round; a run too short to have a time at all counts for nothing."""
        pairs = zip(self.runs.get(name, []), self.runs.get(base, []))
        return [a[metric] / b[metric] for a, b in pairs if a[metric] > 0 and b[metric] > 0]

    def ratio(self, name, metric, base):
        ratios = self.ratios(name, metric, base)
        if not ratios:
            return None
        best = (min(r[metric] for r in self.runs[name]) /
                max(min(r[metric] for r in self.runs[base]), 1e-9))
        return {'median': statistics.median(ratios), 'min': min(ratios), 'max': max(ratios),
                'best': best}

    def median(self, name, metric):
        return statistics.median(r[metric] for r in self.runs[name])


class Report:
    """Where the text goes: tables to stdout or stderr, progress to a terminal only."""

    def __init__(self, options):
        self.text = sys.stderr if options.json == '-' else sys.stdout
        self.terminal = sys.stderr.isatty()
        self.shown = False
        self.started = time.monotonic()

    def say(self, text=''):
        self.clear()
        print(text, file=self.text, flush=True)

    def clear(self):
        if self.shown:
            print('\r\033[K', end='', file=sys.stderr, flush=True)
            self.shown = False

    def progress(self, done, total, text):
        if not self.terminal:
            return
        spent = time.monotonic() - self.started
        left = '' if done == 0 else ', %d s to go' % (spent / done * (total - done))
        line = '[%d/%d] %s, %d s%s' % (done, total, text, spent, left)
        print('\r\033[K' + line[:100], end='', file=sys.stderr, flush=True)
        self.shown = True


def run_cells(cells, contenders, options, run, report):
    """Runs every cell by every contender in turn. Returns a list of what failed."""
    failures = []
    total = len(cells) * len(contenders) * options.rounds
    done = 0
    for cell in cells:
        for number in range(options.rounds):
            for contender in contenders:
                report.progress(done, total, '%s, round %d of %d, %s' % (
                    cell.label(), number + 1, options.rounds, contender.name))
                done += 1
                if contender.name in (f['contender'] for f in failures
                                      if f['cell'] == cell.label()):
                    continue
                try:
                    result = run(cell, contender)
                except Failure as failure:
                    failures.append({'cell': cell.label(), 'contender': contender.name,
                                     'what': str(failure)})
                    cell.runs.pop(contender.name, None)
                    continue
                cell.runs.setdefault(contender.name, []).append(result)
        print_cell(cell, contenders, report)
        for failure in failures:
            if failure['cell'] == cell.label():
                report.say('    %s FAILED: %s' % (failure['contender'], failure['what']))
    report.clear()
    return failures


def check_output(argv, env, cwd=None, **more):
    """Standard output of a program that has to succeed."""
    try:
        done = subprocess.run(argv, env=env, cwd=cwd, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **more)
    except OSError as error:
        raise Failure('%s: %s' % (argv[0], error.strerror)) from error
    if done.returncode != 0:
        raise Failure('%s %s: %s' % (os.path.basename(argv[0]), how_it_ended(done.returncode),
                                     last_line(done.stderr)))
    return done.stdout


def how_it_ended(status):
    return 'ended with %d' % status if status >= 0 else 'was ended by signal %d' % -status


def last_line(text):
    lines = text.decode(errors='replace').strip().splitlines()
    return lines[-1] if lines else 'nothing on stderr'


# ---- tables -------------------------------------------------------------------------------------

def print_header(report):
    report.say('%-21s %-12s %9s  %-20s %9s  %-20s %8s %6s' % (
        'workload/threads', '', 'wall ms', 'ratio (spread)', 'cpu ms', 'ratio (spread)',
        'peak MiB', 'ratio'))


def print_cell(cell, contenders, report):
    label = cell.label()
    for contender in contenders:
        name = contender.name
        if name not in cell.runs:
            continue
        shown = []
        for metric in ('wall', 'cpu'):
            ratio = cell.ratio(name, metric, BASELINE) if name != BASELINE else None
            shown += ['%.1f' % (cell.median(name, metric) * 1e3), spread(ratio)]
        peak = cell.ratio(name, 'peak', BASELINE) if name != BASELINE else None
        report.say('%-21s %-12s %9s  %-20s %9s  %-20s %8.1f %6s' % (
            (label, name) + tuple(shown) +
            (cell.median(name, 'peak') / 1024, '%.2f' % peak['median'] if peak else '')))
        label = ''
    for note in cell.notes:
        report.say('    ' + note)


def spread(ratio):
    if ratio is None:
        return ''
    return '%.2f (%.2f..%.2f)' % (ratio['median'], ratio['min'], ratio['max'])


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def summarise(cells, contenders):
    """Geometric means of the cells' ratios, by contender and group of cells."""
    groups = [('all', lambda cell: True)]
    if any(cell.threads is not None for cell in cells):
        groups += [('one thread', lambda cell: cell.threads == 1),
                   ('threaded', lambda cell: (cell.threads or 1) > 1)]
    pairs = [(c.name, BASELINE) for c in contenders if c.name != BASELINE]
    if any(c.name == 'numalift' for c in contenders):
        pairs.append(('numalift', 'glibc'))
    rows = []
    for name, base in pairs:
        for group, belongs in groups:
            members = [c for c in cells if belongs(c) and c.ratios(name, 'wall', base)]
            row = {'contender': name, 'against': base, 'group': group, 'cells': len(members)}
            for metric in ('wall', 'cpu', 'peak'):
                ratios = [c.ratio(name, metric, base) for c in members]
                ratios = [r for r in ratios if r is not None]
                row[metric] = geometric_mean(r['median'] for r in ratios)
                row[metric + '_best'] = geometric_mean(r['best'] for r in ratios)
            if members and row['wall'] is not None:
                rows.append(row)
    return rows


def print_summary(rows, report):
    report.say()
    report.say('Geometric means of the ratios (median of the rounds; in brackets the best rounds)')
    report.say('%-34s %-10s %5s  %-15s %-15s %-15s' % ('', 'group', 'cells', 'wall', 'cpu', 'peak'))
    for row in rows:
        report.say('%-34s %-10s %5d  %-15s %-15s %-15s' % (
            '%s / %s' % (row['contender'], row['against']), row['group'], row['cells'],
            both(row, 'wall'), both(row, 'cpu'), both(row, 'peak')))
    for row in rows:
        if (row['contender'], row['against'], row['group']) == ('numalift', BASELINE, 'all'):
            report.say()
            report.say('The aim is at most %.2f in wall time (%s) and %.2f in peak memory (%s).' % (
                AIM_WALL, met(row['wall'] <= AIM_WALL), AIM_PEAK, met(row['peak'] <= AIM_PEAK)))
        if (row['contender'], row['against'], row['group']) == ('numalift', 'glibc', 'threaded'):
            report.say('The aim on threaded workloads is to be faster than glibc (%s).'
                       % met(row['wall'] < 1))


def both(row, metric):
    if row[metric] is None:
        return '-'
    return '%.3f (%.3f)' % (row[metric], row[metric + '_best'])


def met(yes):
    return 'met here' if yes else 'missed here'


# ---- JSON ---------------------------------------------------------------------------------------

def machine():
    facts = {'kernel': platform.release(), 'machine': platform.machine(),
             'cpus': os.cpu_count(), 'libc': ' '.join(platform.libc_ver()),
             'load': os.getloadavg()}
    for key, path, found in [
            ('cpu', '/proc/cpuinfo', r'^model name\s*: (.*)$'),
            ('memory_kib', '/proc/meminfo', r'^MemTotal:\s*(\d+)'),
            ('huge_pages', '/sys/kernel/mm/transparent_hugepage/enabled', r'\[(\w+)\]'),
            ('nodes', '/sys/devices/system/node/has_memory', r'^(\S+)')]:
        try:
            with open(path, encoding='utf-8') as f:
                match = re.search(found, f.read(), re.M)
        except OSError:
            match = None
        facts[key] = match.group(1) if match else None
    return facts


def document(program, options, contenders, cells, failures, skipped, **more):
    metrics = ('wall', 'cpu', 'peak')
    return {
        'format': 1,
        'program': program,
        'machine': machine(),
        'settings': {k: v for k, v in os.environ.items()
                     if k.startswith(('NUMALIFT', 'MIMALLOC_'))},
        'rounds': options.rounds,
        'effort': 'smoke' if options.smoke else 'quick' if options.quick else 'full',
        'baseline': BASELINE,
        'contenders': [{'name': c.name, 'preload': c.preload} for c in contenders],
        'cells': [{
            'name': c.name, 'threads': c.threads, **c.facts, 'runs': c.runs, 'notes': c.notes,
            'ratios': {k.name: {m: c.ratio(k.name, m, BASELINE) for m in metrics}
                       for k in contenders if k.name in c.runs and k.name != BASELINE},
        } for c in cells],
        'summary': summarise(cells, contenders),
        'failures': failures,
        'skipped': skipped,
        **more,
    }


def run_driver(name, main):
    """Calls main() and turns what can go wrong around it into an exit status."""
    try:
        status = main()
        sys.stdout.flush()
    except Failure as failure:
        status = '%s: %s' % (name, failure)
    except OSError as error:
        # A pager that was left early is no reason for a message.
        status = 1 if isinstance(error, BrokenPipeError) else '%s: %s' % (name, error)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def write_json(path, content):
    text = json.dumps(content, indent=1) + '\n'
    if path == '-':
        sys.stdout.write(text)
    else:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
