#!/bin/sh
# Plays editor sessions against `provost acp` with the clients that npm has. Needs npm; Node 22 is installed with them. PROVOST
# is the program (target/debug/provost), EDITORS where the clients are installed (a temporary folder, kept for next time).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
provost=$(realpath "${PROVOST:-$here/../../target/debug/provost}")
editors=${EDITORS:-${TMPDIR:-/tmp}/provost-editors}
mkdir -p "$editors"
test -f "$editors/package.json" || echo '{"private":true,"type":"module"}' >"$editors/package.json"
(cd "$editors" && npm install --no-audit --no-fund --silent \
    node@22 acpx@0.19.1 @agentclientprotocol/sdk@2.4.0)
PATH=$editors/node_modules/.bin:$PATH

scene=$(mktemp -d "${TMPDIR:-/tmp}/provost-editor.XXXXXX")
trap 'rm -rf "$scene"' EXIT
mkdir "$scene/home" "$scene/state" "$scene/work" "$scene/slow"
export HOME="$scene/home" PROVOST_STATE_DIR="$scene/state"
cp "$here/agent.yaml" "$scene/work"
cp "$here/slow.yaml" "$scene/slow"
printf '[agent]\nmodel = "script:agent.yaml"\n[permissions]\nask = ["shell"]\n' >"$scene/work/provost.toml"
printf '[agent]\nmodel = "script:slow.yaml"\n' >"$scene/slow/provost.toml"
failed=0
step() { echo; echo "== $1"; }

step "the protocol's SDK"
cp "$here/session.mjs" "$editors/session.mjs"
node "$editors/session.mjs" "$provost" "$scene/work" "$scene/slow" || failed=1

step "acpx: a call denied, a call allowed, sessions"
cd "$scene/work"
acpx --agent "$provost acp" --cwd "$scene/work" --deny-all exec "deny: publish it" || test $? = 5 || failed=1
acpx --agent "$provost acp" --cwd "$scene/work" --approve-all exec "allow: publish it" || failed=1
"$provost" ps
"$provost" show last
acpx --agent "$provost acp" --cwd "$scene/work" sessions list || failed=1

step "acpx: a prompt that times out; acpx ends all processes below the agent then, which suspends the run"
acpx --agent "$provost acp" --cwd "$scene/slow" --approve-all --timeout 15 exec "wait: take your time" || test $? = 3 || failed=1
"$provost" ps -n 1
test $failed = 0 && echo "editors: passed" || echo "editors: FAILED"
exit $failed
