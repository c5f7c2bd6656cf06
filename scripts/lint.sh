#!/usr/bin/env bash
# clang-format, clang-tidy and cppcheck over all C, mandoc over the manual pages. Needs the preset dev configured, as
# clang-tidy reads its compile commands. All of them run, whatever the earlier ones find.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=0
step() {
	echo "== $1"
	shift
	"$@" || failed=1
}

sources() {
	find . \( -name build -o -name .git -o -name node_modules \) -prune -o -name "$1" -print | sort
}

mapfile -t all < <(sources '*.[ch]')
# Only what the build compiles has compile commands (the fuzz drivers, for one, may not).
mapfile -t compiled < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/dev/compile_commands.json | sort -u)
mapfile -t pages < <(sources '*.[158]')

tidy() {
	printf '%s\n' "${compiled[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p build/dev
}

# Style opinions are clang-tidy's; cppcheck looks for defects. It is shown the list macros, else it cannot parse them.
# It does not see that an output is set whenever 0 is returned, so uninitialised reads are left to clang's analyzer.
check() {
	local queue
	queue=/usr/include/$(cc -print-multiarch)/sys/queue.h
	[ -e "$queue" ] || queue=/usr/include/sys/queue.h
	cppcheck --quiet --std=c11 --language=c --error-exitcode=1 --enable=warning,portability --inline-suppr \
		--suppress=missingIncludeSystem --suppress=uninitvar --suppress=uninitStructMember --include="$queue" \
		-I . -I build/dev/generated "${compiled[@]}"
}

step "clang-format" clang-format --dry-run -Werror "${all[@]}"
step "clang-tidy" tidy
step "cppcheck" check
[ ${#pages[@]} = 0 ] || step "mandoc" mandoc -T lint -W warning "${pages[@]}"
[ $failed = 0 ] && echo "lint: clean"
exit $failed
