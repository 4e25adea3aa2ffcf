//! `skill`: the instructions of a skill.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{Access, Json, ToolSpec, ToolSubject};
use provost_harness::{Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::spec::About;

const DESCRIPTION: &str = "The instructions of a skill, by its name.";

/// Instructions that an agent gets when it asks for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillText {
    /// The name of the skill.
    pub name: String,
    /// What it says.
    pub body: String,
    /// Its folder, in which it may have other files.
    pub folder: PathBuf,
}

/// Gives agents the texts of skills. What a skill tells them to do is done by other tools, with their permissions.
#[derive(Debug, Clone)]
pub struct UseSkill {
    spec: ToolSpec,
    skills: Arc<[SkillText]>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: String,
}

impl UseSkill {
    /// A tool for these skills.
    #[must_use]
    pub fn new(skills: Vec<SkillText>) -> Self {
        let about = About {
            name: "skill",
            description: DESCRIPTION,
            access: Access::Reads,
            subject: ToolSubject::Opaque,
            forms: Vec::new(),
            aliases: &["Skill"],
            grammar: None,
            summary_field: Some("name"),
            idempotent: true,
            timeout: Duration::from_secs(30),
        };
        Self { spec: about.spec::<Arguments>(), skills: skills.into() }
    }
}

#[async_trait]
impl Tool for UseSkill {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, _context: &ToolContext) -> ToolOutput {
        let Arguments { name } = match arguments::read(&self.spec.name, input) {
            Ok(arguments) => arguments,
            Err(misfit) => return misfit,
        };
        match self.skills.iter().find(|skill| skill.name == name) {
            Some(SkillText { body, folder, .. }) => {
                ToolOutput::ok(format!("Skill `{name}`; paths in it start at {}\n\n{body}", folder.display()))
            }
            None => {
                let names = self.skills.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>();
                let there = if names.is_empty() { "there are none now".to_owned() } else { names.join(", ") };
                ToolOutput::rejected(format!("there is no skill `{name}`: {there}"))
            }
        }
    }
}
