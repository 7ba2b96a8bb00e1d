#!/usr/bin/env python3
"""The help and the manual tell of everything that is there."""
import os
import re
import subprocess
import unittest

import cli

MAN = os.environ['NUMALIFT_MAN']


def table():
    """Names of the rows in policy/config.c itself."""
    with open(os.environ['NUMALIFT_CONFIG_C'], encoding='utf-8') as f:
        return re.findall(r'ROW\("(NUMALIFT[A-Z_]*)"', f.read())


def figures():
    """The rows of the table in policy/stats.h: name and meaning."""
    with open(os.environ['NUMALIFT_STATS_H'], encoding='utf-8') as f:
        return re.findall(r'^\tX\((\w+), \w+, \w+, \w+, "([^"]+)"\)', f.read(), re.M)


def plain(page):
    """A man page as text, without its mark-up."""
    with open(os.path.join(MAN, page), encoding='utf-8') as f:
        text = f.read()
    return re.sub(r'\\f[BIRP]', '', text).replace('\\-', '-').replace('\\&', '').replace('\\(aq', "'")


class Help(cli.Case):
    def test_every_setting_is_an_option(self):
        names = table()
        self.assertGreater(len(names), 5)
        self.assertEqual([variable for _, variable in cli.settings()], names)

    def test_commands(self):
        got = self.numalift('--help')
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        commands = re.findall(r'^  (\w+)  ', got.stdout, re.M)
        self.assertEqual(commands, ['run', 'topology', 'check', 'stat'])
        for command in commands:
            for option in ('--help', '-h'):
                got = self.numalift(command, option)
                self.assertEqual((got.returncode, got.stderr), (0, ''))
                self.assertTrue(got.stdout.startswith(f'Usage: numalift {command} '))
                self.assertLessEqual(max(map(len, got.stdout.splitlines())), 100)

    def test_no_command(self):
        got = self.numalift()
        self.assertEqual((got.returncode, got.stdout), (2, ''))
        self.assertIn('Commands:', got.stderr)

    def test_version(self):
        got = self.numalift('--version')
        self.assertEqual((got.returncode, got.stdout),
                         (0, f'numalift {os.environ["NUMALIFT_VERSION"]}\n'))


class Manual(cli.Case):
    def test_every_setting_has_its_entry(self):
        page = plain('libnumalift.7')
        entries = re.findall(r'^\.TP\n(?:\.B|\.BR|\.BI) (NUMALIFT\S*)', page, re.M)
        self.assertEqual([e.strip('"') for e in entries], table())

    def test_every_setting_has_its_default_there(self):
        page = plain('libnumalift.7')
        out = self.numalift('run', '--help').stdout
        for default in re.findall(r'^        Default: (.*)$', out, re.M):
            self.assertIn(default, page)

    def test_every_option_is_there(self):
        page = plain('numalift.1')
        for command in ('run', 'topology', 'check', 'stat'):
            out = self.numalift(command, '--help').stdout
            for option in re.findall(r'^  (?:-\w, )?(--[a-z-]+)', out, re.M):
                self.assertIn(option, page)

    def test_every_figure_is_there(self):
        page = plain('numalift.1')
        self.assertGreater(len(figures()), 40)
        for name, meaning in figures():
            self.assertIn(f'\n{name}: {meaning}\n', page)

    def test_every_check_is_there(self):
        page = plain('numalift.1')
        for name in cli.check_lines(self, '--', 'sh'):
            self.assertRegex(page, rf'\b{re.escape(name)}\b')

    def test_examples_are_accepted(self):
        """What the manual shows as a value is one."""
        page = plain('libnumalift.7')
        shown = re.findall(r'^(NUMALIFT[A-Z_]*)=(\S+)$', page, re.M)
        self.assertGreater(len(shown), 10)
        for variable, value in shown:
            env = cli.environment(**{variable: value.strip("'")})
            got = self.numalift('run', 'true', env=env)
            self.assertEqual((got.returncode, got.stderr), (0, ''), f'{variable}={value}')
        self.assertEqual({variable for variable, _ in shown}, set(table()))


if __name__ == '__main__':
    cli.main()
