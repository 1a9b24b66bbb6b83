//! Responses of an odd form, and output that is no response, over stdio.

use mcp_testkit::servers::{shell_script, shell_server};

use crate::stdio::{call, connect};

/// The result or the error of a call that the server answers with these shell commands.
async fn answer(tool: &str) -> String {
    let session = connect(shell_server(tool)).await.unwrap();
    call(&session, 1_000)
        .await
        .unwrap_or_else(|error| format!("{error} [{}]", error.help().unwrap_or_default()))
}

const RESULT: &str = r#"{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}"#;

// RPT-030, RPT-033
#[tokio::test]
async fn response_matches_by_number_and_after_a_byte_order_mark() {
    for id in ["$id.0", "\\\"$id\\\"", "\\\"$id.0\\\"", "${id}e0"] {
        let response = format!(r#"echo "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{RESULT}}}""#);
        assert_eq!(answer(&response).await, "hello", "{id}");
    }
    let marked =
        format!(r#"printf '\357\273\277'; echo "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{RESULT}}}""#);
    assert_eq!(answer(&marked).await, "hello");
}

// RPT-031
#[tokio::test]
async fn error_beside_a_result_is_shown() {
    let error = r#"\"error\":{\"code\":-32000,\"message\":\"no\"}"#;
    for members in [
        format!(r#"\"result\":null,{error}"#),
        format!(r#"\"result\":{RESULT},{error}"#),
        format!(r#"{error},\"result\":{RESULT}"#),
        format!(r#"\"result\":{{\"content\":[{{\"type\":\"new\"}}]}},{error}"#),
    ] {
        let shown = answer(&format!(r#"echo "{{\"jsonrpc\":\"2.0\",\"id\":$id,{members}}}""#)).await;
        assert!(
            shown.starts_with("the server responded with an error: no (code -32000)"),
            "{members}: {shown}"
        );
    }
}

// RPT-031, RPT-032
#[tokio::test]
async fn response_without_a_usable_payload_fails_at_once() {
    let shown = answer(r#"echo "{\"jsonrpc\":\"2.0\",\"id\":$id}""#).await;
    assert!(shown.contains("the response has neither a result nor an error"), "{shown}");
    let shown = answer(r#"echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":\"it broke\"}""#).await;
    assert!(shown.starts_with("the server responded with an error: it broke (code -32603)"), "{shown}");
    let shown = answer(r#"echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":\"plain\"}""#).await;
    assert!(shown.contains("`result` is a string, not an object"), "{shown}");
}

// RPT-036
#[tokio::test]
async fn timeout_names_what_belongs_to_no_request() {
    let message = format!(r#"{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{RESULT}}}"#);
    for (tool, want) in [
        (format!(r#"echo "working... {message}""#), "it mixed other text into the line of a message"),
        (
            "echo '{'; echo '  \"jsonrpc\": \"2.0\",'; echo '}'".to_owned(),
            "it wrote a message over several lines",
        ),
        (
            r#"echo "{\"id\":\"abc\",\"result\":{}}""#.to_owned(),
            "a response with the id \"abc\", which no request has",
        ),
        (r#"echo "{\"id\":7,\"result\":{}}""#.to_owned(), "a response with the id 7, which no request has"),
        (r#"echo "{\"result\":{}}""#.to_owned(), "it sent a result without an id"),
        (
            r#"echo "{\"error\":{\"code\":1,\"message\":\"no\"},\"id\":null}""#.to_owned(),
            "it sent an error without an id: no",
        ),
        (format!(r#"printf %s "{message}""#), "it wrote a message without a line break at its end"),
    ] {
        let shown = answer(&tool).await;
        assert!(shown.starts_with("no response within 1 s; ") && shown.contains(want), "{tool}: {shown}");
        assert!(!shown.contains("raise the request timeout"), "{tool}: {shown}");
    }
    let two = format!(r#"echo "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}}{message}""#);
    assert_eq!(answer(&two).await, "hello");
    let late = answer("sleep 1000").await;
    assert_eq!(late, "no response within 1 s [request less, or raise the request timeout]");
}

// RPT-036
#[tokio::test]
async fn failed_handshake_names_content_length_headers() {
    let script = "while read -r line; do printf 'Content-Length: 2\\r\\n\\r\\n{}'; exit 1; done";
    let error = connect(shell_script(script)).await.err().unwrap().to_string();
    assert!(error.contains("it frames its messages with Content-Length headers"), "{error}");
}
