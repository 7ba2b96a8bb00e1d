"""Machine descriptions: the text format and what it says.

Knows nothing of firmware tables, kernels, roots or processes. Every complaint names file, line and word.
"""

import re

from . import GuestError

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
MAX_NODE = 63           # more would only slow the guest down
MAX_CPUS = 16           # software emulation: each CPU is a host thread
NODE_KEYS = {
    "mem": "a size such as 768M, or 0",
    "cpus": "a count from 0 to %d" % MAX_CPUS,
    "latency": "nanoseconds from 1 to 65535",
    "bandwidth": "MB/s from 1 to 1000000",
    "initiator": "the id of the node whose CPUs reach it first",
    "hotplug": "a size such as 256M: memory on a device that can be unplugged",
}
STATEMENTS = {
    "node": "node ID mem=SIZE [cpus=N] [latency=NS] [bandwidth=MBS] [initiator=ID] [hotplug=SIZE]",
    "distance": "distance A B N",
    "latency": "latency FROM TO NS",
    "bandwidth": "bandwidth FROM TO MBS",
}


class Node:
    def __init__(self, ident):
        self.id = ident
        self.mem = 0
        self.cpus = 0
        self.latency = None
        self.bandwidth = None
        self.initiator = None
        self.hotplug = 0
        self.line = 0


class Machine:
    """nodes by id, and the pairs that were given; check() fills in what was left out."""

    def __init__(self, name):
        self.name = name
        self.nodes = {}
        self.pairs = {"distance": {}, "latency": {}, "bandwidth": {}}

    def in_order(self):
        return [self.nodes[i] for i in sorted(self.nodes)]

    def online(self):
        """The ids that the kernel is to show, as it writes them: 0-1,4."""
        runs = []
        for n in self.in_order():
            if runs and runs[-1][1] == n.id - 1:
                runs[-1][1] = n.id
            else:
                runs.append([n.id, n.id])
        return ",".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in runs)

    def memory(self):
        return sum(n.mem for n in self.nodes.values())

    def cpus(self):
        return sum(n.cpus for n in self.nodes.values())

    def has_hmat(self):
        return any(n.latency for n in self.nodes.values())

    def distance(self, a, b):
        given = self.pairs["distance"]
        if (a, b) in given:
            return given[a, b]
        if (b, a) in given:
            return given[b, a]
        return 10 if a == b else 20

    def initiator(self, ident):
        """The node with CPUs that stands nearest."""
        node = self.nodes[ident]
        if node.cpus:
            return ident
        if node.initiator is not None:
            return node.initiator
        with_cpus = [i for i in sorted(self.nodes) if self.nodes[i].cpus]
        return min(with_cpus, key=lambda i: self.distance(i, ident))

    def access(self, what, source, target):
        """What the nearest CPUs see, grown with the distance for the others, unless given."""
        given = self.pairs[what].get((source, target))
        if given:
            return given
        best = getattr(self.nodes[target], what)
        near = self.distance(self.initiator(target), target)
        far = max(near, self.distance(source, target))
        value = best * far // near if what == "latency" else best * near // far
        return max(1, min(value, 65535 if what == "latency" else value))


def parse_size(word):
    m = re.fullmatch(r"(\d{1,9})([KMG]?)", word)
    if not m or (not m.group(2) and int(m.group(1)) != 0):
        return None
    return int(m.group(1)) * UNITS.get(m.group(2), 1)


def parse_count(word, low, high):
    if not re.fullmatch(r"\d{1,9}", word) or not low <= int(word) <= high:
        return None
    return int(word)


def _value(key, word):
    if key in ("mem", "hotplug"):
        size = parse_size(word)
        # QEMU builds memory from 1 MiB steps, and Linux takes in hotplugged memory by 128 MiB blocks
        step = UNITS["M"] if key == "mem" else 128 * UNITS["M"]
        return None if size is None or size % step else size
    if key == "cpus":
        return parse_count(word, 0, MAX_CPUS)
    if key == "latency":
        return parse_count(word, 1, 65535)
    if key == "bandwidth":
        return parse_count(word, 1, 1000000)
    return parse_count(word, 0, MAX_NODE)


