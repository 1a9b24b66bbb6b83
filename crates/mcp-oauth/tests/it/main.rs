//! Logins at a strict authorization server: the requests, their number, and what must not be printed.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod authority;
#[path = "../../examples/login.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod login;
mod providers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use mcp_host_model::{Endpoint, RawJson, Secret, UrlEndpoint};
use mcp_host_oauth::{
    ClientAuthentication, Grant, Login, LoopbackRedirect, MemoryTokenStore, OAuth, OAuthClient, OAuthOptions,
    TokenSource, TokenStore, UnattendedGrant, UnattendedGrantKind, UserAgent,
};
use mcp_host_transport::{
    CallError, CallOptions, ConnectError, DialOptions, Session, SessionOptions, dialer,
};
use serde_json::json;
use url::Url;

use crate::authority::{ADMIN, Authority, BASIC};

/// A user with a browser.
pub(crate) fn browser() -> Arc<dyn UserAgent> {
    Arc::new(LoopbackRedirect::new(open_page))
}

/// Opens a page and follows its redirect.
fn open_page(page: &Url) {
    let page = page.clone();
    tokio::spawn(async move {
        // Fails if another test has installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        client.get(page).send().await.unwrap()
    });
}

/// A user that declines each login.
pub(crate) struct DecliningUser(pub(crate) AtomicUsize);

struct DecliningLogin(Url);

#[async_trait]
impl UserAgent for DecliningUser {
    async fn start_login(&self) -> Result<Box<dyn Login>, String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(DecliningLogin("http://127.0.0.1:1/callback".parse().unwrap())))
    }
}

#[async_trait]
impl Login for DecliningLogin {
    fn redirect_uri(&self) -> &Url {
        &self.0
    }

    async fn authorize(self: Box<Self>, page: Url) -> Result<Url, String> {
        let state = page.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
        Ok(format!("{}?error=access_denied&state={state}", self.0).parse().unwrap())
    }
}

/// The authorization of one host.
pub(crate) fn oauth(
    url: &str,
    store: &Arc<MemoryTokenStore>,
    user: Option<Arc<dyn UserAgent>>,
) -> Arc<OAuth> {
    let mut options = OAuthOptions::new(Arc::clone(store) as _, "test");
    options.user_agent = user;
    options.login_hint = "run `mcp-host login guarded`".to_owned();
    Arc::new(OAuth::new(&url.parse().unwrap(), options).unwrap())
}

pub(crate) async fn connect(url: &str, oauth: Arc<OAuth>) -> Result<Session, ConnectError> {
    let endpoint = Endpoint::Http(UrlEndpoint::new(url.parse().unwrap()));
    let mut options = DialOptions::default();
    options.authorization = Some(oauth);
    Session::connect(dialer(&endpoint, &options).unwrap(), SessionOptions::default()).await
}

pub(crate) async fn call(session: &Session, tool: &str) -> Result<String, CallError> {
    let answer = session.call_tool(tool, &RawJson::empty_object(), CallOptions::default()).await?;
    Ok(answer.value.text().to_string())
}

#[tokio::test]
async fn user_logs_in_once_and_again_for_more_scopes() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let session = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
    assert_eq!((authority.count("register"), authority.count("authorize")), (1, 1));
    assert_eq!(call(&session, "admin").await.unwrap(), "done");
    assert_eq!(
        authority.state().requested_scopes,
        [BASIC.to_owned(), format!("{BASIC} {ADMIN}")],
        "earlier scopes are kept"
    );
    assert_eq!(call(&session, "admin").await.unwrap(), "done");
    assert_eq!(authority.count("authorize"), 2);
}

#[tokio::test]
async fn example_lists_the_tools_after_a_login() {
    let authority = Authority::start().await;
    let tools = login::list_tools(&authority.url.parse().unwrap(), open_page).await.unwrap();
    assert_eq!(tools, ["echo", "admin"]);
    assert_eq!(authority.count("authorize"), 1);
}

#[tokio::test]
async fn stored_login_needs_no_user() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    let session = connect(&authority.url, oauth(&authority.url, &store, None)).await.unwrap();
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
    assert_eq!((authority.count("authorize"), authority.count("refresh")), (1, 0));
}

#[tokio::test]
async fn concurrent_calls_refresh_an_expired_token_once() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let session = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    authority.expire_tokens();
    let calls = (0..50).map(|_| call(&session, "echo"));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap(), "done");
    }
    assert_eq!((authority.count("authorize"), authority.count("refresh")), (1, 1));
    let kept = store.latest(&authority.url.parse().unwrap()).unwrap().unwrap();
    assert!(authority.state().tokens.contains_key(kept.access_token.expose()), "the new one is kept");
}

