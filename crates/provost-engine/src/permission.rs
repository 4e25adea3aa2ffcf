//! Permissions: whether a tool call is allowed, needs approval, or is denied.
//!
//! Pure: a ruling depends only on the patterns, the call and the workspace's path, so that it is the same on every
//! run and every replay. It examines text: it doesn't follow links, read script files or know what a program does.
//! It guards against mistakes of agents; against malicious agents a sandbox is needed.

mod call;
mod glob;
mod names;
mod path;
mod pattern;
mod shell;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use provost_event::{
    AgentPolicy, Json, KEEP_RUNNING, Permission, PermissionPolicy, ToolIdentity, ToolSpec, ToolSubject,
};

use call::{Call, Subject};
use pattern::Touch;

pub use names::agent_names;
pub use pattern::{Pattern, PatternError, PatternMismatch};
pub use shell::ScriptNames;

/// Compiled permissions of one agent.
///
/// `deny` beats `ask` beats `allow` beats the policy's default for all other calls; `approved` patterns lift an
/// `ask`, also one by default, and never a `deny`. `ask` and `deny` count where any part of a call matches
/// ([`Pattern::touches`]); `allow` and `approved` only where all of it is covered as written: every simple command
/// of a shell command, by any of their patterns. Output into a file is only covered if the pattern contains `>`.
///
/// A command whose text doesn't show all that it runs (the name of a program that the shell inserts, a script that
/// is built at run time, what can't be read, more than 16 KiB) is covered by no `shell(PATTERN)`, and needs at
/// least approval where there are `ask` or `deny` patterns with arguments for the shell. Where such a `deny` may
/// match, only a person's answer to that call lifts the question.
///
/// An `ask` or `deny` for `shell` also counts for the command lines of every other tool that runs some or types at a
/// terminal; an `allow` or `approved` doesn't.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    rules: Vec<Rule>,
    default: Permission,
    /// The decision on reading outside where other calls are allowed by default.
    elsewhere: Permission,
    /// The same for commands that are to go on after the run.
    keeping: Permission,
    /// The same for commands that are to run outside of the sandbox; absent without one.
    leaving: Option<Permission>,
    workspace: PathBuf,
    /// The folders that patterns without an argument cover besides the workspace.
    roots: Vec<PathBuf>,
    /// The agent's tools. A tool that isn't among them is known by its name only.
    tools: Vec<ToolIdentity>,
    /// The permissions of the agents above, which also apply.
    bounds: Vec<Self>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    kind: Kind,
    text: String,
    pattern: Pattern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Allow,
    Ask,
    Deny,
    Approved,
}

/// The decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The permission.
    pub permission: Permission,
    /// The pattern that decided, with its kind: `deny shell(rm *)`. Among several of one kind the one with the
    /// most literal characters, first in its arguments, then in its tool; then the earliest.
    pub rule: Option<String>,
    /// The reason, as text.
    pub why: String,
    /// Whether no pattern matched.
    pub by_default: bool,
}

impl Permissions {
    /// Reads the patterns of `policy`, for an agent with these `tools`; relative paths in them are relative to
    /// `workspace`, an absolute path.
    ///
    /// # Errors
    /// The first pattern that can't be read. Also an `allow` or `approved` one that begins with `~/`: the user's
    /// backend directory isn't known here.
    pub fn new(
        policy: &PermissionPolicy,
        workspace: &Path,
        tools: &[ToolSpec],
    ) -> Result<Self, PatternError> {
        for (kind, text) in patterns(policy) {
            let pattern = Pattern::parse(text)?;
            if matches!(kind, Kind::Allow | Kind::Approved)
                && pattern.is_of_home()
                && !pattern.names_command_lines_only()
            {
                let complaint = "begins with `~/`, which isn't known here: write the absolute path";
                return Err(PatternError { pattern: text.to_owned(), complaint });
            }
        }
        Ok(Self::of_policy(policy, workspace, tools))
    }

