#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memcached: memccapable, memcaslap with verification, and a loader that reads all values back, with
items in blocks from malloc and in a file on tmpfs."""

import os
import re
import socket
import threading

import driver

KEYS = 6000


def value(i, round):
    size = 20 + (i * 7919 + round * 131) % 3000 if i % 50 else 100000 + i
    return (b'%07d.' % (i * 31 + round) * (size // 8 + 1))[:size]


def read_values(stream):
    found = {}
    while True:
        line = stream.readline()
        if line == b'END\r\n':
            return found
        _, key, _, size = line.split()
        found[key] = stream.read(int(size) + 2)[:-2]


def client(path, first, count, wrong):
    """Three rounds of new values for keys of one client; what does not come back goes to `wrong`."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(driver.PATIENCE)
        s.connect(path)
        stream = s.makefile('rb')
        for round in range(3):
            for i in range(first, first + count):
                v = value(i, round)
                s.sendall(b'set k%d 0 0 %d noreply\r\n%s\r\n' % (i, len(v), v))
            for at in range(first, first + count, 20):
                s.sendall(b'get %s\r\n' % b' '.join(b'k%d' % i for i in range(at, at + 20)))
                found = read_values(stream)
                wrong += [i for i in range(at, at + 20) if found.get(b'k%d' % i) != value(i, round)]


def load(t, server, what):
    path = t.folder + '/s'
    t.connect(path, server).close()
    wrong = []
    clients = [threading.Thread(target=client, args=(path, n * KEYS, KEYS // 4, wrong), daemon=True)
               for n in range(4)]
    for c in clients:
        c.start()
    for c in clients:
        c.join(driver.PATIENCE)
    t.check(not any(c.is_alive() for c in clients) and not wrong, what + ': every key has its value')
    if wrong:
        t.note('%d keys are wrong, the first: %s' % (len(wrong), sorted(wrong)[:10]))


def with_tools(t, memcached):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    server = t.start(memcached + ['-l', '127.0.0.1', '-p', str(port), '-m', '200'], True)

    def ready():
        with socket.socket() as s:
            return s.connect_ex(('127.0.0.1', port)) == 0

    t.wait_for(ready, server)
    status, output = t.run([t.program('memccapable', 'libmemcached-tools'), '-a', '-h', '127.0.0.1',
                            '-p', str(port)])
    if not t.check(status == 0, 'memccapable: the protocol is as it should be'):
        t.note(output)
    status, output = t.run([t.program('memcaslap', 'libmemcached-tools'), '-s', '127.0.0.1:%d' % port,
                            '-T', '2', '-c', '16', '-x', '40000', '-v', '0.5', '-d', '1'])
    counts = dict(re.findall(r'^(\w+): (\d+)$', output, re.MULTILINE))
    t.check(status == 0 and counts.get('vrf_failed', counts.get('verify_failed')) == '0',
            'memcaslap: no value is wrong')
    t.note(output[-600:])
    t.same(t.stop(server), 0, 'and the server ends well')


def main(t):
    memcached = [t.program('memcached', 'memcached'), '-t', '4']
    if os.getuid() == 0:
        memcached += ['-u', 'root']
    for preload in (False, True):
        name = 'with the library' if preload else 'without'
        for kind in ([], ['-e', '/dev/shm/' + os.path.basename(t.folder)]):
            server = t.start(memcached + ['-s', t.folder + '/s', '-m', '300'] + kind, preload)
            try:
                load(t, server, name + (', items on tmpfs' if kind else ''))
                if preload:
                    t.check(t.has_library(server), 'the server has the library')
                t.same(t.stop(server), 0, name + ': the server ends well')
            finally:
                for path in kind[1:]:
                    for end in ('', '.meta'):
                        if os.path.exists(path + end):
                            os.unlink(path + end)
    with_tools(t, memcached)


driver.main(main)