#[tokio::test]
async fn bound_token_is_proven_in_each_request_and_at_its_refresh() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    authority.state().requires_proof = true;
    connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    // Another process has the stored login only.
    let stored = store.latest(&authority.url.parse().unwrap()).unwrap().unwrap();
    let store = Arc::new(MemoryTokenStore::default());
    store.save(&Grant::from_json(&stored.to_json()).unwrap()).unwrap();
    authority.expire_tokens();
    let session = connect(&authority.url, oauth(&authority.url, &store, None)).await.unwrap();
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
    assert_eq!((authority.count("authorize"), authority.count("refresh")), (1, 1));

    let proofs = std::mem::take(&mut authority.state().proofs);
    let token_requests = proofs.iter().filter(|(path, ..)| path == "/token").count();
    assert_eq!(token_requests, 2);
    assert!(proofs.len() > token_requests + 2, "{proofs:?}");
    let mut ids: Vec<String> = Vec::new();
    for (path, header, claims) in &proofs {
        assert_eq!(header["jwk"], proofs[0].1["jwk"]);
        assert_eq!(claims["htu"], authority.url.replace("/mcp", path));
        assert_eq!((claims.get("ath").is_some(), claims["htm"].as_str()), (path == "/mcp", Some("POST")));
        ids.push(claims["jti"].to_string());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), proofs.len());
}

#[tokio::test]
async fn expiring_token_is_refreshed_before_use() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    age_stored_login(&authority, &store);
    let session = connect(&authority.url, oauth(&authority.url, &store, None)).await.unwrap();
    call(&session, "echo").await.unwrap();
    assert_eq!((authority.count("refresh"), authority.count("authorize")), (1, 1));
}

/// Makes the access token of the stored login expire now.
fn age_stored_login(authority: &Authority, store: &MemoryTokenStore) -> Grant {
    let mut grant = store.latest(&authority.url.parse().unwrap()).unwrap().unwrap();
    grant.expires_at = Some(1);
    store.save(&grant).unwrap();
    grant
}

// RPT-120
#[tokio::test]
async fn login_of_another_process_is_used_though_its_access_token_is_old() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let idle = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    call(&idle, "echo").await.unwrap();
    authority.state().detects_reuse = true;
    authority.expire_tokens();
    let other = connect(&authority.url, oauth(&authority.url, &store, None)).await.unwrap();
    call(&other, "echo").await.unwrap();
    // The token that the other process got has ended, too.
    age_stored_login(&authority, &store);
    authority.expire_tokens();
    assert_eq!(call(&idle, "echo").await.unwrap(), "done");
    assert_eq!((authority.count("refresh"), authority.count("authorize")), (2, 1));
}

// RPT-121
#[tokio::test]
async fn refused_refresh_token_is_sent_once() {
    for refusal in [
        (400, json!({"error": "invalid_grant"})),
        (400, json!({"error": "invalid_request", "error_description": "The token request is invalid."})),
        (401, json!([{"logref": "1", "message": "Bad credentials"}])),
    ] {
        let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
        connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
        authority.state().refresh_response = Some(refusal.clone());
        authority.expire_tokens();
        age_stored_login(&authority, &store);
        let authorization = oauth(&authority.url, &store, None);
        for _ in 0..3 {
            let error = connect(&authority.url, Arc::clone(&authorization)).await.err().unwrap();
            let want =
                "the server requires a new login, because the old one has expired: run `mcp-host login";
            assert!(error.to_string().contains(want), "{refusal:?} {error}");
        }
        assert_eq!(authority.count("refresh"), 1, "{refusal:?}");
    }
}

// RPT-130
#[tokio::test]
async fn next_login_requests_the_scopes_that_were_missing() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    let session = connect(&authority.url, oauth(&authority.url, &store, None)).await.unwrap();
    let error = call(&session, "admin").await.unwrap_err().to_string();
    let want = "the server requires a login with more scopes (admin): run `mcp-host login guarded`";
    assert!(error.contains(want), "{error}");
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
    // Of another process, which connects only.
    connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    assert_eq!(authority.state().requested_scopes, [BASIC.to_owned(), format!("{BASIC} {ADMIN}")]);
    // And again nothing is asked.
    connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    assert_eq!(authority.count("authorize"), 2);
}

