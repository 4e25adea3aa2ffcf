#!/usr/bin/env python3
"""What the server costs: the page's first byte and lists over many runs, and a run's events for 100 readers, in pairs without.

Usage: bench/server.py [PROVOST] [--runs N] [--turns N] [--pairs N]   (target/release/provost, 5000, 200, 10 unless given)
"""
import argparse, collections, http.client, json, os, selectors, shutil, socket, statistics, subprocess, tempfile, threading, time

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("provost", nargs="?", default="target/release/provost")
OPTIONS.add_argument("--runs", type=int, default=5000)
OPTIONS.add_argument("--turns", type=int, default=200)
OPTIONS.add_argument("--pairs", type=int, default=10)
OPTIONS = OPTIONS.parse_args()
PROVOST = os.path.realpath(OPTIONS.provost)
READERS, TIMES, WORKERS = 100, 20, os.cpu_count() or 1


class Server:
    def __init__(self, folder, env):
        self.token_file = f"{folder}/token"
        self.process = subprocess.Popen([PROVOST, "serve", "--port", "0", "--token-file", self.token_file], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        page, path = self.process.stdout.readline().strip().removeprefix("http://").split("/", 1)
        self.page, self.port = page, int(page.rsplit(":", 1)[1])
        while not os.path.exists(self.token_file):
            time.sleep(0.01)
        self.token = open(self.token_file).read().strip()
        link = http.client.HTTPConnection("127.0.0.1", self.port)
        link.request("GET", f"/{path}", headers={"Host": page})
        self.cookie = link.getresponse().getheader("set-cookie").split(";")[0]

    def took(self, path, headers):
        """Seconds until the first byte, and until the last, with a connection that is open."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.connect()
        began = time.monotonic()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        first = time.monotonic() - began
        size = len(answer.read())
        assert answer.status == 200, (path, answer.status)
        connection.close()
        return first * 1000, (time.monotonic() - began) * 1000, size

    def by_token(self):
        return {"Authorization": f"Bearer {self.token}", "Host": f"127.0.0.1:{self.port}"}

    def end(self):
        self.process.terminate()
        self.process.wait()


def medians(name, server, path, headers, target):
    cold = server.took(path, headers)
    all = [server.took(path, headers) for _ in range(TIMES)]
    first, last = (statistics.median(times) for times in list(zip(*all))[:2])
    verdict = "met" if first < target else "MISSED"
    print(f"{name}: first byte {first:.1f} ms, last {last:.1f} ms, {cold[2] / 1024:.0f} KiB; the first time {cold[0]:.1f} ms (medians of {TIMES}; target {target} ms: {verdict})")


def fill(folder, env):
    with open(f"{folder}/one.yaml", "w") as script:
        script.write("answers: [{ text: 'VERDICT: PASS' }]\n")
    began, open_ones = time.monotonic(), []
    for number in range(OPTIONS.runs):
        open_ones.append(subprocess.Popen([PROVOST, "run", "-q", "--model", "script:one.yaml", f"goal {number}"], cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        if len(open_ones) >= WORKERS:
            open_ones.pop(0).wait()
    for process in open_ones:
        process.wait()
    print(f"{OPTIONS.runs} runs made in {time.monotonic() - began:.0f} s")


Worked = collections.namedtuple("Worked", "took cpu server_cpu ended readers")


class Readers:
    """Readers of a run's events: as fast as they come, or slow ones that take 1 KiB each 50 ms, half of them nothing at all."""

    def __init__(self, server, run, are_slow):
        self.are_slow, self.heard, self.last, self.is_over = are_slow, {}, 0.0, False
        self.selector = selectors.DefaultSelector()
        for number in range(READERS):
            stream = socket.create_connection(("127.0.0.1", server.port))
            if are_slow:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stream.sendall(f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
            stream.setblocking(False)
            self.heard[stream] = 0
            if not are_slow or number % 2 == 0:
                self.selector.register(stream, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self):
        while not self.is_over:
            for key, _ in self.selector.select(0.01):
                data = key.fileobj.recv(1024 if self.are_slow else 1 << 20)
                count = data.count(b"event: entry")
                self.heard[key.fileobj] += count
                self.last = time.monotonic() if count else self.last
            if self.are_slow:
                time.sleep(0.05)

    def close(self):
        self.is_over = True
        self.thread.join()
        for stream in self.heard:
            stream.close()


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def works(folder, env, server, readers):
    """A run that begins to work once its readers are there: how long it takes, and its CPU."""
    go = f"{folder}/go"
    if os.path.exists(go):
        os.remove(go)
    process = subprocess.Popen([PROVOST, "run", "-q", "--model", "script:turns.yaml", "fan out"], cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run = None
    while run is None:
        listed = subprocess.run([PROVOST, "ps", "--json", "--status", "working"], cwd=folder, env=env, capture_output=True, text=True).stdout
        run = next((json.loads(line)["run"] for line in listed.splitlines() if json.loads(line)["goal"] == "fan out"), None)
    listening = Readers(server, run, readers == "slow") if readers else None
    time.sleep(0.5)
    began, before = time.monotonic(), cpu(server.process.pid)
    open(go, "w").close()
    _, _, usage = os.wait4(process.pid, 0)
    ended = time.monotonic()
    if listening:
        time.sleep(2)
        listening.close()
    return Worked(ended - began, usage.ru_utime + usage.ru_stime, cpu(server.process.pid) - before, ended, listening)


def fan_out(folder, env, server):
    with open(f"{folder}/turns.yaml", "w") as script:
        script.write("answers:\n  - tools: [{ shell: { command: 'while [ ! -e go ]; do sleep 0.02; done' } }]\n")
        for number in range(OPTIONS.turns):
            script.write(f"  - text: I look at number {number}.\n    tools: [{{ read_file: {{ path: one.yaml, offset: 1, limit: {number + 1} }} }}]\n")
        script.write("  - text: 'VERDICT: PASS'\n")
    took = {"slow": [], None: []}
    for number in range(2 * OPTIONS.pairs):
        readers = ("slow", None)[(number + number // 2) % 2]
        took[readers].append(works(folder, env, server, readers))
    whats = (("time", lambda worked: worked.took), ("its CPU", lambda worked: worked.cpu), ("the server's CPU", lambda worked: worked.server_cpu))
    for what, of in whats:
        slow, none = ([of(worked) for worked in took[readers]] for readers in ("slow", None))
        difference = statistics.median(one - other for one, other in zip(slow, none))
        print(f"run of {OPTIONS.turns} turns, {what}, medians of {OPTIONS.pairs} pairs: with {READERS} slow readers {statistics.median(slow):.3f} s, without {statistics.median(none):.3f} s, difference {difference * 1000:+.0f} ms")
    worked = works(folder, env, server, "fast")
    counts = sorted(worked.readers.heard.values())
    late = max(0, worked.readers.last - worked.ended) * 1000
    print(f"{READERS} readers: {counts[0]} to {counts[-1]} events each while a run took {worked.took:.2f} s, {sum(counts) / worked.took:.0f} a second in all; the last one {late:.0f} ms after the run's end")


folder = tempfile.mkdtemp(prefix="server-bench.")
try:
    env = {"PATH": os.environ["PATH"], "HOME": folder, "PROVOST_STATE_DIR": f"{folder}/state"}
    fill(folder, env)
    server = Server(folder, env)
    try:
        medians(f"home page, {OPTIONS.runs} runs", server, "/", {"Host": server.page, "Cookie": server.cookie}, 100)
        medians("1,000 runs listed", server, "/v1/runs?limit=1000", server.by_token(), 50)
        medians("groups", server, "/v1/groups", server.by_token(), 100)
        fan_out(folder, env, server)
    finally:
        server.end()
finally:
    shutil.rmtree(folder)
