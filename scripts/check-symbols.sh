#!/bin/sh
# Compares what libnumalift.so exports with shim/shim.map, and looks at what it needs:
#   scripts/check-symbols.sh LIBRARY.so [SHIM.MAP]
# Exactly the names of the map, no other library than libc and mimalloc, no text relocations, no
# executable stack.
set -eu

lib=${1:?usage: check-symbols.sh LIBRARY.so [SHIM.MAP]}
map=${2:-$(dirname "$0")/../shim/shim.map}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

fail() {
    echo "$*"
    bad=1
}

sed -e 's,/\*.*\*/,,' -e '/global:/d' -e '/^local:/,$d' "$map" | tr -s ';{} \t' '\n' | sed '/^$/d' |
    sort > "$tmp/map"
nm -D --defined-only "$lib" | awk '{ print $NF }' | sort > "$tmp/lib"
diff -u "$tmp/map" "$tmp/lib" > "$tmp/diff" || fail "exports differ from $map:
$(sed 1,2d "$tmp/diff" | grep '^[-+]')"

needed=$(readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for n in $needed; do
    case $n in
    libc.so.* | ld-linux*.so.* | libmimalloc.so.*) ;;
    *) fail "needs $n" ;;
    esac
done
[ "$(echo "$needed" | head -n 1)" = libc.so.6 ] ||
    fail "the first library needed must be libc.so.6: mimalloc defines __libc_malloc too"
readelf -dW "$lib" | grep -q TEXTREL && fail "has text relocations"
readelf -lW "$lib" | grep GNU_STACK | grep -q E && fail "wants an executable stack"
readelf -dW "$lib" | grep -q NOW || fail "is not bound at load (-z now)"
exit $bad
