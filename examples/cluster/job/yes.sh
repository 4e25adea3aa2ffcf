#!/bin/sh
# Answers the one open question of a run with yes, as the page does: by the server's API.
set -eu
run=${1:?the run}
provost=${PROVOST:-provost}
kept=$(mktemp -d)
"$provost" serve --port 0 --token-file "$kept/token" > "$kept/out" 2>&1 &
server=$!
trap 'kill "$server"; wait "$server" 2> /dev/null || true; rm -r "$kept"' EXIT
tries=0
until [ -s "$kept/token" ] && grep -q http:// "$kept/out"; do
    tries=$((tries + 1))
    [ "$tries" -lt 150 ] || { cat "$kept/out" >&2; exit 1; }
    sleep 0.2
done
url=$(grep -oE 'http://[^/ ]+' "$kept/out" | head -n 1)
call() { curl --silent --show-error --fail-with-body -H "Authorization: Bearer $(cat "$kept/token")" "$@"; }
question=$(call "$url/v1/runs/$run" | python3 -c '
import json, sys
question = json.load(sys.stdin)["waits_for"][0]
print(question["agent"], question["asked"], sep="/")')
call -H 'Content-Type: application/json' -d '{"answer":"allow","scope":"once"}' "$url/v1/runs/$run/approvals/$question"
echo
