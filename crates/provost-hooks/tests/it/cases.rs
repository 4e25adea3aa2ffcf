//! Scripts as coding-agent users have them: each once where it must object, and once where it must let pass.

mod calls;
mod stops;

use provost_event::{HookContract, HookDecision, HookPolicy};
use provost_harness::{HookAnswer, HookPrograms as _};
use serde_json::{Value, json};

use crate::stage::{Stage, claude, shown};
use crate::transcripts;

/// What a hook is asked about.
#[derive(Clone)]
pub(crate) enum Situation {
    /// A tool call, by the names of Provost's tools.
    Call(&'static str, Value),
    /// The output of a shell command that ran.
    Ran(&'static str, &'static str),
    Prompt(&'static str),
    /// The text with which the agent wants to stop.
    Stop(&'static str),
    /// The same the first time, with what the session has done so far.
    StopAfter(&'static str, fn() -> Vec<provost_event::Entry>),
    /// Nothing of its own; with this file in the workspace.
    With(&'static str, &'static str),
}

pub(crate) fn bash(command: &str) -> Situation {
    Situation::Call("shell", json!({ "command": command }))
}

pub(crate) fn write(path: &str, content: &str) -> Situation {
    Situation::Call("write_file", json!({ "path": path, "content": content }))
}

pub(crate) fn edit(path: &str, old: &str, new: &str) -> Situation {
    Situation::Call("edit_file", json!({ "path": path, "old_text": old, "new_text": new }))
}

pub(crate) fn read(path: &str) -> Situation {
    Situation::Call("read_file", json!({ "path": path }))
}

/// A script, the situation in which it objects, and the one in which it doesn't.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) event: &'static str,
    pub(crate) script: &'static str,
    pub(crate) objects: Situation,
    pub(crate) passes: Situation,
}

pub(crate) fn case(
    name: &'static str,
    event: &'static str,
    script: &'static str,
    objects: Situation,
    passes: Situation,
) -> Case {
    Case { name, event, script, objects, passes }
}

impl Situation {
    fn stage(&self) -> Stage {
        let mut stage = Stage::new();
        stage.blocked_before = false;
        match self.clone() {
            Self::Call(tool, input) => {
                stage.tool = tool;
                stage.input = input;
            }
            Self::Ran(command, output) => {
                stage.input = json!({ "command": command });
                stage.output = output.to_owned();
            }
            Self::Prompt(text) => stage.prompt = text.to_owned(),
            Self::Stop(text) => stage.final_text = text.to_owned(),
            Self::StopAfter(text, entries) => {
                stage.final_text = text.to_owned();
                stage.transcript = stage.work().join("transcript.jsonl");
                let lines = transcripts::written(HookContract::Claude, transcripts::session(), entries());
                std::fs::write(&stage.transcript, lines).expect("written");
            }
            Self::With(name, text) => {
                let path = stage.work().join(name);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, text).expect("written");
            }
        }
        stage
    }
}

/// Whether the answer keeps something from happening, or has the model hear of it.
fn objects(answer: &HookAnswer) -> bool {
    let goes_on = matches!(answer.decision, HookDecision::Continue | HookDecision::Allow);
    !goes_on || !answer.reminders.is_empty() || answer.replacement.is_some()
}

async fn ask(case: &Case, situation: &Situation, contract: HookContract) -> Option<HookAnswer> {
    let stage = situation.stage();
    stage.script("hook", case.script);
    let hook = HookPolicy { contract, ..claude(case.event, "\"$CLAUDE_PROJECT_DIR\"/hook") };
    let question = stage.question(hook.point, false);
    if !stage.hooks.wants(&hook, &question, hook.point) {
        return None;
    }
    Some(stage.ask(&hook).await)
}

/// Asks each script about both of its situations.
pub(crate) async fn check(cases: Vec<Case>, contract: HookContract) {
    let mut wrong = Vec::new();
    for case in &cases {
        for (situation, must) in [(&case.objects, true), (&case.passes, false)] {
            let answer = ask(case, situation, contract).await.expect("it is asked");
            let is_clean = must || answer.note.is_none();
            if objects(&answer) != must || answer.decision.failure().is_some() || !is_clean {
                wrong.push(format!(
                    "{}: {}: {}",
                    case.name,
                    if must { "must object" } else { "must pass" },
                    shown(&answer)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
