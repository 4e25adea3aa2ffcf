//! The ways in which the user is told.

use std::path::Path;

use provost_config::DesktopNotices;
use provost_harness::HookCommand;
use provost_process::{Confinement, Ending, helper_env};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::news::NewsItem;
use super::{Bell, Notifying, WITHIN};

/// Bytes kept of what a command says, for the reason of its failure.
const OUTPUT_BYTES_MAX: usize = 4 * 1024;
/// Time between the request to end and the forced end.
const GRACE: std::time::Duration = std::time::Duration::from_millis(500);
/// What a desktop's own program needs besides.
const DESKTOP_ENV: [&str; 2] = ["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];

/// The platform's program that shows a notification; its last arguments are title and text.
#[cfg(target_os = "macos")]
const SYSTEM: &[&str] = &[
    "osascript",
    "-e",
    "on run argv",
    "-e",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "-e",
    "end run",
];
#[cfg(not(target_os = "macos"))]
const SYSTEM: &[&str] = &["notify-send", "--app-name=Provost", "--"];

/// One way.
pub(super) enum Way {
    /// The terminal shows it.
    Terminal { bell: Bell, sequence: fn(&NewsItem) -> String },
    /// The platform's program does.
    System,
    /// A command for the shell.
    Command(String),
    /// An address.
    Webhook { address: String, headers: Vec<(String, SecretString)> },
}

/// Those that the settings name. Without a terminal there is none that could show anything.
pub(super) fn ways(notifying: Notifying) -> Vec<Way> {
    let Notifying { settings, headers, bell } = notifying;
    let at_terminal = |sequence| bell.map(|bell| Way::Terminal { bell, sequence });
    let desktop = match settings.desktop {
        DesktopNotices::Off => None,
        DesktopNotices::Osc9 => at_terminal(osc9),
        DesktopNotices::Osc777 => at_terminal(osc777),
        DesktopNotices::System => Some(Way::System),
    };
    let command = settings.command.map(Way::Command);
    let webhook = settings.webhook.map(|address| Way::Webhook { address, headers });
    desktop.into_iter().chain(command).chain(webhook).collect()
}

impl Way {
    /// Tells it.
    ///
    /// # Errors
    /// Why it couldn't be told, and in which way.
    pub(super) async fn tell(&self, item: &NewsItem, workspace: &Path) -> Result<(), String> {
        let told = match self {
            Self::Terminal { bell, sequence } => {
                bell(&sequence(item));
                Ok(())
            }
            Self::System => system(item).await,
            Self::Command(command) => run(command, item, workspace).await,
            Self::Webhook { address, headers } => {
                let body = item.json().to_string().into_bytes();
                provost_telemetry::post_json(address, headers, body, WITHIN).await
            }
        };
        told.map_err(|why| format!("{}: {why}", self.setting()))
    }

    const fn setting(&self) -> &'static str {
        match self {
            Self::Terminal { .. } | Self::System => "notify.desktop",
            Self::Command(_) => "notify.command",
            Self::Webhook { .. } => "notify.webhook",
        }
    }
}

/// What a terminal shows as a notification with a title, which ends at a semicolon. The texts hold no control characters.
fn osc777(item: &NewsItem) -> String {
    format!("\u{1b}]777;notify;{};{}\u{1b}\\", item.title.replace(';', ","), item.text)
}

/// The same as one text: one that begins with a number and a semicolon would be another order.
fn osc9(item: &NewsItem) -> String {
    format!("\u{1b}]9;{}. {}\u{1b}\\", item.title, item.text)
}

async fn system(item: &NewsItem) -> Result<(), String> {
    let mut words = SYSTEM.iter().map(|word| (*word).to_owned());
    let program = words.next().unwrap_or_default();
    let args = words.chain([item.title.clone(), item.text.clone()]).map(Into::into).collect();
    let command = HookCommand {
        program: program.into(),
        args,
        env: helper_env(&DESKTOP_ENV),
        cwd: std::env::temp_dir(),
        input: Vec::new(),
        keep_bytes_max: OUTPUT_BYTES_MAX,
        timeout: WITHIN,
        grace: GRACE,
        ends_within: Some(WITHIN + GRACE),
        confinement: Confinement::Strongest,
    };
    finished(command).await
}

async fn run(command: &str, item: &NewsItem, workspace: &Path) -> Result<(), String> {
    let mut env = helper_env(&DESKTOP_ENV);
    let run = item.run.to_string();
    let values = [("EVENT", item.event.name()), ("RUN", &run), ("TITLE", &item.title), ("TEXT", &item.text)];
    env.extend(values.map(|(name, value)| (format!("PROVOST_NOTIFY_{name}").into(), value.into())));
    let command = HookCommand {
        program: "sh".into(),
        args: vec!["-c".into(), command.into()],
        env,
        cwd: workspace.to_owned(),
        input: item.json().to_string().into_bytes(),
        keep_bytes_max: OUTPUT_BYTES_MAX,
        timeout: WITHIN,
        grace: GRACE,
        ends_within: Some(WITHIN + GRACE),
        confinement: Confinement::Strongest,
    };
    finished(command).await
}

async fn finished(command: HookCommand) -> Result<(), String> {
    let program = command.program.to_string_lossy().into_owned();
    let finished = command.run(&CancellationToken::new()).await?;
    match finished.ending {
        Ending::Exited(0) => Ok(()),
        Ending::Exited(status) => {
            let said = finished.stderr.to_text_lossy();
            let last = said.trim().lines().last().map(|line| format!(": {line}")).unwrap_or_default();
            Err(format!("{program} ended with exit status {status}{last}"))
        }
        _ => Err(format!("{program} was ended: it may take {} s", WITHIN.as_secs())),
    }
}
