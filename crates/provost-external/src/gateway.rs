//! Points a program to the model gateway: arguments, variables and files from its profile.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_engine::Answer;
use provost_event::{Block, ErrorClass, ExternalPolicy, Metering, ModelFailure, SessionId, TroubleCause};
use provost_harness::{AgentSandbox, FolderAccess, GatewayActivity};
use provost_terminal::{GatewayRoute, Profile, ProgramKind, RouteValues};

use crate::DriversOptions;
use crate::boxed::{Starting, granted};
use crate::driver::private_folder;

/// What the gateway's address begins with.
const SCHEME: &str = "http://";
/// The folder with the files of programs.
const FILES: &str = "gateway";

/// What a program is started with besides its own arguments and variables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pointed {
    /// Arguments before its own.
    pub(crate) args: Vec<String>,
    /// Variables that replace others.
    pub(crate) env: Vec<(String, String)>,
}

impl Pointed {
    /// The program's arguments with those that point it: before its own, or, where it is run by another program, behind.
    pub(crate) fn before(&self, policy: &ExternalPolicy, profile: &Profile, args: &[String]) -> Vec<String> {
        let own = args.iter().cloned();
        let pointing = self.args.iter().cloned();
        if profile.is_for(&policy.program, &[]) {
            pointing.chain(own).collect()
        } else {
            own.chain(pointing).collect()
        }
    }

    /// The variables with those that point the program.
    pub(crate) fn over(&self, mut env: Vec<(String, String)>) -> Vec<(String, String)> {
        env.retain(|(name, _)| !self.env.iter().any(|(own, _)| own == name));
        env.extend(self.env.iter().filter(|(_, value)| !value.is_empty()).cloned());
        env
    }
}

/// What points the program to the gateway; nothing if its policy has none.
///
/// # Errors
/// `Program`: there is no gateway here, its profile doesn't say how, its sandbox can't reach it, or a file can't be written.
pub(crate) async fn pointed(
    options: &DriversOptions,
    starting: Starting<'_>,
) -> Result<Pointed, ModelFailure> {
    let Starting { session, policy, profile, sandbox } = starting;
    if policy.metering != Metering::Gateway {
        return Ok(Pointed::default());
    }
    let failed = |message: String| ModelFailure::new(ErrorClass::Program, message);
    let Some(route) = &profile.gateway else {
        let message = format!(
            "profile `{}` doesn't say how `{}` is pointed to the model gateway",
            profile.name, policy.program
        );
        return Err(failed(message));
    };
    let Some(gateway) = &options.gateway else {
        return Err(failed("there is no model gateway here".to_owned()));
    };
    let access = gateway.open(session).await.map_err(failed)?;
    let url = reached(sandbox, access.url).await.map_err(|error| {
        failed(format!(
            "the model gateway can't be reached from the sandbox of `{}`: {error}",
            policy.program
        ))
    })?;
    let folder = files_of(&options.folder, session);
    let cant_write = |error: io::Error| {
        let shown = folder.display();
        failed(format!("can't write what points `{}` to the gateway into {shown}: {error}", policy.program))
    };
    let mut shown = folder.display().to_string();
    if !route.files.is_empty() {
        private_folder(&folder).map_err(cant_write)?;
        shown = granted(&**sandbox, &folder, FolderAccess::Read).map_err(cant_write)?.display().to_string();
    }
    let values = RouteValues { url: &url, token: &access.token, folder: &shown };
    write(route, &folder, values).map_err(cant_write)?;
    Ok(Pointed {
        args: route.args.iter().map(|arg| values.fill(arg)).collect(),
        env: route.env.iter().map(|(name, value)| (name.clone(), values.fill(value))).collect(),
    })
}

/// The gateway's address as the program reaches it from its sandbox.
async fn reached(sandbox: &Arc<dyn AgentSandbox>, url: String) -> io::Result<String> {
    let Some(address) = url.strip_prefix(SCHEME).and_then(|text| text.parse().ok()) else { return Ok(url) };
    let sandbox = Arc::clone(sandbox);
    let admitted = tokio::task::spawn_blocking(move || sandbox.admit(address));
    Ok(format!("{SCHEME}{}", admitted.await.map_err(io::Error::other)??))
}

/// Withdraws the access of a session's program, once its calls are charged.
pub(crate) async fn withdraw(options: &DriversOptions, session: SessionId) {
    let Some(gateway) = &options.gateway else { return };
    gateway.close(session).await;
    let folder = files_of(&options.folder, session);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, folder = %folder.display(), "a program's files for the gateway stay");
        }
        _ => {}
    }
}

/// What the gateway knows of the program's model calls.
pub(crate) fn activity(options: &DriversOptions, session: SessionId) -> GatewayActivity {
    let activity = options.gateway.as_ref().and_then(|gateway| gateway.activity(session));
    activity.map(|activity| activity.borrow().clone()).unwrap_or_default()
}

/// The failure of the last model call in an exchange: whatever the program says or shows, its model gave it no answer.
pub(crate) struct ModelTrouble {
    class: ErrorClass,
    status: Option<u16>,
    message: String,
}

impl ModelTrouble {
    /// By the calls before and after an exchange; `None` if the last call in it was answered. An agent has failed by a
    /// failed last call. A script may have its own way to deal with one, and is only held to at least one answer.
    pub(crate) fn of(kind: ProgramKind, before: &GatewayActivity, after: &GatewayActivity) -> Option<Self> {
        let failure = after.failure.as_ref().filter(|_| after.begun > before.begun)?;
        let class = match kind {
            ProgramKind::Agent => failure.class,
            ProgramKind::Plain if after.answered > before.answered => return None,
            // Only a new key is worth another start of a script, by a person.
            ProgramKind::Plain if failure.class.cause() == TroubleCause::Key => failure.class,
            ProgramKind::Plain => ErrorClass::Program,
        };
        let status = failure.status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
        let message = format!("its model gave no answer{status}: {}", failure.message);
        Some(Self { class, status: failure.status, message })
    }

    /// The result of the exchange. A question is one in any case, and a failure of another class than the program's own
    /// is what it says.
    pub(crate) fn judge(self, came: Result<Answer, ModelFailure>) -> Result<Answer, ModelFailure> {
        let Self { class, status, message } = self;
        match came {
            Ok(answer) if answer.content.iter().any(|block| matches!(block, Block::ToolCall(_))) => {
                Ok(answer)
            }
            Ok(answer) => {
                let usage = answer.usage;
                Err(ModelFailure { status, usage, ..ModelFailure::new(class, message) })
            }
            Err(own) if own.class == ErrorClass::Program => {
                let message = format!("{message}. {}", own.message);
                Err(ModelFailure { class, status, message, ..own })
            }
            Err(own) => Err(own),
        }
    }
}

fn files_of(folder: &Path, session: SessionId) -> PathBuf {
    folder.join(FILES).join(format!("{}-{}", session.run, session.agent))
}

/// Writes the files into a folder that only its owner reads: they hold the token.
fn write(route: &GatewayRoute, folder: &Path, values: RouteValues<'_>) -> io::Result<()> {
    for (name, text) in &route.files {
        fs::write(folder.join(name), values.fill(text))?;
    }
    Ok(())
}
