//! What documents hold.

use provost_event::Timestamp;

use crate::stage::Stage;

const DONE: &str = "answers: [{ text: 'Done. VERDICT: PASS' }]";
const CUT_SHORT: &str = "
answers:
  - { tools: [{ read_file: { path: notes.md } }], usage: { input: 900, output: 90 } }
  - { text: never said }
";

#[tokio::test]
async fn a_finished_run_is_idle_once_it_was_opened_also_by_another_program() {
    let stage = Stage::new().await;
    let opened = stage.ran(1, "open me", stage.agent(DONE)).await;
    let other = stage.ran(2, "look elsewhere", stage.agent(DONE)).await;
    let home = stage.get("/").await.body;
    assert!(home.contains("Finished, not looked at") && !home.contains("id=\"idle-runs\""), "{home}");
    assert_eq!(stage.get(&format!("/runs/{opened}")).await.status, 200);
    assert_eq!(stage.around.seen.lock().unwrap().len(), 1, "every program of this store hears of it");
    let changed = stage.backend.get(other).await.unwrap().unwrap().updated_at;
    stage.around.seen.lock().unwrap().push((other, changed));
    let home = stage.get("/").await.body;
    assert!(!home.contains("Finished, not looked at") && home.contains("id=\"idle-runs\""), "{home}");
    let groups = stage.get("/v1/groups").await.json();
    assert_eq!(groups["groups"][0]["group"], "idle");
    // It changes, and is new again.
    stage.around.seen.lock().unwrap().retain(|(run, _)| *run != other);
    stage.around.seen.lock().unwrap().push((other, Timestamp(1)));
    assert!(stage.get("/").await.body.contains("Finished, not looked at"));
}

#[tokio::test]
async fn what_a_run_has_used_up_is_asked_for_first() {
    let stage = Stage::new().await;
    let agent = stage.agent(CUT_SHORT).builtin_tools().allow("read_file");
    let run = stage.ran(1, "x", agent.budget(provost::Budget::default().tokens(1_000))).await;
    let document = stage.get(&format!("/runs/{run}")).await.body;
    let form = document.split("id=\"resume\"").nth(1).unwrap();
    let place = |id: &str| form.find(id).unwrap_or_else(|| panic!("{id}: {form}"));
    assert!(place("resume-limits-tokens") < place("resume-text"), "{form}");
    assert!(place("resume-text") < place("resume-limits-wall_time"), "{form}");
}
