//! Real processes under a host: one is killed during a call, and dialogs have their own processes.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{ErrorKind, RawJson, ServerId};
use mcp_host_runtime::{
    DialogId, Host, HostEventKind, HostOptions, LoadRequest, NotificationStreamItem, RestartPolicy,
    Supervision, ToolCall, load,
};
use mcp_testkit::process::is_alive;
use mcp_testkit::program::binary;
use mcp_testkit::wait::block_until;
use tokio::sync::Notify;

fn json(text: &'static str) -> RawJson {
    RawJson::parse(text.into()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn hd_117_killing_a_server_fails_one_call_and_restarts_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let server = |id: &str| {
        let pid = path(id).display().to_string();
        let script =
            format!("echo $$ > '{pid}'; echo here is {id} >&2; exec '{}' demo-server", binary().display());
        format!(
            "  {id}:\n    transport: stdio\n    truely-stateless: true\n    command: sh\n    args: ['-c', \
             \"{script}\"]\n    transform: [{{prefix: '{id}_'}}]\n"
        )
    };
    std::fs::create_dir(path(".minds")).unwrap();
    let file = path(".minds/mcp.yaml");
    std::fs::write(&file, format!("version: 1\nservers:\n{}{}", server("victim"), server("witness")))
        .unwrap();
    let pid = |name: &str| std::fs::read_to_string(path(name)).unwrap().trim().parse::<u32>().unwrap();

    let first_pause = Duration::from_millis(300);
    let supervision = Supervision::Restart({
        let mut policy = RestartPolicy::default();
        policy.initial_backoff = first_pause;
        policy
    });
    let host = Host::start({
        let mut options = HostOptions::default();
        options.supervision = supervision;
        options
    });
    host.apply(load(&LoadRequest::new(file)).unwrap().desired).await;
    host.wait_until_ready().await;
    let mut events = host.events();
    let (killed, witness) = (pid("victim"), pid("witness"));
    let sleep = |name: &str, ms: &'static str| host.call(ToolCall::new(name, json(ms)));
    let under_way = Arc::new(Notify::new());
    let tell = Arc::clone(&under_way);
    let kill = async {
        under_way.notified().await;
        assert!(
            std::process::Command::new("kill")
                .args(["-KILL", &killed.to_string()])
                .status()
                .unwrap()
                .success()
        );
    };
    let victim = host.call({
        let mut call = ToolCall::new("victim_sleep", json(r#"{"ms": 60000, "steps": 600}"#));
        call.options.context.progress = Some(Arc::new(move |_| tell.notify_one()));
        call
    });
    let (lost, unharmed, ()) = tokio::join!(victim, sleep("witness_sleep", r#"{"ms": 500}"#), kill);
    assert!(unharmed.success, "{unharmed:?}");
    let error = lost.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Connection);
    for evidence in ["server 'victim'", "signal 9 (SIGKILL)", "here is victim"] {
        assert!(error.message.contains(evidence), "{evidence}: {}", error.message);
    }

    let mut published = host.subscribe();
    let back = published.wait_for(|it| it.catalog.tool("victim_sleep").is_some());
    tokio::time::timeout(Duration::from_secs(30), back).await.expect("it comes back").unwrap();
    assert!(sleep("victim_sleep", r#"{"ms": 1}"#).await.success);
    assert_ne!(pid("victim"), killed);
    assert_eq!(pid("witness"), witness);
    assert!(!is_alive(killed));
    let mut pause = None;
    while let Some(NotificationStreamItem::Notification(event)) = events.try_next() {
        if let HostEventKind::RestartScheduled { after, failures: 1 } = event.kind {
            pause = Some(after);
        }
    }
    let pause = pause.expect("that it is tried again is told");
    assert!(pause >= first_pause / 2 && pause <= first_pause, "{pause:?}");
    let victim = pid("victim");
    host.shutdown().await;
    for pid in [victim, witness] {
        block_until(|| !is_alive(pid));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dm_074_dm_077_dm_080_each_dialog_leases_a_process() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".minds")).unwrap();
    let file = folder.path().join(".minds/mcp.yaml");
    // Only an instance of a dialog is leased.
    let text = "version: 1\nservers:\n  demo:\n    transport: stdio\n    command: mcp-host\n    args: [demo-server]\n";
    std::fs::write(&file, text).unwrap();
    let own_executable = Some(binary().to_owned());
    let host = Host::start({
        let mut res = HostOptions::default();
        res.processes.own_executable = own_executable;
        res
    });
    host.apply(load(&LoadRequest::new(file)).unwrap().desired).await;
    host.wait_until_ready().await;
    assert!(host.snapshot().catalog.tool("echo").is_some());
    assert!(host.leases().is_empty(), "who listed is closed");

    let dialogs = ["one", "two"].map(|it| host.dialog(DialogId::new(it)));
    let echo = || ToolCall::new("echo", json(r#"{"text": "hello"}"#));
    let (first, second, other) =
        tokio::join!(dialogs[0].call(echo()), dialogs[0].call(echo()), dialogs[1].call(echo()));
    assert!([first, second, other].iter().all(|it| it.text() == "hello"));
    let pids: Vec<u32> = host.leases().iter().map(|it| it.pid.expect("each is a process")).collect();
    assert!(pids.len() == 2 && pids[0] != pids[1] && pids.iter().all(|it| is_alive(*it)), "{pids:?}");

    let demo = ServerId::parse("demo").unwrap();
    assert_eq!(host.release(&DialogId::new("one"), &demo).await, Ok(true));
    block_until(|| !is_alive(pids[0]));
    assert!(is_alive(pids[1]));
    let [one, two] = dialogs;
    drop(two);
    block_until(|| !is_alive(pids[1]));
    assert_eq!(one.call(echo()).await.text(), "hello");
    let last = host.leases()[0].pid.unwrap();
    host.shutdown().await;
    block_until(|| !is_alive(last));
}
