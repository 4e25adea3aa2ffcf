"""Recorded answers of providers: `replay.py prepare DIR OUT` finds them, `replay.py compare RECORDINGS READINGS` reads each plainly
and compares that with what Provost read.

DIR holds VCR cassettes (`*.yaml`, `*.yml`) or `*.jsonl`, a line of which is `{"url" or "wire", "status", "content_type", "body"}`.
"""

import base64
import collections
import gzip
import json
import pathlib
import sys
import zlib

import yaml

WIRES = {
    "/messages": "anthropic",
    "/responses": "openai-responses",
    "/chat/completions": "openai-chat",
    ":streamGenerateContent": "gemini",
}
SHOWN_MAX = 40


def wire_of(url):
    path = url.split("?")[0].rstrip("/")
    return next((wire for end, wire in WIRES.items() if path.endswith(end)), None)


def prepare(folder, out):
    found, left = [], collections.Counter()
    for file in sorted(pathlib.Path(folder).rglob("*")):
        if file.suffix in (".yaml", ".yml"):
            answers = of_cassette(file)
        elif file.suffix == ".jsonl":
            answers = of_lines(file)
        else:
            continue
        for number, answer in enumerate(answers):
            why = reason_to_leave(answer)
            if why:
                left[why] += 1
            else:
                found.append({"name": f"{file.relative_to(folder)}#{number}", **answer})
    with open(out, "w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(answer) + "\n" for answer in found)
    said = "".join(f", {count} left out: {why}" for why, count in sorted(left.items()))
    print(f"{len(found)} recorded answers{said}")
    return 0 if found else 1


def reason_to_leave(answer):
    if answer["wire"] is None:
        return "of another service"
    if answer["status"] < 400 and not is_stream(answer["body"]):
        return "not streamed, which Provost never asks for"
    return None


def is_stream(body):
    return any(line.startswith("data:") for line in body.splitlines())


class Loader(yaml.SafeLoader):
    """Cassettes name types of Python's, which are read as what they hold."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, tag, node: None)


def of_cassette(file):
    cassette = yaml.load(file.read_text(encoding="utf-8"), Loader=Loader) or {}
    for interaction in cassette.get("interactions", []) if isinstance(cassette, dict) else []:
        request, response = interaction["request"], interaction["response"]
        headers = {key.lower(): value for key, value in (response.get("headers") or {}).items()}
        status = response.get("status")
        yield {
            "wire": wire_of(request.get("uri") or request.get("url") or ""),
            "status": status["code"] if isinstance(status, dict) else int(status or response.get("status_code") or 200),
            "content_type": header(headers, "content-type"),
            "body": text_of(response, headers),
        }


def text_of(response, headers):
    body = response.get("body", response.get("content", ""))
    if isinstance(body, dict):
        body = body.get("string", base64.b64decode(body.get("base64_string", "")))
    raw = body.encode() if isinstance(body, str) else bytes(body or b"")
    encoding = header(headers, "content-encoding")
    if "gzip" in encoding and raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    elif "deflate" in encoding:
        raw = zlib.decompress(raw)
    return raw.decode("utf-8", errors="replace")


def header(headers, name):
    value = headers.get(name, "")
    return str(value[0] if isinstance(value, list) and value else value or "")


def of_lines(file):
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip():
            one = json.loads(line)
            body = one.get("body", one.get("sse", ""))
            yield {
                "wire": one.get("wire") or wire_of(one.get("url", "")),
                "status": int(one.get("status", 200)),
                "content_type": one.get("content_type", "text/event-stream"),
                "body": body if isinstance(body, str) else json.dumps(body),
            }


def events(body):
    """The data of each event of a stream, up to where it was cut."""
    for event in body.replace("\r\n", "\n").split("\n\n"):
        data = [line[5:].removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
        if data and "\n".join(data) != "[DONE]":
            try:
                yield json.loads("\n".join(data))
            except ValueError:
                return


def parsed(text):
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return text


def read(wire, body):
    """What an answer says, or `None` for one that ends before it is over or tells an error."""
    return {"anthropic": anthropic, "openai-responses": responses, "openai-chat": chat, "gemini": gemini}[wire](body)


def anthropic(body):
    text, calls, usage, stop, over = "", {}, {}, None, False
    for event in events(body):
        kind = event.get("type")
        if kind == "error":
            return None
        if kind == "message_start":
            usage.update(event["message"].get("usage") or {})
        elif kind == "content_block_start":
            block = event["content_block"]
            text += block.get("text") or "" if block["type"] == "text" else ""
            if block["type"] == "tool_use":
                calls[event["index"]] = [block["name"], json.dumps(block["input"]) if block["input"] else ""]
        elif kind == "content_block_delta":
            text += event["delta"].get("text", "")
            if event["index"] in calls:
                calls[event["index"]][1] += event["delta"].get("partial_json", "")
        elif kind == "message_delta":
            stop = event["delta"].get("stop_reason") or stop
            usage.update({key: value for key, value in (event.get("usage") or {}).items() if value is not None})
        over = over or kind == "message_stop"
    if not over:
        return None
    cached = usage.get("cache_read_input_tokens") or 0
    prompt = (usage.get("input_tokens") or 0) + cached + (usage.get("cache_creation_input_tokens") or 0)
    stops = {"tool_use": "tool_use", "max_tokens": "output_cap", "refusal": "refusal"}
    return said(text, calls.values(), (prompt, cached, usage.get("output_tokens")), stops.get(stop, "end_turn"))


def responses(body):
    for event in events(body):
        if event.get("type") in ("response.completed", "response.incomplete"):
            return of_response(event["response"])
        if event.get("type") in ("response.failed", "error"):
            return None
    return None


def of_response(response):
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
    calls = [(item["name"], item["arguments"]) for item in response["output"] if item["type"] == "function_call"]
    usage = response.get("usage") or {}
    counts = (
        usage.get("input_tokens"),
        (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0,
        usage.get("output_tokens"),
    )
    why = (response.get("incomplete_details") or {}).get("reason")
    if why == "max_output_tokens":
        stop = "output_cap"
    elif why == "content_filter" or any(part["type"] == "refusal" for part in parts):
        stop = "refusal"
    else:
        stop = "tool_use" if calls else "end_turn"
    return said(text, calls, counts, stop)


def chat(body):
    text, calls, usage, stop, refused = "", {}, {}, None, False
    for event in events(body):
        if event.get("error"):
            return None
        usage = event.get("usage") or usage
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            refused = refused or bool(delta.get("refusal"))
            text += (delta.get("content") or "") + (delta.get("refusal") or "")
            stop = choice.get("finish_reason") or stop
            for place, call in enumerate(delta.get("tool_calls") or []):
                function = call.get("function") or {}
                known = calls.setdefault(call.get("index", place), ["", ""])
                known[0] = known[0] or function.get("name") or ""
                known[1] += function.get("arguments") or ""
    if stop is None:
        return None
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0
    stops = {"length": "output_cap", "content_filter": "refusal"}
    word = "refusal" if refused else stops.get(stop, "tool_use" if calls else "end_turn")
    return said(text, calls.values(), (usage.get("prompt_tokens"), cached, usage.get("completion_tokens")), word)


def gemini(body):
    text, calls, usage, stop = "", [], {}, None
    for event in events(body):
        if event.get("error"):
            return None
        usage = event.get("usageMetadata") or usage
        if (event.get("promptFeedback") or {}).get("blockReason"):
            stop = "SAFETY"
        for candidate in event.get("candidates") or []:
            stop = candidate.get("finishReason") or stop
            for part in (candidate.get("content") or {}).get("parts") or []:
                text += part.get("text", "") if not part.get("thought") else ""
                if "functionCall" in part:
                    call = part["functionCall"]
                    calls.append((call["name"], json.dumps(call.get("args") or {})))
    if stop is None:
        return None
    prompt = (usage.get("promptTokenCount") or 0) + (usage.get("toolUsePromptTokenCount") or 0)
    output = (usage.get("candidatesTokenCount") or 0) + (usage.get("thoughtsTokenCount") or 0)
    stops = {"STOP": "tool_use" if calls else "end_turn", "MAX_TOKENS": "output_cap"}
    return said(text, calls, (prompt, usage.get("cachedContentTokenCount") or 0, output), stops.get(stop, "refusal"))


def said(text, calls, counts, stop):
    calls = [{"name": name, "input": parsed(arguments)} for name, arguments in calls]
    return {"text": text, "calls": calls, "usage": dict(zip(("prompt", "cached", "output"), counts)), "stop": stop}


def differences(wire, recording, found):
    """How what Provost found differs from the plain reading."""
    expected = read(wire, recording["body"]) if recording["status"] < 400 else None
    if expected is None:
        return [] if "failure" in found else [f"an error or a cut, read as {shown(found)}"]
    if "failure" in found:
        return [f"failed as {found['failure']}: {found['message']}"]
    usage, reads = expected.pop("usage"), found.pop("usage")
    wrong = [f"{key}: {shown(found[key])}, not {shown(expected[key])}" for key in expected if found[key] != expected[key]]
    if reads.pop("certainty", "reported") == "reported":
        wrong += [
            f"{key} tokens: {reads[key]}, not {usage[key]}" for key in usage if usage[key] and reads[key] != usage[key]
        ]
    elif usage["prompt"] and usage["output"]:
        wrong.append("usage: estimated, though it was reported")
    return wrong


def shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else text[:160] + "…"


def compare(recordings, readings):
    def load(path):
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    counts, same, problems = collections.Counter(), collections.Counter(), []
    for recording, reading in zip(load(recordings), load(readings), strict=True):
        counts[recording["wire"]] += 1
        wrong = differences(recording["wire"], recording, reading["read"])
        same[recording["wire"]] += not wrong
        problems += [f"{recording['name']} ({recording['wire']}): {one}" for one in wrong]
    for problem in problems[:SHOWN_MAX]:
        print(problem)
    if len(problems) > SHOWN_MAX:
        print(f"… and {len(problems) - SHOWN_MAX} more")
    said = ", ".join(f"{wire} {same[wire]} of {count}" for wire, count in sorted(counts.items()))
    print(f"{sum(same.values())} of {sum(counts.values())} recorded answers read identically ({said})")
    return 1 if problems else 0


if __name__ == "__main__":
    commands = {"prepare": prepare, "compare": compare}
    sys.exit(commands[sys.argv[1]](*sys.argv[2:]))
