#!/usr/bin/env python3
"""numalift run: passes everything through, refuses bad settings, extends LD_PRELOAD."""
import os
import shutil
import signal
import subprocess
import unittest

import cli


class PassesThrough(cli.Case):
    def test_arguments(self):
        args = ['', ' ', '--', '-v', '--place=x', 'a b', '*', "'", 'é', '\\n']
        got = self.numalift('run', '--', 'printf', '%s\\n', *args)
        self.assertEqual(got.stdout.split('\n')[:-1], args)
        self.assertEqual((got.returncode, got.stderr), (0, ''))

    def test_separator_is_optional(self):
        got = self.numalift('run', 'echo', '--place=nothing-of-mine', '--help')
        self.assertEqual(got.stdout, '--place=nothing-of-mine --help\n')

    def test_program_name(self):
        got = self.numalift('run', 'sh', '-c', 'tr "\\0" " " </proc/$$/cmdline')
        self.assertTrue(got.stdout.startswith('sh -c '), got.stdout)

    def test_exit_status(self):
        for status in (0, 1, 2, 7, 125, 126, 127, 255):
            got = self.numalift('run', '--', 'sh', '-c', f'exit {status}')
            self.assertEqual((got.returncode, got.stderr), (status, ''))

    def test_death_by_signal(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGABRT):
            got = self.numalift('run', '--', 'sh', '-c', f'ulimit -c 0; kill -{int(number)} $$')
            self.assertEqual(got.returncode, -number)

    def test_same_process(self):
        with subprocess.Popen([cli.COMMAND, 'run', '--', 'sh', '-c', 'echo $$'],
                              env=cli.environment(), stdout=subprocess.PIPE, text=True) as p:
            self.assertEqual(int(p.stdout.read()), p.pid)

    def test_signals_reach_the_program(self):
        with subprocess.Popen([cli.COMMAND, 'run', '--', 'sh', '-c',
                               'trap "exit 9" TERM; echo up; while :; do sleep 0.05; done'],
                              env=cli.environment(), stdout=subprocess.PIPE, text=True) as p:
            p.stdout.readline()
            p.send_signal(signal.SIGTERM)
            self.assertEqual(p.wait(timeout=20), 9)

    def test_standard_input(self):
        text = 'line\n' * 10000
        got = self.numalift('run', '--', 'cat', input=text)
        self.assertEqual(got.stdout, text)

    def test_signal_state_and_descriptors(self):
        script = 'grep -E "^Sig(Blk|Ign)" /proc/self/status; ls /proc/self/fd | wc -l; umask; pwd'
        plain = subprocess.run(['sh', '-c', script], env=cli.environment(), text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, check=True)
        self.assertEqual(self.numalift('run', 'sh', '-c', script).stdout, plain.stdout)

    def test_environment(self):
        env = cli.environment(STRANGE='a=b=c', EMPTY='')
        got = self.numalift('run', '--', 'env', '-0', env=env)
        after = dict(e.split('=', 1) for e in got.stdout.split('\0') if e)
        after.pop('_', None)
        self.assertEqual(after.pop('LD_PRELOAD'), cli.LIBRARY)
        self.assertEqual(after, env)


class CannotStart(cli.Case):
    def test_not_found(self):
        for name in ('numalift-no-such-program', '/numalift/no/such/program', ''):
            got = self.numalift('run', '--', name)
            self.assertEqual((got.returncode, got.stdout), (127, ''))
            self.assertIn('no such program', got.stderr)

    def test_not_executable(self):
        plain = self.write('plain', 'text\n', 0o644)
        for path in (plain, self.tmp):
            got = self.numalift('run', '--', path)
            self.assertEqual(got.returncode, 126)
            self.assertIn(path, got.stderr)

    def test_later_folder_of_path(self):
        """As execvp: what cannot be run does not hide what can."""
        os.mkdir(os.path.join(self.tmp, 'a'))
        os.mkdir(os.path.join(self.tmp, 'b'))
        self.write('a/prog', 'text\n', 0o644)
        path = f'{self.tmp}/a:{self.tmp}/b'
        got = self.numalift('run', 'prog', env=cli.environment(PATH=path))
        self.assertEqual(got.returncode, 126)
        self.write('b/prog', '#!/bin/sh\necho b\n')
        got = self.numalift('run', 'prog', env=cli.environment(PATH=path))
        self.assertEqual((got.returncode, got.stdout), (0, 'b\n'))

    def test_interpreter_missing(self):
        got = self.numalift('run', self.write('s', '#!/no/such/shell\n'))
        self.assertEqual(got.returncode, 126)
        self.assertIn('missing', got.stderr)

    def test_script_without_header(self):
        got = self.numalift('run', self.write('s', 'echo "$1"\n'), 'word')
        self.assertEqual((got.returncode, got.stdout), (0, 'word\n'))

    def test_usage(self):
        for args in (['run'], ['run', '--'], ['run', '--place'], ['run', '--place=anon:local'],
                     ['run', '-v=1', 'true'], ['run', '--verbose=1', 'true']):
            got = self.numalift(*args)
            self.assertEqual((got.returncode, got.stdout), (2, ''), args)
            self.assertIn('Usage: numalift run', got.stderr)

    def test_nearest_word(self):
        for args, meant in ((['rnu', 'true'], "'run'"), (['topolgy'], "'topology'"),
                            (['--verison'], "'--version'"), (['run', '--plcae=x', 'true'], '--place'),
                            (['run', '--verbos', 'true'], '--verbose'),
                            (['check', '--jsno'], '--json'), (['topology', '--hepl'], '--help')):
            got = self.numalift(*args)
            self.assertEqual(got.returncode, 2, args)
            self.assertIn(f'did you mean {meant}?', got.stderr)
        got = self.numalift('run', '--entirely-different', 'true')
        self.assertEqual(got.returncode, 2)
        self.assertNotIn('did you mean', got.stderr)