#[tokio::test]
async fn configured_scopes_are_requested_once() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let with_scopes = || {
        let mut options = OAuthOptions::new(Arc::clone(&store) as _, "test");
        options.user_agent = Some(browser());
        options.scopes = vec![ADMIN.to_owned()];
        Arc::new(OAuth::new(&authority.url.parse().unwrap(), options).unwrap())
    };
    connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    connect(&authority.url, with_scopes()).await.unwrap();
    connect(&authority.url, with_scopes()).await.unwrap();
    assert_eq!(authority.state().requested_scopes, [BASIC.to_owned(), format!("{BASIC} {ADMIN}")]);
}

#[tokio::test]
async fn login_refreshed_by_another_process_is_used() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let one = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    let other = connect(&authority.url, oauth(&authority.url, &store, None)).await.unwrap();
    // All requests of the handshakes have ended.
    for session in [&one, &other] {
        call(session, "echo").await.unwrap();
    }
    authority.expire_tokens();
    assert_eq!(call(&one, "echo").await.unwrap(), "done");
    assert_eq!(call(&other, "echo").await.unwrap(), "done", "its own refresh token is used up");
    assert_eq!((authority.count("refresh"), authority.count("authorize")), (1, 1));
}

#[tokio::test]
async fn expired_login_requires_the_user() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let session = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    authority.revoke_logins();
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
    assert_eq!((authority.count("refresh"), authority.count("authorize")), (1, 2));
    authority.revoke_logins();
    let alone = connect(&authority.url, oauth(&authority.url, &store, None)).await.err().unwrap();
    let want = "not authorized: the server requires a new login, because the old one has expired: run `mcp-host \
        login guarded`";
    assert_eq!(alone.to_string(), want);
}

#[tokio::test]
async fn missing_user_is_reported_with_a_remedy() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let error = connect(&authority.url, oauth(&authority.url, &store, None)).await.err().unwrap();
    let want = "not authorized: the server requires a login: run `mcp-host login guarded`";
    assert_eq!(error.to_string(), want);
    assert!(
        error.help().unwrap().contains("`Authorization` header"),
        "some take a token of one's own instead"
    );
    assert_eq!(authority.count("register"), 0, "no client is registered without a login");
}

#[tokio::test]
async fn refusal_of_the_user_ends_all_waiting_calls() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let session = connect(&authority.url, oauth(&authority.url, &store, Some(browser()))).await.unwrap();
    drop(session);
    let refuser = Arc::new(DecliningUser(AtomicUsize::new(0)));
    let session =
        connect(&authority.url, oauth(&authority.url, &store, Some(Arc::clone(&refuser) as _))).await;
    let session = session.unwrap();
    call(&session, "echo").await.unwrap();
    authority.revoke_logins();
    let calls = (0..8).map(|_| call(&session, "echo"));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap_err().to_string(), "not authorized: the login was refused: access_denied");
    }
    assert_eq!(refuser.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn token_repeated_by_a_server_is_redacted() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let authorization = oauth(&authority.url, &store, Some(browser()));
    let session = connect(&authority.url, Arc::clone(&authorization)).await.unwrap();
    authority.state().repeats_token = true;
    let error = call(&session, "echo").await.unwrap_err();
    assert!(error.to_string().contains("you are ***"), "{error}");
    let grant = store.latest(&authority.url.parse().unwrap()).unwrap().unwrap();
    let printed = format!("{error:?} {authorization:?} {store:?} {grant:?}");
    for secret in [Some(&grant.access_token), grant.refresh_token.as_ref()].into_iter().flatten() {
        assert!(!printed.contains(secret.expose()), "{printed}");
    }
}

#[tokio::test]
async fn configured_header_replaces_the_token() {
    let (authority, store) = (Authority::start().await, Arc::new(MemoryTokenStore::default()));
    let mut endpoint = UrlEndpoint::new(authority.url.parse().unwrap());
    endpoint.headers.push(("Authorization".to_owned(), "Bearer mine".into()));
    let authorization = oauth(&authority.url, &store, Some(browser()));
    let mut options = DialOptions::default();
    options.authorization = Some(authorization);
    let dial = dialer(&Endpoint::Http(endpoint), &options).unwrap();
    let error = Session::connect(dial, SessionOptions::default()).await.err().unwrap();
    assert!(error.to_string().contains("HTTP 401"), "{error}");
    assert_eq!(authority.count("authorize"), 0);
}

#[test]
fn no_token_is_sent_over_plain_http() {
    let store = Arc::new(MemoryTokenStore::default());
    let mut options = OAuthOptions::new(store, String::new());
    options.login_hint = String::new();
    let error = OAuth::new(&"http://example.com/mcp".parse().unwrap(), options).err().unwrap();
    assert_eq!(error.to_string(), "tokens are only sent over https, except on this machine");
}

