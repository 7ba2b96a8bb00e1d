#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redis: redis-benchmark, then keys of many sizes and kinds that are read back, also after a dump by a
forked child and a restart from it."""

import os
import random

import driver

KEYS = 20000


def request(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words)


def answer(stream):
    line = stream.readline()
    kind, rest = line[:1], line[1:-2]
    if kind == b'$':
        return None if rest == b'-1' else stream.read(int(rest) + 2)[:-2]
    if kind == b'*':
        return [answer(stream) for _ in range(int(rest))]
    if kind not in (b'+', b':'):
        raise RuntimeError('redis says %r' % line)
    return rest


def call(connection, stream, requests):
    """The answers to many requests, sent a few hundred at a time."""
    answers = []
    for at in range(0, len(requests), 200):
        some = requests[at:at + 200]
        connection.sendall(b''.join(request(*r) for r in some))
        answers += [answer(stream) for _ in some]
    return answers


def value(i):
    size = (i * 7919) % 900 if i % 100 else 30000 + i
    return (b'%08d' % (i * 40503 % 99999999) * (size // 8 + 1))[:size]


def start(t, server, preload):
    process = t.start([server, '--port', '0', '--unixsocket', t.folder + '/s', '--dir', t.folder,
                       '--save', '', '--enable-debug-command', 'yes'], preload)
    connection = t.connect(t.folder + '/s', process)
    return process, connection, connection.makefile('rb')


def fill_and_read(t, server, preload):
    """The digest of all data, as redis itself computes it."""
    name = 'with the library' if preload else 'without'
    process, connection, stream = start(t, server, preload)
    if preload:
        t.check(t.has_library(process), 'the server has the library')
        t.same(t.run([t.program('redis-benchmark', 'redis-tools'), '-s', t.folder + '/s', '-n', '5000',
                      '-q', '-d', '200', '-t', 'set,get,incr,lpush,lrange_100,hset,zadd'])[0], 0,
               'redis-benchmark ends well')
        call(connection, stream, [('FLUSHALL',)])
    keys = list(range(KEYS))
    random.Random(1).shuffle(keys)
    call(connection, stream, [('SET', 'k%d' % i, value(i)) for i in keys])
    call(connection, stream, [('HSET', 'h%d' % (i % 50), i, value(i)[:100]) for i in keys])
    call(connection, stream, [('RPUSH', 'l%d' % (i % 20), i) for i in keys])
    call(connection, stream, [('DEL', 'k%d' % i) for i in keys[::3]])
    call(connection, stream, [('APPEND', 'k%d' % i, value(i)) for i in keys[::5]])
    call(connection, stream, [('SET', 'k%d' % i, value(i)) for i in keys])
    got = call(connection, stream, [('GET', 'k%d' % i) for i in range(KEYS)])
    t.check(got == [value(i) for i in range(KEYS)], '%s: every key has its value' % name)
    digest = call(connection, stream, [('DEBUG', 'DIGEST')])[0]

    call(connection, stream, [('BGSAVE',)])
    # Written to while the child saves: what it saves must not change by that.
    call(connection, stream, [('SET', 'later%d' % i, value(i)) for i in range(3000)])
    call(connection, stream, [('DEL', 'later%d' % i) for i in range(3000)])

    def saved():
        info = call(connection, stream, [('INFO', 'persistence')])[0]
        return b'rdb_bgsave_in_progress:0' in info and b'rdb_last_bgsave_status:ok' in info

    t.wait_for(saved, process)
    t.same(t.stop(process), 0, '%s: the server ends well' % name)
    process, connection, stream = start(t, server, preload)
    t.same(call(connection, stream, [('DEBUG', 'DIGEST')])[0], digest,
           '%s: the same data after a restart from the dump of a forked child' % name)
    t.same(t.stop(process), 0, '%s: and it ends well' % name)
    os.unlink(t.folder + '/dump.rdb')
    return digest


def main(t):
    server = t.program('redis-server', 'redis-server')
    t.same(fill_and_read(t, server, True), fill_and_read(t, server, False),
           'the data is the same with and without the library')


driver.main(main)
