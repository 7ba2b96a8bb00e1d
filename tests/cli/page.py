"""A process with a statistics page, told what to do line by line."""
import os
import subprocess

import cli


class Process:
    """The program `page`, in the environment of the tests."""

    def __init__(self, case, *, called='page', prefix=(), **kw):
        self.program = case.built('page')
        if called != 'page':
            target, self.program = self.program, os.path.join(case.tmp, called)
            if not os.path.lexists(self.program):
                os.symlink(target, self.program)
        self.child = subprocess.Popen([*prefix, self.program], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, bufsize=1,
                                      env=cli.environment(), **kw)
        self.pid = self.child.pid
        self.path = None
        self.errno = 0
        case.addCleanup(self.stop)

    def tell(self, line):
        """What the command returned; errno and the path of the page are kept."""
        self.child.stdin.write(line + '\n')
        answer = self.child.stdout.readline()
        if not answer:
            raise AssertionError(f'{line}: the process ended with {self.child.wait()}')
        rc, errno, path = answer.rstrip('\n').split(' ', 2)
        self.errno = int(errno)
        self.path = None if path == '-' else path
        return int(rc)

    def die(self):
        self.child.kill()
        self.child.wait()

    def end(self):
        """Lets it end by itself; its exit status."""
        self.child.stdin.close()
        return self.child.wait(timeout=60)

    def stop(self):
        if self.child.poll() is None:
            self.die()
        self.child.stdin.close()
        self.child.stdout.close()
        # It was killed, and nobody clears up the default folders after a test.
        if self.path and self.path.startswith('/dev/shm/') and os.path.isfile(self.path):
            os.unlink(self.path)


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def root():
    return os.geteuid() == 0
