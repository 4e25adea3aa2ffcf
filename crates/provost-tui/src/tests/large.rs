//! Many runs: how long a frame takes.

use std::time::{Duration, Instant};

use super::stage::Stage;

const RUNS: u64 = 200;
/// A frame at 60 a second.
const FRAME: Duration = Duration::from_millis(16);
const ASKS: &str = "answers: [{ tools: [{ shell: { command: echo one } }] }, { text: 'VERDICT: PASS' }]";
const SAYS_FAIL: &str = "answers: [{ text: 'VERDICT: FAIL' }]";

#[tokio::test]
#[expect(clippy::print_stdout, reason = "a test that measures says what it found")]
async fn a_frame_of_200_runs_is_drawn_in_time() {
    let mut stage = Stage::new(200, 50);
    // All of it within the time that a question waits.
    stage.pause_ms = 1_000;
    for number in 1..=RUNS {
        let goal = format!("Goal {number} of many, in words that don't fit into a narrow column");
        let agent = stage.agent("work", if number % 10 == 0 { ASKS } else { SAYS_FAIL }).builtin_tools();
        if number % 10 == 0 {
            stage.asks(number, &goal, agent.ask("shell")).await;
        } else {
            stage.ran(number, &goal, agent).await;
        }
    }
    let first = stage.timed_read().await;
    let again = stage.timed_read().await;
    let frames = (0..50).map(|_| {
        let began = Instant::now();
        stage.screen();
        began.elapsed()
    });
    let mut frames = frames.collect::<Vec<_>>();
    frames.sort();
    // The machine may be busy: the fastest says what it takes.
    let (best, median) = (frames[0], frames[frames.len() / 2]);
    println!("a frame: best {best:?}, median {median:?}; read {first:?}, again {again:?}");
    assert!(best < FRAME, "{best:?}");
    assert!(stage.screen().contains("NEEDS YOU 20"), "{}", stage.screen());
}
