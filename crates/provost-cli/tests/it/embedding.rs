//! The example for embedders runs.

#[path = "../../examples/embed.rs"]
#[expect(dead_code, reason = "the example's own `main` isn't called here")]
mod embed;

#[test]
fn the_example_does_what_it_says() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (outcome, turns) = runtime.block_on(embed::embedded()).unwrap();
    assert_eq!((outcome.to_string().as_str(), turns), ("completed (verdict PASS), verified", 3));
}