    /// The same for a policy that already applies and may have patterns that can't be read: an `allow` or
    /// `approved` one allows nothing, an `ask` or `deny` one counts for every call of its tool, or of all tools.
    #[must_use]
    pub fn of_policy(policy: &PermissionPolicy, workspace: &Path, tools: &[ToolSpec]) -> Self {
        let rules = patterns(policy).filter_map(|(kind, text)| Rule::new(kind, text)).collect();
        let tools = tools.iter().map(ToolSpec::identity).collect();
        Self {
            rules,
            default: policy.default,
            elsewhere: policy.elsewhere,
            keeping: policy.keeping.max(Permission::Ask),
            leaving: None,
            workspace: workspace.to_owned(),
            roots: policy.roots.clone(),
            tools,
            bounds: Vec::new(),
        }
    }

    /// The permissions of an agent that works in `workspace`, restricted by those of the agents above.
    #[must_use]
    pub fn of_agent(policy: &AgentPolicy, workspace: &Path) -> Self {
        let bounds = policy.bounds.iter().map(|bound| Self::of_policy(bound, workspace, &[])).collect();
        let leaving = policy.permissions.leaving.max(Permission::Ask);
        let leaving = (!policy.sandbox.is_off()).then_some(leaving);
        Self { bounds, leaving, ..Self::of_policy(&policy.permissions, workspace, &policy.tools) }
    }

    /// Adds a pattern that was approved for the rest of the run; one that can't be read adds nothing.
    pub fn approve(&mut self, pattern: &str) {
        self.rules.extend(Rule::new(Kind::Approved, pattern));
        self.bounds.iter_mut().for_each(|bound| bound.approve(pattern));
    }

