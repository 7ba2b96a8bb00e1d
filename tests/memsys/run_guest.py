# SPDX-License-Identifier: MIT
"""The test of the machine as promotion sees it, on a kernel of the guest with three nodes, as an ordinary user.

    run_guest.py --guest scripts/guest --program memsys KERNEL

Prints what the program prints. Exit status 0, 1 (a check failed, or there were none), or 77 when no guest can be
started here; with CI=true in the environment that is 1 as well.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys

CANNOT = 125  # scripts/guest: trouble with the guest itself

# A cpuset without the slow node.
SETUP = ('mkdir /sys/fs/cgroup/t && echo 0-1 > /sys/fs/cgroup/t/cpuset.mems && '
         'echo $$ > /sys/fs/cgroup/t/cgroup.procs')

# Options of the guest, and what runs in it: the program's arguments, and how many checks there are at least.
BOOTS = [
    # NUMA balancing would take back what is moved away from the CPU that runs the test.
    (['--sysctl', 'vm.max_map_count=2000', '--sysctl', 'kernel.numa_balancing=0'], [
        ('--nodes 2,0', 90),
        ('--nodes 0,2 --deny move_pages', 90),
        ('--nodes 0,2 --deny move_pages --blind', 40),
        ('--deny both', 5),
        ('--deny both --errno 38', 5),
    ]),
    (['--sysctl', 'kernel.numa_balancing=1'], [
        ('--nodes 2,0 --churn', 4),
        ('--nodes 2,0 --churn --deny move_pages', 4),
    ]),
    (['--setup', SETUP], [
        ('--forbidden 2', 2),
        ('--forbidden 2 --deny move_pages', 2),
    ]),
]


def judge(out, runs):
    """What is wrong with what was printed, [] when all is well."""
    bad = []
    parts = re.split(r'^# memsys .*\n', out, flags=re.M)[1:]
    if len(parts) != len(runs):
        bad.append('%d runs of %d' % (len(parts), len(runs)))
    for part, (args, least) in zip(parts, runs):
        good = len(re.findall(r'^ok (?!.*# SKIP)', part, re.M))
        plan = re.findall(r'^1\.\.(\d+)$', part, re.M)
        if good < least or plan != [str(good)]:
            bad.append('%s: %d checks passed, the plan is %s, at least %d' % (args, good, plan, least))
    return bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--guest', required=True)
    p.add_argument('--program', required=True)
    p.add_argument('kernel', choices=('6.1', '6.12', 'newest'))
    args = p.parse_args()
    program = shlex.quote(os.path.abspath(args.program))
    bad = []
    for options, runs in BOOTS:
        # nothing in it that differs between kernels
        runs = [r for r in runs if args.kernel == '6.1' or '--blind' not in r[0]]
        script = '; '.join('echo "# memsys %s"; %s %s || bad=1' % (a, program, a) for a, _ in runs)
        run = subprocess.run(
            [os.path.abspath(args.guest), '--kernel', args.kernel, '--user', 'user', '--timeout', '800', *options,
             '--', 'sh', '-c', 'bad=0; %s; exit $bad' % script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        sys.stdout.write(run.stdout)
        if run.returncode == CANNOT:
            print('# no guest')
            return 1 if os.environ.get('CI') == 'true' else 77
        bad += judge(run.stdout, runs)
        if run.returncode:
            bad.append('exit status %d' % run.returncode)
    for line in bad:
        print('# ' + line)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
