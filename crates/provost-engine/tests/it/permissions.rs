//! Permissions from outside: patterns and calls in, rulings out.

use std::path::Path;

use provost_engine::{Pattern, Permissions, Ruling, narrowest_pattern};
use provost_event::{Access, Json, Permission, PermissionPolicy, ToolSpec, ToolSubject};

use crate::world::{identity, known_tools, tool};

pub(crate) const WORKSPACE: &str = "/srv/project";

pub(crate) fn policy(rules: &[&str]) -> PermissionPolicy {
    let mut policy = PermissionPolicy { elsewhere: Permission::Allow, ..PermissionPolicy::default() };
    for rule in rules {
        match rule.split_once(' ').expect("a kind and a pattern") {
            ("allow", pattern) => policy.allow.push(pattern.to_owned()),
            ("ask", pattern) => policy.ask.push(pattern.to_owned()),
            ("deny", pattern) => policy.deny.push(pattern.to_owned()),
            ("approved", pattern) => policy.approved.push(pattern.to_owned()),
            ("default", "ask") => policy.default = Permission::Ask,
            ("default", "deny") => policy.default = Permission::Deny,
            other => panic!("no rule: {other:?}"),
        }
    }
    policy
}

pub(crate) fn permissions(rules: &[&str]) -> Permissions {
    Permissions::new(&policy(rules), Path::new(WORKSPACE), &known_tools()).expect("patterns")
}

pub(crate) fn command(text: &str) -> Json {
    Json::of(&serde_json::json!({ "command": text })).expect("JSON")
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).expect("JSON")
}

fn shown(ruling: &Ruling) -> String {
    let rule = ruling.rule.clone().unwrap_or_else(|| "-".to_owned());
    let default = if ruling.by_default { " by default" } else { "" };
    format!("{:?} {rule}{default}", ruling.permission)
}

/// Judges each command under the same rules, and reports all differences at once.
fn check(rules: &[&str], rows: &[(&str, &str)]) {
    let permissions = permissions(rules);
    let wrong: Vec<String> = rows
        .iter()
        .map(|(text, expected)| (text, expected, shown(&permissions.judge("shell", &command(text)))))
        .filter(|(_, expected, got)| **expected != got)
        .map(|(text, expected, got)| format!("{text}\n    expected {expected}\n    got      {got}"))
        .collect();
    assert!(wrong.is_empty(), "under {rules:?}:\n{}", wrong.join("\n"));
}

const DENIED: &str = "Deny deny shell(rm *)";
const FREE: &str = "Allow - by default";
const UNSURE: &str = "Ask -";

const FOUND: &[&str] = &[
    "rm",
    "rm x",
    "rm -rf /",
    "  rm   -rf\t/",
    "echo hi;rm -rf /",
    "echo hi && rm x",
    "false || rm x",
    "rm x &",
    "a | rm x",
    "a |& rm x",
    "a\nrm x",
    "a\n\n# b\nrm x # c",
    "(rm -rf /)",
    "( cd x; ( rm y ) )",
    "{ rm x; }",
    "! rm x",
    "time rm x",
    "time -p rm x",
    "if true; then rm x; fi",
    "if rm x; then a; fi",
    "if a; then b; elif rm x; then c; fi",
    "if a; then b; else rm x; fi",
    "for f in a b; do rm $f; done",
    "for f in $(rm x); do a; done",
    "for f do rm $f; done",
    "for f\nin a\ndo\nrm x\ndone",
    "while rm x; do a; done",
    "until a; do rm x; done",
    "select a in b; do rm x; done",
    "case x in a) rm x;; esac",
    "case $(rm x) in a) b;; esac",
    "case x in\n(a|b)\n c\n ;;\n *) rm x\nesac",
    "case x in a) b;& c) rm x;; esac; d",
    "f() { rm x; }",
    "f () { rm x; }; f",
    "function f { rm x; }",
    "function f() (rm x)",
    "x=$(rm -rf /)",
    "x=$(case y in a) rm z;; esac)",
    "x=`rm -rf /`",
    "echo \"$(rm -rf /)\"",
    "echo \"a `rm x` b\"",
    "echo \"$(echo \"$(rm x)\")\"",
    "echo `echo \\`rm x\\``",
    "diff <(rm x) y",
    "tee >(rm x)",
    "a=(1 $(rm x))",
    "echo ${x:-$(rm y)}",
    "echo \"${x:-$(rm y)}\"",
    "echo $((1 + $(rm x)))",
    "cat <<EOF\n$(rm x)\nEOF",
    "cat <<-EOF\n\t`rm x`\n\tEOF",
    "cat <<EOF\nhi\nEOF\nrm x",
    "cat <<'EOF'\nit's $(x\nEOF\nrm x",
    "cat <<A <<B\na\nA\n$(rm x)\nB",
    "cat <<EOF | rm x\nhi\nEOF",
    "A=b rm x",
    "A=b B='c d' rm x",
    "A=$(x) rm x",
    "\"rm\" x",
    "'rm' x",
    "'r'm x",
    "r\"\"m -rf /",
    "r\\m x",
    "\\rm x",
    "$'\\x72m' x",
    "$'\\162m' x",
    "r\\\nm x",
    "$\"rm\" x",
    "/bin/rm x",
    "/usr/bin/../bin/rm x",
    "./rm x",
    "\"/bin/rm\" x",
    "RM x",
    "> f rm x",
    "2>/dev/null rm x",
    "rm<x",
    "rm>x",
    "rm x 2>&1",
    "i\\\nf true; then rm x; fi",
    "echo a\\\n; rm x",
    "echo $'a' ; rm x",
    "echo 'a\nb'; rm x",
    "echo \\# ; rm x",
    "echo a#b; rm x",
    "[ -f x ] && rm x",
    "[[ -f x && -f y ]] && rm x",
    "a > b ; rm x",
    "a &> b ; rm x",
    "a >& b; rm x",
    "a <<< b; rm x",
    "echo $# ; rm x",
    "echo ${#x} ; rm x",
    "echo done; rm x",
    "$(rm x)",
    "`rm x`",
];

