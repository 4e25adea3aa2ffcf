//! Thinking that is bound to the messages before it.
//!
//! Newer models accept a thinking block only after the same system prompt, tools and messages that it was an
//! answer to; otherwise the whole request is refused (platform.claude.com/docs, "Preserved thinking"). So each
//! answer records a hash of its request, and thinking after a different prefix isn't sent.

use std::borrow::Cow;

use provost_event::{Block, PrefixHash};
use provost_harness::{Message, Part, Role};

use super::request::{bytes, hash};
use crate::wire::Thoughts;

/// The version from which the models of a family check the prefix of their thinking. Families that aren't listed
/// are taken as their latest version.
const BOUND_FROM: [(&str, Version); 3] =
    [("fable", Version(5, 1)), ("mythos", Version(5, 1)), ("", Version(5, 5))];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

/// Whether the model `name` checks the prefix of its thinking.
pub(super) fn is_bound(name: &str) -> bool {
    let Some((_, name)) = name.rsplit_once("claude-") else { return false };
    // Before generation 4 the version stands before the family's name.
    let mut parts = name.split(['-', '.', '@', ':']);
    let family = parts.next().unwrap_or_default();
    // A date isn't a version.
    let mut number = || parts.next().filter(|part| part.len() <= 2).and_then(|part| part.parse::<u32>().ok());
    let Some(major) = number() else { return false };
    let version = Version(major, number().unwrap_or(0));
    let floor = BOUND_FROM.iter().find(|(of, _)| *of == family || of.is_empty());
    floor.is_some_and(|(_, floor)| version >= *floor)
}

/// The messages of a request, with the thinking that is accepted.
pub(super) struct Bound<'a> {
    /// Serialized, in order; empty for a message without anything to send.
    pub(super) messages: Vec<Cow<'a, [u8]>>,
    /// The hash of the request.
    pub(super) prefix: PrefixHash,
    /// Whether it contains thinking.
    pub(super) has_thoughts: bool,
}

/// Serializes `messages` after `head`, the bytes of system prompt and tools. If `checks` is set, thinking that
/// wouldn't be accepted is left out.
pub(super) fn bind<'a>(head: &[u8], messages: &'a [std::sync::Arc<Message>], ways: Ways) -> Bound<'a> {
    let mut binding = Binding { sent: Chain::new(head), bare: None, out: Vec::with_capacity(messages.len()) };
    for (place, message) in messages.iter().enumerate() {
        let thoughts = Recorded::of(message);
        let keeps = match (&thoughts, ways.thoughts) {
            (Recorded::NoThoughts, _) => true,
            (_, Thoughts::LeftOut) => false,
            (Recorded::Unknown, Thoughts::Sent) => true,
            (Recorded::Behind(prefix), Thoughts::Sent) => {
                !ways.checks || binding.stands_behind(prefix, head, messages.get(..place).unwrap_or_default())
            }
        };
        binding.push(message, keeps);
    }
    let has_thoughts = messages
        .iter()
        .zip(&binding.out)
        .any(|(message, (_, kept))| *kept && Recorded::of(message) != Recorded::NoThoughts);
    Bound {
        prefix: binding.sent.hash(),
        messages: binding.out.into_iter().map(|(bytes, _)| bytes).collect(),
        has_thoughts,
    }
}

/// How thinking is handled.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    pub(super) thoughts: Thoughts,
    /// Whether the model checks the prefix.
    pub(super) checks: bool,
}

struct Binding<'a> {
    sent: Chain,
    /// The hash without any thinking; begun at the first block that doesn't fit.
    bare: Option<Chain>,
    /// Each message's bytes, and whether they contain its thinking.
    out: Vec<(Cow<'a, [u8]>, bool)>,
}

