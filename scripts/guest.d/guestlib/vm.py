"""One run of QEMU: starts it, relays its channels, and makes sure that it is gone afterwards.

Nothing is left behind even by SIGKILL: the archive is in an anonymous file, the channels are socket
pairs, and the kernel kills QEMU when this process dies.
"""

import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time

from . import GuestError, acpi

QEMU = "qemu-system-x86_64"
# QEMU before 8.1 computes cmpxchg16b's flags from stale state, and an interrupt at that moment brings a
# kernel down whose allocator uses it (6.12: every other boot). Without the fifth level of page tables a
# software page walk is shorter.
CPU = "max,la57=off,cx16=off"
CONSOLE_KEPT = 256 * 1024
BOOT_SECONDS = 180      # a boot takes about 5 s; a loaded machine is no reason to give up
PR_SET_PDEATHSIG = 1


class Timeout(Exception):
    pass


class Stopped(Exception):
    """A signal asked this process to end."""

    def __init__(self, number):
        super().__init__()
        self.number = number


class Channel:
    """A socket pair: QEMU's end is inherited, ours is read. Cuts the end mark off the stream."""

    def __init__(self, name, sink, mark=None):
        self.name = name
        self.ours, self.theirs = socket.socketpair()
        self.sink = sink
        self.mark = mark
        self.held = b""
        self.ended = False
        self.total = 0

    def feed(self, data):
        self.total += len(data)
        if not self.mark:
            self.sink(data)
            return
        data = self.held + data
        at = data.find(self.mark)
        if at >= 0:
            self.ended = True
            self.held = b""
            if at:
                self.sink(data[:at])
            return
        # pass on all but what may be the beginning of the mark
        keep = min(len(self.mark) - 1, len(data))
        while keep and not self.mark.startswith(data[-keep:]):
            keep -= 1
        cut = len(data) - keep
        self.held = data[cut:]
        if cut:
            self.sink(data[:cut])


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _own_group():
    # Ctrl-C reaches only this script, which then ends QEMU in order
    os.setpgid(0, 0)
    _die_with_parent()


class BootDied(GuestError):
    """The guest went off before anything of the command had begun."""


