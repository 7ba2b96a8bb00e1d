# SPDX-License-Identifier: MIT
"""Many runs: in which order, several at a time, what is done already, how long it will take.

Each run is in a process of its own, which ends with this one, however this one ends, and takes with it what
it has started.
"""
import ctypes
import fcntl
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import statistics
import time

import onerun

FORMAT = 2
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 20         # for a run to take down what it started


class Refused(Exception):
    """These results are not to be added to. One sentence."""


class Stopped(BaseException):
    """A signal asked to end."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


# ---- results ------------------------------------------------------------------------------------

class Results:
    """results.json: whole at any time, as a run takes longer than anybody likes to lose."""

    def __init__(self, path, settings):
        self.path = path
        self.settings = settings
        self.about = {}
        self.runs = []
        self.failed = []
        self.left_out = []
        self.locked = None

    def lock(self):
        """Two calls would write over each other. False when there is another. Ends with this process, and is not
        inherited by runs."""
        self.locked = open(os.path.join(os.path.dirname(self.path), '.lock'), 'w', encoding='ascii')
        try:
            fcntl.lockf(self.locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def read(self, titles):
        """What an earlier call left; Refused when it was made with other settings."""
        try:
            with open(self.path, encoding='utf-8') as f:
                found = json.load(f)
            if found['format'] != FORMAT:
                raise Refused('%s: is of another version: --again starts afresh' % self.path)
            there = found['settings']
            self.runs, self.failed, self.about = found['runs'], found['failed'], found['about']
            self.left_out = found['left_out']
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise Refused('%s: cannot be read (%s): --again starts afresh' % (
                self.path, e if isinstance(e, (OSError, ValueError)) else 'something is missing')) from None
        differ = differences(self.settings, there, titles)
        if differ:
            raise Refused('%s holds runs with other settings: %s. Another --out, or --again for a fresh start' % (
                os.path.dirname(self.path) or '.', '; '.join(differ)))
        for key, value in there.items():
            if isinstance(value, dict):
                self.settings[key] = {**value, **self.settings[key]}

    def as_dict(self):
        return {'format': FORMAT, 'settings': self.settings, 'about': self.about, 'left_out': self.left_out,
                'failed': self.failed, 'runs': self.runs}

    def write(self):
        with open(self.path + '.new', 'w', encoding='utf-8') as f:
            json.dump(self.as_dict(), f, indent=1)
            f.write('\n')
            f.flush()
            os.fsync(f.fileno())
        os.replace(self.path + '.new', self.path)

    def has(self, key):
        return any(key_of(run) == key for run in self.runs)

    def add(self, run):
        self.failed = [f for f in self.failed if tuple(f[:3]) != key_of(run)]
        self.runs.append(run)
        self.write()

    def add_failure(self, key, why):
        self.failed = [f for f in self.failed if tuple(f[:3]) != key] + [list(key) + [why]]
        self.write()


def show(value):
    if isinstance(value, list):
        return ','.join(value) or 'none'
    if value is None or isinstance(value, bool):
        return {True: 'on', False: 'off', None: 'not given'}[value]
    return value


def differences(now, then, titles):
    """A phrase for each setting in which two calls differ. What is a dict may hold more in one than in the other: who
    adds a workload uses more programs."""
    ret = []
    for key in {**now, **then}:
        a, b, title = now.get(key), then.get(key), titles.get(key, key)
        if isinstance(a, dict) and isinstance(b, dict):
            ret += ['%s %s is another' % (title, name) for name in a if name in b and a[name] != b[name]]
        elif a != b:
            ret.append('%s is %s, and was %s' % (title, show(a), show(b)))
    return ret


def key_of(run):
    return run['workload'], run['contender'], run['seed']


def in_turn(rows, contenders_of, rounds):
    """[(workload, contender, seed)]: round by round, so that half of it is a table, too; within a round all
    contenders of a workload one after the other, so that what lasts longer disturbs all alike."""
    return [(w, c, seed) for seed in range(1, rounds + 1) for w in rows for c in contenders_of(w)]


# ---- how long -----------------------------------------------------------------------------------

def expected(key, took):
    """Seconds that a run takes, from what others took: {key: seconds}. None before there is any."""
    workload = key[0]
    for same in ([s for k, s in took.items() if k[:2] == key[:2]],
                 [s for k, s in took.items() if k[0] == workload], list(took.values())):
        if same:
            return statistics.mean(same)
    return None


def time_left(waiting, running, took, jobs):
    """Seconds until all is done. waiting: keys; running: {key: seconds so far}."""
    if not took:
        return None
    begun = [max(0.0, expected(key, took) - so_far) for key, so_far in running.items()]
    work = sum(begun) + sum(expected(key, took) for key in waiting)
    return max([work / jobs] + begun)


def duration(seconds):
    if seconds is None:
        return 'time left unknown'
    if seconds < 90:
        return 'about %d s left' % max(0, round(seconds))
    minutes = round(seconds / 60)
    return 'about %d min left' % minutes if minutes < 90 else 'about %d h %02d min left' % divmod(minutes, 60)


def name_of(key):
    return '%s, %s, round %d' % key


class Progress:
    """One line that is rewritten on a terminal, else a line for each run that has ended."""

    def __init__(self, stream, total, columns=None):
        self.stream = stream
        self.total = total
        self.live = stream.isatty()
        self.columns = columns or (os.get_terminal_size(stream.fileno()).columns if self.live else 0) or 80
        self.shown = False

    def clear(self):
        if self.live and self.shown:
            self.stream.write('\r\x1b[K')
            self.stream.flush()
            self.shown = False

    def say(self, text):
        self.clear()
        self.stream.write('run: %s\n' % text)
        self.stream.flush()

    def ended(self, key, how, done, left):
        if not self.live:
            self.say('%s: %s (%d of %d, %s)' % (name_of(key), how, done, self.total, duration(left)))

    def now(self, done, running, left):
        if self.live:
            text = 'run: %d of %d, %s; now %s' % (done, self.total, duration(left), '; '.join(
                '%s/%s %d s' % (k[0], k[1], s) for k, s in running.items()) or 'nothing')
            self.stream.write('\r' + text[:self.columns - 1] + '\x1b[K')
            self.stream.flush()
            self.shown = True


# ---- processes ----------------------------------------------------------------------------------

def children(pid):
    ret = []
    try:
        for task in os.listdir('/proc/%d/task' % pid):
            with open('/proc/%d/task/%s/children' % (pid, task), encoding='ascii') as f:
                ret += [int(word) for word in f.read().split()]
    except OSError:
        pass        # gone meanwhile
    return ret


def kill_descendants():
    """All that this process has started, and what of it others have left to it: see PR_SET_CHILD_SUBREAPER."""
    while True:
        left = children(os.getpid())
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def stop_on(*numbers):
    def stop(number, _):
        for n in numbers:       # once is enough: the way out is not to be left in the middle
            signal.signal(n, signal.SIG_IGN)
        raise Stopped(number)
    for number in numbers:
        signal.signal(number, stop)


def child(pipe, parent, one, key):
    """In the new process: answers ('run', dict), ('there', why), ('guest', why) or ('failure', why). The dict has the
    CPU time of all that was started besides, which tells on a machine that is not alone how long it takes on one that
    is."""
    os.setpgid(0, 0)        # a terminal's signals are for the first process alone
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop_on(signal.SIGTERM)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        if os.getppid() != parent:
            return
        try:
            ran = one(key)
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            answer = ('run', dict(ran, cpu_seconds=round(used.ru_utime + used.ru_stime, 1)))
        except onerun.NotThere as e:
            answer = ('there', str(e))
        except onerun.NoGuest as e:
            answer = ('guest', str(e))
        except onerun.Failure as e:
            answer = ('failure', str(e))
        except Exception as e:      # a fault of ours, or of the machine: the other runs do not suffer for it
            answer = ('failure', '%s: %s' % (type(e).__name__, e))
        kill_descendants()
        pipe.send(answer)
    except (Stopped, BrokenPipeError):
        pass
    finally:
        kill_descendants()


class Running:
    """A run in its process."""

    def __init__(self, one, key):
        self.key = key
        self.begun = time.monotonic()
        context = multiprocessing.get_context('fork')
        self.pipe, other = context.Pipe(duplex=False)
        self.process = context.Process(target=child, args=(other, os.getpid(), one, key),
                                       daemon=True)
        self.process.start()
        other.close()

    def so_far(self):
        return time.monotonic() - self.begun

    def answer(self):
        """After its end, or when the pipe says so."""
        try:
            ret = self.pipe.recv()
        except EOFError:
            ret = None
        self.process.join()
        self.pipe.close()
        return ret or ('failure', 'the process of the run ended with status %d' % self.process.exitcode)

    def stop(self):
        self.process.terminate()
        self.process.join(PATIENCE_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def run_all(todo, one, jobs, results, progress, prepare=None):
    """Runs the keys of `todo` by one(key), which returns a dict; prepare(key) is called before, in this process.
    Returns whether there was a guest at all: when the first thing that is heard is that there can be none, nothing
    else is tried."""
    waiting, running = list(todo), []
    took = {key_of(r): r['seconds'] for r in results.runs if 'seconds' in r}
    done = proved = 0
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                if prepare:
                    prepare(waiting[0])
                running.append(Running(one, waiting.pop(0)))
            ready = multiprocessing.connection.wait([r.pipe for r in running], timeout=1)
            for run in [r for r in running if r.pipe in ready]:
                kind, answer = run.answer()
                running.remove(run)
                done += 1
                if kind == 'guest' and not proved:
                    progress.say(answer)
                    return False
                proved += kind == 'run'
                how = '%d s' % run.so_far()
                if kind == 'run':
                    took[run.key] = run.so_far()
                    results.add(dict(answer, seconds=round(run.so_far(), 1)))
                elif kind == 'there':
                    how = 'not there: ' + answer
                    results.add({'workload': run.key[0], 'contender': run.key[1], 'seed': run.key[2],
                                 'not_there': answer})
                else:
                    how = 'FAILED: ' + answer
                    results.add_failure(run.key, answer)
                left = time_left(waiting, {r.key: r.so_far() for r in running}, took, jobs)
                if kind == 'failure' and progress.live:
                    progress.say('%s: %s' % (name_of(run.key), how))
                progress.ended(run.key, how, done, left)
            now = {r.key: r.so_far() for r in running}
            progress.now(done, now, time_left(waiting, now, took, jobs))
    finally:
        progress.clear()
        for run in running:
            run.stop()
    return True
