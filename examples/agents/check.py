#!/usr/bin/env python3
"""Runs external agents under Provost, against a provider on this machine, and checks the results.

    check.py --provost PROGRAM [--agents FOLDER] [--channel auto|terminal|structured] [--gateway] [--box] [AGENT ...]

Each agent is told something twice: once what it asks for is approved and a stop hook sends it back for more, and once it
is denied. Nothing of it may run on afterwards. See README.md.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from agents import AGENTS, install

HERE = os.path.dirname(os.path.abspath(__file__))
WALL_TIME = "4m"
ENDS_WITHIN_SECONDS = 5

STOP_HOOK = """
[[stop_hooks]]
name = "second"
command = "test -e second.txt || { echo 'Now create the second file.' >&2; exit 2; }"
"""


ENDLESS = """
[[stop_hooks]]
name = "never"
command = "echo 'Go on: work without an end.' >&2; exit 2"
"""

# All wire formats of the gateway go to the provider of this test; a token costs a hundred-thousandth of a dollar.
GATEWAY = """
[gateway]
openai = "so"
gemini = "sg"
[providers.so]
wire = "openai-responses"
base_url = "{url}/v1"
[providers.sg]
wire = "gemini"
base_url = "{url}"
"""
MODEL = """
[models."{name}"]
window_tokens = 200_000
output_tokens_max = 4_000
input_usd = 10
output_usd = 10
"""
MODELS = ["so/scripted"] + [f"sg/gemini-{name}" for name in
                            ("2.5-flash", "2.5-flash-lite", "2.5-pro", "3-flash-preview", "3-pro-preview")]
BOX = """
[sandbox]
mode = "workspace"
network = "none"
"""

# The agents whose profiles say how they are pointed to the gateway.
THROUGH = ["codex", "gemini", "qwen", "opencode", "aider"]

# What the story about the budget may take, and what one call of it takes, in millionths of a dollar.
BUDGET_USD = "0.5"
CALL_MICRO_USD = 20_050 * 10


class Failed(Exception):
    """What was expected didn't happen."""


def expect(is_so, words):
    if not is_so:
        raise Failed(words)


