# SPDX-License-Identifier: MIT
"""Runs many steps in one guest, and checks what they printed.

A step is a shell command; all steps of a machine go into one script, because starting the guest costs
more than most steps do. Steps are given to Guest.run() and Guest.shell() first, and checks about them at
the same time; the guest is started by Guest.boot(), and the checks are evaluated after that, each to one
line in the form of TAP.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

FOLDER = '/opt/numa'
LIBRARY = FOLDER + '/libnumalift.so'
PAGE = 4096


class CannotRun(Exception):
    """The guest cannot be started here, for a reason that is not numalift's."""


class Failed(Exception):
    """What a check raises when it does not hold."""


class Step:
    """One command of the script. out, err and rc are there after the boot; rc None: never reached."""

    def __init__(self, number, title, text):
        self.number = number
        self.title = title
        self.text = text
        self.out = []
        self.err = []
        self.rc = None

    def need(self):
        if self.rc is None:
            raise Failed('was not reached: the guest ended before')
        return self

    def kind(self, name):
        """{'nodes': {node: pages}, 'vmas': ..., 'huge': ..., 'policy': ...} of the line that begins with name."""
        for line in self.need().out:
            words = line.split()
            if words and words[0] == name:
                return parse_kind(words[1:])
        raise Failed('printed nothing about %s (status %s)%s' % (
            name, self.rc, ': ' + ' / '.join(self.err[:3]) if self.err else ''))

    def number_of(self, name):
        """The figure after this word at the beginning of a line."""
        for line in self.need().out:
            words = line.split()
            if len(words) > 1 and words[0] == name and words[1].isdigit():
                return int(words[1])
        raise Failed('no line "%s N"' % name)


def parse_kind(words):
    ret = {'nodes': {}, 'vmas': 0, 'huge': 0, 'absent': 0, 'policy': []}
    for word in words:
        key, _, value = word.partition('=')
        if key.isdigit():
            ret['nodes'][int(key)] = int(value)
        elif key == 'policy':
            ret['policy'] = value.split('|')
        else:
            ret[key] = int(value)
    return ret


def describe(nodes):
    return ', '.join('node %d: %d' % n for n in sorted(nodes.items())) or 'nothing'


class Tap:
    """Lines of results, numbered over all machines."""

    def __init__(self):
        self.number = 0
        self.failed = []
        self.skipped = []

    def result(self, ok, title, detail=''):
        self.number += 1
        text = title + (': ' + detail if detail else '')
        print('%s %d - %s' % ('ok' if ok else 'not ok', self.number, text.replace('#', '')))
        if not ok:
            self.failed.append(text)

    def skip(self, title, why):
        self.number += 1
        self.skipped.append(title)
        print('ok %d - %s # SKIP %s' % (self.number, title, why))

    def note(self, text):
        print('# ' + text)


PRELUDE = r'''
exec 2>&1
step() { sed 's/^/|/' /tmp/.out; echo '@err'; sed 's/^/|/' /tmp/.err; echo "@end $1 $2"; }
cd /tmp
'''


