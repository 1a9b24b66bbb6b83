//! A panic of the supervisor task is reported as a failure of the host. A tracing subscriber causes the panic.

use std::fmt::Debug;
use std::time::Duration;

use mcp_host_model::ErrorKind;
use mcp_host_runtime::{DesiredServers, FailedServer, HostError};
use mcp_testkit::servers::configured_server;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fixture::{HostFixture, changed, set_subscriber, text_or_error};
use crate::scripted_server::ScriptedServer;

/// A subscriber that panics when the supervisor task logs that it applies a configuration.
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
async fn panic_of_the_supervisor_task_is_reported() {
    let fixture =
        HostFixture::running(&[("a", ScriptedServer::new(&["t"])), ("b", ScriptedServer::new(&["t"]))]).await;
    let generation = fixture.host.snapshot().generation;
    let sabotage = set_subscriber(Saboteur);
    let own = HostError::new(ErrorKind::McpConfig, "bad");
    let failed = vec![FailedServer { id: "c".into(), error: own }];
    fixture
        .host
        .apply(
            DesiredServers::new(vec![changed(configured_server("a")), configured_server("b")])
                .with_failed(failed),
        )
        .await;
    drop(sabotage);
    fixture.host.wait_until_ready().await;

    assert_eq!(fixture.summary(), "a:failed b:failed c:failed |");
    let fault = "MCPConnectionError: the host itself has failed; this is a bug in mcp-host";
    assert_eq!(
        ["a", "b", "c"].map(|it| fixture.failure(it)),
        [fault.to_owned(), fault.to_owned(), "MCPConfigError: bad".to_owned()]
    );
    let published = fixture.host.snapshot();
    assert_eq!(published.generation, generation + 1);
    let [problem] = &published.problems[..] else { panic!("{:?}", published.problems) };
    assert_eq!(problem.problem.id, "mcp/workspace_config_error");
    assert!(fault.ends_with(&problem.problem.message));
    for name in ["a__t", "t", "other"] {
        assert_eq!(text_or_error(&fixture.call(name, "{}").await), fault);
    }

    // All servers have ended, and no later operation blocks.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((fixture.peer("a").open(), fixture.peer("b").open()), (0, 0));
    fixture.apply(vec![configured_server("a")]).await;
    fixture.host.wait_until_ready().await;
    // Servers that are applied later are listed with the same failure.
    assert_eq!((fixture.summary().as_str(), fixture.failure("a").as_str()), ("a:failed |", fault));
    assert_eq!(text_or_error(&fixture.call("a__t", "{}").await), fault);
    fixture.host.shutdown().await;
    assert_eq!(fixture.host.snapshot().generation, generation + 2);
}

#[tokio::test(start_paused = true)]
async fn dropped_host_is_not_reported_as_failed() {
    let fixture = HostFixture::running(&[("a", ScriptedServer::new(&["t"]))]).await;
    let published = fixture.host.subscribe();
    let before = published.borrow().generation;
    drop(fixture);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let last = published.borrow().clone();
    let states: Vec<_> = last.servers.iter().map(|server| server.state.as_str()).collect();
    assert_eq!((last.generation, states, last.problems.len()), (before + 1, vec!["stopped"], 0));
    assert!(published.has_changed().is_err());
}
