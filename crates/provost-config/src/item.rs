//! The lists of tables: `[[stop_hooks]]`, `[[hooks]]` and `[[agents]]`.

use super::Settings;
use super::declare::Setting;
use super::errors::Source;

/// An item of a list of tables.
pub(crate) trait Item: Sized + 'static {
    /// The list's key.
    const LIST: &'static str;
    /// What one is called.
    const ONE: &'static str;
    /// What each must have at least.
    const LEAST: &'static str;
    /// Its fields.
    const FIELDS: &'static [Setting<Self>];

    /// An item that begins at `source`, with its defaults.
    fn at(source: Source) -> Self;

    /// Notes where one of its fields was given.
    fn note(&mut self, field: &'static str, source: Source);

    /// What is wrong with it as a whole.
    fn objections(&self) -> Vec<Objection>;

    /// Where it goes.
    fn put(self, settings: &mut Settings);
}

/// What is wrong with an item as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Objection {
    /// The field that it shows at; empty where it is about all of them.
    pub field: &'static str,
    /// What.
    pub what: String,
    /// What would be right.
    pub remedy: String,
}

impl Objection {
    /// `what` is wrong at `field`.
    pub(crate) fn new(field: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { field, what: what.into(), remedy: remedy.into() }
    }
}
