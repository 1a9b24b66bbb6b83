//! Repeated reads of lists: retries after failures, and limits for servers that announce changes too often.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use crate::peer::Peer;
use crate::world::{World, server};

#[tokio::test(start_paused = true)]
async fn hd_115_a_list_that_could_not_be_read_is_tried_again() {
    let world = World::running(&[("a", Peer::new(&["t"]))]).await;
    let peer = world.peer("a");
    peer.broken.lock().unwrap().push("tools/list");
    peer.announce();
    // Reads at 0, 1, 3, 7, 15, 31, 63 and 123 s. All of them fail.
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!(peer.count("tools/list"), 1 + 8);
    assert_eq!((world.host.snapshot().generation, world.seen().as_str()), (3, "a:ready | a__t"));
    assert_eq!(world.host.snapshot().problems.len(), 1);

    // The server works again but does not announce it: the retry finds out.
    peer.broken.lock().unwrap().clear();
    peer.set_tools(&["u"]);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(world.seen(), "a:ready | a__u");
    assert_eq!(world.host.snapshot().problems, []);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(peer.count("tools/list"), 1 + 8 + 1);
}

#[tokio::test(start_paused = true)]
async fn hd_115_prompts_that_could_not_be_read_at_first_are_tried_again_and_nothing_else_is() {
    let world = World::new(&[("a", Peer::new(&["t"]))]);
    let peer = world.peer("a");
    *peer.prompts.lock().unwrap() = Some(vec![json!({"name": "p"})]);
    peer.broken.lock().unwrap().push("prompts/list");
    world.apply(vec![server("a")]).await;
    world.host.ready().await;
    assert_eq!(world.host.snapshot().problems.len(), 1);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    peer.broken.lock().unwrap().clear();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let published = world.host.snapshot();
    assert_eq!(published.catalog.prompts().len(), 1);
    assert_eq!(published.problems, []);
    assert_eq!((peer.count("prompts/list"), peer.count("tools/list")), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn hd_115_lists_of_every_kind_are_read_again_also_by_servers_that_never_said_they_would_announce_it() {
    let world = World::new(&[("a", Peer::new(&["t"]))]);
    let peer = world.peer("a");
    *peer.prompts.lock().unwrap() = Some(vec![json!({"name": "p"})]);
    *peer.resources.lock().unwrap() = Some(vec![json!({"name": "r", "uri": "f:1"})]);
    world.apply(vec![server("a")]).await;
    world.host.ready().await;
    let counts = || ["tools/list", "prompts/list", "resources/list"].map(|it| world.peer("a").count(it));
    assert_eq!(counts(), [1, 1, 1]);
    let mut published = world.host.subscribe();
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
async fn hd_115_a_server_that_announces_whenever_it_is_read_is_read_less_and_less_often() {
    let peer = Peer::new(&["t"]);
    peer.restless.store(true, Ordering::Relaxed);
    let world = World::running(&[("a", peer)]).await;
    let generation = world.host.snapshot().generation;
    let mut published = world.host.subscribe();
    published.mark_unchanged();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let count = world.peer("a").count("tools/list");
    assert!((5..15).contains(&count), "{count}");
    assert_eq!(world.host.snapshot().generation, generation);
    assert!(!published.has_changed().unwrap());

    // A real change is still noticed.
    world.peer("a").set_tools(&["u"]);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(world.seen(), "a:ready | a__u");
}

#[tokio::test(start_paused = true)]
async fn what_a_server_says_is_repeated_within_bounds() {
    let world = World::new(&[("a", Peer::new(&["t"])), ("b", Peer::new(&["t"]))]);
    for (id, broken) in [("a", "tools/list"), ("b", "prompts/list")] {
        let peer = world.peer(id);
        *peer.prompts.lock().unwrap() = Some(Vec::new());
        *peer.complaint.lock().unwrap() = "é".repeat(100_000);
        peer.broken.lock().unwrap().push(broken);
    }
    let definition = json!({"name": "odd", "inputSchema": "é".repeat(100_000)});
    world.peer("b").tools.lock().unwrap().push(definition);
    world.apply(["a", "b"].map(server).to_vec()).await;
    world.host.ready().await;
    let failure = world.failure("a");
    assert!((2000..2200).contains(&failure.len()) && failure.ends_with('…'), "{}", failure.len());
    let published = world.host.snapshot();
    assert_eq!(published.problems.len(), 3);
    for it in &published.problems {
        assert!(it.problem.message.len() < 2300, "{}", it.problem.message.len());
    }
}
