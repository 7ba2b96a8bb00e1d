# SPDX-License-Identifier: MIT
"""What is computed of runs: what onerun and native return goes in, numbers come out; None is unknown.

README.md says what the figures mean.
"""
import math
import statistics

BASE = 'none'       # the contender that all others are compared with
GOOD = 0.9          # of the best share: from then on a run counts as arrived


# ---- of one run ---------------------------------------------------------------------------------

def third(run):
    """So many passes at the end are taken for the settled state: no more than are measured."""
    return max(1, min(len(run['passes']) // 3, len(phases(run, 'pass')) or len(run['passes'])))


def is_whole(run):
    """Whether all passes are measured, and not only those at the end."""
    return len(phases(run, 'pass')) == len(run['passes'])


def share(fields):
    """Of a pass; None for a load whose pages nobody can ask for, as a compiler's."""
    return fields.get('share')


def settled(run):
    found = [share(p) for p in run['passes'][-third(run):]]
    return None if None in found else statistics.mean(found)


def best(run):
    """What the best placement would give: that may move with the hot set."""
    end = run['end'] or {}
    return end.get('best_moving', end.get('best_static'))


def passes_to(run, part=GOOD):
    """The first pass with this part of the best share."""
    if not best(run):
        return None
    return next((p['pass'] for p in run['passes'] if (share(p) or 0) >= part * best(run)), None)


def spent_ms(passes, period_ms):
    """In these and the pauses after them, by the clock that the load sees."""
    return sum(max(p['ms'], period_ms) for p in passes)


def seconds_to(run, period_ms, part=GOOD):
    """From the beginning of the first pass to the end of that one, by the clock that the load sees."""
    last = passes_to(run, part)
    if last is None:
        return None
    upto = [p for p in run['passes'] if p['pass'] <= last]
    return (spent_ms(upto[:-1], period_ms) + upto[-1]['ms']) / 1e3


def phases(run, kind):
    return [p for name, p in (run['phases'] or {}).items() if name.split()[0] == kind]


def instructions(run, *modes, kinds=('pass', 'pause')):
    return sum(p['instructions'][m] for kind in kinds for p in phases(run, kind) for m in modes)


def clock(run):
    """Whose milliseconds pass_ms() are: modelled, wall, or nobody's, where time is the emulator's."""
    if run['phases']:
        return 'modelled'
    return 'wall' if run.get('native') else None


def pass_ms(run):
    """Of each pass; modelled: of the program's CPU that took longest, or of all of them where they work in turn."""
    if clock(run) == 'modelled':
        cpus = run.get('cpus')
        of = sum if run.get('in_turn') else max
        return [of(ns for cpu, ns in enumerate(p['ns_of_cpu']) if cpus is None or cpu in cpus) / 1e6
                for p in phases(run, 'pass')]
    return [p['ms'] for p in run['passes']] if clock(run) == 'wall' else []


def settled_ms(run):
    times = pass_ms(run)
    return statistics.mean(times[-third(run):]) if times else None


def per_second(run):
    """Accesses (gets, transactions: what the load counts) in the settled state."""
    ms = settled_ms(run)
    if not ms:
        return None
    counts = [p.get('accesses') for p in run['passes'][-third(run):]]
    return None if None in counts else statistics.mean(counts) / ms * 1e3


def fast_misses(run, fast):
    """Of the cache misses of a pass, kernel and all, what share went to fast nodes, settled: true also of loads that
    can only tell where their pages are."""
    found = []
    for p in phases(run, 'pass')[-third(run):]:
        misses = {node: n for node, n in p['misses'].items() if node.isdigit()}
        if sum(misses.values()):
            found.append(sum(misses.get(n, 0) for n in fast) / sum(misses.values()))
    return statistics.mean(found) if found else None


def all_ms(run):
    """Modelled time of all CPUs together in passes and pauses, per pass that is measured: what everything costs."""
    if not run['phases']:
        return None
    return sum(sum(p['ns'].values()) for kind in ('pass', 'pause') for p in phases(run, kind)
               ) / 1e6 / len(phases(run, 'pass'))


def moved(run):
    """Pages that were moved between nodes, whoever did it."""
    return run['vmstat'].get('pgmigrate_success')


def moving_rate(run, period_ms):
    """Pages moved per minute of the load's clock in the last half of the passes, as a part of all it has: what it goes
    on moving when it has been there for a while."""
    half = run['passes'][len(run['passes']) // 2:]
    if len(half) < 2 or not all('migrated' in p and p.get('nodes') for p in half):
        return None
    minutes = spent_ms(half[1:], period_ms) / 60e3
    pages = sum(half[-1]['nodes'].values())
    return (half[-1]['migrated'] - half[0]['migrated']) / pages / minutes if minutes and pages else None


def on_fast(fields, fast):
    nodes = (fields or {}).get('nodes')
    return None if nodes is None else sum(nodes.get(n, 0) for n in fast)


def demoted(run, fast):
    """Pages that went to slow nodes. The kernel counts its own. move_pages counts both ways in one; they are
    told apart by how many pages more the fast nodes have than at the beginning."""
    counts = run['vmstat']
    if moved(run) is None:
        return None
    by_kernel = counts.get('pgdemote_kswapd', 0) + counts.get('pgdemote_direct', 0)
    by_call = moved(run) - by_kernel - counts.get('numa_pages_migrated', 0)
    if by_call <= 0:
        return by_kernel
    before, after = on_fast(run['begin'], fast), on_fast(run['passes'][-1], fast)
    if before is None or after is None:
        return None
    by_kernel_up = counts.get('pgpromote_success', 0)
    gained_by_call = after - before - by_kernel_up + by_kernel
    return by_kernel + max(0, by_call - gained_by_call) // 2


def wasted(run, fast):
    """Moves that were taken back: who goes down and was not up in the beginning has come up in vain, which
    makes two moves. Not known where the hot set itself moves: there pages have to go down again."""
    end = run['end'] or {}
    if abs(end.get('best_moving', 0) - end.get('best_static', 0)) > 0.01 and 'best_moving' in end:
        return None
    down, before = demoted(run, fast), on_fast(run['begin'], fast)
    if down is None or (down and before is None):
        return None
    return 2 * max(0, down - (before or 0))


def per_pass(run, *modes, last=None):
    """Instructions of a pass with its pause; of the last so many, or of all."""
    passes = len(run['passes'])
    first = passes - (last or passes)
    return sum(p['instructions'][m] for name, p in run['phases'].items() for m in modes
               if name.split()[0] in ('pass', 'pause') and int(name.split()[1]) > first) / (passes - first)


def cost(run, base, last=False):
    """What was executed more than without balancing, as a part of what the program executes itself: per pass, as not
    all contenders have as many; in the last third, or in all. Natively the CPU time of the program more, as a part of
    its own."""
    if base is None:
        return None
    if run['phases'] and base['phases']:
        if not last and not (is_whole(run) and is_whole(base)):
            return None
        def each(of, *modes):
            return per_pass(of, *modes, last=third(of) if last else None)
        return (each(run, 'user', 'kernel') - each(base, 'user', 'kernel')) / each(base, 'user')
    if run.get('cpu_s') and base.get('cpu_s') and not last:
        return run['cpu_s'] / base['cpu_s'] - 1
    return None


def ratio(a, b):
    return a / b if a is not None and b else None


LATENCY = '_ms'     # how figures of a pass end that a load measures itself, as p99_ms


def latencies(run):
    """{name: milliseconds}, settled; only where the clock is a real one."""
    if clock(run) != 'wall':
        return {}
    last = run['passes'][-third(run):]
    return {k: statistics.mean(p[k] for p in last) for k in last[0]
            if k.endswith(LATENCY) and all(isinstance(p.get(k), (int, float)) for p in last)}


def of_run(run, base, fast, period_ms):
    """All of it; base is the run without balancing of the same round, or None."""
    return {
        'first': share(run['passes'][0]), 'settled': settled(run), 'best': best(run),
        'of_best': ratio(settled(run), best(run)),
        'fast_misses': fast_misses(run, fast),
        'passes_to_90': passes_to(run), 'seconds_to_90': seconds_to(run, period_ms),
        'moved': moved(run), 'wasted': wasted(run, fast), 'moving': moving_rate(run, period_ms),
        'ms': settled_ms(run), 'per_second': per_second(run), 'ms_of_all': all_ms(run),
        'time': ratio(settled_ms(run), settled_ms(base)) if base else None,
        'all_time': ratio(all_ms(run), all_ms(base)) if base else None,
        'cost': cost(run, base), 'cost_settled': cost(run, base, last=True),
        'cpu_s': run.get('cpu_s'), **latencies(run),
    }


# ---- of all rounds ------------------------------------------------------------------------------

class Spread:
    """A figure over the rounds."""

    def __init__(self, values):
        self.median = statistics.median(values)
        self.low = min(values)
        self.high = max(values)
        self.rounds = len(values)


def over_rounds(rows, key):
    """None where one of them does not know it: the others would not be comparable."""
    values = [r.get(key) for r in rows]
    return None if not values or any(v is None for v in values) else Spread(values)


def of_workload(runs, fast, period_ms):
    """runs: {contender: {seed: run}}. Returns {contender: {figure: Spread or None}}."""
    base = runs.get(BASE, {})
    ret = {}
    for contender, rounds in runs.items():
        rows = [of_run(run, base.get(seed), fast, period_ms) for seed, run in sorted(rounds.items())]
        ret[contender] = {key: over_rounds(rows, key) for key in rows[0]}
    return ret


def shares(rounds):
    """[(pass, Spread)] of {seed: run}, for as many passes as all rounds have; [] where there are none."""
    n = min(len(run['passes']) for run in rounds.values())
    found = [[share(run['passes'][k]) for run in rounds.values()] for k in range(n)]
    return [] if any(None in values for values in found) else [(k + 1, Spread(v)) for k, v in enumerate(found)]


def geometric_mean(values):
    return math.exp(statistics.mean(math.log(v) for v in values)) if values else None
