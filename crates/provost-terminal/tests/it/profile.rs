//! Shipped profiles, and the errors for invalid ones.

use expect_test::{Expect, expect};
use provost_terminal::{Profile, ProgramChannel, ProgramKind, StreamFormat};

#[test]
fn every_shipped_profile_can_be_read_and_agents_say_how_they_end() {
    let names: Vec<String> = Profile::shipped().into_iter().map(|profile| profile.name).collect();
    let expected = [
        "codex",
        "claude",
        "gemini",
        "qwen",
        "opencode",
        "aider",
        "pi",
        "copilot",
        "cline",
        "vibe",
        "openhands",
        "generic",
        "gateway",
    ];
    assert_eq!(names, expected);
    for profile in Profile::shipped() {
        assert!(!profile.quit.is_empty(), "{} doesn't say how it is asked to end", profile.name);
        let is_plain = ["generic", "gateway"].contains(&profile.name.as_str());
        assert_eq!(profile.kind == ProgramKind::Plain, is_plain);
    }
    assert!(Profile::named("unknown").is_none());
}

#[test]
fn a_profile_names_its_channels_in_their_order_and_the_terminal_is_always_one() {
    let of =
        |profile: &Profile| profile.channels.iter().map(ProgramChannel::name).collect::<Vec<_>>().join(" ");
    let shipped = |name: &str| of(&Profile::named(name).expect("a profile"));
    assert_eq!(shipped("codex"), "codex-app-server terminal");
    for name in ["gemini", "qwen", "opencode"] {
        assert_eq!(shipped(name), "acp terminal");
    }
    assert_eq!(shipped("claude"), "stream-json terminal");
    assert_eq!(shipped("aider"), "terminal");
    let parsed = |channels: &str| Profile::parse("mine", &format!("kind = \"agent\"\n{channels}"));
    let text = "[[channels]]\nformat = \"terminal\"\n[[channels]]\nformat = \"acp\"\nargs = [\"acp\"]\n";
    assert_eq!(of(&parsed(text).expect("a profile")), "terminal acp");
    let error = parsed("[[channels]]\nformat = \"terminal\"\nargs = [\"-x\"]\n").unwrap_err().to_string();
    assert!(error.contains("the terminal has a format only"), "{error}");
    assert!(parsed("[[channels]]\nformat = \"telegraph\"\n").is_err());
}

#[test]
fn options_that_have_no_effect_on_a_stream_are_named() {
    let codex = Profile::named("codex").expect("a profile");
    let stream = codex.streams().next().expect("a stream");
    assert_eq!(stream.format, StreamFormat::CodexAppServer);
    let taken = |args: &[&str]| {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        stream.taken(&args).map(|taken| taken.join(" "))
    };
    assert_eq!(taken(&["--no-daemon", "-m", "gpt-x"]).as_deref(), Ok("-c model=gpt-x"));
    assert_eq!(taken(&["--model=gpt-x=1", "-c", "a=b"]).as_deref(), Ok("-c model=gpt-x=1 -c a=b"));
    assert_eq!(taken(&["-s", "read-only"]).as_deref(), Ok("-c sandbox_mode=read-only"));
    assert_eq!(taken(&["--no-daemon", "--search"]), Err("--search".to_owned()));
    assert_eq!(taken(&["fix it"]), Err("fix it".to_owned()));
    assert_eq!(taken(&["--model"]), Err("--model".to_owned()));
    assert_eq!(taken(&["--no-daemon=yes"]), Err("--no-daemon=yes".to_owned()));
}

#[test]
fn programs_are_known_by_name_path_and_wrapper() {
    let of = |program: &str, args: &[&str]| {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        Profile::for_command(program, &args).name
    };
    assert_eq!(of("codex", &[]), "codex");
    assert_eq!(of("/opt/x/node_modules/.bin/codex", &["--no-daemon"]), "codex");
    assert_eq!(of("npx", &["--yes", "@google/gemini-cli@latest"]), "gemini");
    assert_eq!(of("node", &["/x/node_modules/@qwen-code/qwen-code/cli.js"]), "qwen");
    assert_eq!(of("uvx", &["aider-chat"]), "aider");
    assert_eq!(of("env", &["A=1", "claude"]), "claude");
    assert_eq!(of("bash", &["-c", "codex"]), "generic");
    assert_eq!(of("grep", &["codex"]), "generic");
}

#[test]
fn programs_are_known_by_their_screens() {
    let codex = Profile::named("codex").expect("shipped");
    assert!(codex.is_on(&["│ >_ OpenAI Codex (v1.2.3)  │".to_owned()]));
    assert!(!codex.is_on(&["ordinary text".to_owned()]));
}

#[test]
fn a_profile_of_ones_own_inherits_and_says_what_is_wrong_with_its_line() {
    let own = Profile::parse("mine", "kind = \"plain\"\ninherits = \"generic\"\n").expect("a profile");
    assert_eq!(own.name, "mine");
    wrong(
        "kind = \"plain\"\ncolour = 1\n",
        expect![[r#"
            profile `mine`: TOML parse error at line 2, column 1
              |
            2 | colour = 1
              | ^^^^^^
            unknown field `colour`, expected one of `name`, `kind`, `version`, `tested`, `inherits`, `settle_ms`, `submit_ms`, `stalled_ms`, `program`, `start`, `resume`, `channels`, `gateway`, `sandbox`, `keys`, `quit`, `composer`, `said`, `rules`

        "#]],
    );
    wrong(
        "kind = \"plain\"\ninherits = \"unknown\"\n",
        expect![[r#"
            profile `mine` inherits from `unknown`, which isn't one of: codex, claude, gemini, qwen, opencode, aider, pi, copilot, cline, vibe, openhands, generic, gateway
        "#]],
    );
    wrong(
        "kind = \"plain\"\n\n[[rules]]\nid = \"a\"\nevent = \"approval\"\nregion = \"cursor\"\nrows = ['(']\n",
        expect![[r#"
            profile `mine`, line 3: rule `a`: `(` is no pattern: regex parse error:
                (
                ^
            error: unclosed group
        "#]],
    );
    wrong(
        "kind = \"plain\"\n[[rules]]\nid = \"a\"\nevent = \"approval\"\nregion = \"cursor\"\nrows = []\n",
        expect![[r#"
            profile `mine`, line 2: rule `a`: it has no rows
        "#]],
    );
}

fn wrong(text: &str, expected: Expect) {
    let error = Profile::parse("mine", text).expect_err("it is wrong");
    expected.assert_eq(&format!("{error}\n"));
}
