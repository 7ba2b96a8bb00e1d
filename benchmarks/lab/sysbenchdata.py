# SPDX-License-Identifier: MIT
"""A data folder of MariaDB with sysbench's tables, and the list of all its pages, from which a server
fills its buffer pool when it starts. Made here once, by a server of this machine, and kept."""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'tests', 'numa'))

import mariadbdata  # noqa: E402
from mariadbdata import Missing  # noqa: E402,F401

SCRIPTS = '/usr/share/sysbench'
START_SECONDS = 120


def server_words(server, folder, socket, pool_mib):
    return [server, '--no-defaults', '--datadir=' + folder, '--socket=' + socket, '--skip-networking',
            '--innodb-buffer-pool-size=%dM' % pool_mib, '--key-buffer-size=1M',
            '--aria-pagecache-buffer-size=1M', '--performance-schema=OFF', '--innodb-flush-method=fsync',
            '--innodb-use-native-aio=OFF', '--innodb-autoextend-increment=1',
            '--innodb-flush-log-at-trx-commit=0', '--max-connections=20',
            '--innodb-buffer-pool-dump-pct=100'] + mariadbdata.LAYOUT


def sysbench_words(program, script, socket, tables, rows, *more):
    return [program, SCRIPTS + '/' + script + '.lua', '--db-driver=mysql', '--mysql-user=root',
            '--mysql-socket=' + socket, '--mysql-db=sb', '--tables=%d' % tables, '--table-size=%d' % rows, *more]


def call(words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode != 0:
        raise Missing('%s failed: %s' % (os.path.basename(words[0]), ' '.join(done.stdout.split())[-300:]))
    return done.stdout


def fill(programs, sysbench, data, tables, rows):
    socket = data + '.sock'
    user = ['--user=root'] if os.geteuid() == 0 else []
    with open(data + '.log', 'w+', encoding='utf-8') as log:
        with subprocess.Popen(server_words(programs.server, data, socket, 512) + user, stdin=subprocess.DEVNULL,
                              stdout=log, stderr=log) as server:
            talk = [programs.client, '--no-defaults', '-S', socket, '-u', 'root', '-N', '-e']
            try:
                until = time.monotonic() + START_SECONDS
                while subprocess.run(talk + ['select 1'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     check=False).returncode != 0:
                    if server.poll() is not None or time.monotonic() > until:
                        log.seek(0)
                        raise Missing('mariadbd does not start: ' + ' '.join(log.read().split())[-300:])
                    time.sleep(0.2)
                call(talk + ['create database sb'])
                call(sysbench_words(sysbench, 'oltp_read_write', socket, tables, rows, 'prepare'))
                for i in range(1, tables + 1):
                    # so that each page has been used, of the tables and of their other indexes
                    call(talk + ['select sum(length(pad)) from sb.sbtest%d force index (primary); '
                                 'select sum(k) from sb.sbtest%d force index (k_%d)' % (i, i, i)])
                call(talk + ['set global innodb_fast_shutdown = 0; shutdown'])
                server.wait(timeout=START_SECONDS)
            finally:
                if server.poll() is None:
                    server.kill()
    if not os.path.exists(os.path.join(data, 'ib_buffer_pool')):
        raise Missing('mariadbd left no list of its pages')


def folder(scratch, tables, rows):
    """Returns the path of the server, and of the folder."""
    programs = mariadbdata.Programs()
    sysbench = shutil.which('sysbench')
    if not sysbench or not os.path.isdir(SCRIPTS):
        raise Missing('sysbench is not installed')
    empty = mariadbdata.fresh(programs, scratch)

    def make(data):
        shutil.copytree(empty, data)
        fill(programs, sysbench, data, tables, rows)
    return programs.server, mariadbdata.kept(
        scratch, 'sysbench-%s-%dx%d' % (programs.version, tables, rows), make)
