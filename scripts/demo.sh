#!/usr/bin/env bash
# Shows Brood at work: each command is printed as typed, then run, then its exit status. Last, a call that hits the
# pool beside a Python that starts cold, both as whole commands.
#
#   demo.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:?usage: demo.sh BUILD_FOLDER}
python=$(cat "$build/generated/python")
export PATH=$PWD/$build/bin:$PATH

folder=$(mktemp -d)
server=
stop_server() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
	rm -rf "$folder"
}
trap stop_server EXIT

# show EXPECTED_STATUS COMMAND...: another exit status than the one foretold ends the demo as failed.
show() {
	local expected=$1 status=0 word
	shift
	printf '\n$'
	for word; do
		# Quoted where a shell would ask for it; no argument of the demo has a single quote in it.
		[[ $word =~ ^[A-Za-z0-9_./=:-]+$ ]] && printf ' %s' "$word" || printf " '%s'" "$word"
	done
	echo
	"$@" || status=$?
	echo "[exit status $status]"
	[ "$status" = "$expected" ] || { echo "demo: expected exit status $expected" >&2; exit 1; }
}

title() {
	printf '\n--- %s\n' "$*"
}

# A supervisor of our own, so that the calls below find its pool filled.
export BROOD_SOCKET=$folder/socket
broodd --socket "$BROOD_SOCKET" 2>"$folder/log" &
server=$!
until [ -S "$BROOD_SOCKET" ]; do
	kill -0 $server 2>/dev/null || { echo "demo: broodd did not start:" >&2; cat "$folder/log" >&2; exit 1; }
	sleep 0.05
done
echo "broodd runs (pid $server). Every call below gets a fresh, locked process that was forked before the call came."

title "The last expression's value is printed, as a REPL does"
show 0 brood run -c 'import math; math.factorial(25)'

title "Inputs are JSON and become variables"
show 0 brood run --input 'prices={"tea": 3.5, "cake": 4.25}' -c 'print(", ".join(prices)); sum(prices.values())'

title "An exception comes back with the code's own lines"
show 1 brood run -c 'def half(x):
    return x / 0

half(21)'

title "What the code has no right to is refused"
show 126 brood run -c 'import socket; socket.create_connection(("192.0.2.1", 80))'

title "Time is limited, and the supervisor holds the watch"
show 124 brood run --wall 0.5s -c 'while True: pass'

title "Nothing stays: a call cannot leave anything to the next one"
show 0 brood run -c 'import builtins; builtins.secret = "left behind"'
show 0 brood run -c 'import builtins; hasattr(builtins, "secret")'

# median COMMAND...: of 20 runs, in microseconds.
median() {
	local begin
	for _ in {1..20}; do
		begin=${EPOCHREALTIME/[.,]/}
		"$@" >/dev/null
		echo $((${EPOCHREALTIME/[.,]/} - begin))
	done | sort -n | sed -n 10p
}

title "What a call costs (medians of 20 whole commands on this machine)"
code='sum(range(1000))'
pooled=$(median brood run -c "$code")
cold=$(median "$python" -I -S -c "$code")
printf '%-44s %7d us\n' "brood run -c '$code'" "$pooled" "python3 -I -S -c '$code'" "$cold"
echo "The first figure includes starting the brood command; a client that stays connected saves that as well: make bench"

cat <<EOT

What next:
  $build/bin/brood run --help           everything that a call can be told
  $build/bin/broodd --help              the supervisor, and where its configuration is read from
  protocol/PROTOCOL.md                  a client in any language with MessagePack is short
  make test, make bench, make install PREFIX=...
EOT
