//! What a setting is: its key, its words, what it may be, and where its value goes.

use std::path::PathBuf;

use provost_event::MicroDollars;

/// One setting of a `T`. Reader, `provost init`, reference page and JSON Schema all follow from this.
pub(crate) struct Setting<T: 'static> {
    /// The table it stands in, such as `agent`; for the fields of a list's item or of a table with a name of the
    /// user's choosing, the one within that, mostly empty.
    pub section: &'static str,
    /// Its name in that table.
    pub name: &'static str,
    /// What it may be, and where it goes.
    pub kind: Kind<T>,
    /// Its value when it isn't set.
    pub default: SettingDefault,
    /// A value that makes sense, as TOML.
    pub example: &'static str,
    /// One or two sentences.
    pub words: &'static str,
    /// The flag of `provost run` or `exec` that sets it.
    pub flag: Option<&'static str>,
    /// Variables that set it besides the one that its key gives, the stronger first.
    pub variables: &'static [&'static str],
    /// Which layers may set it.
    pub from: From,
}

/// What a setting may be. Each kind carries the place that a value of it goes to.
pub(crate) enum Kind<T> {
    /// A text of one line, not empty.
    Line(fn(&mut T, String)),
    /// Any text.
    Text(fn(&mut T, String)),
    /// A text that isn't blank.
    Words(fn(&mut T, String)),
    /// A whole number within bounds, both included.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// Where it goes.
        put: fn(&mut T, u64),
    },
    /// A number from 0 to 1, both included.
    Fraction(fn(&mut T, f64)),
    /// Dollars, more than none.
    Money(fn(&mut T, MicroDollars)),
    /// A time such as `2h 30m`, in milliseconds.
    Time(fn(&mut T, u64)),
    /// An `http` or `https` address.
    Address(fn(&mut T, String)),
    /// The name of an environment variable.
    Variable(fn(&mut T, String)),
    /// A path, absolute.
    Folder(fn(&mut T, PathBuf)),
    /// Yes or no.
    Truth(fn(&mut T, bool)),
    /// Dollars, or none.
    Price(fn(&mut T, MicroDollars)),
    /// One of these words.
    Choice {
        /// The words.
        of: &'static [&'static str],
        /// Where it goes.
        put: fn(&mut T, &str),
    },
    /// A text of one line that meets a rule of its own, whose errors say what is wrong.
    Checked(fn(&mut T, String) -> Result<(), String>),
    /// A list of texts. Each goes where it belongs by itself, or is refused by itself.
    List(fn(&mut T, String) -> Result<(), String>),
    /// A list of names, at least one and at most `max`. It is taken as a whole: the list of a stronger layer
    /// replaces it.
    Names {
        /// The most.
        max: u64,
        /// Where they go.
        put: fn(&mut T, Vec<String>),
    },
    /// A table of texts, whose names are the user's choice.
    Texts(fn(&mut T, String, String)),
}

/// The value of a setting that isn't set.
#[derive(Clone, Copy)]
pub(crate) enum SettingDefault {
    /// This, as TOML.
    Is(&'static str),
    /// Nothing, which means this.
    Unset(&'static str),
    /// It must be set.
    Required,
}

/// Which layers may set a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// All of them.
    Anywhere,
    /// Not the file of a project, which may be untrusted.
    User,
}

impl<T> Setting<T> {
    /// A setting with everything that most don't have.
    pub(crate) const fn declared(section: &'static str, name: &'static str) -> Self {
        Self {
            section,
            name,
            kind: Kind::Text(|_, _| {}),
            default: SettingDefault::Required,
            example: "",
            words: "",
            flag: None,
            variables: &[],
            from: From::Anywhere,
        }
    }

    /// The key with its section.
    pub(crate) fn key(&self) -> String {
        if self.section.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.section, self.name) }
    }

    /// Whether it is a list, of which each file gives a part.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self.kind, Kind::List(_))
    }

    /// The variable that its key gives.
    pub(crate) fn own_variable(&self) -> String {
        format!("PROVOST_{}", self.key().replace('.', "_").to_uppercase())
    }

    /// Everything in the environment that sets it, the strongest first; lists stand in files only.
    pub(crate) fn all_variables(&self) -> Vec<String> {
        if self.is_list() {
            return Vec::new();
        }
        let others = self.variables.iter().map(|name| (*name).to_owned());
        std::iter::once(self.own_variable()).chain(others).collect()
    }
}
