//! OAuth clients in an editor's file: our form of the key `auth`.

use std::path::Path;

use mcp_host_config::{Profile, ResolveContext, resolve};
use mcp_host_model::{ClientGrant, Endpoint};

use crate::{diagnostic_lines, read_text};

#[test]
fn client_credentials_are_read_from_auth() {
    let entry = |auth: &str| {
        format!(r#"{{"mcpServers": {{"a": {{"url": "https://a.example/mcp", "auth": {auth}}}}}}}"#)
    };
    let text = entry(
        r#"{"grant": "client_credentials", "clientId": "host", "clientSecret": "${SECRET}", "scopes": ["read"],
            "issuer": "https://id.example"}"#,
    );
    let reading = read_text(Profile::McpJson, &text);
    assert_eq!(diagnostic_lines(&reading), "");
    let context =
        ResolveContext::new(&|name| (name == "SECRET").then(|| "s3cret".to_owned()), Path::new("/"), &|_| {
            Err("none".to_owned())
        });
    let Endpoint::Http(endpoint) = resolve(&reading.servers[0], &context).unwrap().endpoint else { panic!() };
    let credentials = endpoint.client_credentials.unwrap();
    assert_eq!((&*credentials.client_id, credentials.key.value().expose()), ("host", "s3cret"));
    let want = (vec!["read".to_owned()], "https://id.example".to_owned());
    assert_eq!((credentials.scopes, credentials.issuer), want);

    for (auth, wrong) in [
        // The forms of other programs are kept and not used.
        (r#"{"CLIENT_ID": "x"}"#, ""),
        (r#""oauth""#, ""),
        (r#"{"grant": "password"}"#, "`grant` must be `client_credentials` or `token_exchange`"),
        (r#"{"grant": "client_credentials", "clientId": "x"}"#, "neither `clientSecret` nor `privateKey`"),
        (r#"{"grant": "client_credentials", "clientSecret": "x"}"#, "has no `clientId`"),
        // RPT-232
        (r#"{"grant": "client_credentials", "clientId": "x", "clientSecret": "y"}"#, "has no `issuer`"),
        (
            r#"{"grant": "client_credentials", "clientId": "x", "clientSecret": "y", "issuer": ""}"#,
            "`issuer` must be a text",
        ),
        (
            r#"{"grant": "client_credentials", "clientId": "x", "clientSecret": "y", "privateKey": "z"}"#,
            "both `clientSecret` and `privateKey`",
        ),
        (
            r#"{"grant": "client_credentials", "clientId": 1, "clientSecret": "y"}"#,
            "`clientId` must be a text",
        ),
        (
            r#"{"grant": "client_credentials", "clientId": "x", "clientSecret": "y", "scopes": "read"}"#,
            "`scopes` must be a list of texts",
        ),
        (
            r#"{"grant": "client_credentials", "clientId": "x", "clientSecret": "y", "scope": "read"}"#,
            "`auth` has no key 'scope'",
        ),
    ] {
        let found = diagnostic_lines(&read_text(Profile::McpJson, &entry(auth)));
        assert!(found.contains(wrong) && found.is_empty() == wrong.is_empty(), "{auth}: {found}");
    }
}

#[test]
fn token_exchange_is_resolved_per_user() {
    let entry = |auth: &str, more: &str| {
        format!(r#"{{"mcpServers": {{"a": {{"url": "https://a.example/mcp", "auth": {auth}{more}}}}}}}"#)
    };
    let complete = r#"{"grant": "token_exchange", "clientId": "host", "clientSecret": "x", "issuer": "https://id.example"}"#;
    let reading = read_text(Profile::McpJson, &entry(complete, r#", "sharing": "auto""#));
    assert_eq!(diagnostic_lines(&reading), "");
    let context = ResolveContext::new(&|_| None, Path::new("/"), &|_| Err("none".to_owned()));
    let endpoint = resolve(&reading.servers[0], &context).unwrap().endpoint;
    assert!(endpoint.is_per_user());
    let Endpoint::Http(endpoint) = endpoint else { panic!() };
    assert_eq!(endpoint.client_credentials.unwrap().grant, ClientGrant::TokenExchange);

    for (auth, more, wrong, help) in [
        (
            r#"{"grant": "token_exchang", "clientId": "host", "clientSecret": "x"}"#,
            "",
            "`grant` must be `client_credentials` or `token_exchange`",
            "did you mean `token_exchange`?",
        ),
        (
            r#"{"grant": "token_exchange", "clientId": "host", "clientSecret": "x"}"#,
            "",
            "`auth` has no `issuer`, the only authorization server that receives the secret",
            "add the server where the client is registered, as in `\"issuer\": \"https://id.example\"`",
        ),
        (
            r#"{"grant": "token_exchange", "clientId": "host", "clientSecret": "x", "isuer": "https://id.example"}"#,
            "",
            "`auth` has no key 'isuer'",
            "did you mean `issuer`?",
        ),
        (
            complete,
            r#", "sharing": "shared""#,
            "`token_exchange` cannot be used with `sharing: shared`",
            "remove `sharing`: each client has a connection of its own, with its user's token",
        ),
        (
            complete,
            r#", "headers": {"authorization": "Bearer x"}"#,
            "`token_exchange` cannot be used with an `Authorization` header",
            "remove the header or `auth`",
        ),
    ] {
        let reading = read_text(Profile::McpJson, &entry(auth, more));
        assert!(diagnostic_lines(&reading).contains(wrong), "{auth}{more}: {}", diagnostic_lines(&reading));
        assert!(
            reading.diagnostics.iter().any(|it| it.help.as_deref() == Some(help)),
            "{:?}",
            reading.diagnostics
        );
    }
}
