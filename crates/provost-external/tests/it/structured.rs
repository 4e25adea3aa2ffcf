//! Programs driven by structured streams: the same entries as at a terminal.

use provost_event::{Channel, ConversationEntry, Entry, ErrorClass, GateEntry, Outcome, Seq, Usage};

use crate::stage::{COMPLETED, blocks_once, no, yes};
use crate::structured_stage::{ALL, Speaks, TYPED, Talk, talking};

fn failure(outcome: Outcome) -> (ErrorClass, String) {
    match outcome {
        Outcome::Failed { class, message } => (class, message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_goal_is_told_and_what_is_said_is_the_answer() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        assert_eq!(talk.run("say It is\nsay done ä€.", talk.policy()).await, COMPLETED, "{speaks:?}");
        assert_eq!(talk.prompts(), ["say It is|say done ä€."], "{speaks:?}");
        let told = talk.stage.told().await.join("\n");
        assert!(told.contains(r#"answer: [Text("done ä€.")]"#), "{told}");
        let events = talk.noted().await;
        let kinds: Vec<_> = events.iter().map(|event| event.split([':', ' ']).next().unwrap()).collect();
        assert_eq!(kinds, ["started", "was", "done", "ended"], "{events:#?}");
        assert!(
            talk.usage().await.iter().all(|usage| (usage.input_tokens, usage.output_tokens) == (100, 20))
        );
        assert_eq!(talk.stage.left_running(), 0, "{speaks:?}");
    }
}

#[tokio::test]
async fn an_approved_command_is_run_once() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        let run = talk.start("ask echo run >> made", talk.policy()).await;
        talk.stage.answers(Seq::START, yes()).await;
        assert_eq!(run.outcome().await, COMPLETED, "{:#?}", talk.stage.told().await);
        assert_eq!(talk.stage.file("made").as_deref(), Some("run\n"), "{speaks:?}");
        let told = talk.stage.told().await.join("\n");
        assert!(
            told.contains("asks: echo run >> made")
                && told.contains(if speaks == Speaks::Codex {
                    "was answered: accept"
                } else {
                    "was answered: allow"
                }),
            "{told}"
        );
        assert!(told.contains(r#"Text("exit status 0")"#), "{told}");
    }
}

#[tokio::test]
async fn a_denied_command_is_not_run_and_the_reason_is_told() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        let run = talk.start("ask touch made", talk.policy()).await;
        talk.stage.answers(Seq::START, no("not today")).await;
        assert_eq!(run.outcome().await, COMPLETED, "{:#?}", talk.stage.told().await);
        assert_eq!(talk.stage.file("made"), None, "{speaks:?}");
        let told = talk.stage.told().await.join("\n");
        let answers = ["reject_once", "deny", "decline"];
        assert!(answers.iter().any(|answer| told.contains(&format!("was answered: {answer}"))), "{told}");
        // If a refusal has no text of its own, the reason is the next prompt.
        let heard = talk.heard().join("\n");
        assert!(
            heard.contains("not today") || told.contains("refused: Denied by a person: not today"),
            "{heard}\n{told}"
        );
        assert_eq!(talk.prompts().len(), if speaks == Speaks::Acp { 2 } else { 1 }, "{heard}");
    }
}

#[tokio::test]
async fn permissions_decide_before_a_question() {
    for (rule, is_made) in [("shell(touch *)", true), ("shell(rm *)", false)] {
        let talk = Talk::new(Speaks::Claude);
        let policy = talk.policy_with(
            |_| {},
            |agent| {
                let rules = vec![rule.to_owned()];
                if is_made { agent.permissions.allow = rules } else { agent.permissions.deny = rules }
            },
        );
        let goal = if is_made { "ask touch made" } else { "ask rm -rf made" };
        assert_eq!(talk.run(goal, policy).await, COMPLETED);
        assert_eq!(talk.stage.file("made").is_some(), is_made);
        let log = talk.stage.log().await;
        assert!(
            !log.iter().any(|record| matches!(record.entry, Entry::Gate(GateEntry::ApprovalRequested(_))))
        );
    }
}

#[tokio::test]
async fn what_stop_hooks_want_is_the_next_prompt_of_the_same_session() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        let policy = talk.policy_with(|_| {}, |agent| agent.stop_hooks.push(blocks_once("the tests fail")));
        assert_eq!(talk.run("say One.", policy).await, Outcome::VERIFIED, "{:#?}", talk.stage.told().await);
        let heard = talk.heard();
        assert!(
            heard.iter().any(|line| line.starts_with("prompt 2: ") && line.contains("the tests fail")),
            "{heard:#?}"
        );
        // Usage since the session's beginning is charged once.
        let expected = Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() };
        assert_eq!(talk.usage().await, [expected, expected], "{speaks:?}");
        assert_eq!(talk.stage.left_running(), 0, "{speaks:?}");
    }
}

#[tokio::test]
async fn what_a_program_says_it_has_spent_is_what_its_answers_cost() {
    let talk = Talk::new(Speaks::Claude);
    let policy = talk.policy_with(|_| {}, |agent| agent.stop_hooks.push(blocks_once("once more")));
    assert_eq!(talk.run("say One.", policy).await, Outcome::VERIFIED);
    let log = talk.stage.log().await;
    let costs: Vec<_> = log
        .iter()
        .filter_map(|record| match &record.entry {
            Entry::Conversation(ConversationEntry::AssistantMessage(message)) => {
                Some(message.cost.map(|cost| cost.0))
            }
            _ => None,
        })
        .collect();
    assert_eq!(costs, [Some(1_000), Some(1_000)]);
}

