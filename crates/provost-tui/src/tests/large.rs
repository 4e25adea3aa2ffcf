//! Many runs on one screen.

use super::stage::Stage;

const ASKS: &str = "answers: [{ tools: [{ shell: { command: echo one } }] }, { text: 'VERDICT: PASS' }]";
const SAYS_FAIL: &str = "answers: [{ text: 'VERDICT: FAIL' }]";

#[tokio::test]
async fn of_200_runs_each_that_asks_is_counted_and_comes_first() {
    let mut stage = Stage::new(200, 50);
    // All of it within the time that a question waits.
    stage.pause_ms = 1_000;
    for number in 1..=200 {
        let goal = format!("Goal {number} of many, in words that don't fit into a narrow column");
        let agent = stage.agent("work", if number % 10 == 0 { ASKS } else { SAYS_FAIL }).builtin_tools();
        if number % 10 == 0 {
            stage.asks(number, &goal, agent.ask("shell")).await;
        } else {
            stage.ran(number, &goal, agent).await;
        }
    }
    stage.read().await;
    let screen = stage.screen();
    assert!(screen.contains("NEEDS YOU 20"), "{screen}");
    // Beside the list is what is selected.
    let list = screen.lines().filter_map(|line| line.split('│').next()?.split("Goal ").nth(1));
    let goals = list.filter_map(|row| row.split(' ').next()?.parse::<u32>().ok()).collect::<Vec<_>>();
    let (asking, others) = goals.split_at(20);
    assert!(asking.iter().all(|goal| goal % 10 == 0), "{asking:?}\n{screen}");
    assert!(!others.is_empty() && others.iter().all(|goal| goal % 10 != 0), "{others:?}\n{screen}");
}
