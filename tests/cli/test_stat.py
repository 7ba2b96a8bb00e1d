#!/usr/bin/env python3
"""numalift stat: what it prints, which page it takes, and what it says of those that are none."""
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import unittest

import cli
import page

UID = os.geteuid()
# Tests that run at the same time have pages too, by the name of their program.
NAME = 'shown'
HEAD = 176
SEQUENCE_AT = 160


class Case(cli.Case):
    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.tmp, 'pages')
        os.mkdir(self.folder, 0o700)
        self.env = cli.environment(NUMALIFT_STATS=self.folder)

    def stat(self, *args, **kw):
        kw.setdefault('env', self.env)
        return self.numalift('stat', *args, **kw)

    def process(self, tell='golden', **kw):
        p = page.Process(self, called=NAME, **kw)
        self.assertEqual(p.tell(f'open {self.folder}'), 0)
        if tell:
            p.tell(tell)
        return p

    def as_user(self, *args):
        """The command as an ordinary user, who can reach what these tests have made."""
        if not page.root() or not shutil.which('setpriv'):
            self.skipTest('needs root, and setpriv')
        os.chmod(self.tmp, 0o755)
        os.chmod(self.folder, 0o755)
        env = cli.environment(NUMALIFT_STATS=self.folder)
        got = subprocess.run(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
                              cli.COMMAND, 'stat', *args], env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, check=False)
        if got.returncode in (126, 127):
            self.skipTest('another user cannot start the command where it lies')
        return got


