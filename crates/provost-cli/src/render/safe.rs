//! Text that is safe to print: the same rules as on the page.

pub(crate) use provost_view::{safe, visible, visible_json};
