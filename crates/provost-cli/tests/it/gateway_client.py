#!/usr/bin/env python3
"""Calls a model as the program whose name it has does: at the address, and with the key, that it is pointed to.

`gateway_client.py WIRE COUNT [TEXT]` calls as a program of the official client libraries, at most COUNT times; with `read`
as TEXT it reads its task first."""
import json
import os
import re
import sys
import urllib.error
import urllib.request

env = os.environ
name = os.path.basename(sys.argv[0]).removesuffix(".py")
STREAM = {"stream": True}
MODELS = {"messages": "claude", "responses": "gpt", "chat": "gpt", "gemini": "flash"}


def codex():
    table = next(arg for arg in sys.argv if arg.startswith("model_providers.provost="))
    assert 'model_provider="provost"' in sys.argv and 'web_search="disabled"' in sys.argv
    url = re.search(r'base_url="([^"]+)"', table)[1]
    return "responses", url, env[re.search(r'env_key="([^"]+)"', table)[1]]


def claude():
    assert "ANTHROPIC_API_KEY" not in env
    return "messages", env["ANTHROPIC_BASE_URL"] + "/v1", env["ANTHROPIC_AUTH_TOKEN"]


def gemini():
    assert "GOOGLE_API_KEY" not in env and env["GEMINI_DEFAULT_AUTH_TYPE"] == "gemini-api-key"
    return "gemini", env["GOOGLE_GEMINI_BASE_URL"] + "/v1beta", env["GEMINI_API_KEY"]


def qwen():
    assert sys.argv[1:3] == ["--auth-type", "openai"], sys.argv
    return "chat", env["OPENAI_BASE_URL"], env["OPENAI_API_KEY"]


def opencode():
    with open(env["OPENCODE_CONFIG"]) as file:
        options = json.load(file)["provider"]["openai"]["options"]
    return "responses", options["baseURL"], options["apiKey"]


def aider():
    return "chat", env["OPENAI_API_BASE"], env["OPENAI_API_KEY"]


def client():
    wire = sys.argv[1]
    if wire == "messages":
        return wire, env["ANTHROPIC_BASE_URL"] + "/v1", env["ANTHROPIC_API_KEY"]
    if wire == "gemini":
        return wire, env["GOOGLE_GEMINI_BASE_URL"] + "/v1beta", env["GEMINI_API_KEY"]
    return wire, env["OPENAI_BASE_URL"], env["OPENAI_API_KEY"]


def ask(wire, url, key, text):
    model = MODELS[wire]
    messages = [{"role": "user", "content": text}]
    headers = {"content-type": "application/json", "authorization": "Bearer " + key}
    if wire == "messages":
        path, body = "/messages", {"model": model, "max_tokens": 200, "messages": messages, **STREAM}
    elif wire == "responses":
        path, body = "/responses", {"model": model, "max_output_tokens": 200, "input": messages, **STREAM}
    elif wire == "chat":
        path, body = "/chat/completions", {"model": model, "max_tokens": 200, "messages": messages, **STREAM}
    else:
        headers = {"content-type": "application/json", "x-goog-api-key": key}
        path = "/models/" + model + ":streamGenerateContent?alt=sse"
        contents = [{"role": "user", "parts": [{"text": text}]}]
        body = {"contents": contents, "generationConfig": {"maxOutputTokens": 200}}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request).read().decode()


def main():
    with open("/proc/self/environ") as file, open(name + ".environ", "w") as copy:
        copy.write(file.read())
    programs = {"codex": codex, "claude": claude, "gemini": gemini, "qwen": qwen, "opencode": opencode, "aider": aider}
    where = programs.get(name, client)()
    count = int(sys.argv[2]) if name not in programs else 1
    text = sys.argv[3] if len(sys.argv) > 3 and name not in programs else "hi"
    if text == "read":
        print("task: ", end="", flush=True)
        input()
    answered = 0
    try:
        for _ in range(count):
            assert "the answer" in ask(*where, text)
            answered += 1
    except urllib.error.HTTPError as error:
        print("refused:", error.code, error.read().decode())
    print("answered:", answered)
    sys.exit(0 if answered else 1)


main()
