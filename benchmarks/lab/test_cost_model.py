# SPDX-License-Identifier: MIT
"""The cost model against memory whose place is known.

    test_cost_model.py KERNEL FOLDER [QEMU]    (the folder with chase and the plugins)

Exit status 0, 1 (a check failed), 77 when no guest can be started here; with CI in the environment that is
1 as well.
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'tests', 'numa'))

import model  # noqa: E402
from guestrun import Tap  # noqa: E402

# Node 2 lies on both sides of the hole below 4 GiB, node 3 above it.
MACHINE = '''
node 0 mem=512M  cpus=1 latency=80  bandwidth=20000
node 1 mem=1472M cpus=1 latency=90  bandwidth=20000
node 2 mem=128M  cpus=0 latency=300 bandwidth=5000
node 3 mem=1024M cpus=0 latency=200 bandwidth=5000 initiator=1
distance 0 1 21
distance 0 2 31
distance 1 2 40
distance 0 3 50
distance 1 3 17
'''
RINGS = {0: 16, 1: 16, 2: 90, 3: 16}    # MiB; in node 2 as much as has to use both parts
STEPS = 200000
CPU_NODES = (0, 1)


def check_pair(tap, phases, described, source, target):
    name = '%d-%d' % (source, target)
    phase, again, cached = phases[name], phases[name + ' again'], phases['cached %d' % source]
    wanted = described.access('latency', source, target)
    found = (phase.ns('user') - cached.ns('user')) / STEPS
    tap.result(abs(found - wanted) <= 0.05 * wanted, 'from node %d to node %d' % (source, target),
               '%.1f ns a step, described as %d' % (found, wanted))
    misses = phase.misses('user')
    share = misses[target] / max(1, sum(misses.values()))
    tap.result(share >= 0.99 and misses[target] >= 0.99 * STEPS,
               'misses of %s are on node %d' % (name, target),
               '%.2f %% of %d' % (100 * share, sum(misses.values())))
    apart = abs(again.ns() - phase.ns()) / phase.ns()
    tap.result(apart < 0.02, 'the same phase again', '%.2f %% apart' % (100 * apart))


def check_rest(tap, phases):
    wanted = {'twice', 'empty'} | {'cached %d' % s for s in CPU_NODES} | {
        '%d-%d%s' % (s, t, again) for s in CPU_NODES for t in RINGS for again in ('', ' again')}
    tap.result(set(phases) == wanted, 'phases', ', '.join(sorted(set(phases) ^ wanted)))
    tap.result(not any(p.open for p in phases.values()), 'all phases are closed')
    # Between the phases were walks as long as within.
    empty = phases['empty'].instructions('user')
    tap.result(empty < STEPS / 10, 'nothing is counted outside of phases',
               '%d instructions in an empty one' % empty)
    twice, once = phases['twice'], phases['%d-0' % CPU_NODES[-1]]
    ratio = twice.ns('user') / once.ns('user')
    tap.result(twice.times == 2 and 1.96 < ratio < 2.04, 'a phase of the same name is added',
               '%.3f times' % ratio)
    other = sum(p.misses()['other'] for p in phases.values())
    tap.result(other == 0, 'all memory belongs to a node', '%d misses do not' % other)


def check_layout(tap):
    """Above the hole, in both ways to name it."""
    described = model.machines.parse(MACHINE, 'test')
    mib = 1 << 20
    physical = [(0, 512, 0), (512, 1472, 1), (1984, 64, 2), (4096, 64, 2), (4160, 1024, 3)]
    offsets = [(2048, 64, 2), (2112, 1024, 3)]
    for api, wanted in ((4, physical), (1, physical + offsets)):
        found = [(a // mib, b // mib, n) for a, b, n in model.ranges(described, api)]
        tap.result(found == wanted, 'ranges for interface %d' % api, str(found))
    tap.result([model.api_of(v) for v in ((7, 2), (8, 2), (9, 2), (10, 0))] == [1, 1, 4, 4],
               'plugins by version of QEMU')


def main():
    kernel, folder = sys.argv[1:3]
    qemu = sys.argv[3] if len(sys.argv) > 3 else model.vm.QEMU
    tap = Tap()
    check_layout(tap)
    with tempfile.TemporaryDirectory(prefix='numalift-lab-') as tmp:
        path = os.path.join(tmp, 'split.machine')
        out = os.path.join(tmp, 'phases')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(MACHINE)
        described = model.load(path)
        try:
            more = model.guest_arguments(folder, described, out, qemu)
        except model.Trouble as e:
            return cannot(e)
        done = subprocess.run(
            [model.GUEST, '--qemu', qemu, '--kernel', kernel, '--machine', path, '--user', 'nobody',
             '--sysctl', 'kernel.numa_balancing=0'] + more + [
                 '--', os.path.join(os.path.abspath(folder), 'chase'), str(STEPS),
                 ','.join(map(str, CPU_NODES)), ','.join('%d:%d' % r for r in RINGS.items())],
            cwd=tmp, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode == 125:
            return cannot(done.stderr.strip())
        tap.result(done.returncode == 0, 'the chase runs', done.stderr.strip())
        phases = model.read(out)
        if done.returncode == 0:
            for source in CPU_NODES:
                for target in RINGS:
                    check_pair(tap, phases, described, source, target)
            check_rest(tap, phases)
    print('1..%d' % tap.number)
    return 1 if tap.failed else 0


def cannot(why):
    print('# no guest: %s' % why)
    return 1 if os.environ.get('CI') == 'true' else 77


if __name__ == '__main__':
    sys.exit(main())
