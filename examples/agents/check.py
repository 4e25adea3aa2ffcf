#!/usr/bin/env python3
"""Runs external agents under Provost, against a provider on this machine, and checks the results.

    check.py --provost PROGRAM [--agents FOLDER] [--channel both|terminal|structured|auto] [--story NAME]
             [--results FILE] [--table FILE] [AGENT ...]

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


@contextlib.contextmanager
def provider(after_seconds):
    """A provider that answers from script.json; its address. It begins to listen after so many seconds."""
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
        args, variables = AGENTS[self.name][1](self.home, self.work, url)
        if not self.story.login:
            args, variables = without_login(self.name, self.home)
        elif not self.story.trusted:
            distrust(self.name, self.home, self.work)
        self.env.update(variables)
        os.makedirs(f"{self.home}/.config/provost")
        # The key of the scripted provider would lead the agent's calls to the real one by way of the gateway.
        own = f"[exec]\nunmetered = true\nenv = {json.dumps(list(variables))}\n{self.story.exec_settings}"
        with open(f"{self.home}/.config/provost/config.toml", "w", encoding="utf-8") as file:
            file.write(f"{self.story.settings}{own}{self.story.stop_hooks}")
        program = install(self.name, self.options.agents)
        command = ["exec", "--unattended", "--channel", self.channel, "--prompt", self.story.prompt, "--", program, *args]
        return self.attend(command)

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
    print(f"{name:10} {channel:10} {story_name:18} {'ok' if failure is None else 'FAILED'} {seconds:.0f} s", flush=True)
    if failure is None:
        shutil.rmtree(case.home, ignore_errors=True)
    else:
        print(f"    {failure}; see {case.home}\n{case.output()[-1500:]}", flush=True)
    return failure, seconds


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
                if is_wanted and name not in story.without and (channel in has or channel == "auto"):
                    yield name, channel, story_name


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="AGENT", default=list(AGENTS))
    options.add_argument("--provost", required=True)
    options.add_argument("--agents", default=os.path.join(tempfile.gettempdir(), "provost-agents"))
    options.add_argument("--channel", default="both", choices=["both", "terminal", "structured", "auto"])
    options.add_argument("--story", action="append", choices=list(STORIES), help="only this one; several times for several")
    options.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    options.add_argument("--results", help="a file that keeps the results; those of earlier runs stay in the table")
    options.add_argument("--table", help="the file for the table; standard output otherwise")
    options = options.parse_args()
    options.provost, options.agents = os.path.abspath(options.provost), os.path.abspath(options.agents)
    results = Results(options.results)
    for name in options.names:
        with tempfile.TemporaryDirectory() as home:
            results.has_version(name, version_of(install(name, options.agents), clean_env(home)))
    failures = 0

    def work(plan):
        return plan, check(options, *plan)

    with ThreadPoolExecutor(options.jobs) as pool:
        for plan, (failure, seconds) in pool.map(work, list(planned(options))):
            results.came(plan, failure, seconds)
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
