//! What a program needs in a sandbox of Provost's, and the trial that the sandbox holds.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use provost_event::{ErrorClass, ExternalPolicy, Metering, ModelFailure, SessionId};
use provost_harness::{AgentSandbox, Exchange, FolderAccess, GrantedFolder, PrivateFolder};
use provost_terminal::Profile;

use crate::DriversOptions;
use crate::driver::private_folder;
use crate::gateway::{Pointed, pointed};

/// The folder with what programs keep of their own.
const KEPT: &str = "kept";

/// A program that is about to start.
#[derive(Clone, Copy)]
pub(crate) struct Starting<'a> {
    pub(crate) session: SessionId,
    pub(crate) policy: &'a ExternalPolicy,
    pub(crate) profile: &'a Profile,
    pub(crate) sandbox: &'a Arc<dyn AgentSandbox>,
}

impl<'a> Starting<'a> {
    pub(crate) fn of(exchange: &'a Exchange<'_>, profile: &'a Profile) -> Self {
        Self { session: exchange.session, policy: exchange.policy, profile, sandbox: &exchange.sandbox }
    }
}

/// What the program is started with besides its own arguments and variables.
///
/// # Errors
/// `Program`: the sandbox doesn't hold, the gateway can't be reached, or a folder can't be made.
pub(crate) async fn surroundings(
    options: &DriversOptions,
    starting: Starting<'_>,
) -> Result<Pointed, ModelFailure> {
    let confines = starting.sandbox.confines();
    if confines {
        checked(starting).await?;
    }
    let mut all = pointed(options, starting).await?;
    let users =
        |name: &String| starting.policy.passes.contains(name) || starting.policy.env.contains_key(name);
    let private = starting.profile.private.iter().filter(|(name, _)| !users(name)).collect::<Vec<_>>();
    if !private.is_empty() {
        let folder = options.private.of(starting.session);
        let folder = folder.and_then(|folder| granted(&**starting.sandbox, &folder, FolderAccess::Write));
        let folder = folder.map_err(|error| {
            failed(starting, &format!("the folder for its server can't be made: {error}"))
        })?;
        for (variable, name) in private {
            let place = folder.join(name.trim_end_matches('/'));
            if name.ends_with('/') {
                make(starting, &place)?;
            }
            all.env.push((variable.clone(), place.display().to_string()));
        }
    }
    if !confines {
        return Ok(all);
    }
    let own = &starting.profile.sandbox;
    all.args.extend(own.args.iter().cloned());
    let is_passed = |name: &String| starting.policy.passes.contains(name);
    let fixed = own.env.iter().filter(|(name, _)| !is_passed(name));
    all.env.extend(fixed.map(|(name, value)| (name.clone(), value.clone())));
    if starting.policy.metering == Metering::Gateway {
        let folders = own.folders.iter().filter(|(name, _)| !is_passed(name)).collect::<Vec<_>>();
        if !folders.is_empty() {
            let kept = kept(options, starting).map_err(|error| {
                failed(starting, &format!("the folder for what it keeps can't be made: {error}"))
            })?;
            for (variable, name) in folders {
                let folder = kept.join(name);
                make(starting, &folder)?;
                all.env.push((variable.clone(), folder.display().to_string()));
            }
        }
    }
    Ok(all)
}

fn make(starting: Starting<'_>, folder: &Path) -> Result<(), ModelFailure> {
    private_folder(folder)
        .map_err(|error| failed(starting, &format!("{} can't be made: {error}", folder.display())))
}

/// The folders in which programs have servers of their own. Their names are short, as those of sockets must be; they are
/// removed when their programs have ended.
#[derive(Debug, Default)]
pub struct PrivatePlaces(Mutex<HashMap<SessionId, PrivateFolder>>);

impl PrivatePlaces {
    fn of(&self, session: SessionId) -> io::Result<PathBuf> {
        let mut folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = match folders.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(PrivateFolder::new("server")?),
        };
        Ok(folder.path().to_owned())
    }

    /// Removes that of a session whose program has ended.
    pub(crate) fn remove(&self, session: SessionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
}

/// Tries whether the sandbox holds and programs run in it; without that no program is trusted to it.
async fn checked(starting: Starting<'_>) -> Result<(), ModelFailure> {
    let sandbox = Arc::clone(starting.sandbox);
    let tried = tokio::task::spawn_blocking(move || sandbox.check()).await;
    let held = tried.unwrap_or_else(|_| Err("the trial panicked".to_owned()));
    held.map_err(|why| failed(starting, &format!("its sandbox doesn't hold: {why}")))
}

/// A private folder in which the program keeps settings and sessions, as long as its run is kept.
fn kept(options: &DriversOptions, starting: Starting<'_>) -> io::Result<PathBuf> {
    let Starting { session, sandbox, .. } = starting;
    let folder = options.folder.join(KEPT).join(format!("{}-{}", session.run, session.agent));
    private_folder(&folder)?;
    granted(&**sandbox, &folder, FolderAccess::Write)
}

/// Lets the program use a folder of Provost's; its whole path.
pub(crate) fn granted(
    sandbox: &dyn AgentSandbox,
    folder: &Path,
    access: FolderAccess,
) -> io::Result<PathBuf> {
    let path = folder.canonicalize()?;
    sandbox.grant(GrantedFolder { path: path.clone(), access });
    Ok(path)
}

fn failed(starting: Starting<'_>, why: &str) -> ModelFailure {
    let message = format!("`{}` isn't started: {why}", starting.policy.program);
    ModelFailure::new(ErrorClass::Program, message)
}
