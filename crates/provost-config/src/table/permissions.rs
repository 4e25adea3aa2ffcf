//! `[permissions]`.

use provost_event::{Permission, Unanswered};

use crate::Settings;
use crate::declare::{From, Kind, Setting, SettingDefault};
use crate::hook::pattern;

/// Which tool calls may be made.
pub(super) const PERMISSIONS: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::List(|s, text| add(&mut s.permissions.allow, text)),
        default: SettingDefault::Unset("none"),
        example: r#"["read_file", "search", "shell(cargo *)"]"#,
        words: "Calls that may be made. A project's file that allows something must be trusted first.",
        ..permissions("allow")
    },
    Setting {
        kind: Kind::List(|s, text| add(&mut s.permissions.ask, text)),
        default: SettingDefault::Unset("none"),
        example: r#"["shell(git push *)"]"#,
        words: "Calls that need approval.",
        ..permissions("ask")
    },
    Setting {
        kind: Kind::List(|s, text| add(&mut s.permissions.deny, text)),
        default: SettingDefault::Unset("none"),
        example: r#"["shell(rm -rf *)", "write_file(.env)"]"#,
        words: "Calls that are never made.",
        ..permissions("deny")
    },
    Setting {
        kind: Kind::List(|s, text| add(&mut s.permissions.approved, text)),
        default: SettingDefault::Unset("none"),
        example: r#"["shell(git push origin main)"]"#,
        words: "Calls that you have approved for all runs: `provost approve --always` adds them here.",
        from: From::User,
        ..permissions("approved")
    },
    Setting {
        kind: Kind::Choice {
            of: &["allow", "ask", "deny"],
            put: |s, word| s.permissions.default = Some(permission(word)),
        },
        default: SettingDefault::Unset("ask where anything is listed in allow, else allow"),
        example: r#""ask""#,
        words: "What happens to a call that no pattern matches.",
        ..permissions("default")
    },
    Setting {
        kind: Kind::Time(|s, ms| s.permissions.approval_timeout_ms = ms),
        default: SettingDefault::Is(r#""1h""#),
        example: r#""15m""#,
        words: "How long a call waits for an approval.",
        ..permissions("approval_timeout")
    },
    Setting {
        kind: Kind::Choice {
            of: &["deny", "pause"],
            put: |s, word| {
                s.permissions.unanswered = if word == "pause" { Unanswered::Pause } else { Unanswered::Deny };
            },
        },
        default: SettingDefault::Is(r#""deny""#),
        example: r#""pause""#,
        words: "What happens to a call that isn't answered in that time: it isn't made and the agent goes on, or the run \
                is suspended until it is answered.",
        ..permissions("unanswered")
    },
];

const fn permissions(name: &'static str) -> Setting<Settings> {
    Setting::declared("permissions", name)
}

/// Adds a pattern.
fn add(list: &mut Vec<String>, text: String) -> Result<(), String> {
    list.push(pattern(text)?);
    Ok(())
}

/// The permission that a word of the choice means.
pub(crate) fn permission(word: &str) -> Permission {
    match word {
        "allow" => Permission::Allow,
        "ask" => Permission::Ask,
        _ => Permission::Deny,
    }
}
