//! Servers of a session are connected concurrently, each within its own timeout and all within the total one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use mcp_host_acp_agent::{
    ConnectOptions, NoticeSupport, RequiredServers, SessionServers, SessionSetupError, StatusUpdates,
};
use mcp_host_model::RpcError;
use mcp_host_runtime::HostOptions;
use tokio::time::Instant;

use crate::sessions::{MINUTE, entries, options, session, summary, text_or_error, tool_call, validated};

/// How long a server that did not respond may take to stop, after its timeout.
const STOP_TIME: Duration = Duration::from_secs(1);

fn options_requiring(names: &[&str]) -> ConnectOptions {
    let names: BTreeSet<String> = names.iter().map(|it| (*it).to_owned()).collect();
    let mut options = options();
    options.required = RequiredServers::Named(names);
    options
}

#[tokio::test(start_paused = true)]
async fn acp_021_acp_048_acpx_13_outcomes_are_in_the_order_of_the_servers() {
    let session = session(&["b", "gone", "a"]).await;
    assert_eq!(summary(&session), "b:connected gone:failed a:connected");
    assert_eq!(text_or_error(&session.call(tool_call("a__echo", r#"{"text":"hello"}"#)).await), "hello");
    assert!(session.tools().iter().any(|item| item.name.as_str() == "b__add"));
    session.close().await;
    assert_eq!(summary(&session), "b:closed gone:closed a:closed");
}

#[tokio::test(start_paused = true)]
async fn acpx_05_stalled_servers_share_one_startup_timeout() {
    let begun = Instant::now();
    let session = session(&["silent-1", "a", "silent-2"]).await;
    let limit = options().limits.startup;
    assert!(begun.elapsed() >= limit && begun.elapsed() < limit + STOP_TIME, "{:?}", begun.elapsed());
    assert_eq!(summary(&session), "silent-1:failed a:connected silent-2:failed");
}

#[tokio::test(start_paused = true)]
async fn acpx_05_total_timeout_bounds_all_servers() {
    let mut options = options();
    options.limits.startup = Duration::from_secs(3600);
    let (begun, whole) = (Instant::now(), options.total_timeout);
    let session = SessionServers::connect(validated(&entries(&["silent", "a"])), options).await.unwrap();
    assert!(begun.elapsed() >= whole && begun.elapsed() < whole + STOP_TIME, "{:?}", begun.elapsed());
    assert_eq!(summary(&session), "silent:connecting a:connected");
}

/// Options with restarts, and a counter of the starts of servers.
fn restarting_options() -> (ConnectOptions, Arc<AtomicUsize>) {
    let starts = Arc::new(AtomicUsize::new(0));
    let mut options = options();
    options.host = HostOptions::default();
    let (counter, dialer) = (Arc::clone(&starts), options.dialer.take().unwrap());
    options.dialer = Some(Arc::new(move |server, dial| {
        counter.fetch_add(1, Ordering::Relaxed);
        dialer(server, dial)
    }));
    (options, starts)
}

/// Waits for the next update, and returns it as `<server>:<state>`.
async fn next_update(updates: &mut StatusUpdates) -> String {
    let update = updates.next().await.unwrap();
    format!("{}:{}", update.status().name, update.status().state.as_str())
}

#[tokio::test(start_paused = true)]
async fn acpx_05_slow_server_joins_the_session_later() {
    let (mut options, starts) = restarting_options();
    // The handshake is tried in both eras, with this timeout for each.
    options.limits.startup = MINUTE + MINUTE / 2;
    let (begun, wait) = (Instant::now(), options.total_timeout);
    let session = SessionServers::connect(validated(&entries(&["slow", "a"])), options).await.unwrap();
    assert!(begun.elapsed() >= wait && begun.elapsed() < wait + STOP_TIME, "{:?}", begun.elapsed());
    assert_eq!(summary(&session), "slow:connecting a:connected");
    assert!(session.tools().iter().all(|tool| tool.server.as_str() == "a"));
    let mut updates = session.status_updates(NoticeSupport::Unsupported);
    assert_eq!(next_update(&mut updates).await, "slow:connecting");
    let joined = next_update(&mut updates).await;
    assert_eq!(joined, "slow:connected", "{:?} {:?}", begun.elapsed(), session.statuses());
    assert!(begun.elapsed() < 2 * MINUTE + STOP_TIME, "{:?}", begun.elapsed());
    assert_eq!(text_or_error(&session.call(tool_call("slow__echo", r#"{"text":"late"}"#)).await), "late");
    assert_eq!(starts.load(Ordering::Relaxed), 2, "its start was never cut short");
}

#[tokio::test(start_paused = true)]
async fn acpx_14_later_failures_of_servers_are_reported_to_the_client() {
    let (options, _) = restarting_options();
    let entries = entries(&["mortal", "gone", "a"]);
    let session = SessionServers::connect(validated(&entries), options).await.unwrap();
    let mut updates = session.status_updates(NoticeSupport::Supported);
    let mut reported = Vec::new();
    for _ in 0..4 {
        reported.push(next_update(&mut updates).await);
    }
    // A failed restart is not reported again.
    assert_eq!(reported, ["gone:failed", "mortal:failed", "mortal:connected", "mortal:failed"]);
    session.close().await;
    drop(session);
    while let Some(update) = updates.next().await {
        assert_ne!(update.status().state.as_str(), "closed", "the client closed it");
    }
}

#[tokio::test(start_paused = true)]
async fn acpx_14_status_is_a_notice_or_session_information() {
    for (notices, names) in
        [(NoticeSupport::Supported, "notice"), (NoticeSupport::Unsupported, "information")]
    {
        let session = session(&["gone"]).await;
        let update = session.status_updates(notices).next().await.unwrap();
        let json = serde_json::to_value(&update).unwrap();
        insta::with_settings!({ snapshot_suffix => names }, { insta::assert_json_snapshot!(json) });
        #[cfg(feature = "sdk")]
        {
            let v1 = agent_client_protocol::v1::schema::SessionUpdate::from(update.clone());
            assert_eq!(serde_json::to_value(v1).unwrap(), json);
        }
        #[cfg(feature = "protocol-v2")]
        {
            let v2 = agent_client_protocol::v2::schema::SessionUpdate::from(update);
            assert_eq!(serde_json::to_value(v2).unwrap(), json);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn acpx_03_failed_required_server_fails_the_setup_at_once() {
    let begun = Instant::now();
    let entries = entries(&["silent", "gone", "a"]);
    let error = SessionServers::connect(validated(&entries), options_requiring(&["gone", "a", "other"]))
        .await
        .err()
        .unwrap();
    assert!(begun.elapsed() < STOP_TIME, "{:?}", begun.elapsed());
    let error = serde_json::to_string_pretty(&RpcError::from(&error)).unwrap();
    insta::assert_snapshot!(error, @r#"
    {
      "code": -32603,
      "message": "MCP server 'gone': connection failed: connection refused",
      "data": {"serverName":"gone","transportType":"http","error":"connection refused","suggestion":"check that the server is running, and that its URL is right"}
    }
    "#);
}

#[tokio::test(start_paused = true)]
async fn acpx_03_all_failed_required_servers_are_reported() {
    let mut options = options();
    options.required = RequiredServers::All;
    let entries = entries(&["locked", "gone"]);
    // If one fails before the other, it alone is reported.
    let error = SessionServers::connect(validated(&entries), options).await.err().unwrap();
    let SessionSetupError::Failed(failures) = &error else { panic!("{error}") };
    let both = SessionSetupError::Failed(failures.iter().cycle().take(2).cloned().collect());
    let data = RpcError::from(&both).data.unwrap().read::<serde_json::Value>().unwrap();
    assert_eq!(data["failures"].as_array().unwrap().len(), 2);
    assert_eq!(data["failures"][0]["data"]["serverName"], data["serverName"]);
}

#[tokio::test(start_paused = true)]
async fn acpx_03_stalled_required_server_is_a_timeout() {
    let error = SessionServers::connect(validated(&entries(&["silent"])), options_requiring(&["silent"]))
        .await
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "MCP server 'silent' did not respond within 10000 ms");
}

#[tokio::test(start_paused = true)]
async fn acpx_14_status_changes_are_sent_until_the_session_ends() {
    let connecting = SessionServers::prepare(validated(&entries(&["a", "gone"])), options());
    let mut changes = connecting.status_stream();
    let mut reported = Vec::new();
    for _ in 0..2 {
        let status = changes.next().await.unwrap();
        reported.push(format!("{}:{}", status.name, status.state.as_str()));
    }
    let session = connecting.connect().await.unwrap();
    session.close().await;
    drop(session);
    let mut changes = changes.into_stream();
    while let Some(status) = changes.next().await {
        reported.push(format!("{}:{}", status.name, status.state.as_str()));
    }
    assert_eq!(reported[..2], ["a:connecting", "gone:connecting"]);
    assert_eq!(reported[reported.len() - 2..], ["a:closed", "gone:closed"]);
}

#[tokio::test(start_paused = true)]
async fn acpx_14_response_may_contain_server_statuses() {
    let session = session(&["a", "gone"]).await;
    let mut meta = session.to_meta();
    // The number of tools of the demo server is not part of the snapshot.
    assert!(meta["mcpServers"][0]["tools"].as_u64().unwrap() > 5);
    meta["mcpServers"][0]["tools"] = 0.into();
    let meta = serde_json::to_string_pretty(&meta).unwrap();
    insta::assert_snapshot!(meta, @r#"
    {
      "mcpServers": [
        {
          "name": "a",
          "source": "client",
          "transport": "http",
          "status": "connected",
          "tools": 0
        },
        {
          "name": "gone",
          "source": "client",
          "transport": "http",
          "status": "failed",
          "tools": 0,
          "error": {
            "code": -32603,
            "message": "MCP server 'gone': connection failed: connection refused",
            "data": {
              "serverName": "gone",
              "transportType": "http",
              "error": "connection refused",
              "suggestion": "check that the server is running, and that its URL is right"
            }
          }
        }
      ]
    }
    "#);
}

#[tokio::test(start_paused = true)]
async fn dropped_call_does_not_affect_its_server() {
    let session = session(&["a"]).await;
    let sleep = session.call(tool_call("sleep", r#"{"ms":60000}"#));
    assert!(tokio::time::timeout(Duration::from_secs(1), sleep).await.is_err());
    assert_eq!(
        text_or_error(&session.call(tool_call("echo", r#"{"text":"still here"}"#)).await),
        "still here"
    );
}

#[tokio::test]
async fn acp_035_acp_046_http_and_sse_servers_are_connected() {
    let server = mcp_host_demo::HttpServer::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let (url, sse_url) = (server.url(), server.sse_url());
    let serving = tokio::spawn(server.serve(std::future::pending()));
    let headers = serde_json::json!([{"name": "X-Key", "value": "hunter2"}]);
    let entries = serde_json::json!([
        {"type": "http", "name": "new", "url": url, "headers": headers},
        {"type": "sse", "name": "old", "url": sse_url, "headers": headers},
    ]);
    let session =
        SessionServers::connect(validated(&entries), crate::sessions::process_options()).await.unwrap();
    assert_eq!(summary(&session), "new:connected old:connected");
    for tool in ["new__add", "old__add"] {
        let sum = session.call(tool_call(tool, r#"{"a":2,"b":3}"#)).await;
        assert_eq!(sum.metadata.structured_content.unwrap().as_str(), r#"{"sum":5}"#);
    }
    session.close().await;
    serving.abort();
}