    /// Whether nothing is ever asked or denied, except commands that are to go on after the run.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.default == Permission::Allow
            && !self.rules.iter().any(|rule| matches!(rule.kind, Kind::Ask | Kind::Deny))
            && self.bounds.iter().all(Self::is_open)
    }

    /// Whether a call of `tool` with `input` may be asked about or denied at all.
    #[must_use]
    pub fn concern(&self, tool: &str, input: &Json) -> bool {
        !self.is_open()
            || self.known(tool).is_some_and(|tool| tool.subject.keeps_running(input))
            || self.read_outside(tool, input).is_some()
            || self.leaves_sandbox(tool, input)
    }

    /// Whether a call of `tool` with `input` is to run outside of the agent's sandbox.
    #[must_use]
    pub fn leaves_sandbox(&self, tool: &str, input: &Json) -> bool {
        self.leaving.is_some() && self.known(tool).is_some_and(|tool| tool.subject.leaves_sandbox(input))
    }

    /// The ruling on a call of `tool` with `input`: the most restrictive of the agent's own permissions and those
    /// of the agents above; among equal ones the first. A command that is to go on after the run needs the permission
    /// [`KEEP_RUNNING`] as well as that of its tool. What is to run outside of the sandbox is allowed by no pattern.
    #[must_use]
    pub fn judge(&self, tool: &str, input: &Json) -> Ruling {
        let ruling = self.judge_by_patterns(tool, input);
        match self.leaving.filter(|_| self.leaves_sandbox(tool, input)) {
            Some(leaving) if ruling.permission != Permission::Deny => Ruling::on_leaving(leaving),
            Some(_) | None => ruling,
        }
    }

    fn judge_by_patterns(&self, tool: &str, input: &Json) -> Ruling {
        let tool = self.known(tool).map_or_else(|| Cow::Owned(ToolIdentity::unknown(tool)), Cow::Borrowed);
        let all = || std::iter::once(self).chain(&self.bounds);
        let keeps = tool.subject.keeps_running(input);
        let kept = all().filter(|_| keeps).map(|one| one.judge_kept(&tool, input));
        let rulings = all().map(|one| one.judge_alone(&tool, input)).chain(kept);
        let strictest =
            rulings.reduce(|first, next| if next.permission > first.permission { next } else { first });
        let strictest = strictest.unwrap_or_else(|| self.by_default(&tool));
        if keeps && strictest.permission == Permission::Allow {
            // It names the pattern without which the call wouldn't be allowed.
            return self.judge_kept(&tool, input);
        }
        strictest
    }

    fn known(&self, tool: &str) -> Option<&ToolIdentity> {
        self.tools.iter().find(|known| known.name == tool)
    }

    /// The ruling on a command of `tool` that is to go on after the run. Only patterns that name the permission allow
    /// that, and never by default.
    fn judge_kept(&self, tool: &ToolIdentity, input: &Json) -> Ruling {
        let kept = ToolIdentity { subject: tool.subject.clone(), ..ToolIdentity::unknown(KEEP_RUNNING) };
        let counts = |rule: &&Rule| match rule.kind {
            Kind::Ask | Kind::Deny => rule.pattern.names(&kept),
            Kind::Allow | Kind::Approved => rule.pattern.names_exactly(KEEP_RUNNING),
        };
        let rules = self.rules.iter().filter(counts).cloned().collect();
        let default = self.default.max(self.keeping);
        let ruling = Self { rules, default, bounds: Vec::new(), ..self.clone() }.judge_alone(&kept, input);
        if !ruling.by_default {
            return ruling;
        }
        let why = format!(
            "it is to go on after the run, which needs a permission of its own: `allow = [\"{KEEP_RUNNING}(COMMAND)\"]` \
             in [permissions]"
        );
        Ruling { why, ..ruling }
    }

    /// The file or folder that a call of `tool` reads, or changes if the tool can there, if it is neither in the workspace nor in one of the folders
    /// that permissions without a path cover. By its text alone: links aren't followed.
    #[must_use]
    pub fn read_outside(&self, tool: &str, input: &Json) -> Option<PathBuf> {
        let tool = self.known(tool)?;
        let outside = Call::read(tool, input, &self.workspace).outside(&self.roots);
        outside.map(PathBuf::from)
    }

    fn judge_alone(&self, tool: &ToolIdentity, input: &Json) -> Ruling {
        if self.rules.is_empty() && !tool.subject.reaches_outside() {
            return self.by_default(tool);
        }
        let call = Call::read(tool, input, &self.workspace);
        let outside = call.outside(&self.roots);
        let rules: Vec<&Rule> = self.rules.iter().filter(|rule| rule.speaks_of(&call)).collect();
        if let Some(rule) = touching(&rules, &call, Kind::Deny, Touch::Yes) {
            return rule.ruling(Permission::Deny, "forbids it");
        }
        let rules = rules.into_iter().filter(|rule| outside.is_none() || rule.counts_outside());
        let rules = rules.collect::<Vec<_>>();
        let coverage = Coverage::of(&rules, &call);
        let covered = self.covered(&call, &coverage);
        let covered = match &outside {
            Some(path) => self.outside(tool, path, covered),
            None => covered,
        };
        match doubted(&rules, &call) {
            // A denied call isn't made anyway, so that an unclear text is no reason to ask.
            Some(_) if covered.permission == Permission::Deny => covered,
            Some(ruling) => ruling,
            None => asked(&rules, &call, &coverage).unwrap_or(covered),
        }
    }

    /// The ruling on a call that no pattern denies or asks about.
    fn covered(&self, call: &Call<'_>, coverage: &Coverage<'_>) -> Ruling {
        let denies = self.default == Permission::Deny;
        let by = |((allowed, approved), asked): ((&Option<_>, &Option<_>), &bool)| {
            allowed.or(approved.filter(|_| *asked || !denies))
        };
        let parts = coverage.allowed.iter().zip(&coverage.approved).zip(&coverage.asked);
        let parts: Vec<Option<&Rule>> = parts.map(by).collect();
        let all: Option<Vec<&Rule>> = parts.iter().copied().collect();
        if let Some(rule) = all.and_then(|rules| most_specific(rules.into_iter())) {
            return rule.ruling(Permission::Allow, "allows it");
        }
        let ruling = self.by_default(call.tool);
        if parts.iter().all(Option::is_none) {
            return ruling;
        }
        // The other parts are allowed: the reason is in the ones that aren't.
        let bare = parts.iter().enumerate().filter(|(_, rule)| rule.is_none());
        let bare = call.named_parts(bare.map(|(part, _)| part));
        Ruling { why: format!("no pattern allows {bare}, and {}", ruling.why), ..ruling }
    }

    /// The ruling on a call that reaches outside: what no pattern with a path allows isn't allowed by default.
    fn outside(&self, tool: &ToolIdentity, path: &str, covered: Ruling) -> Ruling {
        if !covered.by_default {
            return covered;
        }
        let doing = if tool.subject.is_read_path() { "reading" } else { "changing" };
        let why = format!(
            "`{path}` is outside of the workspace: {doing} it needs the permission `{}({path})`, or its folder in \
             `roots` of [tools]",
            tool.name
        );
        let permission = match covered.permission {
            Permission::Allow => self.elsewhere,
            asked_or_denied => asked_or_denied,
        };
        Ruling { permission, why, ..covered }
    }

    fn by_default(&self, tool: &ToolIdentity) -> Ruling {
        let is_own = tool.subject == ToolSubject::Own;
        let permission = if is_own { Permission::Allow } else { self.default };
        let why = match permission {
            Permission::Allow if is_own => "it only concerns what the agent has started itself",
            Permission::Allow => "calls that match no pattern are allowed",
            Permission::Ask => "calls that match no pattern need approval",
            Permission::Deny => "calls that match no pattern are denied",
        };
        Ruling { permission, rule: None, why: why.to_owned(), by_default: true }
    }
}

