#!/bin/sh
# Looks at every page in a browser, and plays the evening on the page by keyboard. Needs node, npm and chromium (CHROMIUM names
# it); installs playwright-core and axe-core into a folder for temporary files. The argument is the program; else it is built.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
program=${1:-}
if [ -z "$program" ]; then
    cargo build --manifest-path "$here/Cargo.toml" -p provost-cli
    program=$here/target/debug/provost
fi
program=$(realpath "$program")
folder=$(mktemp -d)
export HOME="$folder" PROVOST_STATE_DIR="$folder/state" PROVOST="$program"
"$here/examples/evening/evening.sh" "$folder/evening"
cd "$folder"
npm install --silent playwright-core@1.65 axe-core@4
cp "$here/dev/browser.mjs" "$here/examples/evening/page.mjs" "$folder"
node browser.mjs "$folder" "$program"
node page.mjs "$folder/evening" "$program"
echo "pictures are in $folder/pictures"
