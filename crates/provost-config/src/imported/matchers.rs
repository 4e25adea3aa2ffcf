//! Matchers of other programs' hooks that match no tool.

use provost_event::HookPolicy;
use provost_hooks::matches_nothing;

use crate::hook::is_about_a_tool;
use crate::known_tools::KnownTools;

/// Tools of the programs whose hooks are imported, which Provost doesn't have: a hook for them has nothing to do here.
const ELSEWHERE: [&str; 22] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Edit",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Read",
    "Skill",
    "Task",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "Write",
    "apply_patch",
];
/// What the tools of MCP servers begin with.
const OF_MCP: &str = "mcp__";

/// What of the hook's matcher matches no tool, each with what may be meant.
pub(super) fn never_match(hook: &HookPolicy, known: &KnownTools) -> Vec<String> {
    let Some(matcher) =
        hook.matcher.as_ref().filter(|_| hook.contract.is_foreign() && is_about_a_tool(hook.point))
    else {
        return Vec::new();
    };
    let names = known.names().chain(ELSEWHERE).collect::<Vec<_>>();
    let lost = matches_nothing(hook.point, matcher, &names);
    let lost = lost.into_iter().filter(|name| !name.contains(OF_MCP));
    lost.map(|name| {
        let remedy = match name.split_once('(').filter(|(_, rest)| rest.ends_with(')')) {
            Some(_) => "a pattern of a call belongs into `if`".to_owned(),
            None => {
                let is_like = |known: &&&str| known.eq_ignore_ascii_case(&name);
                match names.iter().find(is_like) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "no tool has this name".to_owned(),
                }
            }
        };
        format!("its matcher `{name}` matches no tool, so that it is never asked; {remedy}")
    })
    .collect()
}
