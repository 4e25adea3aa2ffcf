//! Checks of implementations, for tests: of a [`Backend`](provost_harness::Backend), and of a
//! [`SessionStore`](crate::SessionStore).

mod backend;
mod store;

pub use backend::{BackendMaker, StuckHolder, check_backend};
pub use store::{check_shared_store, check_store};
