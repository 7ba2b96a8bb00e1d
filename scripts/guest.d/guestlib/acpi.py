"""The firmware tables that tell the guest's kernel of its nodes: SRAT, SLIT and HMAT.

QEMU can write such tables, but not with gaps in the node numbers, and where a node has no memory the
kernel rejects its HMAT. The kernel takes tables from the head of the initramfs instead of, or beside, the
firmware's (CONFIG_ACPI_TABLE_UPGRADE), so that the description alone decides.

Linux numbers nodes in the order in which their ids (proximity domains) first appear in the SRAT, CPUs
before memory; an id that never appears makes no gap, the next one moves up. A CPU entry for every id, in
order, therefore keeps the ids as described. For nodes without CPUs it names a CPU that does not exist:
such a node is possible, and online only when it has memory.
"""

import struct

MIB = 1 << 20
GIB = 1 << 30
NO_SUCH_CPU = 0x80      # APIC ids from here on: more than there are CPUs, fewer than 255
ENABLED = 1
HOTPLUG = 2
LATENCY = 0
BANDWIDTH = 3
NS_IN_PS = 1000
LARGEST = 0xfffe        # 0xffff says unreachable


def layout(machine):
    """[(node id, start, length, hotplug)]: node after node, as q35 lays out its memory.

    All below 4 GiB when less than 2.75 GiB in all, else 2 GiB there and the rest from 4 GiB on;
    memory devices follow from the next GiB, each on a 1 GiB boundary.
    """
    total = machine.memory()
    low = total if total < 0xb0000000 else 2 * GIB
    ranges, at = [], 0
    for node in machine.in_order():
        left = node.mem
        while left:
            start, room = (at, low - at) if at < low else (4 * GIB + at - low, left)
            part = min(left, room)
            ranges.append((node.id, start, part, False))
            at += part
            left -= part
    start = -(-(4 * GIB + total - low) // GIB) * GIB
    for node in machine.in_order():
        if node.hotplug:
            ranges.append((node.id, start, node.hotplug, True))
            start += -(-node.hotplug // GIB) * GIB
    return ranges


def _table(signature, revision, body):
    # an own table replaces QEMU's of the same name only with the same id and a later revision
    head = struct.pack("<4sIBB6s8sI4sI", signature, 36 + len(body), revision, 0,
                       b"BOCHS ", b"BXPC    ", 2, b"NLFT", 1)
    total = sum(head) + sum(body)
    return head[:9] + bytes([-total & 0xff]) + head[10:] + body


def srat(machine):
    body = struct.pack("<IQ", 1, 0)
    apic = 0
    for ident in range(max(machine.nodes) + 1):
        node = machine.nodes.get(ident)
        count = node.cpus if node else 0
        for cpu in range(apic, apic + count) if count else [NO_SUCH_CPU + ident]:
            body += struct.pack("<BBBBIB3sI", 0, 16, ident, cpu, ENABLED, 0, b"\0\0\0", 0)
        apic += count
    for ident, start, length, hotplug in layout(machine):
        body += struct.pack("<BBIHQQIIQ", 1, 40, ident, 0, start, length, 0,
                            ENABLED | (HOTPLUG if hotplug else 0), 0)
    return _table(b"SRAT", 3, body)


def slit(machine):
    ids = range(max(machine.nodes) + 1)
    cells = bytes(machine.distance(a, b) for a in ids for b in ids)
    return _table(b"SLIT", 1, struct.pack("<Q", len(ids)) + cells)


def hmat(machine):
    """None when the description says nothing of latency and bandwidth."""
    if not machine.has_hmat():
        return None
    sources = [n.id for n in machine.in_order() if n.cpus]
    # a node that never has memory is no target, the kernel would reject the whole table
    targets = [n.id for n in machine.in_order() if n.mem or n.hotplug]
    body = struct.pack("<I", 0)
    for ident in targets:
        body += struct.pack("<HHIHHIIIQQ", 0, 0, 40, 1, 0, machine.initiator(ident), ident, 0, 0, 0)
    for kind, what in ((LATENCY, "latency"), (BANDWIDTH, "bandwidth")):
        values = [machine.access(what, a, b) for a in sources for b in targets]
        unit = -(-max(values) // LARGEST)
        part = struct.pack("<BBBBIIIQ", 0, kind, 0, 0, len(sources), len(targets), 0,
                           unit * NS_IN_PS if kind == LATENCY else unit)
        part += struct.pack("<%dI" % (len(sources) + len(targets)), *(sources + targets))
        part += struct.pack("<%dH" % len(values), *(max(1, v // unit) for v in values))
        body += struct.pack("<HHI", 1, 0, 8 + len(part)) + part
    return _table(b"HMAT", 2, body)


def tables(machine):
    """[(name, bytes)] of all that the machine needs."""
    named = (("srat", srat(machine)), ("slit", slit(machine)), ("hmat", hmat(machine)))
    return [(n, t) for n, t in named if t]
