#!/usr/bin/env python3
"""Runs that go on from workers of one build to those of another: does any of them do something twice, or lose anything?

Usage: dev/upgrade.py OLD NEW [--runs N] [--turns N] [--keep]
(two `provost` programs; 12, 40 unless given). Workers of OLD begin the runs; those of NEW start beside them, as docs/cluster.md says, and
those of OLD are told to end while the runs work. The engine's server, `restate-server`, must be on PATH
(`cargo xtask restate-server` installs it into target/tools/restate). Takes some two minutes.
"""
import argparse, collections, json, os, shutil, signal, socket, subprocess, tempfile, time, urllib.request

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("old")
OPTIONS.add_argument("new")
OPTIONS.add_argument("--runs", type=int, default=12)
OPTIONS.add_argument("--turns", type=int, default=40, help="turns of each run; a turn is a model call and a tool call")
OPTIONS.add_argument("--keep", action="store_true", help="keep the folder with the logs")
OPTIONS = OPTIONS.parse_args()
OLD, NEW = os.path.realpath(OPTIONS.old), os.path.realpath(OPTIONS.new)
FOLDER = tempfile.mkdtemp(prefix="upgrade.")
ENV = {**os.environ, "HOME": FOLDER, "PROVOST_STATE_DIR": f"{FOLDER}/state", "PROVOST_ENGINE_URL": "local"}
# How long a model and a tool take, and how long anything is waited for.
TAKES_S, WITHIN_S = 0.4, 300


def provost(program, *args, cwd=FOLDER):
    done = subprocess.run([program, *args], cwd=cwd, env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, (args, done.stdout[-1000:], done.stderr[-3000:])
    return done.stdout


def until(what, is_so):
    end = time.time() + WITHIN_S
    while not is_so():
        assert time.time() < end, f"waited in vain: {what}"
        time.sleep(0.2)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Worker:
    def __init__(self, program, name, shared):
        listen, health = free_port(), free_port()
        self.name, self.log, self.health = name, f"{FOLDER}/{name}.log", f"http://127.0.0.1:{health}/ready"
        addresses = ["--listen", f"127.0.0.1:{listen}", "--health", f"127.0.0.1:{health}", "--shared", f"127.0.0.1:{shared}"]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([program, "worker", "--name", name, *addresses], cwd=FOLDER, env=ENV, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(f"{name} is ready", self.is_ready)

    def is_ready(self):
        assert self.process.poll() is None, open(self.log).read()
        try:
            return urllib.request.urlopen(self.health).status == 200
        except OSError:
            return False

    def end(self):
        began = time.time()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(WITHIN_S) == 0, open(self.log).read()
        return time.time() - began

    def taken(self):
        return open(self.log).read().count(": taken")


def start(program, name):
    """Starts a run in a folder of its own, in which each of its tool calls writes a line; returns its id and the folder."""
    folder = f"{FOLDER}/{name}"
    os.makedirs(folder)
    with open(f"{folder}/provost.toml", "w") as settings:
        settings.write(f'[agent]\nmodel = "script:agent.yaml"\nmax_turns = {OPTIONS.turns + 10}\nstuck_turns = 0\n')
    with open(f"{folder}/agent.yaml", "w") as script:
        calls = (f'  - tools: [{{ shell: {{ command: "echo {turn} >> lines; sleep {TAKES_S}" }} }}]\n' for turn in range(OPTIONS.turns))
        script.write(f"delay_ms: {int(TAKES_S * 1000)}\nanswers:\n{''.join(calls)}  - text: 'VERDICT: PASS'\n")
    return provost(program, "run", "--detach", "Work.", cwd=folder).strip(), folder


def lines(folder):
    return open(f"{folder}/lines").read().split() if os.path.exists(f"{folder}/lines") else []


def over():
    """How many runs have an outcome."""
    return sum(json.loads(line).get("outcome") is not None for line in provost(NEW, "ps", "--all", "--json").splitlines())


def check(runs):
    """What the logs, and the files that the tools write, say of the runs."""
    counts, twice = collections.Counter(), 0
    for run, folder in runs:
        twice += len(lines(folder)) - len(set(lines(folder)))
        log = [json.loads(line) for line in provost(NEW, "logs", run, "--json").splitlines()]
        counts.update(entry["type"] for entry in log)
        counts.update(f"tool call: {entry['status']}" for entry in log if entry["type"] == "tool_finished")
        ends = [entry for entry in log if entry["type"] == "ended"]
        assert [entry["outcome"]["kind"] for entry in ends] == ["completed"] * 2, (run, ends)
    calls = len(runs) * OPTIONS.turns
    print(f"{len(runs)} runs completed: {counts['model_called']} model calls with {counts['assistant_message']} answers, {counts['tool_finished']} tool calls, of them {counts['tool call: unknown']} with unknown effect; {twice} done twice")
    assert counts["tool call: ok"] == counts["tool_finished"] == calls == sum(len(lines(folder)) for _, folder in runs), counts
    assert counts["model_called"] == counts["assistant_message"] == calls + len(runs), counts


WORKERS = []
try:
    os.makedirs(f"{FOLDER}/.config/provost")
    with open(f"{FOLDER}/.config/provost/config.toml", "w") as settings:
        settings.write('[permissions]\nallow = ["shell"]\n')
    provost(OLD, "cluster", "up", "--nodes", "1", "--workers", "0")
    shared = free_port()
    WORKERS += [Worker(OLD, f"old-{number}", shared) for number in (1, 2)]
    runs = [start(OLD, f"run-{number}") for number in range(OPTIONS.runs)]
    until("the runs work", lambda: all(len(lines(folder)) > 2 for _, folder in runs))
    shared = free_port()
    WORKERS += [Worker(NEW, f"new-{number}", shared) for number in (1, 2)]
    # The new build decides for runs of the old one's workers for a while.
    before = {folder: len(lines(folder)) for _, folder in runs}
    until("the runs go on", lambda: all(len(lines(folder)) > before[folder] + 3 for _, folder in runs))
    for worker in WORKERS[:2]:
        print(f"{worker.name} took {worker.taken()} runs and ended {worker.end():.1f} s after it was told to", flush=True)
    assert over() == 0, "runs were over before: take more --turns"
    runs += [start(NEW, f"more-{number}") for number in (1, 2)]
    until("the runs end", lambda: over() == len(runs))
    assert sum(worker.taken() for worker in WORKERS[2:]) >= len(runs)
    check(runs)
    for worker in WORKERS[2:]:
        worker.end()
finally:
    for worker in WORKERS:
        if worker.process.poll() is None:
            worker.process.kill()
    subprocess.run([NEW, "cluster", "down", "--remove"], cwd=FOLDER, env=ENV, stdout=subprocess.DEVNULL)
    if OPTIONS.keep:
        print(f"kept: {FOLDER}")
    else:
        shutil.rmtree(FOLDER, ignore_errors=True)
