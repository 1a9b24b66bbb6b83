//! Logins of a session's servers: the agent tells the page, and this test is the browser.

use mcp_host_acp::AcpVersion;
use serde_json::{Value, json};
use url::Url;

use super::agent;
use super::raw_client::RawClient;
use crate::login::authority::Authority;
use crate::login::browser;

/// The status of the server in the `_meta` of an update or a response.
fn status(of: &Value) -> &Value {
    &of["_meta"]["mcpServers"][0]
}

/// Creates a session with a server that requires a login; returns its id and the login page.
#[track_caller]
fn session_with_login(client: &mut RawClient, authority: &Authority) -> (Value, Url) {
    let list = json!([{ "type": "http", "name": "guarded", "url": authority.url, "headers": [] }]);
    let session = client.session(list);
    let told = client.update(&session, |it| status(it)["status"] == "login_required");
    if client.version == AcpVersion::V2 {
        assert_eq!(
            (&told["severity"], &told["title"]),
            (&json!("warning"), &json!("MCP server 'guarded' requires a login"))
        );
        let page = status(&told)["loginUrl"].as_str().unwrap();
        assert!(told["description"].as_str().unwrap().ends_with(page), "{told:#}");
    }
    let page = status(&told)["loginUrl"].as_str().unwrap().parse().unwrap();
    (session, page)
}

#[tokio::test(flavor = "multi_thread")]
async fn acpx_14_page_of_a_login_is_told_and_the_server_joins_the_session_after_it() {
    for version in [AcpVersion::V1, AcpVersion::V2] {
        let (authority, state) = (Authority::start().await, tempfile::tempdir().unwrap());
        let arguments = ["--login", "--require-all"];
        let mut client = RawClient::start(version, &agent(&arguments), state.path());
        let (session, page) = session_with_login(&mut client, &authority);
        let unknown = client.turn(&session, "/guarded__echo");
        assert!(unknown.contains("is not available"), "the session continues: {unknown}");

        let answer = browser().get(page).send().await.unwrap().text().await.unwrap();
        assert!(answer.contains("You are logged in"), "{answer}");
        client.update(&session, |it| status(it)["status"] == "connected");
        assert_eq!(client.turn(&session, "/guarded__echo"), "done");
        // Another session uses the same login, and so does another agent.
        let again = |client: &mut RawClient| {
            let list = json!([{ "type": "http", "name": "same", "url": authority.url, "headers": [] }]);
            let session = client.session(list);
            client.turn(&session, "/same__echo")
        };
        assert_eq!(again(&mut client), "done");
        let mut other = RawClient::start(version, &agent(&["--login"]), state.path());
        assert_eq!(again(&mut other), "done");
        assert_eq!(authority.count("authorize"), 1);
        for secret in &authority.state().secrets {
            assert!(!client.of_agent().contains(secret), "{secret}");
        }
        client.end();
        other.end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acpx_03_failed_login_is_the_reason_of_the_server_and_is_not_repeated() {
    let declined = ("declined", "the login was refused: access_denied");
    for (case, reason) in [declined, ("expired", "no login within 1 s")] {
        let (authority, state) = (Authority::start().await, tempfile::tempdir().unwrap());
        // The connection may end before the login does.
        let timeout = if case == "expired" { "1000" } else { "300000" };
        let arguments = ["--login", "--login-timeout", timeout, "--limit", "300"];
        let mut client = RawClient::start(AcpVersion::V1, &agent(&arguments), state.path());
        let (session, page) = session_with_login(&mut client, &authority);
        if case == "declined" {
            let of = |name: &str| page.query_pairs().find(|it| it.0 == name).unwrap().1.into_owned();
            let refusal = format!("{}?error=access_denied&state={}", of("redirect_uri"), of("state"));
            browser().get(refusal).send().await.unwrap();
        }
        let failed = client.update(&session, |it| status(it)["status"] == "failed");
        let error = &status(&failed)["error"];
        assert_eq!(error["message"], format!("MCP server 'guarded': login failed: {reason}"), "{case}");
        let suggestion = error["data"]["suggestion"].as_str().unwrap();
        assert_eq!(suggestion, "load the session again, or start a new session, to log in");
        // The server is started again, and its user is not asked.
        let states = client.turn(&session, "/servers");
        assert!(states.contains("login failed") || states.contains("connecting"), "{states}");
        assert_eq!(authority.count("register"), 1, "{case}");
        let (_, page) = session_with_login(&mut client, &authority);
        let answer = browser().get(page).send().await;
        assert!(case == "expired" || answer.unwrap().status().is_success());
        client.end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_logins_a_server_that_requires_one_fails() {
    let (authority, state) = (Authority::start().await, tempfile::tempdir().unwrap());
    let mut client = RawClient::start(AcpVersion::V1, &agent(&[]), state.path());
    let list = json!([{ "type": "http", "name": "guarded", "url": authority.url, "headers": [] }]);
    let session = client.session(list);
    let failed = client.update(&session, |it| status(it)["status"] == "failed");
    let message = status(&failed)["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("MCP server 'guarded': authentication failed"), "{message}");
    assert_eq!(authority.count("register"), 0);
    client.end();
}
