#!/bin/sh
# Installs external agents into a folder of its own and checks them under Provost: run.sh [AGENT ...]
# PROVOST is the program (target/debug/provost), AGENTS where they are installed (a temporary folder, kept for next time).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
provost=${PROVOST:-$here/../../target/debug/provost}
agents=${AGENTS:-${TMPDIR:-/tmp}/provost-agents}
exec python3 -B "$here/check.py" --provost "$provost" --agents "$agents" "$@"
