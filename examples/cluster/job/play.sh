#!/bin/sh
# The job of docs/cluster.md by itself: two agents and an external one repair a till on a local cluster; the worker that holds the run
# is killed while the external one works; publishing waits for a yes, which `yes.sh` gives by the server's API.
#
#     provost cluster up --nodes 3 --workers 3
#     examples/cluster/job/play.sh FOLDER
#
# PROVOST names the program. Needs curl and python3; nothing else is left running.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?the folder to work in, which must be new}
provost=${PROVOST:-provost}
export PROVOST_ENGINE_URL=local

fail() {
    echo "failed: $*" >&2
    "$provost" show "${run:-last}" >&2 || true
    exit 1
}

# Waits until the command behind the seconds and the words succeeds.
until_so() {
    left=$(($1 * 5)) what=$2
    shift 2
    until "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || fail "never: $what"
        sleep 0.2
    done
}

# A field of the run's description.
field() {
    "$provost" show "$run" --json | python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1]) or "")' "$1"
}

"$here/project.sh" "$folder"
cd "$folder"
"$provost" trust --yes
run=$("$provost" run --detach "Repair the till.")
echo "run $run"

scribe_works() { "$provost" logs "$run" | grep -q "scribe.*has a slot"; }
until_so 60 "the scribe works" scribe_works
worker=$(field held_by | cut -d ' ' -f 2)
pid=$("$provost" cluster status --json | python3 -c '
import json, sys
print(next(member["pid"] for member in json.load(sys.stdin)["members"] if member["name"] == sys.argv[1]))' "$worker")
echo "kill -9 $pid, which is $worker, amid the scribe's work"
kill -9 "$pid"

asks() { "$provost" approvals --json | grep -q "\"$run"; }
until_so 120 "it asks" asks
[ ! -e published.txt ] || fail "published without a yes"
echo "held by $(field held_by)"
"$here/yes.sh" "$run"

is_done() { [ "$(field status)" = completed ]; }
until_so 60 "it is completed" is_done
sh tests.sh
[ "$(wc -l < published.txt)" = 1 ] || fail "published $(wc -l < published.txt) times"
[ -s NOTES.md ] || fail "no notes"
"$provost" cluster up > /dev/null 2>&1
"$provost" show "$run"
echo "passed: $worker was killed, each step was done once, and publishing waited for a yes"
