"""Kernels: which suites have them, fetching into the cache once, and their modules.

The only user of apt and of the network. The system's own apt state is never written: lists, archives
and the source line are in the cache, and what is fetched is checked with the installed archive keyring.
"""

import contextlib
import fcntl
import lzma
import os
import re
import shutil
import subprocess
import tempfile

from . import GuestError

SUITES = {"6.1": "bookworm", "6.12": "bookworm-backports", "newest": "trixie-backports"}
META = "linux-image-cloud-amd64"        # always depends on the current image of its suite
KEYRINGS = ("/usr/share/keyrings/debian-archive-keyring.gpg",
            "/usr/share/keyrings/debian-archive-keyring.pgp")


def cache_dir():
    own = os.environ.get("NUMALIFT_CACHE")
    if own:
        return os.path.abspath(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "numalift")


class Kernel:
    """An image, its release, and the folder of its modules (None where there is none)."""

    def __init__(self, image, release, modules):
        self.image = image
        self.release = release
        self.modules = modules

    def bootable(self):
        """The image as QEMU gets it: unpacked, where that can be done and kept.

        An emulated CPU takes as long to unpack a kernel as to start it.
        """
        # Elsewhere a file of that name is somebody else's.
        if not self.image.startswith(os.path.join(os.path.realpath(cache_dir()), "")):
            return self.image
        plain = os.path.join(os.path.dirname(self.image), "vmlinux")
        if os.path.isfile(plain):
            return plain
        try:
            data = _unpacked(self.image)
            if data is None:
                return self.image
            with tempfile.NamedTemporaryFile(dir=os.path.dirname(plain), delete=False) as f:
                f.write(data)
            os.chmod(f.name, 0o644)
            os.rename(f.name, plain)    # another call may do the same
            return plain
        except OSError:
            return self.image

    def module_files(self, names):
        """Contents of the named modules and what they need, in loading order; [(name, bytes)].

        A name that has no file is built in, or unknown; the second list holds those.
        """
        files = {}
        for folder, _, names_here in os.walk(self.modules) if self.modules else ():
            for name in names_here:
                m = re.fullmatch(r"(.+)\.ko(\.xz|\.zst)?", name)
                if m:
                    files[m.group(1).replace("-", "_")] = os.path.join(folder, name)
        done, missing, order = set(), [], []

        def visit(name):
            name = name.replace("-", "_")
            if name in done:
                return
            done.add(name)
            if name not in files:
                missing.append(name)
                return
            data = _read_module(files[name])
            # depends= in .modinfo is what depmod reads too; the packages come without modules.dep
            m = re.search(rb"\0depends=([^\0]*)\0", data)
            for needed in (m.group(1).decode().split(",") if m and m.group(1) else ()):
                visit(needed)
            order.append((name, data))

        for name in names:
            visit(name)
        return order, missing


def _read_module(path):
    if path.endswith(".xz"):
        with lzma.open(path) as f:
            return f.read()
    if path.endswith(".zst"):
        try:
            return subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout
        except FileNotFoundError:
            raise GuestError("%s needs zstd: apt-get install zstd" % path) from None
    with open(path, "rb") as f:
        return f.read()


# Of what a bzImage holds: how it begins, and what unpacks it.
PACKED = ((b"\x28\xb5\x2f\xfd", ["zstd", "-dcq"]), (b"\x02\x21\x4c\x18", ["lz4", "-dcq"]),
          (b"\xfd7zXZ\0", ["xz", "-dcq"]), (b"\x1f\x8b", ["gzip", "-dcq"]))
# The note by which an ELF file says where it is entered without a boot loader (CONFIG_PVH).
ENTRY = re.compile(rb"\x04\0\0\0[\x04\x08]\0\0\0\x12\0\0\0Xen\0")


