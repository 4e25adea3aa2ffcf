//! Which tools matchers and patterns apply to, as far as their texts tell for certain.

use provost_engine::Pattern;
use provost_event::ToolIdentity;

/// Whether a hook's matcher matches `tool`; `None` for a regular expression, which isn't evaluated here.
pub(super) fn matcher_means(matcher: &str, tool: &ToolIdentity) -> Option<bool> {
    if matches!(matcher, "" | "*") {
        return Some(true);
    }
    let is_list =
        matcher.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | ',' | '|'));
    is_list.then(|| matcher.split(['|', ',']).any(|wanted| tool.names().any(|name| name == wanted.trim())))
}

/// Whether a pattern of the permissions is about `tool`, whatever its arguments. One whose tool can't be read is
/// about all tools.
pub(super) fn pattern_means(pattern: &str, tool: &ToolIdentity) -> bool {
    let name = pattern.trim().split('(').next().unwrap_or_default();
    Pattern::parse(name).map_or(true, |named| named.names(tool))
}

/// Whether a pattern matches every call of its tools, whatever the arguments.
pub(super) fn means_all_calls(pattern: &str) -> bool {
    match pattern.trim().split_once('(') {
        None => true,
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
