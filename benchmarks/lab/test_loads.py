# SPDX-License-Identifier: MIT
"""The loads, on the machine that they are built on: what they print, and that they notice what is wrong.

    test_loads.py BUILD
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'tests', 'numa'))

from guestrun import Tap  # noqa: E402

PROGRAMS = ''


def run(name, *words):
    """Status, lines of JSON, standard error."""
    done = subprocess.run([os.path.join(PROGRAMS, name), *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def passes_of(lines):
    return [line for line in lines if 'pass' in line]


def check_passes(tap, title, result, count, **wanted):
    status, lines, said = result
    found = passes_of(lines)
    tap.result(status == 0 and [p['pass'] for p in found] == list(range(1, count + 1)), title + ': passes',
               'status %d: %s' % (status, ' '.join(said.split())[-200:]) if status else '')
    for key, value in wanted.items():
        tap.result(all(p.get(key) == value for p in found), '%s: %s' % (title, key),
                   '%s, wanted %s' % ([p.get(key) for p in found], value))


def check_status(tap, title, result, status, text):
    tap.result(result[0] == status and text in result[2], title, 'status %d: %s' % (
        result[0], ' '.join(result[2].split())[-200:]))


def check_own(tap):
    lines = 8 << 20 >> 6
    check_passes(tap, 'numa01', run('numaload', '--processes', '2', '--size', '8', '--passes', '3', '--rounds', '2',
                                    '--pin', '--mark', '--period', '20'), 3, accesses=2 * 2 * 2 * lines)
    result = run('numaload', '--processes', '2', '--size', '8', '--own', '--passes', '2', '--capacity', '4')
    check_passes(tap, 'numa01-local', result, 2, accesses=2 * lines)
    tap.result(result[1][-1].get('best_static') == 0.25, 'numa01-local: the best share', str(result[1][-1]))
    check_passes(tap, 'numa02', run('numaload', '--size', '8', '--threads', '3', '--own', '--passes', '2'), 2,
                 accesses=lines)
    done = subprocess.run(['sh', '-c', 'ulimit -v 100000; exec "$@"', 'sh', os.path.join(PROGRAMS, 'numaload'),
                           '--processes', '3', '--size', '1000'], stderr=subprocess.PIPE, text=True, check=False)
    check_status(tap, 'numaload: a process that fails ends all', (done.returncode, [], done.stderr), 2, 'memory')
    check_passes(tap, 'triad', run('flow', 'triad', '--size', '6', '--threads', '2', '--passes', '2', '--pin',
                                   '--mark'), 2, accesses=3 << 20 >> 2)
    check_passes(tap, 'faults', run('flow', 'faults', '--size', '8', '--threads', '4', '--passes', '2'), 2,
                 accesses=2048)
    check_status(tap, 'flow: an unknown load', run('flow', 'trial'), 2, 'Usage')
    check_status(tap, 'flow: no number', run('flow', 'triad', '--size', '6x'), 2, "--size '6x'")


def check_walks(tap):
    """Ten walks of 8 pages, each of which begins anywhere in its run."""
    result = run('tierload', '--size', '32', '--hot', '8', '--run', '1024', '--share', '100', '--scan', '32',
                 '--accesses', '5120', '--passes', '3')
    check_passes(tap, 'tierload, walks', result, 3, accesses=5120)
    tap.result(all(60 <= p['pages_touched'] <= 90 for p in passes_of(result[1])), 'tierload, walks: pages',
               str([p['pages_touched'] for p in passes_of(result[1])]))
    check_status(tap, 'tierload: a walk is within a run', run('tierload', '--run', '32', '--scan', '64'), 2,
                 "--scan '64'")


def check_programs(tap):
    result = run('passes', '--passes', '2', '--figure', 'half=about ', '--accesses', '7', '--pid', str(os.getpid()),
                 '--mark', '--', 'sh', '-c', 'echo about %p.5 s')
    check_passes(tap, 'passes of a program', result, 2, accesses=7)
    tap.result([p['half'] for p in passes_of(result[1])] == [1.5, 2.5], 'passes: figures', str(result[1]))
    tap.result(all(sum(p['nodes'].values()) > 100 for p in passes_of(result[1])), 'passes: pages of a process')
    result = run('passes', '--passes', '3', '--', 'sh', '-c', 'echo it is %p; test %p = 1')
    tap.result(len(passes_of(result[1])) == 1, 'passes: none after a failure')
    check_status(tap, 'passes: what failed is shown', result, 1, 'it is 2')
    check_status(tap, 'passes: a figure is missing', run('passes', '--figure', 'n=about', '--', 'echo', '3'), 1,
                 "no number after 'about'")
    check_status(tap, 'passes: no such program', run('passes', '--', '/nowhere/x'), 1, '/nowhere/x')


def check_memcached(tap, folder):
    server = shutil.which('memcached')
    if not server:
        tap.skip('mcpasses', 'memcached is not installed')
        return
    socket = os.path.join(folder, 's')
    # as root it would give up its rights, and with them this folder
    user = ['-u', 'root'] if os.geteuid() == 0 else []
    with subprocess.Popen([server, '-s', socket, '-m', '64', '-t', '2'] + user) as process:
        try:
            words = ['--socket', socket, '--keys', '3000', '--bytes', '500', '--pid', str(process.pid)]
            check_passes(tap, 'mcpasses, every key', run('mcpasses', *words, '--fill', '--passes', '2', '--mark'), 2,
                         accesses=3000, found=3000, stored=0)
            result = run('mcpasses', *words, '--passes', '2', '--gets', '5000', '--zipf', '0.99', '--sets', '20',
                         '--connections', '3')
            check_passes(tap, 'mcpasses, Zipf', result, 2, accesses=5000)
            for p in passes_of(result[1]):
                tap.result(p['found'] + p['stored'] == 5000 and p['stored'] > 500, 'mcpasses, Zipf: all answered',
                           str(p))
                tap.result(0 < p['p50_ms'] <= p['p99_ms'] <= p['p999_ms'], 'mcpasses, Zipf: times')
            words[words.index('500')] = '501'
            check_status(tap, 'mcpasses: a wrong value', run('mcpasses', *words, '--passes', '1'), 1, 'wrong value')
        finally:
            process.kill()


def main():
    global PROGRAMS
    PROGRAMS = sys.argv[1]
    tap = Tap()
    check_own(tap)
    check_walks(tap)
    check_programs(tap)
    with tempfile.TemporaryDirectory() as folder:
        check_memcached(tap, folder)
    print('1..%d' % tap.number)
    return 1 if tap.failed else 0


if __name__ == '__main__':
    sys.exit(main())
