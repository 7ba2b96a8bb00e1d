/* Other worlds: static programs, sanitizers, debuggers, interpreters, compilers, secure execution.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/shim/victim_row.h"

#define ASAN_ANY_ORDER "ASAN_OPTIONS=verify_asan_link_order=0"

VICTIM(static_program, .victim = "static_work")
VICTIM(asan, .victim = "asan_work", .env = {ASAN_ANY_ORDER})
/* it defines mmap, which makes the library step aside and say so */
VICTIM(asan_inside, .victim = "asan_static_work", .err_lines = 1)
VICTIM(asan_first, .victim = "plain_work", .before = "libasan.so.8")
VICTIM(asan_finds, .victim = "asan_bad", .env = {ASAN_ANY_ORDER}, .want_exit = 1, .want_out = "",
	.err_has = "heap-use-after-free")
VICTIM(asan_inside_finds, .victim = "asan_static_bad", .want_exit = 1, .want_out = "",
	.err_has = "heap-use-after-free")
VICTIM(tsan, .victim = "tsan_work")
VICTIM(ubsan, .victim = "ubsan_work")
VICTIM(lsan, .victim = "lsan_work")

VICTIM(valgrind, .tool = "valgrind", .args = {"-q", "--error-exitcode=9", "@plain_work"},
	.cannot = "unhandled dwarf", .seconds = 120)
VICTIM(valgrind_cxx, .tool = "valgrind", .args = {"-q", "--error-exitcode=9", "@cxx_throw"},
	.cannot = "unhandled dwarf", .seconds = 120)
VICTIM(gdb, .tool = "gdb",
	.args = {"-q", "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex",
		"break stop_here", "-ex", "run", "-ex", "continue", "-ex", "bt", "-ex", "continue",
		"-ex", "continue", "@debugged"},
	.out_has = "exited normally", .err_lines = 9)

VICTIM(shell, .tool = "sh",
	.args = {"-c",
		"seq 2000 | sort -r | awk '{ s += $1 } END { print s }'; echo $(ls / | wc -l)"},
	.as_plain = true)
VICTIM(bash, .tool = "bash",
	.args = {"-c",
		"a=(); for i in {1..3000}; do a+=($i); done; echo ${#a[@]} $(echo ${a[@]} | wc -c);"
		"cat <(echo in) | tr a-z A-Z; coproc cat; echo x >&${COPROC[1]}; read l "
		"<&${COPROC[0]}; echo $l"},
	.as_plain = true)
VICTIM(python, .tool = "python3",
	.args = {"-c", "import threading, subprocess, mmap, json\n"
		       "d = {i: str(i) * 9 for i in range(50000)}\n"
		       "t = [threading.Thread(target=lambda: json.dumps(d)) for _ in range(3)]\n"
		       "[x.start() for x in t]; [x.join() for x in t]\n"
		       "m = mmap.mmap(-1, 1 << 20); m.resize(1 << 22); m[5] = 9\n"
		       "print(len(json.dumps(d)), subprocess.check_output(['echo', 'hi']), m[5])"},
	.as_plain = true)
VICTIM(python_processes, .tool = "python3",
	.args = {"-c", "import multiprocessing as m\n"
		       "def f(x): return len(bytearray(x * 1000))\n"
		       "p = m.get_context('fork').Pool(3)\n"
		       "print(sum(p.map(f, range(300)))); p.close(); p.join()"},
	.as_plain = true)
VICTIM(perl, .tool = "perl",
	.args = {"-e",
		"my %h = map { $_ => 'x' x $_ } 1..3000; my $s = join ',', sort keys %h;"
		"print length($s), ' ', `echo sub`; fork or exit 3; wait; print $? >> 8, \"\\n\""},
	.as_plain = true)
VICTIM(sqlite, .tool = "sqlite3",
	.args = {":memory:",
		"create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 "
		"from n where i < 50000) insert into t select i, hex(i) from n; create index x on "
		"t(b); select count(*), sum(a), max(b) from t where b > '3'"},
	.as_plain = true)
VICTIM(compiler, .tool = "sh",
	.args = {"-c", "d=$(mktemp -d) && printf '#include <stdio.h>\\nint main(void) { "
		       "puts(\"made\"); }' > "
		       "$d/a.c && cc -O1 -g -o $d/a $d/a.c && $d/a; r=$?; rm -r $d; exit $r"},
	.as_plain = true)
VICTIM(node, .tool = "node",
	.args = {"-e", "let a = []; for (let i = 0; i < 2e5; i++) a.push({i, s: 'x' + i});"
		       "console.log(a.length, JSON.stringify(a).length,"
		       "require('child_process').execSync('echo sub').toString())"},
	.as_plain = true)
