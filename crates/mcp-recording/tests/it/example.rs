//! The example of a recording and its replay.

#[path = "../../examples/record_and_replay.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod record_and_replay;

#[tokio::test(flavor = "multi_thread")]
async fn example_replays_what_it_recorded_without_secrets() {
    let (recorded, replayed, text) = record_and_replay::run().await.unwrap();
    assert_eq!(recorded, ["hello", "5", "Bearer hunter2hunter2"]);
    assert_eq!(replayed, ["hello", "5", "***"]);
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(text.matches(r#""method":"tools/call""#).count(), 3, "{text}");
}
