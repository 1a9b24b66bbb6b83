//! Scopes by path, query, header and token; authorization and CORS.

use mcp_host_gateway::{
    Gateway, GatewayOptions, GatewayResource, HttpOptions, HttpServer, ServeError, Tokens,
};
use mcp_host_model::Secret;
use tokio::io::AsyncReadExt;

use crate::support::{TestGateway, host, initialize, modern, server};

/// The names of the tools that a client lists.
async fn tools(fixture: &TestGateway, path: &str, headers: &[(&str, &str)]) -> Vec<String> {
    let mut all = vec![("content-type", "application/json"), ("accept", "application/json")];
    all.extend(headers);
    let begun = fixture.http("POST", path, &all, &initialize("2025-11-25")).await;
    let Some(session) = begun.header("mcp-session-id") else { return vec![begun.status.to_string()] };
    all.push(("mcp-session-id", &session));
    let reply = fixture.http("POST", path, &all, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    let tools = reply.json()["result"]["tools"].as_array().unwrap().clone();
    tools.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

// RPT-180
#[tokio::test]
async fn scoped_clients_learn_that_a_server_is_down() {
    let mut http = HttpOptions::default();
    let tokens =
        "all-0123456789abcdef\ngone-0123456789abcdef servers=gone\ndemo-0123456789abcdef servers=demo";
    http.tokens = Tokens::read(&Secret::new(tokens.to_owned())).unwrap();
    let servers = vec![server("demo"), server("gone")];
    let fixture = TestGateway::with_servers(servers, GatewayOptions::default(), http).await;
    let down = "Tool 'gone__x' is not available: server 'gone'";
    let unknown = "MCPToolNotFoundError: Tool 'gone__x' not found";
    for (token, path, want) in [
        ("all", "/mcp", down),
        ("all", "/mcp?servers=gone", down),
        ("all", "/mcp/gone", down),
        ("gone", "/mcp", down),
        ("gone", "/mcp/gone", down),
        ("demo", "/mcp", unknown),
        ("all", "/mcp?servers=demo", unknown),
        ("all", "/mcp?tools=demo__*", unknown),
    ] {
        let token = format!("Bearer {token}-0123456789abcdef");
        let base = [("authorization", token.as_str()), ("content-type", "application/json")];
        let mut headers = [&base[..], &[("accept", "application/json")]].concat();
        let begun = fixture.http("POST", path, &headers, &initialize("2025-11-25")).await;
        let session = begun.header("mcp-session-id").unwrap_or_else(|| panic!("{path}: {begun:?}"));
        headers.push(("mcp-session-id", &session));
        let call =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gone__x","arguments":{}}}"#;
        let reply = fixture.http("POST", path, &headers, call).await;
        assert!(reply.body.contains(want), "{path}: {reply:?}");

        // RPT-182
        let prompt = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"gone__x"}}"#;
        let reply = fixture.http("POST", path, &headers, prompt).await;
        // A selection of tools selects all prompts.
        let is_selected = want == down || path.contains("tools=");
        let want_prompt =
            if is_selected { "Prompt 'gone__x' is not available: server 'gone'" } else { "not found" };
        assert!(reply.body.contains(want_prompt), "{path}: {reply:?}");

        let (modern, call) = modern("tools/call", Some("gone__x"), r#""name":"gone__x","arguments":{}"#);
        let modern = modern.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = modern.chain(headers[..3].iter().copied()).collect();
        let reply = fixture.http("POST", path, &headers, &call).await;
        assert!(reply.body.contains(want), "{path}: {reply:?}");
    }
    // A token that shows other servers does not learn that this one exists.
    let headers = [("authorization", "Bearer demo-0123456789abcdef"), ("content-type", "application/json")];
    let reply = fixture.http("POST", "/mcp/gone", &headers, &initialize("2025-11-25")).await;
    assert_eq!(reply.status, 404);
    fixture.end().await;
}

#[tokio::test]
async fn path_query_and_header_narrow_the_scope() {
    let fixture = TestGateway::new().await;
    let all = tools(&fixture, "/mcp", &[]).await;
    let of = |server: &str| all.iter().filter(|name| name.starts_with(server)).cloned().collect::<Vec<_>>();
    assert!(!of("demo__").is_empty() && of("demo__").len() == of("own__").len());
    assert_eq!(tools(&fixture, "/mcp/own", &[]).await, of("own__"));
    assert_eq!(tools(&fixture, "/mcp/", &[]).await, all);
    assert_eq!(tools(&fixture, "/mcp/own/", &[]).await, of("own__"));
    // RPT-151
    for nowhere in ["/mcp/nobody", "/mcp/own//", "/mcp//", "/"] {
        assert_eq!(tools(&fixture, nowhere, &[]).await, ["404"], "{nowhere}");
    }
    let reply = fixture.http("GET", "/sse", &[], "").await;
    assert!(reply.body.contains("MCP is served at `/mcp`"), "{}", reply.body);
    let reply = fixture.http("POST", "/mcp", &[("host", "proxy.example")], "{}").await;
    assert!(
        reply.body.contains("the value `proxy.example` of the header `Host` is not allowed"),
        "{}",
        reply.body
    );
    assert_eq!(tools(&fixture, "/mcp?tools=*__echo", &[]).await, ["demo__echo", "own__echo"]);
    assert_eq!(
        tools(&fixture, "/mcp?servers=own&tools=*__echo,*__add", &[]).await,
        ["own__echo", "own__add"]
    );
    assert_eq!(tools(&fixture, "/mcp?tools=*__echo", &[("mcp-host-servers", "demo")]).await, ["demo__echo"]);
    assert_eq!(tools(&fixture, "/mcp?tools=", &[]).await, [""; 0]);
    // A misspelt selection would show everything.
    assert_eq!(tools(&fixture, "/mcp?tool=*__echo", &[]).await, ["400"]);
    assert_eq!(tools(&fixture, "/mcp", &[("mcp-host-tool", "*__echo")]).await, ["400"]);

    // A hidden tool cannot be called, and its existence is not revealed.
    let mut headers = vec![("content-type", "application/json"), ("accept", "application/json")];
    let begun = fixture.http("POST", "/mcp?tools=*__echo", &headers, &initialize("2025-11-25")).await;
    let session = begun.header("mcp-session-id").unwrap();
    headers.push(("mcp-session-id", &session));
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__add","arguments":{"a":1,"b":2}}}"#;
    let refused = fixture.http("POST", "/mcp?tools=*__echo", &headers, call).await;
    assert_eq!(refused.json()["error"]["message"], "MCPToolNotFoundError: Tool 'demo__add' not found");
    // A server's own name is enough for the only tool that is visible, but not for several or hidden ones.
    let own = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"NAME","arguments":{"text":"hi"}}}"#;
    for (path, name, want) in [
        ("/mcp/own", "echo", "hi"),
        ("/mcp?tools=demo__echo", "echo", "hi"),
        ("/mcp?tools=*__echo", "echo", "Tool 'echo' not found"),
        ("/mcp?tools=*__add", "echo", "Tool 'echo' not found"),
        ("/mcp/own", "demo__echo", "Tool 'demo__echo' not found"),
    ] {
        let mut headers = headers[..2].to_vec();
        let begun = fixture.http("POST", path, &headers, &initialize("2025-11-25")).await;
        let session = begun.header("mcp-session-id").unwrap();
        headers.push(("mcp-session-id", &session));
        let called = fixture.http("POST", path, &headers, &own.replace("NAME", name)).await;
        assert!(called.body.contains(want), "{path} {name}: {called:?}");
    }
    // A session has one scope: it does not exist under another path.
    assert_eq!(fixture.http("POST", "/mcp", &headers, call).await.status, 404);
    fixture.end().await;
}

