#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PostgreSQL: a cluster of its own as an ordinary user, pgbench by several clients, sums that have to
agree, and the same data after a restart."""

import glob
import os
import signal

import driver

NOBODY = 65534
TOTALS = ('SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(bbalance) FROM '
          'pgbench_branches), (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(delta) FROM '
          'pgbench_history), (SELECT count(*) FROM pgbench_history)')
DIGEST = 'SELECT md5(string_agg(a::text, \',\' ORDER BY aid)) FROM pgbench_accounts a'


def main(t):
    folders = sorted(glob.glob('/usr/lib/postgresql/*/bin'))
    if not folders:
        t.program('postgres', 'postgresql', core=False)
    programs = folders[-1]
    identity = {}
    if os.getuid() == 0:
        identity = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}
        os.chown(t.folder, NOBODY, NOBODY)

    def pg(name, *arguments):
        return t.must([programs + '/' + name, *arguments], True, **identity)

    def sql(text):
        return pg('psql', '-h', t.folder, '-U', 'me', '-At', '-c', text, 'postgres').strip()

    def start():
        server = t.start([programs + '/postgres', '-D', t.folder + '/data', '-k', t.folder,
                          '-c', 'listen_addresses=', '-c', 'shared_buffers=64MB', '-c', 'fsync=off'],
                         True, **identity)
        t.connect(t.folder + '/.s.PGSQL.5432', server).close()
        t.wait_for(lambda: 'ready to accept' in t.output(server), server)
        return server

    pg('initdb', '-D', t.folder + '/data', '-U', 'me', '-A', 'trust', '--no-sync')
    server = start()
    t.check(t.has_library(server), 'the server has the library')
    pg('pgbench', '-h', t.folder, '-U', 'me', '-i', '-q', '-s', '1', 'postgres')
    pg('pgbench', '-h', t.folder, '-U', 'me', '-c', '4', '-j', '2', '-t', '300', 'postgres')
    totals = sql(TOTALS).split('|')
    t.same(totals[4], '1200', 'every transaction is there')
    t.check(len(set(totals[:4])) == 1, 'the sums of all tables agree')
    digest = sql(DIGEST)
    t.check(len(digest) == 32, 'the accounts have a digest')
    t.same(t.stop(server, signal.SIGINT), 0, 'the server ends well')
    server = start()
    t.same((sql(TOTALS).split('|'), sql(DIGEST)), (totals, digest), 'the same data after a restart')
    t.same(t.stop(server, signal.SIGINT), 0, 'and it ends well')


driver.main(main)
