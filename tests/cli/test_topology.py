#!/usr/bin/env python3
"""numalift topology: layout against golden files, JSON, where facts come from, what it does without."""
import json
import os
import shutil
import subprocess
import unittest

import cli

MACHINES = ('one-node', 'two-sockets', 'two-sockets-cxl', 'distances-only')


def fixture(name):
    return os.path.join(cli.FIXTURES, 'fixtures', name + '.xml')


class Files(cli.Case):
    def golden(self, name, *args, **kw):
        got = self.numalift('topology', *args, **kw)
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        path = os.path.join(cli.FIXTURES, 'golden', name)
        # NUMALIFT_CLI_REGENERATE=1 writes them anew; read the difference before committing it.
        if os.environ.get('NUMALIFT_CLI_REGENERATE'):
            with open(path, 'w', encoding='utf-8') as f:
                f.write(got.stdout)
        with open(path, encoding='utf-8') as f:
            self.assertEqual(got.stdout, f.read())

    def test_layout(self):
        for name in MACHINES:
            with self.subTest(name):
                self.golden(name + '.txt', '--xml', fixture(name))

    def test_override(self):
        env = cli.environment(NUMALIFT_TIERS='0-1;2', NUMALIFT_WEIGHTS='0:3,2:1')
        self.golden('override.txt', '--xml=' + fixture('two-sockets-cxl'), env=env)

    def test_json(self):
        for name in MACHINES:
            got = json.loads(self.numalift('topology', '--json', '--xml', fixture(name)).stdout)
            self.assertEqual(got['disagreements'], [])
            ids = [node['id'] for node in got['nodes']]
            for node in got['nodes']:
                self.assertEqual(sorted(map(int, node['distances'])), sorted(ids))
                self.assertIsNone(node['free_bytes'])
        got = json.loads(self.numalift('topology', '--json', '--xml',
                                       fixture('two-sockets-cxl')).stdout)
        self.assertEqual(got['tiers'], ['0,2', '1,3'])
        self.assertEqual(got['tiers_source'], 'hwloc memory attributes')
        self.assertEqual(got['nodes'][1]['read_latency_ns'],
                         {'value': 250, 'source': 'hwloc memory attributes'})
        self.assertEqual(got['nodes'][1]['kind'], 'CXL-DRAM')
        self.assertEqual(got['nodes'][1]['total_bytes'], 256 << 30)
        self.assertEqual(got['nodes'][0]['distances']['3'], 28)

    def test_bad_files(self):
        broken = self.write('broken.xml', '<?xml version="1.0"?><topology', 0o644)
        for path in ('/no/such.xml', broken, self.tmp):
            got = self.numalift('topology', '--xml', path)
            self.assertEqual((got.returncode, got.stdout), (1, ''))
            self.assertIn(path, got.stderr)

    def test_usage(self):
        for args in (['--xml'], ['node0'], ['--json=1']):
            self.assertEqual(self.numalift('topology', *args).returncode, 2)


class Here(cli.Case):
    def setUp(self):
        super().setUp()
        if not os.path.isdir('/sys/devices/system/node'):
            self.skipTest('no /sys/devices/system/node')

    def test_json(self):
        got = json.loads(self.numalift('topology', '--json').stdout)
        online = sorted(int(n[4:]) for n in os.listdir('/sys/devices/system/node')
                        if n.startswith('node') and n[4:].isdigit())
        self.assertEqual(sorted(node['id'] for node in got['nodes']), online)
        for node in got['nodes']:
            with open(f'/sys/devices/system/node/node{node["id"]}/meminfo', encoding='ascii') as f:
                total = int(f.readline().split()[3]) * 1024
            self.assertEqual(node['total_bytes'], total)
            self.assertEqual(node['source'], 'sysfs')
            with open(f'/sys/devices/system/node/node{node["id"]}/cpulist', encoding='ascii') as f:
                self.assertEqual(node['cpus'], f.read().strip())
        with_memory = {node['id'] for node in got['nodes'] if node['total_bytes']}
        self.assertEqual(with_memory, {node['id'] for node in got['nodes']
                                       if node['tier'] is not None})

    def test_human(self):
        got = self.numalift('topology')
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        self.assertTrue(got.stdout.startswith('NODE  TIER'))
        self.assertIn('hwloc', got.stdout)

    def test_override(self):
        got = json.loads(self.numalift('topology', '--json',
                                       env=cli.environment(NUMALIFT_TIERS='0')).stdout)
        self.assertEqual(got['tiers_source'], 'NUMALIFT_TIERS')
        self.assertEqual(got['tiers'][0], '0')

    def test_bad_override_is_said_and_left_out(self):
        got = self.numalift('topology', env=cli.environment(NUMALIFT_TIERS='fast'))
        self.assertEqual(got.returncode, 0)
        self.assertIn("NUMALIFT_TIERS: 'fast' at position 1", got.stderr)

    def test_hwloc_of_another_machine(self):
        env = cli.environment(HWLOC_XMLFILE=fixture('two-sockets'))
        got = json.loads(self.numalift('topology', '--json', env=env).stdout)
        self.assertEqual(len(got['disagreements']), 1)

    def test_hwloc_disagrees(self):
        env = cli.environment(HWLOC_XMLFILE=fixture('two-sockets'), HWLOC_THISSYSTEM='1')
        got = json.loads(self.numalift('topology', '--json', env=env).stdout)
        self.assertTrue(any('memory' in d for d in got['disagreements']), got['disagreements'])

    def test_without_sys(self):
        hide = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /sys && exec "$0" "$@"']
        if not shutil.which('unshare') or subprocess.run(
                [*hide, 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest('/sys cannot be hidden here')
        got = subprocess.run([*hide, cli.COMMAND, 'topology'], env=cli.environment(), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual((got.returncode, got.stdout), (1, ''))
        self.assertIn('mount sysfs', got.stderr)
        got = subprocess.run([*hide, cli.COMMAND, 'check', '--json'], env=cli.environment(), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(got.returncode, 1)
        verdicts = {c['name']: c['verdict'] for c in json.loads(got.stdout)['checks']}
        self.assertEqual((verdicts['sys'], verdicts['placement']), ('off', 'off'))

    def test_without_proc(self):
        hide = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$0" "$@"']
        if not shutil.which('unshare') or subprocess.run(
                [*hide, 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest('/proc cannot be hidden here')
        for args in (['topology', '--json'], ['check', '--json']):
            got = subprocess.run([*hide, cli.COMMAND, *args], env=cli.environment(), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            report = json.loads(got.stdout)
        verdicts = {c['name']: c for c in report['checks']}
        self.assertEqual(verdicts['proc']['verdict'], 'limited')
        self.assertEqual(verdicts['library']['verdict'], 'ok', verdicts['library'])
        got = subprocess.run([*hide, cli.COMMAND, 'run', 'echo', 'out'], env=cli.environment(), text=True,
                             stdout=subprocess.PIPE, check=False)
        self.assertEqual((got.returncode, got.stdout), (0, 'out\n'))


if __name__ == '__main__':
    cli.main()
