//! Authorization servers of many providers, and a hostile server: which of their statements are used.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use mcp_host_model::Secret;
use mcp_host_oauth::{Grant, MemoryTokenStore, OAuth, OAuthOptions, RegisteredClient, TokenStore, UserAgent};
use serde_json::json;

use crate::authority::{Authority, BASIC};
use crate::{DecliningUser, browser, call, connect, oauth};

// RPT-140
#[tokio::test]
async fn tokens_of_all_kinds_of_providers_work() {
    for members in [
        json!({"expires_in": "3600"}),
        json!({"expires_in": 3599.5}),
        json!({"expires_in": -1}),
        json!({"expires_in": null}),
        json!({"token_type": null}),
        json!({"scope": [BASIC]}),
        json!({"refresh_token": ""}),
    ] {
        let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
        authority.state().token_members = members.clone();
        let session = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await;
        let session = session.unwrap_or_else(|error| panic!("{members}: {error}"));
        assert_eq!(call(&session, "echo").await.unwrap(), "done", "{members}");
        assert_eq!(authority.count("authorize"), 1, "{members}");
    }
}

// RPT-141
#[tokio::test]
async fn authorization_server_without_resource_indicators_works() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    authority.state().refuses_resource = true;
    let session = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
    authority.expire_tokens();
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
    assert_eq!((authority.count("authorize"), authority.count("refresh")), (1, 1));
}

// RPT-233
#[tokio::test]
async fn resource_of_a_token_is_the_configured_url() {
    for stated in ["/mcp", "/mcp/", "/mcp?a=b", "", "/"] {
        // The document at the root may name the origin; the token is then for that.
        let is_parent = !stated.starts_with("/mcp");
        for is_at_root in [false, true].into_iter().filter(|at_root| !(is_parent && *at_root)) {
            let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
            let origin = authority.url.trim_end_matches("/mcp").to_owned();
            let stated = Some(format!("{origin}{stated}"));
            if is_at_root {
                authority.state().has_no_resource_metadata = true;
                authority.state().root_resource = stated;
            } else {
                authority.state().stated_resource = stated;
            }
            // The authority refuses every other resource.
            let session =
                connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
            authority.expire_tokens();
            assert_eq!(call(&session, "echo").await.unwrap(), "done");
            assert_eq!((authority.count("code"), authority.count("refresh")), (1, 1));
        }
    }
}

// RPT-233
#[tokio::test]
async fn failed_login_tells_that_the_metadata_names_a_broader_resource() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let origin = authority.url.trim_end_matches("/mcp").to_owned();
    authority.state().stated_resource = Some(origin.clone());
    let user = Arc::new(DecliningUser(AtomicUsize::new(0))) as Arc<dyn UserAgent>;
    let error = connect(&authority.url, oauth(&authority.url, &store, Some(user))).await.err().unwrap();
    let want = format!(
        "(a token was requested for {origin}/mcp, and not for {origin}/, which the server's metadata"
    );
    assert!(error.to_string().contains(&want), "{error}");
}

// RPT-063
#[tokio::test]
async fn login_waits_for_endpoints_that_are_busy() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    authority.state().is_busy_at_first = true;
    let session = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
    assert_eq!((authority.count("register"), authority.count("code")), (1, 1));
}

#[tokio::test]
async fn redirect_of_another_issuer_is_refused() {
    for (suffix, is_accepted) in [("", true), ("/", false), ("x", false)] {
        let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
        let issuer = authority.url.trim_end_matches("/mcp").to_owned() + suffix;
        authority.state().redirect_issuer = Some(issuer);
        let session = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await;
        assert_eq!((session.is_ok(), authority.count("code")), (is_accepted, usize::from(is_accepted)));
    }
}

// RPT-142
#[tokio::test]
async fn next_authorization_server_is_used_if_one_is_unreachable() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let origin = authority.url.trim_end_matches("/mcp").to_owned();
    authority.state().named_authorities = Some(json!(["http://127.0.0.1:1/dead", origin]));
    connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    authority.state().named_authorities = Some(json!(["http://127.0.0.1:1/dead"]));
    let fresh = Arc::new(MemoryTokenStore::default());
    let error = connect(&authority.url, oauth(&authority.url, &fresh, Some(browser()))).await.err().unwrap();
    assert!(error.to_string().contains("http://127.0.0.1:1: "), "{error}");
}

// RPT-222
#[tokio::test]
async fn metadata_of_another_issuer_is_read_from_that_issuer() {
    let (front, issuer) = (Authority::start().await, Authority::start().await);
    let origin = issuer.url.trim_end_matches("/mcp").to_owned();
    front.state().claimed_issuer = Some(origin);
    let store = Arc::new(MemoryTokenStore::default());
    let user = || Arc::new(DecliningUser(AtomicUsize::new(0))) as Arc<dyn UserAgent>;
    let error = connect(&front.url, oauth(&front.url, &store, Some(user()))).await.err().unwrap();
    // The issuer knows no such resource. Its own endpoints were used.
    assert_eq!((front.count("register"), issuer.count("register")), (0, 1), "{error}");
    front.state().claimed_issuer = Some("http://127.0.0.1:1".to_owned());
    let error = connect(&front.url, oauth(&front.url, &store, Some(user()))).await.err().unwrap().to_string();
    assert!(
        error.contains("is of the issuer http://127.0.0.1:1, which does not publish it itself"),
        "{error}"
    );
    assert_eq!(front.count("register"), 0);
}

