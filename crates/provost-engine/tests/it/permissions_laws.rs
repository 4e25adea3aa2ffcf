//! Laws of permissions: order, round trips, bounds, and that real shells run nothing that the scan doesn't find.

use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use provost_engine::{Permissions, narrowest_pattern};
use provost_event::{Json, Permission};

use crate::permissions::{WORKSPACE, command, permissions, policy};
use crate::permissions_attempts::Shells;
use crate::world::{identity, known_tools};

/// Pieces that scripts are put together from.
const PIECES: &[&str] = &[
    "v",
    " ",
    " ",
    "\n",
    ";",
    "&",
    "&&",
    "|",
    "(",
    ")",
    "{",
    "}",
    "'",
    "\"",
    "\\",
    "`",
    "$",
    "$(",
    "${x:-",
    "$((",
    "))",
    "<<E",
    "\nE\n",
    "<<'E'",
    "<<-E",
    "#",
    "$'",
    "if ",
    "then ",
    "fi",
    "case a in a) ",
    ";; ",
    "esac",
    "for x in ",
    "do ",
    "done",
    "!",
    "<(",
    ">",
    "2>&1",
    "=",
    "a",
    "1",
    "\t",
    "*",
    "\\\n",
    "eval ",
    "time ",
    "x=",
    "[[ ",
    " -eq 0 ]]",
    "x[",
    "]",
    "test -v ",
    "let ",
    "env ",
    "find . -exec ",
    " \\;",
    "xargs ",
    "<<<",
    "-",
];

/// Constructs that may contain a command.
const PAIRS: &[(&str, &str)] = &[
    ("`", "`"),
    ("$(", ")"),
    ("(", ")"),
    ("\"", "\""),
    ("'", "'"),
    ("\"$(", ")\""),
    ("${x:-", "}"),
    ("{ ", ";}"),
    ("if a; then ", "; fi"),
    ("a || if ", "; then a; fi"),
    ("case a in a) ", ";; esac"),
    ("a <<E\n", "\nE\n"),
    ("a <<'E'\n", "\nE\n"),
    ("a $'", "'"),
    ("a # ", "\n"),
    ("a $(cat <<E\n", "\nE\n)"),
    ("a; ", " a"),
    ("f() { ", "; }; f"),
    ("a <(", ")"),
    ("for x in ", "; do a; done"),
    ("x=", " a"),
    ("$((", "))"),
    ("$((x['$(", ")']))"),
    ("${x['$(", ")0']}"),
    ("test -v 'x[$(", ")0]'"),
    ("[[ 'x[$(", ")0]' -eq 0 ]]"),
    ("let 'x[$(", ")0]'"),
    ("x='y[$(", ")0]'; echo $((x))"),
    ("for x in 'y[$(", ")0]'; do echo $((x)); done"),
    ("i=1; echo $((i + ", "))"),
    ("x=(", ")"),
    ("x=([", "]=1)"),
    ("cat < <(", ")"),
    ("echo > >(", ")"),
    ("cat <<< \"$(", ")\""),
    ("sh <<E\n", "\nE\n"),
    ("cat <<E\n$((x[$(", ")]))\nE\n"),
    ("env ", ""),
    ("nice -n 5 ", ""),
    ("timeout 5 ", " a"),
    ("xargs ", " < /dev/null"),
    ("find . -maxdepth 0 -exec ", " \\;"),
    ("sh -c '", "'"),
    ("eval '", "'"),
    ("trap '", "' EXIT"),
    ("for x in '", "'; do $x; done"),
    ("x='", "'; $x"),
    ("printf -v 'x[$(", ")0]' a"),
    ("read 'x[$(", ")0]' <<< a"),
    ("${x:", "}"),
    ("{", ",a}"),
    ("set -- ", "; \"$@\""),
];

