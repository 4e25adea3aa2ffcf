#!/bin/sh
# Validates the files of this folder with the programs that read them, as far as they are installed. Starts nothing.
set -eu
cd "$(dirname "$0")"
if command -v restate-server > /dev/null; then
    restate-server --config-file systemd/restate.toml --dump-config > /dev/null
    echo "systemd/restate.toml: read by $(restate-server --version)"
else
    echo "systemd/restate.toml: skipped, restate-server isn't in PATH"
fi
if docker compose version > /dev/null 2>&1; then
    [ -e compose/worker.env ] || { touch compose/worker.env; trap 'rm compose/worker.env' EXIT; }
    SNAPSHOT_SECRET=none docker compose --file compose/compose.yaml --profile workers config --quiet
    echo "compose/compose.yaml: read by $(docker compose version)"
else
    echo "compose/compose.yaml: skipped, \`docker compose\` isn't installed"
fi
if command -v systemd-analyze > /dev/null; then
    systemd-analyze verify systemd/restate.service "systemd/provost-worker@.service" || true
fi