#[tokio::test]
async fn a_program_that_reports_a_failure_fails_its_run_in_its_words() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        let (class, message) = failure(talk.run("fail", talk.policy()).await);
        assert_eq!(class, ErrorClass::Program);
        assert!(message.contains("the provider is broken"), "{message}");
        assert!(talk.noted().await.iter().any(|event| event == "error: the provider is broken"));
        assert_eq!(talk.stage.left_running(), 0, "{speaks:?}");
    }
}

#[tokio::test]
async fn a_program_that_ends_before_it_is_done_fails_with_its_final_summary_but_no_secret() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        let (class, message) = failure(talk.run("crash", talk.policy()).await);
        assert_eq!(class, ErrorClass::Program);
        assert!(message.contains("exit status 3") && message.contains("out of cheese"), "{message}");
        assert!(!message.contains("xxxxx"), "{message}");
    }
}

#[tokio::test]
async fn lines_that_are_not_of_its_format_are_passed_over() {
    for speaks in TYPED {
        let talk = Talk::new(speaks);
        assert_eq!(talk.run("babble", talk.policy()).await, COMPLETED, "{:#?}", talk.stage.told().await);
        let told = talk.stage.told().await.join("\n");
        assert!(told.contains(r#"Text("heard")"#), "{told}");
        assert!(told.contains("a line of 17000000 bytes"), "{told}");
    }
}

#[tokio::test]
async fn a_program_that_shows_no_sign_of_life_for_too_long_is_ended() {
    for speaks in TYPED {
        for goal in ["hang", "deaf"] {
            let talk = Talk::new(speaks);
            let policy = talk.policy_with(|external| external.idle_ms = Some(300), |_| {});
            let outcome = talk.run(goal, policy).await;
            assert!(matches!(outcome, Outcome::Paused { .. }), "{outcome:?}");
            assert_eq!(talk.stage.left_running(), 0);
        }
    }
}

#[tokio::test]
async fn one_that_is_told_to_stop_is_interrupted_and_gone() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        let run = talk.start("hang", talk.policy()).await;
        talk.is_told().await;
        run.cancel.cancel();
        let outcome = run.outcome().await;
        assert!(!matches!(outcome, Outcome::Completed { .. } | Outcome::Failed { .. }), "{outcome:?}");
        let wanted = match speaks {
            Speaks::Codex => "turn/interrupt",
            Speaks::Acp => "session/cancel",
            Speaks::Claude => "interrupt",
        };
        assert!(talk.heard().iter().any(|line| line == wanted), "{:#?}", talk.heard());
        assert_eq!(talk.stage.left_running(), 0, "{speaks:?}");
    }
}

/// Runs until the goal was given, and crashes.
async fn dies_at_work(talk: &Talk, goal: &str) {
    let run = talk.start(goal, talk.policy()).await;
    talk.is_told().await;
    talk.hangs().await;
    run.run.abort();
    assert!(run.run.await.is_err());
}

#[tokio::test]
async fn a_session_is_taken_up_again_after_a_crash() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        dies_at_work(&talk, "hang").await;
        assert_eq!(talking(talk.open().await).outcome().await, COMPLETED, "{:#?}", talk.stage.told().await);
        let heard = talk.heard();
        assert!(heard.iter().any(|line| line.starts_with("prompt 2: You were interrupted.")), "{heard:#?}");
        let told = talk.stage.told().await.join("\n");
        assert!(told.contains(r#"Text("Nothing to do.")"#) && !told.contains("OLD"), "{told}");
        assert_eq!(talk.stage.left_running(), 0, "{speaks:?}");
    }
}

#[tokio::test]
async fn one_whose_session_is_gone_is_told_from_the_beginning() {
    for speaks in [Speaks::Codex, Speaks::Acp] {
        let talk = Talk::new(speaks);
        dies_at_work(&talk, "hang-once").await;
        for entry in std::fs::read_dir(talk.stage.workspace()).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("session-") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        assert_eq!(talking(talk.open().await).outcome().await, COMPLETED, "{:#?}", talk.stage.told().await);
        let prompts = talk.prompts();
        let last = prompts.last().unwrap();
        assert!(last.ends_with("|hang-once"), "{prompts:#?}");
        let told = talk.stage.told().await.join("\n");
        assert!(told.contains("its earlier session is gone") && told.contains(r#"Text("again")"#), "{told}");
    }
}

#[tokio::test]
async fn a_big_prompt_reaches_it_whole() {
    for speaks in ALL {
        let talk = Talk::new(speaks);
        let goal = format!("{}\nsay read", "a line that says nothing\n".repeat(5_000));
        assert_eq!(talk.run(&goal, talk.policy()).await, COMPLETED);
        assert_eq!(talk.prompts()[0].len(), goal.trim().len(), "{speaks:?}");
    }
}

#[tokio::test]
async fn a_stream_that_is_wanted_where_there_is_none_is_an_error() {
    let talk = Talk::new(Speaks::Acp);
    let policy = talk.policy_with(
        |external| (external.channel, external.profile) = (Channel::Structured, "generic".to_owned()),
        |_| {},
    );
    let (class, message) = failure(talk.run("say hello", policy).await);
    assert_eq!(class, ErrorClass::Program);
    assert!(message.contains("profile `generic` names no structured stream"), "{message}");
    assert!(talk.heard().is_empty());
}

#[tokio::test]
async fn a_question_that_times_out_leaves_nothing_running() {
    let talk = Talk::new(Speaks::Claude);
    let run = talk.start("ask touch made", talk.policy()).await;
    talk.stage.sees(|entry| matches!(entry, Entry::Gate(GateEntry::ApprovalRequested(_)))).await;
    run.cancel.cancel();
    run.outcome().await;
    assert_eq!(talk.stage.file("made"), None);
    assert_eq!(talk.stage.left_running(), 0);
}
