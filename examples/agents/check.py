#!/usr/bin/env python3
"""Runs external agents under Provost, against a provider on this machine, and checks the results.

    check.py --provost PROGRAM [--agents FOLDER] [--channel both|terminal|structured|auto] [--story NAME]
             [--gateway [--box]] [--keep] [--results FILE] [--table FILE] [AGENT ...]

Every agent is told every story (stories.py) on every channel that it has. Nothing of it may run on afterwards. The results
are a table in Markdown. See README.md.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from agents import AGENTS, install, without_login
from stories import STORIES, Failed, expect, version_of, wait_for_none
from table import Results

HERE = os.path.dirname(os.path.abspath(__file__))
ENDS_WITHIN_SECONDS = 5
STOPS_WITHIN_SECONDS = 30
# What follows the name of a channel in Provost's own list of profiles.
STREAMLESS = ["terminal"]

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


@contextlib.contextmanager
def provider(after_seconds):
    """A provider that answers from script.json; its address. It begins to listen after that number of seconds."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-B", f"{HERE}/provider.py", f"{HERE}/script.json", "--port", str(port)]
    children = []

    def start():
        children.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        children[0].stdout.readline()

    timer = threading.Timer(after_seconds, start)
    if after_seconds:
        timer.start()
    else:
        start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        timer.cancel()
        for child in children:
            child.kill()
            child.wait()


class Case:
    """One run of one agent in a home and a work folder of its own."""

    def __init__(self, options, name, channel, story):
        self.options, self.name, self.channel, self.story = options, name, channel, story
        self.home = tempfile.mkdtemp(prefix=f"provost-{name}-")
        self.work = f"{self.home}/work"
        self.env = clean_env(self.home)
        os.mkdir(self.work)
        for command in ("init --quiet", "config user.name nobody", "config user.email nobody@localhost"):
            subprocess.run(["git", *command.split()], cwd=self.work, env=self.env, check=True)
        self.answered = []
        self.was_killed = False
        self.child = None

    def run(self, url):
        """Has the agent do it; the exit status."""
        through = self.options.gateway or self.story.needs_gateway
        args, variables = AGENTS[self.name][1](self.home, self.work, None if through else url)
        if not self.story.login:
            args, variables = without_login(self.name, self.home)
        elif not self.story.trusted:
            distrust(self.name, self.home, self.work)
        self.env.update(variables)
        os.makedirs(f"{self.home}/.config/provost")
        with open(f"{self.home}/.config/provost/config.toml", "w", encoding="utf-8") as file:
            file.write(self.settings(list(variables), url if through else None))
        program = install(self.name, self.options.agents)
        money = ["--usd", self.story.usd] if through else []
        command = ["exec", "--unattended", "--channel", self.channel, *money, "--prompt", self.story.prompt, "--", program]
        return self.attend([*command, *args])

    def settings(self, variables, provider_of_gateway):
        """Provost's settings: what the story has, and the gateway to the provider, if the agent goes through it."""
        # Without it the key of the scripted provider would lead the agent's calls to the real one by way of the gateway.
        past = "" if provider_of_gateway else "unmetered = true\n"
        own = f"[exec]\n{past}env = {json.dumps(variables)}\n{self.story.exec_settings}"
        parts = [self.story.settings_for(self.name), own, self.story.stop_hooks]
        if provider_of_gateway:
            parts += [GATEWAY.format(url=provider_of_gateway), *(MODEL.format(name=name) for name in MODELS)]
        return "".join(parts) + (BOX if self.options.box else "")

    def resume(self):
        """Resumes the run; the exit status."""
        return self.attend(["resume", "last"])

    def attend(self, command):
        began = time.monotonic()
        with open(f"{self.home}/output.txt", "a", encoding="utf-8") as output:
            self.child = subprocess.Popen([self.options.provost, *command], cwd=self.work, env=self.env,
                                          stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            try:
                while self.child.poll() is None and time.monotonic() - began < self.story.limit:
                    self.story.during(self)
                    time.sleep(0.5)
            finally:
                self.child.terminate()
        try:
            return self.child.wait(STOPS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()

    def provost(self, *args):
        return subprocess.run([self.options.provost, *args], cwd=self.work, env=self.env, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)

    def answer_all(self, *answer):
        """Gives every open question this answer."""
        for line in self.provost("approvals", "--json").stdout.splitlines():
            question = json.loads(line)
            self.answered.append(line)
            self.provost(answer[0], question["id"], *answer[1:])

    def approve_all(self):
        self.answer_all("approve")

    def has(self, name):
        return os.path.exists(f"{self.work}/{name}")

    def was_told(self, prompt):
        """Whether the program was given the prompt."""
        return f"was told: {prompt}" in self.provost("logs", "last").stdout

    def left_running(self):
        return wait_for_none(self.home, ENDS_WITHIN_SECONDS)

    def output(self):
        with open(f"{self.home}/output.txt", encoding="utf-8", errors="replace") as output:
            return output.read()[-6000:]


def clean_env(home):
    node = os.path.dirname(shutil.which("node") or "/usr/bin/node")
    return {"HOME": home, "PATH": f"/usr/local/bin:/usr/bin:/bin:{node}", "LANG": "C.UTF-8", "TERM": "xterm-256color"}


def distrust(name, home, work):
    """Takes the trust in the work folder back, where the agent's settings have it."""
    if name == "codex":
        path = f"{home}/.codex/config.toml"
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.split(f'[projects."{work}"]')[0])
    elif name == "copilot":
        os.remove(f"{home}/.copilot/config.json")
    elif name in ("gemini", "qwen"):
        path = f"{home}/.{name}/settings.json"
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
        settings["security"]["folderTrust"] = {"enabled": True}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)


