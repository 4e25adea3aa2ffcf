//! What is known of a program's screens, as data (TOML).

/// What is known of a program.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name.
    pub name: String,
}

/// Why a text is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// It isn't TOML, or has fields that no profile has.
    #[error("profile `{name}`: {message}")]
    Malformed {
        /// Which.
        name: String,
        /// Why, with the line.
        message: String,
    },
}
