#!/bin/sh
# Without arguments: a worker that the engine reaches by this container's own name, and by the name that all workers share.
# With arguments: `provost` with them.
set -eu
[ $# -eq 0 ] || exec provost "$@"
exec provost worker --name "worker-$(hostname)" --listen 0.0.0.0:9080 --advertise "http://$(hostname):9080" \
    --shared 0.0.0.0:9079 --advertise-shared http://workers:9079 --health 0.0.0.0:9081
