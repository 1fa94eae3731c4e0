#!/bin/bash
# A tour in seconds: a pull, a push, an outage, the recovery, a start without a server. Ends and removes what it started and wrote.
set -euo pipefail
bin=${PULLET_BUILD:-build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/pullet-demo.XXXXXX")
serve=
agent=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	for pid in $serve $agent; do
		kill -CONT "$pid" 2>/dev/null || true
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }
now_us() { printf '%s' "${EPOCHREALTIME/[.,]/}"; }
since() { # START_US: milliseconds since then, with one decimal
	local us=$(($(now_us) - $1))
	printf '%d.%d ms' $((us / 1000)) $((us % 1000 / 100))
}
value() { # the first line of the application's file, without starting a process
	local line=
	{ read -r line <"$dir/app/web.yaml"; } 2>/dev/null || true
	printf -v "$1" '%s' "$line"
}
until_value() { # TEXT: spins until the application would read it
	local seen='' end=$((SECONDS + 20))
	while value seen && [ "$seen" != "$1" ]; do
		[ "$SECONDS" -lt "$end" ] || { echo "the value '$1' did not come; the agent's log:" && cat "$dir/log" && exit 1; }
	done
}
until_log() { # PATTERN COUNT FILE: waits until the file has COUNT lines with PATTERN
	local end=$((SECONDS + 20))
	until [ "$(grep -c -e "$1" "$3" 2>/dev/null)" -ge "$2" ]; do
		[ "$SECONDS" -lt "$end" ] || { echo "no '$1' in:" && cat "$3" && exit 1; }
		sleep 0.02
	done
}
until_connected() {
	local end=$((SECONDS + 20))
	until "$bin/pullet" status --json --socket "$dir/run/control.sock" 2>/dev/null | grep '"connected"' >/dev/null; do
		[ "$SECONDS" -lt "$end" ] || { echo "the push channel did not come up; the agent's log:" && cat "$dir/log" && exit 1; }
		sleep 0.02
	done
}
put() { # TEXT: a careful publisher: new file, rename
	printf '%s\n' "$1" >"$dir/www/web.yaml.new~"
	mv "$dir/www/web.yaml.new~" "$dir/www/web.yaml"
}
status() { "$bin/pullet" status --socket "$dir/run/control.sock"; }
delay() { "$bin/pullet" status web --json --socket "$dir/run/control.sock" | tr ',' '\n' | sed -n 's/.*"delay_ms": *\([0-9]*\).*/\1/p'; }
start_agent() { "$bin/pulletd" -c "$dir/pullet.yaml" 2>>"$dir/log" & agent=$!; }

mkdir "$dir/www" "$dir/app"
say "1. An origin: pullet serve, on free ports (any web server with ETags does as well)"
put 'greeting: hello'
"$bin/pullet" serve "$dir/www" --http 127.0.0.1:0 --push tcp://127.0.0.1:0 >"$dir/origin" 2>&1 &
serve=$!
until_log 'publishing on' 1 "$dir/origin"
sed 's/^/   /' "$dir/origin"
url=$(sed -n 's/.* on \(http:[^ ]*\).*/\1/p' "$dir/origin")
endpoint=$(sed -n 's/.* on \(tcp:[^ ]*\).*/\1/p' "$dir/origin")

say "2. The agent, with this configuration"
cat >"$dir/pullet.yaml" <<END
agent: {state_dir: $dir/state, runtime_dir: $dir/run}
push:
  - endpoint: $endpoint
configs:
  web:
    url: $url/web.yaml
    file: $dir/app/web.yaml
    interval: 500ms
    timeout: 500ms
END
sed 's/^/   /' "$dir/pullet.yaml"
begin=$(now_us)
start_agent
until_value 'greeting: hello'
echo "   first value after $(since "$begin"): $(cat "$dir/app/web.yaml")"
until_connected

say "3. A change on the origin is pushed, pulled and visible (changes closer than push_min_interval, 100 ms, are taken together)"
for i in 1 2 3 4 5; do
	sleep 0.2
	text="greeting: hello number $i"
	printf '%s\n' "$text" >"$dir/www/web.yaml.new~"
	begin=$(now_us)
	mv "$dir/www/web.yaml.new~" "$dir/www/web.yaml"
	until_value "$text"
	echo "   visible $(since "$begin") after the change: $text"
done

say "4. The server hangs (SIGSTOP): each timeout doubles the delay, the file stays"
kill -STOP "$serve"
begin=$(now_us)
last=0
for i in 1 2 3; do
	end=$((SECONDS + 20))
	while d=$(delay) && [ "$d" -le "$last" ] || [ "$d" -le 500 ]; do
		[ "$SECONDS" -lt "$end" ] || exit 1
		sleep 0.05
	done
	last=$d
	echo "   after $(since "$begin"): next pull $d ms after the timeout; the application reads '$(cat "$dir/app/web.yaml")'"
done

say "5. The server is back: the next pull restores the interval"
put 'greeting: hello again'
begin=$(now_us)
kill -CONT "$serve"
until_value 'greeting: hello again'
echo "   visible $(since "$begin") after its return"
end=$((SECONDS + 20))
while d=$(delay) && [ "$d" != 500 ]; do
	[ "$SECONDS" -lt "$end" ] || exit 1
	sleep 0.05
done
echo "   delay restored to $d ms"
status | sed 's/^/   /'

say "6. The server is killed, the agent too, the file is lost; the agent starts from the last known good"
kill -KILL "$serve" "$agent"
wait "$serve" "$agent" 2>/dev/null || true
serve=
rm -f "$dir/app/web.yaml"
begin=$(now_us)
start_agent
until_value 'greeting: hello again'
echo "   value back $(since "$begin") after the start: $(cat "$dir/app/web.yaml")"
until_log 'refused' 1 "$dir/log"
status | sed 's/^/   /'

say "7. What the agent logged"
sed 's/^/   /' "$dir/log"
begin=$(now_us)
kill "$agent"
wait "$agent" || true
agent=
say "stopped in $(since "$begin"); its processes and files are gone, $bin/ and what was installed to build it stay"
