//! `update_plan`.

use expect_test::expect;
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn a_plan_is_shown_and_remembered() {
    let fixture = Fixture::new();
    let items = json!({"items": [
        {"text": "look", "status": "done"},
        {"text": " build ", "status": "in_progress"},
        {"text": "test", "status": "pending"},
    ]});
    let output = fixture.call("update_plan", items.clone()).await;
    let expected = expect![[r#"
        Ok
        [x] look
        [>] build
        [ ] test
        [1 of 3 done]
    "#]];
    expected.assert_eq(&fixture.shown(&output));
    assert_eq!(serde_json::to_value(output.plan.unwrap()).unwrap(), items);
    let empty = expect![[r#"
        Ok
        [the plan is empty]
    "#]];
    fixture.check("update_plan", json!({"items": []}), empty).await;
}

#[tokio::test]
async fn only_a_plan_that_makes_sense_takes_the_place_of_the_one_before() {
    let fixture = Fixture::new();
    let plan = async |items: serde_json::Value| {
        let output = fixture.call("update_plan", json!({ "items": items })).await;
        output.plan.map(|plan| serde_json::to_value(plan.items).unwrap())
    };
    let two = json!([{"text": "look", "status": "done"}, {"text": "build", "status": "pending"}]);
    assert_eq!(plan(two.clone()).await, Some(two));
    assert_eq!(plan(json!([])).await, Some(json!([])));
    assert_eq!(plan(json!([{"text": " ", "status": "done"}])).await, None);
    assert_eq!(plan(json!([{"text": "look", "status": "doing"}])).await, None);
    assert_eq!(fixture.call("list_dir", json!({})).await.plan, None);
}

#[tokio::test]
async fn plans_that_make_no_sense_are_rejected() {
    let fixture = Fixture::new();
    let two =
        json!({"items": [{"text": "a", "status": "in_progress"}, {"text": "b", "status": "in_progress"}]});
    let expected = expect![[r#"
        Rejected
        2 steps are in_progress, at most one may be; the plan stays as it was
    "#]];
    fixture.check("update_plan", two, expected).await;
    let empty = json!({"items": [{"text": "a", "status": "done"}, {"text": " ", "status": "done"}]});
    let expected = expect![[r#"
        Rejected
        `items[1].text` is empty; the plan stays as it was
    "#]];
    fixture.check("update_plan", empty, expected).await;
    let step = |text: &str| json!({"text": text, "status": "pending"});
    let at_limit = json!({"items": vec![step(&"x".repeat(500)); 50]});
    assert!(!fixture.call("update_plan", at_limit).await.status.is_error());
    let expected = expect![[r#"
        Rejected
        a plan has at most 50 steps, not 51: sum some up; the plan stays as it was
    "#]];
    fixture.check("update_plan", json!({"items": vec![step("x"); 51]}), expected).await;
    let expected = expect![[r#"
        Rejected
        `items[0].text` is longer than 500 bytes; the plan stays as it was
    "#]];
    fixture.check("update_plan", json!({"items": [step(&"x".repeat(501))]}), expected).await;
    let expected = expect![[r#"
        Rejected
        the arguments of update_plan don't fit: `items[0].status`: unknown variant `doing`, expected one of `pending`, `in_progress`, `done`
        its fields: `items` (array, required)
    "#]];
    fixture.check("update_plan", json!({"items": [{"text": "a", "status": "doing"}]}), expected).await;
}
