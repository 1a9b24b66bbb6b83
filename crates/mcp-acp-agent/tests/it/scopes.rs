//! What belongs to one session stays with it (X-25).

use mcp_acp_agent::Sessions;

use crate::world::{seen, session, told, tool_call};

#[tokio::test(start_paused = true)]
async fn x_25_a_session_has_no_tools_of_another() {
    let sessions = Sessions::new();
    let first = sessions.put("1", session(&["a"]).await).await;
    let second = sessions.put("2", session(&["b"]).await).await;
    let names = |it: &mcp_acp_agent::SessionMcp| -> Vec<String> {
        it.tools().iter().map(|it| it.server.to_string()).collect()
    };
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
    let former = sessions.put("1", session(&["a", "b"]).await).await;
    let latter = sessions.put("1", session(&["b", "c"]).await).await;
    assert_eq!(
        (seen(&former).as_str(), seen(&latter).as_str()),
        ("a:closed b:closed", "b:connected c:connected")
    );
    assert!(former.tools().is_empty());
    let now = sessions.get("1").unwrap();
    assert_eq!(seen(&now), "b:connected c:connected");
    // An empty set is a set.
    let none = sessions.put("1", session(&[]).await).await;
    assert_eq!((seen(&now).as_str(), seen(&none).as_str()), ("b:closed c:closed", ""));
}
