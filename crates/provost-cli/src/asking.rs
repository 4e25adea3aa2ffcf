//! Asking for consent on the terminal of the process that works on the run.
//!
//! An answer is a letter and Enter: a stray key typed while a question comes up approves nothing, and the terminal
//! stays in the mode in which Ctrl-C, Ctrl-Z and the shell expect it.

mod terminal;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{ApprovalAnswer, ApprovalScope, EffectId};
use provost_harness::Backend;

use crate::answering::{Given, give};
use crate::questions::user_name;
use crate::questions::why_once;
use crate::render::{Extent, Progress};
use crate::typing::Typing;
use crate::watcher::{Asks, Watcher};
use provost_view::{ApprovalQuestion, ToolQuestion, visible};
use serde_json::Map;

use terminal::Terminal;

const ANSWERS: &str = "a once · r this run · A always · d deny · l later · v whole text";
/// The same where an answer counts once, whatever it says.
const ANSWERS_ONCE: &str = "a once · d deny · l later · v whole text";
const WHY_NOT: &str = "why not? (what the agent is told; Enter for nothing)";

/// The pause before the next question after one was answered elsewhere. A user about to answer the old question
/// must not answer the next one unseen.
const AFTER_WITHDRAWN: Duration = Duration::from_secs(2);

/// Where questions are asked with this kind of view: in this process if a user is at its terminal.
pub(crate) fn who_asks(progress: Progress) -> Asks {
    match progress {
        Progress::Live(_) | Progress::Plain(_) if terminal::is_there() => Asks::HereOnTerminal,
        Progress::Live(_)
        | Progress::Plain(_)
        | Progress::Attended
        | Progress::Passed
        | Progress::Json
        | Progress::Silent => Asks::Elsewhere,
    }
}

/// The answers to offer.
fn answers(question: &ApprovalQuestion) -> &'static str {
    if why_once(question).is_some() { ANSWERS_ONCE } else { ANSWERS }
}

/// Asks the user at the terminal the open questions of a run, one after the other.
#[derive(Clone)]
pub(crate) struct Asking {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) asks: Asks,
    /// The file for patterns of permanent approvals.
    pub(crate) user_file: PathBuf,
}

/// What the user typed.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Allow(ApprovalScope),
    No,
    Later,
    /// Show the question again.
    Show(Extent),
    Unreadable,
}

/// Where an answer comes from.
enum Input<'t> {
    /// The view shows the line that is typed.
    Keys(Answering<'t>),
    /// The terminal itself does.
    Lines(Terminal),
}

impl Input<'_> {
    /// The next line; `None` at the end of the input.
    async fn line(&self) -> Option<String> {
        match self {
            Self::Keys(answering) => answering.typing.answer().await,
            Self::Lines(terminal) => terminal.line().await,
        }
    }
}

/// A keyboard whose lines are answers for as long as this lives.
struct Answering<'t> {
    typing: &'t Typing,
}

impl<'t> Answering<'t> {
    async fn begin(typing: &'t Typing) -> Self {
        typing.asks().await;
        Self { typing }
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.typing.asked();
    }
}

/// The fields of an answer, as far as they were given.
enum Filled {
    /// There are none.
    Not,
    With(ApprovalAnswer),
    Withdrawn,
    Later,
}

/// The result of a question.
enum Came {
    Answered,
    Withdrawn,
    Later,
}

impl Asking {
    /// Asks for as long as it is polled; returns only with an error.
    ///
    /// # Errors
    /// When an answer can't be kept in the log.
    pub(crate) async fn work(self) -> anyhow::Result<Infallible> {
        if self.asks == Asks::Elsewhere {
            return std::future::pending().await;
        }
        let mut put_off = Vec::new();
        loop {
            let Some(question) = self.watcher.next_question(&put_off) else {
                self.watcher.changed().await;
                continue;
            };
            match self.ask(&question).await? {
                Came::Answered => {}
                Came::Withdrawn => tokio::time::sleep(AFTER_WITHDRAWN).await,
                Came::Later => {
                    put_off.push(question.id());
                    self.watcher.view().note(&later(&question));
                }
            }
        }
    }

    async fn ask(&self, question: &ApprovalQuestion) -> anyhow::Result<Came> {
        // Input from before the question was visible is no answer.
        let view = self.watcher.view();
        let typing = view.typing();
        let terminal = match typing.as_deref() {
            Some(typing) => Input::Keys(Answering::begin(typing).await),
            None => Input::Lines(Terminal::fresh()),
        };
        self.show(question, Extent::Fitting);
        loop {
            let Some(line) = self.line(&terminal, question.id()).await else { return Ok(Came::Withdrawn) };
            let typed = line.as_deref().map_or(Typed::Later, Typed::read);
            let answer = match typed {
                Typed::Later => {
                    view.asked();
                    return Ok(Came::Later);
                }
                Typed::Show(extent) => {
                    self.show(question, extent);
                    continue;
                }
                Typed::Unreadable => {
                    view.prompt("a letter and Enter, please (v shows the question again)", answers(question));
                    continue;
                }
                Typed::No => {
                    view.prompt("", WHY_NOT);
                    match self.line(&terminal, question.id()).await {
                        Some(reason) => deny(reason),
                        None => return Ok(Came::Withdrawn),
                    }
                }
                Typed::Allow(scope) => match why_once(question).filter(|_| scope != ApprovalScope::Once) {
                    Some(why) => {
                        view.prompt(&why, answers(question));
                        continue;
                    }
                    None => match self.filled(&terminal, question).await {
                        Filled::Not => allow(scope, question),
                        Filled::With(answer) => answer,
                        Filled::Withdrawn => return Ok(Came::Withdrawn),
                        Filled::Later => {
                            view.asked();
                            return Ok(Came::Later);
                        }
                    },
                },
            };
            if self.give(question, answer).await? {
                view.asked();
                self.watcher.closed(question.id()).await;
                return Ok(Came::Answered);
            }
        }
    }

