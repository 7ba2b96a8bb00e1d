#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a driver with next to no work and checks that nothing of it is broken: every workload ran
under every contender, and the figures are there. What they say is not looked at."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(driver, arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'figures')
        argv = [sys.executable, os.path.join(HERE, driver), '--smoke', '--json', out] + arguments
        status = subprocess.run(argv).returncode
        if status != 0:
            sys.exit('%s ended with %d' % (driver, status))
        with open(out, encoding='utf-8') as f:
            return json.load(f)


def listed(driver, arguments):
    out = subprocess.run([sys.executable, os.path.join(HERE, driver), '--list'] + arguments,
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split()[0] for line in out.splitlines()]


def check(holds, what):
    if not holds:
        sys.exit('FAILED: ' + what)


def check_contenders(figures, wanted):
    names = [c['name'] for c in figures['contenders']]
    for name in wanted:
        check(name in names, '%s took no part' % name)
    return names


def check_cells(figures, names, workloads):
    ran = {}
    for cell in figures['cells']:
        ran[cell['name']] = cell
        ran['%s/%s' % (cell['name'], cell['threads'])] = cell
        for name in names:
            runs = cell['runs'].get(name, [])
            check(len(runs) == figures['rounds'], '%s: not every round of %s' % (cell['name'], name))
            for got in runs:
                check(got['wall'] > 0 and got['peak'] > 0, '%s: no figures' % cell['name'])
    skipped = {s['cell'] for s in figures['skipped']}
    for workload in workloads:
        check(workload in ran or workload in skipped, '%s did not run' % workload)
    check(figures['summary'] and all(row['wall'] > 0 for row in figures['summary']), 'no summary')
    check(not figures['failures'], 'failures: %s' % figures['failures'])
    return skipped


def check_instructions(figures, names):
    for name in names:
        counted = figures['instructions'][name]
        for path, sides in counted.items():
            check(sides and all(n >= 1 for n in sides.values()), '%s: no count of %s' % (name, path))
        check('malloc_64' in counted and 'foreign_64' in counted, '%s: paths are missing' % name)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ('malloc', 'programs', 'instructions'):
        sys.exit('Usage: smoke.py malloc|programs|instructions BUILD [CONTENDER...]')
    what, build, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    arguments = ['--build', build]
    if what == 'instructions':
        figures = run('malloc', arguments + ['--instructions'])
        check_instructions(figures, check_contenders(figures, wanted))
        return
    figures = run(what, arguments)
    skipped = check_cells(figures, check_contenders(figures, wanted), listed(what, arguments))
    if skipped:
        print('skipped: ' + ', '.join(sorted(skipped)))


if __name__ == '__main__':
    main()
