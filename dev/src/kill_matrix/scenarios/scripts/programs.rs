//! An external agent at a terminal.

use std::collections::BTreeMap;

use provost_event::{Channel, ExternalPolicy, ModelPolicy, Permission, RunPolicy, WindowSize};
use provost_harness::consent_tools;

/// Reads a task, asks for consent to write it to a file, and writes it.
const NOTARY: &str = r#"
printf 'Task: '; read -r task
printf 'Write it down? [y/N] '; read -r answer
case $answer in
    y*) echo "$task" >> notes.txt; echo written ;;
    *) echo left ;;
esac
"#;

/// An agent that is a shell script.
pub(in crate::kill_matrix) fn notary(policy: &mut RunPolicy) {
    let agent = &mut policy.agent;
    agent.model = ModelPolicy::new("external/sh", 1);
    agent.tools = consent_tools();
    agent.permissions.default = Permission::Ask;
    agent.permissions.allow = vec!["consent".to_owned()];
    agent.external = Some(Box::new(ExternalPolicy {
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), NOTARY.to_owned()],
        env: BTreeMap::new(),
        passes: Vec::new(),
        profile: "generic".to_owned(),
        channel: Channel::Terminal,
        size: WindowSize::default(),
        submits_goal: true,
        attended: false,
        unrecorded: false,
        idle_ms: None,
        metering: provost_event::Metering::Reported,
    }));
}
