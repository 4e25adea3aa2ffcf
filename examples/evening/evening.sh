#!/bin/sh
# Twelve runs in four folders, as an evening leaves them: two ask, one is stuck, one has used up its budget, one has a
# check that fails, one waits for its provider, one is paused, three work, two are finished. The models are scripts, so
# that it needs no key and costs nothing; the tools are real.
#
#     examples/evening/evening.sh /tmp/evening && provost top
#
# PROVOST names the program; PROVOST_STATE_DIR keeps the runs apart from yours.
set -eu
root=${1:?the folder to work in}
provost=${PROVOST:-provost}

# The settings of a folder.
folder() {
    mkdir -p "$root/$1"
    cd "$root/$1"
    {
        printf '[permissions]\nask = ["shell(git push *)", "shell(npm *)"]\n'
        printf '[limits]\nrepeated_call = 3\nrepeated_call_notice = 2\nstop_blocks = 1\n'
        cat
    } > provost.toml
}

# Starts a run in this folder, with the script on standard input: start NAME GOAL [OPTION…]
start() {
    name=$1 goal=$2
    shift 2
    cat > "$name.yaml"
    "$provost" run --quiet --model "script:$name.yaml" "$@" -- "$goal" > "$name.log" 2>&1 < /dev/null &
}

# Waits until the newest run with this goal has one of these states: reaches STATES GOAL
reaches() {
    tries=0
    until "$provost" ps --all | grep -F "$2" | grep -qE "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { echo "never $1: $2" >&2; "$provost" ps >&2; exit 1; }
        sleep 0.1
    done
}

works="answers: [{ text: I am at it., tools: [{ shell: { command: 'while [ ! -e stop ]; do sleep 0.2; done', timeout_secs: 590 } }] }, { text: 'Stopped. VERDICT: PASS' }]"

folder atlas-api < /dev/null
start ledger 'Keep the ledger in integer micro-dollars; every test passes' <<'SCRIPT'
answers:
  - text: Everything is green, I push it.
    tools: [{ shell: { command: git push origin ledger-micros:refs/heads/ledger-micros } }]
  - text: 'The branch is up to the remote. VERDICT: PASS'
SCRIPT
echo "$works" | start importer 'Port the importer from Python to Rust'

folder docs-site < /dev/null
start vite 'Upgrade the docs site to Vite 8' <<'SCRIPT'
answers:
  - text: It needs the new packages.
    tools: [{ shell: { command: npm install --save-dev vite@8 @vitejs/plugin-vue@7 } }]
  - text: 'Then it stays at Vite 7. VERDICT: PASS'
SCRIPT
start notes 'Write the notes of release 2.4' <<'SCRIPT'
answers:
  - tools: [{ write_file: { path: NOTES.md, content: "# 2.4\n\n- Timers.\n" } }]
  - text: 'NOTES.md has them. VERDICT: PASS'
SCRIPT
start handbook 'Translate the handbook' <<'SCRIPT'
answers:
  - tools: [{ shell: { command: 'while [ ! -e chapters ]; do sleep 0.2; done', timeout_secs: 590 } }]
  - text: 'Translated. VERDICT: PASS'
SCRIPT

folder till <<'SETTINGS'
[[stop_hooks]]
name = "coverage"
command = "test -e covered || { echo 'the branch coverage is 71 %, and is to be 90 %'; exit 1; }"
SETTINGS
"$provost" trust --yes > /dev/null
start parser 'Bring the parser to a branch coverage of 90 %' <<'SCRIPT'
answers:
  - text: 'It is at 90 %. VERDICT: PASS'
  - tools: [{ write_file: { path: covered, content: done } }]
  - text: 'Now it is. VERDICT: PASS'
SCRIPT
echo "$works" | start fixtures 'Tidy the fixtures'

folder infra < /dev/null
start json 'Add --json to till report' <<'SCRIPT'
answers: [{ text: 'till report --json prints it. VERDICT: PASS' }]
SCRIPT
start windows 'Find out why the Windows build hangs' <<'SCRIPT'
answers:
  - tools: [{ read_file: { path: provost.toml } }]
  - tools: [{ read_file: { path: provost.toml } }]
  - tools: [{ read_file: { path: provost.toml } }]
  - text: 'It waits for a console that is not there. VERDICT: PASS'
SCRIPT
start certificates 'Rotate the staging certificates' --tokens 5000 <<'SCRIPT'
answers:
  - { tools: [{ read_file: { path: provost.toml } }], usage: { input: 4300, output: 90 } }
  - { text: 'Rotated. VERDICT: PASS', usage: { input: 10, output: 10 } }
SCRIPT
start timers 'Replace the cron jobs by timers' <<'SCRIPT'
answers:
  - fault: { class: overloaded, message: all hands are busy, retry_after_ms: 3000000 }
  - text: 'VERDICT: PASS'
SCRIPT
echo "$works" | start issues 'Triage the 14 newest issues'

reaches 'needs approval' 'Keep the ledger'
reaches 'needs approval' 'Upgrade the docs site'
reaches completed 'Write the notes'
reaches running 'Translate the handbook'
"$provost" pause "$("$provost" ps --all | grep -F 'Translate the handbook' | cut -d' ' -f1)" > /dev/null
reaches paused 'Translate the handbook'
touch "$root/docs-site/chapters"
reaches completed 'Add --json to till report'
reaches paused 'Find out why the Windows build hangs'
reaches blocked 'Bring the parser'
reaches budget 'Rotate the staging'
reaches 'waits|suspended' 'Replace the cron jobs'
reaches running 'Port the importer'
reaches running 'Tidy the fixtures'
reaches running 'Triage the 14'
"$provost" ps --all
