#!/bin/sh
# Sends a server what is made from its own description, with and without a token: no answer may be one that isn't described.
# Needs python3; installs schemathesis into a folder for temporary files. The argument is the program; else it is built.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
program=${1:-}
if [ -z "$program" ]; then
    cargo build --manifest-path "$here/Cargo.toml" -p provost-cli
    program=$here/target/debug/provost
fi
program=$(realpath "$program")
folder=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server"; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "schemathesis==4.32.5"
mkdir "$folder/work" "$folder/state"
cd "$folder/work"
export HOME="$folder" PROVOST_STATE_DIR="$folder/state"
printf 'answers: [{ text: done }]\n' > agent.yaml
printf '[agent]\nmodel = "script:agent.yaml"\n' > provost.toml
"$program" run -q "something to look at"
"$program" serve --port 0 --token-file "$folder/token" > "$folder/link" &
server=$!
until test -s "$folder/link" && test -s "$folder/token"; do sleep 0.1; done
port=$(sed -E 's/.*localhost:([0-9]+).*/\1/' "$folder/link")
"$program" serve --openapi > "$folder/openapi.json"
check() {
    "$folder/venv/bin/schemathesis" --config-file "$here/dev/schemathesis.toml" run "$folder/openapi.json" \
        --url "http://127.0.0.1:$port" --max-examples "${EXAMPLES:-20}" --exclude-path-regex 'events$' "$@"
}
check -H "Authorization: Bearer $(cat "$folder/token")"
check
