# SPDX-License-Identifier: MIT
"""The samplers' test as an ordinary user on a kernel of the guest, where more of them are possible.

    run_guest.py --guest scripts/guest KERNEL SAMPLER REGIONS DAMON

Prints what the programs print. Exit status 0, 1 (a check failed), or 77 when no guest can be started
here; with CI=true in the environment that is 1 as well.
"""
import argparse
import errno
import os
import subprocess
import sys

# What each kernel has to have: none of these may be skipped on it.
NEEDED = {
    '6.1': 'dirty,refs',
    '6.12': 'wp,dirty,refs,wp+refs',
    'newest': 'rwp,wp,dirty,refs,wp+refs',
}
CANNOT = 125  # scripts/guest: trouble with the guest itself


def damon(run, program):
    """Says why not, to a user and beside DAMON_STAT, and works as root without it."""
    return (run(program, '--expect', str(errno.EACCES))
            or run(program, '--expect', str(errno.EBUSY), options=('--user', 'root'))
            or run(program, options=(
                '--user', 'root', '--setup', 'echo N > /sys/module/damon_stat/parameters/enabled')))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--guest', required=True)
    p.add_argument('--mib', default='128', help='how much memory costs are measured with')
    p.add_argument('kernel', choices=NEEDED)
    p.add_argument('sampler')
    p.add_argument('regions')
    p.add_argument('damon')
    args = p.parse_args()
    program = os.path.abspath(args.sampler)
    sys.stdout.reconfigure(line_buffering=True)

    def run(*command, options=()):
        return subprocess.run(
            [os.path.abspath(args.guest), '--kernel', args.kernel, '--user', 'user', '--timeout', '500',
             *options, '--', *command], stdin=subprocess.DEVNULL).returncode

    status = run(program, '--mib', args.mib, '--need', NEEDED[args.kernel])
    if status == CANNOT:
        print('# no guest')
        return 1 if os.environ.get('CI') == 'true' else 77
    if status == 0:
        status = run(os.path.abspath(args.regions), '--mib', '256', '--need', NEEDED[args.kernel])
    if status == 0 and args.kernel == 'newest':
        status = damon(run, os.path.abspath(args.damon))
    if status == 0:
        # The kernel samples by itself: it has to say that it does.
        status = run(program, '--need', 'kernel', 'kernel', options=('--sysctl', 'kernel.numa_balancing=1'))
    return 1 if status else 0


if __name__ == '__main__':
    sys.exit(main())
