#!/bin/sh
# What the sandbox costs: the same tool calls of a scripted agent with `mode = "off"` and `mode = "workspace"`, in turns.
# Usage: bench/sandbox.sh [PROVOST]   (target/release/provost unless given)
set -eu
provost=$(realpath "${1:-target/release/provost}")
folder=$(mktemp -d "${BENCH_FOLDER:-$HOME}/sandbox-bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export PROVOST_STATE_DIR="$folder/state"
mkdir -p "$folder/work/src" && cd "$folder/work"
git init -q . && mkdir files
python3 - <<'P'
for i in range(10_000): open(f"files/{i}", "w").write(str(i))
P
printf '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
echo 'fn main() { println!("hello"); }' > src/main.rs
printf 'target\nagent.yaml\nprovost.toml\n' > .gitignore
git add -A && git -c user.name=a -c user.email=a@b commit -qm one
{
    echo 'answers:'
    for i in $(seq 11); do echo "  - tools: [{ shell: { command: 'true $i' } }]"; done
    for i in $(seq 3); do echo "  - tools: [{ shell: { command: 'git status --short; : $i' } }]"; done
    for i in $(seq 2); do echo "  - tools: [{ shell: { command: 'rm -rf target; cargo build -q --offline; : $i' } }]"; done
    echo '  - text: done'
} > agent.yaml
for round in 1 2; do
    for mode in off workspace; do
        printf '[agent]\nmodel = "script:agent.yaml"\n[sandbox]\nmode = "%s"\n' "$mode" > provost.toml
        "$provost" run -q "measure" > /dev/null 2>&1 || true
        "$provost" export last > "$folder/$mode-$round.jsonl"
    done
done
python3 - "$folder" <<'P'
import json, statistics, sys
def durations(mode):
    found = []
    for round in (1, 2):
        one = []
        for line in open(f"{sys.argv[1]}/{mode}-{round}.jsonl"):
            entry = json.loads(line)
            body = entry.get("record", entry)
            if body.get("type") == "tool_finished": one.append(body["duration_ms"])
        found.append(one)
    return found
parts = {"true, in a box that is open": slice(1, 11), "git status of 10,000 files": slice(11, 14), "cargo build of one file": slice(14, 16)}
off, on = durations("off"), durations("workspace")
first = lambda runs: statistics.median(run[0] for run in runs)
print(f"the first program, which opens the box: {first(off):.0f} ms outside, {first(on):.0f} ms inside")
for name, part in parts.items():
    median = lambda runs: statistics.median(ms for run in runs for ms in run[part])
    print(f"{name}: {median(off):.0f} ms outside, {median(on):.0f} ms inside")
P
