#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripted.py LANGUAGE: a small program that works on strings, lists and threads, or a small database;
it prints the same with and without the library."""

import sys

import driver

PERL = r'''
my %h; my @kids;
for my $i (1 .. 60000) { $h{"k$i"} = "v" x ($i % 50) . $i; delete $h{"k" . int($i / 2)} if $i % 3 == 0; }
my $s = join ",", map { "$_=$h{$_}" } sort keys %h; my $x = 0;
$x = ($x * 31 + ord $_) % 1000003 for split //, substr $s, 0, 200000; $s =~ s/v+/w/g;
for my $n (1 .. 4) { my $pid = fork // die; if (!$pid) { my @l = map { "x" x $_ } 1 .. 2000; exit @l % 256; } push @kids, $pid; }
print scalar(keys %h), " $x ", length $s, "\n"; for (@kids) { waitpid $_, 0; print $? >> 8, "\n"; }
'''
SQLITE = '''
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
INSERT INTO t SELECT i, printf('%x-%d', i * 2654435761, i), zeroblob(i % 300) FROM n;
CREATE INDEX x ON t(b);
UPDATE t SET b = b || a WHERE a % 7 = 0; DELETE FROM t WHERE a % 11 = 0;
SELECT count(*), sum(length(b)), sum(length(c)), max(b) FROM t;
SELECT substr(b, 1, 2) p, count(*) FROM t GROUP BY p ORDER BY p LIMIT 20;
PRAGMA integrity_check; VACUUM; SELECT count(*) FROM t ORDER BY b;
'''
NODE = r'''
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
function work(n) { const m = new Map(); let x = 1;
  for (let i = 0; i < 60000; i++) { x = (x * 1103515245 + n) % 2147483647; m.set('k' + x % 5000, Buffer.alloc(x % 400, i)); }
  let s = 0; for (const [k, v] of [...m].sort()) s = (s * 31 + v.length + k.length) % 1000003; return s; }
if (isMainThread) { Promise.all([1, 2, 3].map(n => new Promise(r => new Worker(__filename, { workerData: n })
  .on('message', r)))).then(l => { console.log(work(0), l.join(' ')); }); }
else parentPort.postMessage(work(workerData));
'''
JAVA = r'''
import java.util.*; import java.util.stream.*;
public class Main { public static void main(String[] a) throws Exception {
  long[] sums = new long[4]; Thread[] l = new Thread[4];
  for (int t = 0; t < 4; t++) { final int n = t; l[t] = new Thread(() -> { Map<String, byte[]> m = new TreeMap<>(); Random r = new Random(n);
    for (int i = 0; i < 60000; i++) m.put("k" + r.nextInt(9000), new byte[r.nextInt(500)]);
    for (byte[] b : m.values()) sums[n] = sums[n] * 31 + b.length; }); l[t].start(); }
  for (Thread t : l) t.join();
  System.out.println(Arrays.toString(sums) + IntStream.range(0, 1000000).parallel().mapToLong(i -> (long) i * i).sum()); } }
'''
LANGUAGES = {
    'perl': ('perl', 'perl', PERL, 'main.pl', []),
    'sqlite': ('sqlite3', 'sqlite3', SQLITE, 'main.sql', ['-batch', '-init', '/dev/null', ':memory:', '.read main.sql']),
    'node': ('node', 'nodejs', NODE, 'main.js', []),
    'java': ('java', 'default-jdk-headless', JAVA, 'Main.java', ['-Xmx256m', '-XX:+UseParallelGC']),
}


def main(t, language):
    name, package, source, file, options = LANGUAGES[language]
    program = t.program(name, package, core=False)
    if language == 'java':
        t.program('javac', package, core=False)
    with open(t.folder + '/' + file, 'w', encoding='ascii') as f:
        f.write(source)
    argv = [program] + options + ([] if language == 'sqlite' else [file])
    wanted = t.run(argv, False)
    if not t.check(wanted[0] == 0 and wanted[1].strip(), 'it works without the library'):
        t.note(wanted)
    for _ in range(2):
        t.same(t.run(argv, True), wanted, 'it prints the same with the library')


driver.main(main, sys.argv[1])
