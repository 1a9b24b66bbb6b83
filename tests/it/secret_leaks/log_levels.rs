//! The log of a program that embeds the host, at every level of our crates. Other libraries are excluded at `debug`
//! and `trace`: they print what passes through them. The binary ignores log filters of the environment.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_host_model::{LogLevel, RawJson};
use mcp_host_oauth::{LoopbackRedirect, MemoryTokenStore, TokenStore};
use mcp_host_runtime::{
    Host, HostOptions, LoadRequest, LoginOptions, Logins, ServerState, Supervision, ToolCall, load,
};
use mcp_testkit::isolation::{Isolation, run_isolated};
use tracing_subscriber::EnvFilter;

use super::fixture::LeakFixture;
use super::markers::{SecretLocation, holds};
use super::search::Search;
use crate::login::authority::Authority;

/// All targets of our crates.
const OURS: &str = "off,mcp_host_model=trace,mcp_host_config=trace,mcp_host_transport=trace,mcp_host_registry=trace,mcp_host_runtime=trace,\
                    mcp_host_gateway=trace,mcp_host_acp=trace,mcp_host_acp_agent=trace";

#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged() -> CapturedLog {
    let heard = CapturedLog::default();
    let writer = heard.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(OURS))
        .with_ansi(false)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_writer(move || writer.clone());
    subscriber.init();
    heard
}

/// The variable with this file name replaces the process environment.
fn given() -> String {
    format!("PLANTED={}\nDOTENV={}\n", SecretLocation::Environment.mark(), SecretLocation::DotEnv.mark())
}

#[test]
fn hd_sc5_no_level_of_our_log_has_a_secret() {
    if run_isolated("secret_leaks::log_levels::hd_sc5_no_level_of_our_log_has_a_secret")
        == Isolation::AlreadyRun
    {
        return;
    }
    let heard = logged();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let world = LeakFixture::new().await;
        world.write("given.env", &given());
        let heard_of = async |file: &'static str| {
            let mut said: Vec<(String, String)> = Vec::new();
            let mut look = |what: &str, text: &str| said.push((what.to_owned(), text.to_owned()));
            let mut request = LoadRequest::new(world.path(file));
            request.env_file = Some(world.path("given.env"));
            let mut loaded = load(&request).unwrap();
            let text = format!("{loaded:#?} {:#?} {:#?}", loaded.reading, loaded.desired);
            look(&format!("{file} by Debug"), &text);
            for server in &mut loaded.desired.servers {
                // The test's own PATH has no such programs.
                if let mcp_host_model::Endpoint::Stdio(it) = &mut server.endpoint {
                    it.command = world.path(&format!("bin/{}", it.command)).display().to_string();
                    it.env.push(("PATH".to_owned(), "/usr/bin:/bin".into()));
                }
                server.spec.limits.startup = Duration::from_secs(20);
            }
            let mut options = HostOptions::default();
            options.supervision = Supervision::Off;
            options.telemetry.log_level = Some(LogLevel::Debug);
            let host = Host::start(options);
            let mut events = host.events();
            host.apply(loaded.desired).await;
            let mut published = host.subscribe();
            let settled = |it: &ServerState| matches!(it, ServerState::Ready | ServerState::Failed);
            let all = published.wait_for(|server| server.servers.iter().all(|server| settled(&server.state)));
            tokio::time::timeout(Duration::from_secs(60), all).await.unwrap().unwrap();
            look(&format!("{file}, published"), &format!("{:#?}", host.snapshot()));
            for tool in ["pipe-ok__fine", "pipe-ok__errs", "http-ok__fine", "http-ok__errs", "pipe-ok__dies"]
            {
                let call = ToolCall::new(tool, RawJson::parse("{}".into()).unwrap());
                look(&format!("{file}, {call:?}"), &format!("{:#?}", host.call(call.clone()).await));
            }
            host.shutdown().await;
            look("the last state", &format!("{:#?}", host.snapshot()));
            while let Some(event) = events.try_next() {
                look("an event", &format!("{event:#?}"));
            }
            said
        };
        // In parallel, because they mostly wait for servers that do not respond.
        let said =
            futures_util::future::join_all(["agent.yaml", "mcp.json", ".minds/mcp.yaml"].map(heard_of)).await;
        let mut search = Search::default();
        said.iter().flatten().for_each(|(what, text)| search.look(what, text));
        let log = heard.text();
        assert!(log.contains("pipe-ok") && log.contains("DEBUG"), "there is a log: {log}");
        search.look("the log", &log);
        search.end();
    });
}

#[test]
fn hd_sc5_no_level_of_our_log_has_a_token() {
    if run_isolated("secret_leaks::log_levels::hd_sc5_no_level_of_our_log_has_a_token")
        == Isolation::AlreadyRun
    {
        return;
    }
    let heard = logged();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let authority = Authority::start().await;
        authority.state().has_revocation = true;
        let store = Arc::new(MemoryTokenStore::default());
        let browser = LoopbackRedirect::new(|page| {
            let page = page.clone();
            tokio::spawn(async move { crate::login::browser().get(page).send().await.unwrap() });
        });
        let logins = Logins::new({
            let mut options =
                LoginOptions::new(Arc::clone(&store) as _, "test", Arc::new(|it| format!("log in to {it}")));
            options.user = Some(Arc::new(browser));
            options
        });
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        let text =
            format!(r#"{{"mcpServers": {{"guarded": {{"type": "http", "url": "{}"}}}}}}"#, authority.url);
        std::fs::write(&file, text).unwrap();
        let wanted = load(&LoadRequest::new(&file)).unwrap().desired;
        let (id, endpoint) = (wanted.servers[0].spec.id.clone(), wanted.servers[0].endpoint.clone());
        let mut options = HostOptions::default();
        options.connections.set_logins(Some(logins.clone()));
        let host = Host::start(options);
        host.apply(wanted).await;
        let mut published = host.subscribe();
        let ready = published
            .wait_for(|server| server.servers.iter().all(|server| server.state == ServerState::Ready));
        tokio::time::timeout(Duration::from_secs(60), ready).await.unwrap().unwrap();
        let mut said = String::new();
        authority.state().repeats_token = true;
        for _ in 0..2 {
            let call = ToolCall::new("guarded__echo", RawJson::parse("{}".into()).unwrap());
            said += &format!("{:#?}\n", host.call(call).await);
            // The next login must be refreshed.
            authority.expire_tokens();
        }
        said += &format!("{:#?} {store:?} {logins:?} ", host.snapshot());
        let kept = store.latest(&authority.url.parse().unwrap()).unwrap();
        said += &format!("{kept:#?}");
        said += &format!(
            "{:?}",
            logins.revoke(&id, &endpoint, &mcp_host_transport::Authorities::default()).await
        );
        host.shutdown().await;
        assert!(said.contains("Revoked") && said.contains("you are ***"), "{said}");
        said += &heard.text();
        let secrets = authority.state().secrets.clone();
        assert!(secrets.len() >= 6, "codes, verifiers, tokens of both kinds: {secrets:?}");
        for secret in secrets {
            assert!(!holds(&said, &secret), "{secret} in {said}");
        }
    });
}
