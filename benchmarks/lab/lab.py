#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs workloads in a guest with fast and slow nodes, under numalift and its peers.

README.md says what the figures mean.
"""
import argparse
import json
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True

import contenders  # noqa: E402
import model  # noqa: E402
import onerun  # noqa: E402
import workloads  # noqa: E402

EXIT_NO_GUEST = 75      # as sysexits.h has it: not now, not here
BASE = 'none'
DEFAULT = ('none', 'numalift', 'balancing-1', 'balancing-2', 'interleave')


# ---- figures of a run ---------------------------------------------------------------------------

def settled(run):
    """The mean share of the last third of the passes."""
    shares = [p['share'] for p in run['passes']]
    return statistics.mean(shares[-max(1, len(shares) // 3):])


def best(run):
    """What the best placement would give: that may move with the hot set."""
    end = run['end'] or {}
    return end.get('best_moving', end.get('best_static'))


def passes_to(run, part=0.9):
    """The first pass with this part of the best share; None when there is none."""
    wanted = part * (best(run) or 1)
    return next((p['pass'] for p in run['passes'] if p['share'] >= wanted), None)


def moved(run):
    """Pages that were moved between nodes, whoever did it."""
    return run['vmstat'].get('pgmigrate_success', 0)


def phases(run, kind):
    return [p for name, p in run['phases'].items() if name.split()[0] == kind]


def instructions(run, *modes, kinds=('pass', 'pause')):
    return sum(p['instructions'][m] for kind in kinds for p in phases(run, kind) for m in modes)


def pass_ms(run, last=None):
    """Modelled milliseconds of a pass: of the CPU that took longest, on average."""
    times = [max(p['ns_of_cpu']) / 1e6 for p in phases(run, 'pass')]
    return statistics.mean(times[-last:] if last else times)


def all_ms(run):
    """The same of all CPUs together, with the pauses: what everything costs."""
    return sum(sum(p['ns'].values()) for kind in ('pass', 'pause') for p in phases(run, kind)
               ) / 1e6 / len(run['passes'])


def third(run):
    return max(1, len(run['passes']) // 3)


def figures(run, base):
    """The row of a table; base is the run without balancing of the same round, or None."""
    ret = {
        'first': run['passes'][0]['share'], 'settled': settled(run), 'best': best(run),
        'of_best': settled(run) / best(run) if best(run) else None,
        'passes_to_90': passes_to(run), 'moved': moved(run), 'said': len(run['said']),
    }
    if run['phases']:
        ret['user'] = instructions(run, 'user')
        ret['kernel'] = instructions(run, 'kernel')
        ret['pass_ms'] = pass_ms(run, third(run))
        ret['all_ms'] = all_ms(run)
        if base and base['phases']:
            # What the program itself executes is what it executes where nobody helps it.
            own = instructions(base, 'user')
            more = instructions(run, 'user', 'kernel') - instructions(base, 'user', 'kernel')
            ret['cost'] = more / own
            ret['speedup'] = pass_ms(base, third(run)) / ret['pass_ms']
            ret['speedup_all'] = all_ms(base) / ret['all_ms']
    return ret


# ---- tables -------------------------------------------------------------------------------------

COLUMNS = [     # title, key, how
    ('first', 'first', '%.3f'), ('settled', 'settled', '%.3f'), ('best', 'best', '%.3f'),
    ('of best', 'of_best', '%.3f'), ('to 90%', 'passes_to_90', '%d'), ('moved', 'moved', '%d'),
    ('Minsn user', 'user', 'M'), ('kernel', 'kernel', 'M'), ('cost', 'cost', '%'),
    ('ms/pass', 'pass_ms', '%.1f'), ('x none', 'speedup', '%.2f'),
    ('ms all', 'all_ms', '%.1f'), ('x none', 'speedup_all', '%.2f'),
]


def cell(value, how):
    if value is None:
        return '-'
    if how == 'M':
        return '%.1f' % (value / 1e6)
    return '%+.2f%%' % (100 * value) if how == '%' else how % value


def median_of(rows_of_rounds, key):
    values = [r.get(key) for r in rows_of_rounds]
    return None if any(v is None for v in values) else statistics.median(values)


def print_table(workload, runs):
    """runs: {contender: {seed: run}}"""
    print('\n%s: %s' % (workload.name, workload.about))
    print('%-18s%s' % ('', ''.join('%11s' % title for title, _, _ in COLUMNS)))
    for contender, rounds in runs.items():
        found = [figures(run, runs.get(BASE, {}).get(seed)) for seed, run in rounds.items()]
        print('%-18s%s' % (contender, ''.join(
            '%11s' % cell(median_of(found, key), how) for _, key, how in COLUMNS)))
    for contender, rounds in runs.items():
        for seed, run in rounds.items():
            print('  %-16s share per pass, seed %d: %s' % (
                contender, seed, ' '.join('%.2f' % p['share'] for p in run['passes'])))
    sys.stdout.flush()


# ---- results ------------------------------------------------------------------------------------

def read_results(path, head):
    """The runs of an earlier call with the same settings."""
    try:
        with open(path, encoding='utf-8') as f:
            found = json.load(f)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as e:
        raise model.Trouble('%s: %s' % (path, e)) from None
    if found.get('head') != head:
        raise model.Trouble('%s: holds runs with other settings; another --json, or no --resume' % path)
    return found['runs']


def write_results(path, head, runs):
    """Whole at any time: a run takes longer than anybody likes to lose."""
    with open(path + '.new', 'w', encoding='utf-8') as f:
        json.dump({'format': 1, 'head': head, 'runs': runs}, f, indent=1)
        f.write('\n')
    os.replace(path + '.new', path)


# ---- the call -----------------------------------------------------------------------------------

def pick(names, table, option):
    known = {row.name: row for row in table}
    for name in names:
        if name not in known:
            raise model.Trouble("%s '%s': expected %s" % (option, name, ', '.join(known)))
    return [known[n] for n in names]


def options():
    p = argparse.ArgumentParser(description='Runs workloads on a tiered machine in a guest, under several '
                                'contenders, and compares where their pages are and what it costs.')
    p.add_argument('--workload', metavar='NAME,...', default='hot', help='see --list (hot); all')
    p.add_argument('--contender', metavar='NAME,...', default=','.join(DEFAULT),
                   help='see --list (%s)' % ','.join(DEFAULT))
    p.add_argument('--rounds', type=int, default=1, help='each with another seed, contenders in turn (1)')
    p.add_argument('--kernel', default='6.12', help="the guest's (6.12)")
    p.add_argument('--passes', type=int, default=0, help="instead of the workload's own number")
    p.add_argument('--accesses', type=int, default=400000, help='per pass (400000)')
    p.add_argument('--period', type=int, default=1500, help='milliseconds from pass to pass (1500)')
    p.add_argument('--plain', action='store_true', help='without the cost model: faster, only shares')
    p.add_argument('--build', default=os.path.join(model.HERE, '..', '..', 'build'), help='(build)')
    p.add_argument('--numalift', metavar='PATH', help='another libnumalift.so')
    p.add_argument('--env', metavar='K=V', action='append', default=[], help='for numalift contenders')
    p.add_argument('--json', metavar='FILE', help='all figures, written after each run')
    p.add_argument('--resume', action='store_true', help='leave out what --json has already')
    p.add_argument('--keep', metavar='DIR', help='what each run printed, in files there')
    p.add_argument('--list', action='store_true', help='print workloads and contenders, and end')
    args = p.parse_args()
    for pair in args.env:
        if '=' not in pair:
            p.error("--env '%s': expected NAME=VALUE" % pair)
    if args.resume and not args.json:
        p.error('--resume needs --json')
    return args


def run_all(args, chosen, peers, settings):
    """Returns {workload: {contender: {seed: run}}} and what failed."""
    head = {'kernel': args.kernel, 'passes': args.passes, 'accesses': args.accesses,
            'period': args.period, 'model': not args.plain, 'env': sorted(args.env)}
    done = read_results(args.json, head) if args.json and args.resume else []
    have = {(r['workload'], r['contender'], r['seed']): r for r in done}
    todo = [(w, c, seed) for w in chosen for seed in range(1, args.rounds + 1) for c in peers]
    fresh = sum((w.name, c.name, seed) not in have for w, c, seed in todo)
    table, failures, begun, count = {}, [], time.monotonic(), 0
    for workload, contender, seed in todo:
        run = have.get((workload.name, contender.name, seed))
        if not run:
            left = (time.monotonic() - begun) / count * (fresh - count) if count else None
            print('lab: %s, %s, round %d (%d of %d%s)' % (
                workload.name, contender.name, seed, count + 1, fresh,
                ', about %.0f min left' % (left / 60) if left is not None else ''), file=sys.stderr)
            count += 1
            try:
                run = onerun.run_once(workload, contender, settings, seed)
            except onerun.NoGuest as e:
                if not table:
                    print('lab: %s' % e, file=sys.stderr)
                    sys.exit(EXIT_NO_GUEST)
                failures.append((workload.name, contender.name, seed, str(e)))
                continue
            except onerun.Failure as e:
                print('lab: %s, %s: %s' % (workload.name, contender.name, e), file=sys.stderr)
                failures.append((workload.name, contender.name, seed, str(e)))
                continue
            done.append(run)
            if args.json:
                write_results(args.json, head, done)
        table.setdefault(workload.name, {}).setdefault(contender.name, {})[seed] = run
    return table, failures


def main():
    args = options()
    if args.list:
        for title, rows_of in (('workloads', workloads.WORKLOADS), ('contenders', contenders.CONTENDERS)):
            print(title)
            for row in rows_of:
                print('  %-16s %s' % (row.name, row.about))
        return 0
    names = [w.name for w in workloads.WORKLOADS] if args.workload == 'all' else args.workload.split(',')
    chosen = pick(names, workloads.WORKLOADS, '--workload')
    peers = pick(args.contender.split(','), contenders.CONTENDERS, '--contender')
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    table, failures = run_all(args, chosen, peers, onerun.Settings(args))
    for workload in chosen:
        if workload.name in table:
            print_table(workload, table[workload.name])
    for failure in failures:
        print('FAILED: %s, %s, round %d: %s' % failure)
    return 1 if failures else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except model.Trouble as trouble:
        sys.exit('lab: %s' % trouble)
    except KeyboardInterrupt:
        sys.exit(130)
