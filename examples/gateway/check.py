#!/usr/bin/env python3
"""Runs calls.py with each client library under `provost gateway`, and checks the results: see README.md."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
AGENTS = os.path.join(HERE, "..", "agents")
LIBRARIES = ["openai-chat", "openai-responses", "anthropic", "google-genai"]
KEY = "sk-canary-0123456789abcdef0123456789"
LIMIT_USD = "0.01"
# What one call takes: 100 and 20 tokens, each for ten millionths of a dollar.
CALL_MICRO_USD = 1_200

SCRIPT = [{"when": "say a word", "steps": [{"say": "A word.", "first": 0, "pace": 0}]}]
SETTINGS = """
[gateway]
anthropic = "sa"
openai = "so"
gemini = "sg"
"""
PROVIDER = """
[providers.{name}]
wire = "{wire}"
base_url = "{url}"
api_key_env = "SCRIPTED_KEY"
[models."{name}/scripted"]
window_tokens = 200_000
output_tokens_max = 4_000
input_usd = 10
output_usd = 10
"""


def settings(url):
    wires = [("sa", "anthropic", ""), ("so", "openai-responses", "/v1"), ("sg", "gemini", "")]
    return SETTINGS + "".join(PROVIDER.format(name=name, wire=wire, url=url + path) for name, wire, path in wires)


def check(options, url, log, library, *mode):
    """Why it didn't go as it should; None if it did."""
    home = tempfile.mkdtemp(prefix="provost-gateway-")
    os.makedirs(f"{home}/.config/provost")
    with open(f"{home}/.config/provost/config.toml", "w", encoding="utf-8") as file:
        file.write(settings(url))
    env = {"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "SCRIPTED_KEY": KEY}
    before = calls(log)

    def provost(*args):
        return subprocess.run([options.provost, *args], cwd=home, env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False)

    ran = provost("gateway", "--usd", LIMIT_USD, "--", options.python, f"{HERE}/calls.py", library, *mode)
    print(f"{library} {' '.join(mode)}: exit status {ran.returncode}\n    {ran.stdout.strip()}", flush=True)
    cost = json.loads(provost("cost", "last", "--json").stdout)["total"]["cost_micro_usd"]
    passed = calls(log) - before
    limit = float(LIMIT_USD) * 1_000_000
    for is_so, words in [
        (ran.returncode == 3, f"the exit status is {ran.returncode}: {ran.stderr}"),
        ("400" in ran.stdout and "Provost: the budget is used up" in ran.stdout, "the library doesn't say why"),
        (f"answered {passed};" in ran.stdout and passed > 0, f"the provider was called {passed} times"),
        (cost == passed * CALL_MICRO_USD, f"{cost} millionths were charged for {passed} calls"),
        (cost <= limit + CALL_MICRO_USD, f"{cost} millionths are above the limit"),
    ]:
        if not is_so:
            return words
    return None


def calls(log):
    with open(log, encoding="utf-8") as lines:
        return sum(1 for _ in lines)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("libraries", nargs="*", metavar="LIBRARY", default=LIBRARIES)
    options.add_argument("--provost", required=True)
    options.add_argument("--python", required=True, help="a python with the libraries")
    options = options.parse_args()
    options.provost = os.path.abspath(options.provost)
    folder = tempfile.mkdtemp(prefix="provost-gateway-")
    script, log = f"{folder}/script.json", f"{folder}/log.jsonl"
    with open(script, "w", encoding="utf-8") as file:
        json.dump(SCRIPT, file)
    open(log, "w", encoding="utf-8").close()
    command = [sys.executable, "-B", f"{AGENTS}/provider.py", script, "--log", log]
    provider = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = provider.stdout.readline().strip()
        failures = []
        for library in options.libraries:
            for mode in ([], ["stream"]):
                failure = check(options, url, log, library, *mode)
                failures += [failure] if failure else []
                print("    ok" if failure is None else f"    FAILED: {failure}", flush=True)
    finally:
        provider.kill()
        provider.wait()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
