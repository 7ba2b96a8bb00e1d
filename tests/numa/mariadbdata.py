# SPDX-License-Identifier: MIT
"""MariaDB's programs, and fresh data folders for servers in a guest: made here once, and kept."""
import os
import re
import shutil
import subprocess
import tempfile

# What a folder is made with, a server is started with.
LAYOUT = ['--innodb-log-file-size=4M', '--innodb-data-file-path=ibdata1:10M:autoextend']


class Missing(Exception):
    """Why there is no folder, in a sentence."""


class Programs:
    def __init__(self):
        self.server = shutil.which('mariadbd', path=os.environ.get('PATH', '') + ':/usr/sbin')
        self.client = shutil.which('mariadb')
        self.install = shutil.which('mariadb-install-db')
        if not self.server or not self.client or not self.install:
            raise Missing('mariadb-server is not installed')
        text = subprocess.run([self.server, '--no-defaults', '--version'], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL, check=False).stdout
        found = re.search(r'Ver ([0-9.]+)', text)
        self.version = found.group(1) if found else 'unknown'


def messages():
    """The server's messages, without which it complains: {place: path}."""
    paths = ['/usr/share/mysql/' + name for name in ('english', 'charsets')]
    return {path: path for path in paths if os.path.isdir(path)}


def kept(scratch, name, make):
    """The folder of that name, made by make(path) when it is not there."""
    folder = os.path.join(scratch, name)
    if not os.path.isdir(folder):
        os.makedirs(scratch, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=scratch) as tmp:
            data = os.path.join(tmp, 'data')
            make(data)
            try:
                os.rename(data, folder)
            except OSError:
                pass  # another run was faster
    return folder


def fresh(programs, scratch):
    """A data folder with nothing in it but what a server needs."""
    def make(data):
        made = subprocess.run(
            [programs.install, '--no-defaults', '--datadir=' + data, '--auth-root-authentication-method=normal',
             '--skip-test-db'] + LAYOUT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if made.returncode != 0:
            raise Missing('mariadb-install-db failed: ' + ' '.join(made.stdout.split())[-200:])
    return kept(scratch, 'mariadb-' + programs.version, make)
