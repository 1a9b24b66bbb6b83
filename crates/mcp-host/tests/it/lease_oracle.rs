//! Replays a recording of the system whose leases we follow, step by step, and compares tools, toolsets, statuses
//! and problems. Each difference has a documented reason.
//!
//! The recording is not part of the project. `MCP_HOST_ORACLES` names its folder; without it this test prints that
//! it is skipped. Its servers are replaced by demo servers with the tools that the recording's arguments name. A
//! process in the recording is a connection to a new demo server here.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_host_demo::CustomTools;
use mcp_host_model::{Endpoint, RawJson, ServerId};
use mcp_host_registry::Builtins;
use mcp_host_runtime::{
    DesiredServers, DialogId, Host, HostOptions, LoadRequest, ServerState, Supervision, ToolCall, load,
};
use mcp_testkit::servers::DemoServers;
use serde_json::Value;

use crate::fixture::text_or_error;
use crate::scripted_server::{ScriptedServer, StartBehavior};

/// The expected differences: step, subject, their value, our value, and the reason.
const DIFFERENCES: &[[&str; 5]] = &[
    ["invalid yaml keeps last-known-good", "statuses", "", "a:there", "servers that run are shown as such"],
    ["version 2 keeps lkg", "statuses", "", "a:there", "servers that run are shown as such"],
    [
        "toolset name collides with builtin toolset",
        "statuses",
        "builtin_ts:lacking",
        "builtin_ts:there",
        "the server itself is well; the problem says that it is not shown",
    ],
    [
        "invalid names, filters, transforms, post-transform too long",
        "problems",
        "mcp/server/a/tool_invalid_name/llllllllllllllllllllllllllllllllllllllllllllllllllllllllllll/transformed",
        "mcp/server/a/tool_invalid_name/llllllllllllllllllllllllllllllllllllllllllllllllllllllllllll",
        "one tool has one problem of a kind",
    ],
    ["disabled", "statuses", "a:off", "", "what is switched off in its file is not wanted of the host"],
    ["disabled", "toolsets", "a=", "", "what is switched off in its file is not wanted of the host"],
    ["reordered only", "tools", "z1 a1 m1", "m1 a1 z1", "the order is that of the file"],
];

/// The duration of a slow call.
const SLOW: Duration = Duration::from_millis(500);

/// A defect of theirs: the problem of a removed server remains.
const STALE: &str = "mcp/server/builtin_ts/server_error";

struct Replay {
    folder: tempfile::TempDir,
    host: Host,
    sites: Arc<Mutex<HashMap<String, Arc<DemoServers>>>>,
    refused: bool,
    seen: Vec<String>,
}