#[test]
fn a_denied_command_is_found_wherever_it_stands() {
    let rows: Vec<_> = FOUND.iter().map(|text| (*text, DENIED)).collect();
    check(&["deny shell(rm *)"], &rows);
}

const WRAPPED: &[&str] = &[
    "sudo rm x",
    "sudo -u x rm y",
    "sudo -nu x rm y",
    "sudo --user x rm y",
    "sudo --user=x -- rm y",
    "sudo --user x -n rm y",
    "sudo A=b rm x",
    "env rm x",
    "env -i A=b sudo -u x nice -n 5 rm -rf /",
    "env -u A rm x",
    "env -S 'rm x'",
    "env -S'rm x'",
    "env --split-string='rm x'",
    "env -iS 'rm x'",
    "doas -u x rm y",
    "nohup rm x &",
    "nice rm x",
    "nice -n 5 rm x",
    "nice -5 rm x",
    "timeout 5 rm x",
    "timeout -k 1 -s KILL 5 rm x",
    "stdbuf -oL rm x",
    "stdbuf -o L rm x",
    "setsid -f rm x",
    "watch rm x",
    "watch -n 1 'rm x'",
    "command rm x",
    "command -p rm x",
    "exec rm x",
    "exec -a b rm x",
    "builtin rm x",
    "xargs rm",
    "xargs -0 rm",
    "xargs -0 -n 1 rm -f",
    "xargs -I {} rm {}",
    "ls | xargs -r rm",
    "xargs sh -c 'rm x'",
    "find . -exec rm {} +",
    "find . -name '*.o' -execdir rm {} \\;",
    "find . -ok rm {} ';'",
    "find . -exec a {} + -exec rm {} +",
    "find . -exec sh -c 'rm \"$1\"' _ {} \\;",
    "fd -x rm",
    "sh -c 'rm x'",
    "bash -c \"rm -rf /\"",
    "bash -lc 'rm x'",
    "bash -l -c 'rm x'",
    "bash --norc -c 'rm x'",
    "bash -o pipefail -c 'a; rm x'",
    "/bin/bash -c 'rm x'",
    "zsh -c 'rm x'",
    "dash -c 'rm x'",
    "ksh -c 'rm x'",
    "bash -c -- 'rm x'",
    "bash -c \"bash -c 'rm x'\"",
    "bash -c $'rm x'",
    "eval rm x",
    "eval 'rm x'",
    "eval \"rm\" 'x'",
    "eval eval rm x",
    "trap 'rm x' EXIT",
    "trap -- 'rm x' EXIT",
    "ssh host rm x",
    "ssh -p 22 host 'a; rm x'",
    "su -c 'rm x'",
    "su x --command='rm x'",
    "flock f rm x",
    "flock f -c 'rm x'",
    "busybox rm x",
    "alias a='rm x'",
    "alias a='rm -rf'\na x",
    "chroot d rm x",
    "time -f x rm y",
    "\"sudo\" rm x",
    "A=b sudo rm x",
    "sudo -u x A=b rm y",
    "sudo /bin/rm x",
    "parallel rm ::: a",
    "strace -f -o x rm y",
];

