"""An MCP server that wants a login, and the authorization server for it, on one port of this machine.

oauth_server.py CONFIG RECORD: what it does says the JSON object in the file CONFIG, which is read for each request; what it
is sent it writes to the file RECORD, a line each. It prints its port. Only the standard library is used.
"""

import base64
import hashlib
import json
import secrets
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONFIG, RECORD = sys.argv[1], sys.argv[2]
LOCK = threading.Lock()
CODES, TOKENS, REFRESH, CLIENTS = {}, {}, {}, {}


def config():
    with open(CONFIG) as file:
        return json.load(file)


def note(what, **more):
    with LOCK, open(RECORD, "a") as file:
        file.write(json.dumps({"what": what, **more}) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def base(self):
        return "http://127.0.0.1:%d" % self.server.server_port

    def say(self, status, body, headers=()):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in [("content-type", "application/json"), ("content-length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path.startswith("/.well-known/") and config().get("hides"):
            return self.say(404, {})
        if url.path.startswith("/.well-known/o") and "resource" not in url.path and config().get("nonsense") == "metadata":
            return self.say(200, b"<html>{\"issuer\": 1")
        if url.path == "/.well-known/oauth-protected-resource/mcp":
            note("resource")
            return self.say(200, {"resource": config().get("resource", self.base + "/mcp"),
                                  "authorization_servers": [self.base + config().get("at", "")],
                                  "scopes_supported": ["tools"]})
        if url.path.startswith("/.well-known/oauth-authorization-server"):
            note("metadata")
            issuer = self.base + config().get("at", "")
            return self.say(200, {
                "issuer": config().get("issuer", issuer),
                "authorization_endpoint": config().get("authorize", self.base + "/authorize"),
                "token_endpoint": config().get("token", self.base + "/tokens/token"),
                "revocation_endpoint": self.base + "/revoke",
                **({} if config().get("no_registration") else {"registration_endpoint": self.base + "/register"}),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                "authorization_response_iss_parameter_supported": True})
        if url.path == "/authorize":
            note("authorize", **query)
            back = {"state": query["state"], "iss": config().get("iss", self.base + config().get("at", ""))}
            if config().get("refuses"):
                back.update(error="access_denied", error_description="<b>not you</b>")
            else:
                back["code"] = "code-" + secrets.token_hex(8)
                CODES[back["code"]] = query
            return self.say(302, b"", [("location", query["redirect_uri"] + "?" + urllib.parse.urlencode(back))])
        self.say(404, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        path = urllib.parse.urlparse(self.path).path
        if path == "/register":
            client = "client-" + secrets.token_hex(4)
            asked = json.loads(body)
            note("register", **asked)
            CLIENTS[client] = config().get("secret")
            given = {"client_secret": CLIENTS[client]} if CLIENTS[client] else {}
            return self.say(201, {"client_id": client, "redirect_uris": asked["redirect_uris"], **given})
        # The second is where a client looks that was told of none.
        if path in ("/tokens/token", "/token"):
            return self.token(path, dict(urllib.parse.parse_qsl(body)))
        if path == "/revoke":
            given = dict(urllib.parse.parse_qsl(body))
            note("revoke", known=REFRESH.pop(given.get("token"), None) is not None)
            return self.say(200, {})
        if path == "/mcp":
            return self.mcp(json.loads(body))
        self.say(404, {})

    def token(self, path, asked):
        basic = self.headers.get("authorization", "")
        if basic.startswith("Basic "):
            client, _, secret = base64.b64decode(basic[6:]).decode().partition(":")
            asked.update(client_id=client, client_secret=secret)
        note("token", path=path, grant=asked.get("grant_type"), resource=asked.get("resource"))
        if config().get("nonsense") == "token":
            return self.say(200, b'{"access_token": ["canary-token"], "token_type": "canary-token", ')
        if CLIENTS.get(asked.get("client_id"), asked.get("client_secret")) != asked.get("client_secret"):
            return self.say(401, {"error": "invalid_client"})
        if asked["grant_type"] == "authorization_code":
            code = CODES.pop(asked["code"], None)
            verifier = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
            if not code or code["code_challenge_method"] != "S256" or code["code_challenge"] != challenge:
                return self.say(400, {"error": "invalid_grant"})
            if code["redirect_uri"] != asked["redirect_uri"] or code["client_id"] != asked["client_id"]:
                return self.say(400, {"error": "invalid_grant"})
            scope = code.get("scope", "")
        else:
            with LOCK:
                scope = REFRESH.pop(asked["refresh_token"], None)
            if scope is None or config().get("forgets"):
                return self.say(400, {"error": "invalid_grant"})
        access, refresh = "access-" + secrets.token_hex(16), "refresh-" + secrets.token_hex(16)
        TOKENS[access], REFRESH[refresh] = scope, scope
        self.say(200, {"access_token": config().get("access", access), "refresh_token": refresh,
                       "token_type": config().get("token_type", "Bearer"), "scope": scope,
                       "expires_in": config().get("expires_in", 3600)}, [("cache-control", "no-store")])

    def mcp(self, message):
        given = self.headers.get("authorization", "")
        token = given.removeprefix("Bearer ")
        method, ident = message.get("method"), message.get("id")
        note("mcp", method=method, with_token=token in TOKENS, given=bool(given))
        lets_in = config().get("lets_in") and method in ("initialize", "notifications/initialized")
        if not lets_in and (token not in TOKENS or (config().get("expires") and method == "tools/call")):
            challenge = 'Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"' % self.base
            if config().get("challenge_scope"):
                challenge += ', scope="%s"' % config()["challenge_scope"]
            return self.say(401, {}, [("www-authenticate", challenge)])
        needs = config().get("needs")
        if needs and method == "tools/call" and needs not in TOKENS[token].split():
            return self.say(403, {}, [("www-authenticate", 'Bearer error="insufficient_scope", scope="%s"' % needs)])
        if ident is None:
            return self.say(202, b"")
        describes = given if config().get("describes") else "Does something."
        results = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "locked", "version": "1"}},
            "tools/list": {"tools": [{"name": "a", "description": describes, "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "you sent " + given if config().get("echoes") else "done"}]},
        }
        if method in results:
            return self.say(200, {"jsonrpc": "2.0", "id": ident, "result": results[method]})
        self.say(200, {"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "no such method"}})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
