#!/usr/bin/env python3
"""The statistics page as the library keeps it: created, written, taken away, whatever others do."""
import errno
import json
import os
import shutil
import stat
import struct
import subprocess
import time
import unittest

import cli
import page

# shim/stats.h: numalift-UID-PID.stat
UID = os.geteuid()


def name(pid, uid=UID):
    return f'numalift-{uid}-{pid}.stat'


class Case(cli.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.tmp, 0o700)

    def process(self, **kw):
        return page.Process(self, **kw)

    def figures(self, path):
        got = self.numalift('stat', '--json', '--file', path)
        self.assertEqual(got.returncode, 0, got.stderr)
        return json.loads(got.stdout)

    def opened(self, option=None, **kw):
        p = self.process(**kw)
        self.assertEqual(p.tell(f'open {option or self.tmp}'), 0)
        self.assertEqual(p.errno, 0)
        return p

    def may_mount(self):
        if not shutil.which('unshare') or subprocess.run(
                ['unshare', '-m', 'mount', '-t', 'tmpfs', 'none', self.tmp],
                stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest('nothing can be mounted here')

    def left_by_the_dead(self):
        p = self.opened()
        p.tell('publish 5')
        p.die()
        self.assertTrue(os.path.exists(p.path))
        return p


class Life(Case):
    def test_created_written_taken_away(self):
        p = self.opened()
        self.assertEqual(p.path, os.path.join(self.tmp, name(p.pid)))
        st = os.lstat(p.path)
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid, st.st_size), (0o600, UID, 8192))
        got = self.figures(p.path)
        self.assertEqual((got['state'], got['passes'], got['pid'], got['program'], got['running']),
                         ('waiting', 0, p.pid, 'page', True))
        p.tell('publish 1000')
        self.assertEqual(p.errno, 0)
        self.assertEqual(self.figures(p.path)['passes'], 1006)
        self.assertEqual(p.end(), 0)
        self.assertEqual(os.listdir(self.tmp), [])

    def test_closed_and_opened_again(self):
        p = self.opened()
        first = p.path
        self.assertEqual(p.tell('close'), 0)
        self.assertIsNone(p.path)
        self.assertFalse(os.path.exists(first))
        self.assertEqual(p.tell('publish 1'), 0)
        other = os.path.join(self.tmp, 'other-%p')
        self.assertEqual(p.tell(f'open {other}'), 0)
        self.assertEqual(p.path, os.path.join(self.tmp, f'other-{p.pid}'))
        self.assertEqual(p.tell(f'open {self.tmp}/'), 0)
        self.assertEqual(os.listdir(self.tmp), [name(p.pid)])

    def test_default_folder(self):
        run = f'/run/user/{UID}'
        p = self.process()
        for option in ('auto', ''):
            self.assertEqual(p.tell(f'open {option}'), 0)
            folder = run if os.path.isdir(run) else '/dev/shm'
            self.assertEqual(p.path, os.path.join(folder, name(p.pid)))
        p.end()
        self.assertFalse(os.path.exists(p.path))

    def test_run_user_only_if_it_is_safe(self):
        """Of the default folders the first counts only when nobody else can write there."""
        self.may_mount()
        run = f'/run/user/{UID}'
        for make, folder in ((f'mkdir -m 700 {run}', run), (f'mkdir -m 777 {run}', '/dev/shm'),
                             (f'mkdir -m 1777 {run}', run), ('true', '/dev/shm'),
                             (f'mkdir -m 700 {run}; chown 65534 {run}', '/dev/shm'),
                             (f'touch {run}', '/dev/shm')):
            script = f'mount -t tmpfs none /run/user && ( {make} ) && exec "$0"'
            p = self.process(prefix=('unshare', '-m', 'sh', '-c', script))
            self.assertEqual(p.tell('open'), 0, make)
            self.assertEqual(p.path, os.path.join(folder, name(p.pid)), make)

    def test_off_and_not_understood(self):
        p = self.process()
        self.assertEqual(p.tell('open off'), 0)
        self.assertIsNone(p.path)
        for option in ('relative', './x', 'on', '/' + 'x' * 600):
            self.assertLess(p.tell(f'open {option}'), 0, option)
            self.assertIsNone(p.path)
        self.assertEqual(p.tell('publish 1'), 0)

    def test_umask_does_not_count(self):
        for mask in (0, 0o777):
            p = self.opened(preexec_fn=lambda m=mask: os.umask(m) and None)
            self.assertEqual(stat.S_IMODE(os.lstat(p.path).st_mode), 0o600)

    def test_children_leave_it_alone(self):
        p = self.opened()
        for how in ('fork', 'clone'):
            self.assertEqual(p.tell(how), 0)
            p.tell('publish 77')
            self.assertEqual(self.figures(p.path)['passes'], 83)

    def test_exec_takes_it_over(self):
        p = self.opened()
        path = p.path
        p.tell('publish 5')
        p.child.stdin.write('exec again\n')
        # What is written before that is read ahead by what it was.
        while page.read(f'/proc/{p.pid}/cmdline') != b'again\0':
            time.sleep(0.01)
        self.assertEqual(p.tell(f'open {self.tmp}'), 0)
        self.assertEqual(p.path, path)
        self.assertEqual(self.figures(path)['passes'], 0)

    def test_owner_is_told(self):
        p = self.opened()
        with open(p.path, 'rb') as f:
            head = f.read(48)
        magic, version, _, total, pid, start, ns, uid, _ = struct.unpack('=8sIIIIQQII', head)
        with open(f'/proc/{p.pid}/stat', encoding='ascii') as f:
            field = int(f.read().rsplit(')', 1)[1].split()[19])
        self.assertEqual((magic, version, total, pid, start, uid),
                         (b'liftstat', 1, 8192, p.pid, field, UID))
        self.assertEqual(ns, os.stat('/proc/self/ns/pid').st_ino)


