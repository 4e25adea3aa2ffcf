#!/bin/sh
# Installs the client libraries into a folder of its own and checks them behind the gateway: run.sh [LIBRARY ...]
# PROVOST is the program (target/debug/provost), SDKS where the libraries are (a temporary folder, kept for next time).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
provost=${PROVOST:-$here/../../target/debug/provost}
sdks=${SDKS:-${TMPDIR:-/tmp}/provost-sdks}
if [ ! -e "$sdks/bin/python" ]; then
    python3 -m venv "$sdks"
    "$sdks/bin/pip" install --quiet openai anthropic google-genai
fi
exec python3 -B "$here/check.py" --provost "$provost" --python "$sdks/bin/python" "$@"
