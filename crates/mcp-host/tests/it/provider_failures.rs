//! A model provider refuses a request: the dialog is stopped, a problem is published, and the dialog continues
//! when it is resumed.

use std::time::Duration;

use mcp_host_model::RawJson;
use mcp_host_runtime::{
    DialogId, NetworkFailure, ProviderFailure, ProviderFailureReport, RetryDecision, ToolCall,
};

use crate::fixture::{HostFixture, text_or_error};
use crate::scripted_server::ScriptedServer;

fn refusal(dialog: &str, failure: ProviderFailure) -> ProviderFailureReport {
    let mut report = ProviderFailureReport::new("p", DialogId::new(dialog), failure);
    report.tool = Some("a__t".to_owned());
    report.text = "schema is bad".to_owned();
    report
}

fn status(status: u16) -> ProviderFailure {
    let mut failure = ProviderFailure::default();
    failure.status = Some(status);
    failure
}

fn call() -> ToolCall {
    ToolCall::new("a__t", RawJson::empty_object())
}

fn problems(fixture: &HostFixture) -> Vec<String> {
    fixture.host.snapshot().problems.iter().map(|it| it.problem.id.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn dm_066_stopped_dialog_is_refused_until_it_is_resumed() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    let (one, two) = (fixture.host.dialog(DialogId::new("1")), fixture.host.dialog(DialogId::new("2")));
    let turn = one.pin();
    assert!(turn.call(call()).await.success && one.stop_reason().is_none());

    let mut generations = fixture.host.subscribe();
    generations.mark_unchanged();
    assert_eq!(fixture.host.report_provider_failure(refusal("1", status(400))).await, RetryDecision::Stop);
    // Subscribers are notified (DM-125).
    assert!(generations.has_changed().unwrap());
    let problem = generations.borrow_and_update().problems[0].problem.clone();
    assert_eq!(problem.id, "llm/p/provider_rejected/1");
    let why = "dialog '1' is stopped: provider `p` refused a request of dialog `1` because of tool `a__t`: schema is \
        bad";
    assert_eq!((problem.tool.as_deref(), one.stop_reason().unwrap().message.as_str()), (Some("a__t"), why));

    let refused = format!("ValidationError: {why} (fix what the provider refused, then resume the dialog)");
    assert_eq!(text_or_error(&one.call(call()).await), refused);
    // Turns that began earlier are stopped too. Other dialogs are not.
    assert_eq!(text_or_error(&turn.call(call()).await), refused);
    assert!(two.call(call()).await.success && fixture.host.call(call()).await.success);
    assert_eq!(fixture.peer("a").count("tools/call"), 3);

    one.resume().await;
    assert!(one.stop_reason().is_none() && problems(&fixture).is_empty());
    assert!(one.call(call()).await.success && turn.call(call()).await.success);
    fixture.host.resume(&DialogId::new("nobody")).await;

    // The problem is withdrawn when the dialog ends (DM-124).
    fixture.host.report_provider_failure(refusal("2", status(422))).await;
    assert_eq!(problems(&fixture), ["llm/p/provider_rejected/2"]);
    let mut generations = fixture.host.subscribe();
    drop(two);
    generations.wait_for(|it| it.problems.is_empty()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dm_067_temporary_failure_does_not_stop_the_dialog() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    let mut lost = ProviderFailure::default();
    lost.network = Some(NetworkFailure::Connection);
    for rejection in [status(429), status(503), lost] {
        let again = fixture.host.report_provider_failure(refusal("1", rejection)).await;
        assert_eq!(again, RetryDecision::Retry { after: Duration::from_secs(1) });
    }
    assert!(problems(&fixture).is_empty() && fixture.host.stop_reason(&DialogId::new("1")).is_none());
    // The number of retries is limited.
    let mut last = refusal("1", status(429));
    last.attempt = 6;
    assert_eq!(fixture.host.report_provider_failure(last).await, RetryDecision::Stop);
    assert!(fixture.host.stop_reason(&DialogId::new("1")).is_some());
    fixture.host.shutdown().await;
    assert_eq!(fixture.host.report_provider_failure(refusal("1", status(400))).await, RetryDecision::Stop);
}