/// Programs that run a command in their arguments.
const RUNNERS: &[(&str, &str)] = &[
    ("env ", ""),
    ("env -i PATH=\"$PATH\" ", ""),
    ("env -S '", "'"),
    ("env -u A ", " a"),
    ("nice ", ""),
    ("nice -n5 ", ""),
    ("nice -n {5,", "} a"),
    ("timeout 5 ", ""),
    ("timeout -k 1 5 ", " a"),
    ("timeout $(echo 5 ", ") a"),
    ("stdbuf -oL ", ""),
    ("setsid -w ", ""),
    ("ionice -c 3 ", ""),
    ("chrt -o 0 ", ""),
    ("taskset -c 0 ", ""),
    ("prlimit --nofile=200 ", ""),
    ("choom -n 0 -- ", ""),
    ("setarch x86_64 ", ""),
    ("linux64 ", ""),
    ("setpriv --nnp ", ""),
    ("unshare ", ""),
    ("flock . ", ""),
    ("flock g -c '", "'"),
    ("flock ", " a"),
    ("script -qc '", "' /dev/null"),
    ("su root -c '", "'"),
    ("su -s ../bin/", " root -c a"),
    ("su --shell=", " root"),
    ("runuser -u root -- ", ""),
    ("runuser -s ../bin/", " root"),
    ("sg root '", "'"),
    ("newgrp root <<< '", "'"),
    ("newgrp root <<E\n", "\nE\n"),
    ("capsh --shell=../bin/", " -- -c a"),
    ("capsh -- -c '", "'"),
    ("ssh-agent ", ""),
    ("dbus-run-session -- ", ""),
    ("fakeroot ", ""),
    ("dpkg-architecture -c '", "'"),
    ("find . -maxdepth 0 -exec ", " {} \\;"),
    ("find f -exec env ", " +"),
    ("xargs -a f ", ""),
    ("xargs -n1 ", " < f"),
    ("sh -c '", "'"),
    ("sh -c \"", "\""),
    ("bash -c '\"$@\"' a ", ""),
    ("command ", ""),
    ("exec ", ""),
    ("eval ", ""),
    ("git -c alias.y='!", "' y"),
    ("awk 'BEGIN{system(\"", "\")}'"),
    ("sed '1e ", "' f"),
    ("echo ", " | sh"),
    ("echo a | ", ""),
];

/// Words that `xargs` replaces by `v`; some of them are parts of the programs around them.
const REPLACED: &[&str] = &[
    "a", "M", "%", "{}", "sh", "env", "nice", "e", "5", "-n", "-c", "c 3", "root", "'", ".", "echo", "oL",
    "-",
];

/// Forms in which `xargs` is told what to replace.
const REPLACES: &[(&str, &str)] = &[
    ("xargs -I '", "' "),
    ("xargs -I'", "' "),
    ("xargs -i'", "' "),
    ("xargs --replace='", "' "),
    ("xargs -tI '", "' "),
    ("xargs -n1 -I '", "' "),
    ("xargs -L 1 -I '", "' -- "),
    ("env xargs -I '", "' "),
    ("xargs -I{} -I '", "' "),
];

/// `v` behind programs that run it, or in the place of a word that `xargs` replaces in them.
fn run_by_others() -> impl Strategy<Value = String> {
    let runners = prop::collection::vec(select(RUNNERS), 1..5);
    let last = select(&["a", "v", "a a", "echo a"][..]);
    (runners, select(REPLACED), select(REPLACES), last, any::<bool>()).prop_map(
        |(runners, word, (before, behind), last, replaces)| {
            let wrap = |inner: &str| {
                runners.iter().fold(inner.to_owned(), |inner, (open, close)| format!("{open}{inner}{close}"))
            };
            match replaces {
                true if last == "v" => format!("echo v | {before}{word}{behind}{}", wrap(word)),
                true => format!("echo v | {before}{word}{behind}{}", wrap(last)),
                false => wrap("v"),
            }
        },
    )
}

/// `v` somewhere in the middle, with a few pieces that may spoil it.
fn wrapped() -> impl Strategy<Value = String> {
    let pairs = prop::collection::vec(select(PAIRS), 0..5);
    let pieces = prop::collection::vec((any::<prop::sample::Index>(), select(PIECES)), 0..3);
    let core = prop_oneof![1 => Just("v".to_owned()), 1 => run_by_others()];
    (core, pairs, pieces).prop_map(|(core, pairs, pieces)| {
        let mut script = pairs.iter().fold(core, |inner, (open, close)| format!("{open}{inner}{close}"));
        for (place, piece) in pieces {
            // All of it is ASCII.
            script.insert_str(place.index(script.len() + 1), piece);
        }
        script
    })
}

fn script() -> impl Strategy<Value = String> {
    prop::collection::vec(select(PIECES), 1..14).prop_map(|pieces| pieces.concat())
}

fn rule() -> impl Strategy<Value = String> {
    let kinds = select(&["allow", "ask", "deny", "approved"][..]);
    let patterns = select(
        &[
            "shell",
            "shell(v)",
            "shell(v *)",
            "shell(a *)",
            "shell(* a)",
            "*",
            "shell(x=*)",
            "shell(* v *)",
            "shell(v",
            "shell(a > *)",
            "read_file",
        ][..],
    );
    (kinds, patterns).prop_map(|(kind, pattern)| format!("{kind} {pattern}"))
}

