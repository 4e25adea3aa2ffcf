//! Permission rules of a settings file, as patterns of Provost.

use serde_json::Value;

/// The list that a rule stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleList {
    /// Calls that are never made.
    Deny,
    /// Calls that need approval.
    Ask,
    /// Calls that may be made.
    Allow,
}

impl RuleList {
    /// All of them, the most restrictive first.
    pub const ALL: [Self; 3] = [Self::Deny, Self::Ask, Self::Allow];

    /// Its name in the file, and in Provost's settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

/// A rule of the file, in Provost's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRule {
    /// Its list.
    pub list: RuleList,
    /// The rule as it was written.
    pub written: String,
    /// The patterns that mean the same together. Paths that are relative to the project's folder begin with `./`.
    pub patterns: Vec<String>,
}

/// The rules of the lists in `permissions`, and why others aren't taken.
pub(super) fn rules_in(permissions: &Value) -> Vec<(RuleList, String, Result<Vec<String>, String>)> {
    let mut all = Vec::new();
    for list in RuleList::ALL {
        let rules = permissions.get(list.name()).and_then(Value::as_array).into_iter().flatten();
        for rule in rules {
            let text = rule.as_str().map_or_else(|| rule.to_string(), str::to_owned);
            let patterns = match rule.as_str() {
                Some(rule) => patterns(rule.trim()),
                None => Err("it is no text".to_owned()),
            };
            all.push((list, text, patterns));
        }
    }
    all
}

/// The tools that a rule for one of these is about, by names that Provost's own patterns may use.
const SAME: &[(&[&str], &[&str])] = &[
    (&["Read"], &["Read", "Grep", "Glob"]),
    (&["Edit", "Write", "MultiEdit", "NotebookEdit"], &["Edit", "Write"]),
    (&["Grep"], &["Grep"]),
    (&["Glob", "LS"], &["Glob"]),
];

fn patterns(rule: &str) -> Result<Vec<String>, String> {
    let parts = rule.strip_suffix(')').and_then(|rule| rule.split_once('('));
    let (tool, argument) = match parts {
        Some((tool, argument)) => (tool, Some(argument).filter(|argument| !matches!(*argument, "" | "*"))),
        None => (rule, None),
    };
    let of = |tools: &[&str], argument: Option<String>| {
        let one = |tool: &&str| match &argument {
            Some(argument) => format!("{tool}({argument})"),
            None => (*tool).to_owned(),
        };
        Ok(tools.iter().map(one).collect())
    };
    let files = SAME.iter().find(|(names, _)| names.contains(&tool)).map(|(_, tools)| *tools);
    match (tool, argument) {
        (_, argument) if let Some(tools) = files => of(tools, argument.map(path)),
        ("Bash", argument) => of(&["Bash"], argument.map(str::to_owned)),
        ("WebFetch", None) => of(&["fetch"], None),
        ("WebFetch", Some(argument)) => match argument.strip_prefix("domain:") {
            Some(host) => Ok(vec![format!("fetch(*://{host}/*)"), format!("fetch(*://{host})")]),
            None => Err("only `domain:` is known for it".to_owned()),
        },
        ("*", None) => Ok(vec!["*".to_owned()]),
        ("Agent" | "Task", None) => of(&["Agent"], None),
        ("TodoWrite", None) => of(&["TodoWrite"], None),
        (tool, None) if tool.starts_with("mcp__") => {
            // A server's name alone is all of its tools.
            let is_server = tool.trim_start_matches("mcp__").split("__").count() == 1;
            Ok(vec![if is_server { format!("{tool}__*") } else { tool.to_owned() }])
        }
        _ => Err("Provost has no tool that it could mean".to_owned()),
    }
}

/// A path of the rule: there `//` begins an absolute one, and `/` one that begins in the project's folder.
fn path(path: &str) -> String {
    match path.strip_prefix('/') {
        Some(absolute) if absolute.starts_with('/') => absolute.to_owned(),
        Some(of_project) => format!("./{of_project}"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::patterns;

    #[test]
    fn a_rule_is_about_all_tools_that_do_the_same() {
        let of =
            |rule: &str| patterns(rule).map(|all| all.join(" · ")).unwrap_or_else(|why| format!("- {why}"));
        assert_eq!(of("Bash"), "Bash");
        assert_eq!(of("Bash(git push:*)"), "Bash(git push:*)");
        assert_eq!(of("Read(./.env)"), "Read(./.env) · Grep(./.env) · Glob(./.env)");
        assert_eq!(of("Edit(/src/**)"), "Edit(./src/**) · Write(./src/**)");
        assert_eq!(of("Write(//etc/**)"), "Edit(/etc/**) · Write(/etc/**)");
        assert_eq!(of("Read(*)"), "Read · Grep · Glob");
        assert_eq!(of("WebFetch(domain:example.com)"), "fetch(*://example.com/*) · fetch(*://example.com)");
        assert_eq!(of("mcp__db"), "mcp__db__*");
        assert_eq!(of("mcp__db__drop"), "mcp__db__drop");
        assert_eq!(of("WebSearch"), "- Provost has no tool that it could mean");
        assert_eq!(of("Agent(Explore)"), "- Provost has no tool that it could mean");
    }
}
