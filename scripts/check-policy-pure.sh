#!/bin/sh
# Usage: check-policy-pure.sh libpolicy.a
# policy/ is arithmetic: what its objects ask of others is a short list. Anything else (malloc, a
# system call wrapper, errno, stdio) means that a side effect has crept in.
set -eu

lib=$1
[ -s "$lib" ] || { echo "no library at $lib" >&2; exit 1; }

# bcmp is what clang makes of memcmp(...) == 0; the *_chk are what _FORTIFY_SOURCE makes of mem*;
# names of compilers' own runtimes (sanitizers, coverage, stack protector) start as listed.
allowed='memcpy|memmove|memset|memcmp|strlen|bcmp|__mem(cpy|move|set)_chk|__stack_chk_fail'
allowed="$allowed|_GLOBAL_OFFSET_TABLE_|__(asan|ubsan|msan|tsan|sanitizer|sancov|gcov|llvm)_.*"
allowed="$allowed|__start___sancov_.*|__stop___sancov_.*|__cyg_profile_func_(enter|exit)|mcount"

defined=$(mktemp)
undefined=$(mktemp)
trap 'rm -f "$defined" "$undefined"' EXIT

nm --defined-only --format=posix "$lib" | awk 'NF > 1 { print $1 }' | sort -u >"$defined"
nm --undefined-only --format=posix "$lib" | awk 'NF > 1 { print $1 }' | sort -u >"$undefined"
[ -s "$defined" ] || { echo "$lib defines nothing: is it an archive of objects?" >&2; exit 1; }

foreign=$(comm -13 "$defined" "$undefined" | grep -Evx "$allowed" || true)
if [ -n "$foreign" ]; then
    echo "policy/ must not use:" >&2
    echo "$foreign" >&2
    exit 1
fi

# Variables are a side effect as well. Instrumented objects have those of their instrumentation.
if grep -Eq '^__(asan|ubsan|msan|tsan|sanitizer|sancov|gcov|llvm)_' "$undefined"; then
    exit 0
fi
state=$(size --format=sysv "$lib" | awk '
    /^[^ ]+\.o / { object = $1 }
    $1 ~ /^\.(data|bss|tdata|tbss)$/ && $2 > 0 { print object ": " $2 " bytes in " $1 }')
if [ -n "$state" ]; then
    echo "policy/ must not have variables:" >&2
    echo "$state" >&2
    exit 1
fi