fn rules() -> impl Strategy<Value = Vec<String>> {
    let default = select(&["default ask", "default deny", "allow nothing"][..]);
    (prop::collection::vec(rule(), 0..5), default).prop_map(|(mut rules, last)| {
        rules.push(last.to_owned());
        rules
    })
}

fn judged(rules: &[String], input: &Json) -> Permission {
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    Permissions::of_policy(&policy(&rules), Path::new(WORKSPACE), &known_tools())
        .judge("shell", input)
        .permission
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        max_global_rejects: u32::MAX,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_new_pattern_moves_a_ruling_only_its_own_way(rules in rules(), more in rule(), script in script()) {
        let input = command(&script);
        let before = judged(&rules, &input);
        let mut with = rules;
        with.push(more.clone());
        let after = judged(&with, &input);
        // If all else is denied, an `ask` allows more.
        prop_assume!(!(more.starts_with("ask") && with.iter().any(|rule| rule == "default deny")));
        let stricter = more.starts_with("deny") || more.starts_with("ask");
        prop_assert!(if stricter { after >= before } else { after <= before }, "{before:?} to {after:?}");
    }

    #[test]
    fn the_narrowest_pattern_covers_this_command_and_no_other(script in script(), other in script()) {
        let pattern = narrowest_pattern(&identity("shell"), &command(&script), Path::new(WORKSPACE));
        let covers = |text: &str| {
            let rules = ["default ask", &format!("approved {pattern}")];
            permissions(&rules).judge("shell", &command(text)).permission == Permission::Allow
        };
        let known = permissions(&["deny shell(nothing)"]).judge("shell", &command(&script)).permission == Permission::Allow;
        prop_assert_eq!(covers(&script), known);
        for changed in [format!("{script} q"), format!("q{script}"), format!("{script}; q"), format!("q | {script}")] {
            prop_assert!(!covers(&changed) || runs_nothing_new(&changed), "{} covers {}", pattern, changed);
        }
        prop_assert!(known || !covers(&other) || other.trim() == script.trim());
    }

    #[test]
    fn the_narrowest_pattern_of_a_path_covers_it_alone(path in "[a-c~*./\\\\ ]{1,12}", other in "[a-c~*./\\\\ ]{1,12}") {
        let input = |path: &str| Json::of(&serde_json::json!({ "path": path })).expect("JSON");
        let pattern = narrowest_pattern(&identity("read_file"), &input(&path), Path::new(WORKSPACE));
        let rules = permissions(&["default ask", &format!("approved {pattern}")]);
        prop_assert_eq!(rules.judge("read_file", &input(&path)).permission, Permission::Allow, "{}", pattern);
        let same = pattern == narrowest_pattern(&identity("read_file"), &input(&other), Path::new(WORKSPACE));
        let covers = rules.judge("read_file", &input(&other)).permission == Permission::Allow;
        prop_assert_eq!(covers, same, "{} and {}", pattern, other);
    }
}

/// Whether `q` isn't run: the addition became part of a comment or of the body of a here-document.
fn runs_nothing_new(script: &str) -> bool {
    permissions(&["deny shell(*q*)"]).judge("shell", &command(script)).permission == Permission::Allow
}

/// Judges within `limit`; on a busy machine one of three attempts is enough.
fn soon(permissions: &Permissions, input: &Json, limit: Duration) -> Permission {
    let mut fastest = Duration::MAX;
    let mut permission = Permission::Allow;
    for _ in 0..3 {
        let start = Instant::now();
        permission = permissions.judge("shell", input).permission;
        fastest = fastest.min(start.elapsed());
        if fastest < limit {
            break;
        }
    }
    assert!(fastest < limit, "{fastest:?}");
    permission
}