class Strict(cli.Case):
    def as_library_says(self, variable, value):
        """The first line that the library itself prints about a setting."""
        env = cli.environment(LD_PRELOAD=cli.LIBRARY, **{variable: value})
        got = subprocess.run(['true'], env=env, stderr=subprocess.PIPE, text=True, check=False)
        return got.stderr.splitlines()[0] if got.stderr else ''

    def refused(self, got, variable, value):
        self.assertEqual((got.returncode, got.stdout), (2, ''), got.stderr)
        lines = got.stderr.splitlines()
        self.assertTrue(lines[0].startswith(f"numalift: {variable}: '"), lines[0])
        self.assertIn('was not started', lines[-1])
        self.assertEqual(lines[0], self.as_library_says(variable, value))

    def test_there_are_settings(self):
        self.assertGreaterEqual(len(cli.settings()), 9)

    def test_bad_options(self):
        for option, variable in cli.settings():
            value = cli.bad_value(variable)
            with self.subTest(option):
                self.refused(self.numalift('run', f'--{option}={value}', 'echo', 'started'),
                             variable, value)
                self.refused(self.numalift('run', f'--{option}', value, 'echo', 'started'),
                             variable, value)

    def test_bad_environment(self):
        for _, variable in cli.settings():
            value = cli.bad_value(variable)
            with self.subTest(variable):
                env = cli.environment(**{variable: value})
                self.refused(self.numalift('run', 'echo', 'started', env=env), variable, value)

    def test_option_stands_in_for_bad_environment(self):
        env = cli.environment(NUMALIFT_BATCH='lots')
        got = self.numalift('run', '--batch=4M', 'sh', '-c', 'echo $NUMALIFT_BATCH', env=env)
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, '4M\n', ''))

    def test_all_are_told(self):
        got = self.numalift('run', '--batch=3M', '--log=loud', '--place=anon', 'true')
        self.assertEqual(got.returncode, 2)
        for variable in ('NUMALIFT_BATCH', 'NUMALIFT_LOG', 'NUMALIFT_PLACE'):
            self.assertIn(f'{variable}: ', got.stderr)

    def test_options_become_variables(self):
        got = self.numalift('run', '--place=anon>=1G:interleave', '--tiers', '0;1', '--scope=',
                            '--inherit=off', 'sh', '-c',
                            'echo "$NUMALIFT_PLACE|$NUMALIFT_TIERS|${NUMALIFT_SCOPE-unset}"')
        self.assertEqual(got.stdout, 'anon>=1G:interleave|0;1|\n')

    def test_slip_of_the_pen(self):
        env = cli.environment(NUMALIFT_PLCAE='anon:local')
        got = self.numalift('run', 'true', env=env)
        self.assertEqual(got.returncode, 0)
        self.assertIn('did you mean NUMALIFT_PLACE?', got.stderr)
        env = cli.environment(NUMALIFT_SOMETHING_ELSE='1')
        self.assertEqual(self.numalift('run', 'true', env=env).stderr, '')