// RPT-144
#[tokio::test]
async fn registration_without_redirect_uris_works() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    authority.state().registers_tersely = true;
    let session = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
}

// RPT-131
#[tokio::test]
async fn refused_registration_names_the_option_for_the_redirect() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    authority.state().refuses_redirects = true;
    let refused = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await;
    let error = refused.err().unwrap().to_string();
    for part in ["invalid_redirect_uri", "`mcp-host login --redirect-uri` sets another one"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

/// The authorization of a host with a configured issuer.
fn with_issuer(url: &str, store: &Arc<MemoryTokenStore>, issuer: &str) -> Arc<OAuth> {
    let mut options = OAuthOptions::new(Arc::clone(store) as _, "test");
    options.user_agent = Some(browser());
    options.issuer = Some(issuer.to_owned());
    // Without metadata of the resource, no scope is named.
    options.scopes = vec![BASIC.to_owned()];
    Arc::new(OAuth::new(&url.parse().unwrap(), options).unwrap())
}

// RPT-223
#[tokio::test]
async fn configured_issuer_is_used_though_its_metadata_names_another() {
    for has_no_resource_metadata in [true, false] {
        let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
        let origin = authority.url.trim_end_matches("/mcp").to_owned();
        let parent = "http://127.0.0.1:1/parent";
        authority.state().claimed_issuer = Some(parent.to_owned());
        authority.state().redirect_issuer = Some(parent.to_owned());
        authority.state().has_no_resource_metadata = has_no_resource_metadata;
        let refused = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await;
        let error = refused.err().unwrap().to_string();
        for part in [&origin, parent, "`mcp-host login --issuer`", "`issuer` in the `auth`"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        for issuer in [origin.clone(), format!("{origin}/")] {
            let store = Arc::new(MemoryTokenStore::default());
            let session =
                connect(&authority.url, with_issuer(&authority.url, &store, &issuer)).await.unwrap();
            assert_eq!(call(&session, "echo").await.unwrap(), "done");
            // Another process, which knows the stored login only, refreshes it.
            authority.expire_tokens();
            let session = connect(&authority.url, oauth(&authority.url, &store, None)).await.unwrap();
            assert_eq!(call(&session, "echo").await.unwrap(), "done");
        }
        assert_eq!((authority.count("authorize"), authority.count("refresh")), (2, 2));
    }
}

// RPT-223
#[tokio::test]
async fn configured_issuer_is_used_if_it_is_listed_or_nothing_is() {
    let (server, issuer) = (Authority::start().await, Authority::start().await);
    let [origin, other] = [&issuer, &server].map(|it| it.url.trim_end_matches("/mcp").to_owned());
    let store = Arc::new(MemoryTokenStore::default());
    server.state().named_authorities = Some(json!([other, origin]));
    let attempt = || async {
        let user: Arc<dyn UserAgent> = Arc::new(DecliningUser(AtomicUsize::new(0)));
        let mut options = OAuthOptions::new(Arc::clone(&store) as _, "test");
        (options.user_agent, options.issuer) = (Some(user), Some(origin.clone()));
        let oauth = OAuth::new(&server.url.parse().unwrap(), options).unwrap();
        connect(&server.url, Arc::new(oauth)).await.err().unwrap().to_string()
    };
    assert!(attempt().await.contains("the login was refused"));
    assert_eq!((server.count("register"), issuer.count("register")), (0, 1));
    server.state().named_authorities = Some(json!([other]));
    let error = attempt().await;
    assert!(error.contains("is not the one that is configured") && error.contains("--issuer"), "{error}");
    assert_eq!((server.count("register"), issuer.count("register")), (0, 1));
    // Metadata that cannot be used does not prevent it.
    server.state().named_authorities = Some(json!(["http://127.0.0.1:1/dead"]));
    assert!(attempt().await.contains("the login was refused"));
    assert_eq!((server.count("register"), issuer.count("register")), (0, 2));
}

/// A hostile server that names a document as its authorization server, which claims another issuer.
// RPT-220
#[tokio::test]
async fn nothing_of_a_grant_reaches_an_endpoint_that_its_issuer_does_not_publish() {
    for shape in ["/.well-known/other", "/a/.well-known/oauth-authorization-server", "/.well-known/x/y"] {
        let (hostile, issuer) = (Authority::start().await, Authority::start().await);
        let origin = issuer.url.trim_end_matches("/mcp").to_owned();
        let hostile_origin = hostile.url.trim_end_matches("/mcp").to_owned();
        hostile.state().claimed_issuer = Some(origin.clone());
        hostile.state().has_revocation = true;
        hostile.state().named_authorities = Some(json!([format!("{hostile_origin}{shape}")]));
        // A login of the honest issuer, as an earlier one that the hostile server named it for.
        let store = Arc::new(MemoryTokenStore::default());
        let client = RegisteredClient::new("client");
        let mut grant = Grant::new(hostile.url.parse().unwrap(), origin, client, Secret::from("access"));
        grant.refresh_token = Some(Secret::from("refresh"));
        grant.expires_at = Some(1);
        store.save(&grant).unwrap();
        let authorization = oauth(&hostile.url, &store, Some(browser()));
        let error = connect(&hostile.url, Arc::clone(&authorization)).await.err().unwrap().to_string();
        assert!(error.contains("which is the address of a document, not an issuer"), "{error}");
        assert!(authorization.revoke().await.is_err());
        for kind in ["refresh", "code", "register", "authorize", "revoke"] {
            assert_eq!((kind, hostile.count(kind)), (kind, 0), "{shape}");
        }
    }
}
