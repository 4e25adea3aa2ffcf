"""An agent that speaks a structured stream: structured_agent.py FORMAT ARGS..., in the folder that it works in.

A prompt is a list of lines, and the last line that begins with one of these verbs says what it does:
    say TEXT        says TEXT
    ask COMMAND     asks for consent to COMMAND, runs it if it gets that, and says what came of it
    fail            reports a failure
    crash           writes to standard error and exits with 3
    hang            works until it is told to stop
    hang-once       the same, the first time in this folder; then says "again"
    babble          writes lines of no format, one of them very long, and then says "heard"
    change JSON     asks for consent to change the files of this list, and says what came of it
    twice COMMAND   asks for two commands in one breath, by the same id: `true`, and then this one
    cut             is cut off by a limit of its own the first time; then says "whole"
    decline         its model refuses to go on
    status CODE     reports a failure with this HTTP status, in words that don't name it
    plan            reports a plan, a command and a change, and says "planned"
    deaf            works, and hears nothing any more
What it hears it writes to `heard`, a line each. Its sessions are files: the prompts they were told.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import uuid

VERBS = ("say", "ask", "fail", "crash", "hang", "hang-once", "babble", "change", "twice", "cut", "decline", "status",
         "plan", "deaf")


def heard(what):
    with open("heard", "a") as file:
        file.write(what.replace("\n", "|") + "\n")


def write(*messages):
    """Writes all of them at once."""
    lines = [message if isinstance(message, str) else json.dumps(message) for message in messages]
    sys.stdout.write("".join(line + "\n" for line in lines))
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def verb(prompt):
    lines = [line for line in prompt.splitlines() if line.split(" ")[0] in VERBS]
    word, _, rest = (lines or ["say Nothing to do."])[-1].partition(" ")
    return word, rest


def run(command):
    return subprocess.run(command, shell=True).returncode


class Agent:
    """What all formats have in common."""

    def __init__(self):
        self.session = None
        self.prompts = 0

    def begin(self, session):
        """Takes up the session, or begins one; whether it was there."""
        known = session and os.path.exists(f"session-{session}")
        self.session = session if known else str(uuid.uuid4())
        if not known:
            open(f"session-{self.session}", "w").close()
        return bool(known)

    def work(self, prompt):
        with open(f"session-{self.session}", "a") as file:
            file.write(prompt.replace("\n", "|") + "\n")
        with open(f"session-{self.session}") as file:
            self.prompts = len(file.readlines())
        heard(f"prompt {self.prompts}: {prompt}")
        word, rest = verb(prompt)
        if word == "ask":
            answer = self.ask(rest)
            if answer is True:
                self.done(f"exit status {run(rest)}")
            else:
                self.done(answer)
        elif word == "fail":
            self.failed("the provider is broken")
        elif word == "crash":
            sys.stderr.write("out of cheese\nsecret sk-ant-api03-" + "x" * 90 + "\n")
            sys.exit(3)
        elif word == "hang" or word == "hang-once" and not os.path.exists("hung"):
            open("hung", "w").close()
            self.text("thinking")
            self.stopped()
        elif word == "hang-once":
            self.done("again")
        elif word == "babble":
            write("Warning: this is no JSON")
            write('{"neither": "one"')
            write("z" * 17_000_000)
            self.done("heard")
        elif word == "change":
            paths = json.loads(rest)
            answer = self.ask_change(paths)
            if answer is True:
                for path in paths:
                    open(path, "w").close()
            self.done("changed" if answer is True else answer)
        elif word == "twice":
            self.twice(rest)
            self.done("asked twice")
        elif word == "cut" and not os.path.exists("was-cut"):
            open("was-cut", "w").close()
            self.cut("half of")
        elif word == "cut":
            self.done("whole")
        elif word == "decline":
            self.declined()
        elif word == "status":
            self.failed("the other side isn't well", int(rest))
        elif word == "plan":
            self.plan()
            self.done("planned")
        elif word == "deaf":
            open("hung", "w").close()
            self.text("thinking")
            while True:
                signal.pause()
        else:
            self.done(rest)


class AppServer(Agent):
    """`codex app-server`."""

    turn = None

    def serve(self, args):
        while message := read():
            method, params = message.get("method"), message.get("params")
            if method == "initialize":
                self.result(message, {"userAgent": "fake/1"})
            elif method == "account/read":
                self.result(message, {"account": None, "requiresOpenaiAuth": "locked" in args})
            elif method == "thread/start":
                self.begin(None)
                self.opened(message)
            elif method == "thread/resume":
                if self.begin(params["threadId"]):
                    self.opened(message)
                    self.usage()
                else:
                    write({"error": {"code": -32600, "message": "no rollout found"}, "id": message["id"]})
            elif method == "turn/start":
                self.turn = str(uuid.uuid4())
                self.result(message, {"turn": {"id": self.turn, "status": "inProgress"}})
                self.notify("turn/started", turn={"id": self.turn, "status": "inProgress"})
                self.work(params["input"][0]["text"])
            elif method == "turn/steer":
                write({"error": {"code": -32600, "message": "no active turn to steer"}, "id": message["id"]})
            elif method and method != "initialized":
                heard(method)

    def opened(self, message):
        with open(f"session-{self.session}") as file:
            self.prompts = len(file.readlines())
        self.result(message, {"thread": {"id": self.session}, "model": "a-model"})

    def result(self, to, result):
        write({"id": to["id"], "result": result})

    def notify(self, method, **params):
        write({"method": method, "params": {"threadId": self.session, "turnId": self.turn, **params}})

    def consent(self, method, item, **params):
        """Asks; the decision. A refusal is followed by its reason, which the fake takes for its own words."""
        self.notify("item/started", item=item)
        params = {"threadId": self.session, "turnId": self.turn, "itemId": item["id"], **params}
        write({"method": method, "id": self.prompts, "params": params})
        while "result" not in (answer := read()):
            heard(answer["method"])
        decision = answer["result"]["decision"]
        heard(f"answer {decision}")
        self.notify("serverRequest/resolved", requestId=self.prompts)
        ok = decision == "accept"
        self.notify("item/completed", item={**item, "status": "completed" if ok else "declined"})
        if ok:
            return True
        steer = read()
        self.result(steer, {"turnId": self.turn})
        return f"refused: {steer['params']['input'][0]['text']}"

    def ask(self, command):
        joined = "/bin/bash -lc " + shlex.quote(command)
        item = {"type": "commandExecution", "id": "c", "command": joined, "cwd": os.getcwd(), "status": "inProgress"}
        return self.consent("item/commandExecution/requestApproval", item, kind="command", command=joined,
                            cwd=os.getcwd(), reason=None)

    def ask_change(self, paths):
        changes = [{"path": path, "kind": {"type": "add"}, "diff": "a\n"} for path in paths]
        return self.consent("item/fileChange/requestApproval", {"type": "fileChange", "id": "f", "changes": changes})

    def twice(self, command):
        def question(command):
            joined = "/bin/bash -lc " + shlex.quote(command)
            params = {"threadId": self.session, "turnId": self.turn, "itemId": "x", "command": joined,
                      "cwd": os.getcwd()}
            return {"method": "item/commandExecution/requestApproval", "id": 7, "params": params}

        write(question("true"), question(command))
        heard(f"answer {read()['result']['decision']}")

    def text(self, text):
        item = {"type": "agentMessage", "id": "m", "text": text}
        self.notify("item/agentMessage/delta", itemId="m", delta=text[:3])
        self.notify("item/completed", item=item)

    def usage(self):
        total = {"inputTokens": 100 * self.prompts, "cachedInputTokens": 0, "outputTokens": 20 * self.prompts}
        self.notify("thread/tokenUsage/updated", tokenUsage={"total": total})

    def ended(self, status, error=None):
        self.notify("turn/completed", turn={"id": self.turn, "status": status, "error": error})
        self.turn = None

    def done(self, text):
        self.text(text)
        self.usage()
        # A sub-agent's end isn't the end of the prompt; the fake has none that could be asked after it.
        self.ended("completed")

    def failed(self, why, status=None):
        info = {"httpConnectionFailed": {"httpStatusCode": status}} if status else "other"
        self.ended("failed", {"message": why, "codexErrorInfo": info})

    def declined(self):
        self.ended("failed", {"message": "flagged", "codexErrorInfo": "cyberPolicy"})

    def plan(self):
        self.notify("turn/plan/updated", plan=[{"step": "one", "status": "completed"},
                                               {"step": "two", "status": "inProgress"}])
        write({"method": "turn/completed", "params": {"threadId": "another", "turn": {"id": "t", "status": "completed"}}})
        self.notify("item/completed", item={"type": "commandExecution", "id": "c", "command": "/bin/bash -lc 'make it'",
                                            "status": "failed", "exitCode": 2})
        changes = [{"path": "a.txt", "kind": {"type": "update", "move_path": None}, "diff": "@@ -1 +1,2 @@\n-a\n+b\n+c\n"}]
        self.notify("item/completed", item={"type": "fileChange", "id": "f", "changes": changes, "status": "completed"})

    def stopped(self):
        while message := read():
            heard(message["method"])
            if message["method"] == "turn/interrupt":
                self.result(message, {})
                return self.ended("interrupted")


class Acp(Agent):
    """The Agent Client Protocol."""

    def serve(self, args):
        while message := read():
            method, params = message.get("method"), message.get("params")
            if method == "initialize":
                self.result(message, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
            elif method == "session/new":
                self.begin(None)
                self.result(message, {"sessionId": self.session})
            elif method == "session/load":
                if self.begin(params["sessionId"]):
                    self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "OLD"}})
                    self.result(message, {})
                else:
                    self.error(message, "no such session")
            elif method == "session/prompt":
                self.asked = message
                self.work(params["prompt"][0]["text"])
            elif method:
                heard(method)

    def result(self, to, result):
        write({"jsonrpc": "2.0", "id": to["id"], "result": result})

    def error(self, to, why, code=-32603):
        write({"jsonrpc": "2.0", "id": to["id"], "error": {"code": code, "message": why}})

    def update(self, update):
        write({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": self.session, "update": update}})

    def permission(self, call, request):
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_always", "allow_once", "reject_once")]
        params = {"sessionId": self.session, "options": options, "toolCall": call}
        return {"jsonrpc": "2.0", "id": request, "method": "session/request_permission", "params": params}

    def consent(self, call):
        write(self.permission(call, self.prompts))
        outcome = read()["result"]["outcome"]
        heard(f"answer {outcome}")
        return True if outcome.get("optionId") == "allow_once" else ""

    def ask(self, command):
        return self.consent({"toolCallId": "c", "title": command, "kind": "execute", "rawInput": {"command": command}})

    def ask_change(self, paths):
        content = [{"type": "diff", "path": path, "oldText": "", "newText": "a"} for path in paths]
        return self.consent({"toolCallId": "f", "title": "Change files", "kind": "edit", "content": content})

    def twice(self, command):
        def question(command):
            call = {"toolCallId": "t", "title": "x", "kind": "execute", "rawInput": {"command": command}}
            return self.permission(call, 7)

        write(question("true"), question(command))
        heard(f"answer {read()['result']['outcome']}")

    def cut(self, text):
        self.text(text)
        self.result(self.asked, {"stopReason": "max_tokens"})

    def declined(self):
        self.result(self.asked, {"stopReason": "refusal"})

    def plan(self):
        self.update({"sessionUpdate": "plan", "entries": [{"content": "one", "status": "completed", "priority": "high"},
                                                          {"content": "two", "status": "in_progress", "priority": "low"}]})
        self.update({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash", "kind": "execute",
                     "rawInput": {"command": "make it"}})
        self.update({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"})
        self.update({"sessionUpdate": "tool_call", "toolCallId": "f", "title": "Edit", "kind": "edit", "content": [
            {"type": "diff", "path": "a.txt", "oldText": "same\na\nend", "newText": "same\nb\nc\nend"}]})
        self.update({"sessionUpdate": "tool_call_update", "toolCallId": "f", "status": "completed", "content": [
            {"type": "content", "content": {"type": "text", "text": "written"}}]})

    def text(self, text):
        half = len(text) // 2
        for piece in (text[:half], text[half:]):
            self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": piece}})

    def done(self, text):
        self.text(text)
        usage = {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120}
        self.result(self.asked, {"stopReason": "end_turn", "usage": usage})

    def failed(self, why, status=-32603):
        self.error(self.asked, why, status)

    def stopped(self):
        while message := read():
            heard(message["method"])
            if message["method"] == "session/cancel":
                return self.result(self.asked, {"stopReason": "cancelled"})


class StreamJson(Agent):
    """Claude Code's lines."""

    def serve(self, args):
        session = args[args.index("--resume") + 1] if "--resume" in args else None
        if not self.begin(session) and session:
            sys.stderr.write(f"No conversation found with session ID: {session}\n")
            sys.exit(1)
        while message := read():
            if message["type"] == "user":
                write({"type": "system", "subtype": "init", "session_id": self.session, "model": "a-model"})
                self.work(message["message"]["content"][0]["text"])

    def ask(self, command):
        request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": command}}
        write({"type": "control_request", "request_id": str(uuid.uuid4()), "request": request})
        answer = read()["response"]["response"]
        heard(f"answer {answer['behavior']}")
        return True if answer["behavior"] == "allow" else f"refused: {answer['message']}"

    def text(self, text):
        message = {"id": str(uuid.uuid4()), "content": [{"type": "text", "text": text}],
                   "usage": {"input_tokens": 100, "output_tokens": 20}}
        write({"type": "assistant", "message": message, "parent_tool_use_id": None})

    def done(self, text):
        self.text(text)
        write({"type": "result", "subtype": "success", "is_error": False, "result": text,
               "total_cost_usd": 0.001 * self.prompts, "usage": {"input_tokens": 100, "output_tokens": 20}})

    def failed(self, why, status=None):
        write({"type": "result", "subtype": "success", "is_error": True, "result": why})

    def stopped(self):
        while message := read():
            if message["type"] == "control_request":
                heard(message["request"]["subtype"])
                return write({"type": "result", "subtype": "error_during_execution", "is_error": True})


def at_terminal():
    """A plain program that reads lines."""
    heard("start at a terminal")
    while line := input("next: "):
        heard(f"line {line}")
        print(f"Read {line}.")


if __name__ == "__main__":
    if len(sys.argv) == 1 or sys.argv[1] == "--bold":
        at_terminal()
    elif sys.argv[1] == "old":
        sys.exit("unknown option: old")
    else:
        heard("start " + " ".join(sys.argv[1:]))
        {"codex": AppServer, "acp": Acp, "claude": StreamJson}[sys.argv[1]]().serve(sys.argv[2:])
        heard("end")
