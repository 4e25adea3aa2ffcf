//! Open questions in words, and who answers them.

use provost_view::ApprovalQuestion;

use crate::names::{labelled, short};

/// The prefix of an agent's question: `3 reviewer`; nothing for the root.
pub(crate) fn asker(question: &ApprovalQuestion) -> Option<String> {
    let number = question.session.agent;
    (number > 0).then(|| labelled(number, &short(&question.name)))
}

/// Why it can't be approved for longer than this call, where it can't.
pub(crate) fn why_once(question: &ApprovalQuestion) -> Option<String> {
    if question.outside.is_some() {
        let why = "it runs outside of the sandbox, with all your rights: only this call can be agreed to";
        return Some(why.to_owned());
    }
    if question.question.is_some() {
        return Some("its tool asks something, and the answer is for this call only".to_owned());
    }
    let scripts: Vec<&str> = question.scripts.iter().map(|script| script.path.as_str()).collect();
    let are = if scripts.len() == 1 { "a script, which" } else { "scripts, which" };
    if scripts.is_empty() {
        let why =
            "it may run files that it doesn't name, and others next time: only this call can be agreed to";
        return question.unnamed.then(|| why.to_owned());
    }
    Some(format!(
        "it runs {}, {are} may hold something else next time: only this call can be agreed to",
        scripts.join(", ")
    ))
}

/// The user at this terminal, by the name for the log; `default` where the system doesn't know it.
pub(crate) fn user_name(default: &str) -> String {
    let name = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| default.to_owned())
}
