//! Lists, list changes and handshakes.

use mcp_host_demo::ServeOutcome;
use serde_json::{Value, json};

use crate::client::{BOTH, Client, Era, describe};

/// The names of a list's items.
fn names(answer: &Value, list: &str, key: &str) -> String {
    let items = answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}"));
    let names: Vec<&str> = items.iter().map(|item| item[key].as_str().unwrap()).collect();
    names.join(" ")
}

const BUILT_IN: &str = "echo add sleep fail mixed change_tools log grow exit ask env header";

#[tokio::test]
async fn lists_have_a_fixed_order() {
    for era in BOTH {
        let mut client = Client::open(era).await;
        for (method, list, key, expected) in [
            ("tools/list", "tools", "name", BUILT_IN),
            ("prompts/list", "prompts", "name", "hello summarise"),
            ("resources/list", "resources", "uri", "demo://greeting demo://picture demo://sound"),
            ("resources/templates/list", "resourceTemplates", "uriTemplate", "demo://numbers/{count}"),
        ] {
            let first = client.request(method, json!({})).await;
            assert_eq!(names(&first, list, key), expected, "{era:?}");
            let second = client.request(method, json!({})).await;
            assert_eq!(first["result"], second["result"]);
            let paged = client.request(method, json!({"cursor": "1"})).await;
            assert_eq!(describe(&paged), "-32602: unknown cursor");
        }
    }
}

#[tokio::test]
async fn every_tool_has_description_and_schema() {
    let mut client = Client::open(Era::Sessionless).await;
    let answer = client.request("tools/list", json!({})).await;
    let mut text = String::new();
    for tool in answer["result"]["tools"].as_array().unwrap() {
        assert!(tool["description"].as_str().is_some_and(|it| !it.is_empty()), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["inputSchema"]["properties"].is_object(), "{tool}");
        let hint = |name: &str| tool["annotations"][name] == true;
        let hints = [("readOnlyHint", 'r'), ("idempotentHint", 'i'), ("destructiveHint", 'd')];
        let hints: String =
            hints.into_iter().filter(|(name, _)| hint(name)).map(|(_, letter)| letter).collect();
        text.push_str(&format!("{}:{hints} ", tool["name"].as_str().unwrap()));
    }
    assert_eq!(
        text,
        "echo:ri add:ri sleep:ri fail:ri mixed:ri change_tools: log:r grow:ri exit:d ask:r env:ri header:ri "
    );
}

#[tokio::test]
async fn legacy_client_is_notified_of_a_changed_list() {
    let mut client = Client::open(Era::Legacy).await;
    let change = |name: &str| json!({"name": "change_tools", "arguments": {"name": name}});
    assert_eq!(client.call(change("z")).await, "list changed, added z");
    assert_eq!(client.call(change("a")).await, "list changed, added a");
    let answer = client.request("tools/list", json!({})).await;
    assert_eq!(names(&answer, "tools", "name"), format!("{BUILT_IN} a z"));
    assert_eq!(client.call(json!({"name": "z"})).await, "I am z, added at run time");
    assert_eq!(client.call(change("z")).await, "list changed, removed z");
    assert_eq!(client.call(json!({"name": "z"})).await, "-32602: there is no tool `z`");
    assert_eq!(client.call(change("echo")).await, "failed: `echo` is a built-in tool");
    assert_eq!(client.call(change("a b")).await, "failed: `name` is 1 to 64 letters, digits, `_` or `-`");
}

#[tokio::test]
async fn modern_client_is_notified_on_its_subscription() {
    let mut client = Client::open(Era::Sessionless).await;
    let change = json!({"name": "change_tools", "arguments": {"name": "late"}});
    assert_eq!(client.call(change.clone()).await, "added late");
    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let id = client.send_request("subscriptions/listen", wanted).await;
    assert_eq!(describe(&client.next().await.unwrap()), r#"listening {"toolsListChanged":true}"#);
    client.send_request("tools/call", change).await;
    // The response and the notification arrive in any order.
    let mut text = [client.next().await.unwrap(), client.next().await.unwrap()];
    text.sort_by_key(describe);
    assert_eq!([describe(&text[0]), describe(&text[1])], ["list changed", "removed late"]);
    assert_eq!(text[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    assert_eq!(client.close().await, ServeOutcome::Closed);
}

#[tokio::test]
async fn prompts_use_their_arguments() {
    let cases = [
        (json!({"name": "hello"}), "Hello! Which tools do you have, and what are they good for?"),
        (
            json!({"name": "summarise", "arguments": {"text": "a tale", "words": "9"}}),
            "Summarise the following text in at most 9 words.\n\na tale",
        ),
        (json!({"name": "summarise"}), "-32602: the prompt `summarise` needs the argument `text`"),
        (json!({"name": "none"}), "-32602: there is no prompt `none`"),
    ];
    for era in BOTH {
        let mut client = Client::open(era).await;
        for (params, expected) in &cases {
            let answer = client.request("prompts/get", params.clone()).await;
            let text = match answer["result"]["messages"][0]["content"]["text"].as_str() {
                Some(text) => text.to_owned(),
                None => describe(&answer),
            };
            assert_eq!(text, *expected, "{era:?}");
        }
    }
}

#[tokio::test]
async fn resources_are_read() {
    let cases = [
        ("demo://greeting", "text/plain: Hello from the demo server.\n"),
        ("demo://numbers/3", "text/plain: 1\n2\n3\n"),
        ("demo://picture", "image/png: 104 characters"),
        ("demo://sound", "audio/wav: 168 characters"),
        ("demo://numbers/1001", "none"),
        ("demo://numbers/-1", "none"),
        ("file:///etc/passwd", "none"),
    ];
    // The legacy era has its own error code for a missing resource.
    for (era, missing) in [(Era::Legacy, -32002), (Era::Sessionless, -32602)] {
        let mut client = Client::open(era).await;
        for (uri, expected) in cases {
            let answer = client.request("resources/read", json!({"uri": uri})).await;
            let contents = &answer["result"]["contents"][0];
            let text = match (contents["text"].as_str(), contents["blob"].as_str()) {
                (Some(text), _) => format!("{}: {text}", contents["mimeType"].as_str().unwrap()),
                (_, Some(blob)) => {
                    format!("{}: {} characters", contents["mimeType"].as_str().unwrap(), blob.len())
                }
                (None, None) => {
                    assert_eq!(answer["error"]["code"], missing, "{answer}");
                    "none".to_owned()
                }
            };
            assert_eq!(text, expected, "{era:?}");
        }
    }
}

#[tokio::test]
async fn cancelled_probe_does_not_open_a_session() {
    let mut client = Client::open(Era::Sessionless).await;
    let discovered = client.request("server/discover", json!({})).await;
    assert_eq!(discovered["result"]["capabilities"]["tools"]["listChanged"], true, "{discovered}");
    let versions = discovered["result"]["supportedVersions"].to_string();
    assert!(versions.contains("2025-11-25") && versions.contains("2026-07-28"), "{versions}");
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": params})).await;
    let answer = client.next().await.unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "mcp-demo", "{answer}");
    assert_eq!(client.close().await, ServeOutcome::Closed);
}

#[tokio::test]
async fn disconnect_without_a_session_is_not_an_error() {
    let client = Client::open(Era::Sessionless).await;
    assert_eq!(client.close().await, ServeOutcome::Closed);
}