VICTIM(java, .tool = "sh",
	.args = {"-c", "command -v java > /dev/null || exit 77; d=$(mktemp -d) && printf 'class A "
		       "{ public static "
		       "void main(String[] a) throws Exception { var l = new "
		       "java.util.ArrayList<byte[]>(); for "
		       "(int i = 0; i < 300; i++) l.add(new byte[i * 100]); "
		       "System.out.println(l.size()); } }' > "
		       "$d/A.java && java -Xmx256m $d/A.java; r=$?; rm -r $d; exit $r"},
	.as_plain = true, .seconds = 120)
VICTIM(archive, .tool = "sh",
	.args = {"-c", "tar -cf - -C /etc passwd group | gzip | gunzip | tar -tvf - | awk '{ print "
		       "$3, $6 }'; "
		       "find /etc -maxdepth 1 -name 'p*' | sort | xargs -n 3 | grep -c ."},
	.as_plain = true)

VICTIM(ruby, .tool = "ruby",
	.args = {"-e", "a = (1..50000).map { |i| i.to_s * 3 }; t = 3.times.map { Thread.new { "
		       "a.sort.size } };"
		       "puts t.map(&:value).sum, `echo sub`"},
	.as_plain = true)
VICTIM(php, .tool = "php",
	.args = {"-r", "$a = []; for ($i = 0; $i < 50000; $i++) $a[] = str_repeat('x', $i % 50); "
		       "echo count($a);"},
	.as_plain = true)
VICTIM(lua, .tool = "lua",
	.args = {"-e", "local t = {} for i = 1, 50000 do t[i] = ('x'):rep(i % 90) end "
		       "print(#table.concat(t))"},
	.as_plain = true)
VICTIM(make, .tool = "sh",
	.args = {"-c", "d=$(mktemp -d) && cd $d && printf 'all: a b c d\\n%%: ; @echo made $@ "
		       "$$(seq 300 | wc -l)\\n' > "
		       "Makefile && make -s -j3 | sort; r=$?; cd / && rm -r $d; exit $r"},
	.as_plain = true)
VICTIM(git, .tool = "sh",
	.args = {"-c",
		"command -v git > /dev/null || exit 77; d=$(mktemp -d) && cd $d && git init -q . "
		"&& seq 5000 > a "
		"&& git add a && git -c user.name=x -c user.email=x@y commit -qm one && git gc -q "
		"&& git log "
		"--format=%s && git fsck && git grep -c 77; r=$?; cd / && rm -rf $d; exit $r"},
	.as_plain = true)
VICTIM(xz, .tool = "sh",
	.args = {"-c",
		"command -v xz > /dev/null || exit 77; seq 400000 | xz -1 -T2 | xz -d | md5sum"},
	.as_plain = true)
VICTIM(cxx_compiler, .tool = "sh",
	.args = {"-c", "command -v c++ > /dev/null || exit 77; d=$(mktemp -d) && printf '#include "
		       "<map>\\n#include "
		       "<iostream>\\nint main() { std::map<int, int> m; m[1] = 2; std::cout << "
		       "m[1] << std::endl; }' > "
		       "$d/a.cc && c++ -O1 -o $d/a $d/a.cc && $d/a; r=$?; rm -r $d; exit $r"},
	.as_plain = true)

/* ld.so leaves preloads out of programs that run with more rights than their user. */
Test(preloaded, secure_execution)
{
	static struct victim_outcome got;
	const char *library = strrchr(victim_library(), '/');
	char folder[] = "/tmp/victim-secure-XXXXXX";
	char path[64];
	char command[9000];

	if (geteuid() != 0)
		cr_skip_test("needs root");
	cr_assert(library && mkdtemp(folder) && !chmod(folder, 0755));
	snprintf(path, sizeof(path), "%s/is_mapped", folder);
	snprintf(command, sizeof(command), "cp '%s' '%s' && cp '%s' '%s' && chmod 4755 '%s'",
		victim_path("is_mapped"), path, victim_library(), folder, path);
	cr_assert(system(command) == 0, "cannot make a setuid copy");
	snprintf(command, sizeof(command), "%s%s", folder, library);

	const char *args[] = {library + 1, NULL};
	struct victim_order order = {.path = path, .args = args, .preload = command, .user = 65534};
	int refused = victim_run(&order, &got);

	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	cr_assert(system(command) == 0);
	cr_assert(refused == 0 && got.status == 0, "status %#x: %s", (unsigned)got.status, got.out);
	cr_assert(!strcmp(got.out, "no\n"), "the library was in a setuid program: %s", got.out);
}

Test(preloaded, is_there)
{
	const char *library = strrchr(victim_library(), '/');
	struct victim_row row = {
		.victim = "is_mapped", .args = {library ? library + 1 : "?"}, .want_out = "yes\n"};

	victim_row_check(&row, true);
}
