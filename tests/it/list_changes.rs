//! List changes of running servers appear in the catalog of the host.

use std::io::{BufRead, BufReader};
use std::path::Path;

use mcp_host_model::RawJson;
use mcp_host_runtime::{Host, HostOptions, LoadRequest, ToolCall, load};
use mcp_testkit::program::{Run, binary};

async fn host(folder: &Path, server: &str) -> Host {
    let path = folder.join(".minds/mcp.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("version: 1\nservers:\n  demo:\n    {server}\n")).unwrap();
    let host = Host::start({
        let mut res = HostOptions::default();
        res.processes.own_executable = Some(binary().to_owned());
        res
    });
    host.apply(load(&LoadRequest::new(path)).unwrap().desired).await;
    host.wait_until_ready().await;
    host
}

/// Makes the server add a tool, waits for the generation with it, and calls it.
async fn check(host: Host) {
    let before = host.snapshot().generation;
    let mut published = host.subscribe();
    let added = host.call(ToolCall::new("change_tools", json(r#"{"name":"fresh"}"#))).await;
    assert!(added.success, "{added:?}");
    let change = published.wait_for(|it| it.catalog.tool("fresh").is_some());
    let change = tokio::time::timeout(std::time::Duration::from_secs(20), change).await;
    assert!(change.expect("the change is heard").unwrap().generation > before);
    let called = host.call(ToolCall::new("fresh", json("{}"))).await;
    assert!(called.success, "{called:?}");
    host.shutdown().await;
}

fn json(text: &'static str) -> RawJson {
    RawJson::parse(text.into()).unwrap()
}

#[tokio::test]
async fn hd_115_hd_fr016_a_changed_list_makes_a_generation_over_stdio() {
    let folder = tempfile::tempdir().unwrap();
    check(host(folder.path(), "{transport: stdio, command: mcp-host, args: [demo-server]}").await).await;
}

#[tokio::test]
async fn hd_115_hd_fr016_a_changed_list_makes_a_generation_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let mut server =
        Run::new(folder.path(), folder.path(), &["demo-server", "--http", "127.0.0.1:0"]).start();
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let url = said.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    check(host(folder.path(), &format!("{{transport: streamable_http, url: '{url}'}}")).await).await;
    server.kill().unwrap();
    server.wait().unwrap();
}