class Vm:
    """Runs once. status is the command's; console the last part of the console."""

    def __init__(self, qemu=QEMU):
        self.qemu = qemu
        self.console = b""
        self.process = None
        self.status = None
        self.failure = None
        self.ready_at = None
        self.started_at = None
        self._lines = b""

    def run(self, arguments, initrd, mark, sinks, interactive=False, verbose=False, console_file=None):
        """sinks: functions that take bytes for "out", "err" and, if wanted, "files"."""

        def console(data):
            self.console = (self.console + data)[-CONSOLE_KEPT:]
            if console_file:
                console_file.write(data)
            if verbose:
                sys.stderr.buffer.write(data)
                sys.stderr.buffer.flush()

        control = Channel("control", self._control)
        channels = [control]
        command = [self.qemu] + arguments + ["-initrd", "/dev/fd/%d" % initrd]
        if interactive:
            command += ["-chardev", "stdio,id=console,signal=off"]
        else:
            channels.append(Channel("console", console))
        marked = [] if interactive else \
            [Channel(n, sinks[n], mark) for n in ("out", "err", "files") if n in sinks]
        channels += marked
        for c in channels:
            command += ["-chardev", "socket,id=%s,fd=%d" % (c.name, c.theirs.fileno())]
        # a port without a reader would be missing in the guest, which waits for all four
        for name in ("out", "err", "files"):
            if name not in [c.name for c in channels]:
                command += ["-chardev", "null,id=" + name]
        command += ["-device", "isa-serial,chardev=console", "-device", "virtio-serial-pci"]
        for number, name in enumerate(("control", "out", "err", "files"), 1):
            command += ["-device", "virtserialport,nr=%d,chardev=%s" % (number, name)]
        self.started_at = time.monotonic()
        try:
            self.process = subprocess.Popen(
                command, pass_fds=[initrd] + [c.theirs.fileno() for c in channels],
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=None if interactive else subprocess.PIPE, stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent if interactive else _own_group)
        except FileNotFoundError:
            raise GuestError("%s is missing: apt-get install qemu-system-x86" % self.qemu) from None
        try:
            self._relay(control, channels, marked, interactive)
        finally:
            self.stop()
            for c in channels:
                c.ours.close()

    def _control(self, data):
        self._lines += data
        while b"\n" in self._lines:
            line, self._lines = self._lines.split(b"\n", 1)
            word, _, rest = line.partition(b" ")
            if word == b"ready":
                self.ready_at = time.monotonic()
            elif word == b"exit" and rest.isdigit():
                self.status = int(rest)
            elif word == b"fail":
                self.failure = rest.decode("utf-8", "replace")

    def _relay(self, control, channels, marked, interactive):
        said = b""
        with selectors.DefaultSelector() as selector:
            for c in channels:
                c.theirs.close()
                selector.register(c.ours, selectors.EVENT_READ, c)
            if self.process.stdout:
                selector.register(self.process.stdout, selectors.EVENT_READ, None)
            while True:
                done = self.failure is not None or (
                    self.status is not None and all(c.ended for c in marked))
                if done:
                    break
                wait = None
                if self.ready_at is None:
                    wait = self.started_at + BOOT_SECONDS - time.monotonic()
                    if wait <= 0:
                        raise GuestError("the guest did not come up within %d s%s"
                                         % (BOOT_SECONDS, self.console_tail()))
                for key, _ in selector.select(wait):
                    data = os.read(key.fd, 1 << 16) if key.data is None else _receive(key.data.ours)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.data is None:
                        said += data
                    else:
                        key.data.feed(data)
                if not any(k.data is control for k in selector.get_map().values()):
                    self.process.wait()
                    # what QEMU itself refuses, it says
                    booting = self.ready_at is None and self.process.returncode == 0
                    raise (BootDied if booting else GuestError)(self._died(said, interactive))
        # nothing on its disks, as it has none: the word is enough, and then it is off
        try:
            control.ours.sendall(b"off\n")
            self.process.wait(timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            pass

    def _died(self, said, interactive):
        text = said.decode("utf-8", "replace").strip()
        if self.process.returncode and text:
            return "%s ended with status %d:\n  %s" % (
                self.qemu, self.process.returncode, "\n  ".join(text.split("\n")[-8:]))
        if interactive:
            return "the guest went off by itself"
        return "the guest went off before the command's end%s" % self.console_tail()

    def console_tail(self):
        lines = [x.rstrip() for x in self.console.decode("utf-8", "replace").split("\n")]
        lines = [x for x in lines if x][-20:]
        if not lines:
            return ", and its console is empty"
        return "; the last lines of its console:\n  " + "\n  ".join(lines)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _receive(sock):
    try:
        return sock.recv(1 << 16)
    except ConnectionResetError:
        return b""


def qemu_arguments(machine, kernel, append):
    """All but the initramfs and the channels. QEMU knows of nodes only where memory devices need it."""
    memory, cpus = machine.memory(), machine.cpus()
    devices = [r for r in acpi.layout(machine) if r[3]]
    size = "%dM" % (memory >> 20)
    more = []
    if devices:
        # each may end up to a GiB after where it could, and QEMU keeps a GiB for each to align it
        size += ",slots=%d,maxmem=%dM" % (
            len(devices), (memory >> 20) + sum(-(-r[2] // acpi.GIB) for r in devices) * 1024)
        append = "memhp_default_state=online_movable " + append
        more = ["-object", "memory-backend-ram,id=ram,size=%dM" % (memory >> 20),
                "-numa", "node,nodeid=0,cpus=0-%d,memdev=ram" % (cpus - 1)]
        for ident in range(1, max(machine.nodes) + 1):
            more += ["-numa", "node,nodeid=%d" % ident]
        for ident, start, length, _ in devices:
            more += ["-object", "memory-backend-ram,id=dimm%d,size=%dM" % (ident, length >> 20),
                     "-device", "pc-dimm,id=unplug%d,memdev=dimm%d,node=%d,addr=%d"
                     % (ident, ident, ident, start)]
    return ["-machine", "q35",
            "-cpu", CPU, "-accel", "tcg,thread=multi",
            "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            # a socket for each CPU: the scheduler refuses one that spans nodes
            "-m", size, "-smp", "%d,sockets=%d,cores=1,threads=1" % (cpus, cpus),
            "-kernel", kernel, "-append", append] + more
