#!/bin/sh
# Makes the project of the job in a new folder: the demo's till with its two bugs, and what the job adds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?the folder to make}
[ ! -e "$folder" ] || { echo "$folder is there already" >&2; exit 2; }
mkdir -p "$folder"
demo=$here/../../../crates/provost-cli/demo/project
cp "$demo/till.sh" "$demo/tests.sh" "$here/agent.yaml" "$here/provost.toml" "$here/scribe.sh" "$here/publish.sh" "$folder"
