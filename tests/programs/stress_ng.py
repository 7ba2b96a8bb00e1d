#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""stress-ng: its stressors for memory and processes, verifying what they write."""

import re

import driver

STRESSORS = ('malloc', 'mmap', 'mremap', 'fork', 'vfork', 'shm', 'shm-sysv', 'memfd', 'numa', 'vm')


def main(t):
    argv = [t.program('stress-ng', 'stress-ng')]
    for name in STRESSORS:
        argv += ['--' + name, '2']
    argv += ['-t', '20', '--verify', '--metrics', '--temp-path', t.folder, '--vm-bytes', '64M']
    status, output = t.run(argv, True)
    t.same(status, 0, 'stress-ng ends well')
    t.check(not re.search(r'\bfail(ed)?:|corrupt|unsuccessful', output), 'it finds nothing wrong')
    for name in STRESSORS:
        ran = re.search(r'metrc: \[\d+\] %s +\d+ ' % re.escape(name), output)
        if not ran and re.search(r'%s.*(skipp|not supported|not implemented)' % re.escape(name), output):
            t.note(name + ' was skipped by stress-ng itself')
            continue
        t.check(ran, name + ' was run')
    t.note(output[-4000:])


driver.main(main)