#[test]
fn no_command_takes_long_or_deep() {
    let permissions =
        permissions(&["deny shell(*a*b*c*)", "deny shell(rm -rf *)", "ask shell(git *)", "allow shell(* *)"]);
    let pieces = [
        "(",
        "$(",
        "${x:-",
        "$((",
        "`",
        "\"",
        "'",
        ";",
        "a;",
        "a|",
        "<<E ",
        "{ ",
        "if ",
        "case a in a) ",
        "\\",
        "$'",
        "\n",
        "a ",
        "$x ",
        "\"$(",
        "sudo ",
        "sh -c ",
        "eval ",
        "a=(",
        "<(",
        "f()",
        "#",
        "*",
        "sudo --a ",
        "env -S ",
        "a\n",
    ];
    for piece in pieces {
        for bytes in [100_000, 16 * 1024] {
            let text: String = piece.chars().cycle().take(bytes).collect();
            let got = soon(&permissions, &command(&text), Duration::from_secs(1));
            assert!(bytes == 16 * 1024 || got == Permission::Ask, "{piece:?} is longer than what is read");
        }
    }
    let nested = format!("{}rm -rf x{}", "$(".repeat(40), ")".repeat(40));
    assert_eq!(soon(&permissions, &command(&nested), Duration::from_secs(1)), Permission::Deny);
    let deeper = format!("{}rm -rf x{}", "$(".repeat(400), ")".repeat(400));
    assert_eq!(soon(&permissions, &command(&deeper), Duration::from_secs(1)), Permission::Ask);
    let edge = |bytes: usize| format!("echo {}", "x".repeat(bytes - 5));
    let judge = |text: &str| permissions.judge("shell", &command(text)).permission;
    assert_eq!((judge(&edge(16 * 1024)), judge(&edge(16 * 1024 + 1))), (Permission::Allow, Permission::Ask));
}

/// The programs in the generated scripts, all but `v`.
const ALLOWED: &[&str] = &[
    "a",
    "echo",
    "cat",
    "test",
    "[[",
    "let",
    "env",
    "nice",
    "timeout",
    "xargs",
    "find",
    "sh",
    "eval",
    "trap",
    "printf",
    "read",
    "set",
    "f",
    "tee",
    "time",
    "x=1",
    "bash",
    "stdbuf",
    "setsid",
    "ionice",
    "chrt",
    "taskset",
    "prlimit",
    "choom",
    "setarch",
    "linux64",
    "setpriv",
    "unshare",
    "flock",
    "script",
    "su",
    "runuser",
    "sg",
    "newgrp",
    "capsh",
    "ssh-agent",
    "dbus-run-session",
    "fakeroot",
    "dpkg-architecture",
    "command",
    "exec",
    "git",
    "awk",
    "sed",
];

#[test]
fn real_shells_run_nothing_that_is_not_found() {
    let shells = Shells::new();
    let names: Vec<&str> =
        ["/bin/bash", "/bin/sh"].into_iter().filter(|shell| Path::new(shell).exists()).collect();
    assert!(names.iter().all(|shell| shells.runs_v(shell, "v") && !shells.runs_v(shell, "a")));
    let denied = permissions(&["deny shell(v *)"]);
    let allowed = ALLOWED.iter().map(|name| format!("allow shell({name} *)"));
    let allowed: Vec<String> = allowed.chain(["default ask".to_owned()]).collect();
    let allowed = permissions(&allowed.iter().map(String::as_str).collect::<Vec<_>>());
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = u8::try_from(number("PROVOST_SHELL_SEED").unwrap_or(0)).expect("a seed below 256");
    let source = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), source);
    let (mut free, mut covered, mut ran, mut missed) = (0, 0, 0, Vec::new());
    let cases = number("PROVOST_SHELL_CASES").unwrap_or(250);
    for _ in 0..cases {
        let script =
            proptest::strategy::ValueTree::current(&wrapped().new_tree(&mut runner).expect("a script"));
        let made =
            |list: &Permissions| list.judge("shell", &command(&script)).permission == Permission::Allow;
        let (by_denied, by_allowed) = (made(&denied), made(&allowed));
        free += usize::from(by_denied);
        covered += usize::from(by_allowed);
        // Some of the scripts that aren't allowed are run all the same, to show that there is something to find.
        if !by_denied && !by_allowed && !script.len().is_multiple_of(8) {
            continue;
        }
        let runs = |shell: &&&str| shells.runs_v(shell, &script);
        match names.iter().find(runs) {
            Some(shell) if by_denied || by_allowed => {
                missed.push((shell, by_denied, by_allowed, script.clone()))
            }
            Some(_) => ran += 1,
            None => {}
        }
    }
    eprintln!(
        "{cases} scripts: {free} free of the denied, {covered} covered, {ran} of the others seen to run it"
    );
    assert!(missed.is_empty(), "run and not found: {missed:#?}");
    assert!(free > 0 && covered > 0 && ran > 0, "{free}, {covered}, {ran} of {cases}: nothing is tested");
}