class Preload(cli.Case):
    SHOW = ('run', 'sh', '-c', 'echo $LD_PRELOAD')

    def show(self, old, *options):
        env = cli.environment() if old is None else cli.environment(LD_PRELOAD=old)
        return self.numalift('run', *options, 'sh', '-c', 'echo $LD_PRELOAD', env=env)

    def copy(self, name='libnumalift.so'):
        path = os.path.join(self.tmp, name)
        shutil.copy(cli.LIBRARY, path)
        return path

    def test_alone(self):
        self.assertEqual(self.show(None).stdout, f'{cli.LIBRARY}\n')
        self.assertEqual(self.show('').stdout, f'{cli.LIBRARY}\n')

    def test_appended(self):
        other = self.copy('libother.so')
        # ld.so complains of what is no library, in the program and in numalift: not on stdout.
        self.assertEqual(self.show('libm.so.6').stdout, f'libm.so.6:{cli.LIBRARY}\n')
        self.assertEqual(self.show('libm.so.6 libdl.so.2').stdout,
                         f'libm.so.6 libdl.so.2:{cli.LIBRARY}\n')
        self.assertTrue(os.path.exists(other))

    def test_once(self):
        for old in (cli.LIBRARY, f'libm.so.6:{cli.LIBRARY}', f'{cli.LIBRARY} libm.so.6',
                    f':{cli.LIBRARY}:'):
            got = self.show(old)
            self.assertEqual((got.stdout, got.stderr), (f'{old}\n', ''))
        got = self.numalift('run', cli.COMMAND, *self.SHOW)
        self.assertEqual(got.stdout, f'{cli.LIBRARY}\n')

    def test_link_to_it_counts(self):
        link = os.path.join(self.tmp, 'link.so')
        os.symlink(cli.LIBRARY, link)
        self.assertEqual(self.show(link).stdout, f'{link}\n')

    def test_another_of_that_name(self):
        other = self.copy()
        got = self.show(other)
        self.assertEqual(got.stdout, f'{other}\n')
        self.assertIn('used instead of', got.stderr)

    def test_library_option(self):
        other = self.copy()
        self.assertEqual(self.show(None, f'--library={other}').stdout, f'{other}\n')

    def test_library_missing(self):
        text = self.write('text', 'no library at all, and long enough for a header')
        for path, word in (('/no/such/lib.so', 'No such file'), (text, 'no shared library'),
                           (self.tmp, 'no shared library')):
            got = self.show(None, f'--library={path}')
            self.assertEqual((got.returncode, got.stdout), (125, ''))
            self.assertIn(path, got.stderr)
            self.assertIn(word, got.stderr)

    def test_library_with_blank(self):
        got = self.show(None, '--library=' + self.copy('a b.so'))
        self.assertEqual(got.returncode, 125)
        self.assertIn('LD_PRELOAD cannot hold', got.stderr)

    def test_command_elsewhere_without_library(self):
        command = os.path.join(self.tmp, 'numalift')
        shutil.copy(cli.COMMAND, command)
        if os.path.exists(os.path.join(os.environ['NUMALIFT_PREFIX'], os.environ['NUMALIFT_LIBDIR'],
                                       'libnumalift.so')):
            self.skipTest('numalift is installed: its library is found')
        got = self.numalift('run', 'true', command=command)
        self.assertEqual(got.returncode, 125)
        self.assertIn('--library=FILE', got.stderr)

    def test_installed_tree(self):
        bindir = os.environ['NUMALIFT_BINDIR']
        libdir = os.environ['NUMALIFT_LIBDIR']
        if os.path.isabs(bindir) or os.path.isabs(libdir):
            self.skipTest('folders outside of the prefix cannot be moved')
        for folder in (bindir, libdir):
            os.makedirs(os.path.join(self.tmp, 'moved', folder), exist_ok=True)
        command = os.path.join(self.tmp, 'moved', bindir, 'numalift')
        library = os.path.join(self.tmp, 'moved', libdir, 'libnumalift.so')
        shutil.copy(cli.COMMAND, command)
        shutil.copy(cli.LIBRARY, library)
        self.assertEqual(self.numalift(*self.SHOW, command=command).stdout, f'{library}\n')

    def test_it_is_loaded(self):
        got = self.numalift('run', 'cat', '/proc/self/maps')
        self.assertIn(os.path.realpath(cli.LIBRARY), got.stdout)

    def test_verbose(self):
        got = self.numalift('run', '-v', '--batch=4M', 'echo', 'out')
        self.assertEqual(got.stdout, 'out\n')
        lines = got.stderr.splitlines()
        self.assertEqual(lines[:2], [f'numalift: LD_PRELOAD={cli.LIBRARY}',
                                     'numalift: NUMALIFT_BATCH=4M'])
        self.assertTrue(lines[2].startswith('numalift: starting /'), lines)


class Warns(cli.Case):
    def test_static(self):
        got = self.numalift('run', self.built('static'), 'x')
        self.assertEqual((got.returncode, got.stdout), (3, 'static x\n'))
        self.assertIn('statically linked', got.stderr)
        self.assertEqual(len(got.stderr.splitlines()), 1)

    def test_static_behind_a_script(self):
        got = self.numalift('run', self.write('s', f'#!{self.built("static")}\n'))
        self.assertEqual(got.returncode, 3)
        self.assertIn('statically linked', got.stderr)

    def test_setuid(self):
        if os.geteuid() != 0:
            self.skipTest('only root can make a file of another owner')
        path = os.path.join(self.tmp, 'id')
        shutil.copy(shutil.which('id'), path)
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o4755)
        os.chmod(self.tmp, 0o755)
        if os.statvfs(path).f_flag & os.ST_NOSUID:
            self.skipTest('the file system ignores setuid')
        got = self.numalift('run', path, '-u')
        self.assertEqual((got.returncode, got.stdout), (0, '65534\n'))
        self.assertIn('setuid', got.stderr)

    def test_musl(self):
        """Its dynamic linker ends a program whose preload it cannot load."""
        got = self.numalift('run', '-v', self.built('for_musl'))
        self.assertIn('musl', got.stderr)
        self.assertNotIn('LD_PRELOAD=', got.stderr)


if __name__ == '__main__':
    cli.main()
