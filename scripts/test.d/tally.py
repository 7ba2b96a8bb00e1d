#!/usr/bin/env python3
"""Usage: tally.py [--again LOG] LOG...
       tally.py --failed SUITE,... LOG

LOG is meson's testlog.json, or NAME=STATUS for a step of its own. What is in the log of --again was run
twice: the second time counts, and what had failed the first time is printed. --failed prints the names of
the programs of these suites that failed, a line each.

Counts single checks: every line of a TAP report, every method that Python's unittest ran, and a
program that reports neither as one. Prints what was skipped, with the reason, and what failed; then
"N passed, N failed, N skipped". Status 1 when something failed or nothing was run.
"""

import collections
import json
import re
import sys

POINT = re.compile(r'(not )?ok\b\s*(\d+)?\s*(?:- )?(.*)$')
DIRECTIVE = re.compile(r'(?<!\\)#\s*(SKIP|TODO)\S*\s*(.*)$', re.IGNORECASE)
UNITTEST = re.compile(r'^Ran (\d+) tests? in ', re.MULTILINE)
UNITTEST_END = re.compile(r'^(?:OK|FAILED)(?: \((.*)\))?$', re.MULTILINE)
UNITTEST_SKIP = re.compile(r"^(\w+) \(.*?\)(?:\n.*)? \.\.\. skipped ['\"](.*)['\"]$", re.MULTILINE)
GOOD = ('OK', 'EXPECTEDFAIL')


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []        # names
        self.skipped = []       # (name, reason)

    def tap(self, name, text):
        """Counts the points of a TAP report; how many there were."""
        points = 0
        for line in text.splitlines():
            m = POINT.match(line)
            if not m:
                continue
            points += 1
            what = '%s: %s' % (name, re.sub(r'\s+\([\d.]+s\)$', '', m.group(3)).strip())
            directive = DIRECTIVE.search(m.group(3))
            if directive and directive.group(1).upper() == 'SKIP':
                self.skipped.append((what[:what.index('#')].strip() if '#' in what else what,
                                     directive.group(2).strip()))
            elif m.group(1) and not directive:
                self.failed.append(what)
            else:
                self.passed += 1
        return points

    def unittest(self, name, text):
        """The same for what Python's unittest prints."""
        total = sum(int(n) for n in UNITTEST.findall(text))
        bad = skipped = 0
        for end in UNITTEST_END.findall(text):
            for key, count in re.findall(r'([\w ]+)=(\d+)', end):
                if key.strip() in ('failures', 'errors', 'unexpected successes'):
                    bad += int(count)
                elif key.strip() == 'skipped':
                    skipped += int(count)
        named = ['%s: %s' % (name, m) for m in re.findall(r'^(?:FAIL|ERROR): (.*)$', text, re.MULTILINE)]
        self.failed += (named + [name] * bad)[:max(bad, len(named))]
        reasons = UNITTEST_SKIP.findall(text)
        for i in range(skipped):
            self.skipped.append(('%s: %s' % (name, reasons[i][0]), reasons[i][1])
                                if i < len(reasons) else (name, ''))
        self.passed += max(0, total - bad - skipped)
        return total

    def run(self, entry):
        """One program of a testlog.json."""
        name = short(entry)
        out = entry.get('stdout', '')
        text = out + '\n' + entry.get('stderr', '')
        before = len(self.failed)
        if entry['result'] == 'SKIP' and not re.search(r'^(not )?ok\b', out, re.MULTILINE):
            said = [line for line in text.splitlines() if line.strip()]
            plan = re.search(r'^1\.\.0\s*#\s*SKIP\S*\s*(.*)$', out, re.MULTILINE | re.IGNORECASE)
            self.skipped.append((name, plan.group(1) if plan else said[-1].strip() if said else ''))
            return
        counted = (self.tap(name, out) if re.search(r'^1\.\.\d', out, re.MULTILINE) else 0) or \
            self.unittest(name, text)
        if entry['result'] not in GOOD + ('SKIP',):
            # What went wrong outside of the single checks: a crash, a time-out, a missing end.
            if len(self.failed) == before:
                self.failed.append('%s: %s, exit status %s' % (
                    name, entry['result'].lower(), entry.get('returncode')))
        elif not counted:
            self.passed += 1


def entries(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return [json.loads(line) for line in f if line.strip()]


def short(entry):
    return entry['name'].replace('numalift:', '')


def failed(suites, path):
    """The names, for `meson test`, of the programs of some suites that failed."""
    return [short(entry).split(' / ')[-1] for entry in entries(path)
            if entry['result'] not in GOOD + ('SKIP',) and short(entry).split(' / ')[0] in suites]


def print_tally(tally, unsteady):
    reasons = collections.OrderedDict()
    for name, reason in tally.skipped:
        reasons.setdefault(reason or 'no reason given', []).append(name)
    for reason, names in reasons.items():
        print('skipped: %s%s: %s' % (', '.join(names[:3]),
                                     ' and %d more' % (len(names) - 3) if len(names) > 3 else '', reason))
    for name in unsteady:
        print('failed when run first, was run again: ' + name)
    for name in tally.failed:
        print('FAILED: ' + name)
    print('%d passed, %d failed, %d skipped' % (tally.passed, len(tally.failed), len(tally.skipped)))


def main():
    words = sys.argv[1:]
    if words[0] == '--failed':
        print('\n'.join(failed(words[1].split(','), words[2])))
        return 0
    tally, first = Tally(), Tally()
    again = []
    if words[0] == '--again':
        try:
            again = entries(words[1])
        except (OSError, ValueError) as e:
            tally.failed.append('%s: %s' % (words[1], e))
        words = words[2:]
    twice = {short(entry) for entry in again}
    for entry in again:
        tally.run(entry)
    for argument in words:
        name, equals, status = argument.rpartition('=')
        if equals and status.isdigit():
            if status == '0':
                tally.passed += 1
            else:
                tally.failed.append('%s: exit status %s' % (name, status))
            continue
        try:
            for entry in entries(argument):
                (first if short(entry) in twice else tally).run(entry)
        except (OSError, ValueError, KeyError) as e:
            tally.failed.append('%s: %s' % (argument, e))
    print_tally(tally, first.failed)
    return 1 if tally.failed or not tally.passed else 0


if __name__ == '__main__':
    sys.exit(main())
