//! What belongs to one session stays with it (X-25).

use std::sync::Arc;

use mcp_acp_agent::{SessionMcp, Sessions};
use mcp_model::RpcError;

use crate::world::{seen, session, told, tool_call};

/// Gives a session these servers in memory.
async fn put(sessions: &Sessions, id: &str, names: &[&str]) -> Arc<SessionMcp> {
    let place = sessions.place().unwrap();
    sessions.put(id, session(names).await, place).await
}

#[tokio::test(start_paused = true)]
async fn acpx_03_a_client_without_measure_is_refused_before_anything_is_started() {
    let sessions = Sessions::with_room(2);
    put(&sessions, "1", &["a"]).await;
    let place = sessions.place().unwrap();
    let error = serde_json::to_string(&RpcError::from(&sessions.place().unwrap_err())).unwrap();
    insta::assert_snapshot!(error, @r#"{"code":-32603,"message":"this agent has no room for more than 2 sessions with MCP servers at once","data":{"limit":2,"suggestion":"close a session first"}}"#);
    // Whoever gives up gives his place back; so does a session that is closed, and one whose set is exchanged.
    drop(place);
    put(&sessions, "1", &["b"]).await;
    put(&sessions, "2", &["a"]).await;
    assert!(sessions.place().is_err() && sessions.close("1").await && sessions.place().is_ok());
}

#[tokio::test(start_paused = true)]
async fn x_25_a_session_has_no_tools_of_another() {
    let sessions = Sessions::new();
    let first = put(&sessions, "1", &["a"]).await;
    let second = put(&sessions, "2", &["b"]).await;
    let names =
        |it: &SessionMcp| -> Vec<String> { it.tools().iter().map(|it| it.server.to_string()).collect() };
    assert!(names(&first).iter().all(|it| it == "a") && names(&second).iter().all(|it| it == "b"));
    let stranger = told(&first.call(tool_call("b__echo", r#"{"text":"x"}"#)).await);
    assert!(stranger.starts_with("MCPToolNotFoundError: "), "{stranger}");
    assert_eq!(told(&second.call(tool_call("b__echo", r#"{"text":"x"}"#)).await), "x");
    // The end of one is not the end of the other.
    assert!(sessions.close("1").await);
    assert_eq!((seen(&first).as_str(), seen(&second).as_str()), ("a:closed", "b:connected"));
    assert!(sessions.get("1").is_none() && !sessions.close("1").await);
    sessions.close_all().await;
    assert_eq!(seen(&second), "b:closed");
}

#[tokio::test(start_paused = true)]
async fn acpx_10_another_set_takes_the_place_of_the_former() {
    let sessions = Sessions::new();
    let former = put(&sessions, "1", &["a", "b"]).await;
    let latter = put(&sessions, "1", &["b", "c"]).await;
    assert_eq!(
        (seen(&former).as_str(), seen(&latter).as_str()),
        ("a:closed b:closed", "b:connected c:connected")
    );
    assert!(former.tools().is_empty());
    let now = sessions.get("1").unwrap();
    assert_eq!(seen(&now), "b:connected c:connected");
    // An empty set is a set.
    let none = put(&sessions, "1", &[]).await;
    assert_eq!((seen(&now).as_str(), seen(&none).as_str()), ("b:closed c:closed", ""));
}
