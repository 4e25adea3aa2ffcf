//! Facts about models: context window, output cap, price, capabilities. The built-in facts are in `models.toml`;
//! those of an update override them, and the user's override both.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use provost_event::{Effort, ModelPolicy, Price};
use serde::{Deserialize, Serialize};

static BUILT_IN: LazyLock<Vec<ModelFacts>> = LazyLock::new(|| {
    // A test parses the same file: it can't fail here.
    toml::from_str::<Table>(include_str!("../models.toml")).map(|table| table.model).unwrap_or_default()
});

/// The default output cap of a model whose real one is unknown: every current model supports it. At most this part
/// of the window.
const OUTPUT_TOKENS_MAX: u32 = 8192;
const OUTPUT_DIVISOR: u64 = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    model: Vec<ModelFacts>,
}

/// The facts about one model; `None` is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// Its name without a date: `provider/model`.
    pub name: String,
    /// Its aliases in the same form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Maximum tokens of a request with its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u64>,
    /// Maximum tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_max: Option<u32>,
    /// The price of its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether it accepts pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// How its thinking is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// The efforts above `high` that it accepts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub higher_efforts: Vec<Effort>,
    /// Whether it was taught to change files by patches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patches: Option<bool>,
    /// The day from which the provider no longer offers it, as `YYYY-MM-DD`; `None` if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retires: Option<String>,
    /// The model that replaces it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// The source of the facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The day of the facts, as `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// The origin of the facts.
    #[serde(skip)]
    pub origin: Origin,
}

/// The origin of a model's facts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The built-in table.
    #[default]
    BuiltIn,
    /// A public table that the user imported.
    Updated,
    /// The user's settings, at least in part.
    Own,
}

/// How a model's thinking is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// By a thinking budget in tokens.
    Budget,
    /// By an effort level.
    Effort,
    /// It doesn't think, and refuses a thinking setting.
    None,
}

/// Models by name: the built-in ones, with the user's over them.
#[derive(Debug, Clone)]
pub struct Catalog {
    all: Vec<ModelFacts>,
}

impl Catalog {
    /// The built-in models.
    #[must_use]
    pub fn built_in() -> Self {
        Self { all: BUILT_IN.clone() }
    }

    /// Adds the user's `facts`; fields that are `None` keep the known value of a model with that name. They apply
    /// to its releases too.
    #[must_use]
    pub fn with(mut self, facts: ModelFacts) -> Self {
        let known = self.find(&facts.name).cloned().unwrap_or_default();
        let merged = ModelFacts { origin: Origin::Own, ..facts.over(known) };
        self.all.retain(|known| !merged.is_called(&known.name));
        // The exact name comes first.
        self.all.insert(0, merged);
        self
    }

    /// Puts the rows of an update over the built-in ones, unless those have a later day. Fields that are `None`
    /// keep the known value.
    #[must_use]
    pub fn updated(mut self, rows: &[ModelFacts]) -> Self {
        let places = self.all.iter().enumerate().map(|(place, facts)| (facts.name.clone(), place));
        let places = places.collect::<BTreeMap<_, _>>();
        for row in rows {
            let row = ModelFacts { origin: Origin::Updated, ..row.clone() };
            match places.get(&row.name).and_then(|place| self.all.get_mut(*place)) {
                Some(known) if known.as_of > row.as_of => {}
                Some(known) => *known = row.over(std::mem::take(known)),
                None => {
                    let known = self.find(&row.name).cloned().unwrap_or_default();
                    self.all.push(row.over(ModelFacts { aliases: Vec::new(), ..known }));
                }
            }
        }
        self
    }

    /// The facts of `provider/model`; the name may have a release date (`-20250929`, `@20250929`, `-2025-09-29`)
    /// or `-latest` at its end. `None` for a model that isn't in the table.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ModelFacts> {
        let exact = self.all.iter().find(|facts| facts.names().any(|known| known == name));
        exact.or_else(|| self.all.iter().find(|facts| facts.is_called(name)))
    }

    /// All models of `provider`.
    pub fn of_provider(&self, provider: &str) -> impl Iterator<Item = &ModelFacts> {
        self.all.iter().filter(move |facts| facts.name.split_once('/').is_some_and(|(of, _)| of == provider))
    }

    /// All models.
    pub fn iter(&self) -> impl Iterator<Item = &ModelFacts> {
        self.all.iter()
    }
}

