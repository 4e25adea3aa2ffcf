//! Which questions a hook is asked.

use serde_json::json;

use crate::stage::{Stage, claude, own, shown};

fn wants(event: &str, matcher: &str) -> bool {
    let mut hook = claude(event, "exit 0");
    hook.matcher = Some(matcher.to_owned());
    Stage::new().wants(&hook)
}

#[test]
fn matchers_are_held_against_what_the_event_is_about() {
    for (event, matcher) in [
        ("PreToolUse", "Bash"),
        ("PreToolUse", "shell"),
        ("PreToolUse", "Edit|Bash"),
        ("PreToolUse", "Ba.*"),
        ("PermissionRequest", "Bash"),
        ("PostToolUse", "Bash"),
        ("PostToolUseFailure", "Bash"),
        ("post_tool_call", "Bash"),
        ("SessionStart", "startup|resume"),
        ("PreCompact", "auto"),
        ("PostCompact", "auto"),
        ("SessionEnd", "other"),
        ("Notification", "permission_prompt"),
        ("StopFailure", "overloaded"),
        ("Stop", "nothing like it"),
        ("UserPromptSubmit", "nothing like it"),
        ("PostToolBatch", "nothing like it"),
    ] {
        assert!(wants(event, matcher), "{event} {matcher}");
    }
    for (event, matcher) in [
        ("PreToolUse", "bash"),
        ("PreToolUse", "Edit|Write"),
        ("PreToolUse", "^(?!Bash$)"),
        ("SessionStart", "resume"),
        ("PreCompact", "manual"),
        ("SessionEnd", "logout"),
        ("Notification", "idle_prompt"),
        ("StopFailure", "rate_limit|billing_error"),
    ] {
        assert!(!wants(event, matcher), "{event} {matcher}");
    }
}

#[test]
fn a_sub_agents_tool_answers_to_its_old_and_its_new_name() {
    let mut stage = Stage::new();
    for tool in ["Agent", "spawn_agent"] {
        stage.tool = tool;
        for matcher in ["Task", "Agent"] {
            let mut hook = claude("PreToolUse", "exit 0");
            hook.matcher = Some(matcher.to_owned());
            assert!(stage.wants(&hook), "{tool} {matcher}");
        }
    }
}

#[tokio::test]
async fn a_matcher_that_makes_no_sense_is_no_answer_rather_than_silence() {
    let stage = Stage::new();
    for mut hook in [claude("PreToolUse", "exit 0"), own("pre_tool_call", "exit 0")] {
        hook.matcher = Some("Bash(".to_owned());
        assert!(stage.wants(&hook));
        let answer = shown(&stage.ask(&hook).await);
        assert!(answer.starts_with("failed: the matcher `Bash(` can't be read"), "{answer}");
    }
}

#[tokio::test]
async fn conditions_look_at_the_calls_arguments() {
    let mut stage = Stage::new();
    let conditioned = |event: &str, condition: &str| {
        let mut hook = claude(event, "exit 0");
        hook.condition = Some(condition.to_owned());
        hook
    };
    for (condition, wanted) in [
        ("Bash(rm *)", true),
        ("shell(rm *)", true),
        ("Bash", true),
        ("Bash(git *)", false),
        ("Edit(*.ts)", false),
    ] {
        assert_eq!(stage.wants(&conditioned("PreToolUse", condition)), wanted, "{condition}");
        assert_eq!(stage.wants(&conditioned("PostToolUse", condition)), wanted, "{condition}");
        for event in ["Stop", "SessionStart", "PostToolBatch", "Notification"] {
            assert!(!stage.wants(&conditioned(event, condition)), "{event} {condition}");
        }
    }
    for (command, wanted) in
        [("cd x && FOO=1 rm -r y", true), ("echo $(rm x)", true), ("ls; ls", false), ("rm 'unclosed", true)]
    {
        stage.input = json!({ "command": command });
        assert_eq!(stage.wants(&conditioned("PreToolUse", "Bash(rm *)")), wanted, "{command}");
    }
    let broken = conditioned("PreToolUse", "Bash(rm");
    assert!(stage.wants(&broken));
    let answer = shown(&stage.ask(&broken).await);
    assert!(answer.starts_with("failed: its `if` can't be read"), "{answer}");
}
