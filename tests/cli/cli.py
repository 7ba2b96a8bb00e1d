"""What the tests of the command share: where it is, and how to run it.

The environment of the tests is not passed on but for a few variables, so that settings of whoever
runs them do not count. Every test says with skipTest what it lacks.
"""
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.environ['NUMALIFT']
LIBRARY = os.environ['NUMALIFT_LIBRARY']
FIXTURES = os.environ.get('NUMALIFT_CLI_FIXTURES', '')
BIN = os.environ.get('NUMALIFT_CLI_BIN', '')
SKIP = 77

# One value for each setting that cannot be meant.
BAD = {
    'NUMALIFT': 'maybe',
    'NUMALIFT_SCOPE': '/usr/bin/memcached',
}


def bad_value(variable):
    return BAD.get(variable, '?what?')


def environment(**more):
    keep = ('PATH', 'HOME', 'TMPDIR', 'ASAN_OPTIONS', 'UBSAN_OPTIONS')
    env = {k: os.environ[k] for k in keep if k in os.environ}
    env['LC_ALL'] = 'C'
    env.update(more)
    return env


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='numalift-cli-')
        self.addCleanup(folder.cleanup)
        self.tmp = folder.name

    def numalift(self, *args, env=None, command=COMMAND, **kw):
        """Runs the command; never raises for its exit status."""
        kw.setdefault('stdin', subprocess.DEVNULL)
        if 'input' in kw:
            del kw['stdin']
        return subprocess.run([command, *args], env=environment() if env is None else env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False, **kw)

    def write(self, name, text, mode=0o755):
        path = os.path.join(self.tmp, name)
        with open(path, 'wb') as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    def built(self, name):
        """Path of a program that the build made for these tests."""
        path = os.path.join(BIN, name)
        if not os.path.exists(path):
            self.skipTest(f'{name} could not be built here')
        return path


def settings():
    """The settings as (option, variable), from the help that is made from policy's table."""
    out = subprocess.run([COMMAND, 'run', '--help'], env=environment(), stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    names = re.findall(r'^  --([a-z-]+)=VALUE$', out, re.M)
    return [(n, 'NUMALIFT' if n == 'numalift' else 'NUMALIFT_' + n.upper().replace('-', '_'))
            for n in names]


# --- what a child does to itself before it becomes the command --------------------------------

SYSCALLS = {
    'x86_64': {'mbind': 237, 'set_mempolicy': 238, 'move_pages': 279, 'userfaultfd': 323},
    'aarch64': {'mbind': 235, 'set_mempolicy': 237, 'move_pages': 239, 'userfaultfd': 282},
}


def syscall_number(case, name):
    try:
        return SYSCALLS[os.uname().machine][name]
    except KeyError:
        case.skipTest(f'the number of {name} on {os.uname().machine} is not known here')


def bind_to_node_0(number):
    def act():
        mask = ctypes.c_ulong(1)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syscall(number, 2, ctypes.byref(mask), 64) != 0:
            os._exit(SKIP)
    return act


def seccomp(number, action):
    """A filter that answers the system call @number with @action and permits the rest."""
    def act():
        class Filter(ctypes.Structure):
            _fields_ = [('code', ctypes.c_ushort), ('jt', ctypes.c_ubyte), ('jf', ctypes.c_ubyte),
                        ('k', ctypes.c_uint)]

        class Program(ctypes.Structure):
            _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.POINTER(Filter))]

        code = (Filter * 4)(Filter(0x20, 0, 0, 0), Filter(0x15, 0, 1, number),
                            Filter(0x06, 0, 0, action), Filter(0x06, 0, 0, 0x7fff0000))
        program = Program(4, code)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
            os._exit(SKIP)
    return act


SECCOMP_KILL = 0x80000000
SECCOMP_EPERM = 0x00050001


def check_lines(case, *args, expect=(0, 1), **kw):
    """`numalift check --json` as {name: line}."""
    got = case.numalift('check', '--json', *args, **kw)
    if got.returncode == SKIP:
        case.skipTest('this machine does not let a process do that to itself')
    case.assertIn(got.returncode, expect, got.stderr)
    report = json.loads(got.stdout)
    off = any(line['verdict'] == 'off' for line in report['checks'])
    case.assertEqual(got.returncode, 1 if off else 0)
    return {line['name']: line for line in report['checks']}


def main():
    unittest.main(argv=sys.argv, verbosity=2)
