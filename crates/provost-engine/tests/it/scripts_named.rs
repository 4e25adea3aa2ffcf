//! Which files a shell command names as scripts.

use provost_engine::{ScriptNames, scripts_named};

use crate::world::identity;

use crate::permissions::command;

fn named(line: &str) -> ScriptNames {
    scripts_named(&identity("shell"), &command(line)).unwrap_or_default()
}

#[test]
fn a_file_that_a_command_runs_is_named_however_the_command_says_it() {
    for (line, file) in [
        ("sh 'new\nline.sh'", "new\nline.sh"),
        ("./'new\nline.sh'", "./new\nline.sh"),
        ("sh $'new\\nline.sh'", "new\nline.sh"),
        ("sh 'a\u{7}b.sh'", "a\u{7}b.sh"),
        ("sh -- -dash.sh", "-dash.sh"),
        ("make -fmk", "mk"),
        ("make -sfmk", "mk"),
        ("awk -fp.awk", "p.awk"),
        ("sed -nfp.sed x", "p.sed"),
        ("sed -nf p.sed x", "p.sed"),
        ("awk --file p.awk", "p.awk"),
        ("node -r./hook.js x.js", "./hook.js"),
        ("python3 -m tools", "tools/__main__.py"),
        ("python3 -m tools", "tools.py"),
        ("python3 -Im tools.check --fast", "tools/check.py"),
        ("python3 -mtools.check", "tools/__init__.py"),
        ("env A=b python3 -u -m tools", "tools.py"),
        ("coproc ./build.sh", "./build.sh"),
        ("((n)); coproc ./build.sh", "./build.sh"),
        ("BASH_ENV=build.sh bash -c true", "build.sh"),
        ("env BASH_ENV=build.sh bash -c true", "build.sh"),
        ("export ENV=./build.sh; sh -i", "./build.sh"),
        ("GIT_SSH_COMMAND='sh build.sh' git fetch", "build.sh"),
        ("python3 sub", "sub/__main__.py"),
        ("node sub", "sub/index.js"),
        ("cat build.sh | sh", "build.sh"),
        ("cat build.sh | env A=b bash -s -- x", "build.sh"),
        ("cat 'a b.sh' | sh", "a b.sh"),
        ("sh <(cat build.sh)", "build.sh"),
        (". <(cat build.sh)", "build.sh"),
        ("sh /dev/stdin < build.sh", "build.sh"),
        ("env sh < 'a b.sh'", "a b.sh"),
        ("sh <<EOF\n./build.sh\nEOF", "./build.sh"),
        ("sh <<< './build.sh'", "./build.sh"),
        ("git -c alias.x='!./build.sh' x", "./build.sh"),
        ("git -c alias.x='!sh build.sh' x", "build.sh"),
        ("sh \"$PWD/build.sh\"", "./build.sh"),
        ("${PWD}/build.sh", "./build.sh"),
        ("PATH=.:$PATH build.sh", "build.sh"),
        ("env PATH=sub build.sh", "build.sh"),
        ("find . -name build.sh -exec sh {} \\;", "build.sh"),
        ("git rebase --exec ./build.sh main", "./build.sh"),
        ("awk 'BEGIN { system(\"./build.sh\") }'", "./build.sh"),
        ("rg --pre ./build.sh x", "./build.sh"),
        ("pip --python ./t.sh list", "./t.sh"),
        ("pip3 --python=./t.sh install x", "./t.sh"),
        ("uv pip list -p ./t.sh", "./t.sh"),
        ("python3 -m pip --python ./t.sh list", "./t.sh"),
        ("strace -o '|./t.sh' true", "./t.sh"),
    ] {
        let names = named(line);
        assert!(names.files.iter().any(|known| known == file), "{line}: {names:?}");
    }
}

#[test]
fn a_folder_that_a_command_runs_in_is_named_however_the_command_says_it() {
    for line in [
        "env -C sub ./x.sh",
        "env -Csub ./x.sh",
        "env --chdir=sub sh x.sh",
        "env --chdir sub sh x.sh",
        "make -C sub -f mk",
        "make -Csub -f mk",
        "CDPATH=sub; cd x && ./run.sh",
        "CDPATH=sub cd x && sh run.sh",
        "make --directory=sub -f mk",
        "find sub -name x.sh -execdir ./x.sh \\;",
        "sudo -D sub ./x.sh",
        "PATH=sub:$PATH x.sh",
        "export PATH=$PWD/sub:$PATH; x.sh",
    ] {
        let names = named(line);
        let is_sub = |folder: &String| matches!(folder.as_str(), "sub" | "./sub");
        assert!(names.folders.iter().any(is_sub), "{line}: {names:?}");
        assert!(!names.files.is_empty(), "{line}: {names:?}");
    }
}

