//! Servers start concurrently, and a failed server does not affect the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_host_model::{Endpoint, StdioEndpoint};
use mcp_host_runtime::{DesiredServers, Dialer, Host, HostOptions, Supervision};
use mcp_host_transport::{ConnectError, DisconnectReason, StartError};
use mcp_testkit::servers::configured_server;

use crate::fixture::HostFixture;
use crate::scripted_server::{ScriptedServer, StartBehavior};

#[tokio::test(start_paused = true)]
async fn dm_102_hd_sc6_failed_server_does_not_hide_others() {
    let fixture = HostFixture::new(&[
        ("good", ScriptedServer::new(&["t"])),
        ("missing", ScriptedServer::starting(StartBehavior::NotFound)),
        ("silent", ScriptedServer::starting(StartBehavior::Silent)),
        ("unlisted", ScriptedServer::new(&["t"])),
    ]);
    fixture.peer("unlisted").failing_methods.lock().unwrap().push("tools/list");
    fixture.apply(["good", "missing", "silent", "unlisted"].map(configured_server).to_vec()).await;
    // The good server does not wait for the startup timeout (60 s) of the silent one.
    fixture.wait_for_summary("good:ready missing:failed silent:starting unlisted:failed | good__t").await;
    fixture.host.wait_until_ready().await;
    assert_eq!(fixture.summary(), "good:ready missing:failed silent:failed unlisted:failed | good__t");

    let failures = [
        (
            "missing",
            "MCPConnectionError: server 'missing' (npx): the server could not be started: the command was not found",
        ),
        (
            "silent",
            "MCPTimeoutError: server 'silent' (npx): the server is silent: it sent no response within 60 s",
        ),
        (
            "unlisted",
            "MCPProtocolError: server 'unlisted' (npx): the server responded with an error: out of order (code -1)",
        ),
        ("good", ""),
    ];
    for (id, want) in failures {
        assert_eq!(fixture.failure(id), want);
    }
    assert_eq!(fixture.host.snapshot().problems.len(), 3);
    for id in ["silent", "unlisted"] {
        assert_eq!(fixture.peer(id).open(), 0, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn rpt_481_other_tasks_run_between_the_starts_of_many_servers() {
    const SERVERS: usize = 100;
    let (server, dialed) = (ScriptedServer::new(&["t"]), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&dialed);
    let dialer: Dialer = Arc::new(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(server.dial())
    });
    let host = Host::with_dialer(HostOptions::default(), dialer);
    // The most starts between two turns of another task.
    let most = tokio::spawn(async move {
        let (mut seen, mut most) = (0, 0);
        while seen < SERVERS {
            tokio::task::yield_now().await;
            let now = dialed.load(Ordering::Relaxed);
            (seen, most) = (now, most.max(now - seen));
        }
        most
    });
    let servers = (0..SERVERS).map(|number| configured_server(&format!("s{number}")));
    host.apply(DesiredServers::new(servers.collect())).await;
    assert_eq!(most.await.unwrap(), 1);
    host.wait_until_ready().await;
    assert_eq!(host.snapshot().catalog.tools().len(), SERVERS);
}

#[tokio::test(start_paused = true)]
async fn hd_116_failure_has_the_typed_error_as_its_source() {
    let mut options = HostOptions::default();
    options.supervision = Supervision::Off;
    let peers = [
        ("good", ScriptedServer::new(&["t"])),
        ("missing", ScriptedServer::starting(StartBehavior::NotFound)),
    ];
    let fixture = HostFixture::with(&peers, options).started().await;
    let snapshot = fixture.host.snapshot();
    let error = snapshot.servers.iter().find_map(|status| status.error.as_ref()).unwrap();
    let Some(ConnectError::Disconnected(ended)) = error.connect_error.as_deref() else { panic!("{error:?}") };
    assert_eq!(ended.reason, DisconnectReason::NotStarted(StartError::CommandNotFound));
    assert_eq!(error.message, format!("server 'missing' (npx): the server could not be started: {ended}"));
    assert_eq!(error.detail(), ended.to_string());
}

#[tokio::test(start_paused = true)]
async fn hd_135_server_that_does_not_list_in_time_fails() {
    let fixture = HostFixture::new(&[("a", ScriptedServer::new(&["t"]))]);
    fixture.peer("a").silent_methods.lock().unwrap().push("tools/list");
    fixture.apply(vec![configured_server("a")]).await;
    fixture.host.wait_until_ready().await;
    let failure = fixture.failure("a");
    let want = "MCPTimeoutError: server 'a' (npx): ";
    assert!(failure.starts_with(want), "{failure}");
    assert_eq!(fixture.peer("a").open(), 0);
}

#[tokio::test(start_paused = true)]
async fn hd_029_undiscovered_lists_are_not_requested() {
    let fixture = HostFixture::new(&[("a", ScriptedServer::new(&["t"]))]);
    let mut unloaded = configured_server("a");
    unloaded.spec.discovery.tools = false;
    fixture.apply(vec![unloaded]).await;
    fixture.host.wait_until_ready().await;
    assert_eq!(fixture.summary(), "a:ready |");
    assert_eq!(fixture.peer("a").count("tools/list"), 0);
}

#[tokio::test(start_paused = true)]
async fn hd_115_many_list_changes_are_coalesced_into_one_read() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    let peer = fixture.peer("a");
    peer.set_tools(&["t", "u"]);
    for _ in 0..20 {
        peer.announce();
        tokio::time::advance(std::time::Duration::from_millis(5)).await;
    }
    fixture.wait_for_summary("a:ready | a__t a__u").await;
    assert_eq!(peer.count("tools/list"), 2);
    assert_eq!(fixture.host.snapshot().generation, 3);

    // If a list cannot be read, the old list is kept, and a problem is published until a read succeeds.
    peer.failing_methods.lock().unwrap().push("tools/list");
    peer.announce();
    let mut published = fixture.host.subscribe();
    published.wait_for(|it| !it.problems.is_empty()).await.unwrap();
    assert_eq!(fixture.summary(), "a:ready | a__t a__u");
    let problem = &fixture.host.snapshot().problems[0].problem;
    assert_eq!(
        problem.message,
        "its tools could not be listed: MCPProtocolError: server 'a' (npx): the server responded with an error: out of \
         order (code -1)"
    );
    peer.failing_methods.lock().unwrap().clear();
    peer.set_tools(&["v"]);
    peer.announce();
    fixture.wait_for_summary("a:ready | a__v").await;
    assert!(fixture.host.snapshot().problems.is_empty());
}

#[tokio::test(start_paused = true)]
async fn hd_117_server_exit_removes_its_tools_only() {
    let fixture =
        HostFixture::running(&[("a", ScriptedServer::new(&["t"])), ("b", ScriptedServer::new(&["t"]))]).await;
    fixture.peer("a").disconnect();
    fixture.wait_for_summary("a:failed b:ready | b__t").await;
    let lost = "MCPConnectionError: server 'a' (npx): the server is no longer available: its process ended with exit \
                status 3; its standard error ended with: out of memory";
    assert_eq!(fixture.failure("a"), lost);
    let result = fixture.call("a__t", "{}").await;
    let error = result.error.unwrap();
    let want = lost.replace("MCPConnectionError: ", "Tool 'a__t' is not available: ");
    assert_eq!(error.message, want);
    assert!(fixture.call("b__t", "{}").await.success);
}

#[tokio::test]
async fn hd_116_missing_command_is_named() {
    let host = Host::start(HostOptions::default());
    let mut missing = configured_server("a");
    missing.endpoint = Endpoint::Stdio(StdioEndpoint::new("no-such-program-anywhere"));
    host.apply(DesiredServers::new(vec![missing])).await;
    host.wait_until_ready().await;
    let failure = host.snapshot().servers[0].error.clone().unwrap();
    assert_eq!(
        failure.to_string(),
        "MCPConnectionError: server 'a' (no-such-program-anywhere): the server could not be started: the command was \
         not found"
    );
    assert!(failure.help.is_some());
    host.shutdown().await;
}

#[tokio::test]
async fn command_mcp_host_is_the_current_executable() {
    // Any program that exits at once will do: the test checks only that it is found.
    let own_executable = Some("/bin/true".into());
    let host = Host::start({
        let mut res = HostOptions::default();
        res.processes.own_executable = own_executable;
        res
    });
    let mut own = configured_server("a");
    own.endpoint = Endpoint::Stdio(StdioEndpoint::new("mcp-host"));
    host.apply(DesiredServers::new(vec![own])).await;
    host.wait_until_ready().await;
    let failure = host.snapshot().servers[0].error.clone().unwrap().to_string();
    let want =
        "MCPConnectionError: server 'a' (mcp-host): the server could not be started: its process ended with";
    assert!(failure.starts_with(want), "{failure}");
    host.shutdown().await;
}