class Trouble(Case):
    """What happens to the file or the descriptor costs the page at most."""

    def test_descriptors_closed(self):
        p = self.opened()
        p.tell('descriptors')
        before = p.tell('descriptors')
        for i in range(5):
            p.tell('closefrom')
            p.tell(f'publish {i}')
            self.assertEqual(p.errno, 0)
            self.assertEqual(self.figures(p.path)['passes'], 6 + i)
            self.assertEqual(p.tell('descriptors'), before)

    def test_descriptor_is_somebody_elses(self):
        p = self.opened()
        self.assertGreater(p.tell('reuse'), 3)
        p.tell('publish 9')
        self.assertEqual(p.errno, 0)
        self.assertEqual(self.figures(p.path)['passes'], 15)

    def test_cut_off(self):
        p = self.opened()
        for size in (0, 1, 100, 4096, 8191, 8193, 1 << 20):
            os.truncate(p.path, size)
            p.tell('publish 20')
            self.assertEqual(os.stat(p.path).st_size, 8192)
            self.assertEqual(self.figures(p.path)['passes'], 26)

    def test_written_over(self):
        p = self.opened()
        with open(p.path, 'r+b') as f:
            f.write(b'x' * 8192)
        p.tell('publish 20')
        self.assertEqual(self.figures(p.path)['passes'], 26)

    def test_taken_away(self):
        p = self.opened()
        os.unlink(p.path)
        p.tell('publish 20')
        self.assertEqual(self.figures(p.path)['passes'], 26)
        for i in range(40):
            if os.path.exists(p.path):
                os.unlink(p.path)
            p.tell(f'publish {i}')
            self.assertEqual(p.errno, 0)
        # It was not made anew for ever.
        self.assertFalse(os.path.exists(p.path))

    def test_another_in_its_place(self):
        for closed in (False, True):
            p = self.opened()
            os.unlink(p.path)
            with open(p.path, 'w', encoding='ascii') as f:
                f.write('mine')
            if closed:
                p.tell('closefrom')
            p.tell('publish 20')
            self.assertEqual(page.read(p.path), b'mine')
            self.assertEqual(p.end(), 0)
            self.assertEqual(page.read(p.path), b'mine')
            os.unlink(p.path)

    def test_folder_taken_away(self):
        folder = os.path.join(self.tmp, 'folder')
        os.mkdir(folder)
        p = self.opened(folder)
        shutil.rmtree(folder)
        p.tell('publish 20')
        self.assertEqual(p.errno, 0)
        self.assertEqual(p.end(), 0)

    def test_limit(self):
        p = self.process()
        p.tell('limit 8191')
        self.assertEqual(p.tell(f'open {self.tmp}'), -errno.EFBIG)
        self.assertEqual(os.listdir(self.tmp), [])
        p.tell('limit 8192')
        self.assertEqual(p.tell(f'open {self.tmp}'), 0)
        p.tell('limit 0')
        p.tell('publish 20')
        self.assertEqual(self.figures(p.path)['passes'], 0)
        p.tell('limit 100000')
        p.tell('publish 20')
        self.assertEqual(self.figures(p.path)['passes'], 26)

    def test_user_given_up(self):
        if not page.root():
            self.skipTest('only root can become somebody else')
        os.chmod(self.tmp, 0o1777)
        p = self.opened()
        self.assertEqual(p.tell('setuid 65534'), 0)
        p.tell('publish 20')
        self.assertEqual(self.figures(p.path)['passes'], 26)
        p.tell('closefrom')
        p.tell('publish 30')
        self.assertEqual(p.errno, 0)
        self.assertEqual(p.end(), 0)