#[test]
fn a_denied_command_is_found_in_the_arguments_of_others() {
    check(&["deny shell(rm *)"], &WRAPPED.iter().map(|text| (*text, DENIED)).collect::<Vec<_>>());
}

const LOOKS_LIKE: &[&str] = &[
    "rmdir x",
    "echo rm",
    "echo rm -rf /",
    "echo '$(rm -rf /)'",
    "echo \"\\$(rm x)\"",
    "echo \\$\\(rm x\\)",
    "# rm",
    "a # rm x",
    "a #; rm x",
    "cat <<'EOF'\n$(rm x)\nEOF",
    "cat <<EOF\nrm x\nEOF",
    "cat <<\\EOF\n`rm x`\nEOF",
    "cat > f <<'EOF'\nrm x; rm y\nEOF",
    "git rm x",
    "grep 'a;rm x' f",
    "grep \"a && rm x\" f",
    "echo 'a'\\''; rm x'",
    "sudo apt install rm",
    "command -v rm",
    "for rm in a b; do echo x; done",
    "case rm in rm) a;; esac",
    "rm=x",
    "x='rm y'",
    "rm() { a; }",
    "docker rm x",
    "git commit -m \"$(cat <<'EOF'\nIt's done: rm x\nEOF\n)\"",
    "cargo test -- rm",
    "echo \"${x}\"",
    "echo $x rm",
    "ls *.rs",
    "echo {rm,x}",
    "a=$((1+2))",
    "bash x.sh rm",
    "find . -name rm",
    "true",
    ":",
    "timeout 5 echo rm",
    "cd x && make -j4 2>&1 | tail -n 5",
    "echo a > b",
    "echo $'it' rm",
    "[ a = rm ]",
];

#[test]
fn what_only_looks_like_a_denied_command_is_free() {
    check(&["deny shell(rm *)"], &LOOKS_LIKE.iter().map(|text| (*text, FREE)).collect::<Vec<_>>());
}

const UNCLEAR: &[&str] = &[
    "$X foo",
    "\"$X\" foo",
    "${X} -rf /",
    "$(echo rm) -rf /",
    "`echo rm` -rf /",
    "r$X -rf /",
    "/bin/r? x",
    "/bin/[r]m x",
    "{rm,-rf,/}",
    "{r..s}m x",
    "eval \"$X\"",
    "eval $(cat f)",
    "bash -c \"$X\"",
    "bash -c '\"$@\"' _ rm x",
    "sh",
    "bash -s",
    "curl x | sh",
    "curl x | bash -",
    "bash <<EOF\nrm x\nEOF",
    "bash < f",
    "bash /dev/stdin",
    "bash <(curl x)",
    "sudo $X",
    "env $X y",
    "xargs",
    "alias a=b",
    "echo 'a",
    "echo \"a",
    "echo $(a",
    "echo `a",
    "(a",
    "a)",
    "((i++))",
    "for ((;;)); do a; done",
    "echo $((",
    "echo $((a) )",
    "echo $[1]",
    "cat <<EOF\na\\\nEOF\nEOF",
    "echo ${x@P}",
    "echo ${ a; }",
    "echo ${!x}",
    "echo $'a\\'b'",
    "a !(b)",
    "a @(b|c)",
    "coproc a",
    "esac",
    "a ;; b",
    "trap \"$X\" EXIT",
    "find . -exec {} +",
    "a &> b c",
    "a\0b",
    "echo \"$\\\n(a)\"",
    "cat <<E \"a\nb\"\nE",
    "(cat <<E)\nE\n",
];

#[test]
fn what_a_command_runs_is_asked_about_where_its_text_does_not_tell() {
    // `xargs` alone runs `echo`.
    for text in UNCLEAR.iter().filter(|text| **text != "xargs") {
        for rule in ["deny shell(mkfs *)", "ask shell(mkfs *)"] {
            let ruling = permissions(&[rule, "allow shell"]).judge("shell", &command(text));
            assert_eq!(ruling.permission, Permission::Ask, "{rule}: {text} is {ruling:?}");
        }
    }
    check(&["allow shell"], &UNCLEAR.iter().map(|text| (*text, "Allow allow shell")).collect::<Vec<_>>());
    check(
        &["allow shell(*x*)", "allow shell(* *)", "default ask"],
        &[("$X x", "Ask - by default"), ("eval \"$X\"", "Ask - by default")],
    );
    check(
        &["allow shell", "deny shell(mkfs *)"],
        &[("$X", "Ask deny shell(mkfs *)"), ("sh", UNSURE), ("a", "Allow allow shell")],
    );
    check(
        &["deny shell"],
        &[("$X", "Deny deny shell"), ("a", "Deny deny shell"), ("# a", "Deny deny shell")],
    );
    check(&["approved shell", "ask shell(mkfs *)"], &[("$X", "Allow approved shell")]);
    check(&["approved shell", "deny shell(mkfs *)"], &[("sh", UNSURE)]);
}

