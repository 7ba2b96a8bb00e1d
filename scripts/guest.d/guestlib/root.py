"""The guest's root: an initramfs archive (cpio, newc) of named files, their libraries and a base.

Built in memory on every call. Paths are those of the host; a link on the way is kept as a link, so that
/lib/x.so.1 in the guest leads where it leads on the host.
"""

import os
import re
import shutil
import stat
import subprocess

from . import GuestError

# /bin and its like are links into /usr in the guest whatever the host does
MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
BASE_DIRS = ("dev", "etc", "home", "home/user", "mnt", "out", "proc", "root", "run", "sys", "tmp",
             "usr", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/local", "usr/local/bin",
             "usr/share", "var", "var/lib", "var/log", "var/tmp", ".guest")
USERS = (("root", 0, "/root"), ("nobody", 65534, "/nonexistent"), ("user", 1000, "/home/user"),
         ("memcache", 101, "/nonexistent"), ("mysql", 102, "/var/lib/mysql"))
ETC = {
    "etc/passwd": "".join("%s:x:%d:%d:%s:%s:/bin/sh\n" % (n, i, i, n, h) for n, i, h in USERS),
    "etc/group": "".join("%s:x:%d:\n" % ("nogroup" if n == "nobody" else n, i)
                         for n, i, _ in USERS),
    "etc/shadow": "".join("%s:*:19000:0:99999:7:::\n" % n for n, _, _ in USERS),
    "etc/hosts": "127.0.0.1\tlocalhost guest\n::1\tlocalhost\n",
    "etc/hostname": "guest\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    "etc/shells": "/bin/sh\n",
}
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# what the guest makes itself: arguments under these are not the host's files
NOT_FROM_HOST = ("/proc/", "/sys/", "/dev/", "/out/", "/.guest/")


