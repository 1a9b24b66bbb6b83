//! A host that lives beside its servers: what they change, its catalog shows.

use std::path::Path;

use mcp_host::{Host, HostOptions, LoadRequest, ToolCall, load};
use mcp_model::RawJson;
use mcp_tests::binary;

async fn host(folder: &Path, server: &str) -> Host {
    let path = folder.join(".minds/mcp.yaml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("version: 1\nservers:\n  demo:\n    {server}\n")).unwrap();
    let host =
        Host::start(HostOptions { own_executable: Some(binary().to_owned()), ..HostOptions::default() });
    host.apply(load(&LoadRequest::new(path)).unwrap().wanted).await;
    host.ready().await;
    host
}

/// Lets the server add a tool, waits for the generation that has it, and calls it by its name.
async fn check(host: Host) {
    let before = host.published().generation;
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
