//! The contracts: exit statuses, output, replies.
//!
//! `Claude` follows the published reference of existing scripts, `Codex` differs from it in what exit statuses other
//! than 2 mean; `Provost` is stricter: an answer that isn't
//! understood counts as none, and the hook's policy decides.

use provost_event::{HookContract, HookDecision, HookPoint, HookPolicy, counted, grouped};
use provost_process::{Captured, Ending, Finished};

use crate::command::HOOK_OUTPUT_BYTES_MAX;
use crate::meaning::{Meaning, NO_REASON, not_run, of_reply, refusal};
use crate::question::HookQuery;
use crate::reply::{self, HookReply};

/// What a shell exits with if a program isn't executable.
const NOT_EXECUTABLE: i32 = 126;
/// What a shell exits with if a program isn't there.
const NOT_FOUND: i32 = 127;

/// The meaning of a command's exit status and output.
pub(crate) fn of_command(hook: &HookPolicy, asked: HookQuery<'_>, finished: &Finished) -> Meaning {
    let reading = ReplyReader { contract: hook.contract, asked };
    let printed = Printed::of(finished, asked.event());
    match (finished.ending, hook.contract) {
        (Ending::TimedOut, _) => Meaning::no_answer(HookDecision::TimedOut(hook.timeout_ms)),
        (Ending::Cancelled, _) => Meaning::failed("cancelled"),
        (Ending::Exited(2), _) => reading.refused(printed),
        (Ending::Exited(3), HookContract::Provost) => reading.ended(printed),
        _ if printed.is_cut => of_cut(hook, asked, too_long(finished)),
        (Ending::Exited(code @ (NOT_EXECUTABLE | NOT_FOUND)), contract) if !printed.answers(contract) => {
            not_run(asked, hook, &format!("exit status {code}: {}", printed.first_line()))
        }
        (Ending::Exited(0), HookContract::Codex) => reading.codex(printed),
        (Ending::Exited(code), HookContract::Codex) => {
            Meaning::nothing().note(decides_nothing(code, printed.first_line()))
        }
        (Ending::Exited(code), HookContract::Claude) => reading.claude(code, printed),
        (Ending::Exited(0), HookContract::Provost) => reading.strictly(printed.said, false),
        (Ending::Exited(code), HookContract::Provost) => {
            let words = printed.words().unwrap_or_else(|| "it printed nothing".to_owned());
            Meaning::failed(format!("exit status {code}, which means neither yes nor no: {words}"))
        }
        (Ending::Signalled(signal), _) => match (printed.said, hook.contract) {
            (HookReply::Reply(reply), HookContract::Claude) => of_reply(asked, hook.contract, *reply),
            _ => Meaning::no_answer(HookDecision::Broken(format!("it was ended by signal {signal}"))),
        },
    }
}

/// The meaning of an answer that isn't all there, for this reason. In Claude's contract, in which what a hook doesn't
/// deny may happen, it denies: what is missing may be the denial.
pub(crate) fn of_cut(hook: &HookPolicy, asked: HookQuery<'_>, why: String) -> Meaning {
    match hook.contract {
        HookContract::Provost => Meaning::failed(why),
        HookContract::Claude | HookContract::Codex => {
            refusal(asked, hook.contract, format!("it can't be known what the hook decides: {why}"))
        }
    }
}

fn decides_nothing(code: i32, line: &str) -> String {
    format!("exit status {code}, which decides nothing: {line}")
}

/// The meaning of the body of a successful HTTP response.
pub(crate) fn of_body(hook: &HookPolicy, asked: HookQuery<'_>, body: &str) -> Meaning {
    let reading = ReplyReader { contract: hook.contract, asked };
    let said = reply::read(body, asked.event());
    match hook.contract {
        HookContract::Provost => reading.strictly(said, true),
        HookContract::Claude | HookContract::Codex => match said {
            HookReply::Nothing => Meaning::nothing(),
            HookReply::Reply(reply) => of_reply(asked, hook.contract, *reply),
            HookReply::Misfit(words) => Meaning::nothing().note(words),
            HookReply::Text { complaint, .. } => {
                let words = complaint.unwrap_or_else(|| "its answer is no JSON object".to_owned());
                Meaning::nothing().note(words)
            }
        },
    }
}

/// A command's output.
struct Printed {
    said: HookReply,
    stdout: String,
    stderr: String,
    /// Whether a JSON object was truncated.
    is_cut: bool,
    how_much: HowMuch,
}

/// The note before truncated text; empty if the text is complete.
struct HowMuch {
    stdout: String,
    stderr: String,
}

fn how_much(printed: &Captured) -> String {
    match printed.bytes_left_out() {
        0 => String::new(),
        left_out => format!(
            "[{} printed, of which {} in the middle aren't kept]\n",
            counted(printed.total_bytes(), "byte"),
            grouped(left_out)
        ),
    }
}

