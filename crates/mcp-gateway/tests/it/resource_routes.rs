//! Which server a resource is read from: its URI may be in no list, or be the same on two servers.

use mcp_host_gateway::{GatewayOptions, HttpOptions};
use serde_json::{Value, json};

use crate::support::{TestGateway, initialize, server};

async fn fixture() -> TestGateway {
    let servers = ["demo", "own", "one", "two"].map(server).to_vec();
    TestGateway::with_servers(servers, GatewayOptions::default(), HttpOptions::default()).await
}

fn error(reply: &Value) -> String {
    let message = reply["error"]["message"].as_str().unwrap();
    message.strip_prefix("ValidationError: ").unwrap_or(message).to_owned()
}

/// A client: of a session under this path, or without a session.
struct Client<'a> {
    fixture: &'a TestGateway,
    path: String,
    session: Option<String>,
}

impl<'a> Client<'a> {
    async fn with_session(fixture: &'a TestGateway, path: &str) -> Client<'a> {
        let headers = [("content-type", "application/json"), ("accept", "application/json")];
        let begun = fixture.http("POST", path, &headers, &initialize("2025-11-25")).await;
        Client { fixture, path: path.to_owned(), session: begun.header("mcp-session-id") }
    }

    async fn request(&self, method: &str, params: Value) -> Value {
        let mut headers =
            vec![("content-type", "application/json".to_owned()), ("accept", "application/json".to_owned())];
        let body = match &self.session {
            Some(session) => {
                headers.push(("mcp-session-id", session.clone()));
                json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
            }
            None => {
                let name = params["name"].as_str().or(params["uri"].as_str());
                let params = params.to_string();
                let inner = params.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
                let (more, body) = crate::support::modern(method, name, inner);
                headers.extend(more);
                body
            }
        };
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
        self.fixture.http("POST", &self.path, &headers, &body).await.json()
    }

    /// The text of a resource, whose URI must be the requested one; or the error's message.
    async fn read(&self, uri: &str) -> String {
        let reply = self.request("resources/read", json!({"uri": uri})).await;
        let Some(content) = reply["result"]["contents"].get(0) else {
            return error(&reply);
        };
        assert_eq!(content["uri"], uri);
        assert_eq!(
            reply["result"].get("ttlMs").is_some(),
            self.session.is_none(),
            "a member of the modern era"
        );
        content["text"].as_str().unwrap().to_owned()
    }

    /// The URI of the link in the result of a server's tool, as the client sees it.
    async fn link(&self, server: &str, uri: &str) -> String {
        let result = json!({"content": [{"type": "resource_link", "uri": uri, "name": "x"}]}).to_string();
        let params = json!({"name": format!("{server}__say"), "arguments": {"result": result}});
        let reply = self.request("tools/call", params).await;
        reply["result"]["content"][0]["uri"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn two_servers_with_the_same_uri_stay_distinct() {
    let fixture = fixture().await;
    let without_session = Client { fixture: &fixture, path: "/mcp".to_owned(), session: None };
    for client in [Client::with_session(&fixture, "/mcp").await, without_session] {
        let tools = client.request("tools/list", json!({})).await;
        for (server, uri) in
            [("one", "ui://app/view.html"), ("two", "ui://app/view.html#mcp-host-server=two")]
        {
            let tools = tools["result"]["tools"].as_array().unwrap();
            let tool = tools.iter().find(|tool| tool["name"] == format!("{server}__say")).unwrap();
            assert_eq!(tool["_meta"]["ui"]["resourceUri"], uri);
            assert_eq!(client.read(uri).await, server);
            assert_eq!(client.link(server, "ui://app/view.html").await, uri);
        }
        let listed = client.request("resources/list", json!({})).await;
        assert_eq!(listed.to_string().matches("ui://app/view.html").count(), 2, "{listed}");

        // Links of results: the first server keeps the URI.
        assert_eq!(client.link("two", "file:///x").await, "file:///x");
        assert_eq!(client.link("one", "file:///x").await, "file:///x#mcp-host-server=one");
        assert_eq!(client.read("file:///x").await, "two");
        assert_eq!(client.read("file:///x#mcp-host-server=one").await, "one");
        assert_eq!(client.link("two", "file:///x").await, "file:///x");

        // What no list and no result has is searched.
        assert_eq!(client.read("u:two").await, "two");
        assert_eq!(client.read("u:one").await, "one");
        assert_eq!(client.read("u:none").await, "Resource 'u:none' not found");
        assert_eq!(client.read("demo://numbers/2").await.trim(), "1\n2");
    }
    // Another session knows nothing of these results: the first server in the configuration answers.
    let other = Client::with_session(&fixture, "/mcp").await;
    assert_eq!(other.read("file:///x").await, "one");
    fixture.end().await;
}

#[tokio::test]
async fn resource_outside_the_scope_cannot_be_read() {
    let fixture = fixture().await;
    let check = async |path: &str, uri: &str, want: &str| {
        let client = Client::with_session(&fixture, path).await;
        client.link("one", "file:///x").await;
        assert_eq!(client.read(uri).await, want, "{path} {uri}");
    };
    for path in ["/mcp?servers=one", "/mcp?servers=o*"] {
        check(path, "u:one", "one").await;
        check(path, "file:///x", "one").await;
        check(path, "u:two", "no such resource").await;
        check(path, "ui://app/view.html", "one").await;
        check(path, "ui://app/view.html#mcp-host-server=two", "no such resource").await;
        check(path, "u:two#mcp-host-server=two", "no such resource").await;
    }
    // Without the server that has the URI first, the other one answers.
    let two = Client::with_session(&fixture, "/mcp?servers=two").await;
    assert_eq!(two.read("ui://app/view.html").await, "two");
    assert_eq!(two.read("ui://app/view.html#mcp-host-server=two").await, "two");
    // A selection of resources hides those in no list, also behind a link.
    for uri in ["file:///x", "u:one", "file:///x#mcp-host-server=one", "ui://app/view.html"] {
        check("/mcp?resources=", uri, "Resource not found").await;
    }
    check("/mcp?resources=*view", "ui://app/view.html", "one").await;
    check("/mcp?resources=*view", "u:one", "Resource not found").await;
    fixture.end().await;
}

#[tokio::test]
async fn subscription_finds_the_server_like_a_read() {
    let fixture = fixture().await;
    let client = Client::with_session(&fixture, "/mcp").await;
    let subscribe = async |uri: &str| {
        let reply = client.request("resources/subscribe", json!({"uri": uri})).await;
        if reply["result"].is_object() { "subscribed".to_owned() } else { error(&reply) }
    };
    for uri in ["ui://app/view.html", "ui://app/view.html#mcp-host-server=two", "u:two"] {
        assert_eq!(subscribe(uri).await, "subscribed", "{uri}");
        assert!(client.request("resources/unsubscribe", json!({"uri": uri})).await["result"].is_object());
    }
    assert_eq!(subscribe("u:none").await, "Resource 'u:none' not found");
    fixture.end().await;
}