class Folders(Case):
    def test_not_there(self):
        p = self.process()
        for option in ('/no/such/folder/', '/no/such/folder/file', '/no/such'):
            self.assertLess(p.tell(f'open {option}/x'), 0)
        self.assertEqual(p.tell('open /proc/self/x'), -errno.ENOENT)

    def test_others_may_write(self):
        os.chmod(self.tmp, 0o777)
        p = self.process()
        for option in (self.tmp, self.tmp + '/file'):
            self.assertEqual(p.tell(f'open {option}'), -errno.EPERM)
        os.chmod(self.tmp, 0o1777)
        self.assertEqual(p.tell(f'open {self.tmp}'), 0)

    def test_of_another(self):
        if not page.root():
            self.skipTest('only root can give a folder away')
        os.chown(self.tmp, 65534, -1)
        p = self.process()
        self.assertEqual(p.tell(f'open {self.tmp}'), -errno.EPERM)

    def test_read_only(self):
        p = self.mounted('-o', 'ro', size='1m')
        self.assertEqual(p.tell(f'open {self.tmp}'), -errno.EROFS)

    def test_no_permission(self):
        if page.root():
            self.skipTest('root may write anywhere')
        os.chmod(self.tmp, 0o500)
        self.addCleanup(os.chmod, self.tmp, 0o700)
        self.assertEqual(self.process().tell(f'open {self.tmp}'), -errno.EACCES)

    def mounted(self, *more, size, fill=0):
        """A process that sees a small file system of its own at self.tmp."""
        script = (f'mount -t tmpfs -o mode=700,size={size} none {self.tmp} && '
                  f'head -c {fill} /dev/zero >{self.tmp}/filler; '
                  + (f'mount -o remount,ro {self.tmp}; ' if 'ro' in more else '') + 'exec "$0"')
        self.may_mount()
        return self.process(prefix=['unshare', '-m', 'sh', '-c', script],
                            stderr=subprocess.DEVNULL)

    def test_full(self):
        p = self.mounted(size='64k', fill=65536)
        self.assertEqual(p.tell(f'open {self.tmp}'), -errno.ENOSPC)
        self.assertIsNone(p.path)
        self.assertEqual(p.tell('publish 1'), 0)
        inside = f'/proc/{p.pid}/root{self.tmp}'
        self.assertEqual(os.listdir(inside), ['filler'])
        os.unlink(inside + '/filler')
        self.assertEqual(p.tell(f'open {self.tmp}'), 0)

    def test_full_later(self):
        p = self.mounted(size='64k')
        self.assertEqual(p.tell(f'open {self.tmp}'), 0)
        inside = f'/proc/{p.pid}/root{self.tmp}'
        os.truncate(os.path.join(inside, name(p.pid)), 0)
        with open(inside + '/filler', 'wb') as f:
            try:
                f.write(b'x' * 65536)
                f.flush()
            except OSError:
                pass
            f.truncate(65536)
        self.assertEqual(p.tell('publish 1'), 0)
        self.assertEqual(p.errno, 0)
        os.unlink(inside + '/filler')
        p.tell('publish 20')
        self.assertEqual(self.figures(os.path.join(inside, name(p.pid)))['passes'], 26)