class Root:
    """Entries by guest path (no leading slash): ("dir", mode) ("link", target)
    ("file", mode, path on the host) ("data", mode, bytes)."""

    def __init__(self, ldd_env=None):
        self.entries = {}
        self.ldd_env = ldd_env or {}
        self.elf_done = set()
        for d in BASE_DIRS:
            self.entries[d] = ("dir", 0o1777 if d in ("tmp", "var/tmp", "out") else 0o755)
        for name, target in MERGED.items():
            self.entries[name] = ("link", target)
        for name, text in ETC.items():
            self.entries[name] = ("data", 0o640 if name == "etc/shadow" else 0o644, text.encode())

    def data(self, path, content, mode=0o644):
        self._parents(path)
        self.entries[path] = ("data", mode, content)

    def directory(self, path, mode=0o755):
        """A folder at the absolute path, links on the way followed as the guest will."""
        self._place(path, ("dir", mode))

    def busybox(self):
        """busybox-static under every name it has, where no host program is put later."""
        path = shutil.which("busybox", path=host_path())
        if not path:
            raise GuestError("busybox is missing: apt-get install busybox-static")
        if read_elf(path)[1]:
            raise GuestError("%s needs shared libraries: apt-get install busybox-static" % path)
        self.entries["usr/bin/busybox"] = ("file", 0o755, path)
        names = subprocess.run([path, "--list"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split()
        for name in names:
            if "/" not in name and name != "busybox":
                self.entries.setdefault("usr/bin/" + name, ("link", "busybox"))
        return set(names)

    def add(self, source, dest=None):
        """A file with its libraries, or a whole folder, at dest (default: its own path)."""
        source = os.path.abspath(source)
        if not os.path.lexists(source):
            raise GuestError("--add '%s': no such file or folder" % source)
        elves = []
        if dest is None:
            self._host(source)
            dest = source
        elif not os.path.isdir(source):
            if dest.endswith("/"):
                dest += os.path.basename(source)
            self._place(dest, self._file_entry(os.path.realpath(source)))
        if os.path.isdir(source):
            self._tree(source, dest, elves)
        else:
            elves.append(os.path.realpath(source))
        self.libraries(elves, strict=not os.path.isdir(source))
        if not os.path.isdir(source):
            self._script(source)

    def tool(self, name, package):
        """A program that this script itself needs in the guest; its path."""
        path = shutil.which(name, path=host_path())
        if not path:
            raise GuestError("%s is missing: apt-get install %s" % (name, package))
        self.add(path)
        return path

    def program_path(self, word, folder):
        """Where the guest finds this first word of a command; None when it will not."""
        if "/" in word:
            places = [os.path.normpath(os.path.join(folder, word))]
        else:
            places = [os.path.join(d, word) for d in GUEST_PATH.split(":")]
        return next((p for p in places if self._find(p)), None)

    def _find(self, path):
        for _ in range(40):
            path = self._resolve(path)
            entry = self.entries.get(path)
            if not entry or entry[0] != "link":
                return entry is not None and entry[0] != "dir"
            path = os.path.join("/" + os.path.dirname(path), entry[1])
        return False

    def _script(self, path):
        """The interpreter named in a first line '#!...' is needed as well."""
        with open(path, "rb") as f:
            first = f.readline(256)
        if not first.startswith(b"#!"):
            return
        words = os.fsdecode(first[2:]).split()
        for word in words[:1]:
            if os.path.basename(word) == "env":
                found = next((shutil.which(w, path=host_path()) for w in words[1:]
                              if not w.startswith("-") and "=" not in w), None)
                if found:
                    self.add(found)
            if os.path.exists(word):
                self.add(word)

    def libraries(self, paths, strict=True):
        """Adds what ldd names for these ELF files (absolute paths, links resolved)."""
        fresh = []
        for p in paths:
            if p not in self.elf_done and os.path.isfile(p):
                self.elf_done.add(p)
                if read_elf(p)[1]:
                    fresh.append(p)
        for start in range(0, len(fresh), 200):
            for needed, where, owner in self._ldd(fresh[start:start + 200]):
                if where:
                    self._host(where)
                elif strict:
                    raise GuestError("%s needs %s, which the loader does not find; install it, or name "
                                     "its folder with --env LD_LIBRARY_PATH=DIR" % (owner, needed))

    def _ldd(self, paths):
        """[(name, path or None, owner)] for all libraries and the ELF interpreter."""
        env = {"PATH": host_path(), "LC_ALL": "C"}
        env.update(self.ldd_env)
        try:
            out = subprocess.run(["ldd"] + paths, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 stdin=subprocess.DEVNULL, text=True, errors="surrogateescape",
                                 env=env).stdout
        except FileNotFoundError:
            raise GuestError("ldd is missing: apt-get install libc-bin") from None
        found, owner = [], paths[0]
        for line in out.split("\n"):
            if line and not line[0].isspace():
                owner = line.rstrip(":")
                continue
            m = re.match(r"\s+(\S.*?) => (not found|/.*?)(?: \(0x[0-9a-f]+\))?$", line) or \
                re.match(r"\s+(/.*?)()(?: \(0x[0-9a-f]+\))$", line)
            if m:
                where = m.group(2) or m.group(1)
                found.append((m.group(1), None if where == "not found" else where, owner))
        return found

    def _file_entry(self, path):
        st = os.stat(path)
        if not stat.S_ISREG(st.st_mode):
            raise GuestError("'%s' is not a file or a folder" % path)
        if st.st_size >= 1 << 32:
            raise GuestError("'%s' has 4 GiB or more, too much for an initramfs" % path)
        return ("file", stat.S_IMODE(st.st_mode) | 0o444, path)

    def _host(self, path, depth=0):
        """Puts the host's path into the root, link by link. Returns nothing; folders come empty."""
        if depth > 40:
            raise GuestError("'%s': too many links" % path)
        walked = ""
        parts = [p for p in path.split("/") if p]
        for i, part in enumerate(parts):
            here = walked + "/" + part
            if walked == "" and part in MERGED:
                return self._host("/" + MERGED[part] + "".join("/" + p for p in parts[i + 1:])
                                  if os.path.exists("/" + MERGED[part] + "".join(
                                      "/" + p for p in parts[i + 1:]))
                                  else self._unmerged(path), depth + 1)
            if os.path.islink(here):
                target = os.readlink(here)
                self._link(here[1:], target)
                joined = os.path.normpath(os.path.join(walked or "/", target))
                return self._host("/".join([joined] + parts[i + 1:]), depth + 1)
            if os.path.isdir(here):
                self.entries.setdefault(here[1:], ("dir", 0o755))
            else:
                old = self.entries.get(here[1:])
                # busybox's link gives way to the host's program
                if old is None or old[0] == "link":
                    self.entries[here[1:]] = self._file_entry(here)
            walked = here
        return None

    def _unmerged(self, path):
        raise GuestError("'%s': /bin and /lib of this machine are not links into /usr; "
                         "such systems are not supported" % path)

    def _link(self, path, target):
        old = self.entries.get(path)
        if old is None or old[0] == "link":
            self.entries[path] = ("link", target)

    def _tree(self, source, dest, elves):
        self._place(dest, ("dir", 0o755))
        for folder, folders, names in os.walk(source):
            relative = os.path.relpath(folder, source)
            base = os.path.normpath(os.path.join(dest, relative))
            for name in folders + names:
                path = os.path.join(folder, name)
                st = os.lstat(path)
                where = os.path.join(base, name)
                if stat.S_ISLNK(st.st_mode):
                    self._place(where, ("link", os.readlink(path)))
                elif stat.S_ISDIR(st.st_mode):
                    self._place(where, ("dir", stat.S_IMODE(st.st_mode) | 0o555))
                elif stat.S_ISREG(st.st_mode):
                    self._place(where, self._file_entry(path))
                    elves.append(path)

    def _resolve(self, path):
        """Follows links among the entries, as the guest's kernel will."""
        for _ in range(40):
            parts = [p for p in os.path.normpath("/" + path).split("/") if p]
            for i in range(1, len(parts)):
                entry = self.entries.get("/".join(parts[:i]))
                if entry and entry[0] == "link":
                    path = os.path.join("/" + "/".join(parts[:i - 1]), entry[1], *parts[i:])
                    break
            else:
                return "/".join(parts)
        raise GuestError("'%s': too many links" % path)

    def _place(self, path, entry):
        path = self._resolve(path)
        if not path:
            return
        self._parents(path)
        old = self.entries.get(path)
        if entry[0] == "dir" and old and old[0] in ("dir", "link"):
            return
        self.entries[path] = entry

    def _parents(self, path):
        parts = path.split("/")
        for i in range(1, len(parts)):
            parent = "/".join(parts[:i])
            old = self.entries.setdefault(parent, ("dir", 0o755))
            if old[0] not in ("dir", "link"):
                raise GuestError("'/%s': '/%s' is a file in the guest" % (path, parent))

    def write(self, out):
        """The archive, to a binary file."""
        number = 0
        for path in sorted(self.entries):
            entry = self.entries[path]
            number += 1
            if entry[0] == "dir":
                _header(out, number, path, stat.S_IFDIR | entry[1], 0)
            elif entry[0] == "link":
                target = os.fsencode(entry[1])
                _header(out, number, path, stat.S_IFLNK | 0o777, len(target))
                out.write(target + b"\0" * (-len(target) % 4))
            else:
                if entry[0] == "data":
                    content = entry[2]
                else:
                    with open(entry[2], "rb") as f:
                        content = f.read()
                _header(out, number, path, stat.S_IFREG | entry[1], len(content))
                out.write(content)
                out.write(b"\0" * (-len(content) % 4))
        _header(out, 0, "TRAILER!!!", 0, 0)


def early(out, tables):
    """An archive of its own, at the very front, where the kernel looks for firmware tables."""
    for number, (name, content) in enumerate(tables, 1):
        _header(out, number, "kernel/firmware/acpi/%s.aml" % name, stat.S_IFREG | 0o444, len(content))
        out.write(content + b"\0" * (-len(content) % 4))
    _header(out, 0, "TRAILER!!!", 0, 0)


def _header(out, number, path, mode, size):
    name = os.fsencode(path) + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    out.write(b"070701" + b"".join(b"%08X" % v for v in (
        number, mode, 0, 0, links, 0, size, 0, 0, 0, 0, len(name), 0)))
    out.write(name + b"\0" * (-(110 + len(name)) % 4))


def read_elf(path):
    """(is ELF, needs a loader or libraries) from the program headers, without running anything."""
    with open(path, "rb") as f:
        head = f.read(64)
        if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] != 2 or head[5] != 1:
            return head[:4] == b"\x7fELF", False
        offset = int.from_bytes(head[32:40], "little")
        size = int.from_bytes(head[54:56], "little")
        count = int.from_bytes(head[56:58], "little")
        f.seek(offset)
        table = f.read(size * count)
    for i in range(count):
        header = table[i * size:(i + 1) * size]
        kind = int.from_bytes(header[:4], "little")
        if kind == 3 or (kind == 2 and not _static_pie(path, header)):
            return True, True
    return True, False


def _static_pie(path, header):
    """A dynamic section that needs no library (static-pie, or busybox built so)."""
    with open(path, "rb") as f:
        f.seek(int.from_bytes(header[8:16], "little"))
        section = f.read(int.from_bytes(header[32:40], "little"))
    for i in range(0, len(section) - 15, 16):
        tag = int.from_bytes(section[i:i + 8], "little")
        if tag == 0:
            break
        if tag == 1:
            return False
    return True


def host_path():
    """Where programs are looked for: the caller's PATH, and the places of system programs."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin",
                            "/usr/local/bin", "/usr/bin", "/bin"])


def programs_in(command, have):
    """Paths of the host's programs that a command names.

    The first word always; further words when they are paths of programs, or names that busybox has not
    got; inside a string for a shell (after -c) the same for each word of it.
    """
    found = []
    first = command[0]
    if "/" in first:
        if os.path.isfile(first) and not os.path.abspath(first).startswith(NOT_FROM_HOST):
            found.append(os.path.abspath(first))
    else:
        path = shutil.which(first, path=host_path())
        if path:
            found.append(path)
    for previous, word in zip(command, command[1:]):
        words = [word]
        if re.fullmatch(r"-[a-z]*c", previous):
            words = re.findall(r"[\w./+@%~-]+", word)
        for w in words:
            found += _program(w, have)
    return list(dict.fromkeys(found))


def shell_programs(text, have):
    return [p for w in re.findall(r"[\w./+@%~-]+", text) for p in _program(w, have)]


def _program(word, have):
    if "/" in word:
        path = os.path.abspath(word)
        if path.startswith(NOT_FROM_HOST) or not os.path.isfile(path):
            return []
        if os.access(path, os.X_OK) or read_elf(path)[0]:
            return [path]
        return []
    if not word or word.startswith("-") or word in have:
        return []
    path = shutil.which(word, path=host_path())
    return [path] if path else []
