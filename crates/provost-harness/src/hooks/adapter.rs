//! Hooks from closures.

use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::{JoinError, spawn_blocking};

use super::event::{Hook, HookEvent, HookInput as _};

/// A hook from a closure that returns at once. It runs on the caller's thread, which it blocks, and no timeout can
/// interrupt it: use [`blocking`] for a closure that may wait.
pub fn from_fn<E: HookEvent>(
    decide: impl for<'a> Fn(E::Input<'a>) -> E::Action + Send + Sync + 'static,
) -> impl Hook<E> {
    AtOnce { decide, event: PhantomData }
}

/// A hook from a closure that may block: it runs on a thread of the runtime's pool for blocking work.
///
/// After its timeout no task waits for it, but it can't be stopped: it keeps its thread until it returns.
pub fn blocking<E: HookEvent>(
    decide: impl for<'a> Fn(E::Input<'a>) -> E::Action + Send + Sync + 'static,
) -> impl Hook<E> {
    Blocking { decide: Arc::new(decide), event: PhantomData }
}

struct AtOnce<E, F> {
    decide: F,
    event: PhantomData<fn() -> E>,
}

struct Blocking<E, F> {
    decide: Arc<F>,
    event: PhantomData<fn() -> E>,
}

#[async_trait]
impl<E, F> Hook<E> for AtOnce<E, F>
where
    E: HookEvent,
    F: for<'a> Fn(E::Input<'a>) -> E::Action + Send + Sync + 'static,
{
    async fn decide(&self, input: E::Input<'_>) -> E::Action {
        (self.decide)(input)
    }
}

#[async_trait]
impl<E, F> Hook<E> for Blocking<E, F>
where
    E: HookEvent,
    F: for<'a> Fn(E::Input<'a>) -> E::Action + Send + Sync + 'static,
{
    async fn decide(&self, input: E::Input<'_>) -> E::Action {
        let (asked, decide) = (input.asked().clone(), self.decide.clone());
        let decided = spawn_blocking(move || E::Input::of(&asked).map(|input| decide(input)));
        match decided.await.map_err(JoinError::try_into_panic) {
            Ok(Some(action)) => action,
            Err(Ok(panic)) => resume_unwind(panic),
            // The same question was read before; and a runtime that shuts down doesn't wait for tasks.
            Ok(None) | Err(Err(_)) => std::future::pending().await,
        }
    }
}
