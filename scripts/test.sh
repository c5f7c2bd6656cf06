#!/usr/bin/env bash
# Runs ctest in each of the named folders of build/ (built before), to the end whatever fails, then says what was
# skipped and why, and last how each went, in ctest's words. Exit status 0 only when no test of any build failed.
#
#   test.sh release asan ...
set -uo pipefail
cd "$(dirname "$0")/.."

# Only sanitized builds read these.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

failed=0
skips=()
summaries=()
for build; do
	echo "== ctest, build '$build'"
	log=build/$build/ctest.log
	# The line that counts is held back here, so that it is said once, at the end.
	ctest --test-dir "build/$build" --output-on-failure --no-tests=error --timeout 300 --parallel "$(nproc)" \
		</dev/null 2>&1 | tee "$log" | grep --line-buffered -v '% tests passed'
	[ "${PIPESTATUS[0]}" = 0 ] || failed=1
	summaries+=("$build: $(grep '% tests passed' "$log" || echo 'ctest ran no tests')")
	# Reasons stand on lines "SKIP: reason" of the tests' output, which LastTest.log has whole, also of tests that passed
	# but left out a part. Which tests were skipped as a whole, only the list at the end of ctest's own output says.
	mapfile -t found < <(awk -v build="$build" '
		FNR == NR && / \((Skipped|Disabled)\)$/ { whole[$(NF - 1)] = 1 }
		FNR == NR { next }
		/^[0-9]+\/[0-9]+ Testing: / { name = $3 }
		/^(\[ +SKIPPED +\] )?SKIP: / { sub(/^.*SKIP: /, ""); print build ": " name ": " $0; delete whole[name] }
		END { for (name in whole) print build ": " name ": gave no reason" }
	' "$log" "build/$build/Testing/Temporary/LastTest.log")
	skips+=("${found[@]}")
done

echo
for skip in "${skips[@]}"; do
	[ -z "$skip" ] || echo "skipped: $skip"
done
printf '%s\n' "${summaries[@]}"
exit $failed
