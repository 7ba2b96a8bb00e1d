#!/usr/bin/env python3
"""numalift check: its fields, its verdicts, and what it says about programs of every kind."""
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import unittest

import cli

MACHINE = ['kernel', 'proc', 'policies', 'seccomp', 'own-policy', 'numa-balancing', 'zone-reclaim',
           'max-map-count', 'overcommit', 'huge-pages', 'address-space', 'locked-memory']
PROMOTION = ['promotion', 'sampler', 'move-pages', 'userfaultfd', 'pagemap-scan']
ALWAYS = ['settings', *MACHINE, *PROMOTION, 'library', 'mimalloc', 'preload']
PROGRAM = ['program', 'architecture', 'privileges', 'linkage', 'sanitizer', 'allocator', 'scope']


class Form(cli.Case):
    def test_json(self):
        got = self.numalift('check', '--json')
        report = json.loads(got.stdout)
        self.assertEqual(set(report), {'version', 'verdict', 'checks'})
        for line in report['checks']:
            self.assertEqual(set(line), {'group', 'name', 'verdict', 'finding', 'remedy'})
            self.assertIn(line['verdict'], ('ok', 'limited', 'off'))
            self.assertTrue(line['finding'])
        names = [line['name'] for line in report['checks']]
        self.assertEqual(len(names), len(set(names)))
        for name in ALWAYS:
            self.assertIn(name, names)
        order = ['ok', 'limited', 'off']
        self.assertEqual(report['verdict'],
                         max((line['verdict'] for line in report['checks']), key=order.index))
        self.assertEqual(got.returncode, 1 if report['verdict'] == 'off' else 0)

    def test_human(self):
        got = self.numalift('check', '--', 'sh')
        lines = [line for line in got.stdout.splitlines() if line.startswith('  ')]
        heads = [line for line in lines if not line.lstrip().startswith('->')]
        widths = {len(line) - len(line.split(None, 2)[2]) for line in heads}
        self.assertEqual(len(widths), 1, 'findings start in one column')
        names = [line.split()[0] for line in heads]
        for name in ALWAYS + PROGRAM:
            self.assertIn(name, names)

    def test_changes_nothing(self):
        self.assertEqual(self.numalift('check').stdout, self.numalift('check').stdout)
        self.assertEqual(os.listdir(self.tmp), [])

    def test_usage(self):
        self.assertEqual(self.numalift('check', '--josn').returncode, 2)
        self.assertEqual(self.numalift('check', '--library').returncode, 2)

    def test_full_disk(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('no /dev/full')
        with open('/dev/full', 'w', encoding='ascii') as full:
            got = subprocess.run([cli.COMMAND, 'check'], env=cli.environment(), stdout=full,
                                 stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(got.returncode, 125)
        self.assertIn('standard output', got.stderr)


class Surroundings(cli.Case):
    def test_library_works(self):
        lines = cli.check_lines(self)
        self.assertEqual(lines['library']['finding'], cli.LIBRARY)
        self.assertEqual(lines['preload']['verdict'], 'ok', lines['preload'])
        self.assertRegex(lines['mimalloc']['finding'], r'^\d\.\d\.\d')

    def test_library_missing(self):
        lines = cli.check_lines(self, '--library=/no/such.so', expect=(1,))
        self.assertEqual(lines['library']['verdict'], 'off')

    def test_library_that_cannot_be_loaded(self):
        """Cut off behind its headers: ld.so refuses it, and the check notices."""
        with open(cli.LIBRARY, 'rb') as f:
            path = self.write('libcut.so', f.read(4096))
        lines = cli.check_lines(self, f'--library={path}', expect=(1,))
        self.assertEqual(lines['preload']['verdict'], 'off', lines['preload'])

    def test_bad_setting(self):
        lines = cli.check_lines(self, env=cli.environment(NUMALIFT_BATCH='3M'))
        self.assertEqual(lines['setting']['verdict'], 'limited')
        self.assertIn('NUMALIFT_BATCH', lines['setting']['finding'])

    def test_switched_off(self):
        lines = cli.check_lines(self, env=cli.environment(NUMALIFT='off'), expect=(1,))
        self.assertEqual(lines['settings']['verdict'], 'off')
        self.assertEqual(lines['placement']['verdict'], 'off')

    def test_own_policy(self):
        act = cli.bind_to_node_0(cli.syscall_number(self, 'set_mempolicy'))
        lines = cli.check_lines(self, preexec_fn=act)
        self.assertEqual(lines['own-policy']['verdict'], 'off')
        self.assertIn('bind', lines['own-policy']['finding'])

    def test_filter_that_refuses(self):
        act = cli.seccomp(cli.syscall_number(self, 'mbind'), cli.SECCOMP_EPERM)
        lines = cli.check_lines(self, preexec_fn=act, expect=(1,))
        self.assertEqual(lines['policies']['verdict'], 'off')
        self.assertIn('EPERM', lines['policies']['finding'])
        self.assertEqual(lines['seccomp']['verdict'], 'off')
        lines = cli.check_lines(self, preexec_fn=act, expect=(1,),
                                env=cli.environment(NUMALIFT_PLACE='anon:local'))
        self.assertEqual(lines['seccomp']['verdict'], 'ok')

    def test_filter_that_kills(self):
        act = cli.seccomp(cli.syscall_number(self, 'mbind'), cli.SECCOMP_KILL)
        lines = cli.check_lines(self, preexec_fn=act, expect=(1,))
        self.assertEqual(lines['policies']['verdict'], 'off')
        self.assertIn('SYS', lines['policies']['finding'])

    def test_address_space(self):
        limit = 8 << 30
        if 'ASAN_OPTIONS' in os.environ:
            self.skipTest('a sanitizer reserves more address space')

        def act():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        lines = cli.check_lines(self, preexec_fn=act)
        self.assertEqual(lines['address-space']['verdict'], 'limited')
        self.assertIn('8 GiB', lines['address-space']['finding'])

    def test_one_node(self):
        lines = cli.check_lines(self)
        if lines['nodes']['finding'].startswith('one node'):
            self.assertEqual(lines['nodes']['verdict'], 'off')
            self.assertEqual(lines['placement']['verdict'], 'off')
        else:
            self.assertEqual(lines['nodes']['verdict'], 'ok')


# Large and busy enough to be looked at, until somebody ends it.
BUSY = '''
b = bytearray(200 << 20)
while True:
    for i in range(0, len(b), 4096):
        b[i] = 1
'''


class Promotion(cli.Case):
    def of(self, *calls, action=cli.SECCOMP_EPERM, **settings):
        """The lines, with a filter that answers these calls where there are any."""
        filters = [cli.seccomp(cli.syscall_number(self, call), action) for call in calls]

        def act():
            for each in filters:
                each()
        return cli.check_lines(self, env=cli.environment(**settings),
                               preexec_fn=act if filters else None)

    def test_switched_off(self):
        line = self.of(NUMALIFT_PROMOTE='off')['promotion']
        self.assertEqual(line['verdict'], 'off')
        self.assertIn('NUMALIFT_PROMOTE', line['finding'])
        self.assertEqual(self.of(NUMALIFT='off')['promotion']['verdict'], 'off')

    def test_tracked_only(self):
        line = self.of(NUMALIFT_PROMOTE='track')['promotion']
        self.assertEqual(line['verdict'], 'limited')
        self.assertIn('tracked', line['finding'])

    def test_nowhere_to_promote_to(self):
        lines = self.of()
        if lines['nodes']['finding'].startswith('one node'):
            self.assertEqual(lines['promotion']['verdict'], 'off')
            self.assertIn('no thread', lines['promotion']['finding'])
        elif ' in 1 tier' in lines['nodes']['finding']:
            self.assertEqual(lines['promotion']['verdict'], 'ok')
            self.assertIn('equally fast', lines['promotion']['finding'])

    def test_sandbox(self):
        line = self.of('userfaultfd')['promotion']
        self.assertEqual(line['verdict'], 'off')
        self.assertIn('NUMALIFT_PROMOTE', line['remedy'])
        self.assertEqual(self.of('userfaultfd', NUMALIFT_PROMOTE='track')['promotion']['verdict'],
                         'limited')

    def test_moving(self):
        lines = self.of()
        if lines['move-pages']['verdict'] != 'ok' or lines['policies']['verdict'] == 'off':
            self.skipTest('pages cannot be moved here')
        self.assertIsNone(lines['move-pages']['remedy'])
        line = self.of('move_pages')['move-pages']
        self.assertEqual(line['verdict'], 'limited')
        self.assertRegex(line['finding'], 'EPERM.*mbind moves')
        line = self.of('move_pages', 'mbind')['move-pages']
        self.assertRegex(line['finding'], 'EPERM.*nothing is moved')
        line = self.of('move_pages', action=cli.SECCOMP_KILL)['move-pages']
        self.assertIn('SYS', line['finding'])

    def test_best_sampler(self):
        lines = self.of()
        if 'is 2' in lines['numa-balancing']['finding'] or 'is 3' in lines['numa-balancing']['finding']:
            self.assertTrue(lines['sampler']['finding'].startswith('kernel:'))
            self.skipTest('the kernel promotes here')
        self.assertRegex(lines['sampler']['finding'], r'^(rwp|wp\+refs|refs|none): ')
        for action, word in ((cli.SECCOMP_EPERM, 'EPERM'), (cli.SECCOMP_KILL, 'SYS')):
            line = self.of('userfaultfd', action=action)['sampler']
            if line['verdict'] == 'off':
                continue
            self.assertTrue(line['finding'].startswith('refs: '), line)
            self.assertIn('rwp is not available (%s)' % word, line['finding'])
            self.assertIn('wp+refs is not available (%s)' % word, line['finding'])
            self.assertIn('userfaultfd', line['remedy'])

    def test_sampler_by_name(self):
        for name in ('rwp', 'wp+refs', 'wp', 'refs', 'dirty', 'damon', 'kernel'):
            line = self.of(NUMALIFT_SAMPLER=name)['sampler']
            if line['verdict'] == 'ok':
                self.assertTrue(line['finding'].startswith(name + ', as asked: '), line)
            else:
                self.assertIn('NUMALIFT_SAMPLER=%s does not work here' % name, line['finding'])

    def test_the_library_takes_that_sampler(self):
        if 'ASAN_OPTIONS' in os.environ:
            self.skipTest('the library of such a build cannot be preloaded')
        for name in ('auto', 'refs'):
            finding = self.of(NUMALIFT_SAMPLER=name)['sampler']['finding']
            env = cli.environment(LD_PRELOAD=cli.LIBRARY, NUMALIFT_PROMOTE='track',
                                  NUMALIFT_SAMPLER=name, NUMALIFT_LOG='info', NUMALIFT_STATS='off')
            with subprocess.Popen([sys.executable, '-c', BUSY], env=env, stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) as busy:
                said = ''
                while 'sampler ' not in said and 'not promoted' not in said:
                    line = busy.stderr.readline()
                    if not line:
                        break
                    said += line
                busy.kill()
            if finding.startswith('none'):
                self.assertNotIn('numalift: sampler ', said)
            else:
                self.assertIn('numalift: sampler %s\n' % finding.split(':')[0].split(',')[0], said)


class Programs(cli.Case):
    def of(self, *program, **kw):
        return cli.check_lines(self, '--', *program, **kw)

    def test_ordinary(self):
        lines = self.of('ls', '-l')
        for name in PROGRAM:
            self.assertEqual(lines[name]['verdict'], 'ok', lines[name])
        self.assertNotIn('script', lines)

    def test_not_found(self):
        lines = self.of('numalift-no-such-program', expect=(1,))
        self.assertEqual(lines['program']['verdict'], 'off')
        self.assertNotIn('linkage', lines)

    def test_not_executable(self):
        lines = self.of(self.write('plain', 'text', 0o644), expect=(1,))
        self.assertEqual(lines['program']['verdict'], 'off')

    def test_scripts(self):
        sh = self.write('sh-script', '#! /bin/sh -e\n')
        env = self.write('env-script', '#!/usr/bin/env -S X=1 sh\n')
        bare = self.write('bare', 'echo\n')
        for path in (sh, env, bare):
            lines = self.of(path)
            self.assertRegex(lines['script']['finding'], r'run by /.*sh,')
            self.assertEqual(lines['linkage']['verdict'], 'ok')
        lines = self.of(self.write('python-script', '#!/usr/bin/env python3\n'))
        self.assertIn('script', lines)

    def test_script_of_scripts(self):
        a = self.write('a', '#!/bin/sh\n')
        b = self.write('b', f'#!{a}\n')
        self.assertRegex(self.of(b)['script']['finding'], r'run by /.*sh,')
        loop = os.path.join(self.tmp, 'loop')
        self.write('loop', f'#!{loop}\n')
        lines = self.of(loop, expect=(1,))
        self.assertEqual(lines['kind']['verdict'], 'off')

    def test_static(self):
        lines = self.of(self.built('static'), expect=(1,))
        self.assertEqual(lines['linkage']['verdict'], 'off')
        self.assertIn('static', lines['linkage']['finding'])

    def test_static_pie(self):
        lines = self.of(self.built('static_pie'), expect=(1,))
        self.assertEqual(lines['linkage']['verdict'], 'off')

    def test_own_malloc(self):
        lines = self.of(self.built('own_malloc'))
        self.assertEqual(lines['allocator']['verdict'], 'limited')

    def test_own_mmap(self):
        lines = self.of(self.built('own_mmap'), expect=(1,))
        self.assertEqual(lines['allocator']['verdict'], 'off')

    def test_sanitizer(self):
        lines = self.of(self.built('sanitized'), expect=(1,))
        self.assertEqual(lines['sanitizer']['verdict'], 'off')
        self.assertIn('AddressSanitizer', lines['sanitizer']['finding'])

    def test_musl(self):
        lines = self.of(self.built('for_musl'), expect=(1,))
        self.assertIn('musl', lines['linkage']['finding'])

    def test_other_architectures(self):
        def elf(bits, data, machine):
            order = '<' if data == 1 else '>'
            return (b'\x7fELF' + bytes([bits, data, 1]) + bytes(9) +
                    struct.pack(order + 'HHI', 2, machine, 1) + bytes(100))
        for bits, data, machine, name in ((1, 1, 3, 'i386'), (1, 1, 40, 'arm'), (2, 2, 22, 's390'),
                                          (1, 1, 62, 'x86-64 (x32)'), (2, 1, 999, 'machine 999')):
            lines = self.of(self.write('elf', elf(bits, data, machine)), expect=(1,))
            self.assertEqual(lines['architecture']['verdict'], 'off')
            self.assertTrue(lines['architecture']['finding'].startswith(name))
            self.assertNotIn('linkage', lines)

    def test_scope(self):
        env = cli.environment(NUMALIFT_SCOPE='memcached,redis*')
        lines = self.of('sh', env=env, expect=(1,))
        self.assertEqual(lines['scope']['verdict'], 'off')

    def privileged(self, mode):
        if os.geteuid() != 0:
            self.skipTest('only root can make a file of another owner')
        path = os.path.join(self.tmp, 'prog')
        shutil.copy(shutil.which('true'), path)
        os.chown(path, 65533, 65533)
        os.chmod(path, mode)
        os.chmod(self.tmp, 0o755)
        if os.statvfs(path).f_flag & os.ST_NOSUID:
            self.skipTest('the file system ignores setuid')
        return path

    def test_setuid_and_setgid(self):
        for mode, name in ((0o4755, 'setuid'), (0o2755, 'setgid'), (0o4711, 'setuid')):
            lines = self.of(self.privileged(mode), expect=(1,))
            self.assertEqual(lines['privileges']['verdict'], 'off')
            self.assertIn(name, lines['privileges']['finding'])
        # Without the group's execute bit there is nothing to gain.
        self.assertEqual(self.of(self.privileged(0o2745))['privileges']['verdict'], 'ok')

    def test_setuid_to_oneself(self):
        path = self.write('prog', '', 0o755)
        shutil.copy(shutil.which('true'), path)
        os.chmod(path, 0o4755)
        self.assertEqual(self.of(path)['privileges']['verdict'], 'ok')

    def test_capabilities(self):
        path = self.privileged(0o755)
        if not shutil.which('setcap'):
            self.skipTest('no setcap')
        if subprocess.run(['setcap', 'cap_net_raw+ep', path], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest('no file capabilities here')
        # Root has them all already; others gain by them.
        self.assertEqual(self.of(path)['privileges']['verdict'], 'ok')
        probe = subprocess.run([cli.COMMAND, '--version'], user=65534, group=65534, extra_groups=[],
                               env=cli.environment(), stdout=subprocess.DEVNULL, check=False) \
            if os.access(cli.COMMAND, os.X_OK) and self.others_reach(cli.COMMAND) else None
        if probe is None or probe.returncode:
            self.skipTest('the build folder is closed to other users')
        lines = self.of(path, user=65534, group=65534, extra_groups=[], expect=(1,))
        self.assertEqual(lines['privileges']['verdict'], 'off')
        self.assertIn('capabilities', lines['privileges']['finding'])

    @staticmethod
    def others_reach(path):
        while path != '/':
            if not os.stat(path).st_mode & 0o001:
                return False
            path = os.path.dirname(path)
        return True

    def test_damaged_files(self):
        """Nothing that a file says may bring the command down."""
        with open(os.path.realpath(shutil.which('true')), 'rb') as f:
            whole = f.read()
        rnd = random.Random(20)
        files = [whole[:n] for n in (0, 1, 4, 15, 16, 19, 20, 63, 64, 65, 100, 500, 4096, 10000)]
        for _ in range(60):
            data = bytearray(whole)
            for _ in range(rnd.choice((1, 4, 40))):
                # Headers decide: of the file, of segments, of sections.
                at = rnd.choice((rnd.randrange(64), rnd.randrange(64, 900),
                                 len(whole) - 1 - rnd.randrange(2000), rnd.randrange(len(whole))))
                data[at] = rnd.choice((0, 1, 0x7f, 0x80, 0xff, rnd.randrange(256)))
            files.append(bytes(data))
        for i, data in enumerate(files):
            with self.subTest(i):
                self.of(self.write('damaged', data))

    def test_strange_names(self):
        for name in ('a\nb', 'quote"back\\slash', 'tab\t'):
            self.of(self.write(name, '#!/bin/sh\n'))
        path = os.path.join(os.fsencode(self.tmp), b'latin-\xe9\xff\xc3')
        with open(path, 'wb') as f:
            f.write(b'#!/bin/sh\n')
        os.chmod(path, 0o755)
        lines = self.of(path)
        self.assertIn('\ufffd', lines['program']['finding'])


if __name__ == '__main__':
    cli.main()
