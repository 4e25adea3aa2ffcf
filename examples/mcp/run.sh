#!/bin/sh
# Installs six MCP servers by their package names, adds them to settings of their own, agrees to them, tests them, and
# calls them in a run with a scripted model; then runs the official conformance suite, unless CONFORMANCE=no. Needs node with
# npm, python3 with venv, git, and `provost` in PATH (or in PROVOST). Everything is kept in the folder that is given, or in a
# temporary one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
provost=${PROVOST:-provost}
work=${1:-$(mktemp -d)}
mkdir -p "$work"
work=$(cd "$work" && pwd)
export PROVOST_STATE_DIR="$work/state" XDG_CONFIG_HOME="$work/config" XDG_STATE_HOME="$work/state-home"

if [ ! -x "$work/npm/node_modules/.bin/mcp-server-memory" ]; then
  npm install --silent --no-audit --no-fund --prefix "$work/npm" @modelcontextprotocol/server-everything \
    @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory
fi
if [ ! -x "$work/pip/bin/mcp-server-fetch" ]; then
  python3 -m venv "$work/pip"
  "$work/pip/bin/pip" install --quiet mcp-server-git mcp-server-time mcp-server-fetch
fi

project="$work/project"
mkdir -p "$project"
cd "$project"
[ -d .git ] || git init --quiet .
echo "a page of the project" > page.txt

bin="$work/npm/node_modules/.bin"
add() {
  name=$1; shift
  "$provost" mcp remove "$name" >/dev/null 2>&1 || true
  "$provost" mcp add "$name" -- "$@" >/dev/null
  "$provost" mcp trust "$name" --yes >/dev/null
}
add everything "$bin/mcp-server-everything"
add filesystem "$bin/mcp-server-filesystem" "$project"
add memory "$bin/mcp-server-memory"
add git "$work/pip/bin/mcp-server-git" --repository "$project"
add time "$work/pip/bin/mcp-server-time" --local-timezone UTC
add fetch "$work/pip/bin/mcp-server-fetch"

"$provost" mcp list
"$provost" mcp test everything --call echo --arguments '{"message": "hello"}'
"$provost" mcp test filesystem --call read_text_file --arguments "{\"path\": \"$project/page.txt\"}"
"$provost" mcp test memory --call read_graph
"$provost" mcp test git --call git_status --arguments "{\"repo_path\": \"$project\"}"
"$provost" mcp test time --call get_current_time --arguments '{"timezone": "UTC"}'
"$provost" mcp test fetch

cat > script.yaml <<'SCRIPT'
answers:
  - tools:
      - tool_search: { query: current time in a timezone }
  - tools:
      - mcp__time__get_current_time: { timezone: UTC }
  - text: "VERDICT: PASS"
SCRIPT
"$provost" run --model "script:$project/script.yaml" "What time is it?"
"$provost" explain last | sed -n '/^MCP servers/,/^$/p'

[ "${CONFORMANCE:-yes}" = no ] || "$here/conformance.sh" "$work"
