// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>

#include "shim/cli/check.h"
#include "shim/cli/program.h"
#include "shim/cli/text.h"

#define OK LIFT_VERDICT_OK
#define LIMITED LIFT_VERDICT_LIMITED
#define OFF LIFT_VERDICT_OFF

static void check_privileges(struct lift_check *c, const struct lift_program *p)
{
	const char *name = lift_secure_name(p->secure);

	switch (p->secure) {
	case LIFT_SECURE_NO:
		lift_report_add(&c->report, "privileges", OK, NULL,
			"starts with those of its caller: the preload counts");
		break;
	case LIFT_SECURE_SETUID:
	case LIFT_SECURE_SETGID:
		lift_report_add(&c->report, "privileges", OFF,
			"start it as that user and group to begin with",
			"%s to %u: the dynamic linker ignores LD_PRELOAD", name, p->owner);
		break;
	case LIFT_SECURE_CAPABILITIES:
		lift_report_add(&c->report, "privileges", OFF,
			"take them off the file (setcap -r) and pass them on as ambient "
			"capabilities",
			"%s: the dynamic linker ignores LD_PRELOAD", name);
		break;
	}
}

static void check_linkage(struct lift_check *c, const struct lift_program *p)
{
	if (p->elf.static_linked)
		lift_report_add(&c->report, "linkage", OFF, "link it dynamically",
			"static: nothing is preloaded into it, only into what it starts");
	else if (lift_program_is_musl(p))
		lift_report_add(&c->report, "linkage", OFF, "a build for glibc",
			"dynamic, by %s: musl cannot load the library", p->elf.interp);
	else
		lift_report_add(&c->report, "linkage", OK, NULL, "dynamic%s%s",
			p->elf.interp[0] ? ", by " : "", p->elf.interp);
}

static void check_sanitizer(struct lift_check *c, const struct lift_program *p)
{
	if (p->elf.sanitizer[0])
		lift_report_add(&c->report, "sanitizer", OFF, "a build without it",
			"%s, which brings an allocator of its own: the library stands aside",
			p->elf.sanitizer);
	else
		lift_report_add(&c->report, "sanitizer", OK, NULL, "none");
}

static void check_allocator(struct lift_check *c, const struct lift_program *p)
{
	static const char *const others[] = {"libjemalloc", "libtcmalloc", "libmimalloc",
		"libtbbmalloc", "libhoard", "libsnmalloc"};
	const char *name = NULL;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && !name; i++)
		name = lift_elf_needs(&p->elf, others[i]);
	if (p->elf.own_mmap)
		lift_report_add(&c->report, "allocator", OFF, "a build that leaves mmap to libc",
			"defines mmap itself, which comes before a preload: the library stands "
			"aside");
	else if (p->elf.own_malloc)
		lift_report_add(&c->report, "allocator", LIMITED,
			"a build that leaves malloc to libraries",
			"defines malloc itself, which comes before a preload: only its mappings "
			"are placed");
	else if (name)
		lift_report_add(&c->report, "allocator", OK, NULL,
			"linked with %s, before which a preload comes", name);
	else
		lift_report_add(&c->report, "allocator", OK, NULL, "not its own");
}

static void check_scope(struct lift_check *c, const struct lift_program *p)
{
	const char *slash = strrchr(p->path, '/');
	const char *name = slash ? slash + 1 : p->path;

	if (lift_config_in_scope(&c->config, name))
		lift_report_add(&c->report, "scope", OK, NULL, "served");
	else
		lift_report_add(&c->report, "scope", OFF, "change NUMALIFT_SCOPE",
			"NUMALIFT_SCOPE leaves out '%s'", name);
}

void lift_check_program(struct lift_check *c, const char *name)
{
	struct lift_program p;
	char path[PATH_MAX];
	int rc = lift_program_find(name, path);

	if (rc) {
		lift_report_add(&c->report, "program", OFF,
			rc == -ENOENT ? "install it, or give its path"
				      : "chmod +x, if it is a program",
			"%s: %s", name, rc == -ENOENT ? "no such program" : strerror(-rc));
		return;
	}
	lift_program_look(path, &p);
	lift_report_add(&c->report, "program", OK, NULL, "%s", path);
	if (p.script)
		lift_report_add(&c->report, "script", OK, NULL,
			"run by %s, which is what the lines below are about", p.runs);
	if (p.trouble) {
		lift_report_add(&c->report, "kind", p.trouble == -EACCES ? LIMITED : OFF, NULL,
			p.trouble == -ENOEXEC ? "%s is no program that Linux runs (%s)"
					      : "%s cannot be read (%s)",
			p.runs, lift_text_errno(p.trouble));
		check_privileges(c, &p);
		check_scope(c, &p);
		return;
	}
	lift_report_add(&c->report, "architecture", p.elf.native ? OK : OFF,
		p.elf.native ? NULL : "a build for the library's architecture", "%s%s",
		p.elf.machine,
		p.elf.native ? "" : ", for which the library is not: it is not loaded");
	check_privileges(c, &p);
	if (p.elf.native) {
		check_linkage(c, &p);
		check_sanitizer(c, &p);
		check_allocator(c, &p);
	}
	check_scope(c, &p);
}
