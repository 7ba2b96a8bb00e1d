#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""MariaDB: its own data folder made, sysbench's oltp_read_write on it, tables checked, also after a
restart; statements that leave the same table with and without the library."""

import os

import driver

TABLES = 2
FIXED = '''USE sbtest;
CREATE TABLE sbtest.fixed (id INT PRIMARY KEY, k BIGINT, c VARCHAR(200), b MEDIUMBLOB, KEY (k), KEY (c(20)));
INSERT INTO sbtest.fixed SELECT seq, CRC32(seq), REPEAT(MD5(seq), 1 + seq % 5), NULL FROM seq_1_to_20000;
UPDATE sbtest.fixed SET b = REPEAT(c, 300) WHERE id % 100 = 0;
UPDATE sbtest.fixed SET k = k + id, c = REVERSE(c) WHERE k % 3 = 0;
DELETE FROM sbtest.fixed WHERE k % 11 = 0;
INSERT INTO sbtest.fixed SELECT id + 100000, k, SHA2(c, 512), b FROM sbtest.fixed WHERE id % 2 = 0;
SELECT COUNT(*), SUM(k), MAX(c), MD5(GROUP_CONCAT(MD5(c) ORDER BY id)) FROM sbtest.fixed;
SELECT k % 10 m, COUNT(DISTINCT c), SUM(LENGTH(b)) FROM sbtest.fixed GROUP BY m ORDER BY m;
CHECKSUM TABLE sbtest.fixed;
'''


class Server:
    def __init__(self, t, name, preload):
        self.t = t
        self.folder = os.path.join(t.folder, name)
        self.socket = os.path.join(self.folder, 's')
        self.preload = preload
        self.user = driver.user_name()
        os.mkdir(self.folder)
        t.must([t.program('mariadb-install-db', 'mariadb-server'), '--no-defaults', '--skip-test-db',
                '--auth-root-authentication-method=normal', '--user=' + self.user,
                '--datadir=' + self.folder + '/data'], preload)
        self.process = None

    def start(self):
        t = self.t
        self.process = t.start(
            [t.program('mariadbd', 'mariadb-server'), '--no-defaults', '--user=' + self.user,
             '--datadir=' + self.folder + '/data', '--socket=' + self.socket,
             '--pid-file=' + self.folder + '/pid', '--skip-networking',
             '--innodb-buffer-pool-size=64M', '--innodb-flush-log-at-trx-commit=0'], self.preload)
        t.connect(self.socket, self.process).close()

    def sql(self, text):
        return self.t.must([self.t.program('mariadb', 'mariadb-client'), '--no-defaults', '-N', '-u',
                            'root', '-S', self.socket, '-e', text])

    def sysbench(self, what, *options):
        return self.t.must([self.t.program('sysbench', 'sysbench'), 'oltp_read_write',
                            '--mysql-socket=' + self.socket, '--mysql-user=root', '--rand-seed=7',
                            '--tables=%d' % TABLES, '--table-size=4000', '--time=0', *options, what])

    def each_table(self, what):
        return self.sql('; '.join('%s TABLE sbtest.sbtest%d' % (what, i + 1) for i in range(TABLES)))


def session(t, name, preload):
    """What the fixed statements print."""
    what = 'with the library' if preload else 'without'
    server = Server(t, name, preload)
    server.start()
    if preload:
        t.check(t.has_library(server.process), 'the server has the library')
    server.sql('CREATE DATABASE sbtest')
    printed = server.sql(FIXED)
    server.sysbench('prepare')
    output = server.sysbench('run', '--events=1500', '--threads=8')
    t.check('total number of events:              1500' in output, what + ': sysbench runs to its end')
    before = server.each_table('CHECKSUM')
    t.same(t.stop(server.process), 0, what + ': the server ends well')
    server.start()
    t.same(server.each_table('CHECKSUM'), before, what + ': the same data after a restart')
    t.check(server.each_table('CHECK').count('OK') == TABLES, what + ': CHECK TABLE finds nothing')
    t.same(t.stop(server.process), 0, what + ': and it ends well')
    return printed


def main(t):
    for program, package in (('mariadbd', 'mariadb-server'), ('sysbench', 'sysbench')):
        t.program(program, package)
    wanted = session(t, 'a', False)
    t.same(len(wanted.split()), 4 + 3 * 10 + 2, 'the fixed statements print their results')
    t.same(session(t, 'b', True), wanted, 'and the same with the library')


driver.main(main)