#[test]
fn what_a_denied_command_may_come_to_is_asked_about() {
    let maybe = "Ask deny shell(git push *)";
    check(
        &["deny shell(git push *)", "approved shell(git *)"],
        &[
            ("git push", "Deny deny shell(git push *)"),
            ("git log", "Allow approved shell(git *)"),
            // It may be an alias, which no pattern for `git` covers.
            ("git pushx", FREE),
            ("git $X origin", maybe),
            ("git pu$X origin", maybe),
            ("git {push,origin}", maybe),
            ("xargs git", maybe),
            ("git commit -m \"$X\"", "Allow approved shell(git *)"),
            ("find . -exec git {} +", maybe),
        ],
    );
}

#[test]
fn all_parts_of_an_allowed_command_must_be_covered_as_they_are_written() {
    let cargo = "Allow allow shell(cargo *)";
    let not = "Ask - by default";
    check(
        &[
            "allow shell(cargo *)",
            "allow shell(git status)",
            "allow shell(echo * > out.txt)",
            "allow shell(npm run test:*)",
            "default ask",
        ],
        &[
            ("cargo", cargo),
            ("cargo test", cargo),
            ("  cargo   test  ", cargo),
            ("cargo test --foo=bar && cargo clippy", cargo),
            ("cargo test; cargo fmt\ncargo doc", cargo),
            ("(cargo test)", cargo),
            ("if cargo test; then cargo doc; fi", cargo),
            ("! cargo test", cargo),
            ("cargo test 2>&1", cargo),
            ("cargo test > /dev/null 2>&1", cargo),
            ("cargo test < in", cargo),
            ("cargo test <<E\nhi\nE", cargo),
            ("cargo test $X", cargo),
            ("cargo test 'a; b'", cargo),
            ("cargo test && git status", "Allow allow shell(git status)"),
            ("git status", "Allow allow shell(git status)"),
            ("git status -s", not),
            ("git  status", "Allow allow shell(git status)"),
            ("cargo test && rm x", not),
            ("cargo test $(rm x)", not),
            ("cargo test `rm x`", not),
            ("cargo test <<E\n$(rm x)\nE", not),
            ("cargo test <(rm x)", not),
            ("cargo test | tee x", not),
            ("cargo test > out", not),
            ("cargo test >> out", not),
            ("cargo test &> out", not),
            ("cargo test >| out", not),
            ("cargo test <> out", not),
            ("cargo test >& out", not),
            ("cargo test > /dev/null/../x", not),
            ("{ cargo test; } > out", not),
            ("A=b cargo test", not),
            ("/evil/cargo test", not),
            ("\"cargo\" test", not),
            ("sudo cargo test", not),
            ("cargox", not),
            ("PATH=/evil; cargo test", not),
            ("cargo() { rm x; }; cargo test", not),
            ("echo hi > out.txt", "Allow allow shell(echo * > out.txt)"),
            ("echo hi > other.txt", not),
            ("npm run test", "Allow allow shell(npm run test:*)"),
            ("npm run test a", "Allow allow shell(npm run test:*)"),
            ("npm run tests", not),
            ("# nothing", not),
            ("", not),
        ],
    );
}