#[test]
fn what_the_text_cannot_name_is_told_and_ordinary_commands_are_not_such() {
    for line in [
        "./bu{ild,x}.sh",
        "./bu*.sh",
        "$x/build.sh",
        "sh *.sh",
        "sh \"$x\"",
        "python3 -u \"$x\"",
        "for f in *.py; do python3 \"$f\"; done",
        "cat build.sh | sh",
        "curl https://example.org/install | sudo bash -s -- -y",
        "sh <(cat build.sh)",
        "find . -name build.sh -exec sh {} \\;",
        "find . -name build.sh -exec {} \\;",
        "find sub -name x.sh -execdir ./x.sh \\;",
        "ls *.sh | xargs -n1 sh",
        "cd \"$x\" && sh build.sh",
        "make -f $x",
        "python3 -m \"$x\"",
        "sh '$PWD'\"$x\"",
        "sh {$PWD,x}/build.sh",
        "PWD=sub; sh \"$PWD/build.sh\"",
        "((n)); ./build.sh",
        "eval \"$x\"",
        "sh -c \"$x\"",
        "GIT_EXEC_PATH=sub git ls-remote https://example.org/x",
        "export GIT_EXEC_PATH=$PWD/sub; git fetch",
        "git --exec-path=sub fetch",
        "PYTHONPATH=sub pytest",
        "~+/build.sh",
        "~-/build.sh",
        "cd sub; ~-/build.sh",
        "sh ~+/build.sh",
        "cd sub && sh -e ~-/build.sh",
        ". ~+/env.sh",
        "pushd sub; sh ~1/build.sh",
        "python3 ~-/x.py",
        "env A=b ~+/build.sh",
        "make -f ~-/mk",
        "PATH=~+/sub:$PATH build.sh",
    ] {
        assert!(named(line).unnamed, "{line}: {:?}", named(line));
    }
    for line in [
        "ls *.rs",
        "grep x $HOME",
        "cat *.md | head -n 3",
        "make -j$(nproc) test",
        "cargo test -- \"$x\"",
        "find . -name '*.rs' -exec grep -n x {} +",
        "git diff \"$x\" | cat",
        "python3 --version | head -n 1",
        "python3 -c 'print(1)' \"$x\" | cat",
        "echo 1+1 | bc",
        "cat x.json | python3 -m json.tool",
        "ls | xargs wc -l",
        "echo \"$x\" > file",
        "rg -n x src | sort",
        "cd sub && ls *.rs",
    ] {
        assert_eq!(
            scripts_named(&identity("shell"), &command(line)).filter(|names| names.unnamed),
            None,
            "{line}"
        );
    }
    for line in
        ["git add src/main.rs", "vim README.md", "cat README.md | head", "rg \"$x\" README.md", "ls src"]
    {
        assert_eq!(scripts_named(&identity("shell"), &command(line)), None, "{line}");
    }
}

/// The folder of a program at a terminal isn't in the text: it is started in one, and earlier lines may change it.
#[test]
fn a_script_that_a_line_at_a_terminal_runs_is_in_a_folder_that_is_not_known() {
    let at_terminal = |input: serde_json::Value| {
        let input = provost_event::Json::of(&input).expect("JSON");
        scripts_named(&identity("terminal"), &input)
    };
    for line in ["./build.sh", "sh build.sh", "python3 x.py", ". ./env.sh", "~+/build.sh", "sh ~-/build.sh"] {
        for input in [
            serde_json::json!({ "action": "start", "command": line, "cwd": "sub" }),
            serde_json::json!({ "action": "start", "command": line }),
            serde_json::json!({ "action": "send", "text": line }),
        ] {
            let names = at_terminal(input.clone()).unwrap_or_default();
            assert!(names.unnamed && names.files.is_empty(), "{input}: {names:?}");
        }
    }
    assert_eq!(at_terminal(serde_json::json!({ "action": "start", "command": "ls", "cwd": "sub" })), None);
}
