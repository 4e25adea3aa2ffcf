"""An MCP server that behaves as its script says: a JSON object in the file named by the first argument.

Only the standard library is used. What it is sent it writes to the file named by the second argument, a line each.
"""

import json
import os
import sys
import time


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def schema(fields=None):
    return {"type": "object", "properties": fields or {}}


def tool(name, description="Does something.", **more):
    return {"name": name, "description": description, "inputSchema": schema(), **more}


class Server:
    def __init__(self, script_file, record):
        self.script_file = script_file
        self.record = record
        self.waits = {}
        self.lists = 0

    @property
    def script(self):
        with open(self.script_file) as file:
            return json.load(file)

    def tools(self):
        self.lists += 1
        pages = self.script.get("lists", [[]])
        return pages[min(self.lists, len(pages)) - 1]

    def note(self, line):
        with open(self.record, "a") as file:
            file.write(line.rstrip("\n") + "\n")

    def run(self):
        self.note(json.dumps({"started": sorted(os.environ)}))
        script = self.script
        if script.get("stderr"):
            sys.stderr.write(script["stderr"])
            sys.stderr.flush()
        if script.get("crashes"):
            sys.exit(3)
        for line in script.get("noise", []):
            sys.stdout.write(line + "\n")
        if script.get("flood_bytes"):
            sys.stdout.write("x" * script["flood_bytes"] + "\n")
            sys.stdout.write("noise\n" * 100_000)
        sys.stdout.flush()
        for line in sys.stdin:
            self.note(line)
            self.take(json.loads(line))

    def take(self, message):
        method, ident = message.get("method"), message.get("id")
        if method is None:
            return self.waits.pop(ident, lambda _: None)(message)
        params = message.get("params") or {}
        if method == "server/discover":
            return self.discover(ident)
        if method == "initialize":
            return say({"jsonrpc": "2.0", "id": ident, "result": {
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": self.script.get("calls_itself", "scripted"), "version": "1.0"}}})
        if method == "tools/list":
            return self.listed(ident)
        if method == "tools/call":
            return self.called(ident, params)

    def discover(self, ident):
        how = self.script.get("discover", "unknown")
        if how == "silent":
            return
        if how == "empty":
            return say({"jsonrpc": "2.0", "id": ident, "result": {}})
        if how == "current":
            return say({"jsonrpc": "2.0", "id": ident, "result": {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1.0"}, "ttlMs": 0, "cacheScope": "private"}})
        say({"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "no such method"}})

    def listed(self, ident):
        if self.script.get("endless"):
            self.lists += 1
            description = "x" * self.script.get("description_bytes", 1)
            tools = [tool("t_%d_%d" % (self.lists, number), description) for number in range(self.script["endless"])]
            return say({"jsonrpc": "2.0", "id": ident, "result": {
                "resultType": "complete", "tools": tools, "nextCursor": "more", "ttlMs": 0, "cacheScope": "private"}})
        if self.script.get("raw_list"):
            sys.stdout.write(self.script["raw_list"].replace("ID", json.dumps(ident)) + "\n")
            return sys.stdout.flush()
        if self.script.get("deep"):
            sys.stdout.write('{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"deep","inputSchema":%s}]}}\n' % (
                json.dumps(ident), '{"a":' * 10000 + "1" + "}" * 10000))
            return sys.stdout.flush()
        say({"jsonrpc": "2.0", "id": ident, "result": {
            "resultType": "complete", "tools": self.tools(), "ttlMs": 0, "cacheScope": "private"}})

    def called(self, ident, params):
        act = self.script.get("calls", {}).get(params["name"], {"text": "done"})
        if "change_to" in act:
            script = self.script
            script["lists"] = [act["change_to"]]
            with open(self.script_file, "w") as file:
                json.dump(script, file)
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        if act.get("dies"):
            os._exit(9)
        if act.get("dies_once") and not os.path.exists(self.record + ".died"):
            open(self.record + ".died", "w").close()
            os._exit(9)
        if act.get("never"):
            return
        if "asks" in act and act.get("by_itself"):
            def answered(answer):
                self.result(ident, "answer: " + json.dumps(answer["result"], sort_keys=True))
            if act.get("on"):
                # Another question each time: the answer to the last one doesn't fit.
                act["asks"]["message"] += " (%d)" % time.monotonic_ns()
            self.waits["q"] = answered
            return say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": act["asks"]})
        if "asks" in act:
            given = params.get("inputResponses")
            if given is None or act.get("on"):
                return say({"jsonrpc": "2.0", "id": ident, "result": {
                    "resultType": "input_required", "requestState": "s" * act["state_bytes"] if "state_bytes" in act else "sealed:1",
                    "inputRequests": {"one": {"method": "elicitation/create", "params": act["asks"]}}}})
            text = json.dumps({"given": given, "state": params.get("requestState")}, sort_keys=True)
            return self.result(ident, text)
        if "bytes" in act:
            return self.result(ident, "x" * act["bytes"])
        if "content" in act:
            return say({"jsonrpc": "2.0", "id": ident, "result": act["content"]})
        self.result(ident, act.get("text", "done"))
        if act.get("twice"):
            self.result(ident, "again")

    def result(self, ident, text):
        say({"jsonrpc": "2.0", "id": ident, "result": {
            "resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False}})


if __name__ == "__main__":
    Server(sys.argv[1], sys.argv[2]).run()
