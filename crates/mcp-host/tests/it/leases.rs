//! Servers that are not shared: each dialog leases its own instance, and a model can release it with a tool.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{CallResult, ErrorKind, RawJson, ServerId, Sharing};
use mcp_host_runtime::{AdminTools, Dialog, DialogId, HostOptions, LeasePolicy, Supervision, ToolCall};
use mcp_testkit::servers::configured_server;

use crate::fixture::{HostFixture, text_or_error};
use crate::scripted_server::{ScriptedServer, StartBehavior};

/// Returns a server of which each dialog leases its own instance.
pub(crate) fn leased(id: &str) -> ResolvedServer {
    let mut res = configured_server(id);
    res.spec.sharing = Sharing::PerOwner;
    res
}

async fn fixture(peers: &[(&'static str, Arc<ScriptedServer>)], options: HostOptions) -> HostFixture {
    let fixture = HostFixture::with(peers, {
        let mut res = options;
        res.supervision = Supervision::Off;
        res
    });
    fixture.apply(peers.iter().map(|(id, _)| leased(id)).collect()).await;
    fixture.host.wait_until_ready().await;
    fixture
}

fn admin() -> HostOptions {
    let mut res = HostOptions::default();
    res.catalog.admin_tools = AdminTools::Enabled;
    res
}

async fn call(dialog: &Dialog, name: &str, arguments: &'static str) -> CallResult {
    dialog.call(ToolCall::new(name, RawJson::parse(arguments.into()).unwrap())).await
}

#[tokio::test(start_paused = true)]
async fn dm_074_dm_075_dm_080_each_dialog_leases_its_own_instance() {
    let fixture = fixture(&[("a", ScriptedServer::new(&["t", "slow"]))], HostOptions::default()).await;
    let peer = fixture.peer("a");
    // The instance that listed the tools has ended; the tools are in the catalog.
    assert_eq!(
        (fixture.summary().as_str(), peer.count("connect"), peer.open()),
        ("a:ready | a__t a__slow", 1, 0)
    );
    let (one, two) = (fixture.host.dialog(DialogId::new("1")), fixture.host.dialog(DialogId::new("2")));
    // Concurrent first calls of a dialog share one start.
    let (first, second, other) =
        tokio::join!(call(&one, "a__t", "{}"), call(&one, "a__t", "{}"), call(&two, "a__t", "{}"));
    assert!(first.success && second.success && other.success);
    assert_eq!((peer.count("connect"), peer.open(), peer.count("tools/list")), (3, 2, 1));
    assert!(call(&one, "a__t", "{}").await.success);
    // Calls without a dialog share one instance.
    assert!(fixture.call("a__t", "{}").await.success && fixture.call("a__t", "{}").await.success);
    assert_eq!(peer.open(), 3);

    let receipts = fixture.host.leases();
    let owners: Vec<_> = receipts.iter().map(|it| (it.server.as_str(), it.dialog.as_str())).collect();
    assert_eq!(owners, [("a", ""), ("a", "1"), ("a", "2")]);
    assert!(receipts.iter().all(|it| it.pid.is_none() && it.last_used >= Some(it.started)));
    assert!(receipts[0].expires.unwrap() > receipts[0].started);

    // When a dialog ends, its instance ends too. The other dialog's running call is not affected.
    let (slow, ()) = tokio::join!(call(&two, "a__slow", "{}"), async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        drop(one);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(peer.open(), 2);
        peer.release.notify_one();
    });
    assert!(slow.success);
    fixture.host.shutdown().await;
    assert_eq!((peer.open(), fixture.host.leases().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn hd_sc4_invalid_arguments_start_no_server() {
    let fixture = fixture(&[("a", ScriptedServer::new(&["t"]))], HostOptions::default()).await;
    let dialog = fixture.host.dialog(DialogId::new("1"));
    assert_eq!(call(&dialog, "a__t", "[1]").await.error.unwrap().kind, ErrorKind::Validation);
    // The instance that listed the tools.
    assert_eq!(fixture.peer("a").count("connect"), 1);
}

#[tokio::test(start_paused = true)]
async fn dm_076_dm_077_dialog_is_reminded_once_and_releases() {
    let fixture = fixture(&[("a", ScriptedServer::new(&["t", "slow"]))], admin()).await;
    let peer = fixture.peer("a");
    let dialog = fixture.host.dialog(DialogId::new("d"));
    assert!(dialog.reminders().is_empty());
    for _ in 0..2 {
        assert!(call(&dialog, "a__t", "{}").await.success);
    }
    let reminders = dialog.reminders();
    assert_eq!((reminders.len(), reminders[0].server.as_str()), (1, "a"));
    assert!(reminders[0].text.contains(r#"mcp_release({"serverId":"a"})"#));

    // The release waits for the dialog's running calls.
    let release = || call(&dialog, "mcp_release", r#"{"serverId":"a"}"#);
    let (slow, released, ()) = tokio::join!(call(&dialog, "a__slow", "{}"), release(), async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(peer.open(), 1);
        peer.release.notify_one();
    });
    assert_eq!(text_or_error(&slow), "at last");
    assert_eq!(text_or_error(&released), "ok: released a for dialog d");
    assert_eq!((dialog.reminders().len(), peer.open()), (0, 0));
    assert_eq!(text_or_error(&release().await), "ok: no active lease for a (or server is truely-stateless)");
    let unknown = call(&dialog, "mcp_release", r#"{"serverId":"zz"}"#).await;
    assert_eq!(text_or_error(&unknown), "MCPToolError: MCP server 'zz' is not loaded");
    let wrong = text_or_error(&call(&dialog, "mcp_release", r#"{"server":"a"}"#).await);
    assert!(wrong.starts_with("ValidationError: Invalid arguments for tool 'mcp_release': "), "{wrong}");
    // The next call leases a new instance.
    assert!(call(&dialog, "a__t", "{}").await.success);
    assert_eq!((dialog.reminders().len(), peer.open()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn dm_078_shared_server_is_not_leased() {
    let fixture = HostFixture::with(&[("a", ScriptedServer::new(&["t"]))], admin()).started().await;
    assert_eq!(fixture.summary(), "a:ready | mcp_release mcp_restart mcp_disable a__t");
    let dialog = fixture.host.dialog(DialogId::new("d"));
    assert!(call(&dialog, "a__t", "{}").await.success);
    assert_eq!(
        (dialog.reminders().len(), fixture.host.leases().len(), fixture.peer("a").count("connect")),
        (0, 0, 1)
    );
    let released = call(&dialog, "mcp_release", r#"{"serverId":"a"}"#).await;
    assert_eq!(text_or_error(&released), "ok: no active lease for a (or server is truely-stateless)");
}

#[tokio::test(start_paused = true)]
async fn model_disables_and_enables_a_server() {
    let fixture =
        HostFixture::with(&[("a", ScriptedServer::new(&["t"])), ("b", ScriptedServer::new(&["t"]))], admin())
            .started()
            .await;
    let dialog = fixture.host.dialog(DialogId::new("d"));
    let disabled = call(&dialog, "mcp_disable", r#"{"serverId":"a"}"#).await;
    assert_eq!(text_or_error(&disabled), "ok: disabled a");
    assert!(fixture.summary().starts_with("a:disabled b:ready |"));
    assert_eq!(
        text_or_error(&fixture.call("a__t", "{}").await),
        "MCPConnectionError: Tool 'a__t' is not available: server 'a' is disabled"
    );
    let restarted = call(&dialog, "mcp_restart", r#"{"serverId":"a"}"#).await;
    assert_eq!(text_or_error(&restarted), "ok: restarted a");
    assert!(fixture.call("a__t", "{}").await.success);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((fixture.peer("a").count("connect"), fixture.peer("a").open()), (2, 1));
    *fixture.peer("a").start_behavior.lock().unwrap() = StartBehavior::NotFound;
    let failed = text_or_error(&call(&dialog, "mcp_restart", r#"{"serverId":"a"}"#).await);
    assert!(failed.contains("the command was not found"), "{failed}");
    // The old instance still runs, because the restart failed.
    assert!(fixture.call("a__t", "{}").await.success);
}

#[tokio::test(start_paused = true)]
async fn hd_115_list_change_of_a_leased_instance_updates_the_catalog() {
    let fixture = fixture(&[("a", ScriptedServer::new(&["t"]))], HostOptions::default()).await;
    let dialog = fixture.host.dialog(DialogId::new("d"));
    assert!(call(&dialog, "a__t", "{}").await.success);
    fixture.peer("a").set_tools(&["t", "u"]);
    fixture.peer("a").announce();
    fixture.wait_for_summary("a:ready | a__t a__u").await;
    assert!(call(&dialog, "a__u", "{}").await.success);
    assert_eq!(fixture.peer("a").open(), 1);
}

#[tokio::test(start_paused = true)]
async fn failed_lease_is_reported_and_retried() {
    let fixture = fixture(&[("a", ScriptedServer::new(&["t"]))], HostOptions::default()).await;
    let dialog = fixture.host.dialog(DialogId::new("d"));
    *fixture.peer("a").start_behavior.lock().unwrap() = StartBehavior::NotFound;
    let failed = call(&dialog, "a__t", "{}").await;
    assert_eq!(
        text_or_error(&failed),
        "MCPConnectionError: server 'a' (npx): the server could not be started: the command was not found \
        (install Node.js, which includes it, or write its full path; your shell may use another PATH than this \
        program)"
    );
    assert_eq!(failed.metadata.server.unwrap().as_str(), "a");
    *fixture.peer("a").start_behavior.lock().unwrap() = StartBehavior::Works;
    assert!(call(&dialog, "a__t", "{}").await.success);
}

#[tokio::test(start_paused = true)]
async fn lease_start_continues_when_its_first_caller_is_dropped() {
    let fixture = fixture(&[("a", ScriptedServer::new(&["t"]))], HostOptions::default()).await;
    let peer = fixture.peer("a");
    peer.silent_methods.lock().unwrap().push("initialize");
    let dialog = fixture.host.dialog(DialogId::new("d"));
    let first = tokio::time::timeout(Duration::from_millis(1), call(&dialog, "a__t", "{}"));
    let (first, second) = tokio::join!(first, async {
        tokio::time::sleep(Duration::from_millis(2)).await;
        tokio::time::timeout(Duration::from_secs(120), call(&dialog, "a__t", "{}")).await.unwrap()
    });
    assert!(first.is_err());
    assert!(text_or_error(&second).starts_with("MCPTimeoutError: server 'a' (npx): the server is silent"));
    assert_eq!(peer.count("connect"), 2, "one that listed, and one for both calls");
}

#[tokio::test(start_paused = true)]
async fn leases_are_bounded_and_end_when_idle() {
    let mut leases = LeasePolicy::default();
    leases.idle_timeout = Some(Duration::from_secs(60));
    leases.max_leases = 1;
    let fixture = fixture(&[("a", ScriptedServer::new(&["t"]))], {
        let mut options = HostOptions::default();
        options.leases = leases;
        options
    })
    .await;
    let (one, two) = (fixture.host.dialog(DialogId::new("1")), fixture.host.dialog(DialogId::new("2")));
    assert!(call(&one, "a__t", "{}").await.success);
    // The host has no tool that releases it.
    assert!(!one.reminders()[0].text.contains("mcp_release"));
    assert_eq!(
        text_or_error(&call(&two, "a__t", "{}").await),
        "MCPConnectionError: server 'a': the limit of 1 leased instances is reached; release one, or \
         end a dialog"
    );
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert!(call(&one, "a__t", "{}").await.success);
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!((fixture.peer("a").open(), one.reminders().len()), (1, 1));
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!((fixture.peer("a").open(), one.reminders().len()), (0, 0));
    assert!(call(&two, "a__t", "{}").await.success);
    let a = ServerId::parse("a").unwrap();
    assert!(fixture.host.release(&DialogId::new("2"), &a).await.unwrap());
    assert!(call(&one, "a__t", "{}").await.success);
}

#[tokio::test(start_paused = true)]
async fn hd_fr024_shutdown_does_not_wait_for_releases() {
    let fixture = fixture(&[("a", ScriptedServer::new(&["t", "hang"]))], HostOptions::default()).await;
    let dialog = fixture.host.dialog(DialogId::new("d"));
    assert!(call(&dialog, "a__t", "{}").await.success);
    let a = ServerId::parse("a").unwrap();
    let begun = tokio::time::Instant::now();
    let (hang, released, ()) =
        tokio::join!(call(&dialog, "a__hang", "{}"), fixture.host.release(dialog.id(), &a), async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert_eq!(fixture.peer("a").open(), 1);
            fixture.host.shutdown().await;
        });
    assert!(begun.elapsed() < Duration::from_secs(17), "{:?}", begun.elapsed());
    assert!(!hang.success);
    assert_eq!((released, fixture.peer("a").open()), (Ok(true), 0));
}
