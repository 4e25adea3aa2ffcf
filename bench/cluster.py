#!/usr/bin/env python3
"""What a cluster on this machine does: turns a second and CPU time of a turn with 1 to N workers; how runs go on when their worker
is told to end, killed, or killed and started again at once, and what they do twice then; memory and disk of the nodes over many turns.

Usage: bench/cluster.py [PROVOST] [--nodes N] [--workers N] [--runs N] [--turns N] [--rounds N] [--restarts N] [--kills N] [--growth TURNS] [--minutes N] [--keep]
(target/release/provost, 1, 3, 32, 60, 1, 15, 21, 100000, 40 unless given; 0 leaves a part out). The engine's server, `restate-server`, must be on
PATH (`cargo xtask restate-server` installs it into target/tools/restate). Takes an hour on two cores, half of it for the last part.
"""
import argparse, collections, concurrent.futures, glob, http.server, json, os, re, shutil, signal, statistics, subprocess, tempfile, threading, time

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("provost", nargs="?", default="target/release/provost")
OPTIONS.add_argument("--nodes", type=int, default=1)
OPTIONS.add_argument("--workers", type=int, default=3, help="the most that work side by side")
OPTIONS.add_argument("--runs", type=int, default=32, help="runs at a time")
OPTIONS.add_argument("--turns", type=int, default=60, help="turns of each run of the first part; a turn is a model call and a tool call")
OPTIONS.add_argument("--rounds", type=int, default=1, help="how often turns a second are measured")
OPTIONS.add_argument("--restarts", type=int, default=15, help="workers that are told to end")
OPTIONS.add_argument("--kills", type=int, default=21, help="workers that are killed; as many again are started at once")
OPTIONS.add_argument("--growth", type=int, default=100_000, help="turns over which the nodes' memory and disk are looked at")
OPTIONS.add_argument("--minutes", type=float, default=40, help="how long the part on growth may take")
OPTIONS.add_argument("--keep", action="store_true", help="keep the folder with the nodes' and workers' logs")
OPTIONS = OPTIONS.parse_args()
PROVOST, TICKS = os.path.realpath(OPTIONS.provost), os.sysconf("SC_CLK_TCK")
FOLDER = tempfile.mkdtemp(prefix="cluster-bench.")
CLUSTER = f"{FOLDER}/state/cluster"
ENV = {**os.environ, "HOME": FOLDER, "PROVOST_STATE_DIR": f"{FOLDER}/state", "PROVOST_ENGINE_URL": "local"}
# Runs whose workers are ended, and how long their model and their tool take; turns of each run of the part on growth.
DISTURBED, TAKES_S, LONG = 24, 0.7, 200
POOL = concurrent.futures.ThreadPoolExecutor(4)


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def provost(*args, cwd=FOLDER):
    done = subprocess.run([PROVOST, *args], cwd=cwd, env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, (args, done.stdout[-1000:], done.stderr[-3000:])
    return done.stdout


def up(workers):
    provost("cluster", "up", "--nodes", str(OPTIONS.nodes), "--workers", str(workers))


def members(role):
    return [one for one in json.loads(provost("cluster", "status", "--json"))["members"] if one["role"] == role]


def project(name, model, turns):
    folder = f"{FOLDER}/{name}"
    os.makedirs(folder)
    with open(f"{folder}/provost.toml", "w") as settings:
        settings.write(f'[agent]\nmodel = "{model}"\nmax_turns = {turns}\nstuck_turns = 0\n[limits]\nrepeated_call = {min(turns, 1000)}\n')
    return folder


def scripted(name, delay_ms, turns):
    """A project whose model takes so long for each of a run's turns; its tool reads one line of a file."""
    with open(f"{project(name, 'script:agent.yaml', turns + 10)}/agent.yaml", "w") as script:
        reads = (f"  - tools: [{{ read_file: {{ path: agent.yaml, offset: {line + 1}, limit: 1 }} }}]\n" for line in range(turns))
        script.write(f"delay_ms: {delay_ms}\nanswers:\n{''.join(reads)}  - text: 'VERDICT: PASS'\n")
    return f"{FOLDER}/{name}"


def start(folder, runs):
    return list(POOL.map(lambda number: provost("run", "--detach", f"Work as {number}.", cwd=folder).strip(), range(runs)))


class Workers:
    """Who holds each run and how it ended, by the workers' logs: to ask the engine would take part of what is measured."""

    def __init__(self):
        self.read, self.holder, self.outcome = collections.Counter(), {}, {}

    def look(self):
        for path in glob.glob(f"{CLUSTER}/worker-*.log"):
            with open(path) as log:
                log.seek(self.read[path])
                text = log.read()
            text = text[: text.rfind("\n") + 1]
            self.read[path] += len(text.encode())
            for run, what in re.findall(r"Z  run (\w+): (.*)", text):
                if what == "taken":
                    self.holder[run] = os.path.basename(path).removesuffix(".log")
                elif not what.startswith(("not taken", "no longer worked on")):
                    self.outcome[run] = what
        strange = {run: what for run, what in self.outcome.items() if not what.startswith("completed")}
        assert not strange, strange

    def until(self, reached):
        while not reached():
            time.sleep(0.1)
            self.look()

    def wait(self, runs):
        self.until(lambda: all(run in self.outcome for run in runs))


def entries(run):
    return [json.loads(line) for line in provost("logs", run, "--json").splitlines()]


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Sampler:
    """The CPU seconds that workers and nodes have taken, four times a second."""

    def __init__(self):
        self.pids = [[one["pid"] for one in members(role)] for role in ("worker", "node")]
        self.samples, self.is_over = [], threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while not self.is_over.wait(0.25):
            self.samples.append((time.time() * 1000, [sum(map(cpu, pids)) for pids in self.pids]))

    def end(self):
        self.is_over.set()
        self.thread.join()

    def between(self, since, until):
        """CPU seconds of workers and of nodes, and of how many seconds, within this time."""
        self.end()
        inside = [one for one in self.samples if since <= one[0] <= until]
        (first, before), (last, after) = inside[0], inside[-1]
        return [late - early for early, late in zip(before, after)], (last - first) / 1000


def idle():
    sampler, began = Sampler(), time.time() * 1000
    time.sleep(10)
    (worker, node), seconds = sampler.between(began, time.time() * 1000)
    say(f"{OPTIONS.workers} workers without a run: CPU of workers {worker / seconds:.1%}, of nodes {node / seconds:.1%} of a core")


def rate(folder, workers, count, what):
    """Turns a second while all runs work: from the first turn of the last one to the last turn of the first."""
    sampler = Sampler()
    runs = start(folder, count)
    WORKERS.wait(runs)
    sampler.end()
    times = list(POOL.map(lambda run: [entry["at_ms"] for entry in entries(run) if entry["type"] == "turn_ended"], runs))
    since, until = max(one[0] for one in times), min(one[-1] for one in times)
    assert since < until, "the first run ended before the last began: take more --turns"
    turns = sum(since < at <= until for one in times for at in one)
    a_second = turns * 1000 / (until - since)
    (worker, node), seconds = sampler.between(since, until)
    worker, node = (part / seconds / a_second for part in (worker, node))
    say(f"{workers} workers, {len(runs)} runs at a time, {what}: {a_second:.0f} turns a second ({turns} turns in {(until - since) / 1000:.1f} s); CPU of a turn: workers {worker * 1000:.2f} ms, nodes {node * 1000:.2f} ms; agents a core with turns of ten seconds: {10 / (worker + node):.0f}")


class Model(http.server.ThreadingHTTPServer):
    """A model over HTTP that counts how often it is asked for the same answer."""

    daemon_threads, request_queue_size = True, 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answering)
        self.calls, self.lock, self.is_over = collections.Counter(), threading.Lock(), False
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answering(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = next(re.search(r"Work as (\d+)\.", json.dumps(one)) for one in request["messages"] if one["role"] == "user")
        step = f"{said.group(1)}-{sum(one['role'] == 'assistant' for one in request['messages'])}"
        with self.server.lock:
            self.server.calls[step] += 1
        time.sleep(TAKES_S)
        tool = {"index": 0, "id": f"call-{step}", "type": "function", "function": {"name": "shell", "arguments": json.dumps({"command": f"echo {step} >> lines; sleep {TAKES_S}"})}}
        delta, reason = ({"content": "VERDICT: PASS"}, "stop") if self.server.is_over else ({"tool_calls": [tool]}, "tool_calls")
        pieces = [{"choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]}, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]
        pieces.append({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}})
        body = "".join(f"data: {json.dumps({'id': step, 'object': 'chat.completion.chunk', 'model': 'counted', **piece})}\n\n" for piece in pieces) + "data: [DONE]\n\n"
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(body.encode())
        except OSError:
            pass  # The worker is gone.


def ends(pid, by):
    os.kill(pid, by)
    while os.path.exists(f"/proc/{pid}") and " Z " not in open(f"/proc/{pid}/stat").read():
        time.sleep(0.02)


Ended = collections.namedtuple("Ended", "at held after gone")


def disturbed(what, times, model, by, at_once=False):
    """Ends one worker after the other while all runs work; then looks at how long their runs had no entry, and at what was done twice."""
    folder = project(what.replace(" ", "-"), "ollama/counted", 100_000)
    model.calls.clear()
    model.is_over = False
    runs, ended = start(folder, min(DISTURBED, OPTIONS.runs)), []
    WORKERS.until(lambda: all(run in WORKERS.holder for run in runs))
    for number in range(times):
        time.sleep(2)
        WORKERS.look()
        victim = (all_of := members("worker"))[number % len(all_of)]
        held = [run for run in runs if WORKERS.holder[run] == victim["name"]]
        for run in held:
            del WORKERS.holder[run]
        at = time.time() * 1000
        ends(victim["pid"], by)
        gone = time.time() * 1000 - at
        if at_once:
            up(OPTIONS.workers)
        WORKERS.until(lambda: all(run in WORKERS.holder for run in held))
        ended.append(Ended(at, held, {run: WORKERS.holder[run] == victim["name"] for run in held}, gone))
        up(OPTIONS.workers)
    model.is_over = True
    WORKERS.wait(runs)
    logs = dict(zip(runs, POOL.map(entries, runs)))
    told(what, ended, logs)
    repeats(folder, model, logs)


def told(what, ended, logs):
    pauses = collections.defaultdict(list)
    for one in ended:
        for run in one.held:
            times = [entry["at_ms"] for entry in logs[run]]
            until = min((other.at for other in ended if other.at > one.at and run in other.held), default=one.at + 30_000)
            near = [at for at in times if one.at - 2_000 <= at <= until]
            gap, next_at = max((late - early, late) for early, late in zip(near, near[1:]) if late >= one.at)
            pauses["the same worker" if one.after[run] else "another worker"].append((gap, next_at - one.at))
    gone = sorted(one.gone for one in ended)
    say(f"{what}: {len(ended)} workers with {sum(len(one.held) for one in ended)} runs; the process had ended after {statistics.median(gone) / 1000:.2f} s (median), {gone[-1] / 1000:.2f} s (the most)")
    for who, all in pauses.items():
        for name, values in (("from the signal to the next entry", [one[1] for one in all]), ("the longest time without an entry", [one[0] for one in all])):
            values.sort()
            at = lambda part: values[min(len(values) - 1, int(len(values) * part))] / 1000
            say(f"  {len(all)} runs went on at {who}; {name}: {values[0] / 1000:.1f} s (least), {at(0.5):.1f} s (median), {at(0.99):.1f} s (99 of 100), {values[-1] / 1000:.1f} s (most)")


def repeats(folder, model, logs):
    """What was done twice, as the model and the file have it, beside what the logs say."""
    kinds = collections.Counter(entry["type"] for log in logs.values() for entry in log)
    tools = [entry for log in logs.values() for entry in log if entry["type"] == "tool_finished"]
    states = collections.Counter(entry["status"] for entry in tools)
    lines = collections.Counter(open(f"{folder}/lines").read().split())
    called = {entry["call"].removeprefix("call-") for entry in tools}
    say(f"  model calls: {len(model.calls)} different ones, {sum(model.calls.values()) - len(model.calls)} made again; in the logs {kinds['model_called']} calls, {kinds['assistant_message']} answers")
    say(f"  tool calls: {len(tools)} ({dict(states)}), {sum(lines.values()) - len(lines)} done twice, {len(called - set(lines))} not done, {len(set(lines) - called)} done that no log has")


def tree(folder):
    return sum(os.lstat(os.path.join(at, name)).st_blocks * 512 for at, _, files in os.walk(folder) for name in files)


def sizes():
    memory = {role: [int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{one['pid']}/status").read()).group(1)) // 1024 for one in members(role)] for role in ("node", "worker")}
    data = [{name: tree(f"{CLUSTER}/data/{node['name']}/{name}") >> 20 for name in sorted(os.listdir(f"{CLUSTER}/data/{node['name']}"))} for node in members("node")]
    total = [tree(f"{CLUSTER}/data/{node['name']}") >> 20 for node in members("node")]
    return f"memory of nodes {memory['node']}, of workers {memory['worker']} MiB; data of nodes {total} MiB {data}, blobs {tree(f'{CLUSTER}/blobs') / 2**20:.1f} MiB"


def growth(folder):
    say(f"growth, before: {sizes()}")
    turns, until = 0, time.time() + OPTIONS.minutes * 60
    while turns < OPTIONS.growth and time.time() < until:
        began, left, runs = time.time(), OPTIONS.runs, []
        while left or not all(run in WORKERS.outcome for run in runs):
            more = min(left, OPTIONS.runs - sum(run not in WORKERS.outcome for run in runs))
            runs += start(folder, more)
            left -= more
            time.sleep(0.5)
            WORKERS.look()
        turns += len(runs) * LONG
        say(f"growth, {turns} turns ({len(runs) * LONG / (time.time() - began):.0f} a second): {sizes()}")
    time.sleep(60)
    say(f"growth, a minute later: {sizes()}")
    began = time.time()
    runs = provost("ps", "--all", "--json").splitlines()
    say(f"growth: {len(runs)} runs were listed in {time.time() - began:.1f} s, {sum(json.loads(run)['status'] == 'completed' for run in runs)} of them completed")


WORKERS = Workers()
signal.signal(signal.SIGTERM, lambda *_: exit(1))
try:
    os.makedirs(f"{FOLDER}/.config/provost")
    with open(f"{FOLDER}/.config/provost/config.toml", "w") as settings:
        settings.write('[permissions]\nallow = ["shell", "read_file"]\n[models."ollama/counted"]\nwindow_tokens = 1000000\noutput_tokens_max = 1000\n')
    model = Model()
    ENV["OLLAMA_BASE_URL"] = f"http://127.0.0.1:{model.server_port}/v1"
    quick, waiting, long = scripted("quick", 0, OPTIONS.turns), scripted("waiting", 10_000, 8), scripted("long", 0, LONG)
    for _ in range(OPTIONS.rounds):
        for workers in range(1, OPTIONS.workers + 1):
            up(workers)
            rate(quick, workers, OPTIONS.runs, "a model that answers at once")
        idle()
        rate(waiting, OPTIONS.workers, 2 * OPTIONS.runs, "a model that answers after ten seconds")
    up(OPTIONS.workers)
    for what, times, by, at_once in (
        ("told to end", OPTIONS.restarts, signal.SIGTERM, False),
        ("killed", OPTIONS.kills, signal.SIGKILL, False),
        ("killed and started at once", OPTIONS.kills, signal.SIGKILL, True),
    ):
        if times:
            disturbed(what, times, model, by, at_once)
    if OPTIONS.growth:
        provost("cluster", "down", "--remove")
        WORKERS.__init__()
        up(min(2, OPTIONS.workers))
        growth(long)
finally:
    subprocess.run([PROVOST, "cluster", "down"] + ([] if OPTIONS.keep else ["--remove"]), cwd=FOLDER, env=ENV, stdout=subprocess.DEVNULL)
    if OPTIONS.keep:
        say(f"kept: {FOLDER}")
    else:
        shutil.rmtree(FOLDER, ignore_errors=True)
