#!/bin/sh
# Usage: check-layers.sh [repository]
# Who may include what: policy decides and knows nothing of the system, shim acts, tests of policy
# see only policy. A file outside these rules is a change of architecture and belongs into
# docs first.
set -eu

cd "${1:-$(dirname "$0")/..}"
bad=$(mktemp)
trap 'rm -f "$bad"' EXIT

# Prints "file: <header>" for each include in the files named on standard input.
includes() {
    while IFS= read -r file; do
        sed -nE 's/^[[:space:]]*#[[:space:]]*include(_next)?[[:space:]]*([<"][^>"]*[>"]).*/\2/p' \
            "$file" | sed "s|^|$file: |"
        # An include by macro would pass unseen.
        sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]+([^<" \t].*)/\1/p' "$file" |
            sed "s|^|$file: |"
    done
}

# files ALLOWED-PATTERN RULE: every include of the files has to match.
check() {
    allowed=$1
    rule=$2
    includes | grep -Ev ": ($allowed)$" | sed "s|\$|    ($rule)|" >>"$bad" || true
}

sources() {
    find "$@" -name '*.[ch]' 2>/dev/null | sort
}

[ -d policy ] || { echo "no policy/ in $(pwd)" >&2; exit 1; }

plain='<(stdint|stddef|stdbool|string|limits|errno)\.h>'
sources policy ! -name stats.h | check "$plain|\"policy/[a-z_]+\.h\"" \
    'policy: only plain C headers and policy/*.h'
sources policy -name stats.h | check "$plain|<stdatomic\.h>|\"policy/[a-z_]+\.h\"" \
    'policy/stats.h: plain C headers, <stdatomic.h> and policy/*.h'

# The door to the system knows nothing of what is behind it.
sources shim/os | check '<[^>]*>|"policy/[a-z_]+\.h"|"shim/os/[a-z_]+\.h"' \
    'shim/os: system headers, policy/*.h and shim/os/*.h'
sources shim ! -path 'shim/os/*' ! -path 'shim/cli/*' |
    check '<[^>]*>|"(policy|shim|shim/os)/[a-z_]+\.h"' 'shim: policy/*.h, shim/*.h, shim/os/*.h'
sources shim/cli | check '<[^>]*>|"(policy|shim/os|shim/cli)/[a-z_]+\.h"' \
    'shim/cli: policy/*.h, shim/os/*.h, shim/cli/*.h; never the inside of the library'

sources tests/unit tests/fake |
    check '<[^>/]*>|<criterion/[a-z_/]+\.h>|"(policy|tests/fake)/[a-z_]+\.h"' \
    'tests of policy: policy/*.h and tests/fake/*.h'

# What scan.h offers is for parsers of policy; its contract is not for others.
sources shim tests/shim | xargs -r grep -lF '"policy/scan.h"' |
    sed 's|$|: "policy/scan.h"    (internal to policy)|' >>"$bad" || true

if [ -s "$bad" ]; then
    cat "$bad" >&2
    exit 1
fi
