#!/usr/bin/env python3
"""Stands in for a node or a worker: answers 200 at its health ports, until SIGTERM."""
import http.server
import re
import sys
import threading


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


options = dict(arg[2:].split("=", 1) for arg in sys.argv[1:] if arg.startswith("--") and "=" in arg)
if "config-file" in options:
    text = open(options["config-file"]).read()
    ports = [re.search(r"\[%s\]\nbind-address = \"127.0.0.1:(\d+)\"" % name, text).group(1) for name in ("ingress", "admin")]
else:
    ports = [options["health"].rsplit(":", 1)[1]]
print("serves", *ports, flush=True)
servers = [http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Health) for port in ports]
for server in servers[1:]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
servers[0].serve_forever()
