//! Repeated reads of lists: retries after failures, and limits for servers that announce changes too often.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_testkit::servers::configured_server;
use serde_json::json;
use tokio::time::Instant;

use crate::fixture::HostFixture;
use crate::scripted_server::ScriptedServer;

#[tokio::test(start_paused = true)]
async fn hd_115_failed_list_read_is_retried() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    let peer = fixture.peer("a");
    peer.failing_methods.lock().unwrap().push("tools/list");
    peer.announce();
    // Reads at 0, 1, 3, 7, 15, 31, 63 and 123 s. All of them fail.
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!(peer.count("tools/list"), 1 + 8);
    assert_eq!((fixture.host.snapshot().generation, fixture.summary().as_str()), (3, "a:ready | a__t"));
    assert_eq!(fixture.host.snapshot().problems.len(), 1);

    // The server works again but does not announce it: the retry finds out.
    peer.failing_methods.lock().unwrap().clear();
    peer.set_tools(&["u"]);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(fixture.summary(), "a:ready | a__u");
    assert_eq!(fixture.host.snapshot().problems, []);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(peer.count("tools/list"), 1 + 8 + 1);
}

#[tokio::test(start_paused = true)]
async fn hd_115_only_the_failed_prompts_read_is_retried() {
    let fixture = HostFixture::new(&[("a", ScriptedServer::new(&["t"]))]);
    let peer = fixture.peer("a");
    *peer.prompts.lock().unwrap() = Some(vec![json!({"name": "p"})]);
    peer.failing_methods.lock().unwrap().push("prompts/list");
    fixture.apply(vec![configured_server("a")]).await;
    fixture.host.wait_until_ready().await;
    assert_eq!(fixture.host.snapshot().problems.len(), 1);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    peer.failing_methods.lock().unwrap().clear();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let published = fixture.host.snapshot();
    assert_eq!(published.catalog.prompts().len(), 1);
    assert_eq!(published.problems, []);
    assert_eq!((peer.count("prompts/list"), peer.count("tools/list")), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn hd_115_undeclared_list_changes_are_read_for_every_kind() {
    let fixture = HostFixture::new(&[("a", ScriptedServer::new(&["t"]))]);
    let peer = fixture.peer("a");
    *peer.prompts.lock().unwrap() = Some(vec![json!({"name": "p"})]);
    *peer.resources.lock().unwrap() = Some(vec![json!({"name": "r", "uri": "f:1"})]);
    fixture.apply(vec![configured_server("a")]).await;
    fixture.host.wait_until_ready().await;
    let counts = || ["tools/list", "prompts/list", "resources/list"].map(|it| fixture.peer("a").count(it));
    assert_eq!(counts(), [1, 1, 1]);
    let mut published = fixture.host.subscribe();
    peer.prompts.lock().unwrap().as_mut().unwrap().push(json!({"name": "q"}));
    peer.announce_list("prompts");
    let prompts = published.wait_for(|it| it.catalog.prompts().len() == 2).await.unwrap().generation;
    assert_eq!(counts(), [1, 2, 1]);
    peer.resources.lock().unwrap().as_mut().unwrap().clear();
    peer.announce_list("resources");
    let resources = published.wait_for(|it| it.catalog.resources().is_empty()).await.unwrap().generation;
    assert_eq!((counts(), resources), ([1, 2, 2], prompts + 1));
}

#[tokio::test(start_paused = true)]
async fn hd_115_reads_of_a_restless_server_back_off() {
    let peer = ScriptedServer::new(&["t"]);
    peer.announces_reads.store(true, Ordering::Relaxed);
    let fixture = HostFixture::running(&[("a", peer)]).await;
    let generation = fixture.host.snapshot().generation;
    let mut published = fixture.host.subscribe();
    published.mark_unchanged();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let count = fixture.peer("a").count("tools/list");
    assert!((5..15).contains(&count), "{count}");
    assert_eq!(fixture.host.snapshot().generation, generation);
    assert!(!published.has_changed().unwrap());

    // A real change is still noticed.
    fixture.peer("a").set_tools(&["u"]);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(fixture.summary(), "a:ready | a__u");
}

#[tokio::test(start_paused = true)]
async fn notifications_are_forwarded_within_bounds() {
    let fixture = HostFixture::new(&[("a", ScriptedServer::new(&["t"])), ("b", ScriptedServer::new(&["t"]))]);
    for (id, broken) in [("a", "tools/list"), ("b", "prompts/list")] {
        let peer = fixture.peer(id);
        *peer.prompts.lock().unwrap() = Some(Vec::new());
        *peer.error_message.lock().unwrap() = "é".repeat(100_000);
        peer.failing_methods.lock().unwrap().push(broken);
    }
    let definition = json!({"name": "odd", "inputSchema": "é".repeat(100_000)});
    fixture.peer("b").tools.lock().unwrap().push(definition);
    fixture.apply(["a", "b"].map(configured_server).to_vec()).await;
    fixture.host.wait_until_ready().await;
    let failure = fixture.failure("a");
    assert!((2000..2200).contains(&failure.len()) && failure.ends_with('…'), "{}", failure.len());
    let published = fixture.host.snapshot();
    assert_eq!(published.problems.len(), 3);
    for it in &published.problems {
        assert!(it.problem.message.len() < 2300, "{}", it.problem.message.len());
    }
}

// RPT-062
#[tokio::test(start_paused = true)]
async fn list_that_takes_long_delays_neither_the_start_nor_other_lists() {
    for (method, list) in [("resources/list", "resources"), ("prompts/list", "prompts")] {
        let fixture = HostFixture::new(&[("a", ScriptedServer::new(&["t"]))]);
        let peer = fixture.peer("a");
        *peer.prompts.lock().unwrap() = Some(vec![json!({"name": "p"})]);
        *peer.resources.lock().unwrap() = Some(vec![json!({"name": "r", "uri": "f:1"})]);
        peer.silent_methods.lock().unwrap().push(method);
        let begun = Instant::now();
        fixture.apply(vec![configured_server("a")]).await;
        fixture.host.wait_until_ready().await;
        assert!(begun.elapsed() <= Duration::from_millis(2100), "{:?}", begun.elapsed());
        assert_eq!(fixture.summary(), "a:ready | a__t");
        let message = fixture.host.snapshot().problems[0].problem.message.clone();
        assert!(message.contains(&format!("it has not listed its {list} after 2.0 s")), "{message}");
        // While the list is read again, another change is not delayed.
        tokio::time::sleep(Duration::from_secs(3)).await;
        peer.set_tools(&["u"]);
        peer.announce();
        let announced = Instant::now();
        fixture.wait_for_summary("a:ready | a__u").await;
        assert!(announced.elapsed() <= Duration::from_secs(2), "{:?}", announced.elapsed());
        // It is published when it arrives.
        peer.silent_methods.lock().unwrap().clear();
        let mut published = fixture.host.subscribe();
        let complete = published.wait_for(|snapshot| snapshot.problems.is_empty()).await.unwrap().clone();
        assert_eq!((complete.catalog.prompts().len(), complete.catalog.resources().len()), (1, 1));
    }
}

// RPT-067
#[tokio::test(start_paused = true)]
async fn server_without_capabilities_is_explained() {
    let peer = ScriptedServer::new(&["t"]);
    peer.declares_nothing.store(true, Ordering::Relaxed);
    let fixture = HostFixture::running(&[("a", peer)]).await;
    assert_eq!(fixture.summary(), "a:ready |");
    let message = fixture.host.snapshot().problems[0].problem.message.clone();
    assert!(message.starts_with("server 'a': it declares no capabilities in its handshake"), "{message}");
    let result = fixture
        .host
        .call(mcp_host_runtime::ToolCall::new("a__t", mcp_host_model::RawJson::empty_object()))
        .await;
    let error = result.error.unwrap().message;
    assert!(error.contains("Tool 'a__t' not found; server 'a': it declares no capabilities"), "{error}");
}
