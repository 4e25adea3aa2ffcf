//! The fields of a `[[hooks]]`: what each may be, and where it goes.

use provost_event::{HookContract, OnFailure};
use provost_hooks::UnknownEvent;

use super::{Hook, pattern};
use crate::declare::{Kind, Setting, SettingDefault};
use crate::imported::ImportSource;
use crate::stop_hook::HOOK_SECS_MAX;

/// The fields of a `[[hooks]]`.
pub(crate) const HOOK: &[Setting<Hook>] = &[
    Setting {
        kind: Kind::Checked(|hook, event| {
            hook.point = Some(provost_hooks::hook_point_of(&event).map_err(|error| no_event(&error))?);
            Ok(())
        }),
        default: SettingDefault::Unset("required, except for an import"),
        example: r#""pre_tool_call""#,
        words: "The hook point: session_start, subagent_start, prompt_submit, pre_llm_request, pre_tool_call, \
                spawn, approval, notification, child_end, post_tool_call, post_tool_success, post_tool_failure, \
                post_tool_batch, turn_end, stop, subagent_stop, pre_compact, post_compact, abort, stop_failure, \
                session_end; or its name in Claude Code, such as PreToolUse.",
        ..field("event")
    },
    Setting {
        kind: Kind::Line(|hook, text| hook.matcher = Some(text)),
        default: SettingDefault::Unset("everything"),
        example: r#""shell|write_file""#,
        words: "The tools it is called for, by exact names with | between them, or by a regular expression: \
                Provost's names and Claude Code's (Bash, Edit) both match. At the session's start and end, the \
                source or reason.",
        ..field("matcher")
    },
    Setting {
        kind: Kind::Checked(|hook, text| {
            hook.condition = Some(pattern(text)?);
            Ok(())
        }),
        default: SettingDefault::Unset("every call that the matcher matches"),
        example: r#""shell(git push *)""#,
        words: "A pattern as in [permissions] that the tool call must also match.",
        ..field("if")
    },
    Setting {
        kind: Kind::Words(|hook, text| hook.command = Some(text)),
        default: SettingDefault::Unset("one of the other four is set"),
        example: r#""./scripts/no-force-push.sh""#,
        words: "A command for `sh -c`, run in the agent's current folder; one that names a script by a relative path, in the \
                project's.",
        ..field("command")
    },
    Setting {
        kind: Kind::Line(|hook, text| hook.program = Some(text)),
        default: SettingDefault::Unset("one of the other four is set"),
        example: r#""/usr/local/bin/guard""#,
        words: "A program that is run without a shell; a relative path starts at the project's folder.",
        ..field("program")
    },
    Setting {
        kind: Kind::List(|hook, text| {
            hook.args.push(text);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["--strict"]"#,
        words: "The program's arguments.",
        ..field("args")
    },
    Setting {
        kind: Kind::Address(|hook, url| hook.url = Some(url)),
        default: SettingDefault::Unset("one of the other four is set"),
        example: r#""http://127.0.0.1:8080/hook""#,
        words: "An address that gets the hook's input by POST.",
        ..field("url")
    },
    Setting {
        kind: Kind::Words(|hook, text| hook.prompt = Some(text)),
        default: SettingDefault::Unset("one of the other four is set"),
        example: r#""Is this command safe? $ARGUMENTS""#,
        words: "A question to a model, within the run's budget: it answers {\"ok\": true}, or {\"ok\": false, \
                \"reason\": …}, which denies. $ARGUMENTS is replaced by the input as JSON, which otherwise comes \
                at the end.",
        ..field("prompt")
    },
    Setting {
        kind: Kind::Words(|hook, text| hook.agent = Some(text)),
        default: SettingDefault::Unset("one of the other four is set"),
        example: r#""Do the tests cover the change? Read them. $ARGUMENTS""#,
        words: "The same, for a model that may read files first, with the agent's read-only tools, in at most 50 \
                calls.",
        ..field("agent")
    },
    Setting {
        kind: Kind::Line(|hook, model| hook.model = Some(model)),
        default: SettingDefault::Unset("hooks.model, or else the model of the run's agent"),
        example: r#""anthropic/claude-haiku-4-5""#,
        words: "The model that is asked.",
        ..field("model")
    },
    Setting {
        kind: Kind::Truth(|hook, truth| hook.continue_on_block = truth),
        default: SettingDefault::Is("false"),
        example: "true",
        words: "Whether the agent goes on, with the reason, after an objection to a call that was made; otherwise \
                it is suspended.",
        ..field("continue_on_block")
    },
    Setting {
        kind: Kind::Texts(|hook, name, value| hook.headers.push((name, value))),
        default: SettingDefault::Unset("none"),
        example: r#"{ Authorization = "Bearer $HOOK_TOKEN" }"#,
        words: "Headers of that request. They may name variables as $NAME or ${NAME}; put secrets into variables, \
                since everything else here is in the run's log.",
        ..field("headers")
    },
    Setting {
        kind: Kind::List(|hook, name| {
            hook.allowed_env.push(crate::value::variable_name(name)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["HOOK_TOKEN"]"#,
        words: "The variables that the headers may name; others are empty there.",
        ..field("allowed_env")
    },
    Setting {
        kind: Kind::Line(|hook, name| hook.name = Some(name)),
        default: SettingDefault::Unset("made from its event and what it runs"),
        example: r#""no-force-push""#,
        words: "Its name in the log, unique among all hooks.",
        ..field("name")
    },
    Setting {
        kind: Kind::Count { min: 1, max: HOOK_SECS_MAX, put: |hook, n| hook.timeout_secs = n },
        default: SettingDefault::Is("60"),
        example: "10",
        words: "Maximum seconds, at most budget.wall_time, to which the default is shortened. Then it is ended, \
                which is no answer.",
        ..field("timeout_secs")
    },
    Setting {
        kind: Kind::Choice {
            of: &["provost", "claude", "codex"],
            put: |hook, word| {
                hook.contract = match word {
                    "claude" => HookContract::Claude,
                    "codex" => HookContract::Codex,
                    _ => HookContract::Provost,
                };
            },
        },
        default: SettingDefault::Is(r#""provost""#),
        example: r#""claude""#,
        words: "The format of its input and answer. provost: exit status 0 continues, 2 denies with standard \
                output as the reason, 3 ends the run, everything else is no answer. claude: that of Claude Code. \
                codex: that of Codex.",
        ..field("contract")
    },
    Setting {
        kind: Kind::Truth(|hook, truth| hook.once = truth),
        default: SettingDefault::Is("false"),
        example: "true",
        words: "Whether it is called only until its first answer in a session, also after a resume.",
        ..field("once")
    },
    Setting {
        kind: Kind::Choice {
            of: &["deny", "continue"],
            put: |hook, word| {
                hook.on_failure =
                    Some(if word == "continue" { OnFailure::Continue } else { OnFailure::Deny });
            },
        },
        default: SettingDefault::Unset(
            "with the contract provost deny at pre_tool_call, else continue; with the others continue, but deny where it \
             can't be run at all",
        ),
        example: r#""deny""#,
        words: "What happens when it gives no answer: deny, or continue without it.",
        ..field("on_failure")
    },
    Setting {
        kind: Kind::Truth(|hook, truth| hook.reminders = Some(truth)),
        default: SettingDefault::Unset("true if its contract is claude or codex, else false"),
        example: "true",
        words: "Whether it may add text for the model.",
        ..field("reminders")
    },
    Setting {
        kind: Kind::Checked(|hook, word| {
            hook.import = Some(ImportSource::parse(&word)?);
            Ok(())
        }),
        default: SettingDefault::Unset("nothing is imported"),
        example: r#""claude""#,
        words: "In a [[hooks]] of its own: takes hooks and permissions of another program (claude, claude-user, \
                claude-plugin:FOLDER, codex), after all others. The same as import = [\"claude\"] in a table [hooks].",
        ..field("import")
    },
    Setting {
        kind: Kind::List(|hook, name| {
            hook.env.push(crate::value::variable_name(name)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["SLACK_WEBHOOK_URL"]"#,
        words: "In a [[hooks]] of its own: further variables for all hooks, by name, as env in a table [hooks].",
        ..field("env")
    },
];

const fn field(name: &'static str) -> Setting<Hook> {
    Setting::declared("", name)
}

fn no_event(error: &UnknownEvent) -> String {
    match error {
        UnknownEvent::Unknown { nearest: Some(name) } => {
            format!("there is no such event (did you mean `{name}`?)")
        }
        UnknownEvent::Unknown { nearest: None } | UnknownEvent::NotImplemented(_) => error.to_string(),
    }
}
