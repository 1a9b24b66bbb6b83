//! What a POST brings that is not taken, and in which words.

use mcp_testkit::wait::wait_until;

use super::*;

/// The error of a call whose POST brings this, in words, and whether the session lives on.
async fn fault(rest: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> String {
    let peer = Peer::start(move |request| match request.rpc()["params"]["name"].as_str() {
        Some("other") => taken().push(tool_result(request, "hello")),
        _ => legacy(request, &rest),
    })
    .await;
    let headers = vec![("X-Key".to_owned(), Secret::from("hunter22"))];
    let session = TestClient { headers, ..TestClient::legacy() }.connect(&peer.url).await.unwrap();
    let error = call(&session).await.unwrap_err();
    let kind = match &error {
        CallError::Unreachable(_) | CallError::Refused(_) => "refused",
        CallError::OutcomeUnknown(_) => "unknown",
        CallError::Rpc(_) => "answered",
        _ => "other",
    };
    let other = session.call_tool("other", &RawJson::empty_object(), CallOptions::default()).await;
    let state = match other {
        Ok(answer) => answer.value.text(),
        Err(error) => error.to_string(),
    };
    format!("{kind}: {error} | {state}").replace(&peer.url, "URL")
}

#[tokio::test]
async fn refused_post_fails_its_call_only() {
    assert_eq!(
        fault(|_| reply(400, "not so: hunter22")).await,
        "refused: the server answered HTTP 400 Bad Request: not so: *** | hello"
    );
    assert_eq!(
        fault(|_| reply(401, "").header("www-authenticate", "Bearer realm=\"r\"")).await,
        "refused: the server answered HTTP 401 Unauthorized: it requires authorization (Bearer) | hello"
    );
    assert_eq!(
        fault(|_| reply(403, "no")).await,
        "refused: the server answered HTTP 403 Forbidden: it requires authorization: no | hello"
    );
    assert_eq!(
        fault(|_| reply(413, "")).await,
        "refused: the server answered HTTP 413 Payload Too Large | hello"
    );
    assert_eq!(
        fault(|_| reply(400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}"#)).await,
        "refused: the server answered HTTP 400 Bad Request: bad (code -32700) | hello"
    );
}

#[tokio::test]
async fn server_error_leaves_the_outcome_unknown() {
    let unknown = |why: &str| {
        format!("unknown: the response was lost ({why}), and it is not known whether the call ran | hello")
    };
    assert_eq!(
        fault(|_| reply(500, "oops")).await,
        unknown("the server answered HTTP 500 Internal Server Error: oops")
    );
    assert_eq!(
        fault(|_| reply(503, "x".repeat(1000))).await,
        unknown(&format!("the server answered HTTP 503 Service Unavailable: {}…", "x".repeat(200)))
    );
}

#[tokio::test]
async fn error_with_the_calls_id_is_its_response() {
    let error = |request: &ReceivedRequest| {
        json!({"id": request.rpc()["id"], "error": {"code": -32602, "message": "no"}}).to_string()
    };
    let want = "answered: the server responded with an error: no (code -32602) | hello";
    for status in [400, 404, 500] {
        assert_eq!(fault(move |it| reply(status, error(it))).await, want, "{status}");
    }
}

#[tokio::test]
async fn sk_24_unknown_session_ends_the_connection() {
    assert_eq!(
        fault(|_| reply(404, "Could not find session")).await,
        "refused: the server answered HTTP 404 Not Found: Could not find session | the server is no longer \
        available: it no longer knows the session: the server answered HTTP 404 Not Found: Could not find session"
    );
    // A notice that is not taken says so just as well.
    let peer = Peer::start(|request| match request.kind().as_str() {
        "notifications/cancelled" => reply(404, ""),
        _ => legacy(request, |_| taken()),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let options = CallOptions::with_timeout(Duration::from_millis(20));
    session.call_tool("echo", &RawJson::empty_object(), options).await.unwrap_err();
    let ended = session.closed().await.to_string();
    assert_eq!(ended, "it no longer knows the session: the server answered HTTP 404 Not Found");
    wait_until(|| peer.streams() == 0).await;
}

#[tokio::test]
async fn body_of_an_accepted_post_is_ignored() {
    for status in [200, 201, 202, 204] {
        let peer = Peer::start(move |request| {
            legacy(request, |request| {
                let body =
                    if status == 204 { "" } else { r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"# };
                reply(status, body)
                    .header("content-type", "application/json")
                    .push(tool_result(request, "hello"))
            })
        })
        .await;
        let session = TestClient::legacy().connect(&peer.url).await.unwrap();
        assert_eq!(call(&session).await.unwrap(), "hello", "{status}");
    }
}

#[tokio::test]
async fn refused_notifications_are_ignored() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "notifications/initialized" => reply(500, "what?"),
        _ => greeting(request),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
}
