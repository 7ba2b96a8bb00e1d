#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gcc: a project of some generated files is built by make, in several jobs, with and without the library;
every object file and the program are the same to the byte."""

import hashlib
import os

import driver

MODULES = 12

MODULE = r'''
#include <stdlib.h>
#include <string.h>
#include "all.h"

struct entry_%(n)d { struct entry_%(n)d *next; unsigned key; double weight[%(size)d]; };

static unsigned mix(unsigned x)
{
	switch (x %% 7) {
%(cases)s	default: return x;
	}
}

unsigned run_%(n)d(unsigned seed)
{
	struct entry_%(n)d *list = NULL, *e;
	unsigned sum = 0;

	for (unsigned i = 0; i < 500; i++) {
		e = calloc(1, sizeof(*e));
		e->key = seed = mix(seed * 1664525u + 1013904223u + i);
		for (unsigned j = 0; j < %(size)d; j++)
			e->weight[j] = (double)(seed %% 1000) / (j + 1);
		e->next = list;
		list = e;
	}
	while ((e = list)) {
		list = e->next;
		sum = sum * 31 + e->key + (unsigned)e->weight[%(size)d - 1];
		free(e);
	}
	return sum;
}
'''

MAKEFILE = '''OBJECTS := %s
all: program
program: $(OBJECTS)
\t$(CC) -o $@ $(OBJECTS)
%%.o: %%.c all.h
\t$(CC) -O2 -g -Wall -c -o $@ $<
'''


def write(path, text):
    with open(path, 'w', encoding='ascii') as f:
        f.write(text)


def make_project(folder):
    os.mkdir(folder)
    write(folder + '/all.h', ''.join('unsigned run_%d(unsigned seed);\n' % n for n in range(MODULES)))
    for n in range(MODULES):
        cases = ''.join('\tcase %d: return x * %du + %d;\n' % (i, 2 * (n + i) + 3, n * i)
                        for i in range(6))
        write('%s/module%d.c' % (folder, n), MODULE % {'n': n, 'size': n + 3, 'cases': cases})
    write(folder + '/main.c', '#include <stdio.h>\n#include "all.h"\nint main(void)\n{\n\tunsigned x = 1;\n' +
          ''.join('\tx = run_%d(x);\n\tprintf("%%u\\n", x);\n' % n for n in range(MODULES)) +
          '\treturn 0;\n}\n')
    write(folder + '/Makefile', MAKEFILE % ' '.join(
        ['main.o'] + ['module%d.o' % n for n in range(MODULES)]))


def built(folder):
    """{name: digest} of what make made."""
    result = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith('.o') or name == 'program':
            with open(os.path.join(folder, name), 'rb') as f:
                result[name] = hashlib.sha256(f.read()).hexdigest()
    return result


def main(t):
    make = t.program('make', 'make')
    t.program('gcc', 'gcc')
    folder = t.folder + '/project'
    results = []
    outputs = []
    for preload in (False, True):
        make_project(folder)
        t.must([make, '-C', folder, '-j', '3', 'CC=gcc'], preload)
        results.append(built(folder))
        outputs.append(t.must([folder + '/program'], preload))
        os.rename(folder, folder + '-done%d' % preload)
    t.same(len(results[0]), MODULES + 2, 'everything was built')
    for name in results[0]:
        t.check(results[0][name] == results[1].get(name), name + ' is the same with and without')
    t.same(outputs[1], outputs[0], 'the program prints the same')
    t.check(len(outputs[0].split()) == MODULES, 'namely its results')


driver.main(main)