/// An authorization without a user, with the secret of the authority's own client.
fn unattended(url: &str, kind: UnattendedGrantKind, issuer: Option<&str>) -> Arc<OAuth> {
    let authentication = ClientAuthentication::Secret(Secret::from("service secret"));
    let client = OAuthClient::new("service", authentication);
    let mut unattended = UnattendedGrant::new(client, kind);
    unattended.issuer = issuer.map(str::to_owned);
    let mut options = OAuthOptions::new(Arc::new(MemoryTokenStore::default()), "test");
    options.unattended = Some(unattended);
    options.login_hint = String::new();
    Arc::new(OAuth::new(&url.parse().unwrap(), options).unwrap())
}

#[tokio::test]
async fn host_obtains_tokens_without_a_user() {
    let source = |text: &'static str| TokenSource::new(move || Ok(Secret::from(text)));
    for kind in [
        UnattendedGrantKind::ClientCredentials,
        UnattendedGrantKind::JwtBearer(source("workload")),
        UnattendedGrantKind::TokenExchange(source("caller")),
    ] {
        let authority = Authority::start().await;
        authority.state().preregistered = Some(("service".to_owned(), "service secret".to_owned()));
        let issuer = authority.url.trim_end_matches("/mcp").to_owned();
        let session = connect(&authority.url, unattended(&authority.url, kind.clone(), Some(&issuer))).await;
        let session = session.unwrap();
        assert_eq!(call(&session, "echo").await.unwrap(), "done");
        assert_eq!(authority.count("unattended"), 1, "{kind:?}");
        // A token that expires is replaced before a request, and one that is refused after it.
        authority.expire_tokens();
        assert_eq!(call(&session, "echo").await.unwrap(), "done");
        assert_eq!(authority.count("unattended"), 2, "{kind:?}");
        // A call that needs another scope gets it.
        assert_eq!(call(&session, "admin").await.unwrap(), "done");

        let elsewhere = unattended(&authority.url, kind, Some("https://id.example"));
        let error = connect(&authority.url, elsewhere).await.err().unwrap().to_string();
        assert!(error.contains("is not the one that is configured"), "{error}");
        assert_eq!(authority.count("unattended"), 3);
    }
}

// RPT-230
#[tokio::test]
async fn server_that_poses_as_the_configured_issuer_receives_nothing() {
    let (hostile, issuer) = (Authority::start().await, Authority::start().await);
    issuer.state().preregistered = Some(("service".to_owned(), "service secret".to_owned()));
    let origin = issuer.url.trim_end_matches("/mcp").to_owned();
    hostile.state().claimed_issuer = Some(origin.clone());
    hostile.state().named_authorities = Some(json!([origin]));
    for kind in [
        UnattendedGrantKind::ClientCredentials,
        UnattendedGrantKind::TokenExchange(TokenSource::new(|| Ok(Secret::from("caller")))),
    ] {
        let error = connect(&hostile.url, unattended(&hostile.url, kind, Some(&origin))).await.err().unwrap();
        // The real issuer issues no token for the other resource.
        assert!(error.to_string().contains("invalid_target"), "{error}");
    }
    assert_eq!((hostile.count("unattended"), issuer.count("unattended")), (0, 0));
}

#[tokio::test]
async fn another_token_of_the_subject_replaces_the_exchanged_one() {
    let authority = Authority::start().await;
    authority.state().preregistered = Some(("service".to_owned(), "service secret".to_owned()));
    let subject = Arc::new(std::sync::Mutex::new(Ok("caller")));
    let source = Arc::clone(&subject);
    let source = TokenSource::new(move || source.lock().unwrap().clone().map(Secret::from));
    let kind = UnattendedGrantKind::TokenExchange(source);
    let session = connect(&authority.url, unattended(&authority.url, kind, None)).await.unwrap();
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
    assert_eq!(authority.count("unattended"), 1);

    // The old token is still valid, but it is not what the caller has now.
    *subject.lock().unwrap() = Ok("other caller");
    let error = call(&session, "echo").await.unwrap_err().to_string();
    assert!(error.contains("HTTP 400: invalid_grant; log in again, or let the authorization"), "{error}");
    assert_eq!(authority.count("unattended"), 2);
    *subject.lock().unwrap() = Err("the caller has left".to_owned());
    assert!(call(&session, "echo").await.unwrap_err().to_string().contains("the caller has left"));
    assert_eq!(authority.count("unattended"), 2);
    *subject.lock().unwrap() = Ok("caller");
    assert_eq!(call(&session, "echo").await.unwrap(), "done");
}