class Stale(Case):
    def test_cleared_up(self):
        dead = [self.left_by_the_dead() for _ in range(3)]
        alive = self.opened()
        names = set(os.listdir(self.tmp))
        self.assertEqual(names, {name(alive.pid)})
        self.assertTrue(dead)

    def test_alive_stays(self):
        first = self.opened()
        second = self.opened()
        self.assertEqual(set(os.listdir(self.tmp)), {name(first.pid), name(second.pid)})

    def test_bounded(self):
        p = self.left_by_the_dead()
        text = page.read(p.path)
        os.unlink(p.path)
        pids = self.free_pids(40)
        for pid in pids:
            self.write(name(pid), text[:20] + struct.pack('=I', pid) + text[24:], 0o600)
        p = self.opened()
        self.assertEqual(len(os.listdir(self.tmp)), 40 - 16 + 1)
        p.tell(f'open {self.tmp}')
        p.tell(f'open {self.tmp}')
        self.assertEqual(os.listdir(self.tmp), [name(p.pid)])

    def free_pids(self, nr):
        return list(range(1 << 22, (1 << 22) + nr))  # above what the kernel gives out

    def test_pid_of_a_living_other(self):
        """The pid was given to somebody else since: by the start time."""
        p = self.left_by_the_dead()
        text = bytearray(page.read(p.path))
        os.unlink(p.path)
        text[20:24] = struct.pack('=I', os.getpid())
        self.write(name(os.getpid()), bytes(text), 0o600)
        q = self.opened()
        self.assertEqual(os.listdir(self.tmp), [name(q.pid)])

    def test_what_is_not_taken(self):
        p = self.left_by_the_dead()
        text = page.read(p.path)
        os.unlink(p.path)
        gone = self.free_pids(1)[0]
        text = text[:20] + struct.pack('=I', gone) + text[24:]
        other_namespace = text[:32] + b'\1' * 8 + text[40:]
        kept = {
            name(gone): other_namespace,
            f'numalift-{UID + 1}-{gone}.stat': text,
            f'numalift-{UID}-{gone}.stat.bak': text,
            f'numalift-{UID}-x.stat': text,
            f'numalift-{UID}-{gone + 1}.stat': text,
            f'numalift-{UID}-{gone + 2}.stat': b'something else',
            f'numalift-{UID}-{gone + 3}.stat': b'',
            'numalift-.stat': text,
            'file': text,
        }
        for file, content in kept.items():
            self.write(file, content, 0o600)
        os.symlink('file', os.path.join(self.tmp, f'numalift-{UID}-{gone + 4}.stat'))
        os.link(os.path.join(self.tmp, 'file'), os.path.join(self.tmp, 'link'))
        os.mkfifo(os.path.join(self.tmp, f'numalift-{UID}-{gone + 5}.stat'))
        os.mkdir(os.path.join(self.tmp, f'numalift-{UID}-{gone + 6}.stat'))
        before = set(os.listdir(self.tmp))
        q = self.opened()
        self.assertEqual(set(os.listdir(self.tmp)) - before, {name(q.pid)})
        for file, content in kept.items():
            self.assertEqual(page.read(os.path.join(self.tmp, file)), content)

    def test_somebody_elses(self):
        if not page.root():
            self.skipTest('only root can give a file away')
        p = self.left_by_the_dead()
        os.chown(p.path, 65534, -1)
        self.opened()
        self.assertTrue(os.path.exists(p.path))

    def test_own_name_is_taken(self):
        """What lies where the page is to be: only a dead page of ours makes room."""
        dead = page.read(self.left_by_the_dead().path)
        for content, taken in ((dead, True), (b'', True), (b'\0' * 8192, True),
                               (b'foreign', False), (dead[:50], False)):
            p = self.process()
            path = os.path.join(self.tmp, name(p.pid))
            mine = content[:20] + struct.pack('=I', p.pid) + content[24:] if content is dead else content
            self.write(name(p.pid), mine, 0o600)
            self.assertEqual(p.tell(f'open {self.tmp}'), 0 if taken else -errno.EEXIST)
            if not taken:
                self.assertEqual(page.read(path), mine)

    def test_own_name_is_no_file(self):
        target = self.write('target', 'keep')
        for make in (lambda path: os.symlink(target, path), os.mkfifo, os.mkdir,
                     lambda path: os.symlink('/no/such', path)):
            p = self.process()
            make(os.path.join(self.tmp, name(p.pid)))
            self.assertEqual(p.tell(f'open {self.tmp}'), -errno.EEXIST)
        self.assertEqual(page.read(target), b'keep')

    def test_named_file(self):
        path = self.write('notes', 'keep')
        p = self.process()
        self.assertEqual(p.tell(f'open {path}'), -errno.EEXIST)
        self.assertEqual(page.read(path), b'keep')
        empty = self.write('empty', '')
        self.assertEqual(p.tell(f'open {empty}'), -errno.EEXIST)
        # Two processes with one name: the second goes without, until the first is dead.
        shared = os.path.join(self.tmp, 'shared')
        self.assertEqual(p.tell(f'open {shared}'), 0)
        q = self.process()
        self.assertEqual(q.tell(f'open {shared}'), -errno.EEXIST)
        p.die()
        self.assertEqual(q.tell(f'open {shared}'), 0)


