#!/usr/bin/env python3
"""How long a key takes to its echo at an attended program, in pairs with the bare program.

Usage: bench/keystrokes.py [PROVOST]   (target/release/provost unless given)
"""
import os, pty, select, signal, statistics, sys, tempfile, time

PROVOST = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else "target/release/provost")
KEYS, PAUSE_S = 3000, 0.002
# Repeats each key at once, as an editor would.
PROGRAM = [sys.executable, "-c", """
import os, tty
tty.setraw(0)
os.write(1, b"ready")
while True:
    os.write(1, os.read(0, 64))
"""]


def at_terminal(command, folder):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        env = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "xterm-256color",
               "PROVOST_STATE_DIR": folder + "/state", "PROVOST_TERMINAL_REPORTS": "off"}
        os.execvpe(command[0], command, env)
    return pid, terminal


def until(terminal, wanted):
    shown = b""
    while wanted not in shown:
        assert select.select([terminal], [], [], 20)[0], shown
        shown += os.read(terminal, 65536)


def key(terminal, letter):
    began = time.perf_counter()
    os.write(terminal, letter)
    until(terminal, letter)
    return time.perf_counter() - began


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        bare_pid, bare = at_terminal(PROGRAM, folder)
        own_pid, own = at_terminal([PROVOST, "exec", "-q", "--", *PROGRAM], folder)
        until(bare, b"ready")
        until(own, b"ready")
        time.sleep(1)
        pairs = []
        for number in range(KEYS):
            letter = bytes([ord("a") + number % 26])
            pairs.append((key(bare, letter), key(own, letter)))
            time.sleep(PAUSE_S)
        for pid in (own_pid, bare_pid):
            os.kill(pid, signal.SIGTERM)
        deadline = time.time() + 15
        while time.time() < deadline and os.waitpid(own_pid, os.WNOHANG)[0] == 0:
            time.sleep(0.1)
    def at(values, part):
        return sorted(values)[int(len(values) * part)] * 1000
    for name, values in (("bare", [a for a, _ in pairs]), ("provost exec", [b for _, b in pairs])):
        print(f"{name:14} p50 {at(values, .5):6.3f} ms  p90 {at(values, .9):6.3f} ms  p99 {at(values, .99):6.3f} ms")
    more = [b - a for a, b in pairs]
    print(f"{'difference':14} p50 {at(more, .5):6.3f} ms  p90 {at(more, .9):6.3f} ms  p99 {at(more, .99):6.3f} ms"
          f"  (median of pairs {statistics.median(more) * 1000:.3f} ms)")
    print(f"p99 of provost exec minus p99 of bare: {at([b for _, b in pairs], .99) - at([a for a, _ in pairs], .99):.3f} ms")


main()
