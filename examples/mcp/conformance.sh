#!/bin/sh
# Runs the official conformance suite of MCP, both revisions that it has requirements of: for the client, which is what
# `provost mcp add`, `login`, `trust`, `run` and `approve` do to its test servers; and for the server, `provost mcp serve`, over
# a bridge to HTTP. expected.yml names the scenarios that don't fit, with the reason of each; what else fails is a failure, and
# so is one of those that passes. Needs npm, which installs Node 22 too, and `provost` in PATH (or in PROVOST). Everything is kept in the folder that
# is given, or in a temporary one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PROVOST=$(command -v "${PROVOST:-provost}")
PROVOST=$(realpath "$PROVOST")
WORK=${1:-$(mktemp -d)}
mkdir -p "$WORK/conformance" "$WORK/results"
WORK=$(cd "$WORK" && pwd)
export PROVOST WORK
cd "$WORK/conformance"
test -f package.json || echo '{"private":true,"type":"module"}' >package.json
npm install --no-audit --no-fund --silent node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12
PATH=$WORK/conformance/node_modules/.bin:$PATH
failed=0
port=${PORT:-7390}
export PROVOST_STATE_DIR="$WORK/server-state" XDG_CONFIG_HOME="$WORK/server-config"
node "$here/bridge.mjs" "$port" "$PROVOST" mcp serve >/dev/null &
bridge=$!
trap 'kill $bridge 2>/dev/null' EXIT

# Prints how the scenarios of a run ended; the whole output is kept.
suite() {
    name=$1; shift
    echo; echo "== conformance: $name"
    # Servers that the suite runs side by side share two cores with the rest.
    if "$@" --output-dir "$WORK/results/$name" --expected-failures "$here/expected-$name.yml" >"$WORK/results/$name.txt" 2>&1
    then ended=passed
    else ended=FAILED; failed=1
    fi
    sed -n '/=== .*SUMMARY\|=== Expected\|^Total/,$p' "$WORK/results/$name.txt"
    echo "$name: $ended ($WORK/results/$name.txt)"
}

for revision in 2025-11-25 2026-07-28; do
    suite "client-$revision" conformance client --command "node $here/conformance-client.mjs" --requirements $revision --timeout 120000
    suite "server-$revision" conformance server --url "http://127.0.0.1:$port/mcp" --requirements $revision
done
exit $failed