impl Printed {
    fn of(finished: &Finished, event: &str) -> Self {
        let stdout = finished.stdout.to_text_lossy();
        let is_cut = finished.stdout.bytes_left_out() > 0 && reply::text_of(&stdout).starts_with('{');
        let said = if is_cut { HookReply::Misfit(too_long(finished)) } else { reply::read(&stdout, event) };
        let how_much = HowMuch { stdout: how_much(&finished.stdout), stderr: how_much(&finished.stderr) };
        Self { said, stdout, stderr: finished.stderr.to_text_lossy(), is_cut, how_much }
    }

    /// The output as text: standard output, or else standard error.
    fn words(&self) -> Option<String> {
        let both = [(&self.how_much.stdout, self.stdout.trim()), (&self.how_much.stderr, self.stderr.trim())];
        both.into_iter()
            .find(|(_, text)| !text.is_empty())
            .map(|(how_much, text)| format!("{how_much}{text}"))
    }

    /// Whether it has a valid answer that counts with an exit status other than 0.
    const fn answers(&self, contract: HookContract) -> bool {
        matches!((&self.said, contract), (HookReply::Reply(_), HookContract::Claude))
    }

    fn first_line(&self) -> &str {
        self.stderr
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or("nothing on standard error")
    }
}

fn too_long(finished: &Finished) -> String {
    let bytes = Captured::total_bytes(&finished.stdout);
    format!(
        "its JSON answer has {}; at most {} are read",
        counted(bytes, "byte"),
        grouped(HOOK_OUTPUT_BYTES_MAX as u64)
    )
}

/// The context in which the answers to one question are interpreted.
#[derive(Clone, Copy)]
struct ReplyReader<'a> {
    contract: HookContract,
    asked: HookQuery<'a>,
}

impl ReplyReader<'_> {
    /// Exit status 2: it denies, regardless of the rest of its output.
    fn refused(self, printed: Printed) -> Meaning {
        let reason = self.reason(&printed);
        let said = match printed.said {
            HookReply::Reply(reply) => of_reply(self.asked, self.contract, *reply),
            HookReply::Misfit(words) => Meaning::nothing().note(words),
            HookReply::Nothing | HookReply::Text { .. } => Meaning::nothing(),
        };
        if said.refuses() { said } else { said.overruled_by(refusal(self.asked, self.contract, reason)) }
    }

    /// The reason for the denial, if no reply has one.
    fn reason(self, printed: &Printed) -> String {
        let stderr = Some(printed.stderr.trim()).filter(|text| !text.is_empty());
        let with_size = |stderr: &str| format!("{}{stderr}", printed.how_much.stderr);
        let is_text = matches!(printed.said, HookReply::Text { .. });
        let words = match (self.contract, stderr) {
            (HookContract::Claude | HookContract::Codex, Some(stderr)) => Some(with_size(stderr)),
            (HookContract::Provost, stderr) if !is_text => stderr.map(with_size),
            _ if is_text => printed.words(),
            _ => None,
        };
        words.unwrap_or_else(|| NO_REASON.to_owned())
    }

    /// Exit status 3 in Provost's contract: the run ends.
    fn ended(self, printed: Printed) -> Meaning {
        let reason = self.reason(&printed);
        Meaning::abort(reason)
    }

    /// Exit status 0 in Codex's contract: as in Claude's, but at a stop text is no answer.
    fn codex(self, printed: Printed) -> Meaning {
        let is_stop = matches!(self.asked.point, HookPoint::Stop | HookPoint::SubagentStop);
        match printed.said {
            HookReply::Text { .. } if is_stop => Meaning::failed("its answer is no JSON object"),
            _ => self.claude(0, printed),
        }
    }

    /// Every exit status but 2 in Claude's contract.
    fn claude(self, code: i32, printed: Printed) -> Meaning {
        let is_ok = code == 0;
        let trouble = decides_nothing(code, printed.first_line());
        let said = match printed.said {
            HookReply::Reply(reply) => return of_reply(self.asked, self.contract, *reply),
            HookReply::Nothing => Meaning::nothing(),
            HookReply::Misfit(words) => Meaning::nothing().note(words),
            HookReply::Text { text, complaint } => {
                let said = complaint.into_iter().fold(Meaning::nothing(), Meaning::note);
                match self.asked.point {
                    HookPoint::SessionStart | HookPoint::PromptSubmit if is_ok => said.remind(text),
                    _ => said,
                }
            }
        };
        if is_ok { said } else { said.note(trouble) }
    }

    /// A successful answer in Provost's contract: empty, a valid JSON object or, from a command, text.
    fn strictly(self, said: HookReply, is_http: bool) -> Meaning {
        match said {
            HookReply::Nothing => Meaning::nothing(),
            HookReply::Reply(reply) => of_reply(self.asked, self.contract, *reply),
            HookReply::Misfit(words) | HookReply::Text { complaint: Some(words), .. } => {
                Meaning::failed(words)
            }
            HookReply::Text { .. } if is_http => Meaning::failed("its answer is no JSON object"),
            HookReply::Text { .. } => Meaning::nothing(),
        }
    }
}
