//! Forms that start runs and go on with them. The page's module sends them; without scripts the page only reads.

use maud::{Markup, html};
use provost_event::Dimension;

/// A field of a form: the member of the request that it sets, where a dot leads into an object.
struct Field {
    name: &'static str,
    says: &'static str,
    hint: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Line,
    Lines,
    Number,
}

const fn field(name: &'static str, says: &'static str, hint: &'static str, kind: Kind) -> Field {
    Field { name, says, hint, kind }
}

const USD: Field = field("limits.usd", "Limit in US dollars", "5.00", Kind::Line);
const MORE_USD: Field = field("limits.usd", "US dollars more", "5.00", Kind::Line);
const MORE_TOKENS: Field = field("limits.tokens", "Tokens more", "200k", Kind::Line);
const MORE_TIME: Field = field("limits.wall_time", "Time more", "2h", Kind::Line);
const MORE_TURNS: Field = field("limits.max_turns", "Turns more", "50", Kind::Line);
const MODEL: Field = field("model", "Model", "as the settings say", Kind::Line);

/// Starts a run in `folder`, unless another is typed.
pub(super) fn start(folder: &str) -> Markup {
    let fields = [
        field("goal", "Goal", "Make the tests pass", Kind::Lines),
        field("folder", "Folder", "/home/me/project", Kind::Line),
        field("condition", "What judges verify", "nothing: no judge is asked", Kind::Line),
        USD,
        MODEL,
    ];
    dialog("start", "Start a run", "/v1/runs", &fields, folder)
}

/// Goes on with a run; what it has used up is asked for first.
pub(super) fn resume(path: &str, used_up: Option<Dimension>) -> Markup {
    let message = field("text", "Message to the agent", "none", Kind::Lines);
    let goal = field("goal", "Another condition that judges verify", "as it is", Kind::Line);
    let first = used_up.map(more).into_iter();
    let others = [Dimension::Money, Dimension::Tokens, Dimension::WallTime, Dimension::Turns];
    let others = others.into_iter().filter(|of| used_up != Some(*of)).map(more);
    let fields = first.chain([message, goal]).chain(others).chain([MODEL]).collect::<Vec<_>>();
    dialog("resume", "Resume this run", &format!("{path}/resume"), &fields, "")
}

/// What adds to a limit.
const fn more(of: Dimension) -> Field {
    match of {
        Dimension::Money => MORE_USD,
        Dimension::Tokens => MORE_TOKENS,
        Dimension::WallTime => MORE_TIME,
        Dimension::Turns => MORE_TURNS,
    }
}

/// Starts a run from another's conversation.
pub(super) fn fork(path: &str, agent: u32) -> Markup {
    let fields = [
        field("text", "Message to the agent", "none", Kind::Lines),
        field("at", "Up to entry", "the newest", Kind::Number),
        field("folder", "Folder", "where the other works", Kind::Line),
        USD,
        MODEL,
    ];
    let path = format!("{path}/fork");
    let form = dialog("fork", "Fork this run", &path, &fields, "");
    html! { div data-agent=(agent) { (form) } }
}

fn dialog(id: &str, title: &str, path: &str, fields: &[Field], folder: &str) -> Markup {
    html! {
        dialog id=(id) aria-labelledby={ (id) "-title" } {
            form.asks data-send=(path) {
                h2 id={ (id) "-title" } { (title) }
                @for field in fields { (self::field_of(id, field, folder)) }
                p.two role="alert" data-refusal {}
                p.btns {
                    button.btn.main type="submit" { (title) " " kbd { "Enter" } }
                    button.btn type="button" data-close { "Not now " kbd { "Esc" } }
                }
            }
        }
    }
}

fn field_of(form: &str, field: &Field, folder: &str) -> Markup {
    let id = format!("{form}-{}", field.name.replace('.', "-"));
    let value = if field.name == "folder" { folder } else { "" };
    html! {
        div {
            label for=(id) { (field.says) }
            @match field.kind {
                Kind::Lines => textarea id=(id) name=(field.name) rows="3" placeholder=(field.hint) {},
                Kind::Line => input type="text" id=(id) name=(field.name) value=(value) placeholder=(field.hint) autocomplete="off" spellcheck="false";,
                Kind::Number => input type="text" inputmode="numeric" pattern="[0-9]*" id=(id) name=(field.name) data-number placeholder=(field.hint) autocomplete="off";,
            }
        }
    }
}
