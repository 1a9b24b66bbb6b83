//! Logins: the output of `login` and related commands, token storage, and revocation.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;

use super::markers::{SecretLocation, holds};
use crate::login::{Place, shown};

/// A confidential client: codes, verifiers, tokens and the client secret are sent to the authorization server only,
/// and are in no output.
#[tokio::test(flavor = "multi_thread")]
async fn hd_sc5_a_login_prints_no_secret() {
    let place = Place::new().await;
    place.authority.state().preregistered = Some(("by-hand".to_owned(), SecretLocation::ClientSecret.mark()));
    place.authority.state().has_revocation = true;
    let issuer = place.authority.url.trim_end_matches("/mcp").to_owned();
    let client =
        ["--client-id", "by-hand", "--client-secret-env", "PLANTED_CLIENT", "--issuer", issuer.as_str()];
    let mut ran = Vec::new();
    // Without the issuer, the server would choose who gets the secret.
    let refused = place.run(&[&["login", "guarded", "--no-browser"][..], &client[..4]].concat()).await;
    assert!(refused.code == Some(2) && refused.stderr.contains("--issuer"), "{refused:#?}");
    ran.push(place.log_in(&[&["login", "guarded", "--no-browser", "-v"][..], &client].concat()).await);
    assert_eq!(ran[0].code, Some(0), "{ran:#?}");
    let file = place.logins().pop().unwrap();
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(
        holds(&kept, &SecretLocation::ClientSecret.mark()),
        "what renews is kept, in a file of the user's own"
    );
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    place.authority.state().repeats_token = true;
    for arguments in [
        &["tools", "-v"][..],
        &["call", "mcp.json", "echo", "{}", "-v"],
        &["call", "mcp.json", "echo", "{}", "--format", "json"],
        &["doctor", "-v"],
        &["doctor", "--format", "json"],
    ] {
        ran.push(place.run(arguments).await);
        // Each command refreshes, which sends the old token and receives a new one.
        place.authority.expire_tokens();
    }
    ran.push(place.run(&["logout", "guarded", "-v"]).await);
    assert!(place.authority.count("refresh") > 0 && place.authority.count("revoke") == 2);
    let mut secrets = place.authority.state().secrets.clone();
    secrets.push(SecretLocation::ClientSecret.mark());
    assert!(secrets.len() > 6, "{secrets:?}");
    for (ran, secret) in ran.iter().flat_map(|ran| secrets.iter().map(move |it| (ran, it))) {
        assert!(!holds(&ran.stdout, secret) && !holds(&ran.stderr, secret), "{secret} in {ran:#?}");
    }
    assert!(ran.iter().any(|it| it.stdout.contains("you are ***")), "the server has repeated it: {ran:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_revokes_the_login() {
    let place = Place::new().await;
    place.authority.state().has_revocation = true;
    place.log_in(&["login", "guarded", "--no-browser"]).await;
    let logout = place.run(&["logout", "guarded", "--format", "json"]).await;
    assert_eq!(logout.code, Some(0), "{logout:#?}");
    let said = logout.json();
    assert_eq!((said["forgotten"].as_u64(), said["revoked"].as_bool()), (Some(1), Some(true)), "{logout:#?}");
    assert_eq!(place.authority.count("revoke"), 2, "the token for requests, and the one for renewals");
    assert!(place.authority.state().tokens.is_empty() && place.logins().is_empty());

    // A server without revocation and an unreachable one: the local login is deleted anyway.
    place.authority.state().has_revocation = false;
    place.log_in(&["login", "guarded", "--no-browser"]).await;
    let logout = place.run(&["logout", "guarded"]).await;
    assert!(logout.stdout.contains("is deleted here; the server may accept it"), "{logout:#?}");
    assert_eq!((logout.stderr.contains("warning"), place.logins().len()), (false, 0), "{logout:#?}");
    place.authority.state().has_revocation = true;
    place.log_in(&["login", "guarded", "--no-browser"]).await;
    place.authority.state().preregistered = Some(("somebody-else".to_owned(), "x".to_owned()));
    let logout = place.run(&["logout", "guarded"]).await;
    assert_eq!((logout.code, place.logins().len()), (Some(0), 0), "{logout:#?}");
    assert!(
        logout
            .stderr
            .contains("warning: server 'guarded': the login could not be revoked there: it answers with 401"),
        "{logout:#?}"
    );
}

/// The browser runs on another machine and ends at a redirect URL where no server listens.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_accepts_a_typed_redirect_url() {
    let place = Place::new().await;
    let child = place.command(&["login", "guarded", "--no-browser"]).piped_input().start();
    let (page, mut child) = tokio::task::spawn_blocking(move || shown(child)).await.unwrap();
    let elsewhere = browser_that_stays();
    let answer = elsewhere.get(&page).send().await.unwrap();
    let back = answer.headers()["location"].to_str().unwrap().to_owned();
    assert!(back.starts_with("http://127.0.0.1:"), "{back}");
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "no address\n{}\n{back}", back.replace("state=", "state=x")).unwrap();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && stdout.contains("logged in to `guarded`"), "{stdout}");
    assert_eq!((place.authority.count("code"), place.logins().len()), (1, 1));
}

/// Many processes refresh one expired token; the server revokes the login if a refresh token is used twice.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_refreshes_are_serialized() {
    let place = Place::new().await;
    place.authority.state().detects_reuse = true;
    place.log_in(&["login", "guarded", "--no-browser"]).await;
    for round in 1..=3 {
        place.authority.expire_tokens();
        let mut runs = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let command = place.command(&["tools"]);
            runs.spawn_blocking(move || command.finish());
        }
        let ended = runs.join_all().await;
        assert!(ended.iter().all(|it| it.code == Some(0)), "{ended:#?}");
        assert_eq!((place.authority.count("refresh"), place.authority.count("authorize")), (round, 1));
    }
}

/// A browser that follows no redirect.
fn browser_that_stays() -> reqwest::Client {
    let policy = reqwest::redirect::Policy::none();
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().tls_certs_only([]).redirect(policy).build().unwrap()
}
