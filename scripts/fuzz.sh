#!/usr/bin/env bash
# Runs each libFuzzer target of the fuzz build in turn. New inputs go to build/fuzz/corpus; those in the project's own
# corpora are read, never written. An input that breaks a target stays in build/fuzz/artifacts and is named.
#
#   fuzz.sh SECONDS [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

each=${1:?usage: fuzz.sh SECONDS [TARGET...]}
shift
[[ $each =~ ^[0-9]+$ && $each -gt 0 ]] || { echo "fuzz.sh: '$each' is not a number of seconds" >&2; exit 2; }

targets=("$@")
if [ ${#targets[@]} = 0 ]; then
	for path in build/fuzz/tests/bin/fuzz*; do
		[ ! -x "$path" ] || targets+=("${path##*/}")
	done
fi
[ ${#targets[@]} -gt 0 ] || { echo "fuzz.sh: no target in build/fuzz/tests/bin" >&2; exit 1; }

# Values are at most 16 MiB, but what breaks a parser is small: short inputs are tried far more often.
failed=()
for target in "${targets[@]}"; do
	echo "== $target, $each s"
	grown=build/fuzz/corpus/$target
	mkdir -p "$grown" build/fuzz/artifacts
	seeds=()
	# A target fuzz-frames or fuzz_frames has its seeds in tests/fuzz/corpus/frames (or under its whole name).
	for folder in "tests/fuzz/corpus/${target#fuzz[-_]}" "tests/fuzz/corpus/$target"; do
		[ ! -d "$folder" ] || seeds+=("$folder")
	done
	"build/fuzz/tests/bin/$target" -max_total_time="$each" -max_len=65536 -timeout=20 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="build/fuzz/artifacts/$target-" "$grown" "${seeds[@]}" || failed+=("$target")
done

if [ ${#failed[@]} -gt 0 ]; then
	echo "fuzz: failed: ${failed[*]} (inputs in build/fuzz/artifacts)"
	exit 1
fi
echo "fuzz: ${#targets[@]} targets, $each s each, nothing found"