#[tokio::test]
async fn token_determines_scope_and_owns_sessions() {
    let text = "ann-0123456789abcdef name=ann\nbob-0123456789abcdef name=bob tools=demo__echo";
    let tokens = Tokens::read(&Secret::new(text)).unwrap();
    let fixture = TestGateway::with(GatewayOptions::default(), {
        let mut options = HttpOptions::default();
        options.tokens = tokens;
        options
    })
    .await;
    let reply = fixture.post(&[], &initialize("2025-11-25")).await;
    assert_eq!((reply.status, reply.header("www-authenticate").as_deref()), (401, Some("bearer")));
    assert!(reply.body.contains("a token is needed"), "{reply:?}");
    let wrong =
        fixture.post(&[("authorization", "Bearer eve-0123456789abcdef")], &initialize("2025-11-25")).await;
    assert_eq!(
        (wrong.status, wrong.header("www-authenticate").as_deref()),
        (401, Some("bearer error=\"invalid_token\""))
    );
    assert!(wrong.body.contains("the token is wrong"), "{wrong:?}");
    assert_eq!(fixture.http("GET", "/metrics", &[], "").await.status, 401);
    let (ann, bob) =
        (("authorization", "Bearer ann-0123456789abcdef"), ("authorization", "Bearer bob-0123456789abcdef"));
    assert!(tools(&fixture, "/mcp", &[ann]).await.len() > 2);
    assert_eq!(tools(&fixture, "/mcp", &[bob]).await, ["demo__echo"]);
    assert_eq!(tools(&fixture, "/mcp?tools=demo__add", &[bob]).await, [""; 0]);
    let session = fixture.initialize(&[ann]).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(fixture.post(&[bob, ("mcp-session-id", &session)], ping).await.status, 404);
    assert_eq!(fixture.http("DELETE", "/mcp", &[bob, ("mcp-session-id", &session)], "").await.status, 404);
    assert_eq!(fixture.post(&[ann, ("mcp-session-id", &session)], ping).await.status, 200);
    fixture.end().await;
}

