//! Typed channels: which one is taken, what their questions are about, and how their prompts end.

use std::time::{Duration, Instant};

use provost_event::{AgentPolicy, Entry, ErrorClass, GateEntry, Outcome, PauseReason, RunPolicy, Seq};

use crate::stage::{COMPLETED, no, yes};
use crate::structured_stage::{ALL, Speaks, TYPED, Talk};

/// The calls that needed an approval, as text.
async fn asked(talk: &Talk) -> Vec<String> {
    let log = talk.stage.log().await;
    let asked = log.iter().filter_map(|record| match &record.entry {
        Entry::Gate(GateEntry::ApprovalRequested(asked)) => {
            Some(format!("{} {}", asked.tool, asked.input.text()))
        }
        _ => None,
    });
    asked.collect()
}

fn allowing(talk: &Talk, rule: &str) -> RunPolicy {
    talk.policy_with(|_| {}, |agent| agent.permissions.allow = vec![rule.to_owned()])
}

#[tokio::test]
async fn a_change_is_decided_by_the_rules_for_each_of_its_files() {
    for speaks in TYPED {
        for goal in [r#"change ["ok.txt"]"#, r#"change ["ok.txt", "ok2.txt"]"#] {
            let talk = Talk::new(speaks);
            assert_eq!(talk.run(goal, allowing(&talk, "edit_file(ok*.txt)")).await, COMPLETED);
            assert!(talk.stage.file("ok.txt").is_some(), "{speaks:?} {goal}");
            assert_eq!(asked(&talk).await, [] as [&str; 0], "{speaks:?} {goal}");
        }

        let talk = Talk::new(speaks);
        let denying = |agent: &mut AgentPolicy| {
            agent.permissions.allow = vec!["edit_file".to_owned()];
            agent.permissions.deny = vec!["edit_file(secret.txt)".to_owned()];
        };
        let policy = talk.policy_with(|_| {}, denying);
        assert_eq!(talk.run(r#"change ["ok.txt", "secret.txt"]"#, policy).await, COMPLETED);
        assert!(talk.stage.file("secret.txt").is_none() && talk.stage.file("ok.txt").is_none());
        assert_eq!(asked(&talk).await, [] as [&str; 0], "{speaks:?}");
    }
}

#[tokio::test]
async fn a_change_of_several_files_not_all_of_which_a_rule_allows_is_put_to_a_person() {
    for speaks in TYPED {
        let cases = [
            ("edit_file(ok.txt)", "secret.txt", "apply_patch "),
            // Files elsewhere, and names that no one can read, are for no rule.
            ("edit_file", "../out.txt", "consent "),
            ("edit_file", "secret.txt\\u202e", "consent "),
            ("edit_file", "secret.txt\\nmore.txt", "consent "),
        ];
        for (rule, name, tool) in cases {
            let talk = Talk::new(speaks);
            let goal = format!(r#"change ["ok.txt", "{name}"]"#);
            let run = talk.start(&goal, allowing(&talk, rule)).await;
            talk.stage.answers(Seq::START, no("not both")).await;
            assert_eq!(run.outcome().await, COMPLETED);
            assert!(talk.stage.file("ok.txt").is_none(), "{speaks:?} {name}");
            let asked = asked(&talk).await.join("\n");
            let part = name.split('\\').next().unwrap();
            assert!(asked.starts_with(tool) && asked.contains("ok.txt") && asked.contains(part), "{asked}");
        }
    }
}

#[tokio::test]
async fn a_name_with_an_unseen_character_is_put_to_a_person_who_sees_it() {
    for speaks in TYPED {
        for (name, shown) in
            [("ok.txt\\u202e", "\\u{202e}"), ("ok.txt\\u001b[2K", "\\u{1b}"), ("ok.txt\\n", "\\n")]
        {
            let talk = Talk::new(speaks);
            let goal = format!(r#"change ["{name}"]"#);
            let run = talk.start(&goal, allowing(&talk, "edit_file(*)")).await;
            talk.stage.answers(Seq::START, no("no")).await;
            assert_eq!(run.outcome().await, COMPLETED, "{speaks:?} {name}");
            let asked = asked(&talk).await.join("\n");
            assert!(asked.starts_with("consent "), "{asked}");
            assert!(asked.replace("\\\\", "\\").contains(shown), "{shown}: {asked}");
        }
    }
}

#[tokio::test]
async fn two_open_questions_with_the_same_id_are_both_refused() {
    for speaks in TYPED {
        let talk = Talk::new(speaks);
        let run = talk.start("twice touch made", talk.policy()).await;
        talk.stage.answers(Seq::START, yes()).await;
        assert_eq!(run.outcome().await, COMPLETED, "{:#?}", talk.stage.told().await);
        let heard = talk.heard().join("\n");
        assert!(!heard.contains("answer accept") && !heard.contains("allow_once"), "{heard}");
        assert!(heard.contains("answer decline") || heard.contains("'cancelled'"), "{heard}");
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_continued() {
    let talk = Talk::new(Speaks::Acp);
    assert_eq!(talk.run("cut", talk.policy()).await, COMPLETED, "{:#?}", talk.stage.told().await);
    let prompts = talk.prompts();
    assert!(prompts.len() == 2 && prompts[1].contains("cut off"), "{prompts:#?}");
}

#[tokio::test]
async fn a_model_that_refuses_has_not_completed_its_task() {
    for speaks in TYPED {
        let talk = Talk::new(speaks);
        let outcome = talk.run("decline", talk.policy()).await;
        let Outcome::Paused { why: PauseReason::Model(trouble) } = &outcome else { panic!("{outcome:?}") };
        assert_eq!(trouble.class, ErrorClass::Refusal);
    }
}

#[tokio::test]
async fn a_failure_is_of_the_class_that_its_status_says() {
    for speaks in TYPED {
        let talk = Talk::new(speaks);
        let outcome = talk.run("status 401", talk.policy()).await;
        let Outcome::Paused { why: PauseReason::Model(trouble) } = &outcome else { panic!("{outcome:?}") };
        assert_eq!(trouble.class, ErrorClass::Unauthorized);
        assert!(trouble.message.contains("the other side isn't well"), "{trouble:?}");
    }
}

#[tokio::test]
async fn what_it_reports_of_its_work_is_in_the_log() {
    for speaks in TYPED {
        let talk = Talk::new(speaks);
        assert_eq!(talk.run("plan", talk.policy()).await, COMPLETED);
        let noted = talk.noted().await;
        for wanted in
            ["its plan: 1 of 2 steps done", "failed command: make it", "change: a.txt [a.txt +2 -1]"]
        {
            assert!(noted.iter().any(|event| event == wanted), "{speaks:?}, {wanted}: {noted:#?}");
        }
    }
}

#[tokio::test]
async fn one_that_hears_nothing_any_more_is_ended_when_it_is_told_to_stop() {
    for speaks in TYPED {
        let talk = Talk::new(speaks);
        let run = talk.start("deaf", talk.policy()).await;
        talk.hangs().await;
        let begun = Instant::now();
        run.cancel.cancel();
        run.outcome().await;
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(talk.stage.left_running(), 0, "{speaks:?}");
    }
}

#[tokio::test]
async fn what_it_reports_to_have_used_binds_the_run() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        let mut policy =
            talk.policy_with(|_| {}, |agent| agent.stop_hooks.push(crate::stage::blocks_once("more")));
        policy.budget.tokens = Some(100);
        let outcome = talk.run("say One.", policy).await;
        assert!(matches!(outcome, Outcome::BudgetExhausted(_)), "{outcome:?}");
        assert_eq!(talk.prompts().len(), 1, "{speaks:?}");
    }
}

#[tokio::test]
async fn a_program_that_does_not_know_the_stream_is_driven_at_the_terminal() {
    let talk = Talk::new(Speaks::Acp);
    let policy = talk.policy_with(|external| external.profile = "speaks-old".to_owned(), |_| {});
    assert_eq!(talk.run("hello", policy).await, COMPLETED, "{:#?}", talk.stage.told().await);
    assert_eq!(talk.heard(), ["start at a terminal", "line hello"]);
    let noted = talk.noted().await.join("\n");
    assert!(
        noted.contains("structured stream can't be used") && noted.contains("unknown option: old"),
        "{noted}"
    );
    assert_eq!(talk.stage.left_running(), 0);
}

#[tokio::test]
async fn a_program_without_a_login_suspends_and_is_not_tried_at_the_terminal() {
    let talk = Talk::new(Speaks::Codex);
    let policy = talk.policy_with(|external| external.profile = "speaks-locked".to_owned(), |_| {});
    let outcome = talk.run("hello", policy).await;
    let Outcome::Paused { why: PauseReason::Model(trouble) } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(trouble.class, ErrorClass::Unauthorized);
    assert!(trouble.message.contains("log in with the program itself first"), "{trouble:?}");
    assert_eq!(talk.prompts(), [] as [&str; 0]);
}

#[tokio::test]
async fn an_argument_without_effect_on_the_stream_leads_to_the_terminal_or_is_an_error() {
    let talk = Talk::new(Speaks::Acp);
    let with = |channel| {
        talk.policy_with(
            |external| {
                external.profile = "speaks-options".to_owned();
                external.args.push("--bold".to_owned());
                external.channel = channel;
            },
            |_| {},
        )
    };
    let outcome = talk.run("hello", with(provost_event::Channel::Structured)).await;
    let Outcome::Failed { message, .. } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("`--bold` has no effect on the structured stream"), "{message}");

    let talk = Talk::new(Speaks::Acp);
    let policy = talk.policy_with(
        |external| {
            external.profile = "speaks-options".to_owned();
            external.args.push("--bold".to_owned());
        },
        |_| {},
    );
    assert_eq!(talk.run("hello", policy).await, COMPLETED, "{:#?}", talk.stage.told().await);
    assert_eq!(talk.heard(), ["start at a terminal", "line hello"]);
}