class Output(Case):
    def golden(self, name, got):
        text = re.sub(r'\(pid \d+\)', '(pid PID)', got)
        text = re.sub(r'^(  page     ).*', r'\1PATH, written AGE ago', text, flags=re.M)
        path = os.path.join(cli.FIXTURES, 'golden', name)
        # NUMALIFT_CLI_REGENERATE=1 writes them anew; read the difference before committing it.
        if os.environ.get('NUMALIFT_CLI_REGENERATE'):
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
        with open(path, encoding='utf-8') as f:
            self.assertEqual(text, f.read())

    def test_layout(self):
        p = self.process()
        got = self.stat(str(p.pid))
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        self.assertRegex(got.stdout, rf'page     {re.escape(p.path)}, written [\d.]+ \w+ ago')
        self.golden('stat.txt', got.stdout)

    def test_layout_of_one_that_waits(self):
        p = self.process(None)
        self.golden('stat-waiting.txt', self.stat(str(p.pid)).stdout)

    def test_reason(self):
        p = self.process('reason no slow node')
        got = self.stat(NAME)
        self.assertIn('\n  reason   no slow node\n', got.stdout)
        self.assertRegex(got.stdout, r'\n  state +off  ')
        self.assertEqual(json.loads(self.stat('--json', str(p.pid)).stdout)['reason'],
                         'no slow node')

    def test_terminal_is_not_steered(self):
        p = self.process('reason \x1b[31mred')
        self.assertNotIn('\x1b', self.stat(NAME).stdout)
        self.assertNotIn('\\u001b', self.stat('--json', str(p.pid)).stdout)

    def test_json(self):
        p = self.process()
        got = json.loads(self.stat('--json', str(p.pid)).stdout)
        want = {'pid': p.pid, 'uid': UID, 'program': NAME, 'running': True, 'page': p.path,
                'page_version': 1, 'state': 'promoting', 'mode': 'on', 'sampler': 'rwp',
                'reason': None, 'pgpromote_success': 262144, 'fast_limit_bytes': None,
                'fast_share': 3891, 'move_nomem': 0, 'kernel_pgdemote': 0}
        self.assertEqual({k: got[k] for k in want}, want)
        self.assertEqual(got['nodes'][2], {'id': 2, 'fast': False, 'usable': True,
                                           'pages_here': 262144, 'free_bytes': 60 << 30})

    def test_large_numbers(self):
        self.process(f'publish {2 ** 64 - 1000}')
        got = json.loads(self.stat('--json', NAME).stdout)
        self.assertEqual(got['passes'], 2 ** 64 - 994)
        self.assertEqual(self.stat(NAME).returncode, 0)

    def test_list(self):
        first = self.process()
        second = self.process('reason none')
        got = self.stat()
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        lines = got.stdout.splitlines()
        self.assertTrue(lines[0].lstrip().startswith('PID  PROGRAM'))
        rows = {int(line.split()[0]): line.split() for line in lines[1:]}
        self.assertEqual(rows[first.pid][1:4], [NAME, 'promoting', 'rwp'])
        self.assertEqual(rows[second.pid][1:3], [NAME, 'off'])
        got = json.loads(self.stat('--json').stdout)
        self.assertLessEqual({first.pid, second.pid}, {p['pid'] for p in got['pages']})

    def test_full_disk(self):
        self.process()
        with open('/dev/full', 'w', encoding='ascii') as full:
            got = subprocess.run([cli.COMMAND, 'stat', NAME], env=self.env, stdout=full,
                                 stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(got.returncode, 125)
        self.assertIn('standard output', got.stderr)


class Interval(Case):
    def test_lines(self):
        p = self.process('publish 0')
        child = subprocess.Popen([cli.COMMAND, 'stat', '--interval=0.05', '--count=45', NAME],
                                 env=self.env, stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        head = child.stdout.readline()
        p.tell('publish 256')
        lines = child.stdout.read().splitlines()
        self.assertEqual(child.wait(), 0)
        child.stdout.close()
        self.assertEqual(lines.count(head.rstrip('\n')), 2)
        lines = [line.split() for line in lines if line != head.rstrip('\n')]
        self.assertEqual(len(lines), 45)
        changed = [line for line in lines if '1 MiB' in ' '.join(line)]
        self.assertEqual(len(changed), 1)

    def test_json_is_one_object_per_line(self):
        self.process()
        got = self.stat('--json', '-i', '0.02', '-n', '3', NAME)
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        self.assertEqual([json.loads(line)['passes'] for line in got.stdout.splitlines()], [1812] * 3)

    def test_ends_with_the_program(self):
        for end in ('end', 'die'):
            p = self.process()
            child = subprocess.Popen([cli.COMMAND, 'stat', '-i', '0.02', str(p.pid)], env=self.env,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            child.stdout.readline()
            getattr(p, end)()
            _, err = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 1)
            self.assertEqual(err, f'numalift: {NAME} (pid {p.pid}) has ended\n')

    def test_usage(self):
        for args in (['-i', '0', 'x'], ['-i', 'nan', 'x'], ['-i', '-1', 'x'], ['-i', '1x', 'x'],
                     ['-i', '1e9', 'x'], ['-i', '', 'x'], ['-n', '3', 'x'],
                     ['-i', '1', '-n', '0', 'x'], ['-i', '1', '-n', '-1', 'x'], ['-i', '1'],
                     ['a', 'b'], ['--file', 'x', 'y'], ['--file'], ['--interval'], ['--bad']):
            got = self.stat(*args)
            self.assertEqual((got.returncode, got.stdout), (2, ''), args)
            self.assertIn('Usage:' if got.stderr.count('\n') > 1 else 'stat', got.stderr)


class Which(Case):
    def test_nothing(self):
        for args, words in ((['4194305'], 'pid 4194305'), (['no such'], "program 'no such'"),
                            (['0'], "program '0'"), (['99999999999999'], "'99999999999999'")):
            got = self.stat(*args)
            self.assertEqual((got.returncode, got.stdout), (1, ''))
            self.assertIn(words, got.stderr)

    def test_several_by_name(self):
        pids = {self.process().pid for _ in range(3)}
        got = self.stat(NAME)
        self.assertEqual((got.returncode, got.stdout), (2, ''))
        self.assertIn(f"3 programs are called '{NAME}'", got.stderr)
        self.assertEqual({int(n) for n in re.findall(r'^ *(\d+)  shown', got.stderr, re.M)}, pids)

    def test_running_one_comes_before_the_dead(self):
        dead = self.process()
        # Opened elsewhere, where it does not clear up.
        alive = page.Process(self, called=NAME)
        dead.die()
        self.assertEqual(alive.tell(f'open {self.tmp}/pages/numalift-{UID}-%p.stat'), 0)
        got = self.stat(NAME)
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        self.assertIn(f'{NAME} (pid {alive.pid}), running', got.stdout)

    def test_dead(self):
        p = self.process()
        p.die()
        for who in (str(p.pid), NAME):
            got = self.stat(who)
            self.assertEqual(got.returncode, 1)
            self.assertIn('has ended; this is the last that it said', got.stdout)
            self.assertIn(f'{NAME} (pid {p.pid}) has ended and left {p.path} behind', got.stderr)
            self.assertFalse(json.loads(self.stat('--json', who).stdout)['running'])
            self.assertEqual(self.stat('-i', '1', who).returncode, 1)
        self.assertRegex(self.stat().stdout, rf'{p.pid}  {NAME} +ended')

    def test_pid_in_use_again(self):
        p = self.process()
        text = bytearray(page.read(p.path))
        p.die()
        os.unlink(p.path)
        # As if it had been started before the tests, with their pid.
        struct.pack_into('=I', text, 20, os.getpid())
        text = seal(text)
        path = self.write(f'pages/numalift-{UID}-{os.getpid()}.stat', text, 0o600)
        got = self.stat('--json', '--file', path)
        self.assertEqual((got.returncode, json.loads(got.stdout)['running']), (1, False))

    def test_zombie(self):
        p = self.process()
        p.child.kill()
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        self.assertEqual(self.stat(str(p.pid)).returncode, 1)

    def test_another_namespace(self):
        p = self.process()
        text = bytearray(page.read(p.path))
        struct.pack_into('=Q', text, 32, 1)
        path = self.write('other.stat', seal(text), 0o600)
        got = self.stat('--file', path)
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        self.assertIn('another container', got.stdout)
        self.assertIsNone(json.loads(self.stat('--json', '--file', path).stdout)['running'])

    def test_default_folders(self):
        p = page.Process(self, called=NAME)
        self.assertEqual(p.tell('open auto'), 0)
        p.tell('golden')
        got = self.stat(str(p.pid), env=cli.environment())
        self.assertEqual(got.returncode, 0, got.stderr)

    def test_setting_with_pid(self):
        for setting in (f'{self.folder}/x-%p', f'{self.folder}/%p', f'{self.folder}/one'):
            p = page.Process(self, called=NAME)
            self.assertEqual(p.tell(f'open {setting}'), 0)
            got = self.stat(str(p.pid), env=cli.environment(NUMALIFT_STATS=setting))
            self.assertEqual(got.returncode, 0, got.stderr)
            p.end()

    def test_name_and_content_disagree(self):
        p = self.process()
        path = os.path.join(self.folder, f'numalift-{UID}-4194305.stat')
        shutil.copy(p.path, path)
        os.chmod(path, 0o600)
        got = self.stat('4194305')
        self.assertEqual((got.returncode, got.stdout), (1, ''))
        self.assertIn(f'{path} is the page of pid {p.pid}', got.stderr)

    def test_others(self):
        p = self.process()
        got = self.as_user('--file', p.path)
        self.assertEqual((got.returncode, got.stdout), (1, ''))
        self.assertIn(f'{p.path} belongs to user 0; only that user and root may read it', got.stderr)
        got = self.as_user(str(p.pid))
        self.assertEqual(got.returncode, 1)
        self.assertIn('belongs to user 0', got.stderr)
        for args in ([NAME], []):
            got = self.as_user(*args)
            self.assertEqual((got.returncode, got.stdout), (1, ''))
            self.assertNotIn('belongs', got.stderr)

    def test_root_reads_everybody(self):
        if not page.root():
            self.skipTest('not root')
        p = self.process()
        os.chown(p.path, 65534, 65534)
        got = self.stat('--json', str(p.pid))
        self.assertEqual((got.returncode, json.loads(got.stdout)['uid']), (0, 65534))


def checksum(text):
    mask = (1 << 64) - 1
    total = 0xcbf29ce484222325
    for at in [*range(0, SEQUENCE_AT, 8), *range(HEAD, len(text), 8)]:
        total = (total ^ struct.unpack_from('=Q', text, at)[0]) * 0x100000001b3 & mask
        total ^= total >> 29
    return total


def seal(text):
    """The page with a checksum that fits."""
    text = bytearray(text)
    struct.pack_into('=Q', text, SEQUENCE_AT + 8, checksum(text))
    return bytes(text)


class Damaged(Case):
    def setUp(self):
        super().setUp()
        self.text = page.read(self.process().path)

    def refused(self, text, words, mode=0o600):
        path = self.write('damaged', text, mode)
        os.chmod(path, mode)
        self.refused_path(path, words)
        os.unlink(path)

    def refused_path(self, path, words):
        for args in ([], ['--json'], ['-i', '1']):
            got = self.stat(*args, '--file', path)
            self.assertEqual((got.returncode, got.stdout), (1, ''), got.stderr)
            self.assertTrue(got.stderr.startswith(f'numalift: {path} '), got.stderr)
            self.assertIn(words, got.stderr)
            self.assertEqual(got.stderr.count('\n'), 1)

    def test_checksum_of_these_tests_is_the_same(self):
        self.assertEqual(seal(self.text), self.text)

    def test_every_length(self):
        path = self.write('short', self.text, 0o600)
        for n in [*range(len(self.text) - 1, 600, -97), *range(600, 0, -1)]:
            os.truncate(path, n)
            got = self.stat('--file', path)
            self.assertEqual((got.returncode, got.stdout), (1, ''), n)
            self.assertRegex(got.stderr, rf'has {n} bytes(, which is not enough| and should have 8192)')
        os.truncate(path, 0)
        self.refused_path(path, 'has nothing in it yet')
        self.refused(self.text + b'\0', 'has 8193 bytes and should have 8192')
        self.refused(self.text * 2, 'should have 8192')

    def test_head(self):
        for at, form, value, words in (
                (0, '=B', 0x6d, "does not begin with 'liftstat'"),
                (8, '=I', 2, 'is a page of version 2; this command reads version 1'),
                (8, '=I', 0, 'version 0'),
                (16, '=I', 8184, 'should have 8184'),
                (SEQUENCE_AT, '=Q', 7, 'is being written, and has been for 100 ms'),
                (SEQUENCE_AT + 8, '=Q', 7, 'checksum')):
            text = bytearray(self.text)
            struct.pack_into(form, text, at, value)
            self.refused(bytes(text), words)
        self.refused(b'\0' * 8192, 'has nothing in it yet')

    def test_every_bit_counts(self):
        for at in range(HEAD, 8192, 331):
            text = bytearray(self.text)
            text[at] ^= 1 << at % 8
            self.refused(bytes(text), 'checksum')

    def test_places_outside(self):
        """Every number of the head that says where something is, with a checksum that fits."""
        for at in (12, *range(112, SEQUENCE_AT, 4)):
            for value in (0xffffffff, 0x80000000, 8185):
                text = bytearray(self.text)
                struct.pack_into('=I', text, at, value)
                self.refused(seal(text), 'lies outside of it')

    def test_too_many_nodes(self):
        nr_nodes_at = struct.unpack_from('=I', self.text, 128)[0]
        text = bytearray(self.text)
        struct.pack_into('=Q', text, nr_nodes_at, 63)
        self.refused(seal(text), 'lies outside of it')

    def test_of_another_version_of_the_table(self):
        """Figures that this command does not know are passed over, those it misses are a dash."""
        text = self.text.replace(b'pgdemote\0', b'pgnovel2\0', 1)
        self.assertNotEqual(text, self.text)
        path = self.write('other', seal(text), 0o600)
        got = json.loads(self.stat('--json', '--file', path).stdout)
        self.assertIsNone(got['pgdemote'])
        self.assertEqual(got['pgpromote_success'], 262144)
        self.assertRegex(self.stat('--file', path).stdout, r'\n  pgdemote +-  ')

    def test_no_regular_file(self):
        here = self.write('page', self.text, 0o600)
        link = os.path.join(self.tmp, 'link')
        os.symlink(here, link)
        self.refused_path(link, 'is a symbolic link')
        fifo = os.path.join(self.tmp, 'fifo')
        os.mkfifo(fifo, 0o600)
        self.refused_path(fifo, 'is a pipe')
        self.refused_path(self.folder, 'is a folder')
        self.refused_path('/dev/null', 'is a device')
        with socket.socket(socket.AF_UNIX) as s:
            path = os.path.join(self.tmp, 'socket')
            s.bind(path)
            self.refused_path(path, 'is a socket')
        self.refused_path(os.path.join(self.tmp, 'none'), 'No such file')
        self.refused_path('/no/such', 'No such file')

    def test_huge(self):
        path = self.write('huge', self.text, 0o600)
        os.truncate(path, 1 << 40)
        self.refused_path(path, f'has {1 << 40} bytes; a page has at most 65536')

    def test_others_may_write(self):
        for mode in (0o620, 0o602, 0o666):
            self.refused(self.text, 'can be written by others', mode)

    def test_stopped_over_it(self):
        """A page that stays odd: said, not waited for."""
        p = self.process()
        with open(p.path, 'r+b') as f:
            f.seek(SEQUENCE_AT)
            f.write(struct.pack('=Q', 5))
        os.kill(p.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, p.pid, signal.SIGCONT)
        start = time.monotonic()
        self.refused_path(p.path, 'is being written')
        self.assertGreater(time.monotonic() - start, 0.1)

    def test_in_the_list(self):
        """One that is damaged is told of, and does not hide the others."""
        path = self.write(f'pages/numalift-{UID}-4194305.stat', b'liftstat', 0o600)
        got = self.stat()
        self.assertEqual(got.returncode, 0)
        self.assertIn(f'{path} has 8 bytes', got.stderr)
        self.assertIn(NAME, got.stdout)
        got = self.stat('4194305')
        self.assertEqual((got.returncode, got.stdout), (1, ''))
        self.assertIn(f'{path} has 8 bytes', got.stderr)


if __name__ == '__main__':
    cli.main()