def parse(text, name):
    """Turns a description into a Machine; GuestError on the first fault."""
    machine = Machine(name)
    number = 0

    def bad(word, expected):
        raise GuestError("%s:%d: '%s': expected %s" % (name, number, word, expected))

    def ident(word, known=True):
        value = parse_count(word, 0, MAX_NODE)
        if value is None:
            bad(word, "a node id from 0 to %d" % MAX_NODE)
        if known and value not in machine.nodes:
            bad(word, "a node described above (%s)" % (
                ", ".join(str(i) for i in sorted(machine.nodes)) or "there is none"))
        return value

    for number, line in enumerate(text.split("\n"), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        verb = words[0]
        if verb not in STATEMENTS:
            bad(verb, "one of %s" % ", ".join(STATEMENTS))
        if verb == "node":
            if len(words) < 2:
                bad(verb, STATEMENTS[verb])
            node = Node(ident(words[1], known=False))
            node.line = number
            if node.id in machine.nodes:
                bad(words[1], "an id that line %d has not taken" % machine.nodes[node.id].line)
            seen = set()
            for word in words[2:]:
                key, equals, value = word.partition("=")
                if not equals or key not in NODE_KEYS:
                    bad(word, "one of %s" % ", ".join(k + "=" for k in NODE_KEYS))
                if key in seen:
                    bad(word, "%s= once in a line" % key)
                seen.add(key)
                parsed = _value(key, value)
                if parsed is None:
                    hint = NODE_KEYS[key]
                    if key == "hotplug":
                        hint += ", a multiple of 128M"
                    elif key == "mem":
                        hint += " (with K, M or G; whole MiB)"
                    bad(word, hint)
                setattr(node, key, parsed)
            if "mem" not in seen:
                bad(line.strip(), "mem=SIZE (mem=0 for a node without memory)")
            machine.nodes[node.id] = node
            continue
        if len(words) != 4:
            bad(line.strip(), STATEMENTS[verb])
        a, b = ident(words[1]), ident(words[2])
        if verb == "distance":
            low, high, text_range = (10, 10, "10 from a node to itself") if a == b else \
                (11, 254, "a distance from 11 to 254")
        elif verb == "latency":
            low, high, text_range = 1, 65535, NODE_KEYS["latency"]
        else:
            low, high, text_range = 1, 1000000, NODE_KEYS["bandwidth"]
        value = parse_count(words[3], low, high)
        if value is None:
            bad(words[3], text_range)
        if verb != "distance" and not machine.nodes[a].cpus:
            bad(words[1], "a node with CPUs, as %ss are those that CPUs see" % verb)
        if (a, b) in machine.pairs[verb]:
            bad(line.strip(), "each %s once" % verb)
        machine.pairs[verb][a, b] = value
    _check(machine)
    return machine


def _check(machine):
    """Rules that need the whole description; each names the line of the node it is about."""

    def bad(node, text):
        raise GuestError("%s:%d: node %d: %s" % (machine.name, node.line, node.id, text))

    if not machine.nodes:
        raise GuestError("%s: describes no node; at least 'node 0 mem=512M cpus=1'" % machine.name)
    nodes = machine.in_order()
    if not machine.cpus():
        bad(nodes[0], "some node needs cpus=1 or more")
    if machine.cpus() > MAX_CPUS:
        bad(nodes[-1], "%d CPUs in all, %d are possible" % (machine.cpus(), MAX_CPUS))
    if machine.memory() < 256 * UNITS["M"]:
        bad(nodes[0], "mem= of all nodes is %d MiB, the guest needs 256M" % (machine.memory() >> 20))
    first_cpu = min(n.id for n in nodes if n.cpus)
    if not nodes[0].mem:
        bad(nodes[0], "the first node needs memory, the kernel is loaded there")
    if first_cpu != nodes[0].id:
        bad(nodes[0], "the first node needs a CPU, the guest boots there")
    rated = [n for n in nodes if n.latency or n.bandwidth]
    for node in nodes:
        if not (node.mem or node.cpus or node.hotplug):
            bad(node, "has neither memory nor CPUs; leave the line out for a gap in the numbers")
        if bool(node.latency) != bool(node.bandwidth):
            bad(node, "latency= and bandwidth= go together")
        if rated and not node.latency:
            bad(node, "latency= and bandwidth= are for every node or for none (node %d has them)"
                % rated[0].id)
        if node.initiator is not None:
            if node.initiator not in machine.nodes or not machine.nodes[node.initiator].cpus:
                bad(node, "initiator=%d: expected a node with CPUs" % node.initiator)
            if node.cpus and node.initiator != node.id:
                bad(node, "initiator=%d: a node with CPUs is its own initiator" % node.initiator)
    for what in ("latency", "bandwidth"):
        if machine.pairs[what] and not rated:
            bad(nodes[0], "needs latency= and bandwidth=, as %s lines are given" % what)
