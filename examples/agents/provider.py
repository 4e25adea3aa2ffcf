#!/usr/bin/env python3
"""A model provider for tests: it speaks the wire formats of four vendors and answers from a script.

    provider.py SCRIPT.json [--port N] [--log FILE]

It listens on the loopback (port 0, the default, is any free one) and prints `http://127.0.0.1:PORT` first.

The script is a list of scenes: {"when": TEXT, "steps": [STEP, ...]}. A request belongs to the scene whose `when` is
last in the latest message that holds one, and to the step whose number is how many tool results came after that message;
the last step is repeated. No state is kept, so a request sent twice is answered alike. A step is one of
    {"say": TEXT}                       an answer
    {"shell": COMMAND}                  a call of the agent's own tool for commands ("sandboxed": true: one that
                                        Codex needs no consent for)
    {"write": PATH, "content": TEXT}    a call of its tool for new files
    {"error": STATUS, "message": TEXT}  a refusal of the provider
with "first" (seconds before the first byte), "pace" (seconds between two words) and "usage" (tokens in and out) to taste.
"""

import argparse
import json
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The agents' names for the two tools, and of the arguments that matter.
SHELL_TOOLS = {
    "shell_command": "command",
    "exec_command": "cmd",
    "run_shell_command": "command",
    "run_commands": "commands",
    "bash": "command",
    "Bash": "command",
    "terminal": "command",
}
# Tools that take a list of commands.
SEVERAL_COMMANDS = ("run_commands",)
WRITE_TOOLS = {"write_file": "file_path", "write": "filePath", "Write": "file_path"}
USAGE = (100, 20)
# How OpenHands begins the result of a call that a person has denied: what follows are the person's words.
REJECTED = "Action rejected: "


class Conversation:
    """What a request says, whatever the format: its messages as (role, text), role `tool` for results, and the tools that
    it offers, each with the names of its arguments."""

    def __init__(self, messages, tools):
        self.messages = messages
        self.tools = tools

    def step(self, scenes):
        """The scripted step that it is at; some text where no scene fits, as for a title."""
        results = 0
        for role, text in reversed(self.messages):
            if role == "tool":
                results += 1
                continue
            scene = max(scenes, key=lambda scene: text.rfind(scene["when"]), default=None)
            if role == "user" and scene and scene["when"] in text:
                return scene["steps"][min(results, len(scene["steps"]) - 1)]
        return {"say": "Nothing to do."}

    @staticmethod
    def reason(tool, step):
        """What goes with a command: for Codex, that it is to run outside of its sandbox, so that it asks for consent."""
        if tool not in ("exec_command", "shell_command"):
            # OpenHands leaves a command alone that is silent for 30 s, unless its model says how long it may take.
            wait = {"timeout": 120} if tool == "terminal" else {}
            return {"description": "Run " + step["shell"].split("\n")[0], "is_background": False,
                    "security_risk": "LOW", **wait}
        wait = {"yield_time_ms": 60000} if tool == "exec_command" else {}
        if step.get("sandboxed"):
            return wait
        return {**wait, "sandbox_permissions": "require_escalated", "justification": "May I run this command?"}

    def call(self, step):
        """The tool call, (name, arguments), that a step stands for with this agent's tools; None if it is text."""
        if "shell" in step:
            for name, key in SHELL_TOOLS.items():
                if name in self.tools:
                    command = [step["shell"]] if name in SEVERAL_COMMANDS else step["shell"]
                    reason = self.reason(name, step).items()
                    # Some agents refuse a call with an argument that they don't know.
                    return name, {key: command, **{more: value for more, value in reason if more in self.tools[name]}}
        if "write" in step:
            for name, key in WRITE_TOOLS.items():
                if name in self.tools:
                    return name, {key: step["write"], "content": step["content"]}
            if "apply_patch" in self.tools:
                body = "".join(f"+{line}\n" for line in step["content"].splitlines())
                patch = f"*** Begin Patch\n*** Add File: {step['write']}\n{body}*** End Patch\n"
                return "apply_patch", patch
        return None


def fields(schema):
    """The names of a tool's arguments."""
    return set((schema or {}).get("properties", {}))


