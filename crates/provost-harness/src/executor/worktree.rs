//! Git worktrees of agents: created before an agent starts, inspected when it is done, removed if unchanged. All
//! operations are idempotent.

mod again;
mod check;
mod list;
mod make;
mod remote;
mod sweep;

use provost_engine::{WorktreeCheck, WorktreeOrder, WorktreeResult};
use provost_event::WorktreeLeft;
use tokio_util::sync::CancellationToken;

pub(crate) use again::{commit_at, make_again};
pub(crate) use make::changed_files;
pub(crate) use remote::{FETCH_MAX, RemoteWorktrees, Taken};

use super::HarnessExecutor;

impl HarnessExecutor {
    /// Creates a worktree, or finds the one that an interrupted attempt created.
    pub(super) async fn make_worktree(
        &self,
        order: &WorktreeOrder,
        cancel: &CancellationToken,
    ) -> WorktreeResult {
        let folder = order.path.parent().map(ToOwned::to_owned).unwrap_or_default();
        self.known.swept.get_or_init(|| sweep::sweep(self.backend(), folder, cancel)).await;
        match make::make(order, cancel).await {
            Ok(made) => {
                // Its folder may have been looked up before it existed.
                self.known.forget(order.session);
                WorktreeResult::Made(made)
            }
            Err(message) => WorktreeResult::Failed { message },
        }
    }

    /// Inspects a worktree, and removes it if requested and unchanged.
    pub(super) async fn check_worktree(
        &self,
        check: &WorktreeCheck,
        cancel: &CancellationToken,
    ) -> WorktreeLeft {
        check::check(check, cancel).await
    }
}
