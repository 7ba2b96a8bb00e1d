#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""python.py MODULE: a module of Python's own tests, by the system's python3. What fails without the
library as well is not counted against it."""

import re
import sys

import driver


def outcome(t, python, module, preload):
    """({test: result}, what it printed); the results are those of unittest in verbose form."""
    status, output = t.run([python, '-B', '-m', 'test', '-v', '--tempdir', t.folder, module], preload,
                           patience=900)
    results = dict(re.findall(r'^(test\w+ \([\w.]+\)).*?(?:\n.*?)?\.\.\. (ok|FAIL|ERROR|skipped)', output,
                              re.MULTILINE))
    return status, results, output


def main(t, module):
    python = t.program('python3', 'python3')
    if t.run([python, '-c', 'import test.support, test.' + module])[0] != 0:
        version = '.'.join(t.must([python, '--version']).split()[1].split('.')[:2])
        t.program('a copy of Python\'s tests', 'libpython%s-testsuite' % version)
    status, got, output = outcome(t, python, module, True)
    if status == 0:
        t.check(True, module + ' passes')
    else:
        expected = outcome(t, python, module, False)
        t.same(status, expected[0], module + ' ends as without the library')
    for name, result in got.items():
        if result == 'ok':
            t.check(True, name)
        elif result != 'skipped':
            t.check(status != 0 and expected[1].get(name) == result, name + ' ends as without')
    t.check(len(got) > 10, 'the tests were run')
    if t.bad:
        t.note(output[-5000:])


driver.main(main, sys.argv[1])
