//! Properties for any bytes, in any pieces.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use provost_event::{Exit, WindowSize};
use provost_terminal::{Detected, Detector, KernelSample, Profile};

/// Pieces of what programs paint, so that prompts, frames and reports come up often.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "Continue? [y/N] ",
        "\r\n",
        "$ ",
        "Password: ",
        "\x1b[2J\x1b[H",
        "\x1b[?2026h",
        "\x1b[?2026l",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "› Ask",
        "\x1b[5;3H",
        "• Working (1s • esc to interrupt)",
        "› 1. Yes, proceed (y)\r\n  2. No\r\nPress enter to confirm or esc to cancel",
        "\x1b]7501;state=working:app=codex\x07",
        "日本語を続行しますか？",
        "│ <Yes>  <No> │",
    ]);
    prop_oneof![4 => known.prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

#[derive(Debug, Clone)]
struct Step {
    pause: u64,
    bytes: Vec<u8>,
    typed: bool,
    kernel: KernelSample,
}

fn step() -> impl Strategy<Value = Step> {
    let kernel = (any::<Option<bool>>(), any::<Option<bool>>(), any::<Option<bool>>(), any::<Option<bool>>())
        .prop_map(|(echo, canonical, reads_terminal, polls)| KernelSample {
            echo,
            canonical,
            reads_terminal,
            polls,
            ..KernelSample::default()
        });
    (0u64..800, piece(), prop::bool::weighted(0.2), kernel).prop_map(|(pause, bytes, typed, kernel)| Step {
        pause,
        bytes,
        typed,
        kernel,
    })
}

fn run(profile: &Arc<Profile>, steps: &[Step], size: WindowSize, cut: usize) -> Vec<Detected> {
    let mut detector = Detector::new(Arc::clone(profile), size);
    let mut now = Duration::ZERO;
    for step in steps {
        if step.typed {
            detector.input(now, &step.bytes);
        } else {
            for part in step.bytes.chunks(cut) {
                detector.output(now, part);
            }
        }
        now += Duration::from_millis(step.pause);
        while let Some(at) =
            [detector.next_tick(), detector.next_sample()].into_iter().flatten().min().filter(|at| *at <= now)
        {
            if detector.next_sample() == Some(at) {
                detector.kernel(at, step.kernel);
                assert!(
                    detector.next_sample().is_none_or(|next| next > at),
                    "it asks for a sample again at once"
                );
            } else {
                detector.tick(at);
                assert!(
                    detector.next_tick().is_none_or(|next| next > at),
                    "it asks for a tick again at once"
                );
            }
        }
    }
    detector.exited(now, Exit::Code(0));
    detector.take()
}

fn profiles() -> Vec<Arc<Profile>> {
    ["generic", "codex"].into_iter().filter_map(Profile::named).map(Arc::new).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn bytes_cut_anywhere_give_the_same_events(
        steps in prop::collection::vec(step(), 1..14),
        cut in 1usize..9,
        rows in 1u16..30,
        cols in 1u16..90,
    ) {
        for profile in profiles() {
            let size = WindowSize::new(rows, cols);
            prop_assert_eq!(run(&profile, &steps, size, usize::MAX), run(&profile, &steps, size, cut));
        }
    }

    #[test]
    fn times_of_events_never_go_back(steps in prop::collection::vec(step(), 1..14)) {
        for profile in profiles() {
            let found = run(&profile, &steps, WindowSize::new(12, 50), usize::MAX);
            prop_assert!(found.is_sorted_by_key(|detected| detected.at));
        }
    }
}