impl Ruling {
    fn on_leaving(permission: Permission) -> Self {
        let why = match permission {
            Permission::Allow | Permission::Ask => {
                "it is to run outside of the sandbox, with all rights of the user"
            }
            Permission::Deny => {
                "it is to run outside of the sandbox, which a person must approve, and no one can be asked here"
            }
        };
        Self { permission, rule: None, why: why.to_owned(), by_default: false }
    }
}

/// The question about a call whose text doesn't show all that it runs.
fn doubted(rules: &[&Rule], call: &Call<'_>) -> Option<Ruling> {
    if let Some(rule) = touching(rules, call, Kind::Deny, Touch::Maybe) {
        return Some(rule.ruling(Permission::Ask, "may mean it: that shows only when the command runs"));
    }
    let bound = |kind| rules.iter().any(|rule| rule.kind == kind && rule.pattern.is_bound());
    let why = call.unclear().filter(|_| bound(Kind::Deny) || bound(Kind::Ask))?;
    let approved_whole = rules.iter().any(|rule| rule.kind == Kind::Approved && !rule.pattern.is_bound());
    if approved_whole && !bound(Kind::Deny) {
        return None;
    }
    let why = format!("what the call does can't be told from its text: {why}");
    Some(Ruling { permission: Permission::Ask, rule: None, why, by_default: false })
}

/// The question that an `ask` raises about a call, unless all the parts that it matches are approved.
fn asked(rules: &[&Rule], call: &Call<'_>, coverage: &Coverage<'_>) -> Option<Ruling> {
    let approved = |part: usize| coverage.approved.get(part).copied().flatten().is_some();
    let open =
        |rule: &&Rule| (0..call.parts()).any(|part| !approved(part) && rule.pattern.touches_part(call, part));
    let asks = rules.iter().copied().filter(|rule| rule.kind == Kind::Ask).filter(open);
    most_specific(asks).map(|rule| rule.ruling(Permission::Ask, "requires approval"))
}

/// Which patterns cover which parts of a call.
struct Coverage<'r> {
    allowed: Vec<Option<&'r Rule>>,
    approved: Vec<Option<&'r Rule>>,
    /// Which of the approved parts an `ask` matches: their approval also counts where all other calls are denied.
    asked: Vec<bool>,
}

impl<'r> Coverage<'r> {
    fn of(rules: &[&'r Rule], call: &Call<'_>) -> Self {
        let by = |kind| {
            let mut covered = vec![None; call.parts()];
            for rule in rules.iter().filter(|rule| rule.kind == kind) {
                if call.unclear().is_some() && rule.pattern.is_bound() {
                    continue;
                }
                for (part, covers) in covered.iter_mut().zip(rule.pattern.covers(call)) {
                    if covers {
                        *part = most_specific(part.iter().copied().chain([*rule]));
                    }
                }
            }
            covered
        };
        let asks =
            |part| rules.iter().any(|rule| rule.kind == Kind::Ask && rule.pattern.touches_part(call, part));
        let approved = by(Kind::Approved);
        let asked = approved.iter().enumerate().map(|(part, rule)| rule.is_some() && asks(part)).collect();
        Self { allowed: by(Kind::Allow), approved, asked }
    }
}

impl Rule {
    fn new(kind: Kind, text: &str) -> Option<Self> {
        let pattern = match (Pattern::parse(text), kind) {
            (Ok(pattern), _) => pattern,
            (Err(_), Kind::Ask | Kind::Deny) => Pattern::widest_of(text),
            (Err(_), Kind::Allow | Kind::Approved) => return None,
        };
        Some(Self { kind, text: text.to_owned(), pattern })
    }

