//! `login`, its effect on other commands, and `logout`: the binary, a server with authorization, and this test as the
//! browser.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};

use mcp_testkit::program::{ProgramOutput, Run};
use serde_json::Value;
use tempfile::TempDir;

#[path = "../../crates/mcp-oauth/tests/it/authority.rs"]
pub(crate) mod authority;

use authority::Authority;

use crate::secret_leaks::SecretLocation;

pub(crate) struct Place {
    folder: TempDir,
    pub(crate) authority: Authority,
}

impl Place {
    pub(crate) async fn new() -> Place {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::start().await);
        let text =
            format!(r#"{{"mcpServers": {{"guarded": {{"type": "http", "url": "{}"}}}}}}"#, authority.url);
        std::fs::write(folder.path().join("mcp.json"), text).unwrap();
        Place { folder, authority }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Run {
        let state = self.folder.path().join("state");
        // The configuration is found, and nothing can approve it.
        let arguments = [arguments, &["--trust-project"]].concat();
        Run::new(self.folder.path(), &state, &arguments)
            .env("PLANTED_CLIENT", SecretLocation::ClientSecret.mark())
    }

    /// Runs to the end while the server runs.
    pub(crate) async fn run(&self, arguments: &[&str]) -> ProgramOutput {
        let command = self.command(arguments);
        tokio::task::spawn_blocking(move || command.finish()).await.unwrap()
    }

    /// Logs in with this test as the browser.
    pub(crate) async fn log_in(&self, arguments: &[&str]) -> ProgramOutput {
        let child = self.command(arguments).start();
        let (page, child) = tokio::task::spawn_blocking(move || shown(child)).await.unwrap();
        let answer = browser().get(&page).send().await.unwrap();
        assert!(answer.text().await.unwrap().contains("You are logged in"), "{page}");
        tokio::task::spawn_blocking(move || ran(child.wait_with_output().unwrap())).await.unwrap()
    }

    pub(crate) fn logins(&self) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.folder.path().join("state/mcp-host/logins"));
        let files = listed.map(|it| it.map(|it| it.unwrap().path()).collect::<Vec<_>>()).unwrap_or_default();
        // Next to them is the lock file of a refresh.
        files.into_iter().filter(|it| it.extension().is_some_and(|it| it == "json")).collect()
    }
}

/// The URL that a login prints. Its other output is dropped.
pub(crate) fn shown(mut child: Child) -> (String, Child) {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let page = lines.find(|line| line.starts_with("http://")).unwrap();
    std::thread::spawn(move || lines.count());
    (page, child)
}

fn ran(output: Output) -> ProgramOutput {
    let text = |it: Vec<u8>| String::from_utf8(it).unwrap();
    ProgramOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A browser that follows redirects.
pub(crate) fn browser() -> reqwest::Client {
    // Fails if another test has installed one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_serves_every_command_until_logout() {
    let place = Place::new().await;
    let before = place.run(&["tools", "--format", "json"]).await;
    let failure = before.json()["servers"][0]["error"].to_string();
    assert_eq!(before.code, Some(3), "{before:#?}");
    assert!(failure.contains("run `mcp-host login guarded`"), "{failure}");

    let login = place.log_in(&["login", "guarded", "--no-browser", "--format", "json"]).await;
    let said = login.json();
    assert_eq!((login.code, said["authorized"].as_bool()), (Some(0), Some(true)), "{login:#?}");
    assert_eq!(said["scopes"], serde_json::json!(["basic"]));
    let kept = place.logins();
    let [file] = kept.as_slice() else { panic!("{kept:?}") };
    assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700));

    let after = place.run(&["tools", "--format", "json"]).await;
    assert_eq!(after.code, Some(0), "{after:#?}");
    assert_eq!(after.json()["tools"].as_array().map(Vec::len), Some(2));
    let doctor = place.run(&["doctor", "--format", "json"]).await;
    assert_eq!(doctor.code, Some(0), "{doctor:#?}");
    let called = place.run(&["call", "mcp.json", "echo", "{}", "--format", "json"]).await;
    assert_eq!((called.code, called.json()["success"].as_bool()), (Some(0), Some(true)), "{called:#?}");
    assert_eq!(place.authority.count("authorize"), 1, "no second login was asked for");

    let tokens: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    for ran in [&before, &login, &after, &doctor, &called] {
        for key in ["access_token", "refresh_token"] {
            let secret = tokens["grant"][key].as_str().unwrap();
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{key} in {ran:#?}");
        }
    }

    let logout = place.run(&["logout", "guarded", "--format", "json"]).await;
    assert_eq!((logout.code, logout.json()["forgotten"].as_u64()), (Some(0), Some(1)), "{logout:#?}");
    assert!(place.logins().is_empty());
    assert_eq!(place.run(&["tools"]).await.code, Some(3));
    let again = place.run(&["logout", "guarded"]).await;
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "no login to `guarded` is stored\n"));
}