impl ModelFacts {
    /// These facts, with missing ones filled from `known`.
    #[must_use]
    pub fn over(self, known: Self) -> Self {
        let aliases = if known.name == self.name { known.aliases } else { Vec::new() };
        Self {
            aliases: if self.aliases.is_empty() { aliases } else { self.aliases },
            window_tokens: self.window_tokens.or(known.window_tokens),
            output_tokens_max: self.output_tokens_max.or(known.output_tokens_max),
            price: self.price.or(known.price),
            images: self.images.or(known.images),
            reasoning: self.reasoning.or(known.reasoning),
            higher_efforts: if self.higher_efforts.is_empty() {
                known.higher_efforts
            } else {
                self.higher_efforts
            },
            patches: self.patches.or(known.patches),
            retires: self.retires.or(known.retires),
            successor: self.successor.or(known.successor),
            source: self.source.or(known.source),
            as_of: self.as_of.or(known.as_of),
            ..self
        }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.aliases)
    }

    /// Whether `name` is one of its names, or a release of it.
    fn is_called(&self, name: &str) -> bool {
        self.names().filter_map(|known| name.strip_prefix(known.as_str())).any(is_release)
    }

    fn usual_output_tokens_max(&self) -> u32 {
        let part = self.window_tokens.map_or(u64::MAX, |window| window / OUTPUT_DIVISOR);
        u32::try_from(part).unwrap_or(u32::MAX).min(OUTPUT_TOKENS_MAX)
    }

    const fn is_known_to_reason(&self) -> bool {
        matches!(self.reasoning, Some(Reasoning::Budget | Reasoning::Effort))
    }

    /// The effort that it accepts in place of `wanted`: the next lower one, if it is known not to have that.
    pub(crate) fn accepted(&self, wanted: Effort) -> Effort {
        let is_known = self.origin == Origin::BuiltIn || !self.higher_efforts.is_empty();
        let is_accepted = |effort: Effort| effort <= Effort::High || self.higher_efforts.contains(&effort);
        match self.reasoning {
            Some(Reasoning::Effort) if is_known => {
                let mut lower = Effort::ALL.into_iter().rev().skip_while(|effort| *effort > wanted);
                lower.find(|effort| is_accepted(*effort)).unwrap_or(wanted)
            }
            _ => wanted,
        }
    }

    /// The policy for the model under `name`.
    pub(crate) fn policy(&self, name: &str) -> ModelPolicy {
        ModelPolicy {
            effort: self.is_known_to_reason().then_some(Effort::High),
            window_tokens: self.window_tokens,
            output_tokens_limit: self.output_tokens_max,
            price: self.price,
            images: self.images.unwrap_or(false),
            patches: self.patches.unwrap_or(false),
            reasons: self.is_known_to_reason(),
            ..ModelPolicy::new(name, self.output_tokens_max.unwrap_or_else(|| self.usual_output_tokens_max()))
        }
    }
}

/// `name` without the release at its end; `None` if it has none.
pub(crate) fn without_release(name: &str) -> Option<&str> {
    let starts = name.char_indices().filter(|(_, char)| matches!(char, '-' | '@')).map(|(at, _)| at);
    starts.filter_map(|at| name.split_at_checked(at)).find(|(_, rest)| is_release(rest)).map(|(bare, _)| bare)
}

