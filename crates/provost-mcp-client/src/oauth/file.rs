//! The file with a login. Only its owner reads it; processes that renew its token do so one after the other.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use provost_event::Timestamp;
use rmcp::transport::auth::{
    AuthError, AuthorizationMetadata, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Login;
use crate::Reach;

const VERSION: u32 = 1;
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How long another process may renew a token, and how often to look. The request may take half a minute.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(40);
const LOCK_AGAIN: Duration = Duration::from_millis(20);

/// What of a login stays the same when its token is renewed.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Head {
    version: u32,
    /// The address of the server: the login counts nowhere else.
    pub(super) url: String,
    /// The secret that the authorization server gave when Provost registered itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    pub(super) redirect_uri: String,
    /// What the authorization server says of itself.
    pub(super) metadata: AuthorizationMetadata,
}

impl Head {
    pub(super) fn new(url: &str, redirect_uri: &str, metadata: AuthorizationMetadata) -> Self {
        let (url, redirect_uri) = (url.to_owned(), redirect_uri.to_owned());
        Self { version: VERSION, url, client_secret: None, redirect_uri, metadata }
    }
}

/// A login.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    #[serde(flatten)]
    pub(super) head: Head,
    credentials: StoredCredentials,
}

impl Kept {
    pub(super) fn client_id(&self) -> String {
        self.credentials.client_id.clone()
    }

    /// A text of the answer that brought the token.
    fn of_token(&self, name: &str) -> Option<Value> {
        let response = serde_json::to_value(self.credentials.token_response.as_ref()?).ok()?;
        response.get(name).cloned()
    }

    fn token(&self, name: &str) -> Option<String> {
        self.of_token(name)?.as_str().map(str::to_owned)
    }

    /// The token with which others can be had, or else the one that there is.
    pub(super) fn longest_lived(&self) -> Option<String> {
        self.token("refresh_token").or_else(|| self.token("access_token"))
    }

    /// Why its token can't be sent; `None` if it can.
    pub(super) fn objection(&self) -> Option<&'static str> {
        let is_bearer = self.token("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
        match self.token("access_token") {
            None => Some("it gave no token"),
            Some(token) if token.is_empty() => Some("the token that it gave is empty"),
            Some(token) if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Some("the token that it gave has characters that none may have")
            }
            Some(_) if !is_bearer => Some("the token that it gave isn't one to send as it is (bearer)"),
            Some(_) => None,
        }
    }

    pub(super) fn login(&self) -> Option<Login> {
        self.token("access_token")?;
        let at = self.credentials.token_received_at;
        let lasts = self.of_token("expires_in").and_then(|seconds| seconds.as_u64());
        let at_ms = |seconds: u64| Timestamp(seconds.saturating_mul(1_000));
        Some(Login {
            at: at.map(at_ms),
            expires_at: at.zip(lasts).map(|(at, lasts)| at_ms(at.saturating_add(lasts))),
            renews: self.token("refresh_token").is_some(),
            scopes: self.credentials.granted_scopes.clone(),
            issuer: self.credentials.issuer.clone(),
        })
    }
}

/// The tokens of the user's login there, which no text may show. Empty without one.
pub(crate) fn tokens(reach: &Reach) -> Vec<String> {
    let Reach::Http { url, login, .. } = reach else { return Vec::new() };
    let kept = read(&login.file, url).ok().flatten();
    let Some(kept) = kept else { return Vec::new() };
    let tokens = ["access_token", "refresh_token", "id_token"].map(|name| kept.token(name));
    tokens.into_iter().flatten().chain(kept.head.client_secret).collect()
}

/// The login at `url`; `None` if the file isn't there, or is of another address.
///
/// # Errors
/// When the file is there and can't be read.
pub(super) fn read(file: &Path, url: &str) -> Result<Option<Kept>, String> {
    let cant = |why: &dyn std::fmt::Display| {
        format!("{} can't be read: {why}; `provost mcp logout` removes it", file.display())
    };
    match std::fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cant(&error)),
        Ok(facts) if !facts.is_file() => return Err(cant(&"it isn't a file")),
        Ok(facts) if facts.len() > FILE_BYTES_MAX => return Err(cant(&"it is too long")),
        Ok(facts) => keep_to_owner(file, &facts).map_err(|error| cant(&error))?,
    }
    let text = std::fs::read_to_string(file).map_err(|error| cant(&error))?;
    // No error of the parser: it may quote a token.
    let kept = serde_json::from_str::<Kept>(&text).map_err(|_| cant(&"it isn't a login"))?;
    if kept.head.version != VERSION {
        return Err(cant(&format!(
            "it is of version {}, which this program doesn't know",
            kept.head.version
        )));
    }
    Ok(Some(kept).filter(|kept| kept.head.url == url))
}

/// Takes the file from others who may read it by its mode: a copy or an editor has changed that.
#[cfg(unix)]
fn keep_to_owner(file: &Path, facts: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if facts.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn keep_to_owner(_: &Path, _: &std::fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Removes the file. Returns whether it was there.
///
/// # Errors
/// When it can't be removed.
pub(super) fn remove(file: &Path) -> Result<bool, String> {
    match std::fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{} can't be removed: {error}", file.display())),
    }
}

/// The file as `rmcp` uses it.
pub(crate) struct FileStore {
    file: PathBuf,
    head: Head,
}

impl FileStore {
    pub(crate) fn new(file: PathBuf, head: Head) -> Self {
        Self { file, head }
    }

    /// The file has the old or all of the new.
    fn write(&self, credentials: StoredCredentials) -> io::Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        make_folder(folder)?;
        let kept = Kept { head: self.head.clone(), credentials };
        // A file made like this is its owner's alone.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(serde_json::to_string_pretty(&kept)?.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.file)?;
        Ok(())
    }
}

/// Makes a folder of the owner's alone.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn failed(why: impl std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(why.to_string())
}

#[async_trait]
impl CredentialStore for FileStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let kept = read(&self.file, &self.head.url).map_err(failed)?;
        Ok(kept.map(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.write(credentials).map_err(|error| failed(format!("{}: {error}", self.file.display())))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        remove(&self.file).map_err(failed)?;
        Ok(())
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let path = self.file.with_extension("lock");
        let cant = |error: &dyn std::fmt::Display| failed(format!("{}: {error}", path.display()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        // Who may open it may lock it, and so keep its owner out.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options.open(&path).map_err(|error| cant(&error))?;
        let began = Instant::now();
        loop {
            match File::try_lock(&lock) {
                Ok(()) => return Ok(Some(CredentialRefreshGuard::new(lock))),
                Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_WAIT_MAX => {
                    tokio::time::sleep(LOCK_AGAIN).await;
                }
                Err(TryLockError::WouldBlock) => return Err(cant(&"another process keeps it")),
                Err(TryLockError::Error(error)) => return Err(cant(&error)),
            }
        }
    }
}
