//! A host whose servers are in-memory peers, with helpers for tests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{CallResult, Endpoint, RawJson};
use mcp_host_runtime::{
    DesiredServers, Dialer, Host, HostOptions, ProbePolicy, ProcessOptions, RestartPolicy, ServerState,
    Supervision, ToolCall,
};
use mcp_testkit::servers::configured_server;
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Subscriber};

use crate::scripted_server::ScriptedServer;

/// A host and its peers, by server id.
pub(crate) struct HostFixture {
    pub(crate) host: Host,
    peers: HashMap<&'static str, Arc<ScriptedServer>>,
}

/// The subscriber of a test's thread, until it is dropped.
pub(crate) struct TestSubscriber {
    _guard: DefaultGuard,
    _other: Dispatch,
}

/// Sets the subscriber of this thread.
///
/// While there is only one subscriber, tracing decides whether a span is wanted by the thread that reaches its code
/// first, which may belong to a test without a subscriber. So another one exists as long.
pub(crate) fn set_subscriber(subscriber: impl Subscriber + Send + Sync + 'static) -> TestSubscriber {
    let other = Dispatch::new(NoSubscriber::default());
    TestSubscriber { _guard: tracing::subscriber::set_default(subscriber), _other: other }
}

/// Options without restarts. Replaced instances get 20 s for their calls.
pub(crate) fn short_drain() -> HostOptions {
    let mut processes = ProcessOptions::default();
    processes.drain = Duration::from_secs(20);
    let mut options = HostOptions::default();
    options.processes = processes;
    options.supervision = Supervision::Off;
    options
}

impl HostFixture {
    /// Creates a host that does not restart failed servers, so that their state remains visible.
    pub(crate) fn new(peers: &[(&'static str, Arc<ScriptedServer>)]) -> HostFixture {
        HostFixture::with(peers, {
            let mut options = HostOptions::default();
            options.supervision = Supervision::Off;
            options
        })
    }

    /// Returns a host that restarts failed servers after 1 to 2 s, then 2 to 4 s and so on, and probes every minute.
    pub(crate) fn supervised(peers: &[(&'static str, Arc<ScriptedServer>)]) -> HostFixture {
        HostFixture::with(peers, {
            let mut options = HostOptions::default();
            options.supervision = supervision();
            options
        })
    }

    pub(crate) fn with(peers: &[(&'static str, Arc<ScriptedServer>)], options: HostOptions) -> HostFixture {
        let peers: HashMap<_, _> = peers.iter().cloned().collect();
        let dialled = peers.clone();
        let dialer: Dialer = Arc::new(move |server, _| Ok(dialled[server.spec.id.as_str()].dial()));
        HostFixture { host: Host::with_dialer(options, dialer), peers }
    }

    /// Returns a host without restarts that has started all peers.
    pub(crate) async fn running(peers: &[(&'static str, Arc<ScriptedServer>)]) -> HostFixture {
        HostFixture::new(peers).started().await
    }

    /// Starts all peers, in the order of their ids, and waits until each is ready or has failed.
    pub(crate) async fn started(self) -> HostFixture {
        let mut ids: Vec<_> = self.peers.keys().copied().collect();
        ids.sort_unstable();
        self.apply(ids.into_iter().map(configured_server).collect()).await;
        self.host.wait_until_ready().await;
        self
    }

    pub(crate) fn peer(&self, id: &str) -> &Arc<ScriptedServer> {
        &self.peers[id]
    }

    pub(crate) async fn apply(&self, servers: Vec<ResolvedServer>) {
        self.host.apply(DesiredServers::new(servers)).await;
    }

    /// Calls a tool with these JSON arguments.
    pub(crate) async fn call(&self, name: &str, arguments: &str) -> CallResult {
        let arguments = RawJson::parse(arguments.to_owned().into()).unwrap();
        self.host.call(ToolCall::new(name, arguments)).await
    }

    /// Returns the states of the servers and the names of the tools, for example `a:ready b:failed | a__t a__u`.
    pub(crate) fn summary(&self) -> String {
        let published = self.host.snapshot();
        let servers =
            published.servers.iter().map(|server| format!("{}:{}", server.id, server.state.as_str()));
        let tools = published.catalog.tools().iter().map(|item| item.name.to_string());
        let (servers, tools): (Vec<_>, Vec<_>) = (servers.collect(), tools.collect());
        format!("{} | {}", servers.join(" "), tools.join(" ")).trim().to_owned()
    }

    /// Waits until [`HostFixture::summary`] returns this.
    pub(crate) async fn wait_for_summary(&self, want: &str) {
        let mut published = self.host.subscribe();
        while self.summary() != want {
            let change = tokio::time::timeout(Duration::from_secs(600), published.changed()).await;
            assert!(change.is_ok(), "{} is not {want}", self.summary());
        }
    }

    /// Returns the error of a server as `<kind>: <message>`; empty if it has none.
    pub(crate) fn failure(&self, id: &str) -> String {
        let published = self.host.snapshot();
        let status = published.servers.iter().find(|server| server.id == id).unwrap();
        assert_ne!(status.state, ServerState::Starting);
        status.error.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

/// Returns the restart policy of a supervised host.
pub(crate) fn supervision() -> Supervision {
    let seconds = Duration::from_secs;
    Supervision::Restart({
        let mut policy = RestartPolicy::default();
        policy.initial_backoff = seconds(2);
        policy.max_failures = 4;
        policy.cooldown = seconds(100);
        policy.stable_after = seconds(30);
        policy.probe = {
            let mut policy = ProbePolicy::default();
            policy.interval = Some(seconds(60));
            policy.timeout = seconds(5);
            policy
        };
        policy.seed = 1;
        policy
    })
}

/// Returns the text of a result, or its error as `<kind>: <message>`.
pub(crate) fn text_or_error(result: &CallResult) -> String {
    assert_eq!(result.success, result.error.is_none());
    match &result.error {
        None => result.text(),
        Some(error) => format!("{}: {}", error.kind, error.message),
    }
}

/// Returns the same server with other arguments, which require a restart.
pub(crate) fn changed(mut server: ResolvedServer) -> ResolvedServer {
    let Endpoint::Stdio(endpoint) = &mut server.endpoint else { panic!("it is a child process") };
    endpoint.args.push("--changed".into());
    server
}
