# SPDX-License-Identifier: MIT
"""What the drivers share: programs run with and without the library, checks as a TAP report, and
nothing left behind.

A driver has a function main(t) and ends with driver.main(main). Whatever it starts through `t` is in a
group of its own and killed at the end, also when the driver is interrupted or dies; its files are in
t.folder, which goes as well.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 240          # seconds for one program; a loaded machine is no failure
SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
libc = ctypes.CDLL(None)


class Skip(Exception):
    pass


class Test:
    def __init__(self):
        self.points = 0
        self.bad = 0
        self.groups = []        # processes that lead a group
        library = os.environ['NUMALIFT_LIB']
        # In /tmp and short: sockets lie in it.
        self.folder = tempfile.mkdtemp(prefix='nl-')
        os.chmod(self.folder, 0o755)
        # A copy, because other users may have no way to the folder that it was built in.
        self.library = os.path.join(self.folder, 'libnumalift.so')
        shutil.copy(library, self.library)
        os.chmod(self.library, 0o755)

    # --- the report

    def check(self, holds, what):
        self.points += 1
        self.bad += not holds
        print('%s %d - %s' % ('ok' if holds else 'not ok', self.points, what), flush=True)
        return holds

    def same(self, got, wanted, what):
        if not self.check(got == wanted, what):
            self.note('got:    %.1000r\nwanted: %.1000r' % (got, wanted))

    def note(self, text):
        print('\n'.join('# ' + line for line in str(text).splitlines()), flush=True)

    # --- programs

    def program(self, name, package, core=True):
        """The path of a program. Ends the test where it is missing: in CI by failing, if it is a core one."""
        path = shutil.which(name, path=SYSTEM_PATH)
        if path:
            return path
        if core and os.environ.get('CI') == 'true':
            self.check(False, '%s is missing: apt-get install %s' % (name, package))
        raise Skip('%s is missing: apt-get install %s' % (name, package))

    def environment(self, preload, **more):
        env = {'PATH': SYSTEM_PATH, 'HOME': self.folder, 'TMPDIR': self.folder, 'LC_ALL': 'C.UTF-8',
               'TZ': 'UTC', 'USER': user_name()}
        if preload:
            env['LD_PRELOAD'] = self.library
        env.update(more)
        return env

    def start(self, argv, preload, env=None, **options):
        """A process that leads a group of its own; its output is in the file `process.log`."""
        log = tempfile.NamedTemporaryFile(dir=self.folder, suffix='.log', delete=False)
        options.setdefault('stdout', log)
        options.setdefault('stdin', subprocess.DEVNULL)
        options.setdefault('cwd', self.folder)
        process = subprocess.Popen(
            argv, stderr=subprocess.STDOUT, env=self.environment(preload, **(env or {})),
            start_new_session=True, preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
            **options)
        process.log = log.name
        log.close()
        self.groups.append(process)
        return process

    def output(self, process):
        with open(process.log, encoding='utf-8', errors='replace') as f:
            return f.read()

    def run(self, argv, preload=False, patience=PATIENCE, input=None, **options):
        """Runs to the end: (status, output). Standard error is in the output."""
        if input is not None:
            options['stdin'] = subprocess.PIPE
        process = self.start(argv, preload, **options)
        try:
            process.communicate(None if input is None else input.encode(), timeout=patience)
        except subprocess.TimeoutExpired:
            self.kill(process)
            return 'no end within %d s' % patience, self.output(process)
        return process.returncode, self.output(process)

    def must(self, argv, preload=False, **options):
        """The output of a program that has to succeed."""
        status, output = self.run(argv, preload, **options)
        if status != 0:
            raise RuntimeError('%s: %s\n%s' % (' '.join(map(str, argv)), status, output[-3000:]))
        return output

    def stop(self, process, number=signal.SIGTERM, patience=PATIENCE):
        """Asks a server to end; its exit status."""
        process.send_signal(number)
        try:
            return process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill(process)
            return 'no end within %d s' % patience

    def has_library(self, process):
        with open('/proc/%d/maps' % process.pid, encoding='utf-8', errors='replace') as f:
            return self.library in f.read()

    def wait_for(self, ready, process, patience=PATIENCE):
        """Until ready() is true; a server that ended, or does not get there, is an error."""
        end = time.monotonic() + patience
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError('%s is not up (status %s)\n%s' % (
                    process.args[0], process.poll(), self.output(process)[-3000:]))
            time.sleep(0.05)

    def connect(self, path, process):
        """A connection to a server's socket, once it listens."""
        result = []

        def ready():
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(path)
            except OSError:
                connection.close()
                return False
            result.append(connection)
            return True

        self.wait_for(ready, process)
        result[0].settimeout(PATIENCE)
        return result[0]

    # --- the end

    def kill(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def clean_up(self):
        for process in self.groups:
            self.kill(process)
        # Those that left their group came to this process when their parents ended.
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


def user_name():
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def children():
    path = '/proc/self/task/%d/children' % os.getpid()
    try:
        with open(path, encoding='ascii') as f:
            return [int(pid) for pid in f.read().split()]
    except OSError:
        return []


def main(function, *arguments):
    def stopped(number, _):
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stopped)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    t = Test()
    skipped = None
    try:
        function(t, *arguments)
    except Skip as e:
        skipped = str(e)
    except Exception:
        t.note(traceback.format_exc())
        t.check(False, 'the test comes to its end')
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        t.clean_up()
    if skipped and not t.points:
        print('1..0 # SKIP ' + skipped)
    else:
        print('1..%d' % t.points)
    sys.exit(1 if t.bad else 0)
