#!/usr/bin/env python3
"""What it costs to watch: `provost top` over 200 runs, and the live view of `provost run`, in pairs with --quiet.

Usage: bench/watching.py [PROVOST] [--runs N] [--pairs N] [--idle SECONDS]   (target/release/provost, 200, 10, 20 unless given)
"""
import argparse, fcntl, os, pty, select, shutil, statistics, struct, subprocess, tempfile, termios, time

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("provost", nargs="?", default="target/release/provost")
OPTIONS.add_argument("--runs", type=int, default=200)
OPTIONS.add_argument("--pairs", type=int, default=10)
OPTIONS.add_argument("--idle", type=int, default=20)
OPTIONS = OPTIONS.parse_args()
PROVOST = os.path.realpath(OPTIONS.provost)
TICKS = os.sysconf("SC_CLK_TCK")
RUNS, TURNS, PAIRS, IDLE_S, KEYS = OPTIONS.runs, 100, OPTIONS.pairs, OPTIONS.idle, 200


def at_terminal(args, cwd, env, rows=50, columns=200):
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.chdir(cwd)
        os.execve(PROVOST, [PROVOST, *args], env)
    return pid, terminal


def read(terminal, seconds):
    """What is shown until nothing comes for so long; None at the end."""
    shown = b""
    while select.select([terminal], [], [], seconds)[0]:
        try:
            more = os.read(terminal, 65536)
        except OSError:
            return None
        if not more:
            return None
        shown += more
        # The terminal says where the cursor is.
        if b"\x1b[6n" in more:
            os.write(terminal, b"\x1b[1;10R")
    return shown


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def switches(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        for line in open(f"/proc/{pid}/task/{task}/status"):
            if "ctxt_switches" in line:
                total += int(line.split()[1])
    return total


def top(folder, env):
    with open(f"{folder}/one.yaml", "w") as script:
        script.write("answers: [{ text: 'VERDICT: FAIL' }]\n")
    for number in range(RUNS):
        subprocess.run([PROVOST, "run", "-q", "--model", "script:one.yaml", f"goal {number}"], cwd=folder, env=env, capture_output=True)
    began = time.monotonic()
    pid, terminal = at_terminal(["top"], folder, env)
    read(terminal, 0.5)
    print(f"top, {RUNS} runs: first complete screen after {time.monotonic() - began - 0.5:.2f} s, {cpu(pid) * 1000:.0f} ms CPU")
    before, woken, began = cpu(pid), switches(pid), time.monotonic()
    while time.monotonic() - began < IDLE_S:
        read(terminal, 0.5)
    print(f"  idle for {IDLE_S} s: {(cpu(pid) - before) * 1000:.0f} ms CPU ({(cpu(pid) - before) / IDLE_S:.2%}), {(switches(pid) - woken) / IDLE_S:.1f} wake-ups a second")
    before, began = cpu(pid), time.monotonic()
    for number in range(KEYS):
        os.write(terminal, b"j" if number % 2 == 0 else b"k")
        read(terminal, 0.01)
    print(f"  a key and its frame: {(cpu(pid) - before) / KEYS * 1000:.2f} ms CPU")
    os.write(terminal, b"q")
    while read(terminal, 0.5) is not None:
        pass
    os.waitpid(pid, 0)


def live(folder, env):
    with open(f"{folder}/turns.yaml", "w") as script:
        script.write("answers:\n")
        for number in range(TURNS):
            script.write(f"  - text: I look at number {number}, and say a little about it.\n    tools: [{{ read_file: {{ path: one.yaml, offset: 1, limit: {number + 1} }} }}]\n")
        script.write("  - text: 'VERDICT: PASS'\n")
    took = {"live": [], "quiet": []}
    for number in range(2 * PAIRS):
        kind = ("live", "quiet")[(number + number // 2) % 2]
        args = ["run", "--model", "script:turns.yaml", "x"] + (["--quiet"] if kind == "quiet" else [])
        pid, terminal = at_terminal(args, folder, env, 24, 80)
        while read(terminal, 5) is not None:
            pass
        _, _, usage = os.wait4(pid, 0)
        took[kind].append((usage.ru_utime + usage.ru_stime) / TURNS * 1000)
    differences = [live - quiet for live, quiet in zip(took["live"], took["quiet"])]
    print(f"run of {TURNS} turns, CPU of a turn, medians of {PAIRS} pairs: live view {statistics.median(took['live']):.2f} ms, --quiet {statistics.median(took['quiet']):.2f} ms, difference {statistics.median(differences):+.2f} ms")


folder = tempfile.mkdtemp(prefix="watching-bench.")
try:
    env = {"PATH": os.environ["PATH"], "HOME": folder, "PROVOST_STATE_DIR": f"{folder}/state", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    top(folder, env)
    live(folder, env)
finally:
    shutil.rmtree(folder)
