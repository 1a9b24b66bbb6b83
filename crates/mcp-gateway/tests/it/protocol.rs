//! Statuses, headers and errors of Streamable HTTP, in both eras.

use mcp_host_model::code;

use crate::support::{TestGateway, initialize};

#[tokio::test]
async fn every_version_is_negotiated() {
    let fixture = TestGateway::new().await;
    for (asked, got) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ] {
        let reply = fixture.post(&[], &initialize(asked)).await;
        assert_eq!(reply.json()["result"]["protocolVersion"], got);
        // RPT-152: some clients repeat the version as a header.
        let reply = fixture.post(&[("mcp-protocol-version", asked)], &initialize(asked)).await;
        assert_eq!(reply.json()["result"]["protocolVersion"], got, "{asked}");
    }
    for header in ["2027-01-01", "1999-01-01", "x"] {
        let reply = fixture.post(&[("mcp-protocol-version", header)], &initialize("2025-11-25")).await;
        assert_eq!(reply.json()["result"]["protocolVersion"], "2025-11-25", "{header}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn session_requires_its_id() {
    let fixture = TestGateway::new().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(fixture.post(&[], ping).await.status, 400);
    assert_eq!(fixture.post(&[("mcp-session-id", "x")], ping).await.status, 404);
    let session = fixture.initialize(&[]).await;
    assert_eq!(session.len(), 48);
    let own = ("mcp-session-id", session.as_str());
    assert_eq!(fixture.post(&[own], ping).await.json()["result"], serde_json::json!({}));
    let refused = fixture.post(&[own, ("mcp-protocol-version", "2026-07-28")], ping).await;
    assert!(
        refused.status == 400 && refused.body.contains("that of this session is 2025-11-25"),
        "{refused:?}"
    );
    assert_eq!(fixture.post(&[own, ("mcp-protocol-version", "2025-06-18")], ping).await.status, 200);
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(fixture.post(&[own], notification).await.status, 202);
    let unknown = fixture.post(&[own], r#"{"jsonrpc":"2.0","id":1,"method":"x/y"}"#).await;
    assert_eq!(
        (unknown.status, unknown.json()["error"]["code"].as_i64()),
        (200, Some(code::METHOD_NOT_FOUND))
    );
    assert_eq!(fixture.post(&[own], "{").await.status, 400);
    assert_eq!(fixture.post(&[own], &format!("[{ping}]")).await.status, 400);
    assert_eq!(fixture.http("GET", "/mcp", &[], "").await.status, 405);
    let head = [own, ("accept", "text/event-stream")];
    assert_eq!(fixture.http("HEAD", "/mcp", &head, "").await.status, 405);
    let plain = [own, ("accept", "application/json")];
    assert_eq!(fixture.http("GET", "/mcp", &plain, "").await.status, 406);
    let wrong_type = [("content-type", "text/plain")];
    assert_eq!(fixture.http("POST", "/mcp", &wrong_type, ping).await.status, 415);
    fixture.end().await;
}

#[tokio::test]
async fn batch_is_answered_if_the_version_has_batches() {
    let fixture = TestGateway::new().await;
    let reply = fixture.post(&[], &initialize("2025-03-26")).await;
    let session = reply.header("mcp-session-id").unwrap();
    let batch = concat!(
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"demo__echo","arguments":{"text":"a"}}}]"#
    );
    let answers = fixture.post(&[("mcp-session-id", &session)], batch).await.json();
    let ids: Vec<i64> = answers.as_array().unwrap().iter().map(|it| it["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [1, 2]);
    fixture.end().await;
}

#[tokio::test]
async fn stateless_headers_must_match_the_body() {
    let fixture = TestGateway::new().await;
    let check = async |headers: &[(&str, &str)], body: &str, status: u16, number: i64| {
        let reply = fixture.post(headers, body).await;
        assert_eq!(
            (reply.status, reply.json()["error"]["code"].as_i64()),
            (status, Some(number)),
            "{reply:?}"
        );
    };
    let (_, body) =
        crate::support::modern("tools/call", None, r#""name":"demo__echo","arguments":{"text":"a"}"#);
    let version = ("mcp-protocol-version", "2026-07-28");
    let (call, name) = (("mcp-method", "tools/call"), ("mcp-name", "demo__echo"));
    check(&[], &body, 400, code::HEADER_MISMATCH).await;
    check(&[version], &body, 400, code::HEADER_MISMATCH).await;
    check(&[version, ("mcp-method", "tools/list")], &body, 400, code::HEADER_MISMATCH).await;
    check(&[version, call, ("mcp-name", "x")], &body, 400, code::HEADER_MISMATCH).await;
    assert_eq!(fixture.post(&[version, call, name], &body).await.json()["result"]["resultType"], "complete");
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    check(&[version, ("mcp-method", "tools/list")], bare, 400, code::INVALID_PARAMS).await;
    let other = body.replace("2026-07-28", "2030-01-01");
    check(
        &[("mcp-protocol-version", "2030-01-01"), call, name],
        &other,
        400,
        code::UNSUPPORTED_PROTOCOL_VERSION,
    )
    .await;
    let unknown = fixture.modern("ping", None, "").await;
    assert_eq!(
        (unknown.status, unknown.json()["error"]["code"].as_i64()),
        (404, Some(code::METHOD_NOT_FOUND))
    );
    let list = fixture.modern("tools/list", None, "").await.json();
    assert_eq!(
        (&list["result"]["resultType"], &list["result"]["cacheScope"]),
        (&"complete".into(), &"private".into())
    );
    assert!(list["result"]["ttlMs"].is_u64());
    let stale = fixture.modern("tools/list", None, r#""cursor":"x.1""#).await.json();
    assert_eq!(stale["error"]["code"].as_i64(), Some(code::INVALID_PARAMS));
    let discovered = fixture.modern("server/discover", None, "").await.json();
    assert_eq!(discovered["result"]["supportedVersions"][0], "2026-07-28");
    fixture.end().await;
}