class Guest:
    """The steps and checks of one machine description."""

    def __init__(self, machine, kernel, settings):
        self.machine = machine
        self.name = os.path.basename(machine).split('.')[0]
        self.kernel = kernel
        self.settings = settings
        self.files = {}      # path in the guest -> path here
        self.modules = []
        self.steps = []
        self.checks = []     # (title, function) or (title, None, why skipped)
        self.env = {}        # of every program that has the library
        self.measured = []   # functions that return a line to print, whatever it says

    # --- steps

    def shell(self, text, title=None):
        """Runs as root, without the library."""
        step = Step(len(self.steps), title or text, text)
        self.steps.append(step)
        return step

    def sysctl(self, name, value):
        return self.shell('echo %s > /proc/sys/%s' % (value, name.replace('.', '/')))

    def preload(self, env):
        words = ['LD_PRELOAD=' + LIBRARY]
        for pair in sorted({**self.env, **env}.items()):
            words.append('%s=%s' % pair)
        return words

    def command(self, argv, node=0, uid=1000, lift=True, env=None, full=None, deny=None, through=None):
        """The words of a command: see run()."""
        words = [FOLDER + '/launch', '-n', str(node)]
        if uid:
            words += ['-u', str(uid)]
        if full:
            words += ['-e', full]
        if deny:
            words += ['-d', deny]
        program = [FOLDER + '/' + argv[0] if argv[0] in self.settings.programs else argv[0]] + argv[1:]
        if through:
            # what it starts has the library, it does not have it itself
            return words + ['--'] + through + (
                ['/bin/busybox', 'env'] + self.preload(env or {}) if lift else []) + program
        for word in self.preload(env or {}) if lift else []:
            words += ['-p', word]
        return words + ['--'] + program

    def run(self, argv, title, says=None, before='', after='', **how):
        """Runs a program of this folder (or any other) on a CPU of `node`, as `uid`, with the library
        unless lift is False. env: more variables; full: nodes filled meanwhile (launch -e); deny: errno of
        memory policy calls; through: a command that starts it. before, after: shell commands as root in
        the same shell.

        Checks that it ended well, and said nothing on standard error, or one line that fits `says`."""
        text = shlex.join(self.command(argv, **how))
        if before or after:
            text = '%s\n%s\nrc=$?\n%s\nexit $rc' % (before, text, after)
        step = self.shell(text, title)

        def ended_well():
            step.need()
            if step.rc != 0:
                raise Failed('status %d: %s' % (step.rc, ' / '.join(step.err[:3])))
            if says is None and step.err:
                raise Failed('says: ' + ' / '.join(step.err[:3]))
            if says is not None and (len(step.err) != 1 or not re.search(says, step.err[0])):
                raise Failed('%d lines instead of the one expected: %s' % (
                    len(step.err), ' / '.join(step.err[:3])))
            return step.err[0] if step.err else 'says nothing'
        self.check('%s: runs' % title, ended_well)
        return step

    # --- checks

    def check(self, title, fn):
        """fn returns a detail for the line, or raises Failed."""
        self.checks.append((title, fn, None))

    def skip(self, title, why):
        self.checks.append((title, None, why))

    def local(self, step, kind, nodes, least=0.99, what=None):
        """At least this share of the pages is on these nodes (all of it: nothing else is there)."""
        wanted = {nodes} if isinstance(nodes, int) else set(nodes)
        where = '/'.join(str(n) for n in sorted(wanted))

        def fn():
            have = step.kind(kind)['nodes']
            total = sum(have.values())
            good = sum(pages for node, pages in have.items() if node in wanted)
            if total == 0 or good < least * total:
                raise Failed('%d of %d pages (%s)' % (good, total, describe(have)))
            return '%d of %d pages' % (good, total)
        self.check('%s: %s %s' % (step.title, kind, what or 'on node ' + where), fn)

    def none_on(self, step, kinds, node, what):
        def fn():
            bad = {k: step.kind(k)['nodes'].get(node, 0) for k in kinds}
            bad = {k: n for k, n in bad.items() if n}
            if bad:
                raise Failed(', '.join('%d pages of %s' % (n, k) for k, n in bad.items()))
            return '%d kinds' % len(kinds)
        self.check('%s: %s' % (step.title, what), fn)

    def some_on(self, step, kind, node, what):
        def fn():
            have = step.kind(kind)['nodes']
            if not have.get(node):
                raise Failed(describe(have))
            return describe(have)
        self.check('%s: %s' % (step.title, what), fn)

    def spread(self, step, kind, shares, within=0.02):
        """shares: {node: weight}, or a function that returns it, to be called after the boot."""
        def fn():
            off, text = deviation(step.kind(kind)['nodes'], shares() if callable(shares) else shares)
            if off > within:
                raise Failed(text)
            return text
        self.check('%s: %s spread' % (step.title, kind), fn)

    def not_spread(self, step, kind, shares):
        """A control: the same measurement fails where nothing was placed."""
        def fn():
            off, text = deviation(step.kind(kind)['nodes'], shares() if callable(shares) else shares)
            if off <= 0.1:
                raise Failed('is spread too: ' + text)
            return text
        self.check('%s: %s not spread (control)' % (step.title, kind), fn)

    def same(self, step, control, kinds, within=0.01):
        """As without the library: the same share on every node."""
        for kind in kinds:
            def fn(kind=kind):
                a, b = (s.kind(kind)['nodes'] for s in (step, control))
                off = deviation(a, b)[0] if b else 1
                if off > within:
                    raise Failed('%s; without the library %s' % (describe(a), describe(b)))
                return describe(a)
            self.check('%s: %s as without the library' % (step.title, kind), fn)

    def policy(self, step, kind, wanted, what):
        def fn():
            have = step.kind(kind)['policy']
            if not have or not all(re.fullmatch(wanted, p) for p in have):
                raise Failed('policy ' + '|'.join(have))
            return '|'.join(have)
        self.check('%s: %s %s' % (step.title, kind, what), fn)

    def notes(self):
        for fn in self.measured:
            try:
                yield '%s: %s' % (self.name, fn())
            except Failed as e:
                yield '%s: %s' % (self.name, e)

    # --- the guest

    def script(self):
        lines = [PRELUDE]
        for step in self.steps:
            lines.append('echo "@begin %d"' % step.number)
            lines.append('(\n%s\n) > /tmp/.out 2> /tmp/.err < /dev/null' % step.text)
            lines.append('step %d $?' % step.number)
        lines.append('echo @done')
        return '\n'.join(lines) + '\n'

    def boot(self):
        """Runs the script. What was printed before a failure counts; the rest was not reached."""
        with tempfile.TemporaryDirectory(prefix='numalift-guest-') as tmp:
            path = os.path.join(tmp, 'steps')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(self.script())
            argv = [self.settings.guest, '--kernel', self.kernel, '--machine', self.machine,
                    '--timeout', str(self.settings.timeout), '--add', '%s:%s/steps' % (path, FOLDER),
                    '--add', '%s:%s' % (self.settings.library, LIBRARY)]
            for name in self.settings.programs:
                argv += ['--add', '%s:%s/%s' % (self.settings.programs[name], FOLDER, name)]
            for dest, source in self.files.items():
                argv += ['--add', source + ':' + dest if dest else source]
            for name in self.modules:
                argv += ['--module', name]
            argv += ['--', '/bin/sh', FOLDER + '/steps']
            env = {**os.environ, 'LC_ALL': 'C'}
            env.pop('LD_PRELOAD', None)
            # the guest's folder is the one it is called from, and this one is empty
            with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  errors='replace', env=env, cwd=tmp) as child:
                complaints = []
                reader = threading.Thread(target=lambda: complaints.extend(child.stderr))
                reader.start()
                done = self.read(child.stdout)
                rc = child.wait()
                reader.join()
        if rc == 125 and not any(s.rc is not None for s in self.steps):
            raise CannotRun(' '.join(' '.join(complaints).split()) or 'the guest did not start')
        if not done:
            return 'the guest ended with status %d in step "%s"%s' % (
                rc, next((s.title for s in self.steps if s.rc is None), '?'),
                ': ' + ' '.join(' '.join(complaints).split())[-400:] if complaints else '')
        return None

    def read(self, stream):
        step = None
        lines = None
        begun = 0.0
        for line in stream:
            line = line.rstrip('\n')
            if line.startswith('@begin '):
                step = self.steps[int(line.split()[1])]
                lines = step.out
                begun = time.monotonic()
            elif line.startswith('|') and step:
                lines.append(line[1:])
            elif line == '@err' and step:
                lines = step.err
            elif line.startswith('@end ') and step:
                step.rc = int(line.split()[2])
                if self.settings.verbose:
                    print('# %5.1f s: %s' % (time.monotonic() - begun, step.title), file=sys.stderr)
                step = None
            elif line == '@done':
                return True
        return False

    def evaluate(self, tap):
        for title, fn, why in self.checks:
            title = '%s: %s' % (self.name, title)
            if fn is None:
                tap.skip(title, why)
                continue
            try:
                detail = fn()
            except Failed as e:
                tap.result(False, title, str(e))
            else:
                tap.result(True, title, detail or '')


def deviation(have, shares):
    """How far a node is from its share, as a part of all pages, and a text about it."""
    total = sum(have.values())
    if total == 0:
        raise Failed('no pages')
    whole = sum(shares.values())
    off = max(abs(have.get(n, 0) / total - shares.get(n, 0) / whole) for n in set(have) | set(shares))
    return off, '%s, wanted %s %%' % (
        ', '.join('node %d: %.1f' % (n, 100 * have.get(n, 0) / total)
                  for n in sorted(set(have) | set(shares))),
        ', '.join('%.1f' % (100 * shares.get(n, 0) / whole) for n in sorted(set(have) | set(shares))))
