//! Who may use the server: programs by a token, browsers by a cookie that a one-time link has set.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of randomness in a token, a link and a cookie.
const SECRET_BYTES: usize = 32;
/// How long a link can be used.
const LINK_MAX_AGE: Duration = Duration::from_secs(10 * 60);
/// Links that wait to be used; the oldest gives way.
const LINKS_MAX: usize = 16;
/// How long a browser stays signed in.
pub(crate) const SESSION_MAX_AGE: Duration = Duration::from_secs(12 * 60 * 60);
/// Browsers that are signed in; the oldest gives way.
const SESSIONS_MAX: usize = 64;

/// What a program sends with each request. Its text is only shown where it is asked for.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The token itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token([secret])")
    }
}

/// A link that signs one browser in, once, within ten minutes.
#[derive(Clone)]
pub struct OneTimeLink(pub(crate) String);

impl OneTimeLink {
    /// The whole address.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OneTimeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneTimeLink([secret])")
    }
}

/// The secrets of a server. They are kept as hashes, whose comparison takes the same time whatever differs.
pub(crate) struct Access {
    token: blake3::Hash,
    links: Mutex<Vec<Issued>>,
    sessions: Mutex<Vec<Issued>>,
}

struct Issued {
    secret: blake3::Hash,
    at: Instant,
}

impl Access {
    /// New secrets, and the token.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn new() -> Result<(Self, Token), getrandom::Error> {
        let token = secret()?;
        let access = Self { token: hash(&token), links: Mutex::default(), sessions: Mutex::default() };
        Ok((access, Token(token)))
    }

    pub(crate) fn is_token(&self, given: &str) -> bool {
        hash(given) == self.token
    }

    /// The code of a new link.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn issue_link(&self) -> Result<String, getrandom::Error> {
        let code = secret()?;
        keep(&mut locked(&self.links), &code, LINKS_MAX);
        Ok(code)
    }

    /// The cookie of a new session for a link's code, which is used up by that; `None` if there is no such link.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn enter(&self, code: &str) -> Result<Option<String>, getrandom::Error> {
        let code = hash(code);
        let mut links = locked(&self.links);
        links.retain(|link| link.at.elapsed() < LINK_MAX_AGE);
        let before = links.len();
        links.retain(|link| link.secret != code);
        if links.len() == before {
            return Ok(None);
        }
        let cookie = secret()?;
        keep(&mut locked(&self.sessions), &cookie, SESSIONS_MAX);
        Ok(Some(cookie))
    }

    pub(crate) fn is_session(&self, cookie: &str) -> bool {
        let cookie = hash(cookie);
        let mut sessions = locked(&self.sessions);
        sessions.retain(|session| session.at.elapsed() < SESSION_MAX_AGE);
        sessions.iter().any(|session| session.secret == cookie)
    }
}

fn keep(all: &mut Vec<Issued>, secret: &str, max: usize) {
    if all.len() >= max {
        all.remove(0);
    }
    all.push(Issued { secret: hash(secret), at: Instant::now() });
}

fn hash(secret: &str) -> blake3::Hash {
    blake3::hash(secret.as_bytes())
}

/// A new secret, in hexadecimal digits.
pub(crate) fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Access, LINKS_MAX};

    #[test]
    fn a_link_signs_one_browser_in_once() {
        let (access, token) = Access::new().unwrap();
        let code = access.issue_link().unwrap();
        assert!(access.enter("0000").unwrap().is_none());
        let cookie = access.enter(&code).unwrap().unwrap();
        assert!(access.is_session(&cookie) && !access.is_session(&code) && !access.is_token(&cookie));
        assert!(access.enter(&code).unwrap().is_none(), "it is used up");
        assert!(access.is_token(token.expose()) && !access.is_session(token.expose()));
        assert!(!format!("{token:?}").contains(token.expose()));
    }

    #[test]
    fn of_many_links_the_newest_count() {
        let (access, _) = Access::new().unwrap();
        let codes = (0..=LINKS_MAX).map(|_| access.issue_link().unwrap()).collect::<Vec<_>>();
        assert!(access.enter(&codes[0]).unwrap().is_none());
        assert!(access.enter(&codes[1]).unwrap().is_some());
    }
}
