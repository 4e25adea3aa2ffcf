//! (h) The cost of hook calls: a question before a tool call, to hooks that allow it.

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use provost_engine::{CallDetails, HookCall, HookCallDetails};
use provost_event::{HookTrigger, Json, ModelPolicy, SessionId};
use provost_harness::hooks::{Hook, HookOptions, HookRegistry, PreToolCall, PreToolCallAction, from_fn};
use provost_harness::{HookAgent, HookQuestion, HookQuestionTrigger, SystemClock};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::case::Case;
use crate::log;
use crate::measure::Start;
use crate::sample::{Sample, count, repeated};
use crate::table::{self, Target};

/// Microseconds that a hook may cost a question.
const TARGET_US: f64 = 2.0;
/// Hooks that are called for one question.
const SIZES: [usize; 3] = [0, 1, 10];

/// What the hooks do before they allow the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Matcher {
    /// Nothing.
    None,
    /// They match the tool and search its arguments.
    ToolAndArguments,
    /// They parse the arguments as JSON.
    ParsedArguments,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("Hooks asked");
    let questions = options.sized(100_000, 1_000_000);
    for (what, matcher) in [
        ("hooks that look at nothing", Matcher::None),
        ("hooks that look at tool and arguments", Matcher::ToolAndArguments),
        ("hooks that parse the arguments", Matcher::ParsedArguments),
    ] {
        for hooks in SIZES.into_iter().filter(|hooks| *hooks > 0 || matcher == Matcher::None) {
            let case = Case::Dispatch { hooks, matcher, questions };
            let samples = repeated(&case, options.dir(), options.runs)?;
            let questions = samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
            let size = format!("{hooks} hooks");
            table::row(&format!("{what}: CPU"), &size, "µs/question", &questions, Target::None);
            if hooks > 0 {
                let each = questions.iter().map(|us| us / count(hooks)).collect::<Vec<_>>();
                table::row(&format!("{what}: CPU"), &size, "µs/hook", &each, Target::AtMost(TARGET_US));
            }
        }
    }
    Ok(())
}

/// One run: `questions` questions, one after the other, each built anew as an executor does it.
pub(crate) async fn case(
    hooks: usize,
    matcher: Matcher,
    questions: usize,
    dir: &Path,
) -> anyhow::Result<Sample> {
    let mut builder = HookRegistry::builder();
    for number in 0..hooks {
        let options = HookOptions::new(format!("hook-{number}"));
        builder = match matcher {
            Matcher::None => builder.on(options, from_fn::<PreToolCall>(|_| PreToolCallAction::Continue)),
            Matcher::ToolAndArguments => builder.on(options, no_pushing()),
            Matcher::ParsedArguments => builder.on(options, no_pushing_parsed()),
        };
    }
    let registry = builder.freeze()?;
    let hook_call = hook_call()?;
    let (workspace, model) = (Arc::<Path>::from(dir), ModelPolicy::new("a/model", 1_000));
    let cancel = CancellationToken::new();
    let start = Start::now()?;
    for _ in 0..questions {
        let question = Arc::new(HookQuestion {
            trigger: HookQuestionTrigger::HookCall(hook_call.clone()),
            workspace: workspace.clone(),
            folder: workspace.clone(),
            model: model.clone(),
            transcript_path: None,
            agent: HookAgent::default(),
            root_transcript_path: None,
            voice: None,
            env_file: None,
            records: Vec::new(),
            confinement: provost_process::Confinement::default(),
        });
        let reports = registry.ask(&question, &SystemClock, &cancel).await;
        ensure!(reports.len() == hooks, "{} of {hooks} hooks were asked", reports.len());
    }
    start.sample(questions)
}

fn hook_call() -> anyhow::Result<HookCall> {
    let call = CallDetails {
        call: "toolu_00000001".into(),
        tool: Box::new(provost_event::ToolIdentity::unknown("shell")),
        input: Json::parse(r#"{"command":"cargo nextest run --workspace","timeout_s":600}"#.to_owned())?,
        memory: None,
        why: String::new(),
        wanted: None,
    };
    Ok(HookCall {
        session: SessionId::root(log::RUN),
        turn: 1,
        about: HookTrigger::call(call.call.clone()),
        details: HookCallDetails::Call(call),
        limit_ms: None,
        shell: None,
        spent: Vec::new(),
    })
}

fn no_pushing() -> impl Hook<PreToolCall> {
    from_fn::<PreToolCall>(|call| {
        if call.tool == "shell" && call.arguments.text().contains("git push") {
            PreToolCallAction::Deny("pushing is left to people".to_owned())
        } else {
            PreToolCallAction::Continue
        }
    })
}

fn no_pushing_parsed() -> impl Hook<PreToolCall> {
    #[derive(Deserialize)]
    struct Arguments {
        command: String,
    }

    from_fn::<PreToolCall>(|call| match call.arguments.read::<Arguments>() {
        Ok(arguments) if arguments.command.starts_with("git push") => {
            PreToolCallAction::Deny("pushing is left to people".to_owned())
        }
        _ => PreToolCallAction::Continue,
    })
}