class Readers(Case):
    def test_never_torn(self):
        p = self.opened()
        # Zeros, which it has until something is published, are not what the readers look for.
        p.tell('publish 1')
        readers = [subprocess.Popen([p.program, 'read', p.path, '2'], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for _ in range(2)]
        self.assertGreater(p.tell('loop 3'), 100)
        for reader in readers:
            out, err = reader.communicate()
            self.assertEqual((reader.returncode, err), (0, ''), out)
            print(out.strip())

    def test_command_while_written(self):
        p = self.opened()
        p.tell('publish 1')
        p.child.stdin.write('loop 2\n')
        whole = 0
        for _ in range(50):
            out = self.numalift('stat', '--json', '--file', p.path)
            if out.returncode:
                # On a busy machine the writer may have to wait in the middle of it.
                self.assertRegex(out.stderr, 'is being written|checksum')
                continue
            got = json.loads(out.stdout)
            whole += 1
            self.assertEqual(got['kernel_numa_hint_faults'] - got['passes'],
                             list(got).index('kernel_numa_hint_faults') - list(got).index('passes'))
            self.assertEqual(got['nodes'][0]['free_bytes'], got['uptime_ns'] - 2)
        self.assertGreater(whole, 0)
        p.child.stdout.readline()


if __name__ == '__main__':
    cli.main()
