//! Ids of runs, sessions, log positions, effects, calls and blobs.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Crockford's base 32 in lower case: no `i`, `l`, `o`, `u`, so that an id can be read aloud.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const RUN_ID_CHARS: u32 = 12;
/// A run's letters, a dot, and the ten digits of the largest number.
const SESSION_ID_BYTES_MAX: usize = RUN_ID_CHARS as usize + 1 + 10;

/// A text isn't a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct IdError {
    text: String,
    wanted: &'static str,
}

impl IdError {
    fn new(text: &str, wanted: &'static str) -> Self {
        Self { text: text.chars().take(80).collect(), wanted }
    }
}

/// The id of a run: 60 random bits, shown as 12 characters of Crockford's base 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u64);

impl RunId {
    /// A new id, from the randomness that the standard library seeds its hash maps with.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each one is different")]
    pub fn new() -> Self {
        Self::from_entropy(RandomState::new().hash_one(()))
    }

    /// An id of random bits; the upper four of the 64 are dropped.
    #[must_use]
    pub const fn from_entropy(bits: u64) -> Self {
        Self(bits & ((1 << (5 * RUN_ID_CHARS)) - 1))
    }

    /// The bits that [`RunId::from_entropy`] turns into this id.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = [b'0'; RUN_ID_CHARS as usize];
        let mut rest = self.0;
        for letter in letters.iter_mut().rev() {
            let digit = usize::try_from(rest & 31).ok();
            *letter = digit.and_then(|digit| ALPHABET.get(digit)).copied().unwrap_or(b'0');
            rest >>= 5;
        }
        f.write_str(str::from_utf8(&letters).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::new(text, "a run id (12 characters such as `k3x9m2p7q4ab`)");
        if text.len() != RUN_ID_CHARS as usize {
            return Err(wrong());
        }
        text.bytes()
            .try_fold(0_u64, |bits, byte| {
                let digit = ALPHABET.iter().position(|a| *a == byte).ok_or_else(wrong)?;
                Ok(bits << 5 | digit as u64)
            })
            .map(Self)
    }
}

/// The id of an agent of a run and of its log; the root agent is number 0. Shown as `RUN.NUMBER`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// The run the agent works for.
    pub run: RunId,
    /// The agent's number within the run.
    pub agent: u32,
}

impl SessionId {
    /// The id of the root agent of `run`.
    #[must_use]
    pub const fn root(run: RunId) -> Self {
        Self { run, agent: 0 }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In one piece, so that a string of it is allocated once.
        let mut text = [0; SESSION_ID_BYTES_MAX];
        let mut left = &mut text[..];
        write!(left, "{}.{}", self.run, self.agent).map_err(|_| fmt::Error)?;
        let length = SESSION_ID_BYTES_MAX - left.len();
        let text = text.get(..length).and_then(|text| str::from_utf8(text).ok());
        f.write_str(text.ok_or(fmt::Error)?)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SessionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::new(text, "a session id (a run id, a dot, a number)");
        let (run, agent) = text.split_once('.').ok_or_else(wrong)?;
        Ok(Self { run: run.parse()?, agent: agent.parse().map_err(|_| wrong())? })
    }
}

/// The id of an actor and its log: of a run (budget, agent tree, listing) or of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActorKey {
    /// The run's actor.
    Run(RunId),
    /// One agent.
    Session(SessionId),
}

impl ActorKey {
    /// The run the actor belongs to.
    #[must_use]
    pub const fn run(self) -> RunId {
        match self {
            Self::Run(run) => run,
            Self::Session(session) => session.run,
        }
    }
}

impl fmt::Display for ActorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => run.fmt(f),
            Self::Session(session) => session.fmt(f),
        }
    }
}

impl fmt::Debug for ActorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ActorKey {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.contains('.') { text.parse().map(Self::Session) } else { text.parse().map(Self::Run) }
    }
}

impl From<RunId> for ActorKey {
    fn from(run: RunId) -> Self {
        Self::Run(run)
    }
}

impl From<SessionId> for ActorKey {
    fn from(session: SessionId) -> Self {
        Self::Session(session)
    }
}

/// The number of an entry in its log, from 1; 0 precedes the first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Precedes the first entry.
    pub const START: Self = Self(0);

    /// Whether it precedes the first entry.
    #[must_use]
    pub const fn is_start(&self) -> bool {
        self.0 == 0
    }

    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of an effect: the entry that recorded its intent. Also its idempotency key. Shown as `ACTOR#SEQ`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId {
    /// The actor of the effect.
    pub actor: ActorKey,
    /// The entry that recorded it.
    pub seq: Seq,
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.actor, self.seq)
    }
}

impl fmt::Debug for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for EffectId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::new(text, "an effect id (an actor, `#`, a number)");
        let (actor, seq) = text.split_once('#').ok_or_else(wrong)?;
        Ok(Self { actor: actor.parse()?, seq: Seq(seq.parse().map_err(|_| wrong())?) })
    }
}

macro_rules! as_text {
    ($($id:ident: $form:literal),*) => {$(
        impl JsonSchema for $id {
            fn schema_name() -> Cow<'static, str> {
                stringify!($id).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $form })
            }
        }

        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl de::Visitor<'_> for Text {
                    type Value = $id;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an id as text")
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$id, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    )*};
}
as_text! {
    RunId: "The id of a run: 12 characters of Crockford's base 32.",
    SessionId: "An agent of a run: the run's id, a dot, and the agent's number; 0 is the root.",
    ActorKey: "The actor of a log: the id of a run, or of an agent of it.",
    EffectId: "An entry of a log: the actor, `#`, and the entry's number."
}

/// The id of a tool call; given by the provider, unique within one answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CallId(pub Arc<str>);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&str> for CallId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// The id of a body stored beside the log: the hash of its bytes (64 hexadecimal digits).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct BlobId(pub Arc<str>);

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A time: milliseconds since 1970-01-01T00:00Z.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time `ms` milliseconds later.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` until this; 0 if `earlier` is later.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A reading of a clock that can't be set: milliseconds since an origin that only readings of the same clock
/// share.
///
/// In a record it is the *run's elapsed time*: how long processes had held the run by then, each by its monotonic
/// clock. It stands still while no process holds the run and while the machine is suspended.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Elapsed(pub u64);

impl Elapsed {
    /// The reading `ms` milliseconds later.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` until this; 0 if `earlier` is later.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