#[test]
fn deny_beats_ask_beats_allow_and_the_narrowest_is_named() {
    check(
        &[
            "allow shell(git *)",
            "ask shell(git *)",
            "ask shell(git push *)",
            "ask Bash(git push origin *)",
            "deny shell(git push * --force)",
            "deny shell(* --force)",
        ],
        &[
            ("git log", "Ask ask shell(git *)"),
            ("git push", "Ask ask shell(git push *)"),
            ("git push origin main", "Ask ask Bash(git push origin *)"),
            ("git push origin --force", "Deny deny shell(git push * --force)"),
            ("npm --force", "Deny deny shell(* --force)"),
            ("git log && npm --force", "Deny deny shell(* --force)"),
            ("ls", FREE),
        ],
    );
    check(&["ask shell", "allow shell(ls)"], &[("ls", "Ask ask shell"), ("a", "Ask ask shell")]);
    check(&["deny sh*l(a)", "deny shell(a)", "deny *(a)"], &[("a", "Deny deny shell(a)")]);
    check(
        &["deny shell(a|b)", "deny shell(curl * | sh)"],
        &[("curl x | sh", "Deny deny shell(curl * | sh)"), ("a|b", "Deny deny shell(a|b)")],
    );
    check(
        &["deny shell(echo \\*)"],
        &[
            ("echo \\*", "Deny deny shell(echo \\*)"),
            ("echo '*'", "Deny deny shell(echo \\*)"),
            ("echo a", FREE),
        ],
    );
}

#[test]
fn an_approval_lifts_a_question_and_never_a_denial() {
    let approved = "Allow approved shell(git push origin main)";
    let rules = [
        "ask shell(git push *)",
        "deny shell(git push * --force)",
        "approved shell(git push origin main)",
        "approved shell(git push origin main --force)",
    ];
    check(
        &rules,
        &[
            ("git push origin main", approved),
            ("git push origin dev", "Ask ask shell(git push *)"),
            ("git push origin main && git push origin dev", "Ask ask shell(git push *)"),
            ("git push origin main && ls", FREE),
            ("git push origin main --force", "Deny deny shell(git push * --force)"),
        ],
    );
    check(
        &["approved shell(ls)", "default ask"],
        &[("ls", "Allow approved shell(ls)"), ("ls; a", "Ask - by default")],
    );
    check(&["approved shell(ls)", "default deny"], &[("ls", "Deny - by default")]);
    check(
        &["allow shell(ls)", "default deny"],
        &[("ls", "Allow allow shell(ls)"), ("a", "Deny - by default")],
    );
    let mut later = permissions(&["ask shell"]);
    assert_eq!(later.judge("shell", &command("ls")).permission, Permission::Ask);
    later.approve("shell(ls)");
    later.approve("shell(");
    assert_eq!(shown(&later.judge("shell", &command("ls"))), "Allow approved shell(ls)");
    assert_eq!(shown(&later.judge("shell", &command("pwd"))), "Ask ask shell");
}

