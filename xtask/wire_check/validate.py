"""Validates request bodies against the providers' own SDKs: `validate.py BODIES`, one JSON object a line."""

import collections
import copy
import json
import sys

import pydantic
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types as gemini
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

from shapes import complaints

TYPED_DICTS = {
    "anthropic": MessageCreateParamsStreaming,
    "openai-responses": ResponseCreateParamsStreaming,
    "openai-chat": CompletionCreateParamsStreaming,
}
# google-genai has no type of a whole request, but one for each of its parts.
GEMINI = {
    "contents": list[gemini.Content],
    "systemInstruction": gemini.Content,
    "tools": list[gemini.Tool],
    "toolConfig": gemini.ToolConfig,
    "generationConfig": gemini.GenerationConfig,
}
PATHS = {
    "anthropic": "/v1/messages",
    "openai-responses": "/v1/responses",
    "openai-chat": "/v1/chat/completions",
    "gemini": ":streamGenerateContent?alt=sse",
}
SHOWN_MAX = 20


def of_gemini(body):
    found = [f"body.{key}: a request has no such field" for key in body if key not in GEMINI]
    found += ["body: lacks contents"] if "contents" not in body else []
    for key, kind in GEMINI.items():
        if key in body:
            try:
                pydantic.TypeAdapter(kind).validate_json(json.dumps(body[key]), strict=True)
            except pydantic.ValidationError as error:
                found += [f"body.{key}{place(one['loc'])}: {one['msg']}" for one in error.errors()]
    return found


def place(loc):
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in loc)


def wrong_with(wire, body):
    """What is wrong with a body; nothing if the SDK could have sent it."""
    if wire == "gemini":
        return of_gemini(body)
    found = complaints(body, TYPED_DICTS[wire], "body")
    if body.get("stream") is not True:
        found.append("body.stream: must be true")
    return found


def broken(wire, body):
    """The same body with one thing wrong in it, many times, each with a name."""
    messages = {"anthropic": "messages", "openai-responses": "input", "openai-chat": "messages", "gemini": "contents"}[wire]

    def with_(change):
        other = copy.deepcopy(body)
        change(other)
        return other

    def last(other):
        return other[messages][-1]

    yield "an unknown field", with_(lambda other: other.update(unheard_of=1))
    yield "an unknown field in a message", with_(lambda other: last(other).update(unheard_of=1))
    yield "an unknown field in a tool", with_(lambda other: other["tools"][0].update(unheard_of=1))
    yield "a role that nobody has", with_(lambda other: other[messages][0].update(role=5))
    yield "messages that are no list", with_(lambda other: other.update({messages: {"a": 1}}))
    if wire != "openai-responses":  # whose types require nothing but that it streams
        yield "no messages", with_(lambda other: other.pop(messages))
    cap = {"anthropic": "max_tokens", "openai-responses": "max_output_tokens", "openai-chat": "max_completion_tokens"}
    if wire == "gemini":
        yield "a cap in words", with_(lambda other: other["generationConfig"].update(maxOutputTokens="many"))
    else:
        yield "a cap in words", with_(lambda other: other.update({cap[wire]: "many"}))


def main(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    counts, problems, proven = collections.Counter(), [], 0
    for line in lines:
        wire, body = line["wire"], line["body"]
        counts[wire] += 1
        found = wrong_with(wire, body)
        if PATHS[wire] not in line["line"]:
            found.append(f"{line['line']}: not the address of {wire}")
        problems += [f"{wire}, {line['model']}, {line['kind']}: {one}" for one in found]
        if line["kind"] == "first turn":
            for what, other in broken(wire, body):
                proven += 1
                if not wrong_with(wire, other):
                    problems.append(f"{wire}, {line['model']}: {what} isn't noticed, so that this validates little")
    for problem in problems[:SHOWN_MAX]:
        print(problem)
    if len(problems) > SHOWN_MAX:
        print(f"… and {len(problems) - SHOWN_MAX} more")
    kinds = len({line["kind"] for line in lines})
    said = ", ".join(f"{wire} {counts[wire]}" for wire in PATHS)
    print(f"{len(lines)} requests of {kinds} kinds ({said}): {len(problems)} problems; {proven} broken ones were tried")
    return 1 if problems or set(counts) != set(PATHS) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
