# SPDX-License-Identifier: MIT
"""The placement tests: programs under libnumalift.so on machines with several nodes.

    run_guest.py --guest scripts/guest --library libnumalift.so --programs FOLDER KERNEL [MACHINE...]

Exit status 0, 1 (a check failed), or 77 when no guest can be started here. With CI in the environment
nothing may be skipped, so that is 1 as well.
"""
import argparse
import os
import re
import sys
import time

import machines
from guestrun import CannotRun, Guest, Tap

PROGRAMS = ('kinds', 'launch', 'crowd', 'many', 'mcload', 'own')


class Settings:
    """What all guests of this run share."""

    def __init__(self, args):
        self.guest = os.path.abspath(args.guest)
        self.library = os.path.abspath(args.library)
        self.programs = {}
        for name in PROGRAMS:
            path = os.path.join(os.path.abspath(args.programs), name)
            if os.path.exists(path):
                self.programs[name] = path
        self.scratch = os.path.abspath(args.scratch or args.programs)
        self.verbose = args.verbose
        self.timeout = 800


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--guest', required=True)
    p.add_argument('--library', required=True)
    p.add_argument('--programs', required=True)
    p.add_argument('--scratch', help='where a MariaDB data folder is kept between runs')
    p.add_argument('--verbose', action='store_true')
    p.add_argument('--match', help='print only checks that fit this expression')
    p.add_argument('kernel')
    p.add_argument('machine', nargs='*')
    args = p.parse_args()
    ci = os.environ.get('CI') == 'true'
    settings = Settings(args)
    tap = Tap()

    sys.stdout.reconfigure(line_buffering=True)
    for name, build in machines.MACHINES.items():
        if args.machine and name not in args.machine:
            continue
        guest = Guest(name, args.kernel, settings)
        build(guest)
        if args.match:
            guest.checks = [c for c in guest.checks if re.search(args.match, c[0])]
        begun = time.monotonic()
        try:
            trouble = guest.boot()
        except CannotRun as e:
            if tap.number:
                # the one before did start, so it is this machine
                tap.result(False, name, str(e))
                continue
            print('# no guest: %s' % e)
            return 1 if ci else 77
        tap.note('%s on %s: %d steps in %.0f s' % (
            name, args.kernel, len(guest.steps), time.monotonic() - begun))
        guest.evaluate(tap)
        if trouble:
            tap.result(False, name, trouble)
        for line in guest.notes():
            tap.note(line)
    print('1..%d' % tap.number)
    if tap.failed:
        print('# %d of %d checks failed' % (len(tap.failed), tap.number))
    if tap.skipped and ci:
        print('# %d checks were skipped, and here nothing may be' % len(tap.skipped))
    return 1 if tap.failed or (tap.skipped and ci) else 0


if __name__ == '__main__':
    sys.exit(main())