    /// Asks for the fields of the answer to what a tool asks, one after the other.
    async fn filled(&self, terminal: &Input<'_>, question: &ApprovalQuestion) -> Filled {
        let fields = question.question.as_ref().map(ToolQuestion::fields).unwrap_or_default();
        if fields.is_empty() {
            return Filled::Not;
        }
        let view = self.watcher.view();
        let mut given = Map::new();
        for field in fields {
            let default = field.default.as_ref().map(|value| visible(&value.to_string()));
            let nothing = match (default, field.is_required) {
                (Some(default), _) => format!("; Enter for {default}"),
                (None, false) => "; Enter for nothing".to_owned(),
                (None, true) => String::new(),
            };
            let asks = format!("{} ({}{nothing})", field.label, field.expected());
            let mut words = field.about.clone();
            loop {
                view.prompt(&words, &asks);
                let line = match self.line(terminal, question.id()).await {
                    None => return Filled::Withdrawn,
                    Some(None) => return Filled::Later,
                    Some(Some(line)) => line,
                };
                match field.typed(&line) {
                    Ok(value) => {
                        given.extend(value.map(|value| (field.name.clone(), value)));
                        break;
                    }
                    Err(why) => words = why,
                }
            }
        }
        // Each was right by itself.
        question.filled(given).map_or(Filled::Not, Filled::With)
    }

    fn show(&self, question: &ApprovalQuestion, extent: Extent) {
        self.watcher.view().ask(question, extent, answers(question));
    }

    /// The next line that is typed, `Some(None)` at the end of the input; `None` when the question was answered
    /// elsewhere meanwhile.
    async fn line(&self, terminal: &Input<'_>, id: EffectId) -> Option<Option<String>> {
        tokio::select! {
            biased;
            () = self.watcher.closed(id) => {
                self.watcher.view().asked();
                None
            }
            line = terminal.line() => Some(line),
        }
    }

    /// Records the answer; false if it couldn't be kept in the settings, and the question stays open.
    async fn give(&self, question: &ApprovalQuestion, answer: ApprovalAnswer) -> anyhow::Result<bool> {
        let by = user_name("a person at the terminal");
        match give(&*self.backend, question, (answer, by), &self.user_file).await {
            // The records that follow show the result, also where another answer was first.
            Ok(Given::Counts(_) | Given::Late(..) | Given::Moot) => Ok(true),
            Err(error) if error.is::<provost_harness::BackendError>() => Err(error),
            Err(error) => {
                self.watcher.view().prompt(&format!("{error:#}"), ANSWERS);
                Ok(false)
            }
        }
    }
}

impl Typed {
    fn read(line: &str) -> Self {
        match line.trim() {
            "a" | "y" | "Y" | "yes" => Self::Allow(ApprovalScope::Once),
            "r" | "R" | "run" => Self::Allow(ApprovalScope::Run),
            // A capital: it counts for all runs to come.
            "A" | "always" => Self::Allow(ApprovalScope::Always),
            "d" | "D" | "n" | "N" | "no" | "deny" => Self::No,
            "l" | "L" | "later" => Self::Later,
            "v" | "V" => Self::Show(Extent::Whole),
            "" => Self::Show(Extent::Fitting),
            _ => Self::Unreadable,
        }
    }
}

fn allow(scope: ApprovalScope, question: &ApprovalQuestion) -> ApprovalAnswer {
    let pattern = (scope != ApprovalScope::Once).then(|| question.pattern.clone());
    ApprovalAnswer::Allow { scope, pattern }
}

fn deny(reason: Option<String>) -> ApprovalAnswer {
    ApprovalAnswer::Deny { reason: reason.unwrap_or_default().trim().to_owned() }
}

fn later(question: &ApprovalQuestion) -> String {
    let name = question.short_id();
    format!("left open; answer from any terminal: provost approve {name}, provost deny {name}")
}

#[cfg(test)]
mod tests {
    use provost_event::ApprovalScope;

    use super::{Extent, Typed};

    #[test]
    fn only_a_whole_word_agrees() {
        assert_eq!(Typed::read(" Y \n"), Typed::Allow(ApprovalScope::Once));
        assert_eq!(Typed::read("a\n"), Typed::Allow(ApprovalScope::Once));
        assert_eq!(Typed::read("A\n"), Typed::Allow(ApprovalScope::Always));
        assert_eq!((Typed::read("d\n"), Typed::read("l\n")), (Typed::No, Typed::Later));
        assert_eq!(Typed::read("\n"), Typed::Show(Extent::Fitting));
        for line in ["yy\n", "yn\n", "y n\n", "git push\n", "ok\n"] {
            assert_eq!(Typed::read(line), Typed::Unreadable, "{line}");
        }
    }
}
