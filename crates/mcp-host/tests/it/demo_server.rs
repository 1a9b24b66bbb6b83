//! The demo server, which is another implementation of MCP, over in-memory streams.

use std::sync::{Arc, Mutex};

use mcp_host_model::{Content, Era, RawJson};
use mcp_host_runtime::{DesiredServers, Dialer, Host, HostOptions, ToolCall};
use mcp_testkit::servers::{DemoServers, configured_server};

use crate::fixture::text_or_error;

/// Returns a dialer whose servers are all demo servers.
pub(crate) fn demo_dialer() -> Dialer {
    let servers: Arc<DemoServers> = Arc::default();
    Arc::new(move |_, _| Ok(servers.dial()))
}

#[tokio::test(start_paused = true)]
async fn hd_100_demo_server_is_connected_called_and_changed() {
    let host = Host::with_dialer(HostOptions::default(), demo_dialer());
    host.apply(DesiredServers::new(vec![configured_server("demo")])).await;
    host.wait_until_ready().await;
    let published = host.snapshot();
    assert!(published.catalog.tool("demo__change_tools").is_some());
    assert!(!published.catalog.prompts().is_empty() && !published.catalog.resources().is_empty());
    assert!(!published.catalog.templates().is_empty());

    let call = |name: &str, arguments: &'static str| {
        ToolCall::new(name, RawJson::parse(arguments.as_bytes().into()).unwrap())
    };
    assert_eq!(text_or_error(&host.call(call("echo", r#"{"text":"hello"}"#)).await), "hello");
    let sum = host.call(call("demo__add", r#"{"a":2,"b":3}"#)).await;
    assert_eq!(sum.metadata.structured_content.unwrap().as_str(), r#"{"sum":5}"#);
    let wrong = text_or_error(&host.call(call("add", r#"{"a":"2","b":3}"#)).await);
    assert!(wrong.starts_with("ValidationError: Invalid arguments for tool 'add': /a: "), "{wrong}");
    assert_eq!(
        text_or_error(&host.call(call("fail", r#"{"message":"as asked"}"#)).await),
        "MCPToolError: as asked"
    );
    let mixed = host.call(call("mixed", "{}")).await;
    assert!(mixed.content.iter().any(|it| matches!(it, Content::Image { .. })));

    let progress = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&progress);
    let mut sleep = call("sleep", r#"{"ms":400,"steps":4}"#);
    sleep.options.context.progress = Some(Arc::new(move |it| recorded.lock().unwrap().push(it.progress)));
    let slept = host.call(sleep).await;
    assert!(slept.success, "{slept:?}");
    assert!(!progress.lock().unwrap().is_empty());

    // HD-115 in the modern era, where the client requests notifications of changes.
    assert_eq!(published.servers[0].era, Some(Era::Modern));
    let changed = text_or_error(&host.call(call("change_tools", r#"{"name":"surprise"}"#)).await);
    assert_eq!(changed, "added surprise");
    host.subscribe().wait_for(|it| it.catalog.tool("demo__surprise").is_some()).await.unwrap();
    assert_eq!(
        text_or_error(&host.call(call("demo__surprise", "{}")).await),
        "I am surprise, added at run time"
    );
    host.shutdown().await;
}
