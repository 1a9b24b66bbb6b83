//! Token exchange: users log in at `serve --auth`, and a server that others wrote knows each of them. It gets
//! tokens of its own, and never those of the clients.

use std::path::Path;

use mcp_testkit::program::Run;
use serde_json::{Value, json};

use super::logins::authorization_server;
use super::{Gateway, Installed, NodeServer, get};

/// The validity of access tokens in seconds, longer than a test.
const TOKEN_SECONDS: u32 = 600;

/// An authorization server, a server that requires its tokens, and the file of a gateway.
struct Setup {
    installed: Installed,
    folder: tempfile::TempDir,
    issuer: NodeServer,
    server: NodeServer,
}

impl Setup {
    /// Without the installed programs, there is nothing to test.
    fn new(secret: &str) -> Option<Setup> {
        let installed = Installed::ready()?;
        let issuer = authorization_server(&installed, TOKEN_SECONDS);
        let server = NodeServer::start(&installed, "guarded_server.mjs", &[&issuer.url]);
        let folder = tempfile::tempdir().unwrap();
        let auth = json!({
            "grant": "token_exchange", "clientId": "gateway", "clientSecret": secret, "scopes": ["read"],
            "issuer": issuer.url,
        });
        let servers = json!({"guarded": {"type": "http", "url": server.url, "auth": auth}});
        std::fs::write(folder.path().join("mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
        // Without a scope to request, the authorization server grants nothing.
        std::fs::write(folder.path().join("scopes"), "read\n").unwrap();
        std::fs::write(folder.path().join("tokens"), "static-token-0123456789\n").unwrap();
        Some(Setup { installed, folder, issuer, server })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn gateway(&self) -> Gateway {
        let arguments = ["--auth", &self.issuer.url, "--scope-map", "scopes", "--token-file", "tokens"];
        Gateway::start(self.path(), "mcp.json", &arguments)
    }

    /// The claims of all tokens that the server was sent.
    fn seen(&self) -> Vec<Value> {
        let address = self.server.url.trim_start_matches("http://").trim_end_matches("/mcp");
        let response = get(address, "/seen");
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    /// The text of the only call of a client that logs in, or has a token.
    fn call(&self, gateway: &Gateway, login: (&str, &str)) -> String {
        let mut scenario = json!({"sdk": 1, "url": gateway.url(), "calls": [["guarded__whoami", {}]]});
        scenario[login.0] = json!(login.1);
        let result = self.installed.typescript(&scenario).json();
        let names: Vec<&str> =
            result["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, ["guarded__whoami"], "the host lists the tools itself");
        result["answers"][0].to_string()
    }
}

#[test]
fn server_knows_the_user_of_each_client() {
    let Some(setup) = Setup::new("gateway-secret") else { return };
    let gateway = setup.gateway();
    let scenario =
        json!({"url": gateway.url(), "server": setup.server.url, "users": ["ann", "bob"], "rounds": 10});
    let result = setup.installed.script("exchange_client.mjs", &[&scenario.to_string()]).json();
    // Two users with three clients each: ten rounds, and a call after the second login.
    assert_eq!(result, json!({"right": 2 * 3 * 11, "wrong": [], "statuses": [401, 401, 401, 401, 401, 401]}));

    // The tokens of the clients are those that they sent themselves.
    let seen = setup.seen();
    let (own, others): (Vec<&Value>, Vec<&Value>) =
        seen.iter().partition(|claims| claims["client_id"] == "gateway");
    assert!(own.iter().all(|claims| claims["aud"] == setup.server.url), "{own:#?}");
    assert_eq!(others.len(), 6, "{others:#?}");
    // All but the first connection, which lists the tools, act for a user.
    let subjects = |name: &str| own.iter().filter(|claims| claims["sub"] == name).count();
    assert!(subjects("gateway") > 0 && subjects("ann") >= 33 && subjects("bob") >= 33, "{own:#?}");
    assert_eq!(subjects("gateway") + subjects("ann") + subjects("bob"), own.len());
}

#[test]
fn refused_exchange_and_missing_user_are_errors_of_the_call() {
    let Some(setup) = Setup::new("gateway-secret") else { return };
    let gateway = setup.gateway();
    let refused = setup.call(&gateway, ("user", "eve"));
    for part in ["guarded", "HTTP 400: invalid_target: this user has no access; log in again, or let"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!refused.contains("eyJ"), "a token: {refused}");
    let missing = "it acts for the user of each caller, and this caller has no access token of a user";
    let advice = "connect through `mcp-host serve --auth ISSUER_URL` and log in there";
    let without = setup.call(&gateway, ("token", "static-token-0123456789"));
    assert!(without.contains(missing) && without.contains(advice), "{without}");
    assert!(setup.call(&gateway, ("user", "ann")).contains("ann"), "one user's refusal is not another's");
    assert!(setup.seen().iter().all(|claims| claims["sub"] != "eve"));

    let call = Run::new(setup.path(), setup.path(), &["call", "mcp.json", "whoami", "{}"]).finish();
    assert!(call.code != Some(0) && call.stderr.contains(missing), "{call:#?}");
}

#[test]
fn tools_that_the_host_may_not_list_are_a_problem() {
    let Some(setup) = Setup::new("another secret") else { return };
    let tools = Run::new(setup.path(), setup.path(), &["tools", "mcp.json"]).finish();
    assert_eq!(tools.code, Some(3), "{tools:#?}");
    for part in
        ["HTTP 401: invalid_client", "the host lists the tools of this server with a token of its own"]
    {
        assert!(tools.stdout.contains(part), "{tools:#?}");
    }
    assert!(!format!("{tools:?}").contains("another secret"));
    assert_eq!(setup.seen(), [Value::Null; 0]);
}
