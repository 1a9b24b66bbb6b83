//! HTTP with server-sent events, with real servers: lists and results equal those over stdio.

use std::path::{Path, PathBuf};
use std::process::Command;

use mcp_host_model::{Endpoint, SseFallback};
use mcp_host_runtime::{Host, HostOptions, LoadRequest, load};
use mcp_testkit::program::{installed_folder, root};

use crate::compare::{EVERYTHING, check_change, check_same, demo, holodeck, over_stdio, start};

fn over_sse(folder: &Path, port: u16) -> PathBuf {
    holodeck(folder, "sse", &format!("http://127.0.0.1:{port}/sse"))
}

#[test]
fn hd_120_hd_fr005_a_real_server_of_the_typescript_sdk() {
    let Some(modules) = installed_folder("MCP_HOST_NODE_MODULES") else { return };
    let script = modules.join("@modelcontextprotocol/server-everything/dist/index.js");
    let (_server, port) = start(|port| {
        let mut command = Command::new("node");
        command.arg(&script).arg("sse").env("PORT", port.to_string());
        command
    });
    let folder = tempfile::tempdir().unwrap();
    let sse = over_sse(folder.path(), port);
    let stdio = over_stdio(folder.path(), &["node", &script.display().to_string(), "stdio"]);
    check_same(&sse, &stdio, &EVERYTHING);
}

#[test]
fn hd_120_a_real_server_of_the_python_sdk() {
    let Some(venv) = installed_folder("MCP_HOST_VENV") else { return };
    let python = venv.join("bin/python").display().to_string();
    let script = root().join("tests/python/server.py").display().to_string();
    let (_server, port) = start(|port| {
        let mut command = Command::new(&python);
        command.args([&script, "sse", &port.to_string()]);
        command
    });
    let folder = tempfile::tempdir().unwrap();
    let sse = over_sse(folder.path(), port);
    let stdio = over_stdio(folder.path(), &[&python, &script, "stdio"]);
    check_same(
        &sse,
        &stdio,
        &[
            ("it__add", r#"{"a":2,"b":40}"#),
            ("it__greet", r#"{"name":"Ann","loud":true}"#),
            ("it__add", r#"{"a":"no number","b":1}"#),
        ],
    );
}

#[tokio::test]
async fn hd_115_a_changed_list_makes_a_generation_over_server_sent_events() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |url| url.ends_with("/sse"));
    let file = holodeck(folder.path(), "sse", &url);
    let host = Host::start(HostOptions::default());
    host.apply(load(&LoadRequest::new(file)).unwrap().desired).await;
    check_change(host).await;
}

#[tokio::test]
async fn dia_08_a_legacy_sse_server_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = demo(folder.path(), |url| url.ends_with("/sse"));
    let file = holodeck(folder.path(), "http", &url);
    let mut wanted = load(&LoadRequest::new(file)).unwrap().desired;
    let host = Host::start(HostOptions::default());
    for server in &mut wanted.servers {
        let Endpoint::Http(endpoint) = &mut server.endpoint else { panic!("it is over HTTP") };
        endpoint.sse_fallback = SseFallback::Allowed;
    }
    host.apply(wanted).await;
    check_change(host).await;
}
