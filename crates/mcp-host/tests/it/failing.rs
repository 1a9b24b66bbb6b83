//! A panic of the committer is reported as a failure of the host. A tracing subscriber causes the panic.

use std::fmt::Debug;
use std::time::Duration;

use mcp_host::{DesiredServers, FailedServer, HostError};
use mcp_model::ErrorKind;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::peer::Peer;
use crate::world::{World, changed, server, told};

/// A subscriber that panics when the committer logs that it applies a configuration.
struct Saboteur;

impl Subscriber for Saboteur {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Message);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message;

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let is_moment = field.name() == "message" && format!("{value:?}") == "configuration applied";
        assert!(!is_moment, "this is the defect");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_fails_says_so() {
    let world = World::running(&[("a", Peer::new(&["t"])), ("b", Peer::new(&["t"]))]).await;
    let generation = world.host.snapshot().generation;
    let sabotage = tracing::subscriber::set_default(Saboteur);
    // The thread of another test may just cache that no subscriber wants the committer's event. Rebuilding the
    // cache several times overrides that.
    for _ in 0..100 {
        tracing::callsite::rebuild_interest_cache();
        std::thread::yield_now();
    }
    let own = HostError { kind: ErrorKind::McpConfig, message: "bad".into(), help: None };
    let failed = vec![FailedServer { id: "c".into(), error: own }];
    world.host.apply(DesiredServers { servers: vec![changed(server("a")), server("b")], failed }).await;
    drop(sabotage);
    world.host.ready().await;

    assert_eq!(world.seen(), "a:failed b:failed c:failed |");
    let fault = "MCPConnectionError: the host itself has failed; this is a bug in mcp-host";
    assert_eq!(
        ["a", "b", "c"].map(|it| world.failure(it)),
        [fault.to_owned(), fault.to_owned(), "MCPConfigError: bad".to_owned()]
    );
    let published = world.host.snapshot();
    assert_eq!(published.generation, generation + 1);
    let [problem] = &published.problems[..] else { panic!("{:?}", published.problems) };
    assert_eq!(problem.problem.id, "mcp/workspace_config_error");
    assert!(fault.ends_with(&problem.problem.message));
    for name in ["a__t", "t", "other"] {
        assert_eq!(told(&world.call(name, "{}").await), fault);
    }

    // All servers have ended, and no later operation blocks.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((world.peer("a").open(), world.peer("b").open()), (0, 0));
    world.apply(vec![server("a")]).await;
    world.host.ready().await;
    // Servers that are applied later are listed with the same failure.
    assert_eq!((world.seen().as_str(), world.failure("a").as_str()), ("a:failed |", fault));
    assert_eq!(told(&world.call("a__t", "{}").await), fault);
    world.host.shutdown().await;
    assert_eq!(world.host.snapshot().generation, generation + 2);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_dropped_has_not_failed() {
    let world = World::running(&[("a", Peer::new(&["t"]))]).await;
    let published = world.host.subscribe();
    let before = published.borrow().generation;
    drop(world);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let last = published.borrow().clone();
    let states: Vec<_> = last.servers.iter().map(|it| it.state.as_str()).collect();
    assert_eq!((last.generation, states, last.problems.len()), (before + 1, vec!["stopped"], 0));
    assert!(published.has_changed().is_err());
}
