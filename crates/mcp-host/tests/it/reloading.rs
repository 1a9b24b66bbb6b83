//! A new configuration affects only the servers that it changes.

use std::time::Duration;

use mcp_host::{DesiredServers, FailedServer, HostError};
use mcp_model::{ErrorKind, Transform};

use crate::peer::{Beginning, Peer};
use crate::world::{World, changed, server, told};

#[tokio::test(start_paused = true)]
async fn dm_110_dm_100_unchanged_servers_keep_their_connection() {
    let world =
        World::running(&[("a", Peer::new(&["t"])), ("b", Peer::new(&["t"])), ("c", Peer::new(&["t"]))]).await;
    let mut renamed = server("b");
    renamed.spec.exposure.tools.transforms.push(Transform::Suffix("2".into()));
    world.apply(vec![server("a"), renamed]).await;
    assert_eq!(world.seen(), "a:ready b:ready | a__t b__t2");
    assert_eq!((world.peer("a").count("connect"), world.peer("b").count("connect")), (1, 1));
    // A server that was removed from the configuration ends.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(world.peer("c").open(), 0);
    assert!(world.call("b__t2", "{}").await.success);
}

#[tokio::test(start_paused = true)]
async fn dm_101_dm_104_a_changed_server_is_replaced_while_its_calls_go_on() {
    let world = World::running(&[("a", Peer::new(&["slow", "echo"]))]).await;
    let slow = world.call("slow", "{}");
    let rest = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        world.apply(vec![changed(server("a"))]).await;
        world.host.ready().await;
        assert_eq!(world.seen(), "a:ready | a__slow a__echo");
        assert_eq!(world.peer("a").open(), 2);
        assert_eq!(told(&world.call("echo", "{}").await), "{}");
        world.peer("a").release.notify_one();
    };
    let (slow, ()) = tokio::join!(slow, rest);
    assert_eq!(told(&slow), "at last");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(world.peer("a").open(), 1);
}

#[tokio::test(start_paused = true)]
async fn dm_104_a_call_that_does_not_end_is_not_waited_for_longer_than_the_grace() {
    let world = World::running(&[("a", Peer::new(&["hang"]))]).await;
    let begun = tokio::time::Instant::now();
    let (hang, ()) = tokio::join!(world.call("hang", "{}"), async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        world.apply(Vec::new()).await;
    });
    assert_eq!(
        told(&hang),
        "MCPConnectionError: server 'a' (npx): the server is no longer available: it was stopped; it is not known \
         whether the call ran"
    );
    assert!(begun.elapsed() >= Duration::from_secs(5) && begun.elapsed() < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn dm_105_what_cannot_be_replaced_stays() {
    let world = World::running(&[("a", Peer::new(&["t"]))]).await;
    *world.peer("a").beginning.lock().unwrap() = Beginning::NotFound;
    world.apply(vec![changed(server("a"))]).await;
    world.host.ready().await;
    assert_eq!(world.seen(), "a:ready | a__t");
    assert!(world.failure("a").contains("the command was not found"));
    assert!(world.call("a__t", "{}").await.success);

    // The same when the new entry is invalid.
    let failure = HostError { kind: ErrorKind::McpConfig, message: "bad".into(), help: None };
    let failed = vec![FailedServer { id: "a".into(), error: failure }];
    world.host.apply(DesiredServers { servers: Vec::new(), failed }).await;
    assert_eq!(world.seen(), "a:ready | a__t");
    assert_eq!(world.failure("a"), "MCPConfigError: bad");
    assert_eq!(world.peer("a").count("connect"), 1);
}

#[tokio::test(start_paused = true)]
async fn dm_101_a_start_that_is_not_wanted_any_more_leaves_nothing() {
    let world = World::new(&[("a", Peer::beginning(Beginning::Silent))]);
    world.apply(vec![server("a")]).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(world.peer("a").open(), 1);
    *world.peer("a").beginning.lock().unwrap() = Beginning::Well;
    world.apply(vec![changed(server("a"))]).await;
    world.host.ready().await;
    assert_eq!(world.seen(), "a:ready |");
    assert_eq!((world.peer("a").count("connect"), world.peer("a").open()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn generations_grow_and_older_ones_stand() {
    let world = World::running(&[("a", Peer::new(&["t"]))]).await;
    let older = world.host.snapshot();
    world.peer("a").set_tools(&["u"]);
    world.peer("a").announce();
    world.until("a:ready | a__u").await;
    assert_eq!(world.host.snapshot().generation, older.generation + 1);
    assert_eq!(older.catalog.tools()[0].name.as_str(), "a__t");
    // Applying the same configuration again does not change the catalog.
    let hash = world.host.snapshot().catalog.hash();
    world.apply(vec![server("a")]).await;
    assert_eq!(world.host.snapshot().catalog.hash(), hash);
}

#[tokio::test(start_paused = true)]
async fn dm_107_dm_124_a_view_that_names_a_toolset_which_is_not_there_is_a_problem_until_it_is() {
    use mcp_registry::{Selection, ViewFilter};

    let world = World::running(&[("a", Peer::new(&["t"])), ("b", Peer::new(&["t"]))]).await;
    let view = |names: &[&str]| ViewFilter {
        toolsets: Selection::Patterns(names.iter().map(|it| (*it).to_owned()).collect()),
        ..ViewFilter::default()
    };
    let problems = || {
        let published = world.host.snapshot();
        published
            .problems
            .iter()
            .map(|it| format!("{} {}", it.problem.severity, it.problem.message))
            .collect::<Vec<String>>()
    };
    let none: Vec<String> = Vec::new();
    world.host.set_views(vec![view(&["a", "b"]), view(&["b*"])]).await;
    assert_eq!(problems(), none);
    world.apply(vec![server("a")]).await;
    assert_eq!(problems(), ["warning Toolset not found: b"]);
    // One problem per toolset, however many views name it.
    world.host.set_views(vec![view(&["a", "b"]), view(&["b", "c"])]).await;
    assert_eq!(problems(), ["warning Toolset not found: b", "warning Toolset not found: c"]);
    world.apply(vec![server("a"), server("b")]).await;
    world.host.ready().await;
    assert_eq!(problems(), ["warning Toolset not found: c"]);
    world.host.set_views(Vec::new()).await;
    assert_eq!(problems(), none);
}