/// Whether the first pattern denies, and the second allows, a call of `tool` with this path.
fn paths(rows: &[(&str, &str, &str, bool, bool)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(tool, pattern, path, denies, allows)| {
            let input = json(&serde_json::json!({ "path": path }).to_string());
            let judge = |rules: &[&str]| {
                Permissions::of_policy(&policy(rules), Path::new(WORKSPACE), &known_tools())
                    .judge(tool, &input)
                    .permission
            };
            let got = (
                judge(&[&format!("deny {pattern}")]) == Permission::Deny,
                judge(&[&format!("allow {pattern}"), "default deny"]) == Permission::Allow,
            );
            (format!("{tool} {path} {pattern}: denies and allows {got:?}"), got == (*denies, *allows))
        })
        .filter(|(_, right)| !right)
        .map(|(text, _)| text)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_tilde_in_a_denial_stands_for_each_users_home() {
    for home in [&["home", "alex"][..], &["Users", "alex"], &["root"], &["var", "root"]] {
        let key = format!("/{}/.ssh/id", home.join("/"));
        paths(&[("read_file", "read_file(~/.ssh/**)", &key, true, false)]);
    }
}

#[test]
fn paths_are_matched_where_they_lead() {
    paths(&[
        ("read_file", "read_file(src/**)", "src/a.rs", true, true),
        ("read_file", "Read(src/**)", "./src//b/../a.rs", true, true),
        ("read_file", "read_file(src/**)", "/srv/project/src/a/b.rs", true, true),
        ("read_file", "read_file(src/**)", "src/../../etc/passwd", false, false),
        ("read_file", "read_file(src/**)", "src/../secret", false, false),
        ("read_file", "read_file(src/**)", "srcx/a.rs", false, false),
        ("read_file", "read_file(src/*)", "src/a.rs", true, true),
        ("read_file", "read_file(src/*)", "src/a/b.rs", true, false),
        ("read_file", "read_file(src/)", "src/a/b.rs", true, true),
        ("read_file", "read_file(/etc/**)", "../../etc/passwd", true, true),
        ("read_file", "read_file(/etc)", "/etc/passwd", true, false),
        ("read_file", "read_file(../other/**)", "/srv/other/a", true, true),
        ("edit_file", "Edit(*.ts)", "a/b/c.ts", true, true),
        ("edit_file", "MultiEdit(*.ts)", "c.ts", true, true),
        ("edit_file", "Edit(c.ts)", "c.ts", true, true),
        ("edit_file", "Edit(c.ts)", "./c.ts", true, true),
        ("edit_file", "Edit(c.ts)", "a/c.ts", true, false),
        ("edit_file", "Edit(**/c.ts)", "a/c.ts", true, true),
        ("edit_file", "Edit(src/)", "a/src/c.ts", true, false),
        ("edit_file", "Edit(*.ts)", "c.tsx", false, false),
        ("edit_file", "Edit(/*.ts)", "c.ts", false, false),
        ("edit_file", "Edit(./*.ts)", "a/c.ts", false, false),
        ("write_file", "Write(**/test/**)", "a/test/b", true, true),
        ("write_file", "write_file(.git)", ".git/config", true, false),
        ("write_file", "write_file(.env)", ".ENV", true, false),
        ("write_file", "write_file(project)", "a", false, false),
        ("write_file", "write_file(a\\*)", "a*", true, true),
        ("write_file", "write_file(a\\*)", "ab", false, false),
        ("write_file", "edit_file(a)", "a", false, false),
        ("read_file", "read_file(~/.ssh/**)", "~/.ssh/id", true, false),
        ("read_file", "read_file(~/.ssh/**)", "/etc/.ssh/id", false, false),
        ("search", "search(secrets/**)", ".", true, false),
        ("search", "Grep(secrets/**)", "src", false, false),
        ("list_dir", "Glob(secrets/**)", "secrets", true, true),
        ("list_dir", "LS(secrets/**)", "/srv", true, false),
        ("read_file", "read_file", "a", true, true),
        ("read_file", "*", "a", true, true),
        ("read_file", "read_*(*)", "a", true, true),
    ]);
    let open = permissions(&["deny list_dir(./**)"]);
    assert_eq!(
        open.judge("list_dir", &json("{}")).permission,
        Permission::Deny,
        "the workspace is the default"
    );
    let strange = permissions(&["allow read_file(**)", "default ask"]);
    assert_eq!(strange.judge("read_file", &json(r#"{"path":7}"#)).permission, Permission::Ask);
    assert_eq!(
        permissions(&["deny read_file(a)"]).judge("read_file", &json("[]")).permission,
        Permission::Deny
    );
}

#[test]
fn other_tools_are_matched_by_their_arguments() {
    let rules = permissions(&["allow mcp__github__*", "deny mcp__github__delete(*\"name\":\"main\"*)"]);
    let judge = |tool, input| shown(&rules.judge(tool, &json(input)));
    assert_eq!(judge("mcp__github__list", "{}"), "Allow allow mcp__github__*");
    assert_eq!(
        judge("mcp__github__delete", r#"{ "x": 1, "name" : "m\u0061in" }"#),
        "Deny deny mcp__github__delete(*\"name\":\"main\"*)"
    );
    assert_eq!(judge("mcp__gitlab__list", "{}"), FREE);
    let agents = permissions(&["ask Task"]);
    assert_eq!(shown(&agents.judge("spawn_agent", &json("{}"))), "Ask ask Task");
}

#[test]
fn a_tool_of_any_origin_gets_the_permissions_of_its_subject() {
    let of = |name: &str, subject| ToolSpec { subject, ..tool(name, Access::Anything, false) };
    let tools = [
        of("mcp__box__exec", ToolSubject::command("cmd")),
        of("mcp__disk__save", ToolSubject::written_path("file")),
        of("mcp__net__get", ToolSubject::Url { field: "address".to_owned() }),
        of(
            "mcp__tty__type",
            ToolSubject::Typed { fields: vec!["keys".to_owned()], keys: None, submit: None },
        ),
    ];
    let rules = [
        "deny shell(rm *)",
        "deny mcp__disk__save(./secrets/**)",
        "allow mcp__box__exec(cargo *)",
        "allow mcp__disk__save(src/**)",
        "allow mcp__net__get(https://docs.example/*)",
        "default ask",
    ];
    let permissions = Permissions::new(&policy(&rules), Path::new(WORKSPACE), &tools).expect("patterns");
    for (tool, input, expected) in [
        ("mcp__box__exec", r#"{"cmd":"cargo test && cargo fmt"}"#, Permission::Allow),
        ("mcp__box__exec", r#"{"cmd":"cargo test; rm -rf ."}"#, Permission::Deny),
        ("mcp__box__exec", r#"{"cmd":"cargo test $(curl x)"}"#, Permission::Ask),
        ("mcp__disk__save", r#"{"file":"src/../secrets/key"}"#, Permission::Deny),
        ("mcp__disk__save", r#"{"file":"./src/lib.rs"}"#, Permission::Allow),
        ("mcp__disk__save", r#"{"file":"Cargo.toml"}"#, Permission::Ask),
        ("mcp__net__get", r#"{"address":"https://docs.example/a"}"#, Permission::Allow),
        ("mcp__net__get", r#"{"address":"http://docs.example/a"}"#, Permission::Ask),
        ("mcp__tty__type", r#"{"keys":"rm -r x"}"#, Permission::Deny),
        ("mcp__tty__type", r#"{"wait":"rm -r x"}"#, Permission::Ask),
    ] {
        assert_eq!(permissions.judge(tool, &json(input)).permission, expected, "{tool} {input}");
    }
}

#[test]
fn the_narrowest_pattern_names_the_call() {
    let narrow = |tool, input: &str| narrowest_pattern(&identity(tool), &json(input), Path::new(WORKSPACE));
    assert_eq!(narrow("shell", r#"{"command":" git push origin main "}"#), "shell(git push origin main)");
    assert_eq!(narrow("shell", r#"{"command":"ls *.rs"}"#), "shell(ls \\*.rs)");
    assert_eq!(narrow("write_file", r#"{"path":"./src/../src/a.rs","content":"x"}"#), "write_file(src/a.rs)");
    assert_eq!(narrow("write_file", r#"{"path":"a.rs"}"#), "write_file(./a.rs)");
    assert_eq!(narrow("write_file", r#"{"path":"/etc/x"}"#), "write_file(/etc/x)");
    assert_eq!(narrow("list_dir", "{}"), "list_dir(.)");
    assert_eq!(narrow("mcp__a", r#"{ "b": 1, "a": "*" }"#), "mcp__a({\"a\":\"\\*\",\"b\":1})");
}

#[test]
fn patterns_that_cannot_be_read_say_so_and_open_nothing() {
    for text in ["", " ", "(rm)", "shell(rm", "shell(rm) x", "she ll", "rm)"] {
        assert!(Pattern::parse(text).expect_err(text).to_string().contains(&format!("`{text}`")));
    }
    // What looks like more than one, or is in quotes, would match no call.
    for text in [
        "shell(rm *), shell(mv *)",
        "shell(rm *); shell(mv *)",
        "shell('rm *')",
        "shell(\"rm *\")",
        "shell(\u{201c}rm *\u{201d})",
        "write_file(.env),write_file(b)",
    ] {
        assert!(Pattern::parse(text).expect_err(text).to_string().contains("write"), "{text}");
    }
    for text in ["shell(python -c 'print(1); print(2)')", "shell('my program')", "shell(sh -c '* ; rm')"] {
        Pattern::parse(text).expect(text);
    }
    for kind in ["allow", "approved"] {
        let homeless = policy(&[&format!("{kind} read_file(~/x)")]);
        let error =
            Permissions::new(&homeless, Path::new(WORKSPACE), &known_tools()).expect_err("no home folder");
        assert!(error.to_string().contains("absolute path"), "{error}");
    }
    let frozen =
        |rules: &[&str]| Permissions::of_policy(&policy(rules), Path::new(WORKSPACE), &known_tools());
    let judge = |rules: &[&str], tool| shown(&frozen(rules).judge(tool, &command("ls")));
    assert_eq!(judge(&["deny shell(rm"], "shell"), "Deny deny shell(rm");
    assert_eq!(judge(&["deny shell(rm"], "other"), FREE);
    assert_eq!(judge(&["ask (rm)"], "other"), "Ask ask (rm)");
    assert_eq!(judge(&["allow shell(ls", "default ask"], "shell"), "Ask - by default");
    assert!(frozen(&["allow shell(ls"]).is_open());
    assert!(!frozen(&["deny ("]).is_open());
    assert!(!frozen(&["default ask"]).is_open());
}

#[test]
fn a_hook_s_pattern_is_touched_by_any_part_of_a_call() {
    let touches = |pattern: &str, tool, input: &Json| {
        Pattern::parse(pattern).expect(pattern).touches(&identity(tool), input, Path::new(WORKSPACE))
    };
    assert!(touches("Bash(git *)", "shell", &command("cd x && A=b git log")));
    assert!(touches("Bash(git *)", "shell", &command("echo 'a")));
    assert!(touches("Bash(git *)", "shell", &command("$X")));
    assert!(!touches("Bash(git *)", "shell", &command("ls")));
    assert!(!touches("Bash(git *)", "read_file", &command("git log")));
    assert!(touches("Edit(*.ts)", "edit_file", &json(r#"{"path":"src/a.ts"}"#)));
    assert!(!touches("Edit(*.ts)", "write_file", &json(r#"{"path":"src/a.ts"}"#)));
}

#[test]
fn a_command_line_at_a_terminal_is_judged_as_the_shell_judges_it() {
    let start = |line: &str| json(&serde_json::json!({"action": "start", "command": line}).to_string());
    let send = |text: &str| json(&serde_json::json!({"action": "send", "text": text}).to_string());
    let read = json(r#"{"action":"read"}"#);
    let judge = |rules: &[&str], input: &Json| shown(&permissions(rules).judge("terminal", input));

    let own = ["allow terminal(python3 *)", "deny terminal(rm *)", "default ask"];
    assert_eq!(judge(&own, &start("python3 -i")), "Allow allow terminal(python3 *)");
    assert_eq!(judge(&own, &start("python3 && gdb")), "Ask - by default");
    assert_eq!(judge(&own, &start("cd / && rm -rf x")), "Deny deny terminal(rm *)");
    assert_eq!(judge(&own, &send("rm -rf x")), "Deny deny terminal(rm *)");
    assert_eq!(judge(&own, &read), "Ask - by default");
    assert_eq!(judge(&["allow terminal"], &send("print(1)")), "Allow allow terminal");

    // What is denied to the shell, or needs approval there, is denied or needs approval here too; what is allowed
    // there isn't allowed here.
    let shells = ["deny shell(rm *)", "ask Bash(git push *)", "allow shell(ls *)", "default ask"];
    assert_eq!(judge(&shells, &start("rm -rf x")), "Deny deny shell(rm *)");
    assert_eq!(judge(&shells, &send("rm -rf x")), "Deny deny shell(rm *)");
    assert_eq!(judge(&shells, &start("git push origin")), "Ask ask Bash(git push *)");
    assert_eq!(judge(&shells, &start("ls -l")), "Ask - by default");
    assert_eq!(judge(&["deny shell", "allow terminal"], &start("ls")), "Deny deny shell");
    assert_eq!(judge(&["deny shell", "allow terminal"], &read), "Allow allow terminal");

    // What is no text may be anything. Without any text there is nothing to run, and the tool refuses the call.
    assert_eq!(judge(&["deny terminal(rm *)"], &json(r#"{"command":["rm"]}"#)), "Deny deny terminal(rm *)");
    assert_eq!(judge(&["deny terminal(rm *)"], &json(r#"{"command":"rm x"}"#)), "Deny deny terminal(rm *)");
    assert_eq!(
        judge(&["deny terminal(rm *)", "default ask"], &json(r#"{"action":"start"}"#)),
        "Ask - by default"
    );
    // What a terminal makes of it isn't its text: keys that edit it, and text that later text continues.
    let allowed = ["allow terminal(echo *)", "deny shell(rm *)"];
    for (input, expected) in [
        (r#"{"action":"send","text":"echo a"}"#, "Allow allow terminal(echo *)"),
        (r#"{"action":"send","text":"echo a","keys":["Enter"]}"#, "Allow allow terminal(echo *)"),
        (r#"{"action":"send","keys":["Ctrl-C"]}"#, "Allow - by default"),
        (r#"{"action":"send","text":"echo a\rrm x"}"#, "Deny deny shell(rm *)"),
        (r#"{"action":"send","text":"echo a #\rtouch b"}"#, "Allow - by default"),
        (r#"{"action":"send","text":"echo rm x","keys":["Home","Alt-d","Enter"]}"#, "Ask -"),
        (r#"{"action":"send","keys":["r","m"," ","x","Enter"]}"#, "Ask -"),
        (r#"{"action":"send","text":"r","submit":false}"#, "Ask -"),
        (r#"{"action":"send","text":"r","keys":["Ctrl-D"]}"#, "Ask -"),
        (r#"{"action":"send","text":"echo \\"}"#, "Ask -"),
    ] {
        assert!(
            judge(&allowed, &json(input)).starts_with(expected),
            "{input}: {}",
            judge(&allowed, &json(input))
        );
    }
    assert_eq!(
        narrowest_pattern(&identity("terminal"), &start("git status"), Path::new(WORKSPACE)),
        "terminal(git status)"
    );
}
