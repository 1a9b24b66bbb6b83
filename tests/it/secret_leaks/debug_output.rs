//! `Debug` output of every public type that may contain a secret, because logs, panics and reports print it.

use std::sync::Arc;
use std::time::Instant;

use mcp_host_acp::{AcpVersion, AgentProfile, Capabilities, SessionRequest, validate};
use mcp_host_config::acp::McpServerConfig;
use mcp_host_config::holodeck::McpToolConfig;
use mcp_host_config::{
    Document, NewServer, NewTransport, Profile, ResolveContext, UrlTransportKind, read, resolve,
};
use mcp_host_gateway::{GatewayOptions, HttpOptions, Tokens};
use mcp_host_model::{Endpoint, RawJson, Secret, ServerId, StdioEndpoint, UrlEndpoint};
use mcp_host_oauth::{Grant, MemoryTokenStore, OAuth, OAuthOptions, RegisteredClient, TokenStore};
use mcp_host_runtime::{DesiredServers, FileTokenStore, LoginOptions, Logins, ToolCall};
use mcp_host_transport::{Challenge, DialOptions, dialer};

use super::markers::{SecretLocation, found};

fn secret(spot: SecretLocation) -> Secret {
    Secret::new(spot.mark())
}

fn url(path: &str) -> url::Url {
    let [user, query] = [SecretLocation::Password, SecretLocation::Query].map(SecretLocation::mark);
    format!("http://u:{user}@127.0.0.1:9/{path}?k={query}").parse().unwrap()
}

fn grant() -> Grant {
    let mut grant = Grant::new(
        url("mcp"),
        "https://issuer.example",
        {
            let mut client = RegisteredClient::new("c");
            client.secret = Some(secret(SecretLocation::ClientSecret));
            client.redirect_uri = Some("http://127.0.0.1:1/callback".parse().unwrap());
            client
        },
        secret(SecretLocation::Header),
    );
    grant.refresh_token = Some(secret(SecretLocation::SessionId));
    grant.expires_at = Some(1);
    grant.scopes = vec!["basic".to_owned()];
    grant
}

#[track_caller]
fn check(what: &str, shown: String) {
    assert!(!shown.is_empty());
    assert_eq!(found(&shown), [], "{what}: {shown}");
}