/// Another user of the machine reads the arguments of the program that opens the browser, and tries to end the login.
// RPT-231
#[tokio::test(flavor = "multi_thread")]
async fn arguments_of_the_browser_do_not_help_to_complete_a_login() {
    let place = Place::new().await;
    let (bin, opened) = (place.folder.path().join("bin"), place.folder.path().join("opened"));
    std::fs::create_dir(&bin).unwrap();
    let opener = bin.join("xdg-open");
    let script = format!("#!/bin/sh\nprintf %s \"$*\" > {0}.new\nmv {0}.new {0}\n", opened.display());
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let login = place.command(&["login", "guarded"]).env("PATH", path).env("DISPLAY", ":0").start();
    let arguments = tokio::task::spawn_blocking(move || {
        mcp_testkit::wait::block_until(|| opened.exists());
        std::fs::read_to_string(opened).unwrap()
    });
    let arguments = arguments.await.unwrap();
    let page = Path::new(&arguments);
    assert_eq!((mode(page), mode(page.parent().unwrap())), (0o600, 0o700), "{arguments}");

    let text = std::fs::read_to_string(page).unwrap();
    let start = text.split_once("url=").unwrap().1.split_once('"').unwrap().0.to_owned();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]);
    let client = client.redirect(reqwest::redirect::Policy::none()).build().unwrap();
    // The attacker finds the port, and guesses from what it has read.
    let origin = start.split_once("/login/").unwrap().0;
    let name = page.file_stem().unwrap().to_str().unwrap().trim_start_matches("login-");
    for guess in [format!("/login/{name}"), "/login/".to_owned(), "/callback?code=mine&state=s".to_owned()] {
        let refused = client.get(format!("{origin}{guess}")).send().await.unwrap();
        assert_eq!(refused.status(), 404, "{guess}");
    }
    let started = client.get(&start).send().await.unwrap();
    let cookie = started.headers()["set-cookie"].to_str().unwrap().split_once(';').unwrap().0.to_owned();
    let location = |response: &reqwest::Response| response.headers()["location"].to_str().unwrap().to_owned();
    let back = location(&client.get(location(&started)).send().await.unwrap());
    assert_eq!(client.get(&back).send().await.unwrap().status(), 403, "without the cookie");
    let ended = client.get(&back).header("cookie", cookie).send().await.unwrap();
    assert!(ended.text().await.unwrap().contains("You are logged in"));
    let login = tokio::task::spawn_blocking(move || ran(login.wait_with_output().unwrap())).await.unwrap();
    assert_eq!(login.code, Some(0), "{login:#?}");
    assert!(!page.exists() && !arguments.contains("http"), "{arguments}");
    // The user can open it by hand, because only the user sees the terminal.
    assert!(login.stderr.contains(&start), "{login:#?}");
}

/// A login folder that other users can write to is named, with what to do.
// RPT-255
#[tokio::test(flavor = "multi_thread")]
async fn login_folder_that_others_can_change_is_named() {
    let place = Place::new().await;
    place.log_in(&["login", "guarded", "--no-browser"]).await;
    let folder = place.folder.path().join("state/mcp-host/logins").canonicalize().unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let advice = format!("run `chmod 700 {}`", folder.display());
    for arguments in [&["login", "guarded", "--no-browser"][..], &["logout", "guarded"], &["tools"]] {
        let ran = place.run(arguments).await;
        let text = ran.stdout.clone() + &ran.stderr;
        assert!(ran.code != Some(0), "{ran:#?}");
        assert!(text.contains(&advice) && text.contains("(its mode is 777)"), "{ran:#?}");
    }
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(place.run(&["tools"]).await.code, Some(0));
    let relative = place.command(&["login", "guarded"]).env("XDG_STATE_HOME", "").env("HOME", "me");
    let relative = tokio::task::spawn_blocking(move || relative.finish()).await.unwrap();
    assert!(relative.stderr.contains("HOME is not an absolute path: me"), "{relative:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_is_refreshed_on_use() {
    let place = Place::new().await;
    place.log_in(&["login", "guarded", "--no-browser"]).await;
    place.authority.expire_tokens();
    let tools = place.run(&["tools"]).await;
    assert_eq!(tools.code, Some(0), "{tools:#?}");
    assert_eq!((place.authority.count("refresh"), place.authority.count("authorize")), (1, 1));
    assert_eq!(place.run(&["tools"]).await.code, Some(0), "the new one is kept");
    assert_eq!(place.authority.count("refresh"), 1);

    place.authority.revoke_logins();
    let over = place.run(&["tools"]).await;
    assert_eq!(over.code, Some(3));
    assert!(
        over.stdout.contains("because the old one has expired: run `mcp-host login guarded`"),
        "{over:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_login_is_reported() {
    let place = Place::new().await;
    let other = place.run(&["login", "other"]).await;
    assert_eq!(other.code, Some(2), "{other:#?}");
    let text = r#"{"mcpServers": {"local": {"command": "true"}}}"#;
    std::fs::write(place.folder.path().join("local.json"), text).unwrap();
    let local = place.run(&["login", "local", "local.json"]).await;
    assert_eq!(local.code, Some(2), "{local:#?}");
    assert!(local.stderr.contains("only servers over http and sse can"), "{local:#?}");
    let down = r#"{"mcpServers": {"down": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}}"#;
    std::fs::write(place.folder.path().join("down.json"), down).unwrap();
    let down = place.run(&["login", "down", "down.json", "--format", "json"]).await;
    assert_eq!(down.code, Some(3), "{down:#?}");
    assert!(
        down.json()["error"]["message"].as_str().is_some_and(|message| message.contains("cannot connect")),
        "{down:#?}"
    );
}