def text_of(content):
    """The text in a message's content, in any of the formats."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content or [] if isinstance(part, dict))


def used(step):
    """The tokens that an answer takes, in and out."""
    return step.get("usage", USAGE)


def words(text):
    """The text in pieces, as a model streams it."""
    return re.findall(r"\s*\S+|\s+$", text)


class Responses:
    """OpenAI's Responses interface."""

    path = re.compile(r"/responses$")

    @staticmethod
    def read(body):
        if isinstance(body.get("input"), str):
            return Conversation([("user", body["input"])], set())
        messages = []
        for item in body.get("input", []):
            if item.get("type", "message") == "message":
                messages.append((item.get("role"), text_of(item.get("content"))))
            elif item["type"].endswith("_call_output"):
                messages.append(("tool", ""))
        tools = {tool.get("name") or tool.get("type"): fields(tool.get("parameters")) for tool in body.get("tools", [])}
        return Conversation(messages, tools)

    @staticmethod
    def events(step, call, _body):
        yield {"type": "response.created", "response": {"id": "resp_1"}}
        if call:
            name, arguments = call
            kind, field = ("custom_tool_call", "input") if isinstance(arguments, str) else ("function_call", "arguments")
            value = arguments if isinstance(arguments, str) else json.dumps(arguments)
            item = {"type": kind, "id": "item_1", "call_id": fresh("call"), "name": name, field: value}
            # Clients of OpenAI's own libraries take only calls that were announced.
            yield {"type": "response.output_item.added", "output_index": 0,
                   "item": {**item, field: "", "status": "in_progress"}}
            part = {"function_call": "function_call_arguments", "custom_tool_call": "custom_tool_call_input"}[kind]
            at = {"item_id": "item_1", "output_index": 0}
            yield {"type": f"response.{part}.delta", **at, "delta": value}
            yield {"type": f"response.{part}.done", **at, field: value}
            item["status"] = "completed"
        else:
            yield {"type": "response.output_item.added", "output_index": 0, "item": Responses.message("")}
            for word in words(step["say"]):
                yield {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
                       "content_index": 0, "delta": word}
            item = Responses.message(step["say"])
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        usage = {"input_tokens": used(step)[0], "output_tokens": used(step)[1], "total_tokens": sum(used(step))}
        yield {"type": "response.completed", "response": {"id": "resp_1", "usage": usage, "output": [item]}}

    @staticmethod
    def message(text):
        return {"type": "message", "id": "msg_1", "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}] if text else []}

    @staticmethod
    def frame(event):
        return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"

    @staticmethod
    def whole(events):
        return events[-1]["response"]


class Chat:
    """OpenAI's Chat Completions interface, which many servers speak."""

    path = re.compile(r"/chat/completions$")

    @staticmethod
    def read(body):
        messages = []
        for message in body["messages"]:
            text = text_of(message.get("content"))
            messages.append((message["role"], text))
            if message["role"] == "tool" and text.startswith(REJECTED):
                messages.append(("user", text))
        functions = [tool["function"] for tool in body.get("tools", [])]
        return Conversation(messages, {each["name"]: fields(each.get("parameters")) for each in functions})

    @staticmethod
    def events(step, call, body):
        def chunk(delta, finish=None, **more):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model", ""),
                    "choices": [choice], **more}

        usage = {"prompt_tokens": used(step)[0], "completion_tokens": used(step)[1], "total_tokens": sum(used(step))}
        if call:
            name, arguments = call
            function = {"name": name, "arguments": json.dumps(arguments)}
            yield chunk({"role": "assistant", "tool_calls": [
                {"index": 0, "id": fresh("call"), "type": "function", "function": function}]})
            yield chunk({}, "tool_calls", usage=usage)
        else:
            yield chunk({"role": "assistant", "content": ""})
            for word in words(step["say"]):
                yield chunk({"content": word})
            yield chunk({}, "stop", usage=usage)

    @staticmethod
    def frame(event):
        return f"data: {json.dumps(event)}\n\n"

    @staticmethod
    def whole(events):
        message = {"role": "assistant", "content": ""}
        for event in events:
            delta = event["choices"][0]["delta"]
            message["content"] += delta.get("content") or ""
            if "tool_calls" in delta:
                message["tool_calls"] = delta["tool_calls"]
        choice = {"index": 0, "message": message, "finish_reason": events[-1]["choices"][0]["finish_reason"]}
        return {**events[-1], "object": "chat.completion", "choices": [choice]}


class Gemini:
    """Google's generateContent."""

    path = re.compile(r":(stream)?[gG]enerateContent$")

    @staticmethod
    def read(body):
        messages = []
        for content in body.get("contents", []):
            parts = content.get("parts", [])
            messages += [("tool", "") for part in parts if "functionResponse" in part]
            text = text_of([part for part in parts if "text" in part])
            if text:
                messages.append((content.get("role", "user"), text))
        declared = [d for tool in body.get("tools", []) for d in tool.get("functionDeclarations", [])]
        schema = lambda each: each.get("parametersJsonSchema") or each.get("parameters")
        return Conversation(messages, {each["name"]: fields(schema(each)) for each in declared})

    @staticmethod
    def events(step, call, _body):
        def chunk(part, **more):
            candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **more}
            return {"candidates": [candidate], "modelVersion": "scripted"}

        if call:
            last = chunk({"functionCall": {"name": call[0], "args": call[1]}}, finishReason="STOP")
        else:
            *head, tail = words(step["say"]) or [""]
            for word in head:
                yield chunk({"text": word})
            last = chunk({"text": tail}, finishReason="STOP")
        counts = zip(("promptTokenCount", "candidatesTokenCount", "totalTokenCount"), (*used(step), sum(used(step))))
        yield {**last, "usageMetadata": dict(counts)}

    @staticmethod
    def frame(event):
        return f"data: {json.dumps(event)}\r\n\r\n"

    @staticmethod
    def whole(events):
        parts = [part for event in events for part in event["candidates"][0]["content"]["parts"]]
        if all("text" in part for part in parts):
            parts = [{"text": "".join(part["text"] for part in parts)}]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        return {**events[-1], "candidates": [candidate]}