@contextlib.contextmanager
def provider():
    """A provider that answers from script.json; its address."""
    command = [sys.executable, "-B", f"{HERE}/provider.py", f"{HERE}/script.json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield child.stdout.readline().strip()
    finally:
        child.kill()
        child.wait()


class Case:
    """One run of one agent in a home and a work folder of its own."""

    def __init__(self, options, name, settings):
        self.options, self.name = options, name
        self.home = tempfile.mkdtemp(prefix=f"provost-{name}-")
        self.work = f"{self.home}/work"
        self.env = {
            "HOME": self.home,
            "PATH": "/usr/local/bin:/usr/bin:/bin:" + os.path.dirname(shutil.which("node") or "/usr/bin/node"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        os.mkdir(self.work)
        for command in ("init --quiet", "config user.name nobody", "config user.email nobody@localhost"):
            subprocess.run(["git", *command.split()], cwd=self.work, env=self.env, check=True)
        self.program = install(name, options.agents)
        self.settings = settings
        self.setup = AGENTS[name][1]
        self.answered = []
        self.usd = "20"
        self.needs_gateway = False

    def run(self, prompt, url):
        """Has the agent do it, and approves all that it asks for; the exit status."""
        through = self.options.gateway or self.needs_gateway
        args, variables = self.setup(self.home, self.work, None if through else url)
        self.env.update(variables)
        os.makedirs(f"{self.home}/.config/provost")
        with open(f"{self.home}/.config/provost/config.toml", "w", encoding="utf-8") as settings:
            settings.write(f"[exec]\nenv = {json.dumps(list(variables))}\n{self.settings}")
            if through:
                settings.write(GATEWAY.format(url=url) + "".join(MODEL.format(name=name) for name in MODELS))
            if self.options.box:
                settings.write(BOX)
        command = ["exec", "--unattended", "--channel", self.options.channel, "--wall-time", WALL_TIME]
        command += ["--usd", self.usd] if through else []
        command += ["--prompt", prompt, "--", self.program, *args]
        with open(f"{self.home}/output.txt", "w", encoding="utf-8") as output:
            child = subprocess.Popen([self.options.provost, *command], cwd=self.work, env=self.env,
                                     stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            try:
                while child.poll() is None:
                    self.approve_all()
                    time.sleep(0.5)
            finally:
                child.terminate()
        return child.wait()

    def provost(self, *args):
        return subprocess.run([self.options.provost, *args], cwd=self.work, env=self.env, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)

    def approve_all(self):
        for line in self.provost("approvals", "--json").stdout.splitlines():
            question = json.loads(line)
            self.answered.append(line)
            self.provost("approve", question["id"])

    def asks_nothing(self):
        """Codex without its own sandbox asks for no consent; the box confines it."""
        return self.options.box and self.name == "codex"

    def has(self, name):
        return os.path.exists(f"{self.work}/{name}")

    def left_running(self):
        """Processes that were started in this home and still run."""
        deadline = time.monotonic() + ENDS_WITHIN_SECONDS
        while (left := list(processes(self.home))) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def output(self):
        with open(f"{self.home}/output.txt", encoding="utf-8", errors="replace") as output:
            return output.read()[-3000:]


def processes(home):
    mark = f"HOME={home}\0".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as command:
                if mark in environ.read() + b"\0":
                    yield f"{pid} {command.read().replace(bytes(1), b' ').decode(errors='replace')}"


def approved(case, status):
    expect(case.has("proof.txt"), "what was approved has no effect")
    # aider's dialog doesn't say beyond doubt what it is about: it is put to a person as it is.
    named = any("proof.txt" in line or case.name == "aider" for line in case.answered)
    expect(named or case.asks_nothing(), "no question named proof.txt")
    expect(case.has("second.txt"), "the stop hook didn't send it back")
    expect(status == 0, f"its exit status is {status}, not 0")


def denied(case, status):
    expect(not case.has("forbidden.txt"), "what was denied was done")
    expect(not any("forbidden.txt" in line for line in case.answered), "it was asked about, not denied")
    expect(status == 0, f"its exit status is {status}, not 0")


def confined(case, status):
    expect(not os.path.exists(f"{case.home}/outside.txt"), "the sandbox doesn't hold")
    expect(status == 0, f"its exit status is {status}, not 0")


def silent_command(case, status):
    expect(case.has("slept.txt"), "it was ended while its command ran")
    expect(status == 0, f"its exit status is {status}, not 0")


def silent_model(case, status):
    expect("This took long" in case.output(), "it was ended before its model answered")
    expect(status == 0, f"its exit status is {status}, not 0")


def refused_key(case, status):
    expect(status != 0, "it counts as completed")
    expect("Incorrect API key" in case.output(), "the failure isn't named")


def budget(case, status):
    expect(status == 3, f"its exit status is {status}, not 3")
    cost = json.loads(case.provost("cost", "last", "--json").stdout)["total"]["cost_micro_usd"]
    limit = float(BUDGET_USD) * 1_000_000
    expect(CALL_MICRO_USD <= cost <= limit + CALL_MICRO_USD, f"{cost} millionths were charged")
    expect("budget" in case.output(), "the limit isn't named")


def broken_provider(case, status):
    expect(status != 0, "it counts as completed")


# What is checked, the settings for it, and what the agent is told.
STORIES = [
    (approved, f'[permissions]\nask = ["shell"]\n{STOP_HOOK}', "create the proof file"),
    (silent_command, '[permissions]\nask = ["shell"]\n', "run the silent command"),
    (silent_model, "", "think in silence"),
    (refused_key, "", "use the wrong key"),
    (broken_provider, "", "meet a broken provider"),
    (broken_provider, "", "meet a limit"),
    (budget, f'[permissions]\nallow = ["shell"]\n{ENDLESS}', "work without an end"),
    (confined, '[permissions]\nallow = ["shell"]\n', "write outside"),
    (denied, '[permissions]\ndeny = ["shell(touch forbidden.txt)", "consent"]\n', "create the forbidden file"),
]


def check(options, name, story, url):
    """Whether the story went as it should; says so."""
    verify, settings, prompt = story
    began = time.monotonic()
    case = Case(options, name, settings)
    if verify is budget:
        case.usd, case.needs_gateway = BUDGET_USD, True
    failure = None
    try:
        verify(case, case.run(prompt, url))
        left = case.left_running()
        expect(not left, "still running: " + "; ".join(left))
    except Failed as failed:
        failure = failed
    seconds = time.monotonic() - began
    print(f"{name:10} {verify.__name__:10} {'ok' if failure is None else 'FAILED'} {seconds:.0f} s", flush=True)
    if failure is None and options.keep:
        print(f"    see {case.home}", flush=True)
    elif failure is None:
        shutil.rmtree(case.home, ignore_errors=True)
    else:
        print(f"    {failure}; see {case.home}\n{case.output()}", flush=True)
    return failure is None


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="AGENT", default=list(AGENTS))
    options.add_argument("--provost", required=True)
    options.add_argument("--agents", default=os.path.join(tempfile.gettempdir(), "provost-agents"))
    options.add_argument("--channel", default="terminal")
    options.add_argument("--gateway", action="store_true", help="through the model gateway, with a limit of money")
    options.add_argument("--box", action="store_true", help="in the sandbox, which needs --gateway")
    options.add_argument("--keep", action="store_true", help="keep the folders of what went well, too")
    options.add_argument("--story", action="append", help="only this story, by its name; several times for several")
    options = options.parse_args()
    options.provost = os.path.abspath(options.provost)
    with provider() as url:
        wanted = [story for story in STORIES if not options.story or story[0].__name__ in options.story]
        stories = [(name, story) for name in options.names for story in wanted
                   if (name in THROUGH or not (options.gateway or story[0] is budget))
                   and (options.box or story[0] is not confined)
                   and not (options.box and name == "codex" and story[0] is denied)]
        results = [check(options, name, story, url) for name, story in stories]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
