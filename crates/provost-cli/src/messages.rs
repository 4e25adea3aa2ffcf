//! Messages that the user types to the agent while a run works.

use std::convert::Infallible;
use std::sync::Arc;

use provost_event::RunId;
use provost_harness::{Backend, Control};

use crate::questions::user_name;
use crate::watcher::Watcher;

/// The agent that a run begins with.
const ROOT: u32 = 0;
const KEYS: &str = "Enter sends what you typed to the agent, which gets it before its next model call · @3 TEXT sends \
it to agent 3 · Ctrl-C pauses, once more stops at once · Ctrl-Z suspends to the shell · Ctrl-U erases the line";

/// Sends what is typed.
pub(crate) struct Messages {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) run: RunId,
}

impl Messages {
    /// Sends each message to its agent, for as long as it is polled; returns only with an error.
    ///
    /// # Errors
    /// When a message can't be kept in the log.
    pub(crate) async fn work(self) -> anyhow::Result<Infallible> {
        let Some(typing) = self.watcher.view().typing() else { return std::future::pending().await };
        let control = Control::new(self.backend.clone(), self.run, &user_name("a person at the terminal"));
        while let Some(line) = typing.message().await {
            if line.trim() == "?" {
                self.watcher.view().note(KEYS);
                continue;
            }
            let (agent, text) = addressed(&line);
            // Where it is taken in, its record shows it.
            if !control.say(agent, text).await? {
                let run = self.run;
                self.watcher.view().note(&format!(
                    "not sent: agent {agent} takes no message now; `provost show {run}` lists the agents"
                ));
            }
        }
        std::future::pending().await
    }
}

/// The agent that a line is for, and the message.
fn addressed(line: &str) -> (u32, &str) {
    let to = line.trim().strip_prefix('@').and_then(|rest| rest.split_once(' '));
    match to.and_then(|(agent, text)| Some((agent.parse().ok()?, text.trim()))) {
        Some((agent, text)) if !text.is_empty() => (agent, text),
        Some(_) | None => (ROOT, line.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::addressed;

    #[test]
    fn a_message_is_for_the_first_agent_unless_it_names_another() {
        assert_eq!(addressed("look at @3 too"), (0, "look at @3 too"));
        assert_eq!(addressed(" @3 look there "), (3, "look there"));
        assert_eq!(addressed("@ann look"), (0, "@ann look"));
        assert_eq!(addressed("@3"), (0, "@3"));
    }
}