def check(options, name, channel, story_name):
    """What came of the story: a failure, or None; and how long it took."""
    story = STORIES[story_name]()
    began = time.monotonic()
    case = Case(options, name, channel, story)
    failure = None
    try:
        with provider(story.provider_after) as url:
            story.verify(case, case.run(url))
        left = case.left_running()
        expect(not left, "still running: " + "; ".join(left))
    except Failed as failed:
        failure = str(failed)
    seconds = time.monotonic() - began
    way = way_of(options, channel)
    print(f"{name:10} {way:10} {story_name:18} {'ok' if failure is None else 'FAILED'} {seconds:.0f} s", flush=True)
    if failure is None and options.keep:
        print(f"    see {case.home}", flush=True)
    elif failure is None:
        shutil.rmtree(case.home, ignore_errors=True)
    else:
        print(f"    {failure}; see {case.home}\n{case.output()[-1500:]}", flush=True)
    return failure, seconds


def way_of(options, channel):
    """The channel, and what else the results are told apart by."""
    return channel + (", gateway" if options.gateway else "") + (", sandbox" if options.box else "")


def channels_of(options, name):
    """The channels by which Provost drives the agent."""
    with tempfile.TemporaryDirectory() as home:
        listed = subprocess.run([options.provost, "profile", "list", "--json"], env=clean_env(home), check=True,
                                capture_output=True, text=True).stdout
    profiles = {profile["name"]: profile["channels"] for profile in map(json.loads, listed.splitlines())}
    streams = [channel for channel in profiles.get(name, STREAMLESS) if channel not in STREAMLESS]
    return ["terminal", "structured"] if streams else STREAMLESS


def planned(options):
    """What is to be checked: (agent, channel, story)."""
    for name in options.names:
        has = channels_of(options, name)
        wanted = has if options.channel == "both" else [options.channel]
        for channel in wanted:
            for story_name, story in STORIES.items():
                is_wanted = not options.story or story_name in options.story
                fits = story().fits(name, options.gateway, options.box)
                if is_wanted and fits and (channel in has or channel == "auto"):
                    yield name, channel, story_name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="AGENT", default=list(AGENTS))
    parser.add_argument("--provost", required=True)
    parser.add_argument("--agents", default=os.path.join(tempfile.gettempdir(), "provost-agents"))
    parser.add_argument("--channel", default="both", choices=["both", "terminal", "structured", "auto"])
    parser.add_argument("--story", action="append", choices=list(STORIES), help="only this one; several times for several")
    parser.add_argument("--gateway", action="store_true", help="through the model gateway, with a limit of money")
    parser.add_argument("--box", action="store_true", help="in the sandbox, which needs --gateway")
    parser.add_argument("--keep", action="store_true", help="keep the folders of what went well, too")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--results", help="a file that keeps the results; those of earlier runs stay in the table")
    parser.add_argument("--table", help="the file for the table; standard output otherwise")
    options = parser.parse_args()
    if options.box and not options.gateway:
        parser.error("--box needs --gateway: without a network the gateway is all that is reached")
    if options.box and f"{os.path.realpath(tempfile.gettempdir())}/".startswith("/tmp/"):
        parser.error("--box needs TMPDIR elsewhere than below /tmp: the sandbox has a /tmp of its own")
    options.provost, options.agents = os.path.abspath(options.provost), os.path.abspath(options.agents)
    results = Results(options.results)
    for name in options.names:
        with tempfile.TemporaryDirectory() as home:
            results.has_version(name, version_of(name, install(name, options.agents), clean_env(home)))
    failures = 0

    def work(plan):
        return plan, check(options, *plan)

    with ThreadPoolExecutor(options.jobs) as pool:
        for plan, (failure, seconds) in pool.map(work, list(planned(options))):
            name, channel, story_name = plan
            results.came((name, way_of(options, channel), story_name), failure, seconds)
            failures += failure is not None
    table = results.table(STORIES)
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write(table)
    else:
        print(f"\n{table}")
    print(f"{failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