#[tokio::test]
async fn removed_token_ends_its_sessions_and_streams_and_no_others() {
    let read = |text: &str| Tokens::read(&Secret::new(text.to_owned())).unwrap();
    let (ann, bob) = ("Bearer ann-0123456789abcdef", "Bearer bob-0123456789abcdef");
    let tokens = read("ann-0123456789abcdef name=ann\nbob-0123456789abcdef name=bob");
    let fixture = TestGateway::with(GatewayOptions::default(), {
        let mut options = HttpOptions::default();
        options.tokens = tokens;
        options
    })
    .await;
    let (of_ann, of_bob) = (("authorization", ann), ("authorization", bob));
    let (anns, bobs) = (fixture.initialize(&[of_ann]).await, fixture.initialize(&[of_bob]).await);
    let stream = fixture.open_stream("GET", &[of_ann, ("mcp-session-id", &anns)], "").await;
    let (headers, body) = crate::support::modern("subscriptions/listen", None, r#""notifications":{}"#);
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
    headers.push(of_ann);
    let listening = fixture.open_stream("POST", &headers, &body).await;
    let mut kept = fixture.open_stream("GET", &[of_bob, ("mcp-session-id", &bobs)], "").await;

    assert_eq!(fixture.tokens.replace(Tokens::default()), None);
    assert_eq!(
        fixture.tokens.replace(read("bob-0123456789abcdef name=bob\nbo2-0123456789abcdef name=bob")),
        Some(1)
    );
    for mut ended in [stream, listening] {
        ended.read_to_end(&mut Vec::new()).await.unwrap();
    }
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(fixture.post(&[of_ann, ("mcp-session-id", &anns)], ping).await.status, 401);
    assert_eq!(fixture.post(&[of_bob, ("mcp-session-id", &bobs)], ping).await.status, 200);
    assert_eq!(fixture.gateway.client_counts().sessions, 1);

    // A rotated token keeps the session; streams of the old one end.
    assert_eq!(fixture.tokens.replace(read("bo2-0123456789abcdef name=bob")), Some(0));
    kept.read_to_end(&mut Vec::new()).await.unwrap();
    let rotated = ("authorization", "Bearer bo2-0123456789abcdef");
    assert_eq!(fixture.post(&[rotated, ("mcp-session-id", &bobs)], ping).await.status, 200);
    fixture.end().await;
}

#[tokio::test]
async fn requests_from_other_sites_are_refused() {
    let fixture = TestGateway::new().await;
    let initialize = initialize("2025-11-25");
    for (headers, status) in [
        (vec![("host", "evil.example")], 403),
        (vec![("origin", "http://evil.example")], 403),
        (vec![("host", "localhost"), ("origin", "http://localhost:3000")], 200),
    ] {
        assert_eq!(fixture.post(&headers, &initialize).await.status, status, "{headers:?}");
    }
    // An authority in the target overrides `Host`.
    let named = async |target: &str, host: &str| {
        let head = [("content-type", "application/json"), ("accept", "application/json"), ("host", host)];
        fixture.http("POST", target, &head, &initialize).await.status
    };
    assert_eq!(named("http://evil.example/mcp", "localhost").await, 403);
    assert_eq!(named("http://localhost/mcp", "evil.example").await, 403);
    assert_eq!(named("http://localhost/mcp", "localhost").await, 200);
    let none = format!("POST /mcp HTTP/1.0\r\ncontent-type: application/json\r\n\r\n{initialize}");
    assert_eq!(fixture.send_raw(&none).await.status, 403);
    fixture.end().await;
}

// RPT-156
#[tokio::test]
async fn only_configured_origins_get_cors_headers() {
    let origins = vec!["https://app.example".to_owned()];
    let fixture = TestGateway::with(GatewayOptions::default(), {
        let mut options = HttpOptions::default();
        options.origins = origins;
        options
    })
    .await;
    let (app, near, evil) = ("https://app.example", "http://localhost:3000", "http://evil.example");
    let send_preflight = async |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,mcp-session-id,x-other,mcp-param-Region"),
        ];
        fixture.http("OPTIONS", "/mcp/demo", &headers, "").await
    };
    let preflight = send_preflight(app).await;
    assert_eq!(preflight.status, 204);
    let cors_header =
        |reply: &crate::support::Reply, name: &str| reply.header(&format!("access-control-{name}"));
    assert_eq!(cors_header(&preflight, "allow-origin").as_deref(), Some(app));
    assert_eq!(cors_header(&preflight, "allow-methods").as_deref(), Some("get, post, delete"));
    assert_eq!(
        cors_header(&preflight, "allow-headers").as_deref(),
        Some("content-type, mcp-session-id, mcp-param-region")
    );
    for origin in [near, evil] {
        let preflight = send_preflight(origin).await;
        assert!(
            preflight.status == 403
                && preflight.body.contains(&format!("`--allow-origin {origin}`"))
                && cors_header(&preflight, "allow-origin").is_none(),
            "{preflight:?}"
        );
    }
    let rebound = [("host", "evil.example"), ("origin", app), ("access-control-request-method", "POST")];
    assert_eq!(fixture.http("OPTIONS", "/mcp", &rebound, "").await.status, 403);

    for (origin, status, allowed) in [(app, 200, Some(app)), (near, 200, None), (evil, 403, None)] {
        let reply = fixture.post(&[("origin", origin)], &initialize("2025-11-25")).await;
        assert_eq!((reply.status, cors_header(&reply, "allow-origin").as_deref()), (status, allowed));
        assert_eq!(cors_header(&reply, "expose-headers").is_some(), allowed.is_some());
        assert_eq!(reply.header("vary").as_deref(), Some("origin"));
    }
    fixture.end().await;

    // Without configured origins there are no CORS headers.
    let fixture = TestGateway::new().await;
    let reply = fixture.post(&[("origin", near)], &initialize("2025-11-25")).await;
    assert!(
        reply.status == 200
            && reply.header("vary").is_none()
            && cors_header(&reply, "allow-origin").is_none()
    );
    fixture.end().await;
}

