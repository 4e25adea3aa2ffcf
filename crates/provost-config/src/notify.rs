//! `[notify]`: who is told when a run needs the user or has stopped.

use super::Settings;
use super::declare::{From, Kind, Setting, SettingDefault};

/// What `[notify]` is for.
pub(crate) const NOTIFY_WORDS: &str = "Notifications when a run needs you or has stopped; each at most once. A \
    project's file may set none of it. See docs/watching.md.";

/// Something that a run's user may be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifyOn {
    /// A call waits for an approval.
    Approval,
    /// The run is suspended.
    Suspended,
    /// It is completed.
    Finished,
    /// It has failed, or a hook aborted it.
    Failed,
    /// 80 % of a limit is used.
    Budget,
}

impl NotifyOn {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Approval, Self::Suspended, Self::Finished, Self::Failed, Self::Budget];

    /// Its name in settings and in what programs get.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Suspended => "suspended",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Budget => "budget",
        }
    }

    fn parse(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|event| event.name() == word).ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            format!("must be one of {all} (is `{word}`)")
        })
    }
}

/// How the desktop is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DesktopNotices {
    /// Not at all.
    #[default]
    Off,
    /// By the terminal that Provost runs in, with OSC 9.
    Osc9,
    /// By the terminal that Provost runs in, with OSC 777, which has a title.
    Osc777,
    /// By the platform's own program.
    System,
}

/// The settings of notifications.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotifySettings {
    /// What is told of; empty: all.
    pub on: Vec<NotifyOn>,
    /// How the desktop is told.
    pub desktop: DesktopNotices,
    /// A command for the shell.
    pub command: Option<String>,
    /// An address that gets each as JSON.
    pub webhook: Option<String>,
    /// The variable that holds headers for it.
    pub webhook_headers_env: Option<String>,
}

impl NotifySettings {
    /// Whether this is told of.
    #[must_use]
    pub fn tells_of(&self, event: NotifyOn) -> bool {
        self.on.is_empty() || self.on.contains(&event)
    }

    /// Whether anything is told at all.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        !matches!(self.desktop, DesktopNotices::Off) || self.command.is_some() || self.webhook.is_some()
    }
}

/// The settings of `[notify]`. They name programs and addresses, so that a project's file may set none of them.
pub(crate) const NOTIFY: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::List(|s, word| {
            s.notify.on.push(NotifyOn::parse(&word)?);
            Ok(())
        }),
        default: SettingDefault::Unset("all of them"),
        example: r#"["approval", "failed"]"#,
        words: "The events: approval (a call waits for it), suspended, finished, failed, budget (80 % of a limit \
                is used).",
        ..notify("on")
    },
    Setting {
        kind: Kind::Choice {
            of: &["off", "osc9", "osc777", "system"],
            put: |s, word| {
                s.notify.desktop = match word {
                    "osc9" => DesktopNotices::Osc9,
                    "osc777" => DesktopNotices::Osc777,
                    "system" => DesktopNotices::System,
                    _ => DesktopNotices::Off,
                };
            },
        },
        default: SettingDefault::Is(r#""off""#),
        example: r#""osc777""#,
        words: "How the desktop shows it: by the terminal that Provost runs in (osc9, osc777; also over ssh), or by the \
                platform's program (system: notify-send, osascript).",
        ..notify("desktop")
    },
    Setting {
        kind: Kind::Line(|s, command| s.notify.command = Some(command)),
        default: SettingDefault::Unset("none is run"),
        example: r#""jq -r .text | mail -s Provost me""#,
        words: "A command for the shell, in the run's folder. It gets the notification as JSON on its standard input, and \
                the variables PROVOST_NOTIFY_EVENT, _RUN, _TITLE and _TEXT; it may take 5 seconds.",
        ..notify("command")
    },
    Setting {
        kind: Kind::Address(|s, address| s.notify.webhook = Some(address)),
        default: SettingDefault::Unset("nothing is sent"),
        example: r#""https://hooks.example.com/provost""#,
        words: "An address that each notification is posted to, as JSON; it may take 5 seconds to answer.",
        ..notify("webhook")
    },
    Setting {
        kind: Kind::Variable(|s, name| s.notify.webhook_headers_env = Some(name)),
        default: SettingDefault::Unset("no headers"),
        example: r#""NOTIFY_HEADERS""#,
        words: "The environment variable that holds headers for the webhook, such as `authorization=…,x-topic=…`.",
        ..notify("webhook_headers_env")
    },
];

const fn notify(name: &'static str) -> Setting<Settings> {
    Setting { from: From::User, ..Setting::declared("notify", name) }
}