impl<'a> Binding<'a> {
    fn push(&mut self, message: &'a Message, keeps: bool) {
        let thoughts = if keeps { Thoughts::Sent } else { Thoughts::LeftOut };
        self.sent.add(message, thoughts);
        if let Some(chain) = &mut self.bare {
            chain.add(message, Thoughts::LeftOut);
        }
        self.out.push((bytes(message, thoughts), keeps));
    }

    /// Whether an answer to a request with the hash `prefix` may keep its thinking after the messages so far. If
    /// that request had no thinking, because the provider had refused it with some, the earlier messages are sent
    /// without theirs, as they were then.
    fn stands_behind(
        &mut self,
        prefix: &PrefixHash,
        head: &[u8],
        before: &'a [std::sync::Arc<Message>],
    ) -> bool {
        if self.sent.hash() == *prefix {
            return true;
        }
        let chain = self.bare.get_or_insert_with(|| {
            let mut chain = Chain::new(head);
            before.iter().for_each(|message| chain.add(message, Thoughts::LeftOut));
            chain
        });
        let is_bare = chain.hash() == *prefix;
        if is_bare {
            self.sent = chain.clone();
            self.out = before
                .iter()
                .map(|message| {
                    (bytes(message, Thoughts::LeftOut), Recorded::of(message) == Recorded::NoThoughts)
                })
                .collect();
        }
        is_bare
    }
}

/// A hash of the request, extended message by message: of the hashes of its head and of each message, which are
/// made once, so that a turn doesn't hash the whole conversation.
#[derive(Clone)]
struct Chain(blake3::Hasher);

impl Chain {
    fn new(head: &[u8]) -> Self {
        let mut chain = Self(blake3::Hasher::new());
        chain.0.update(blake3::hash(head).as_bytes());
        chain
    }

    /// Adds a message; an empty one changes nothing.
    fn add(&mut self, message: &Message, thoughts: Thoughts) {
        if !bytes(message, thoughts).is_empty() {
            self.0.update(&hash(message, thoughts));
        }
    }

    fn hash(&self) -> PrefixHash {
        PrefixHash(self.0.finalize().to_hex().chars().take(16).collect())
    }
}

/// The prefix that a message's thinking records.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Recorded {
    NoThoughts,
    /// No request is recorded: another model's thinking.
    Unknown,
    Behind(PrefixHash),
}

impl Recorded {
    fn of(message: &Message) -> Self {
        if message.role == Role::User {
            return Self::NoThoughts;
        }
        let thoughts = message.parts.iter().filter_map(|part| match part {
            Part::Block(Block::Thinking { prefix, .. } | Block::Opaque { prefix, .. }) => Some(prefix),
            Part::Block(_) | Part::Image(_) | Part::ToolResult { .. } => None,
        });
        let mut recorded = Self::NoThoughts;
        for prefix in thoughts {
            recorded = match prefix {
                Some(prefix) => return Self::Behind(prefix.clone()),
                None => Self::Unknown,
            };
        }
        recorded
    }
}

#[cfg(test)]
mod tests {
    use super::is_bound;

    #[test]
    fn thinking_is_bound_from_a_version_of_each_family_on() {
        for name in [
            "claude-fable-5-1",
            "claude-fable-5-2",
            "claude-fable-6",
            "claude-mythos-5-1",
            "claude-opus-5-5",
            "claude-sonnet-5-5-20261001",
            "claude-haiku-5-5",
            "claude-haiku-6@20270101",
            "us.anthropic.claude-opus-6-v1:0",
            "anthropic/claude-sonnet-5.5",
            "claude-saga-7",
        ] {
            assert!(is_bound(name), "{name}");
        }
        for name in [
            "claude-fable-5",
            "claude-opus-5",
            "claude-opus-5-20260501",
            "claude-opus-4-8",
            "claude-sonnet-4-20250514",
            "claude-3-5-haiku-20241022",
            "claude-haiku-4-5",
            "gpt-6",
            "",
        ] {
            assert!(!is_bound(name), "{name}");
        }
    }
}
