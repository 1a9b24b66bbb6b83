//! Servers start concurrently, and a failed server does not affect the others.

use std::sync::{Arc, Mutex};

use mcp_host::{
    ConnectFailure, ConnectionOptions, DesiredServers, Host, HostOptions, OnConnectFailure, ProcessOptions,
    Supervision,
};
use mcp_model::{Endpoint, ErrorKind, StdioEndpoint};

use crate::peer::{Beginning, Peer};
use crate::world::{World, server};

#[tokio::test(start_paused = true)]
async fn dm_102_hd_sc6_one_bad_server_never_hides_the_others() {
    let world = World::new(&[
        ("good", Peer::new(&["t"])),
        ("missing", Peer::beginning(Beginning::NotFound)),
        ("silent", Peer::beginning(Beginning::Silent)),
        ("unlisted", Peer::new(&["t"])),
    ]);
    world.peer("unlisted").broken.lock().unwrap().push("tools/list");
    world.apply(["good", "missing", "silent", "unlisted"].map(server).to_vec()).await;
    // The good server does not wait for the startup timeout (60 s) of the silent one.
    world.until("good:ready missing:failed silent:starting unlisted:failed | good__t").await;
    world.host.ready().await;
    assert_eq!(world.seen(), "good:ready missing:failed silent:failed unlisted:failed | good__t");

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
        assert_eq!(world.failure(id), want);
    }
    assert_eq!(world.host.snapshot().problems.len(), 3);
    for id in ["silent", "unlisted"] {
        assert_eq!(world.peer(id).open(), 0, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn hd_116_whoever_wants_it_hears_the_error_that_a_failure_is_made_from() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let not_connected: OnConnectFailure = Arc::new(move |it| {
        let ConnectFailure { server, error: failure, cause: error } = it;
        hears.lock().unwrap().push((server.to_string(), failure.clone(), error.kind()));
    });
    let options = HostOptions {
        connections: ConnectionOptions {
            on_connect_failure: Some(not_connected),
            ..ConnectionOptions::default()
        },
        supervision: Supervision::Off,
        ..HostOptions::default()
    };
    let peers = [("good", Peer::new(&["t"])), ("missing", Peer::beginning(Beginning::NotFound))];
    let world = World::with(&peers, options).started().await;
    let heard = heard.lock().unwrap();
    let [(server, failure, kind)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!((server.as_str(), *kind), ("missing", ErrorKind::Connection));
    assert_eq!(failure.to_string(), world.failure("missing"));
}

#[tokio::test(start_paused = true)]
async fn hd_135_a_server_that_lists_nothing_in_time_is_given_up() {
    let world = World::new(&[("a", Peer::new(&["t"]))]);
    world.peer("a").silent.lock().unwrap().push("tools/list");
    world.apply(vec![server("a")]).await;
    world.host.ready().await;
    let failure = world.failure("a");
    let want = "MCPTimeoutError: server 'a' (npx): ";
    assert!(failure.starts_with(want), "{failure}");
    assert_eq!(world.peer("a").open(), 0);
}

#[tokio::test(start_paused = true)]
async fn hd_029_what_is_not_discovered_is_not_asked_for() {
    let world = World::new(&[("a", Peer::new(&["t"]))]);
    let mut unloaded = server("a");
    unloaded.spec.discovery.tools = false;
    world.apply(vec![unloaded]).await;
    world.host.ready().await;
    assert_eq!(world.seen(), "a:ready |");
    assert_eq!(world.peer("a").count("tools/list"), 0);
}

#[tokio::test(start_paused = true)]
async fn hd_115_a_storm_of_announcements_costs_one_reading() {
    let world = World::running(&[("a", Peer::new(&["t"]))]).await;
    let peer = world.peer("a");
    peer.set_tools(&["t", "u"]);
    for _ in 0..20 {
        peer.announce();
        tokio::time::advance(std::time::Duration::from_millis(5)).await;
    }
    world.until("a:ready | a__t a__u").await;
    assert_eq!(peer.count("tools/list"), 2);
    assert_eq!(world.host.snapshot().generation, 3);

    // If a list cannot be read, the old list is kept, and a problem is published until a read succeeds.
    peer.broken.lock().unwrap().push("tools/list");
    peer.announce();
    let mut published = world.host.subscribe();
    published.wait_for(|it| !it.problems.is_empty()).await.unwrap();
    assert_eq!(world.seen(), "a:ready | a__t a__u");
    let problem = &world.host.snapshot().problems[0].problem;
    assert_eq!(
        problem.message,
        "its tools could not be listed: MCPProtocolError: server 'a' (npx): the server responded with an error: out of \
         order (code -1)"
    );
    peer.broken.lock().unwrap().clear();
    peer.set_tools(&["v"]);
    peer.announce();
    world.until("a:ready | a__v").await;
    assert!(world.host.snapshot().problems.is_empty());
}

#[tokio::test(start_paused = true)]
async fn hd_117_a_server_that_dies_takes_its_own_tools_only() {
    let world = World::running(&[("a", Peer::new(&["t"])), ("b", Peer::new(&["t"]))]).await;
    world.peer("a").die();
    world.until("a:failed b:ready | b__t").await;
    let lost = "MCPConnectionError: server 'a' (npx): the server is no longer available: its process ended with exit \
                status 3; its standard error ended with: out of memory";
    assert_eq!(world.failure("a"), lost);
    let result = world.call("a__t", "{}").await;
    let error = result.error.unwrap();
    let want = lost.replace("MCPConnectionError: ", "Tool 'a__t' is not available: ");
    assert_eq!(error.message, want);
    assert!(world.call("b__t", "{}").await.success);
}

#[tokio::test]
async fn hd_116_a_command_that_is_missing_is_named() {
    let host = Host::start(HostOptions::default());
    let mut missing = server("a");
    missing.endpoint = Endpoint::Stdio(StdioEndpoint::new("no-such-program-anywhere"));
    host.apply(DesiredServers { servers: vec![missing], failed: Vec::new() }).await;
    host.ready().await;
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
async fn the_command_mcp_host_is_this_executable() {
    // Any program that exits at once will do: the test checks only that it is found.
    let own_executable = Some("/bin/true".into());
    let host = Host::start(HostOptions {
        processes: ProcessOptions { own_executable, ..ProcessOptions::default() },
        ..HostOptions::default()
    });
    let mut own = server("a");
    own.endpoint = Endpoint::Stdio(StdioEndpoint::new("mcp-host"));
    host.apply(DesiredServers { servers: vec![own], failed: Vec::new() }).await;
    host.ready().await;
    let failure = host.snapshot().servers[0].error.clone().unwrap().to_string();
    let want =
        "MCPConnectionError: server 'a' (mcp-host): the server could not be started: its process ended with";
    assert!(failure.starts_with(want), "{failure}");
    host.shutdown().await;
}
