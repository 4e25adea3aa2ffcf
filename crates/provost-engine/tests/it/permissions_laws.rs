//! Laws of permissions: order, round trips, bounds, and that real shells run nothing that isn't found.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::select;
use provost_engine::{Permissions, narrowest_pattern};
use provost_event::{Json, Permission};

use crate::permissions::{WORKSPACE, command, permissions, policy};

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
];

/// What a command may be put in.
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
];

/// `v` somewhere in the middle, with a few pieces that may spoil it.
fn wrapped() -> impl Strategy<Value = String> {
    let pairs = prop::collection::vec(select(PAIRS), 0..5);
    let pieces = prop::collection::vec((any::<prop::sample::Index>(), select(PIECES)), 0..3);
    (pairs, pieces).prop_map(|(pairs, pieces)| {
        let mut script =
            pairs.iter().fold("v".to_owned(), |inner, (open, close)| format!("{open}{inner}{close}"));
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
    let otherwise = select(&["otherwise ask", "otherwise deny", "allow nothing"][..]);
    (prop::collection::vec(rule(), 0..5), otherwise).prop_map(|(mut rules, last)| {
        rules.push(last.to_owned());
        rules
    })
}

fn judged(rules: &[String], input: &Json) -> Permission {
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    Permissions::of_policy(&policy(&rules), Path::new(WORKSPACE)).judge("shell", input).permission
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
        // Where all else is denied, an `ask` opens.
        prop_assume!(!(more.starts_with("ask") && with.iter().any(|rule| rule == "otherwise deny")));
        let stricter = more.starts_with("deny") || more.starts_with("ask");
        prop_assert!(if stricter { after >= before } else { after <= before }, "{before:?} to {after:?}");
    }

    #[test]
    fn the_narrowest_pattern_covers_this_command_and_no_other(script in script(), other in script()) {
        let pattern = narrowest_pattern("shell", &command(&script), Path::new(WORKSPACE));
        let covers = |text: &str| {
            let rules = ["otherwise ask", &format!("approved {pattern}")];
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
        let pattern = narrowest_pattern("read_file", &input(&path), Path::new(WORKSPACE));
        let rules = permissions(&["otherwise ask", &format!("approved {pattern}")]);
        prop_assert_eq!(rules.judge("read_file", &input(&path)).permission, Permission::Allow, "{}", pattern);
        let same = pattern == narrowest_pattern("read_file", &input(&other), Path::new(WORKSPACE));
        let covers = rules.judge("read_file", &input(&other)).permission == Permission::Allow;
        prop_assert_eq!(covers, same, "{} and {}", pattern, other);
    }
}

/// Whether `q` isn't run: what was added fell into a comment or the body of a here-document.
fn runs_nothing_new(script: &str) -> bool {
    permissions(&["deny shell(*q*)"]).judge("shell", &command(script)).permission == Permission::Allow
}

/// Judges within `limit`; on a busy machine once out of three is enough.
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

/// Runs `script` in a real shell in which `v` leaves a mark; says whether it did.
fn runs_v(shell: &str, script: &str, folder: &Path) -> bool {
    let mark = folder.join("mark");
    _ = fs::remove_file(&mark);
    let cwd = folder.join("cwd");
    _ = fs::remove_dir_all(&cwd);
    fs::create_dir(&cwd).expect("a folder");
    let mut child = Command::new(shell)
        .args(["-c", script])
        .current_dir(&cwd)
        .env_clear()
        .env("PATH", folder.join("bin"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    child.wait().expect("a status");
    mark.exists()
}

#[test]
fn real_shells_run_nothing_that_is_not_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    let v = bin.join("v");
    fs::write(&v, format!("#!/bin/sh\n: > '{}'\n", folder.path().join("mark").display())).expect("a script");
    fs::set_permissions(&v, fs::Permissions::from_mode(0o755)).expect("a mode");
    let shells: Vec<&str> =
        ["/bin/bash", "/bin/sh"].into_iter().filter(|shell| Path::new(shell).exists()).collect();
    assert!(
        shells.iter().all(|shell| runs_v(shell, "v", folder.path()) && !runs_v(shell, "a", folder.path()))
    );
    let permissions = permissions(&["deny shell(v *)"]);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut found, mut missed) = (0, Vec::new());
    let cases = std::env::var("PROVOST_SHELL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(250);
    for _ in 0..cases {
        let script =
            proptest::strategy::ValueTree::current(&wrapped().new_tree(&mut runner).expect("a script"));
        if permissions.judge("shell", &command(&script)).permission != Permission::Allow {
            found += 1;
            continue;
        }
        missed.extend(
            shells
                .iter()
                .filter(|shell| runs_v(shell, &script, folder.path()))
                .map(|shell| (*shell, script.clone())),
        );
    }
    assert!(missed.is_empty(), "run and not found: {missed:#?}");
    assert!(found > 0 && found < cases, "{found} of {cases}: nothing is tested");
}