class Messages:
    """Anthropic's Messages."""

    path = re.compile(r"/messages$")

    @staticmethod
    def read(body):
        messages = []
        for message in body["messages"]:
            content = message["content"]
            parts = content if isinstance(content, list) else []
            messages += [("tool", "") for part in parts if part.get("type") == "tool_result"]
            text = text_of(content)
            if text:
                messages.append((message["role"], text))
        tools = {tool["name"]: fields(tool.get("input_schema")) for tool in body.get("tools", [])}
        return Conversation(messages, tools)

    @staticmethod
    def events(step, call, body):
        usage = {"input_tokens": used(step)[0], "output_tokens": used(step)[1]}
        yield {"type": "message_start", "message": {
            "id": fresh("msg"), "type": "message", "role": "assistant", "model": body.get("model", ""),
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}}
        if call:
            block = {"type": "tool_use", "id": fresh("toolu"), "name": call[0], "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(call[1])}]
        else:
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in words(step["say"])]
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        reason = "tool_use" if call else "end_turn"
        yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}

    @staticmethod
    def frame(event):
        return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"

    @staticmethod
    def whole(events):
        message, block = events[0]["message"], events[1]["content_block"]
        for event in events:
            delta = event.get("delta", {})
            if delta.get("type") == "text_delta":
                block["text"] += delta["text"]
            elif delta.get("type") == "input_json_delta":
                block["input"] = json.loads(delta["partial_json"])
        return {**message, "content": [block], "stop_reason": events[-2]["delta"]["stop_reason"]}


FORMATS = [Responses, Chat, Gemini, Messages]


def fresh(prefix):
    """A new id; agents mix up two calls that bear the same one."""
    return f"{prefix}_{time.monotonic_ns():x}"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    scenes = []
    log_file = None

    def log_message(self, *_args):
        """Says nothing on standard error."""

    def do_HEAD(self):
        self.answer(200, {})

    def do_GET(self):
        model = {"id": "scripted", "object": "model", "type": "model", "display_name": "scripted"}
        self.answer(200, {"object": "list", "data": [model], "models": [], "has_more": False})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw or b"{}")
        path = self.path.split("?")[0]
        self.note(path, body)
        form = next((form for form in FORMATS if form.path.search(path)), None)
        if form is None:
            count = {"input_tokens": USAGE[0], "totalTokens": USAGE[0]}
            return self.answer(200, count if "ount" in path else {})
        conversation = form.read(body)
        step = conversation.step(self.scenes)
        time.sleep(step.get("first", 0.3))
        if "error" in step:
            error = {"message": step.get("message", "refused"), "type": "error", "code": step["error"]}
            return self.answer(step["error"], {"type": "error", "error": error})
        call = conversation.call(step)
        if call is None and "say" not in step:
            step = {**step, "say": plain(step)}
        events = form.events(step, call, body)
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            return self.stream(form, events, step.get("pace", 0.02))
        return self.answer(200, form.whole(list(events)))

    def note(self, path, body):
        if self.log_file:
            with open(self.log_file, "a", encoding="utf-8") as log:
                log.write(json.dumps({"path": path, "body": body}) + "\n")

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self, form, events, pace):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for event in events:
                self.wfile.write(form.frame(event).encode())
                self.wfile.flush()
                time.sleep(pace)
            if form is Chat:
                self.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # The agent was interrupted.


def plain(step):
    """A step for an agent without tools, as aider reads it: a file or a command in a fenced block."""
    if "write" in step:
        return f"{step['write']}\n```\n<<<<<<< SEARCH\n=======\n{step['content']}\n>>>>>>> REPLACE\n```\n"
    return f"Run this:\n\n```bash\n{step['shell']}\n```\n"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("script")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--log")
    options = options.parse_args()
    with open(options.script, encoding="utf-8") as script:
        Handler.scenes = json.load(script)
    Handler.log_file = options.log
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