impl Replay {
    fn new() -> Replay {
        let sites: Arc<Mutex<HashMap<String, Arc<DemoServers>>>> = Arc::default();
        let dialled = Arc::clone(&sites);
        let mut builtins = Builtins::default();
        builtins.tools = vec!["builtin_probe".into()];
        builtins.toolsets = vec!["builtin_ts".into()];
        let mut options = HostOptions::default();
        options.catalog.builtins = builtins;
        options.supervision = Supervision::Off;
        let host = Host::with_dialer(
            options,
            Arc::new(move |server, _| {
                let Endpoint::Stdio(endpoint) = &server.endpoint else { panic!("all of them are processes") };
                let script = endpoint.args.get(1).map_or("", |it| it.expose());
                let page = NonZeroUsize::new(2);
                let (tools, page) = match (endpoint.command.as_str(), script) {
                    ("node", "NONE") => ("", None),
                    ("node", "PAGED") => ("p0,p1,p2,p3,p4", page),
                    ("node", tools) if tools != "CRASH" => (tools, None),
                    _ => {
                        return Ok(ScriptedServer::starting(StartBehavior::NotFound).dial());
                    }
                };
                let tools = tools.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
                let mut custom = CustomTools::new(tools);
                (custom.page_size, custom.delay) = (page, SLOW);
                let site = || Arc::new(DemoServers::with_tools(custom));
                let site = Arc::clone(dialled.lock().unwrap().entry(script.to_owned()).or_insert_with(site));
                Ok(site.dial())
            }),
        );
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".minds")).unwrap();
        Replay { folder, host, sites, refused: false, seen: Vec::new() }
    }

    fn site(&self, script: &str) -> Arc<DemoServers> {
        Arc::clone(&self.sites.lock().unwrap()[script])
    }

    async fn apply(&mut self, yaml: Option<&str>, env: &Value) {
        self.refused = false;
        let Some(yaml) = yaml else { return self.host.apply(DesiredServers::default()).await };
        let path = self.folder.path().join(".minds/mcp.yaml");
        std::fs::write(&path, yaml).unwrap();
        let variables = env.as_object().into_iter().flatten();
        let variables: Vec<_> =
            variables.map(|(name, value)| format!("{name}={}\n", value.as_str().unwrap())).collect();
        let file = self.folder.path().join("env");
        std::fs::write(&file, variables.concat()).unwrap();
        let loaded = load(&{
            let mut request = LoadRequest::new(path);
            request.env_file = Some(file);
            request
        })
        .unwrap();
        self.refused = loaded.refused;
        if !loaded.refused {
            self.host.apply(loaded.desired).await;
        }
        self.host.wait_until_ready().await;
    }

    /// Our state, in a form that is common to both systems.
    fn ours(&self) -> HashMap<&'static str, Vec<String>> {
        let published = self.host.snapshot();
        let tools = published.catalog.tools();
        let toolsets = published.catalog.toolsets().iter().map(|id| {
            let own = tools.iter().filter(|it| it.server == *id).map(|item| item.name.to_string());
            format!("{id}={}", own.collect::<Vec<_>>().join(","))
        });
        let statuses = published.servers.iter().map(|server| {
            let word = match (server.state, &server.error) {
                (ServerState::Ready, None) => "there",
                (ServerState::Ready, Some(_)) => "as before",
                (ServerState::Disabled, _) => "off",
                _ => "lacking",
            };
            format!("{}:{word}", server.id)
        });
        let mut problems: Vec<String> = published.problems.iter().map(|it| it.problem.id.clone()).collect();
        if self.refused {
            // The program that loads the file publishes this problem; the host keeps its state.
            problems.push("mcp/workspace_config_error".to_owned());
        }
        problems.sort();
        HashMap::from([
            ("tools", tools.iter().map(|item| item.name.to_string()).collect()),
            ("toolsets", toolsets.collect()),
            ("statuses", statuses.collect()),
            ("problems", problems),
        ])
    }

    /// Compares our state after a step with the recorded one.
    fn compare(&mut self, label: &str, step: &Value) {
        let ours = self.ours();
        for (what, theirs) in theirs(step) {
            let (ours, theirs) = (ours[what].join(" "), theirs.join(" "));
            let listed = DIFFERENCES.iter().find(|it| it[0] == label && it[1] == what);
            match listed {
                Some([_, _, their, our, _]) if what == "problems" => {
                    assert_eq!(theirs.replace(their, our), ours, "{label}: {what}");
                    self.seen.push(format!("{label} {what}"));
                }
                Some([_, _, their, our, _]) => {
                    assert_eq!([theirs.as_str(), ours.as_str()], [*their, *our], "{label}: {what}");
                    self.seen.push(format!("{label} {what}"));
                }
                None => assert_eq!(ours, theirs, "{label}: {what}"),
            }
        }
    }

    async fn call(&self, dialog: &str, name: &str) -> String {
        let dialog = Some(DialogId::new(dialog));
        text_or_error(
            &self
                .host
                .call({
                    let mut call = ToolCall::new(name, RawJson::empty_object());
                    call.options.dialog = dialog;
                    call
                })
                .await,
        )
    }
}