#[test]
fn hd_sc5_values_of_endpoints_show_no_secret() {
    let mut pipe = StdioEndpoint::new("npx");
    pipe.args = vec![secret(SecretLocation::Argument)];
    pipe.env = vec![("KEY".to_owned(), secret(SecretLocation::Environment))];
    let mut web = UrlEndpoint::new(url(&SecretLocation::Path.mark()));
    web.headers = vec![("Authorization".to_owned(), secret(SecretLocation::Header))];
    web.session_id = Some(secret(SecretLocation::SessionId));
    for endpoint in [
        Endpoint::Stdio(pipe),
        Endpoint::Http(web.clone()),
        Endpoint::Sse(web.clone()),
        Endpoint::WebSocket(web),
    ] {
        check("an endpoint", format!("{endpoint:#?} {}", endpoint.label()));
        check("its dialer's end", format!("{:?}", dialer(&endpoint, &DialOptions::default()).map(drop)));
    }
    check("a secret", format!("{0:?} {0}", secret(SecretLocation::Environment)));
    let arguments =
        RawJson::parse(format!(r#"{{"a":"{}"}}"#, SecretLocation::Argument.mark()).into()).unwrap();
    check("a call", format!("{:?}", ToolCall::new("t", arguments)));
}

#[test]
fn hd_sc5_values_of_configurations_show_no_secret() {
    let (literal, header, query) =
        (SecretLocation::Literal.mark(), SecretLocation::Header.mark(), url("mcp"));
    let text = format!(
        "tools:\n  - name: a\n    type: mcp\n    description: d\n    server: s\n    command: npx\n    args: \
         ['{literal}', '${{PLANTED}}']\n    env: {{ KEY: '{literal}', OTHER: '${{PLANTED}}' }}\n    envFile: \
         x.env\n    config: {{ key: '{literal}' }}\n  - name: b\n    type: mcp\n    description: d\n    server: \
         s\n    transport: http\n    url: '{query}'\n    headers: {{ Authorization: '{header}' }}\n"
    );
    let document = Document::new("agent.yaml", &text, Profile::HoloDeck);
    let reading = read(&document);
    assert_eq!(reading.servers.len(), 2, "{:?}", reading.diagnostics);
    check("a document", format!("{document:#?}"));
    check("a reading", format!("{reading:#?}"));
    let surroundings = ResolveContext::new(
        &|_| Some(SecretLocation::Environment.mark()),
        std::path::Path::new("/"),
        &|_| Ok(format!("FROM_FILE={}", SecretLocation::EnvFile.mark())),
    );
    let mut wanted = DesiredServers::default();
    for spec in &reading.servers {
        let resolved = resolve(spec, &surroundings).unwrap();
        check("a resolved server", format!("{resolved:#?}"));
        wanted.servers.push(resolved);
    }
    check("what is wanted", format!("{wanted:#?}"));

    let json = serde_json::json!({
        "name": "a", "description": "d", "type": "mcp", "server": "s", "command": "npx", "args": [literal],
        "env": {"KEY": literal}, "url": query.as_str(), "headers": {"Authorization": header},
            "config": {"key": literal},
    });
    let item: McpToolConfig = serde_json::from_value(json).unwrap();
    check("an item to be written", format!("{item:#?}"));
    for json in [
        serde_json::json!({"name": "a", "command": "/a", "args": [literal], "env": [{"name": "K", "value": literal}]}),
        serde_json::json!({"type": "http", "name": "a", "url": query.as_str(),
            "headers": [{"name": "K", "value": header}]}),
        serde_json::json!({"type": "sse", "name": "a", "url": query.as_str(),
            "headers": [{"name": "K", "value": header}]}),
    ] {
        let entry: McpServerConfig = serde_json::from_value(json).unwrap();
        check("an entry of a session", format!("{entry:#?}"));
    }
    let pairs = vec![("KEY".to_owned(), literal.clone())];
    for reach in [
        NewTransport::Stdio { command: "npx".to_owned(), args: vec![literal.clone()], env: pairs.clone() },
        NewTransport::Url { kind: UrlTransportKind::Http, url: query.to_string(), headers: pairs },
    ] {
        let new = NewServer::new(ServerId::parse("a").unwrap(), reach);
        check("a new server", format!("{new:#?}"));
    }
}

#[test]
fn hd_sc5_values_of_sessions_show_no_secret() {
    let [argument, header, query] =
        [SecretLocation::AcpArgument, SecretLocation::AcpHeader, SecretLocation::AcpQuery]
            .map(SecretLocation::mark);
    let request = format!(
        r#"{{"cwd":"/","mcpServers":[{{"name":"a","command":"/a","args":["{argument}"],"env":[{{"name":"K","value":"{argument}"}}]}},
        {{"type":"http","name":"b","url":"https://u:{query}@h.example/?k={query}","headers":[{{"name":"A","value":"{header}"}}]}}]}}"#
    );
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/new","params":{request}}}"#);
    let set_up = SessionRequest::read(&RawJson::parse(request.clone().into()).unwrap()).unwrap();
    check("a request", format!("{set_up:#?}"));
    let declared = RawJson::parse(r#"{"http": true}"#.into()).unwrap();
    let capabilities = Capabilities::read(AcpVersion::V1, &declared);
    let agent = AgentProfile::new(AcpVersion::V1, &capabilities);
    check("what it asks for", format!("{:#?}", validate(&set_up, &agent).unwrap()));
    let wrong = request.replace("\"args\"", "\"arguments\"").replace("\"value\"", "\"text\"");
    let wrong = SessionRequest::read(&RawJson::parse(wrong.into()).unwrap()).unwrap();
    check("why it is refused", format!("{:#?}", validate(&wrong, &agent).unwrap_err()));
}

#[test]
fn hd_sc5_values_of_logins_and_of_the_gateway_show_no_secret() {
    let store = MemoryTokenStore::default();
    store.save(&grant()).unwrap();
    check("a grant", format!("{:#?} {:?}", grant(), grant().client));
    check("a store", format!("{store:#?}"));
    let folder = tempfile::tempdir().unwrap();
    check("a folder of logins", format!("{:?}", FileTokenStore::new(folder.path())));
    let store: Arc<dyn TokenStore> = Arc::new(store);
    let mut options = OAuthOptions::new(Arc::clone(&store), "c");
    options.client = Some(grant().client);
    options.login_hint = "h".to_owned();
    check("what a login needs", format!("{options:#?}"));
    let login = OAuth::new(&url("mcp"), options).unwrap();
    check("a login", format!("{login:#?}"));
    let logins = Logins::new({
        let mut options = LoginOptions::new(store, "c", Arc::new(|_| "h".to_owned()));
        options.client = Some(grant().client);
        options
    });
    check("the logins of a host", format!("{logins:#?}"));
    let mut challenge = Challenge::new(401);
    challenge.token_used = Some(secret(SecretLocation::Header));
    challenge.sent_at = Instant::now();
    check("a challenge", format!("{challenge:#?}"));

    let text = secret(SecretLocation::GatewayToken);
    let tokens = Tokens::read(&text).unwrap();
    check("tokens", format!("{tokens:#?}"));
    check(
        "the gateway's wire",
        format!("{:#?}", {
            let mut options = HttpOptions::default();
            options.tokens = tokens;
            options
        }),
    );
    check("the gateway", format!("{:#?}", GatewayOptions::default()));
    let twice = Secret::new(format!("{0}\n{0}", SecretLocation::GatewayToken.mark()));
    check("tokens that are refused", format!("{0:?} {0}", Tokens::read(&twice).unwrap_err()));
}
