//! Sessions of a registry are isolated: their servers, their slots and their ends (X-25).

use std::sync::Arc;
use std::time::Duration;

use mcp_host_acp_agent::{NoticeSupport, SessionRegistry, SessionServers, SessionSetupError, SessionSlot};
use mcp_host_model::RpcError;

use crate::sessions::{entries, options, session, summary, text_or_error, tool_call, validated};

/// Reserves a slot for these servers.
fn reserve(sessions: &SessionRegistry, id: &str, names: &[&str]) -> Result<SessionSlot, SessionSetupError> {
    sessions.reserve(id, &validated(&entries(names)), &options())
}

/// Connects in-memory servers, installs them in a session and waits until the previous ones are closed.
async fn install_servers(sessions: &SessionRegistry, id: &str, names: &[&str]) -> Arc<SessionServers> {
    let slot = reserve(sessions, id, names).unwrap();
    let replacement = sessions.install(session(names).await, slot).unwrap();
    if let Some(previous) = replacement.previous {
        previous.close().await;
        // Its slot is released by the task that closes it.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    replacement.servers
}

#[tokio::test(start_paused = true)]
async fn acpx_03_session_limit_is_enforced_before_any_start() {
    let sessions = SessionRegistry::with_capacity(2);
    let _in_use = install_servers(&sessions, "1", &["a"]).await;
    let slot = reserve(&sessions, "2", &["a"]).unwrap();
    let error =
        serde_json::to_string(&RpcError::from(&reserve(&sessions, "3", &["a"]).unwrap_err())).unwrap();
    insta::assert_snapshot!(error, @r#"{"code":-32603,"message":"this agent has the maximum of 2 sessions with MCP servers, and all of them are in use","data":{"limit":2,"suggestion":"close a session, or start the agent with a higher limit"}}"#);
    // The slot of a dropped reservation, of a closed session and of replaced servers is free again.
    drop(slot);
    let _in_use =
        [install_servers(&sessions, "1", &["b"]).await, install_servers(&sessions, "2", &["a"]).await];
    assert!(reserve(&sessions, "3", &["a"]).is_err() && sessions.close("1").await);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(reserve(&sessions, "3", &["a"]).is_ok());
}

#[tokio::test(start_paused = true)]
async fn sessions_without_servers_need_no_slot_and_no_task() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (sessions, before) = (SessionRegistry::with_capacity(0), tasks());
    for id in 0..100 {
        install_servers(&sessions, &id.to_string(), &[]).await;
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
async fn full_registry_stops_the_servers_of_the_longest_idle_session() {
    let sessions = SessionRegistry::with_capacity(2);
    let state = |id: &str| summary(&sessions.get(id).unwrap());
    for id in ["1", "2"] {
        install_servers(&sessions, id, &["a"]).await;
    }
    let mut updates = sessions.get("2").unwrap().status_updates(NoticeSupport::Unsupported);
    drop(sessions.acquire("1").await.unwrap());
    install_servers(&sessions, "3", &["a"]).await;
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
    let first = install_servers(&sessions, "1", &["a"]).await;
    let second = install_servers(&sessions, "2", &["b"]).await;
    let names =
        |it: &SessionServers| -> Vec<String> { it.tools().iter().map(|it| it.server.to_string()).collect() };
    assert!(names(&first).iter().all(|it| it == "a") && names(&second).iter().all(|it| it == "b"));
    let foreign_call = text_or_error(&first.call(tool_call("b__echo", r#"{"text":"x"}"#)).await);
    assert!(foreign_call.starts_with("MCPToolNotFoundError: "), "{foreign_call}");
    assert_eq!(text_or_error(&second.call(tool_call("b__echo", r#"{"text":"x"}"#)).await), "x");
    // Closing one session does not close the other.
    assert!(sessions.close("1").await);
    assert_eq!((summary(&first).as_str(), summary(&second).as_str()), ("a:closed", "b:connected"));
    assert!(sessions.get("1").is_none() && !sessions.close("1").await);
    sessions.close_all().await;
    assert_eq!(summary(&second), "b:closed");
}

#[tokio::test(start_paused = true)]
async fn acpx_10_new_servers_replace_the_previous_ones() {
    let sessions = SessionRegistry::new();
    let previous = install_servers(&sessions, "1", &["a", "b"]).await;
    let current = install_servers(&sessions, "1", &["b", "c"]).await;
    assert_eq!(
        (summary(&previous).as_str(), summary(&current).as_str()),
        ("a:closed b:closed", "b:connected c:connected")
    );
    assert!(previous.tools().is_empty());
    let installed = sessions.get("1").unwrap();
    assert_eq!(summary(&installed), "b:connected c:connected");
    // An empty list also replaces the servers.
    let none = install_servers(&sessions, "1", &[]).await;
    assert_eq!((summary(&installed).as_str(), summary(&none).as_str()), ("b:closed c:closed", ""));
}

#[tokio::test(start_paused = true)]
async fn acp_020_servers_connected_for_a_closed_session_are_closed() {
    let sessions = SessionRegistry::with_capacity(3);
    install_servers(&sessions, "1", &["a"]).await;
    // A load during which its session is closed, and one for a session that did not exist.
    for (id, existed) in [("1", true), ("2", false)] {
        let slot = reserve(&sessions, id, &["b"]).unwrap();
        let connected = session(&["b"]).await;
        let mut changes = connected.status_stream();
        assert_eq!(sessions.close(id).await, existed);
        assert_eq!(sessions.install(connected, slot).err(), Some(SessionSetupError::Closed));
        assert!(sessions.get(id).is_none());
        sessions.close_all().await;
        let mut last = None;
        while let Some(status) = changes.next().await {
            last = Some(status.state.as_str());
        }
        assert_eq!(last, Some("closed"));
    }
    // A slot that is reserved after the close can be used.
    let again = install_servers(&sessions, "1", &["c"]).await;
    assert_eq!(summary(&again), "c:connected");
}

#[tokio::test(start_paused = true)]
async fn acpx_10_replacement_is_atomic_and_does_not_wait_for_the_previous_servers() {
    let sessions = SessionRegistry::new();
    let previous = install_servers(&sessions, "1", &["a"]).await;
    let (slot, current) = (reserve(&sessions, "1", &["b"]).unwrap(), session(&["b"]).await);
    // The exchange is synchronous, so that a cancellation after the connect cannot interrupt it.
    let replacement = sessions.install(current, slot).unwrap();
    assert!(replacement.previous.is_some_and(|it| Arc::ptr_eq(&it, &previous)));
    assert_eq!(
        (summary(&previous).as_str(), summary(&replacement.servers).as_str()),
        ("a:connected", "b:connected")
    );
    assert!(Arc::ptr_eq(&sessions.get("1").unwrap(), &replacement.servers));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        (summary(&previous).as_str(), summary(&replacement.servers).as_str()),
        ("a:closed", "b:connected")
    );
}

#[tokio::test(start_paused = true)]
async fn acpx_13_request_with_too_many_servers_is_refused() {
    let two_servers_options = || {
        let mut options = options();
        options.max_servers = 2;
        options
    };
    assert!(SessionServers::connect(validated(&entries(&["a", "b"])), two_servers_options()).await.is_ok());
    let error = SessionServers::connect(validated(&entries(&["a", "b", "c"])), two_servers_options())
        .await
        .err()
        .unwrap();
    let error = serde_json::to_string(&RpcError::from(&error)).unwrap();
    insta::assert_snapshot!(error, @r#"{"code":-32602,"message":"the request has 3 MCP servers; a session may have at most 2","data":{"servers":3,"limit":2}}"#);
}
