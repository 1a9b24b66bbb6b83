//! What belongs to one session stays with it (X-25).

use std::sync::Arc;
use std::time::Duration;

use mcp_host_acp_agent::{NoticeSupport, SessionMcp, SessionRegistry, SessionSetupError, SessionSlot};
use mcp_host_model::RpcError;

use crate::sessions::{entries, options, session, summary, text_or_error, tool_call, validated};

/// Reserves a slot for these servers.
fn reserve(sessions: &SessionRegistry, id: &str, names: &[&str]) -> Result<SessionSlot, SessionSetupError> {
    sessions.reserve(id, &validated(&entries(names)), &options())
}

/// Gives a session these servers in memory.
async fn put(sessions: &SessionRegistry, id: &str, names: &[&str]) -> Arc<SessionMcp> {
    let place = reserve(sessions, id, names).unwrap();
    let exchanged = sessions.install(session(names).await, place).unwrap();
    if let Some(former) = exchanged.previous {
        former.close().await;
        // Its place is given back by the task that closes it.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    exchanged.servers
}

#[tokio::test(start_paused = true)]
async fn acpx_03_session_limit_is_enforced_before_any_start() {
    let sessions = SessionRegistry::with_capacity(2);
    let _in_use = put(&sessions, "1", &["a"]).await;
    let place = reserve(&sessions, "2", &["a"]).unwrap();
    let error =
        serde_json::to_string(&RpcError::from(&reserve(&sessions, "3", &["a"]).unwrap_err())).unwrap();
    insta::assert_snapshot!(error, @r#"{"code":-32603,"message":"this agent has the maximum of 2 sessions with MCP servers, and all of them are in use","data":{"limit":2,"suggestion":"close a session, or start the agent with a higher limit"}}"#);
    // A slot that is not used is free again; so is that of a closed session, and of a replaced set.
    drop(place);
    let _in_use = [put(&sessions, "1", &["b"]).await, put(&sessions, "2", &["a"]).await];
    assert!(reserve(&sessions, "3", &["a"]).is_err() && sessions.close("1").await);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(reserve(&sessions, "3", &["a"]).is_ok());
}

#[tokio::test(start_paused = true)]
async fn sessions_without_servers_need_no_slot_and_no_task() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (sessions, before) = (SessionRegistry::with_capacity(0), tasks());
    for id in 0..100 {
        put(&sessions, &id.to_string(), &[]).await;
    }
    let empty = sessions.acquire("7").await.unwrap().unwrap();
    assert!(empty.statuses().is_empty() && empty.tools().is_empty());
    assert!(empty.status_updates(NoticeSupport::Unsupported).next().await.is_none());
    assert_eq!(tasks(), before);
    let unknown = text_or_error(&empty.call(tool_call("echo", "{}")).await);
    assert!(unknown.starts_with("MCPToolNotFoundError: ") && empty.pin().snapshot().servers.is_empty());
    assert!(sessions.close("7").await && reserve(&sessions, "8", &["a"]).is_err());
    sessions.close_all().await;
}

#[tokio::test(start_paused = true)]
async fn full_registry_stops_the_servers_of_the_session_that_was_idle_for_longest() {
    let sessions = SessionRegistry::with_capacity(2);
    let state = |id: &str| summary(&sessions.get(id).unwrap());
    for id in ["1", "2"] {
        put(&sessions, id, &["a"]).await;
    }
    let mut updates = sessions.get("2").unwrap().status_updates(NoticeSupport::Unsupported);
    drop(sessions.acquire("1").await.unwrap());
    put(&sessions, "3", &["a"]).await;
    assert_eq!([state("1"), state("2"), state("3")], ["a:connected", "a:idle", "a:connected"]);
    let idle = sessions.get("2").unwrap();
    assert!(idle.tools().is_empty() && idle.statuses().iter().all(|status| status.tools == 0));
    drop(idle);
    assert_eq!(updates.next().await.unwrap().status().state.as_str(), "idle");

    // Its next use starts them again, in the slot of another session.
    let second = sessions.acquire("2").await.unwrap().unwrap();
    assert_eq!(text_or_error(&second.call(tool_call("echo", r#"{"text":"again"}"#)).await), "again");
    assert_eq!([state("1"), state("2"), state("3")], ["a:idle", "a:connected", "a:connected"]);
    assert_eq!(updates.next().await.unwrap().status().state.as_str(), "connected");

    // Servers in use are not stopped.
    let third = sessions.acquire("3").await.unwrap();
    assert_eq!(sessions.acquire("1").await.err(), Some(SessionSetupError::TooManySessions { limit: 2 }));
    assert!(reserve(&sessions, "4", &["a"]).is_err());
    drop(third);
    assert_eq!(summary(&sessions.acquire("1").await.unwrap().unwrap()), "a:connected");
    assert_eq!(state("3"), "a:idle");
    drop(second);
    sessions.close_all().await;
    assert!(sessions.acquire("2").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn x_25_sessions_do_not_share_tools() {
    let sessions = SessionRegistry::new();
    let first = put(&sessions, "1", &["a"]).await;
    let second = put(&sessions, "2", &["b"]).await;
    let names =
        |it: &SessionMcp| -> Vec<String> { it.tools().iter().map(|it| it.server.to_string()).collect() };
    assert!(names(&first).iter().all(|it| it == "a") && names(&second).iter().all(|it| it == "b"));
    let stranger = text_or_error(&first.call(tool_call("b__echo", r#"{"text":"x"}"#)).await);
    assert!(stranger.starts_with("MCPToolNotFoundError: "), "{stranger}");
    assert_eq!(text_or_error(&second.call(tool_call("b__echo", r#"{"text":"x"}"#)).await), "x");
    // The end of one is not the end of the other.
    assert!(sessions.close("1").await);
    assert_eq!((summary(&first).as_str(), summary(&second).as_str()), ("a:closed", "b:connected"));
    assert!(sessions.get("1").is_none() && !sessions.close("1").await);
    sessions.close_all().await;
    assert_eq!(summary(&second), "b:closed");
}

#[tokio::test(start_paused = true)]
async fn acpx_10_new_servers_replace_the_previous_ones() {
    let sessions = SessionRegistry::new();
    let former = put(&sessions, "1", &["a", "b"]).await;
    let latter = put(&sessions, "1", &["b", "c"]).await;
    assert_eq!(
        (summary(&former).as_str(), summary(&latter).as_str()),
        ("a:closed b:closed", "b:connected c:connected")
    );
    assert!(former.tools().is_empty());
    let now = sessions.get("1").unwrap();
    assert_eq!(summary(&now), "b:connected c:connected");
    // An empty set is a set.
    let none = put(&sessions, "1", &[]).await;
    assert_eq!((summary(&now).as_str(), summary(&none).as_str()), ("b:closed c:closed", ""));
}

#[tokio::test(start_paused = true)]
async fn acp_020_servers_connected_for_a_closed_session_are_closed() {
    let sessions = SessionRegistry::with_capacity(3);
    put(&sessions, "1", &["a"]).await;
    // A load that is under way when its session is closed, and one of a session that was never there.
    for (id, there) in [("1", true), ("2", false)] {
        let place = reserve(&sessions, id, &["b"]).unwrap();
        let connected = session(&["b"]).await;
        let mut changes = connected.status_stream();
        assert_eq!(sessions.close(id).await, there);
        assert_eq!(sessions.install(connected, place).err(), Some(SessionSetupError::Closed));
        assert!(sessions.get(id).is_none());
        sessions.close_all().await;
        let mut last = None;
        while let Some(status) = changes.next().await {
            last = Some(status.state.as_str());
        }
        assert_eq!(last, Some("closed"));
    }
    // A place that is taken after the closing is good.
    let again = put(&sessions, "1", &["c"]).await;
    assert_eq!(summary(&again), "c:connected");
}

#[tokio::test(start_paused = true)]
async fn acpx_10_replacement_is_atomic_and_does_not_wait_for_the_previous_servers() {
    let sessions = SessionRegistry::new();
    let former = put(&sessions, "1", &["a"]).await;
    let (place, latter) = (reserve(&sessions, "1", &["b"]).unwrap(), session(&["b"]).await);
    // A cancellation that comes after the connecting finds nothing to interrupt.
    let exchanged = sessions.install(latter, place).unwrap();
    assert!(exchanged.previous.is_some_and(|it| Arc::ptr_eq(&it, &former)));
    assert_eq!(
        (summary(&former).as_str(), summary(&exchanged.servers).as_str()),
        ("a:connected", "b:connected")
    );
    assert!(Arc::ptr_eq(&sessions.get("1").unwrap(), &exchanged.servers));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        (summary(&former).as_str(), summary(&exchanged.servers).as_str()),
        ("a:closed", "b:connected")
    );
}

#[tokio::test(start_paused = true)]
async fn acpx_13_request_with_too_many_servers_is_refused() {
    let few = || {
        let mut res = options();
        res.max_servers = 2;
        res
    };
    assert!(SessionMcp::connect(validated(&entries(&["a", "b"])), few()).await.is_ok());
    let error = SessionMcp::connect(validated(&entries(&["a", "b", "c"])), few()).await.err().unwrap();
    let error = serde_json::to_string(&RpcError::from(&error)).unwrap();
    insta::assert_snapshot!(error, @r#"{"code":-32602,"message":"the request has 3 MCP servers; a session may have at most 2","data":{"servers":3,"limit":2}}"#);
}
