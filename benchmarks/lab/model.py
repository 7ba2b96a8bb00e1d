# SPDX-License-Identifier: MIT
"""The cost model's side here: its arguments from a machine description, and its figures.

What the figures mean is said in README.md, how they come about in cost_model.c.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
GUEST = os.path.join(HERE, '..', '..', 'scripts', 'guest')
sys.path.insert(0, os.path.join(HERE, '..', '..', 'scripts', 'guest.d'))

from guestlib import GuestError, acpi, machine as machines, vm  # noqa: E402

GIB = 1 << 30


class Trouble(Exception):
    """Why nothing can be modelled here, in one sentence."""


def load(path):
    """A machine description, from a file."""
    try:
        with open(path, encoding='utf-8') as f:
            return machines.parse(f.read(), path)
    except (OSError, GuestError) as e:
        raise Trouble(str(e)) from None


def qemu_version(qemu=vm.QEMU):
    try:
        text = subprocess.run([qemu, '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as e:
        raise Trouble('%s: %s' % (qemu, e)) from None
    found = re.search(r'version (\d+)\.(\d+)', text)
    if not found:
        raise Trouble('%s --version: no version in "%s"' % (qemu, text.strip()))
    return int(found.group(1)), int(found.group(2))


def api_of(version):
    """Which plugin fits. In between there were interfaces that nobody packaged."""
    if version >= (9, 2):
        return 4
    if version < (9, 0):
        return 1
    raise Trouble('QEMU %d.%d: plugins are there for versions up to 8.2, and from 9.2 on' % version)


def ranges(described, api):
    """[(start, length, node)] of what the plugin sees as addresses.

    With interface 1 QEMU 7.2 gives the place within the guest's memory, which is the physical address
    only below the hole under 4 GiB; what lies above it is therefore named in both ways, where they
    cannot be confused.
    """
    layout = acpi.layout(described)
    if any(hotplug for _, _, _, hotplug in layout):
        raise Trouble('%s: memory that can be unplugged has no place in the model' % described.name)
    physical = [(start, length, node) for node, start, length, _ in layout]
    if api > 1:
        return physical
    offset, at = [], 0
    for _, length, node in physical:
        offset.append((at, length, node))
        at += length
    if at > 4 * GIB:
        return offset
    return physical + [r for r in offset if r not in physical]


def arguments(described, out, api, cache_kib=1024, ways=8, cpi_ns=0.33, frames=None):
    """What follows the file's name in QEMU's -plugin."""
    if not described.has_hmat():
        raise Trouble('%s: the model needs latency= and bandwidth=' % described.name)
    for path in (out, frames or ''):
        if ',' in path:
            raise Trouble("'%s': a comma in a path ends an argument of QEMU" % path)
    words = ['out=' + out, 'cache=%d' % cache_kib, 'ways=%d' % ways, 'cpi=%g' % cpi_ns]
    if frames:
        words.append('frames=' + frames)
    words += ['range=%#x:%#x:%d' % r for r in ranges(described, api)]
    cpu = 0
    for node in described.in_order():
        for _ in range(node.cpus):
            words.append('cpu=%d:%d' % (cpu, node.id))
            cpu += 1
    for source in described.in_order():
        for target in described.in_order():
            if source.cpus and target.mem:
                words.append('latency=%d:%d:%d' % (
                    source.id, target.id, described.access('latency', source.id, target.id)))
    return words


def guest_arguments(folder, described, out, qemu=vm.QEMU, **more):
    """For scripts/guest: the plugin in `folder` that fits, with its arguments."""
    api = api_of(qemu_version(qemu))
    path = os.path.join(os.path.abspath(folder), 'cost_model-%d.so' % api)
    if not os.path.exists(path):
        raise Trouble('%s is missing: ninja -C build' % path)
    return ['--qemu-arg=-plugin', '--qemu-arg=' + ','.join(
        ['file=' + path] + arguments(described, out, api, **more))]


class Phase:
    """One line of the plugin's file."""

    def __init__(self, fields):
        self.name = fields['phase']
        self.times = fields['times']
        self.open = fields['open']
        self.cpus = fields['cpus']

    def instructions(self, mode):
        return sum(c['instructions'][mode] for c in self.cpus)

    def ns(self, mode=None):
        return sum(c['ns'][m] for c in self.cpus for m in ((mode,) if mode else ('user', 'kernel')))

    def misses(self, mode=None):
        """{node or 'other': misses}"""
        ret = {}
        for c in self.cpus:
            for node, counts in c['misses'].items():
                key = int(node) if node.isdigit() else node
                ret[key] = ret.get(key, 0) + sum(
                    n for kind, n in counts.items() if mode is None or kind.startswith(mode))
        return ret


def read(path):
    """{name: Phase} in the order in which they began."""
    try:
        with open(path, encoding='utf-8') as f:
            phases = [Phase(json.loads(line)) for line in f]
    except OSError as e:
        raise Trouble('%s: %s' % (path, e.strerror)) from None
    return {p.name: p for p in phases}


def frames(path, described):
    """{page frame: misses}, by the numbers that the guest's kernel has for them."""
    layout = [(start >> 12, length >> 12) for _, start, length, _ in acpi.layout(described)]

    def physical(frame):
        if any(start <= frame < start + length for start, length in layout):
            return frame
        at = 0      # then it is the place within memory, see ranges()
        for start, length in layout:
            if at <= frame < at + length:
                return start + frame - at
            at += length
        return frame

    with open(path, encoding='utf-8') as f:
        return {physical(int(frame, 16)): int(count) for frame, count in (line.split() for line in f)}
