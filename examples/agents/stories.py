"""What agents are told under Provost, and what must come of it."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time

from agents import AGENTS, OF_PYTHON, PAST_BOX, PAST_GATEWAY

# What one call of the story about the budget takes, at the price of check.py's models.
CALL_MICRO_USD = 20_050 * 10
PACKAGE_VERSION = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
# Without its own sandbox, as in Provost's, Codex asks for no consent.
ASK_NOTHING_IN_BOX = ("codex",)


class Failed(Exception):
    """What was expected didn't happen."""


def expect(is_so, words):
    if not is_so:
        raise Failed(words)


class Story:
    """What an agent is told, and what must come of it. `name` and the first line of the documentation are shown."""

    prompt = ""
    # Provost's settings: tables, more lines of [exec], stop hooks.
    settings = ""
    exec_settings = ""
    stop_hooks = ""
    # Seconds after which the run is told to stop.
    limit = 240
    # What the agent is set up with: a login, trust in its folder.
    login = True
    trusted = True
    # Seconds after which the provider begins to listen.
    provider_after = 0
    # The limit of money where it goes through the gateway, in dollars.
    usd = "20"
    # Whether it always goes through the gateway, or never; whether it is told in the sandbox alone.
    needs_gateway = False
    without_gateway = False
    needs_box = False
    # The agents that have nothing of the kind.
    without = ()
    # The agents that aren't told it in the sandbox.
    without_in_box = ()

    def fits(self, name, gateway, box):
        """Whether the agent is told it, with these options."""
        if (self.needs_box and not box) or (self.without_gateway and gateway):
            return False
        past = PAST_GATEWAY if gateway or self.needs_gateway else ()
        return name not in (*self.without, *past, *((*PAST_BOX, *self.without_in_box) if box else ()))

    def settings_for(self, _name):
        """The tables of settings for the agent."""
        return self.settings

    def during(self, case):
        """Called twice a second while it runs."""
        case.approve_all()

    def verify(self, case, status):
        expect(status == 0, f"its exit status is {status}, not 0")


class Approved(Story):
    """A command that a person approves is run once it is approved."""

    prompt = "create the proof file"
    settings = '[permissions]\nask = ["shell"]\n'
    without = ("pi",)

    def verify(self, case, status):
        expect(case.has("proof.txt"), "what was approved has no effect")
        # aider's dialog doesn't say beyond doubt what it is about: it is put to a person as it is.
        named = any("proof.txt" in line or case.name == "aider" for line in case.answered)
        asks_nothing = case.options.box and case.name in ASK_NOTHING_IN_BOX
        expect(named or asks_nothing, "no question named proof.txt")
        super().verify(case, status)


class StopHook(Story):
    """A stop hook sends it back for more."""

    prompt = "create the proof file"
    settings = '[permissions]\nallow = ["shell"]\n'
    stop_hooks = """
[[stop_hooks]]
name = "second"
command = "test -e second.txt || { echo 'Now create the second file.' >&2; exit 2; }"
"""

    def verify(self, case, status):
        expect(case.has("second.txt"), "the stop hook didn't send it back")
        super().verify(case, status)


class Denied(Story):
    """What a rule denies isn't done, and no one is asked."""

    prompt = "create the forbidden file"
    without = ("pi",)
    without_in_box = ASK_NOTHING_IN_BOX

    def settings_for(self, name):
        # aider's question doesn't name the command.
        denied = ["shell(touch forbidden.txt)"] + (["consent"] if name == "aider" else [])
        return f"[permissions]\ndeny = {json.dumps(denied)}\n"

    def verify(self, case, status):
        expect(not case.has("forbidden.txt"), "what was denied was done")
        expect(not any("forbidden.txt" in line for line in case.answered), "it was asked about, not denied")
        super().verify(case, status)


class DeniedWithReason(Story):
    """A person's reason for a denial reaches the model."""

    prompt = "create the forbidden file"
    settings = '[permissions]\nask = ["shell"]\n'
    without = ("pi",)
    without_in_box = ASK_NOTHING_IN_BOX

    def during(self, case):
        case.answer_all("deny", "take the other way")

    def verify(self, case, status):
        expect(not case.has("forbidden.txt"), "what was denied was done")
        expect("I take the other way" in case.output(), "its model wasn't told the reason")
        super().verify(case, status)


class SilentCommand(Story):
    """A command without output for 45 s isn't ended."""

    prompt = "run the silent command"
    # Cline itself ends a command after 30 s, and its model is told nothing of that.
    without = ("cline",)
    settings = '[permissions]\nask = ["shell"]\n'

    def verify(self, case, status):
        expect(case.has("slept.txt"), "it was ended while its command ran")
        super().verify(case, status)


class SilentModel(Story):
    """A model that says nothing for 30 s is waited for."""

    prompt = "think in silence"

    def verify(self, case, status):
        expect("This took long" in case.output(), "it was ended before its model answered")
        super().verify(case, status)


class RefusedKey(Story):
    """A refused key (401) suspends the run."""

    prompt = "use the wrong key"

    def verify(self, case, status):
        expect(status != 0, "it counts as completed")
        named = ("Incorrect API key", "Invalid API key", "Authentication failed")
        expect(any(words in case.output() for words in named), "the failure isn't named")


