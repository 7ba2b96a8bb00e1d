#!/bin/sh
# Usage: lint_man.sh PAGE...
# Lints manual pages with what is there: mandoc, else groff. Status 77 where neither is.
set -u

status=0
if command -v mandoc >/dev/null; then
	# Dates and the system's name are a matter of taste that it complains about in portable pages.
	for page; do
		mandoc -Tlint -Wwarning "$page" || status=1
	done
elif command -v groff >/dev/null; then
	for page; do
		complaints=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
		[ -z "$complaints" ] || { printf '%s: %s\n' "$page" "$complaints"; status=1; }
	done
else
	echo 'neither mandoc nor groff is installed'
	exit 77
fi
exit $status
