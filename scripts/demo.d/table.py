#!/usr/bin/env python3
"""Usage: table.py FOLDER. Prints where memory lies from what demo.d/measure left in FOLDER, what the
library decided, and whether that is what the policy promises. Status 1 when it is not, 2 when the
folder has not got what it takes."""

import collections
import json
import os
import re
import sys

LARGE = 16 << 20        # from here on a block of malloc is a mapping of its own, of class anon
CLASSES = ('slab', 'anon', 'file')
NAMES = {'slab': 'slab: heap', 'anon': 'anon: large blocks', 'file': 'file: tmpfs'}
RUNS = (('malloc', 'items in blocks from malloc'), ('file', 'items in a file on tmpfs'))
TOLERANCE = 2.0         # per cent of the whole
MIB = 1 << 20


class Decision:
    """One line of the library's log at level info."""

    LINE = re.compile(r'numalift: (\w+) (\d+) bytes at 0x([0-9a-f]+): (\w+), (\d+) mappings \((.*)\)$')

    def __init__(self, match):
        self.cls = match.group(1)
        self.bytes = int(match.group(2))
        self.start = int(match.group(3), 16)
        self.how = match.group(4)
        self.mappings = int(match.group(5))
        self.why = match.group(6)


def lines(folder, name):
    with open(os.path.join(folder, name), encoding='utf-8', errors='replace') as f:
        return f.read().splitlines()


def mappings(folder, name):
    """[(start, end, rights, path)]"""
    found = []
    for line in lines(folder, name):
        fields = line.split(None, 5)
        start, end = (int(x, 16) for x in fields[0].split('-'))
        found.append((start, end, fields[1], fields[5] if len(fields) > 5 else ''))
    return found


def decisions(folder, run):
    log = lines(folder, run + '.log')
    return [Decision(m) for m in map(Decision.LINE.match, log) if m], \
        [line for line in log if line.startswith('numalift: ') and not Decision.LINE.match(line)]


def class_of(start, end, path, known):
    """None for what no class is about: the program itself, its libraries and stacks. `known` are ranges
    of a class: [(start, end, class)]; the kernel may have joined one with small neighbours."""
    if path.startswith('/dev/shm/'):
        return 'file'
    if path not in ('', '[heap]'):
        return None
    shared = collections.Counter()
    for first, last, cls in known:
        shared[cls] += max(0, min(end, last) - max(start, first))
    for cls, size in shared.most_common(1):
        if size > (end - start) // 2:
            return cls
    return 'slab'


def spread(folder, run):
    """{class: {node: bytes}}"""
    decided, _ = decisions(folder, run)
    places = {start: (end, path) for start, end, _, path in mappings(folder, run + '.maps')}
    known = [(d.start, d.start + d.bytes, d.cls) for d in decided]
    if not run.startswith('with-'):
        # Before the keys come, a mapping of this size is one block; later ones grow together.
        known = [(start, end, 'anon') for start, end, rights, path in mappings(folder, run + '.early')
                 if rights == 'rw-p' and not path and end - start >= LARGE]
    result = {cls: collections.Counter() for cls in CLASSES}
    for line in lines(folder, run + '.numa_maps'):
        start = int(line.split()[0], 16)
        end, path = places.get(start, (start, '?'))
        cls = class_of(start, end, path, known)
        size = re.search(r'kernelpagesize_kB=(\d+)', line)
        if cls and size:
            for node, pages in re.findall(r' N(\d+)=(\d+)', line):
                result[cls][int(node)] += int(pages) * int(size.group(1)) << 10
    return result


def describe(topology):
    """The nodes with memory, and which of them are the fastest tier."""
    nodes = [n for n in topology['nodes'] if n['total_bytes']]
    best = min(n['tier'] for n in nodes if n['tier'] is not None)
    for n in nodes:
        n['fast'] = n['tier'] == best
        cpus = n['cpus'] or 'none'
        print('  node %d: %5d MiB, CPUs %s, %s' % (n['id'], n['total_bytes'] // MIB, cpus,
                                                  'fast' if n['fast'] else 'slow'))
    return nodes


def print_table(nodes, runs):
    width = 9 * len(nodes)
    print('%-22s  %-*s  %s' % ('MiB', width, 'without numalift', 'with numalift'))
    heads = ''.join('%9s' % ('node %d' % n['id']) for n in nodes)
    print('%-22s  %s  %s' % ('class', heads, heads))
    for name, title in RUNS:
        print('memcached, %s' % title)
        for cls in CLASSES:
            cells = [''.join('%9.1f' % (runs[mode, name][cls][n['id']] / MIB) for n in nodes)
                     for mode in ('without', 'with')]
            print('  %-20s  %s  %s' % (NAMES[cls], cells[0], cells[1]))


def print_decisions(folder):
    for name, title in RUNS:
        print('memcached, %s' % title)
        decided, said = decisions(folder, 'with-' + name)
        groups = collections.OrderedDict()
        for d in decided:
            groups.setdefault((d.cls, d.how, d.why), []).append(d)
        for (cls, how, why), group in groups.items():
            ranges = '%d range%s' % (len(group), 's' if len(group) > 1 else '')
            print('  %-4s %6.1f MiB in %s: %s, %d mappings: %s' % (
                cls, sum(d.bytes for d in group) / MIB, ranges,
                'spread in chunks' if how == 'chunks' else 'one policy each' if how == 'nodes'
                else 'left to the kernel', sum(d.mappings for d in group), why))
        for line in said:
            print('  ' + line)


def check(nodes, runs):
    """Prints each promise with what came of it; True when all hold."""
    fast = {n['id']: n['total_bytes'] for n in nodes if n['fast']}
    good = True

    def promise(holds, text):
        nonlocal good
        good = good and holds
        print('  %-3s %s' % ('yes' if holds else 'NO', text))

    tmpfs = runs['with', 'file']['file']
    total = sum(tmpfs.values())
    promise(total > 64 * MIB, 'the items in the tmpfs file are there: %.1f MiB' % (total / MIB))
    if len(fast) > 1 and total:
        worst = max(abs(100.0 * tmpfs[n] / total - 100.0 * size / sum(fast.values()))
                    for n, size in fast.items())
        promise(worst <= TOLERANCE,
                'file: over the fast nodes (%s) in proportion to their sizes; off by %.1f %%, allowed'
                ' %.0f %%' % (', '.join(map(str, fast)), worst, TOLERANCE))
    for name, _ in RUNS:
        run = runs['with', name]
        local = sum((run[cls] for cls in ('slab', 'anon')), collections.Counter())
        share = 100.0 * sum(local[n] for n in fast) / max(1, sum(local.values()))
        promise(share >= 99.0, 'slab and anon: on the fast nodes, where there is room; %.1f %% of '
                '%.1f MiB (items in %s)' % (share, sum(local.values()) / MIB, name))
    return good


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, 'topology.json'), encoding='utf-8') as f:
        topology = json.load(f)
    print('\nThe machine')
    nodes = describe(topology)
    runs = {(mode, name): spread(folder, '%s-%s' % (mode, name))
            for mode in ('without', 'with') for name, _ in RUNS}
    print('\nWhere the memory lies')
    print_table(nodes, runs)
    print('\nWhat numalift decided')
    print_decisions(folder)
    print('\nAs promised?')
    return 0 if check(nodes, runs) else 1


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError, IndexError) as e:
        print('table.py: %s: %s' % (type(e).__name__, e), file=sys.stderr)
        sys.exit(2)