fn theirs(step: &Value) -> Vec<(&'static str, Vec<String>)> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    let ids = |value: &Value| value["id"].as_str().unwrap().to_owned();
    let problems = step["problems"].as_array().unwrap().iter().map(ids);
    let problems: Vec<String> =
        problems.filter(|it| it != STALE || step["toolset_is_there"] == true).collect();
    let broken = |server: &str| problems.contains(&format!("mcp/server/{server}/server_error"));
    let statuses = step["statuses"].as_array().unwrap().iter().map(|it| {
        let server = it["serverId"].as_str().unwrap();
        let word = match it["status"].as_str().unwrap() {
            "loaded" if broken(server) => "as before",
            "loaded" => "there",
            "config_invalid" => "as before",
            "disabled" => "off",
            _ => "lacking",
        };
        format!("{server}:{word}")
    });
    let statuses = statuses.collect();
    let toolsets = step["toolsets"].as_object().unwrap().iter();
    let mut toolsets: Vec<String> =
        toolsets.map(|(id, tools)| format!("{id}={}", texts(tools).join(","))).collect();
    // The order is taken from the statuses, because a JSON reader need not keep the order of keys.
    let order: Vec<&str> =
        step["statuses"].as_array().unwrap().iter().map(|it| it["serverId"].as_str().unwrap()).collect();
    toolsets.sort_by_key(|toolset| order.iter().position(|id| toolset.starts_with(&format!("{id}="))));
    let mut problems = problems;
    problems.sort();
    vec![
        ("tools", texts(&step["tools"])),
        ("toolsets", toolsets),
        ("statuses", statuses),
        ("problems", problems),
    ]
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn recording() -> Option<Value> {
    let Some(folder) = std::env::var_os("MCP_HOST_ORACLES").map(PathBuf::from) else {
        eprintln!("skipped: MCP_HOST_ORACLES does not name the folder of recordings");
        return None;
    };
    let text = std::fs::read_to_string(folder.join("dominds-supervisor.json")).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

#[tokio::test(start_paused = true)]
async fn dm_074_to_dm_110_dm_121_to_dm_124_each_step_is_equal_or_has_a_reason() {
    let Some(recording) = recording() else { return };
    let mut replay = Replay::new();
    let a = ServerId::parse("a").unwrap();
    let mut slow = None;
    let mut steps = 0;
    for step in recording["steps"].as_array().unwrap() {
        let label = step["label"].as_str().unwrap();
        let mut step = step.clone();
        step["toolset_is_there"] = Value::from(label == "toolset name collides with builtin toolset");
        // Theirs writes the disabled state into the file; ours keeps it in the host.
        let switched = ["mcp_disable", "mcp_restart re-enables"].contains(&label);
        if step.get("tools").is_some() && !switched {
            replay.apply(step["yaml"].as_str(), &step["env"]).await;
            replay.compare(label, &step);
            steps += 1;
            if label == "slow server" {
                // A call that is in flight when its server is removed succeeds.
                let (result, ()) = tokio::join!(replay.call("d", "slow"), async {
                    tokio::time::sleep(SLOW / 2).await;
                    replay.host.apply(DesiredServers::default()).await;
                });
                slow = Some(result);
            }
            continue;
        }
        steps += 1;
        match label {
            "release stateless" => {
                assert_eq!(replay.host.release(&DialogId::new("d1"), &a).await, Ok(false));
            }
            "release unknown" => {
                let unknown = ServerId::parse("zz").unwrap();
                let failure = replay.host.release(&DialogId::new("d1"), &unknown).await.unwrap_err();
                assert_eq!(failure.message, step["r"]["errorText"].as_str().unwrap());
            }
            "lease pids" => {
                let site = replay.site("pid");
                let before = site.connected();
                tokio::join!(replay.call("d1", "pid"), replay.call("d1", "pid"));
                replay.call("d1", "pid").await;
                assert_eq!((site.connected() - before, site.open()), (1, 1));
                replay.call("d2", "pid").await;
                assert_eq!((site.connected() - before, site.open()), (2, 2));
            }
            "release d1" => {
                assert_eq!(replay.host.release(&DialogId::new("d1"), &a).await, Ok(true));
                assert_eq!(replay.host.release(&DialogId::new("d1"), &a).await, Ok(false));
                assert_eq!(replay.site("pid").open(), 1);
            }
            "after release new process" => {
                replay.call("d1", "pid").await;
                assert_eq!(replay.site("pid").open(), 2);
            }
            "restart" => {
                replay.host.restart(&a).await.unwrap();
                assert_eq!(replay.host.leases().len(), 0);
            }
            "stale tool object call after restart" => assert_eq!(replay.call("d1", "pid").await, "I am pid"),
            "in-flight result" => assert_eq!(slow.as_deref(), Some("I am slow")),
            "mcp_disable" => {
                replay.host.disable(&a).await.unwrap();
                assert_eq!(replay.ours()["statuses"], ["a:off"]);
                assert!(replay.ours()["tools"].is_empty());
            }
            "mcp_restart re-enables" => {
                replay.host.restart(&a).await.unwrap();
                replay.compare(label, &step);
            }
            "restart unknown" => {
                let unknown = ServerId::parse("nope").unwrap();
                let failure = replay.host.restart(&unknown).await.unwrap_err();
                // Their message mentions the file; our host knows servers, not files.
                assert_eq!(failure.message, "MCP server 'nope' is not loaded");
            }
            "restart with no file" => assert!(replay.host.restart(&a).await.is_err()),
            // The content of results is not compared here. Errors are ours (X-24).
            call if call.starts_with("call ") => {}
            other => panic!("unknown step {other:?}"),
        }
    }
    let listed: Vec<String> = DIFFERENCES.iter().map(|it| format!("{} {}", it[0], it[1])).collect();
    assert_eq!(replay.seen.len(), listed.len(), "{:?} of {listed:?}", replay.seen);
    assert_eq!(steps, recording["steps"].as_array().unwrap().len());
    replay.host.shutdown().await;
}
