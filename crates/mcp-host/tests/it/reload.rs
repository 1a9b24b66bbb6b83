//! A new configuration affects only the servers that it changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ErrorKind, NameTransform, RawJson};
use mcp_host_runtime::{DesiredServers, DialogId, FailedServer, HostError, ToolCall};
use mcp_testkit::random::Random;
use mcp_testkit::servers::configured_server;
use tokio::task::JoinSet;

use crate::fixture::{HostFixture, changed, short_drain, text_or_error};
use crate::leases::leased;
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
    renamed.spec.exposure.tools.transforms.push(NameTransform::Suffix("2".into()));
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
        fixture.host.wait_until_ready().await;
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

/// Calls one of three servers until the reloads are over. Returns the number of calls.
async fn call_until(fixture: Arc<HostFixture>, number: u64, is_over: Arc<AtomicBool>) -> usize {
    let dialog = fixture.host.dialog(DialogId::new(format!("client {number}")));
    let name = ["a__sleep", "b__sleep", "a__sleep", "c__sleep"][number as usize % 4];
    let mut random = Random::new(number + 1);
    let mut calls = 0;
    while !is_over.load(Ordering::Relaxed) {
        let ms = 1_000 + random.below(29_000);
        let arguments = RawJson::parse(format!(r#"{{"ms":{ms}}}"#).into()).unwrap();
        let result = text_or_error(&dialog.call(ToolCall::new(name, arguments)).await);
        if name == "c__sleep" && result.contains("not found") {
            // There is no such server now.
            tokio::time::sleep(Duration::from_millis(500)).await;
        } else {
            assert_eq!(result, format!("slept {ms} ms"), "{name}");
        }
        calls += 1;
    }
    calls
}

/// 16 clients call a shared server, a leased one, and one that comes and goes, for 1 to 30 s each, during 50 reloads.
#[tokio::test(start_paused = true)]
async fn dm_104_no_call_ends_early_in_fifty_reloads() {
    let peer = || ScriptedServer::new(&["sleep"]);
    let fixture = HostFixture::new(&[("a", peer()), ("b", peer()), ("c", peer())]);
    let servers = |reload: u64| {
        let version =
            |server: ResolvedServer| if reload.is_multiple_of(2) { server } else { changed(server) };
        let mut res = vec![version(configured_server("a")), version(leased("b"))];
        if reload % 4 < 2 {
            res.push(configured_server("c"));
        }
        res
    };
    fixture.apply(servers(0)).await;
    fixture.host.wait_until_ready().await;
    let fixture = Arc::new(fixture);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for number in 0..16 {
        clients.spawn(call_until(Arc::clone(&fixture), number, Arc::clone(&is_over)));
    }
    for reload in 1..=50 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        fixture.apply(servers(reload)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let calls = clients.join_all().await;
    assert!(calls.iter().all(|it| *it > 1), "{calls:?}");
    // The replaced instances ended with their last calls.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(fixture.peer("a").open() == 1 && fixture.peer("b").open() == 0, "{}", fixture.peer("b").open());
    assert!(fixture.peer("a").count("connect") > 40, "{}", fixture.peer("a").count("connect"));
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_shutdown_ends_a_drain() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["hang"]))]).await;
    let pinned = fixture.host.pin();
    let (hang, took) = tokio::join!(fixture.call("hang", "{}"), async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        fixture.apply(Vec::new()).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        let begun = tokio::time::Instant::now();
        fixture.host.shutdown().await;
        begun.elapsed()
    });
    assert!(!hang.success);
    // The grace period of a shutdown, not the rest of the drain period.
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(7), "{took:?}");
    drop(pinned);
}

#[tokio::test(start_paused = true)]
async fn dm_104_drain_is_limited() {
    let fixture = HostFixture::with(&[("a", ScriptedServer::new(&["hang"]))], short_drain()).started().await;
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
    assert!(begun.elapsed() >= Duration::from_secs(20) && begun.elapsed() < Duration::from_secs(21));
}

#[tokio::test(start_paused = true)]
async fn dm_105_instance_is_kept_if_its_replacement_fails() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    *fixture.peer("a").start_behavior.lock().unwrap() = StartBehavior::NotFound;
    fixture.apply(vec![changed(configured_server("a"))]).await;
    fixture.host.wait_until_ready().await;
    assert_eq!(fixture.summary(), "a:ready | a__t");
    assert!(fixture.failure("a").contains("the command was not found"));
    assert!(fixture.call("a__t", "{}").await.success);

    // The same when the new entry is invalid.
    let failure = HostError::new(ErrorKind::McpConfig, "bad");
    let failed = vec![FailedServer { id: "a".into(), error: failure }];
    fixture.host.apply(DesiredServers::default().with_failed(failed)).await;
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
    fixture.host.wait_until_ready().await;
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
    use mcp_host_registry::{NamedView, Selection, ViewFilter};

    let fixture =
        HostFixture::running(&[("a", ScriptedServer::new(&["t"])), ("b", ScriptedServer::new(&["t"]))]).await;
    let view = |names: &[&str]| {
        let toolsets = Selection::Patterns(names.iter().map(|it| (*it).to_owned()).collect());
        let filters = vec![ViewFilter { toolsets, ..ViewFilter::default() }];
        NamedView { name: "the token `ann`".to_owned(), filters }
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
    fixture.host.wait_until_ready().await;
    assert_eq!(problems(), ["warning Toolset not found: c"]);
    fixture.host.set_views(Vec::new()).await;
    assert_eq!(problems(), none);
}