/// Whether this may follow a name: nothing, a date, or `-latest`.
fn is_release(rest: &str) -> bool {
    let date = rest.strip_prefix(['-', '@']).unwrap_or_default();
    let digits = date.split('-').collect::<String>();
    let is_date = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    rest.is_empty() || date == "latest" || (is_date && matches!(date.len(), 8 | 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read_and_every_fact_is_possible() {
        let table = toml::from_str::<Table>(include_str!("../models.toml")).unwrap();
        assert_eq!(table.model, *BUILT_IN);
        for facts in &*BUILT_IN {
            let Price { input, output, cache_read, .. } = facts.price.unwrap();
            assert!(cache_read <= input && input < output, "{}", facts.name);
            assert!(
                u64::from(facts.output_tokens_max.unwrap()) < facts.window_tokens.unwrap(),
                "{}",
                facts.name
            );
            assert_eq!(Catalog::built_in().find(&facts.name), Some(facts));
            assert!(facts.source.is_some() && facts.reasoning.is_some(), "{}", facts.name);
            for day in facts.as_of.iter().chain(&facts.retires) {
                let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
                let parts = day.split('-').collect::<Vec<_>>();
                assert!(
                    matches!(&*parts, [y, m, d] if y.len() == 4 && m.len() == 2 && d.len() == 2),
                    "{day}"
                );
                assert!(parts.into_iter().all(is_digits), "{day}");
            }
            assert_eq!(facts.retires.is_some(), facts.successor.is_some(), "{}", facts.name);
            if let Some(successor) = &facts.successor {
                let found = Catalog::built_in().find(successor).cloned().unwrap();
                assert_eq!(found.retires, None, "{}", facts.name);
            }
        }
    }

    #[test]
    fn answers_of_an_unknown_model_are_at_most_a_quarter_of_its_window() {
        let cap = |window_tokens, output_tokens_max| {
            let facts = ModelFacts { window_tokens, output_tokens_max, ..ModelFacts::default() };
            facts.policy("a/model").output_tokens_max
        };
        assert_eq!(
            [cap(None, None), cap(Some(200_000), None), cap(Some(8_192), None)],
            [8_192, 8_192, 2_048]
        );
        assert_eq!(cap(Some(8_192), Some(4_096)), 4_096);
    }

    #[test]
    fn a_model_gets_the_highest_effort_that_it_has_up_to_the_wanted_one() {
        let asked = |name: &str, wanted| Catalog::built_in().find(name).unwrap().accepted(wanted);
        for (name, xhigh, max) in [
            ("anthropic/claude-opus-5-5", Effort::Xhigh, Effort::Max),
            ("anthropic/claude-opus-4-6", Effort::High, Effort::Max),
            ("openai/gpt-5.6", Effort::Xhigh, Effort::Max),
            ("openai/gpt-5.4", Effort::Xhigh, Effort::Xhigh),
            ("openai/gpt-5.1", Effort::High, Effort::High),
            ("gemini/gemini-3.8-flash", Effort::High, Effort::High),
        ] {
            assert_eq!((asked(name, Effort::Xhigh), asked(name, Effort::Max)), (xhigh, max), "{name}");
            assert_eq!(asked(name, Effort::Low), Effort::Low, "{name}");
        }
        let own =
            ModelFacts { reasoning: Some(Reasoning::Effort), origin: Origin::Own, ..ModelFacts::default() };
        assert_eq!(own.accepted(Effort::Max), Effort::Max, "nothing is known of it");
        assert_eq!(own.policy("a/b").effort, Some(Effort::High));
        assert_eq!(ModelFacts::default().policy("a/b").effort, None);
    }

    #[track_caller]
    fn check(name: &str, expected: Option<&str>) {
        let catalog = Catalog::built_in();
        assert_eq!(catalog.find(name).map(|facts| facts.name.as_str()), expected, "{name}");
    }

    #[test]
    fn a_model_is_found_with_and_without_its_date() {
        check("anthropic/claude-sonnet-4-5", Some("anthropic/claude-sonnet-4-5"));
        check("anthropic/claude-sonnet-4-5-20250929", Some("anthropic/claude-sonnet-4-5"));
        check("anthropic/claude-sonnet-4-20250514", Some("anthropic/claude-sonnet-4"));
        check("anthropic/claude-sonnet-4-0", Some("anthropic/claude-sonnet-4"));
        check("anthropic/claude-opus-4-1@20250805", Some("anthropic/claude-opus-4-1"));
        check("openai/gpt-5-mini-2025-08-07", Some("openai/gpt-5-mini"));
    }

    #[test]
    fn a_model_that_only_looks_alike_isnt_found() {
        check("anthropic/claude-sonnet-4-9", None);
        check("anthropic/claude-sonnet-4-5-fast", None);
        check("anthropic/claude-sonnet-4-5-2025", None);
        check("openai/claude-sonnet-4-5", None);
        check("claude-sonnet-4-5", None);
        check("", None);
    }

    #[test]
    fn the_users_facts_stand_over_the_built_in_ones_and_leave_the_rest() {
        let name = "anthropic/claude-sonnet-4-5".to_owned();
        let facts =
            ModelFacts { name: name.clone(), window_tokens: Some(1_000_000), ..ModelFacts::default() };
        let catalog = Catalog::built_in().with(facts);
        let found = catalog.find("anthropic/claude-sonnet-4-5-20250929").unwrap();
        assert_eq!((found.window_tokens, found.output_tokens_max), (Some(1_000_000), Some(64_000)));
        assert!(found.price.is_some());
        assert_eq!(catalog.iter().filter(|facts| facts.name == name).count(), 1);
        assert_eq!(found.origin, Origin::Own);
    }

    #[test]
    fn the_users_facts_leave_a_model_its_other_names() {
        let name = "anthropic/claude-sonnet-4".to_owned();
        let facts = ModelFacts { name, window_tokens: Some(5_000), ..ModelFacts::default() };
        let catalog = Catalog::built_in().with(facts);
        assert_eq!(catalog.find("anthropic/claude-sonnet-4-0").unwrap().window_tokens, Some(5_000));
    }

    #[test]
    fn an_update_stands_over_an_older_row_and_below_the_users_and_gives_way_to_a_newer_one() {
        let row = |name: &str, window_tokens, as_of: &str| ModelFacts {
            name: name.to_owned(),
            window_tokens: Some(window_tokens),
            as_of: Some(as_of.to_owned()),
            ..ModelFacts::default()
        };
        let known = "anthropic/claude-sonnet-4-5";
        let later = "9999-01-01";
        let window = |catalog: &Catalog, name| {
            let facts = catalog.find(name).unwrap();
            assert_eq!(facts.price.is_some(), name != "openai/gpt-99", "{name}");
            (facts.window_tokens.unwrap(), facts.origin)
        };
        let rows = [
            row(known, 5_000, later),
            row("anthropic/claude-sonnet-4-5-20991231", 6_000, later),
            row("openai/gpt-5", 7_000, "2020-01-01"),
            row("openai/gpt-99", 8_000, later),
        ];
        let catalog = Catalog::built_in().updated(&rows);
        assert_eq!(window(&catalog, known), (5_000, Origin::Updated));
        assert_eq!(window(&catalog, "anthropic/claude-sonnet-4-5-20991231"), (6_000, Origin::Updated));
        assert_eq!(window(&catalog, "openai/gpt-5"), (400_000, Origin::BuiltIn));
        assert_eq!(window(&catalog, "openai/gpt-99"), (8_000, Origin::Updated));
        let own = ModelFacts { origin: Origin::BuiltIn, ..row(known, 9_000, later) };
        let catalog = catalog.with(own);
        for name in [known, "anthropic/claude-sonnet-4-5-20991231"] {
            assert_eq!(window(&catalog, name), (9_000, Origin::Own));
        }
    }

    #[test]
    fn a_release_is_told_from_a_part_of_the_name() {
        let bare = |name| without_release(name);
        assert_eq!(bare("a/model-20250929"), Some("a/model"));
        assert_eq!(bare("a/model-x-latest"), Some("a/model-x"));
        assert_eq!(bare("a/model-2025-09-29"), Some("a/model"));
        assert_eq!(bare("a/model-4-5"), None);
    }
}