def _unpacked(path):
    """The ELF file in a bzImage (Documentation/arch/x86/boot.rst).

    None: it cannot be had, or not be started.
    """
    with open(path, "rb") as f:
        data = f.read()
    if int.from_bytes(data[0x206:0x208], "little") < 0x208:
        return None
    start = ((data[0x1f1] or 4) + 1) * 512 + int.from_bytes(data[0x248:0x24c], "little")
    packed = data[start:start + int.from_bytes(data[0x24c:0x250], "little")]
    size = int.from_bytes(packed[-4:], "little")    # behind the packed data; of gzip it is its own
    for magic, command in PACKED:
        if packed.startswith(magic):
            try:
                done = subprocess.run(command, input=packed if magic[0] == 0x1f else packed[:-4],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            except FileNotFoundError:
                return None
            ok = done.returncode == 0 and len(done.stdout) == size and ENTRY.search(done.stdout)
            return done.stdout if ok else None
    return None


def find(name, say=lambda text: None):
    """The Kernel for 6.1, 6.12, newest (fetched when not cached) or for the path of an image."""
    if name not in SUITES:
        return _from_path(name)
    return _cached(name) or fetch(name, say)


def _from_path(path):
    if "/" not in path and not os.path.exists(path):
        raise GuestError("--kernel '%s': expected %s, or the path of a kernel image"
                         % (path, ", ".join(SUITES)))
    if not os.path.isfile(path):
        raise GuestError("--kernel '%s': no such file" % path)
    path = os.path.realpath(path)
    release = _image_release(path)
    for modules in (os.path.join(os.path.dirname(path), "modules"),
                    "/lib/modules/" + release, os.path.dirname(path)):
        if os.path.isdir(os.path.join(modules, "kernel")):
            return Kernel(path, release, modules)
    return Kernel(path, release, None)


def _image_release(path):
    """The x86 boot header points to the version string (offset 0x20e, relative to 0x200)."""
    with open(path, "rb") as f:
        head = f.read(0x10000)
    if head[0x202:0x206] != b"HdrS":
        raise GuestError("--kernel '%s': not an x86 kernel image (bzImage)" % path)
    start = int.from_bytes(head[0x20e:0x210], "little") + 0x200
    return head[start:start + 200].split(b"\0")[0].split(b" ")[0].decode("ascii", "replace")


def _folder(name):
    return os.path.join(cache_dir(), "kernels", name)


def _cached(name):
    link = _folder(name)
    if not os.path.isfile(os.path.join(link, "vmlinuz")):
        return None
    folder = os.path.realpath(link)
    return Kernel(os.path.join(folder, "vmlinuz"), os.path.basename(folder),
                  os.path.join(folder, "modules"))


def list_cached():
    """[(name, release or None)] for the kernels that have a name."""
    return [(name, k.release if k else None) for name, k in ((n, _cached(n)) for n in SUITES)]


@contextlib.contextmanager
def _lock():
    os.makedirs(os.path.join(cache_dir(), "kernels"), exist_ok=True)
    with open(os.path.join(cache_dir(), "lock"), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def fetch(name, say=lambda text: None, refresh=False):
    """Brings the suite's current kernel into the cache. With refresh, also when one is there."""
    with _lock():
        if not refresh and _cached(name):
            return _cached(name)    # another call fetched it while this one waited
        say("fetching kernel %s from %s" % (name, SUITES[name]))
        apt = _Apt(SUITES[name])
        apt.update()
        release, packages = apt.image_packages()
        if not os.path.isfile(os.path.join(_folder(release), "vmlinuz")):
            _unpack(apt, packages, release)
        # renaming a link over the old one: a caller sees the old kernel or the new one, whole
        spare = _folder(".link-%s" % name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spare)
        os.symlink(release, spare)
        os.rename(spare, _folder(name))
        return _cached(name)


def _unpack(apt, packages, release):
    for name in os.listdir(os.path.join(cache_dir(), "kernels")):
        if name.startswith(".partial-"):    # of a call that was killed: the lock is ours now
            shutil.rmtree(_folder(name), ignore_errors=True)
    partial = tempfile.mkdtemp(prefix=".partial-", dir=os.path.join(cache_dir(), "kernels"))
    try:
        tree = os.path.join(partial, "tree")
        for package in packages:
            deb = apt.download(package, partial)
            _run(["dpkg-deb", "-x", deb, tree], "unpacking %s" % package)
            os.unlink(deb)
        image = modules = None
        for folder, folders, names in os.walk(tree):
            for n in names:
                if n == "vmlinuz" or n.startswith("vmlinuz-"):
                    image = os.path.join(folder, n)
            if os.path.basename(folder) == release and "kernel" in folders:
                modules = folder
        if not image:
            raise GuestError("%s: no kernel image in it" % ", ".join(packages))
        final = os.path.join(partial, "final")
        os.mkdir(final)
        os.rename(image, os.path.join(final, "vmlinuz"))
        if modules:
            os.rename(modules, os.path.join(final, "modules"))
        os.chmod(final, 0o755)
        shutil.rmtree(_folder(release), ignore_errors=True)
        os.rename(final, _folder(release))
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run(command, what, **kwargs):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", **kwargs)
    except FileNotFoundError:
        raise GuestError("%s needs %s, which Debian has: apt-get install %s" % (
            what, command[0], "apt" if command[0].startswith("apt") else "dpkg")) from None
    if done.returncode:
        lines = [x for x in done.stderr.split("\n") if x.strip()]
        raise GuestError("%s failed:\n  %s" % (what, "\n  ".join(lines[-6:]) or command[0]))
    return done.stdout


class _Apt:
    """apt-get on one suite, in folders of its own."""

    def __init__(self, suite):
        self.suite = suite
        self.folder = os.path.join(cache_dir(), "apt", suite)
        for sub in ("lists/partial", "archives/partial"):
            os.makedirs(os.path.join(self.folder, sub), exist_ok=True)
        self.source = os.path.join(self.folder, "source.list")
        self.options = []
        for key, value in (
                ("Dir::Etc::SourceList", self.source),
                ("Dir::Etc::SourceParts", "/dev/null"),
                ("Dir::Etc::Preferences", "/dev/null"),
                ("Dir::Etc::PreferencesParts", "/dev/null"),
                ("Dir::State", self.folder),
                ("Dir::State::Lists", os.path.join(self.folder, "lists")),
                ("Dir::State::Status", "/dev/null"),
                ("Dir::Cache", self.folder),
                ("Dir::Cache::Archives", os.path.join(self.folder, "archives")),
                ("Dir::Cache::PkgCache", ""),
                ("Dir::Cache::SrcPkgCache", ""),
                ("APT::Architecture", "amd64"),
                ("APT::Architectures::", "amd64"),
                ("APT::Update::Error-Mode", "any"),
                ("Acquire::Languages", "none"),
                # the cache may lie in a home folder that apt's own user cannot enter
                ("APT::Sandbox::User", "root")):
            self.options += ["-o", "%s=%s" % (key, value)]
        # hooks of the machine (package indexers) are not for a private list
        self.options += ["-o", "#clear=APT::Update", "-o", "APT::Update::Error-Mode=any"]

    def update(self):
        keyring = next((k for k in KEYRINGS if os.path.exists(k)), None)
        if not keyring:
            raise GuestError("no Debian archive keyring to check packages with: "
                             "apt-get install debian-archive-keyring")
        trouble = []
        for mirror in _mirrors():
            with open(self.source, "w") as f:
                f.write("deb [signed-by=%s] %s %s main\n" % (keyring, mirror, self.suite))
            try:
                _run(["apt-get", "-q"] + self.options + ["update"],
                     "apt-get update for %s of %s" % (self.suite, mirror))
                return
            except GuestError as e:
                trouble.append(str(e))
        raise GuestError("\n".join(trouble) or
                         "apt has no Debian source on this machine; set NUMALIFT_MIRROR to the URL "
                         "of a Debian mirror (the part before /dists)")

    def _depends(self, package):
        text = _run(["apt-cache"] + self.options + ["show", "--no-all-versions", package],
                    "looking up %s in %s" % (package, self.suite))
        m = re.search(r"^Depends: (.*)$", text, re.M)
        return [re.split(r"[ (|]", d.strip())[0] for d in m.group(1).split(",")] if m else []

    def image_packages(self):
        """(release, packages) for the image and its modules, by following the meta package.

        linux-image-RELEASE holds both in older suites; in newer ones it holds nothing and depends on
        linux-binary-RELEASE and linux-modules-RELEASE.
        """
        for image in self._depends(META):
            m = re.fullmatch(r"linux-image-(\d.*)", image)
            if m:
                release = m.group(1)
                parts = [d for d in self._depends(image)
                         if d in ("linux-binary-" + release, "linux-modules-" + release)]
                return release, [image] + parts
        raise GuestError("%s in %s depends on no kernel image" % (META, self.suite))

    def download(self, package, folder):
        before = set(os.listdir(folder))
        _run(["apt-get", "-q"] + self.options + ["download", package],
             "downloading %s" % package, cwd=folder)
        new = [n for n in set(os.listdir(folder)) - before if n.endswith(".deb")]
        if len(new) != 1:
            raise GuestError("downloading %s brought no package" % package)
        return os.path.join(folder, new[0])


def _mirrors():
    """Debian mirrors of this machine's apt, those that say Debian first; never security ones."""
    own = os.environ.get("NUMALIFT_MIRROR")
    if own:
        return [own]
    text = _run(["apt-get", "indextargets", "--format", "$(SITE)\t$(ORIGIN)\t$(LABEL)\t$(REPO_URI)",
                 "Created-By: Packages"], "reading apt's sources")
    sure, maybe = [], []
    for line in text.splitlines():
        site, origin, label, uri = (line.split("\t") + [""] * 4)[:4]
        uri = (uri or site).rstrip("/")
        if "security" in label.lower() or "security" in uri:
            continue
        if origin == "Debian":
            sure.append(uri)
        elif "debian" in uri:
            maybe.append(uri)
    return list(dict.fromkeys(sure + maybe))
