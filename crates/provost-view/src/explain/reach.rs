//! Which tools matchers and patterns apply to, as far as their texts tell for certain.

use provost_engine::Pattern;
use provost_event::{KEEP_RUNNING, ToolIdentity, ToolSubject};

/// Whether a hook's matcher matches `tool`; `None` for a regular expression, which isn't evaluated here.
pub(super) fn matcher_means(matcher: &str, tool: &ToolIdentity) -> Option<bool> {
    if matches!(matcher, "" | "*") {
        return Some(true);
    }
    let is_list =
        matcher.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | ',' | '|'));
    let names = tool.names().chain(tool.subject.names_for_hooks().iter().copied()).collect::<Vec<_>>();
    is_list.then(|| matcher.split(['|', ',']).any(|wanted| names.contains(&wanted.trim())))
}

/// Whether a pattern of the permissions is about `tool`, whatever its arguments. One whose tool can't be read is
/// about all tools; one of the permission to keep a command running is about the tools that can.
pub(super) fn pattern_means(pattern: &str, tool: &ToolIdentity) -> bool {
    let name = pattern.trim().split('(').next().unwrap_or_default();
    let keeps = matches!(tool.subject, ToolSubject::Command { keeps: Some(_), .. });
    let means =
        |named: Pattern| named.names(tool) || (keeps && named.names(&ToolIdentity::unknown(KEEP_RUNNING)));
    Pattern::parse(name).map_or(true, means)
}

/// Whether a pattern matches every call of its tools, whatever the arguments.
pub(super) fn means_all_calls(pattern: &str) -> bool {
    match pattern.trim().split_once('(') {
        None => pattern.trim() != KEEP_RUNNING,
        Some((KEEP_RUNNING, _)) => false,
        Some((_, rest)) => matches!(rest.strip_suffix(')'), Some("*")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell() -> ToolIdentity {
        ToolIdentity { aliases: vec!["Bash".to_owned()], ..ToolIdentity::unknown("shell") }
    }

    #[test]
    fn plain_matchers_mean_tools_by_all_their_names() {
        for (matcher, expected) in [
            ("", Some(true)),
            ("*", Some(true)),
            ("shell", Some(true)),
            ("Bash", Some(true)),
            ("read_file | Bash", Some(true)),
            ("read_file,search", Some(false)),
            ("shel", Some(false)),
            ("shel.*", None),
        ] {
            assert_eq!(matcher_means(matcher, &shell()), expected, "{matcher}");
        }
    }

    #[test]
    fn a_pattern_to_keep_commands_running_means_the_tool_that_can_and_not_all_its_calls() {
        let subject = ToolSubject::Command {
            field: "command".to_owned(),
            keeps: Some("keep_running".to_owned()),
            leaves: None,
        };
        let keeping = ToolIdentity { subject, ..shell() };
        for pattern in ["keep_running", "keep_running(npm *)", "keep_running(*)"] {
            assert!(pattern_means(pattern, &keeping) && !pattern_means(pattern, &shell()), "{pattern}");
            assert!(!means_all_calls(pattern), "{pattern}");
        }
    }

    #[test]
    fn patterns_mean_tools_whatever_they_say_of_arguments() {
        for (pattern, expected) in [
            ("shell", true),
            ("shell(rm *)", true),
            ("Bash(rm *)", true),
            ("*(x)", true),
            ("sh*", true),
            ("read_file", false),
            ("read_file(shell)", false),
            ("", true),
        ] {
            assert_eq!(pattern_means(pattern, &shell()), expected, "{pattern}");
        }
    }

    #[test]
    fn only_patterns_without_arguments_mean_all_calls() {
        for (pattern, expected) in [
            ("shell", true),
            ("shell()", false),
            ("shell(*)", true),
            ("shell(**)", false),
            ("shell(a", false),
        ] {
            assert_eq!(means_all_calls(pattern), expected, "{pattern}");
        }
    }
}
