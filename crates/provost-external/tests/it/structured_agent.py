"""An agent that speaks a structured stream: structured_agent.py FORMAT ARGS..., in the folder that it works in.

A prompt is a list of lines, and the last line that begins with one of these verbs says what it does:
    say TEXT        says TEXT
    ask COMMAND     asks for consent to COMMAND, runs it if it gets that, and says what came of it
    fail            reports a failure
    crash           writes to standard error and exits with 3
    hang            works until it is told to stop
    hang-once       the same, the first time in this folder; then says "again"
    babble          writes lines of no format, one of them very long, and then says "heard"
What it hears it writes to `heard`, a line each. Its sessions are files: the prompts they were told.
"""

import json
import os
import signal
import subprocess
import sys
import uuid

VERBS = ("say", "ask", "fail", "crash", "hang", "hang-once", "babble")


def heard(what):
    with open("heard", "a") as file:
        file.write(what.replace("\n", "|") + "\n")


def write(message):
    sys.stdout.write(message if isinstance(message, str) else json.dumps(message))
    sys.stdout.write("\n")
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
        else:
            self.done(rest)


class Codex(Agent):
    """`exec --json`: one prompt, by standard input."""

    def serve(self, args):
        session = args[args.index("resume") + 1] if "resume" in args else None
        self.begin(session)
        write({"type": "thread.started", "thread_id": self.session})
        prompt = sys.stdin.read().rstrip("\n")
        write({"type": "turn.started"})
        self.work(prompt)

    def ask(self, command):
        return "refused by itself"

    def text(self, text):
        write({"type": "item.completed", "item": {"type": "agent_message", "text": text}})

    def done(self, text):
        self.text(text)
        usage = {"input_tokens": 100 * self.prompts, "cached_input_tokens": 0, "output_tokens": 20 * self.prompts}
        write({"type": "turn.completed", "usage": usage})

    def failed(self, why):
        write({"type": "turn.failed", "error": {"message": why}})
        sys.exit(1)

    def stopped(self):
        signal.pause()


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

    def error(self, to, why):
        write({"jsonrpc": "2.0", "id": to["id"], "error": {"code": -32603, "message": why}})

    def update(self, update):
        write({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": self.session, "update": update}})

    def ask(self, command):
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_always", "allow_once", "reject_once")]
        call = {"toolCallId": "c", "title": command, "kind": "execute", "rawInput": {"command": command}}
        params = {"sessionId": self.session, "options": options, "toolCall": call}
        write({"jsonrpc": "2.0", "id": self.prompts, "method": "session/request_permission", "params": params})
        outcome = read()["result"]["outcome"]
        heard(f"answer {outcome}")
        return True if outcome.get("optionId") == "allow_once" else ""

    def text(self, text):
        half = len(text) // 2
        for piece in (text[:half], text[half:]):
            self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": piece}})

    def done(self, text):
        self.text(text)
        usage = {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120}
        self.result(self.asked, {"stopReason": "end_turn", "usage": usage})

    def failed(self, why):
        self.error(self.asked, why)

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

    def failed(self, why):
        write({"type": "result", "subtype": "success", "is_error": True, "result": why})

    def stopped(self):
        while message := read():
            if message["type"] == "control_request":
                heard(message["request"]["subtype"])
                return write({"type": "result", "subtype": "error_during_execution", "is_error": True})


if __name__ == "__main__":
    heard("start " + " ".join(sys.argv[1:]))
    {"codex": Codex, "acp": Acp, "claude": StreamJson}[sys.argv[1]]().serve(sys.argv[2:])
    heard("end")
