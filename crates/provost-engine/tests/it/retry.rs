//! Retries: random failures and successes against a model that keeps a list of them.

use proptest::prelude::*;
use provost_engine::{RetryPolicy, RetryTracker, restart_delay_ms, retry_delay_ms};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Happened {
    Failed(u32),
    Worked(u32),
}

fn happened() -> impl Strategy<Value = Happened> {
    (0..4_u32, proptest::bool::weighted(0.75))
        .prop_map(|(agent, failed)| if failed { Happened::Failed(agent) } else { Happened::Worked(agent) })
}

/// How often the agent has failed since it last worked.
fn in_a_row(agent: u32, history: &[Happened]) -> usize {
    let since = history.iter().rev().take_while(|what| **what != Happened::Worked(agent));
    since.filter(|what| **what == Happened::Failed(agent)).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_agent_is_tried_again_so_often_in_a_row_and_no_more(
        attempts_max in 0..5_u32,
        own_max in proptest::option::of(0..5_u32),
        history in proptest::collection::vec(happened(), 0..60),
    ) {
        let mut tracker = RetryTracker::new(attempts_max);
        if let Some(own_max) = own_max {
            tracker.limit(0, own_max);
        }
        let max = |agent| if agent == 0 { own_max.unwrap_or(attempts_max) } else { attempts_max } as usize;
        for (place, what) in history.iter().enumerate() {
            let seen = &history[..=place];
            match *what {
                Happened::Failed(agent) => {
                    let failures = in_a_row(agent, seen);
                    prop_assert_eq!(tracker.should_retry(agent), failures <= max(agent));
                }
                Happened::Worked(agent) => tracker.reset(agent),
            }
            for agent in 0..4 {
                let attempts = in_a_row(agent, seen).min(max(agent));
                prop_assert_eq!(tracker.attempts(agent) as usize, attempts);
            }
            let text = serde_json::to_string(&tracker).expect("JSON");
            prop_assert_eq!(&serde_json::from_str::<RetryTracker>(&text).expect("a tracker"), &tracker);
        }
    }

    #[test]
    fn a_wait_is_at_least_half_a_ceiling_that_doubles_up_to_a_minute_unless_the_provider_names_one(
        failures in prop_oneof![0..20_u32, any::<u32>()],
        asked_ms in proptest::option::of(any::<u64>()),
        entropy in any::<u64>(),
    ) {
        let mut ceiling = 500;
        for _ in 1..failures.min(50) {
            ceiling = (ceiling * 2).min(60_000);
        }
        let wait = retry_delay_ms(failures, asked_ms, entropy);
        match asked_ms {
            Some(asked) => prop_assert_eq!(wait, asked.max(1)),
            None => prop_assert!((ceiling / 2..=ceiling).contains(&wait), "{wait} of {ceiling}"),
        }
        // Both ends are possible.
        prop_assert_eq!(retry_delay_ms(failures, None, 0), ceiling / 2);
        prop_assert_eq!(retry_delay_ms(failures, None, ceiling / 2), ceiling);
    }
}

#[test]
fn the_wait_before_a_restart_is_anything_up_to_a_ceiling_that_doubles_up_to_the_policys_limit() {
    let policy = RetryPolicy { attempts_max: 9, backoff_base_ms: 100, backoff_max_ms: 1_000 };
    for (attempt, ceiling) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (u32::MAX, 1_000)] {
        assert_eq!(restart_delay_ms(policy, attempt, ceiling), ceiling, "attempt {attempt}");
        assert_eq!(restart_delay_ms(policy, attempt, ceiling + 1), 1, "attempt {attempt}");
        assert!((1..=ceiling).contains(&restart_delay_ms(policy, attempt, u64::MAX)));
    }
    let endless = RetryPolicy { backoff_base_ms: u64::MAX, backoff_max_ms: u64::MAX, ..policy };
    assert_eq!(restart_delay_ms(endless, 3, u64::MAX), u64::MAX);
    assert_eq!(restart_delay_ms(RetryPolicy { backoff_base_ms: 0, ..policy }, 1, 77), 1);
}

#[test]
fn three_retries_are_usual_and_none_is_one_too_many_where_none_is_allowed() {
    let mut usual = RetryTracker::default();
    assert_eq!([(); 5].map(|()| usual.should_retry(7)), [true, true, true, false, false]);
    usual.reset(7);
    assert!(usual.should_retry(7));
    assert!(!RetryTracker::new(0).should_retry(7));
}
