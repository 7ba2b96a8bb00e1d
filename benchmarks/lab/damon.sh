# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2086,SC2046
# The kernel's DAMON moves pages by how hot they are, as root, on nodes that are described by
#   damon.sh check FAST...          may it run here? says why not
#   damon.sh start SLOW FAST...     begins
# Nodes are single numbers. What is in the control group "ballast" stays where it is.
#
# For each fast node one scheme that brings hot pages of the slow one until the fast one is as full as
# wanted, and one that takes cold pages away until as much of it is free as wanted; the two wants overlap a
# little, so that there is some exchange at all times. How much is moved DAMON finds out itself. The settings are
# those of the kernel's own example (samples/damon/mtier.c), but for two times that suit what runs for hours.
# A quota starts with a byte and grows by the part that is missing to its goal, about 1.3 times from one to the
# next: each second, and all passes are over before a page is moved; so it is each 100 ms. And how often is looked
# is not tuned: that goes from 5 ms to 100 ms within ten passes, and gives less than half of what 5 ms gives.
admin=/sys/kernel/mm/damon/admin/kdamonds
stat=/sys/module/damon_stat/parameters/enabled

check() {
	if [ ! -d $admin ]; then
		echo "no DAMON in this kernel"
	elif ! { echo 1 > $admin/nr_kdamonds && echo 1 > $admin/0/contexts/nr_contexts &&
		echo paddr > $admin/0/contexts/0/operations &&
		echo 1 > $admin/0/contexts/0/schemes/nr_schemes &&
		echo migrate_hot > $admin/0/contexts/0/schemes/0/action; } 2> /dev/null; then
		echo "this kernel's DAMON moves no pages (Linux 6.11)"
	elif ! { cd $admin/0/contexts/0/schemes/0/quotas/goals && echo 1 > nr_goals &&
		echo node_mem_used_bp > 0/target_metric; } 2> /dev/null; then
		echo "this kernel's DAMON knows no goals for a node's memory (Linux 6.16)"
	else
		cd /
		echo 0 > $admin/nr_kdamonds
		return 0
	fi
	return 1
}

# first and last address of a node, for what the kernel calls zones of it
range() {
	awk -v n="$1" '
		/^Node/ { at = ($2 == n ",") }
		at && $1 == "spanned" { pages = $2 }
		at && $1 == "start_pfn:" && pages > 0 {
			if (!seen++ || $2 < first)
				first = $2
			if ($2 + pages > last)
				last = $2 + pages
		}
		END { printf "%.0f %.0f\n", first * 4096, last * 4096 }' /proc/zoneinfo
}

# what part of a node, of 10000, the kernel keeps free for itself
kept() {
	awk -v n="$1" '
		/^Node/ { at = ($2 == n ",") }
		at && $1 == "low" { low += $2 }
		at && $1 == "managed" { all += $2 }
		END { print int(10000 * low / all) }' /proc/zoneinfo
}

# context NUMBER START END SCHEMES
context() {
	echo 1 > $admin/$1/contexts/nr_contexts
	cd $admin/$1/contexts/0
	echo paddr > operations
	echo 5000 > monitoring_attrs/intervals/sample_us
	echo 100000 > monitoring_attrs/intervals/aggr_us
	echo 60000000 > monitoring_attrs/intervals/update_us
	echo 1000 > monitoring_attrs/nr_regions/max
	echo 10 > monitoring_attrs/nr_regions/min
	echo 1 > targets/nr_targets
	echo 1 > targets/0/regions/nr_regions
	echo $2 > targets/0/regions/0/start
	echo $3 > targets/0/regions/0/end
	echo $4 > schemes/nr_schemes
}

# scheme NUMBER ACTION TARGET MIN_ACCESSES MAX_ACCESSES METRIC NODE BP, in a context's folder
scheme() {
	s=schemes/$1
	echo $2 > $s/action
	echo $3 > $s/target_nid
	echo 100000 > $s/apply_interval_us
	echo 4096 > $s/access_pattern/sz/min
	echo 18446744073709551615 > $s/access_pattern/sz/max
	echo $4 > $s/access_pattern/nr_accesses/min
	echo $5 > $s/access_pattern/nr_accesses/max
	echo 0 > $s/access_pattern/age/min
	echo 4294967295 > $s/access_pattern/age/max
	echo 20971520 > $s/quotas/bytes
	echo 100 > $s/quotas/reset_interval_ms
	echo 0 > $s/quotas/weights/sz_permil
	echo 100 > $s/quotas/weights/nr_accesses_permil
	echo 100 > $s/quotas/weights/age_permil
	echo 1 > $s/quotas/goals/nr_goals
	echo $6 > $s/quotas/goals/0/target_metric
	echo $7 > $s/quotas/goals/0/nid
	echo $8 > $s/quotas/goals/0/target_value
}

# filter SCHEME NUMBER TYPE ALLOW, in a context's folder
filter() {
	f=schemes/$1/ops_filters/$2
	echo $3 > $f/type
	echo Y > $f/matching
	echo $4 > $f/allow
}

start() {
	slow=$1
	shift
	[ ! -e $stat ] || echo N > $stat
	echo $(($# + 1)) > $admin/nr_kdamonds
	context 0 $(range $slow) $#
	i=0
	for node; do
		scheme $i migrate_hot $node 1 4294967295 node_mem_used_bp $node $((10000 - $(kept $node) - 30))
		echo 1 > schemes/$i/ops_filters/nr_filters
		filter $i 0 young Y
		i=$((i + 1))
	done
	i=1
	for node; do
		context $i $(range $node) 1
		scheme 0 migrate_cold $slow 0 0 node_mem_free_bp $node $(($(kept $node) + 50))
		echo 2 > schemes/0/ops_filters/nr_filters
		filter 0 0 memcg N
		echo /ballast > schemes/0/ops_filters/0/memcg_path
		filter 0 1 young N
		i=$((i + 1))
	done
	i=0
	while [ $i -le $# ]; do
		echo on > $admin/$i/state
		i=$((i + 1))
	done
}

set -e
what=$1
shift
case $what in
check) check "$@" ;;
start) start "$@" ;;
*) exit 2 ;;
esac
