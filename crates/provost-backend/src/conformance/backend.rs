//! Checks whether a [`Backend`] is correct. For tests: [`check_backend`] panics at the first violation.
//!
//! Everything is observed through the port, with the real actors deciding; only the effects are performed by hand.

#![expect(clippy::panic, reason = "that is how a check says that something is wrong")]

mod bench;
mod catalog;
mod effects;
mod logs;
mod mailbox;
mod owners;
mod wall_clock;

use std::sync::Arc;

use async_trait::async_trait;
use provost_event::RunId;

use provost_harness::{Backend, Clock};

/// Creates the backends to check.
#[async_trait]
pub trait BackendMaker: Send + Sync {
    /// The storage of a backend; it outlives the backend.
    type StoreLocation: Send + Sync;

    /// An empty place.
    async fn place(&self) -> Self::StoreLocation;

    /// A backend on `place`, opened as another process would. Several may be open at a time.
    async fn open(&self, place: &Self::StoreLocation, clock: Arc<dyn Clock>) -> Arc<dyn Backend>;

    /// Holds `run`, which no backend serves, as a stopped process would. `None` if posts to such a backend never
    /// wait for the process that serves the run.
    async fn hold(&self, place: &Self::StoreLocation, run: RunId) -> Option<Box<dyn StuckHolder>>;
}

/// A process that holds a run and decides nothing, until this is dropped.
#[async_trait]
pub trait StuckHolder: Send {
    /// Returns when `count` posts wait for its decision.
    async fn wait_for_posts(&mut self, count: usize);
}

/// Checks backends made by `maker`. Takes some seconds.
///
/// # Panics
/// When a backend violates a check.
pub async fn check_backend(maker: &impl BackendMaker) {
    logs::what_is_decided_is_there_before_its_effect_is_performed(maker).await;
    logs::a_doubled_post_does_nothing(maker).await;
    logs::posts_to_one_actor_are_serial(maker).await;
    logs::subscribers_get_every_entry_once(maker).await;
    logs::a_long_log_is_read_back_as_a_whole_one(maker).await;
    logs::a_fork_is_named_by_its_origin(maker).await;
    logs::bodies_are_kept_by_their_hash(maker).await;
    effects::a_result_counts_once(maker).await;
    effects::results_may_come_in_any_order(maker).await;
    effects::an_abort_reaches_a_running_effect(maker).await;
    effects::what_others_decide_is_performed_where_the_run_is_served(maker).await;
    effects::timers_fire_in_order(maker).await;
    effects::timers_survive_a_restart(maker).await;
    mailbox::a_post_is_decided_on_where_the_run_is_held(maker).await;
    mailbox::a_post_that_is_not_decided_on_in_time_never_counts(maker).await;
    mailbox::a_new_holder_decides_first_on_what_waits(maker).await;
    mailbox::a_post_outlives_the_holder_that_was_asked(maker).await;
    wall_clock::a_wait_lasts_as_long_as_it_says(maker).await;
    wall_clock::a_wait_found_in_the_store_is_over_when_its_time_has_come(maker).await;
    wall_clock::a_limit_is_reached_by_what_was_worked(maker).await;
    owners::what_a_server_that_vanished_left_is_made_again(maker).await;
    owners::what_may_not_be_repeated_is_not_made_again(maker).await;
    owners::what_was_made_is_not_said_to_have_been_left_out(maker).await;
    owners::one_of_two_claims_goes_on(maker).await;
    owners::a_stopped_server_drops_what_is_in_flight(maker).await;
    owners::a_run_has_a_holder_while_it_is_served(maker).await;
    owners::runs_are_listed_with_how_they_stand(maker).await;
    catalog::runs_are_listed_in_pages_and_by_what_is_asked_for(maker).await;
    catalog::a_run_is_found_by_its_id_and_the_beginning_of_it(maker).await;
    catalog::who_reads_at_each_change_misses_nothing(maker).await;
}
