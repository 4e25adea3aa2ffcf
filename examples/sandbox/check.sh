#!/bin/sh
# Runs real programs in the sandbox and prints a table: check.sh [PART ...]
# PROVOST is the program (target/debug/provost), BOX_FOLDER where the work is done (the home folder, not below /tmp).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
provost=$(realpath "${PROVOST:-$here/../../target/debug/provost}")
base=$(mktemp -d "${BOX_FOLDER:-$HOME}/provost-box.XXXXXX")
trap 'rm -rf "$base"' EXIT
export PROVOST_STATE_DIR="$base/state"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_COUNT=1
export GIT_CONFIG_KEY_0=init.defaultBranch GIT_CONFIG_VALUE_0=main
log="$base/log.txt"
failures=0

# A work folder with a repository, and settings; goes there.
project() {
    mkdir -p "$base/$1" && cd "$base/$1"
    git init -q .
    printf '[sandbox]\nmode = "workspace"\nenv = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"]\n' > provost.toml
    printf 'provost.toml\nnode_modules\ntarget\n' > .gitignore
    git add -A && git commit -qm one
    "$provost" trust --yes > /dev/null 2>&1
}

# A line of the table: whether a command succeeds.
row() {
    what=$1
    shift
    began=$(date +%s)
    if "$@" > "$log" 2>&1; then result=ok; else result=FAILED; fi
    printf '| %-62s | %-6s | %3s s |\n' "$what" "$result" "$(($(date +%s) - began))"
    if [ "$result" = FAILED ]; then failures=$((failures + 1)); sed 's/^/    /' "$log" | tail -n 20; fi
}

box() { "$provost" sandbox run -- sh -ec "$1"; }
fails() { if box "$1"; then return 1; fi; }
skip() { printf '| %-62s | %-6s |       |\n' "$1" skipped; }
has() { command -v "$1" > /dev/null 2>&1; }

git_part() {
    project git
    row "git: commit, rebase" box 'git checkout -qb topic; echo 1 > a; git add a; git commit -qm a; git checkout -q main
        echo 2 > b; git add b; git commit -qm b; git rebase -q main topic; git switch -q main; git merge -q topic'
    row "git: stash" box 'echo x >> a; git stash -q; git diff --quiet; git stash pop -q; ! git diff --quiet; git checkout -q a'
    row "git: init and commit in a folder below" box 'git init -q new; cd new; echo n > n; git add n; git commit -qm n'
    row "git: clone, push back to a branch" box 'git clone -q . copy; cd copy; echo 3 > c; git add c; git commit -qm c
        git push -q origin HEAD:refs/heads/pushed'
    row "git: submodule in the clone" box 'cd copy; git -c protocol.file.allow=always submodule --quiet add ../new lib
        git commit -qm sub; git -c protocol.file.allow=always submodule --quiet update --init; test -f lib/n'
    row "git: a hook can't be written" fails 'echo evil > .git/hooks/pre-commit'
    git worktree add -q "$base/linked" -b linked
    cp provost.toml "$base/linked/" && cd "$base/linked" && "$provost" trust --yes > /dev/null 2>&1
    row "git: commit and rebase in a linked worktree" box 'echo 4 > d; git add d; git commit -qm d; git rebase -q main; git stash list'
}

husky_part() {
    has npm || { skip "husky"; return 0; }
    project husky
    printf '{"name":"x","version":"1.0.0","scripts":{"test":"echo tested >> tested.txt"}}' > package.json
    npm install --silent --no-audit --no-fund --save-dev husky > /dev/null 2>&1
    npx husky init > /dev/null 2>&1
    git add -A && git commit -qm husky > /dev/null 2>&1 && rm -f tested.txt
    row "husky: a commit runs its hook" box 'echo 1 > a; git add a; git commit -qm a; grep -q tested tested.txt'
    row "husky: the hook can't be changed" fails 'echo evil >> .husky/pre-commit'
    row "npm: a package is packed and installed offline, scripts run" box 'mkdir lib; echo "{\"name\":\"lib\",\"version\":\"1.0.0\"}" > lib/package.json
        npm pack --silent ./lib; npm install --offline --no-audit --no-fund ./lib-1.0.0.tgz; npm test'
}

pytest_part() {
    project pytest
    printf 'def test_two():\n    assert 1 + 1 == 2\n' > test_it.py
    python3 -m venv "$base/tools" && "$base/tools/bin/pip" install --quiet pytest > /dev/null 2>&1
    row "pytest: tests pass" box "$base/tools/bin/python -m pytest -q test_it.py"
    row "python: a virtual environment is made and used" box 'python3 -m venv --without-pip .venv; .venv/bin/python test_it.py'
    row "python: it is there in the next program" box 'test -x .venv/bin/python'
    row "python: and not outside" test ! -e .venv/bin/python
}

cargo_part() {
    has cargo || { skip "cargo"; return 0; }
    project cargo
    mkdir src
    printf '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nitoa = "1"\n' > Cargo.toml
    printf '#[test]\nfn two() { assert_eq!(itoa::Buffer::new().format(2), "2"); }\n' > src/lib.rs
    printf 'fn main() { println!("cargo:rerun-if-changed=build.rs"); }\n' > build.rs
    cargo fetch --quiet 2> /dev/null
    row "cargo: build and test with a fetched dependency" box 'cargo test --quiet --offline'
    row "cargo: again, with nothing to build" box 'cargo build --quiet --offline'
}

gdb_part() {
    has cc && has gdb || { skip "gdb"; return 0; }
    project gdb
    printf 'int main(void) {\n  int seen = 41;\n  seen++;\n  return seen == 42 ? 0 : 1;\n}\n' > x.c
    row "cc: a program is compiled and runs" box 'cc -g -o x x.c; ./x'
    row "gdb: its variables are seen" box "gdb -nx -batch -ex 'break 4' -ex run -ex 'print seen' ./x | grep -q '= 42'"
}

server_part() {
    project server
    cat > agent.yaml <<'Y'
answers:
  - tools: [{ shell: { command: "python3 -m http.server 8123 --bind 127.0.0.1", background: true } }]
  - tools: [{ shell: { command: "for i in $(seq 50); do python3 -c 'import urllib.request as u; print(len(u.urlopen(\"http://127.0.0.1:8123/agent.yaml\").read()), \"bytes\")' 2>/dev/null && break; sleep 0.1; done" } }]
  - text: done
Y
    printf '[agent]\nmodel = "script:agent.yaml"\n' | cat - provost.toml > new.toml && mv new.toml provost.toml
    "$provost" trust --yes > /dev/null 2>&1
    served() { "$provost" run -q "serve" > /dev/null; "$provost" export last | grep '"type":"tool_finished"' | grep -q "$(wc -c < agent.yaml) bytes"; }
    row "server: started in one call, reached in the next" served
    unreachable() { ! curl -s -m 2 http://127.0.0.1:8123/ > /dev/null; }
    row "server: not reached from outside, and gone" unreachable
}

"$provost" --version
printf '| %-62s | %-6s | %5s |\n|%s|--------|-------|\n' "in the sandbox" "result" "time" "$(printf '%064d' 0 | tr 0 -)"
for part in ${*:-git husky pytest cargo gdb server}; do "${part}_part"; done
[ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }
