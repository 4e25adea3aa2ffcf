//! `provost doctor`: what this machine can do for the sandbox of agents, and what to change.

use provost_sandbox::{Finding, FindingState};
use serde_json::json;

use super::super::{place, print};
use crate::exit::Exit;
use crate::render::safe;
use crate::wiring::variables;

/// Looks, tries a sandbox, and prints what was found; as JSON if `json`.
pub(super) fn doctor(json: bool) -> anyhow::Result<Exit> {
    let sandbox = place()?.sandbox(variables());
    let findings = &sandbox.probe().findings;
    let tried = sandbox.try_it();
    let text = if json {
        format!(
            "{}\n",
            json!({ "possible": tried.is_ok(), "why_not": tried.as_ref().err(), "findings": findings })
        )
    } else {
        in_words(findings, &tried)
    };
    print(&safe(&text))?;
    Ok(if tried.is_ok() { Exit::Done } else { Exit::Failed })
}

fn in_words(findings: &[Finding], tried: &Result<(), String>) -> String {
    let mut text = String::new();
    for finding in findings {
        let state = match finding.state {
            FindingState::Fine => "ok",
            FindingState::Note => "note",
            FindingState::Missing => "missing",
        };
        text.push_str(&format!("{state:<8} {}: {}\n", finding.what, finding.found));
        if !finding.remedy.is_empty() {
            text.push_str(&format!("         {}\n", finding.remedy));
        }
    }
    text.push_str(&match tried {
        Ok(()) => "ok       sandbox: tried one, and it works\n".to_owned(),
        Err(why) => format!("missing  sandbox: none can be made: {why}\n"),
    });
    text
}