    fn speaks_of(&self, call: &Call<'_>) -> bool {
        let restricts = matches!(self.kind, Kind::Ask | Kind::Deny);
        self.pattern.names(call.tool)
            || (restricts && call.runs_command_line() && self.pattern.names_command_lines())
    }

    /// Whether it counts for a call that reaches outside of the workspace: what allows must say where.
    fn counts_outside(&self) -> bool {
        matches!(self.kind, Kind::Ask | Kind::Deny) || self.pattern.says_where()
    }

    fn ruling(&self, permission: Permission, meaning: &str) -> Ruling {
        let rule = format!("{} {}", self.kind.word(), self.text);
        let why = format!("`{rule}` {meaning}");
        Ruling { permission, rule: Some(rule), why, by_default: false }
    }
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Approved => "approved",
        }
    }
}

fn patterns(policy: &PermissionPolicy) -> impl Iterator<Item = (Kind, &String)> {
    let kinds = [
        (Kind::Deny, &policy.deny),
        (Kind::Ask, &policy.ask),
        (Kind::Allow, &policy.allow),
        (Kind::Approved, &policy.approved),
    ];
    kinds.into_iter().flat_map(|(kind, texts)| texts.iter().map(move |text| (kind, text)))
}

fn touching<'r>(rules: &[&'r Rule], call: &Call<'_>, kind: Kind, touch: Touch) -> Option<&'r Rule> {
    most_specific(rules.iter().copied().filter(|rule| rule.kind == kind && rule.pattern.touch(call) == touch))
}

/// The narrowest rule; among equal ones the first.
fn most_specific<'r>(rules: impl Iterator<Item = &'r Rule>) -> Option<&'r Rule> {
    rules
        .enumerate()
        .max_by_key(|(at, rule)| (rule.pattern.specificity(), Reverse(*at)))
        .map(|(_, rule)| rule)
}

/// Returns the narrowest pattern that covers a call: `shell(git push origin main)`, `write_file(./src/a.rs)`,
/// `mcp__issues__close({"number":7})`.
///
/// For the shell it is the whole command. A command that no pattern can cover, since its text doesn't show all
/// that it runs, is returned as written, and needs approval again. If a tool's arguments can't be read, the
/// pattern covers nothing.
#[must_use]
pub fn narrowest_pattern(tool: &ToolIdentity, input: &Json, workspace: &Path) -> String {
    let argument = match Call::read(tool, input, workspace).subject {
        Subject::Shell(script) if script.whole.is_empty() => " ".to_owned(),
        Subject::Shell(script) => script.whole,
        Subject::Path { place, .. } => place.shown(),
        // No pattern covers several paths and nothing else.
        Subject::Files(files) => match files.as_slice() {
            [only] => only.shown(),
            _ => " ".to_owned(),
        },
        Subject::Text(text) => text,
        Subject::Unreadable => " ".to_owned(),
    };
    format!("{}({})", glob::escaped(&tool.name), glob::escaped(&argument))
}

/// The files that a call of the shell, or a line for a terminal, names as scripts to run; `None` if there are
/// none.
#[must_use]
pub fn scripts_named(tool: &ToolIdentity, input: &Json) -> Option<ScriptNames> {
    match Call::read(tool, input, Path::new("/")).subject {
        // The folder of a program at a terminal isn't known here.
        Subject::Shell(script) if matches!(tool.subject, ToolSubject::Typed { .. }) => {
            let runs_files = script.scripts.unnamed || !script.scripts.files.is_empty();
            runs_files.then(ScriptNames::unknown)
        }
        Subject::Shell(script) => {
            Some(script.scripts).filter(|names| names.unnamed || !names.files.is_empty())
        }
        Subject::Path { .. } | Subject::Files(_) | Subject::Text(_) | Subject::Unreadable => None,
    }
}