#[tokio::test]
async fn off_loopback_a_token_is_required() {
    let host = host(&Default::default(), Vec::new()).await;
    let gateway = Gateway::new(host, GatewayOptions::default());
    let bound = HttpServer::bind("0.0.0.0:0".parse().unwrap(), gateway.clone(), HttpOptions::default()).await;
    assert!(matches!(bound.err(), Some(ServeError::TokensRequired(_))));
    let tokens = Tokens::read(&Secret::new("ann-0123456789abcdef")).unwrap();
    let mut options = HttpOptions::default();
    options.tokens = tokens;
    assert!(HttpServer::bind("0.0.0.0:0".parse().unwrap(), gateway, options).await.is_ok());
}

#[tokio::test]
async fn gateway_resources_are_listed_if_configured() {
    let mut options = GatewayOptions::default();
    options.gateway_resources = GatewayResource::ALL.to_vec();
    let fixture = TestGateway::with(options, HttpOptions::default()).await;
    let read = async |uri: &str| {
        let reply = fixture.modern("resources/read", Some(uri), &format!(r#""uri":"{uri}""#)).await;
        let text = reply.json()["result"]["contents"][0]["text"].as_str().unwrap_or_default().to_owned();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    assert_eq!(read("mcp-host://servers").await["servers"][0]["name"], "demo");
    assert!(read("mcp-host://problems").await["problems"].is_array());
    assert!(fixture.modern("resources/list", None, "").await.body.contains("mcp-host://servers"));
    assert_eq!(fixture.http("GET", "/healthz", &[], "").await.status, 200);
    assert_eq!(fixture.http("GET", "/readyz", &[], "").await.status, 200);
    let metrics = fixture.http("GET", "/metrics", &[], "").await.body;
    assert!(metrics.contains("mcp_host_server_state{server=\"demo\",state=\"ready\"} 1\n"), "{metrics}");
    assert!(metrics.contains("mcp_gateway_requests 0\n"), "{metrics}");
    fixture.end().await;
}

#[tokio::test]
async fn path_does_not_reveal_hidden_servers() {
    let tokens = Tokens::read(&Secret::new("ann-0123456789abcdef servers=demo")).unwrap();
    let fixture = TestGateway::with(GatewayOptions::default(), {
        let mut options = HttpOptions::default();
        options.tokens = tokens;
        options
    })
    .await;
    let ann = ("authorization", "Bearer ann-0123456789abcdef");
    assert_eq!(tools(&fixture, "/mcp/own", &[ann]).await, ["404"]);
    assert!(tools(&fixture, "/mcp/demo", &[ann]).await.contains(&"demo__echo".to_owned()));
    fixture.end().await;
}

#[tokio::test]
async fn leased_resources_are_read_without_a_dialog() {
    let fixture = TestGateway::new().await;
    let uri = r#""uri":"demo://greeting""#;
    let (headers, body) = crate::support::modern("resources/read", Some("demo://greeting"), uri);
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
    headers.extend([("content-type", "application/json"), ("accept", "application/json")]);
    for path in ["/mcp/own", "/mcp/demo"] {
        let read = fixture.http("POST", path, &headers, &body).await;
        assert!(read.json()["result"].is_object(), "{path}: {read:?}");
    }
    headers.push(("host", "evil.example"));
    headers.push(("host", "localhost"));
    assert_eq!(fixture.http("POST", "/mcp", &headers, &body).await.status, 400);
    fixture.end().await;
}
