//! A new configuration affects only the servers that it changes.

use std::time::Duration;

use mcp_host::{DesiredServers, FailedServer, HostError};
use mcp_model::{ErrorKind, Transform};
use mcp_testkit::servers::configured_server;

use crate::fixture::{HostFixture, changed, text_or_error};
use crate::scripted_server::{ScriptedServer, StartBehavior};

#[tokio::test(start_paused = true)]
async fn dm_110_dm_100_unchanged_servers_keep_their_connection() {
    let fixture = HostFixture::running(&[
        ("a", ScriptedServer::new(&["t"])),
        ("b", ScriptedServer::new(&["t"])),
        ("c", ScriptedServer::new(&["t"])),
    ])
    .await;
    let mut renamed = configured_server("b");
    renamed.spec.exposure.tools.transforms.push(Transform::Suffix("2".into()));
    fixture.apply(vec![configured_server("a"), renamed]).await;
    assert_eq!(fixture.summary(), "a:ready b:ready | a__t b__t2");
    assert_eq!((fixture.peer("a").count("connect"), fixture.peer("b").count("connect")), (1, 1));
    // A server that was removed from the configuration ends.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(fixture.peer("c").open(), 0);
    assert!(fixture.call("b__t2", "{}").await.success);
}

#[tokio::test(start_paused = true)]
async fn dm_101_dm_104_changed_server_is_replaced_while_its_calls_continue() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["slow", "echo"]))]).await;
    let slow = fixture.call("slow", "{}");
    let rest = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        fixture.apply(vec![changed(configured_server("a"))]).await;
        fixture.host.ready().await;
        assert_eq!(fixture.summary(), "a:ready | a__slow a__echo");
        assert_eq!(fixture.peer("a").open(), 2);
        assert_eq!(text_or_error(&fixture.call("echo", "{}").await), "{}");
        fixture.peer("a").release.notify_one();
    };
    let (slow, ()) = tokio::join!(slow, rest);
    assert_eq!(text_or_error(&slow), "at last");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(fixture.peer("a").open(), 1);
}

#[tokio::test(start_paused = true)]
async fn dm_104_drain_ends_after_the_grace_period() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["hang"]))]).await;
    let begun = tokio::time::Instant::now();
    let (hang, ()) = tokio::join!(fixture.call("hang", "{}"), async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        fixture.apply(Vec::new()).await;
    });
    assert_eq!(
        text_or_error(&hang),
        "MCPConnectionError: server 'a' (npx): the server is no longer available: it was stopped; it is not known \
         whether the call ran"
    );
    assert!(begun.elapsed() >= Duration::from_secs(5) && begun.elapsed() < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn dm_105_instance_is_kept_if_its_replacement_fails() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    *fixture.peer("a").start_behavior.lock().unwrap() = StartBehavior::NotFound;
    fixture.apply(vec![changed(configured_server("a"))]).await;
    fixture.host.ready().await;
    assert_eq!(fixture.summary(), "a:ready | a__t");
    assert!(fixture.failure("a").contains("the command was not found"));
    assert!(fixture.call("a__t", "{}").await.success);

    // The same when the new entry is invalid.
    let failure = HostError { kind: ErrorKind::McpConfig, message: "bad".into(), help: None };
    let failed = vec![FailedServer { id: "a".into(), error: failure }];
    fixture.host.apply(DesiredServers { servers: Vec::new(), failed }).await;
    assert_eq!(fixture.summary(), "a:ready | a__t");
    assert_eq!(fixture.failure("a"), "MCPConfigError: bad");
    assert_eq!(fixture.peer("a").count("connect"), 1);
}

#[tokio::test(start_paused = true)]
async fn dm_101_obsolete_start_leaves_no_instance() {
    let fixture = HostFixture::new(&[("a", ScriptedServer::starting(StartBehavior::Silent))]);
    fixture.apply(vec![configured_server("a")]).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(fixture.peer("a").open(), 1);
    *fixture.peer("a").start_behavior.lock().unwrap() = StartBehavior::Works;
    fixture.apply(vec![changed(configured_server("a"))]).await;
    fixture.host.ready().await;
    assert_eq!(fixture.summary(), "a:ready |");
    assert_eq!((fixture.peer("a").count("connect"), fixture.peer("a").open()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn generations_increase_and_old_snapshots_are_unchanged() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    let older = fixture.host.snapshot();
    fixture.peer("a").set_tools(&["u"]);
    fixture.peer("a").announce();
    fixture.wait_for_summary("a:ready | a__u").await;
    assert_eq!(fixture.host.snapshot().generation, older.generation + 1);
    assert_eq!(older.catalog.tools()[0].name.as_str(), "a__t");
    // Applying the same configuration again does not change the catalog.
    let hash = fixture.host.snapshot().catalog.hash();
    fixture.apply(vec![configured_server("a")]).await;
    assert_eq!(fixture.host.snapshot().catalog.hash(), hash);
}

#[tokio::test(start_paused = true)]
async fn dm_107_dm_124_missing_toolset_of_a_view_is_a_problem_until_it_exists() {
    use mcp_registry::{Selection, ViewFilter};

    let fixture =
        HostFixture::running(&[("a", ScriptedServer::new(&["t"])), ("b", ScriptedServer::new(&["t"]))]).await;
    let view = |names: &[&str]| ViewFilter {
        toolsets: Selection::Patterns(names.iter().map(|it| (*it).to_owned()).collect()),
        ..ViewFilter::default()
    };
    let problems = || {
        let published = fixture.host.snapshot();
        published
            .problems
            .iter()
            .map(|it| format!("{} {}", it.problem.severity, it.problem.message))
            .collect::<Vec<String>>()
    };
    let none: Vec<String> = Vec::new();
    fixture.host.set_views(vec![view(&["a", "b"]), view(&["b*"])]).await;
    assert_eq!(problems(), none);
    fixture.apply(vec![configured_server("a")]).await;
    assert_eq!(problems(), ["warning Toolset not found: b"]);
    // One problem per toolset, however many views name it.
    fixture.host.set_views(vec![view(&["a", "b"]), view(&["b", "c"])]).await;
    assert_eq!(problems(), ["warning Toolset not found: b", "warning Toolset not found: c"]);
    fixture.apply(vec![configured_server("a"), configured_server("b")]).await;
    fixture.host.ready().await;
    assert_eq!(problems(), ["warning Toolset not found: c"]);
    fixture.host.set_views(Vec::new()).await;
    assert_eq!(problems(), none);
}