class BrokenProvider(Story):
    """A provider that answers 500 isn't an end of the task."""

    prompt = "meet a broken provider"
    limit = 75

    def verify(self, case, status):
        expect(status != 0, "it counts as completed")


class RateLimit(BrokenProvider):
    """A provider that answers 429 isn't an end of the task."""

    prompt = "meet a limit"


class ProviderDown(Story):
    """A provider that can't be reached for 20 s is waited for."""

    prompt = "create the proof file"
    settings = '[permissions]\nallow = ["shell"]\n'
    provider_after = 20

    def verify(self, case, status):
        expect(case.has("proof.txt"), "the task wasn't done")
        super().verify(case, status)


class SignIn(Story):
    """A task isn't typed into a sign-in, and isn't completed without one."""

    prompt = "create the proof file"
    settings = '[permissions]\nallow = ["shell"]\n'
    exec_settings = 'idle_time = "20s"\n'
    login = False
    limit = 90
    without = ("opencode", "aider", "pi", "copilot", "cline", "vibe")
    without_gateway = True

    def verify(self, case, status):
        expect(status != 0, "it counts as completed")
        expect(not case.was_told(self.prompt), "the task was typed into the sign-in")


class FreshFolder(Story):
    """A folder that it doesn't know is trusted by rule."""

    prompt = "create the proof file"
    settings = '[permissions]\nallow = ["shell", "trust_folder"]\n'
    trusted = False

    def verify(self, case, status):
        expect(case.has("proof.txt"), "the task wasn't done")
        super().verify(case, status)


class KilledAndResumed(Story):
    """After kill -9 nothing of it is left; resume goes on, or tells the task again and says so."""

    prompt = "run the command that is interrupted"
    settings = '[permissions]\nallow = ["shell"]\n'

    def during(self, case):
        super().during(case)
        if case.has("begun.txt") and not case.was_killed:
            case.was_killed = True
            case.child.send_signal(signal.SIGKILL)

    def verify(self, case, status):
        expect(case.was_killed, "the command wasn't begun")
        left = case.left_running()
        expect(not left, "still running after the kill: " + "; ".join(left))
        expect(not case.has("ended.txt"), "the command went on by itself")
        super().verify(case, case.resume())
        # Some agents keep nothing of a session before its first answer.
        ways = ("I went on", "You may have been told this before")
        expect(any(words in case.output() for words in ways), "it wasn't told to go on")


class Budget(Story):
    """A limit of money ends it, and is passed by one call at most."""

    prompt = "work without an end"
    settings = '[permissions]\nallow = ["shell"]\n'
    stop_hooks = """
[[stop_hooks]]
name = "never"
command = "echo 'Go on: work without an end.' >&2; exit 2"
"""
    usd = "0.5"
    needs_gateway = True

    def verify(self, case, status):
        expect(status == 3, f"its exit status is {status}, not 3")
        cost = json.loads(case.provost("cost", "last", "--json").stdout)["total"]["cost_micro_usd"]
        limit = float(self.usd) * 1_000_000
        expect(CALL_MICRO_USD <= cost <= limit + CALL_MICRO_USD, f"{cost} millionths of a dollar were charged")
        expect("budget" in case.output(), "the limit isn't named")


class Confined(Story):
    """What it writes outside of the workspace is denied by the sandbox."""

    prompt = "write outside"
    settings = '[permissions]\nallow = ["shell"]\n'
    needs_box = True

    def verify(self, case, status):
        expect(not os.path.exists(f"{case.home}/outside.txt"), "the sandbox doesn't hold")
        expect(case.has("inside.txt"), "it wasn't tried")
        super().verify(case, status)


STORIES = {
    "approved": Approved,
    "stop_hook": StopHook,
    "denied": Denied,
    "denied_with_reason": DeniedWithReason,
    "silent_command": SilentCommand,
    "silent_model": SilentModel,
    "refused_key": RefusedKey,
    "broken_provider": BrokenProvider,
    "rate_limit": RateLimit,
    "provider_down": ProviderDown,
    "sign_in": SignIn,
    "fresh_folder": FreshFolder,
    "killed_and_resumed": KilledAndResumed,
    "budget": Budget,
    "confined": Confined,
}


def processes(home):
    """Processes that were started in this home folder and still run."""
    mark = f"HOME={home}\0".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as command:
                if mark in environ.read() + b"\0":
                    yield f"{pid} {command.read().replace(bytes(1), b' ').decode(errors='replace')}"


def wait_for_none(home, seconds):
    """The processes of this home folder that are left after `seconds` at most."""
    deadline = time.monotonic() + seconds
    while (left := list(processes(home))) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def version_of(name, program, env):
    """What the program says of its version, or the package that it is of, if that is one of Python."""
    python = [os.path.join(os.path.dirname(program), "python"), "-c", PACKAGE_VERSION, AGENTS[name][0]]
    asked = python if name in OF_PYTHON else [program, "--version"]
    told = subprocess.run(asked, env=env, capture_output=True, text=True, check=False, timeout=300)
    found = re.search(r"\d+(\.\d+)+", told.stdout or told.stderr)
    return found.group() if found else "unknown"
