//! Agents look up the parts of their conversation that were left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use expect_test::expect;
use proptest::prelude::*;
use provost_backend::EmbeddedBackend;
use provost_event::{
    Access, ConversationEntry, Entry, Json, LifecycleEntry, ModelEntry, RunId, StepMode, ToolEntry, ToolSpec,
    ToolStatus,
};
use provost_harness::hooks::*;
use provost_harness::{ImageData, Recall, Tool, ToolContext, ToolOutput, ToolRegistry};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::control_stage::{Bench, RUN as CONTROLLED};
use super::embedding::open_when_free;
use super::recall_stage::{Fetch, Seen, Stage, body, context, fetch, log, number_after, recall, results};

const RUN: RunId = RunId::from_entropy(31);
const OTHER: RunId = RunId::from_entropy(32);
/// After every entry of a test's log.
const NOW: u64 = 100_000;

/// Fetches four pages, then recalls the first as soon as it sees only a line of it, page by page.
fn reads_back(bytes: usize) -> impl Fn(&Seen) -> Vec<(&'static str, Value)> + Send + Sync + 'static {
    move |seen| {
        let last = seen.last();
        let recalled = seen.results.iter().any(|(tool, _)| tool == "recall");
        if seen.answers_before < 4 {
            fetch(u64::from(seen.answers_before), bytes)
        } else if let Some(offset) = number_after(last, "go on with offset ").filter(|_| recalled) {
            let entry = number_after(last.lines().next().unwrap_or_default(), "entry ");
            vec![("recall", json!({ "entry": entry, "offset": offset }))]
        } else if recalled {
            Vec::new()
        } else {
            let line = seen.results.iter().find(|(_, output)| output.starts_with("[left out: "));
            let (_, line) = line.expect("the first result is a line by now");
            vec![("recall", json!({ "entry": number_after(line, "entry ") }))]
        }
    }
}

#[tokio::test]
async fn a_result_that_was_trimmed_is_recalled_to_the_byte() {
    let stage = Stage::new(reads_back(9_000));
    let backend = stage.run(RUN, "the goal").await;
    let log = log(&*backend, RUN).await;
    assert!(
        log.iter().any(|record| matches!(record.entry, Entry::Conversation(ConversationEntry::Compacted(_))))
    );
    let pages = results(&log, "recall").into_iter().map(|(_, page)| page.output).collect::<Vec<_>>();
    assert!(pages.len() > 1, "it takes several pages");
    assert!(pages.iter().all(|page| page.len() <= 4 * 1024), "a page is small");
    let whole = pages.iter().map(|page| body(page)).collect::<String>();
    assert_eq!(whole, Fetch::result(0, 9_000));
}

#[tokio::test]
async fn a_result_that_was_cut_from_the_first_is_recalled_with_the_way_to_the_whole() {
    let stage = Stage::new(|seen: &Seen| {
        let way = seen.last().split("with path \"").nth(1).and_then(|rest| rest.split('"').next());
        match (seen.answers_before, way) {
            (5, Some(path)) => vec![("read_file", json!({ "path": path, "offset": 4_000, "limit": 2 }))],
            (5.., _) => Vec::new(),
            _ => reads_back(300 * 1024)(seen),
        }
    });
    let backend = stage.run(RUN, "the goal").await;
    let log = log(&*backend, RUN).await;
    let (entry, first) = results(&log, "fetch").remove(0);
    assert!(first.whole.is_some() && first.output.len() < 64 * 1024);
    let (_, page) = results(&log, "recall").remove(0);
    assert!(page.output.starts_with(&format!("entry {entry}, result of `fetch`:\npage 0, line 0")));
    let (_, lines) = results(&log, "read_file").remove(0);
    assert_eq!(lines.status, ToolStatus::Ok);
    assert!(lines.output.contains("page 0, line 3999: an Otter"), "{}", lines.output);
}

/// A run of four short results.
async fn short_run() -> (Stage, Arc<EmbeddedBackend>) {
    let stage = Stage::new(|seen: &Seen| match seen.answers_before {
        number @ 0..4 => fetch(u64::from(number), 40),
        4 => vec![("recall", json!({ "search": "line 0" }))],
        5 => vec![("recall", json!({ "search": "LINE 0" }))],
        _ => Vec::new(),
    });
    let backend = stage.run(RUN, "find the Heron's nest\nsoon").await;
    (stage, backend)
}

#[tokio::test]
async fn a_search_tells_where_who_and_what_the_newest_first_and_never_finds_itself() {
    let (_stage, backend) = short_run().await;
    let found = results(&log(&*backend, RUN).await, "recall").remove(1).1.output;
    expect![[r#"
        found: LINE 0
        entry 20, result of `fetch`, byte 8: page 3, line 0: an Otter; ünïcode 🦦
        entry 15, result of `fetch`, byte 8: page 2, line 0: an Otter; ünïcode 🦦
        entry 10, result of `fetch`, byte 8: page 1, line 0: an Otter; ünïcode 🦦
        entry 5, result of `fetch`, byte 8: page 0, line 0: an Otter; ünïcode 🦦
        [that is all; `entry` shows one as it was]"#]]
    .assert_eq(&found);
    let context = context(&backend, RUN, NOW);
    let found = recall(&context, json!({ "search": "\"n\":3" })).await.text;
    expect![[r#"
        found: "n":3
        entry 18, said by you, call of `fetch`, byte 19: {"n":3,"bytes":40}
        [that is all; `entry` shows one as it was]"#]]
    .assert_eq(&found);
    let found = recall(&context, json!({ "search": "heron" })).await.text;
    expect![[r#"
        found: heron
        entry 1, the goal, byte 9: find the Heron's nest soon
        [that is all; `entry` shows one as it was]"#]]
    .assert_eq(&found);
}

#[tokio::test]
async fn an_entry_is_shown_with_who_said_it_and_what_stands_around_it() {
    let (_stage, backend) = short_run().await;
    let context = context(&backend, RUN, NOW);
    let page = recall(&context, json!({ "entry": 1 })).await.text;
    expect![[r#"
        entry 1, the goal:
        find the Heron's nest
        soon
        [bytes 0-26 of 26; after it entry 3]"#]]
    .assert_eq(&page);
    let page = recall(&context, json!({ "entry": 3, "offset": 10 })).await.text;
    expect![[r#"
        entry 3, said by you:
        fetch`] {"n":0,"bytes":40}
        [bytes 10-36 of 36; before it entry 1; after it entry 5]"#]]
    .assert_eq(&page);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_what_to_do() {
    let (_stage, backend) = short_run().await;
    let context = context(&backend, RUN, NOW);
    let mut said = String::new();
    for input in [
        json!({}),
        json!({ "entry": 5, "search": "x" }),
        json!({ "search": " " }),
        json!({ "search": "x".repeat(501) }),
        json!({ "entry": 5, "before": 4 }),
        json!({ "search": "x", "offset": 4 }),
        json!({ "entry": "five" }),
        json!({ "number": 5 }),
        json!([5]),
    ] {
        let output = recall(&context, input).await;
        assert_eq!(output.status, ToolStatus::Rejected, "{}", output.text);
        said.push_str(&output.text);
        said.push('\n');
    }
    for input in [
        json!({ "entry": 2 }),
        json!({ "entry": 4_000 }),
        json!({ "entry": 0 }),
        json!({ "entry": 5, "offset": 99 }),
    ] {
        let output = recall(&context, input).await;
        assert_eq!(output.status, ToolStatus::Error, "{}", output.text);
        said.push_str(&output.text);
        said.push('\n');
    }
    expect![[r#"
        give `entry`, the number in a line such as `[left out: … entry 431 …]`, or `search`, a text to find
        give `entry` or `search`, not both: search first, then show an entry
        `search` is empty: give the text to find
        `search` has more than 500 bytes: give a shorter piece of the text
        `before` goes with `search`; pages of an entry are turned with `offset`
        `offset` goes with `entry`; a search goes on with `before`
        the arguments of recall don't fit: invalid type: string "five", expected u64
        the arguments of recall don't fit: unknown field `number`, expected one of `entry`, `offset`, `search`, `before`, `bytes_max`
        the arguments of recall don't fit: they must be one JSON object
        entry 2 has nothing that you have been shown or said before this answer; the nearest are 1 and 3
        entry 4000 has nothing that you have been shown or said before this answer; the nearest is 30
        entry 0 has nothing that you have been shown or said before this answer; the nearest is 1
        entry 5 has only 41 bytes: nothing is at 99
    "#]].assert_eq(&said);
}

#[tokio::test]
async fn another_sessions_log_stays_closed() {
    let (stage, _) = short_run().await;
    let backend = stage.run(OTHER, "look at the lynx").await;
    for (run, own, others) in [(RUN, "heron", "lynx"), (OTHER, "lynx", "heron")] {
        let context = context(&backend, run, NOW);
        let own = recall(&context, json!({ "search": own })).await.text;
        assert!(own.contains("entry 1, the goal"), "{own}");
        let others = recall(&context, json!({ "search": others })).await.text;
        assert!(others.starts_with("found nowhere"), "{others}");
    }
}

#[tokio::test]
async fn what_the_model_was_not_shown_is_neither_found_nor_shown() {
    let picky = from_fn::<OnPromptSubmit>(|input| {
        if input.text.contains("badger") {
            OnPromptSubmitAction::Cancel("no weasels".into())
        } else {
            OnPromptSubmitAction::Continue
        }
    });
    let suspended = AtomicBool::new(false);
    let suspended = from_fn::<PreLlmRequest>(move |_| match suspended.swap(true, Ordering::SeqCst) {
        false => PreLlmRequestAction::Yield,
        true => PreLlmRequestAction::Continue,
    });
    let script =
        "answers: [{thinking: 'a marten thinks', tools: [{act: {n: 1}}]}, {text: 'well'}, {text: 'yes'}]";
    let mut stage = Bench::new(script).on("picky", picky).on("stoat", suspended).start().await;
    stage.goes().await;
    stage.run.control("ann").say(0, "the badger is 42").await.unwrap();
    stage.run.control("ann").say(0, "the vole is 43").await.unwrap();
    stage.resumed().await;
    let log = stage.log().await;
    let kept = log.iter().map(|record| record.to_line().unwrap()).collect::<String>();
    let now = context(&stage.backend, CONTROLLED, NOW);
    for hidden in ["badger", "weasels", "stoat", "marten", "script:test", "picky"] {
        assert!(kept.contains(hidden), "the log has `{hidden}`");
        let found = recall(&now, json!({ "search": hidden })).await.text;
        assert!(found.starts_with("found nowhere"), "{found}");
    }
    let found = recall(&now, json!({ "search": "vole" })).await.text;
    assert!(found.contains("said by ann"), "{found}");
    for record in &log {
        let output = recall(&now, json!({ "entry": record.seq.0 })).await;
        let is_shown = matches!(
            record.entry,
            Entry::Lifecycle(LifecycleEntry::SessionStarted(_))
                | Entry::Conversation(
                    ConversationEntry::UserMessage(_)
                        | ConversationEntry::SystemItem(_)
                        | ConversationEntry::AssistantMessage(_)
                )
                | Entry::Tool(ToolEntry::Finished(_))
        ) && log.iter().any(|later| {
            later.seq > record.seq && matches!(later.entry, Entry::Model(ModelEntry::Called(_)))
        });
        assert_eq!(output.status == ToolStatus::Ok, is_shown, "{record:?}: {}", output.text);
    }
}

#[tokio::test]
async fn what_came_after_the_model_was_asked_is_not_there_yet() {
    let (_stage, backend) = short_run().await;
    // From a call of the second answer, whose model call is entry 7: its own answer and parallel calls aren't
    // visible.
    let context = context(&backend, RUN, 9);
    assert_eq!(recall(&context, json!({ "entry": 5 })).await.status, ToolStatus::Ok);
    for entry in [8, 10] {
        let output = recall(&context, json!({ "entry": entry })).await;
        assert_eq!(output.status, ToolStatus::Error, "{}", output.text);
    }
    let found = recall(&context, json!({ "search": "page" })).await.text;
    assert!(found.contains("page 0") && !found.contains("page 1"), "{found}");
}

#[tokio::test]
async fn a_search_goes_on_where_its_answer_was_full_and_misses_none() {
    let stage = Stage::new(|seen: &Seen| match seen.answers_before {
        number @ 0..60 => fetch(u64::from(number), 400),
        _ => Vec::new(),
    });
    let mut policy = stage.policy();
    policy.agent.limits.turns_max = 100;
    policy.agent.limits.stuck_turns = 0;
    policy.agent.model.window_tokens = None;
    let (harness, backend) = stage.harness();
    let mut run = harness.start(RUN, "the goal", policy).await.unwrap();
    run.run(&CancellationToken::new()).await.unwrap();
    let fetched = results(&log(&*backend, RUN).await, "fetch");
    for bytes_max in [0, 1_024, 8_192, 1_000_000] {
        let mut context = context(&backend, RUN, NOW);
        let mut before = NOW;
        let mut entries: Vec<u64> = Vec::new();
        loop {
            let asked = json!({ "search": "otter", "before": before, "bytes_max": bytes_max });
            let answer = recall(&context, asked).await.text;
            assert!(
                answer.len() <= usize::min(usize::max(bytes_max, 1_024), 8_192),
                "{} bytes",
                answer.len()
            );
            let entry = |line: &str| line.strip_prefix("entry ")?.split(',').next()?.parse::<u64>().ok();
            entries.extend(answer.lines().filter_map(entry));
            match number_after(&answer, "with before ") {
                Some(next) => before = next,
                None => break,
            }
        }
        let expected = fetched.iter().rev().map(|(entry, _)| entry.0).collect::<Vec<_>>();
        assert_eq!(entries, expected);
        context.output_bytes_max = 1_000;
        let small = recall(&context, json!({ "search": "otter", "bytes_max": bytes_max })).await.text;
        assert!(small.len() <= 1_000 && small.contains("entry "), "{small}");
    }
}

/// Fetches enough pages that the older ones need a summary, which it never writes.
fn fetches(count: u32) -> impl Fn(&Seen) -> Vec<(&'static str, Value)> + Send + Sync + 'static {
    move |seen| match seen.answers_before {
        number if number < count => fetch(u64::from(number), 9_000),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn what_a_summary_stands_for_is_recalled_and_so_is_the_summary() {
    let stage = Stage::new(fetches(8));
    let backend = stage.run(RUN, &format!("{}seek the heron", "a long goal; ".repeat(500))).await;
    let log = log(&*backend, RUN).await;
    let summary = log.iter().rev().find_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::Compacted(compacted)) if !compacted.through.is_start() => {
            Some((record.seq, compacted.clone()))
        }
        _ => None,
    });
    let (at, summary) = summary.expect("a summary");
    assert!(summary.summary.contains("`recall` shows what was left out"), "{}", summary.summary);
    let (first, result) = results(&log, "fetch").remove(0);
    assert!(first < summary.through);
    let context = context(&backend, RUN, NOW);
    for (entry, original) in [(first, result.output), (at, summary.summary.clone())] {
        let (mut whole, mut offset) = (String::new(), Some(0));
        while let Some(from) = offset {
            let page = recall(&context, json!({ "entry": entry, "offset": from })).await.text;
            whole.push_str(body(&page));
            offset = number_after(&page, "go on with offset ");
        }
        assert_eq!(whole, original);
    }
    let found = recall(&context, json!({ "search": "seek the HERON" })).await.text;
    let is_summary = format!("entry {at}, a summary up to entry {}, byte ", summary.through);
    assert!(found.contains(&is_summary) && found.contains("entry 1, the goal, byte "), "{found}");
}

#[tokio::test]
async fn an_agent_without_the_tool_is_not_told_of_it() {
    let mut stage = Stage::new(fetches(8));
    stage.tools = ToolRegistry::new().with(Fetch::new());
    let backend = stage.run(RUN, &"a long goal; ".repeat(700)).await;
    let summaries = log(&*backend, RUN).await.into_iter().filter_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::Compacted(compacted)) if !compacted.through.is_start() => {
            Some(compacted.summary.clone())
        }
        _ => None,
    });
    let summaries = summaries.collect::<Vec<_>>();
    assert!(!summaries.is_empty() && !summaries.concat().contains("recall"), "{summaries:?}");
}

#[tokio::test]
async fn an_agent_recalls_after_another_process_took_over() {
    let mut stage = Stage::new(reads_back(9_000));
    stage.step_mode = StepMode::Stepped;
    let cancel = CancellationToken::new();
    let (harness, backend) = stage.harness();
    let mut run = harness.start(RUN, "the goal", stage.policy()).await.unwrap();
    for _ in 0..4 {
        run.run_turn(&cancel).await.unwrap();
    }
    drop((run, harness, backend));
    let (harness, backend) = stage.harness();
    open_when_free(&harness, RUN).await.run(&cancel).await.unwrap();
    let pages = results(&log(&*backend, RUN).await, "recall");
    let whole = pages.iter().map(|(_, page)| body(&page.output)).collect::<String>();
    assert_eq!(whole, Fetch::result(0, 9_000));
}

#[tokio::test]
async fn a_call_that_is_cancelled_ends_at_once_and_says_where_it_stands() {
    let (_stage, backend) = short_run().await;
    let context = context(&backend, RUN, NOW);
    context.cancel.cancel();
    let output = recall(&context, json!({ "search": "otter", "before": 12 })).await;
    assert_eq!(output.status, ToolStatus::Cancelled);
    assert_eq!(output.text, "not found yet: otter\n[stopped: the same search with before 12 goes on]");
    let output = recall(&context, json!({ "entry": 5 })).await;
    assert_eq!(output.status, ToolStatus::Cancelled);
}

/// Shows three pictures.
struct Look(ToolSpec);

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &Json, _: &ToolContext) -> ToolOutput {
        let pictures =
            (0..3).map(|n| ImageData::new([b"\x89PNG\r\n\x1a\n".as_slice(), &[n]].concat()).unwrap());
        ToolOutput { images: pictures.collect(), ..ToolOutput::ok("three") }
    }
}

#[tokio::test]
async fn pictures_are_recalled_one_by_one_behind_the_text() {
    let mut stage = Stage::new(|seen: &Seen| match seen.answers_before {
        0 => vec![("look", json!({}))],
        1 => vec![("recall", json!({ "entry": 5 }))],
        2 | 3 => {
            let offset = number_after(seen.last(), "go on with offset ");
            vec![("recall", json!({ "entry": 5, "offset": offset }))]
        }
        _ => Vec::new(),
    });
    let spec = ToolSpec { name: "look".into(), access: Access::Reads, ..Fetch::new().spec().clone() };
    stage.tools = stage.tools.with(Look(spec));
    let backend = stage.run(RUN, "the goal").await;
    let log = log(&*backend, RUN).await;
    let original = results(&log, "look").remove(0).1.images;
    let pages = results(&log, "recall").into_iter().map(|(_, page)| page).collect::<Vec<_>>();
    let recalled = pages.iter().flat_map(|page| page.images.clone()).collect::<Vec<_>>();
    assert_eq!((recalled, pages.len()), (original, 3));
    let texts = pages.iter().map(|page| page.output.as_str()).collect::<Vec<_>>().join("\n\n");
    expect![[r#"
        entry 5, result of `look`:
        three
        [bytes 0-5 of 5; picture 1 of 3; go on with offset 6; before it entry 3]

        entry 5, result of `look`:

        [behind its 5 bytes; picture 2 of 3; go on with offset 7; before it entry 3; after it entry 8]

        entry 5, result of `look`:

        [behind its 5 bytes; picture 3 of 3; before it entry 3; after it entry 8]"#]]
    .assert_eq(&texts);
}

#[test]
fn the_schema_has_the_fields_that_are_read() {
    let schema: Value = Recall::new().spec().input_schema.read().unwrap();
    let fields = schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields, ["before", "bytes_max", "entry", "offset", "search"]);
    assert_eq!(Recall::new().spec(), Recall::new().spec());
    assert_eq!(Recall::new().spec().access, Access::Reads);
    assert!(provost_tools::builtin().get("recall").is_some(), "agents have it unless told otherwise");
}

#[test]
fn an_answer_is_never_longer_than_it_may_be() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let stage = Stage::new(fetches(8));
    let backend = runtime.block_on(stage.run(RUN, &"long ünïcode 🦦 ".repeat(200)));
    let asked = |context: &ToolContext, input| runtime.block_on(recall(context, input)).text.len();
    let config = ProptestConfig { cases: 64, ..ProptestConfig::default() };
    let given = (1_u64..40, 0_u64..12_000, 0_usize..10_000, 1_000_usize..10_000);
    proptest!(config, |((entry, offset, bytes_max, output_bytes_max) in given)| {
        let context = ToolContext { output_bytes_max, ..context(&backend, RUN, NOW) };
        let most = output_bytes_max.min(bytes_max.clamp(1_024, 8_192));
        let page = asked(&context, json!({ "entry": entry, "offset": offset, "bytes_max": bytes_max }));
        prop_assert!(page <= most, "{page} of {most} bytes");
        let found = asked(&context, json!({ "search": "e", "bytes_max": bytes_max }));
        prop_assert!(found <= most, "{found} of {most} bytes");
    });
}
