//! The example of a program that serves its catalog.

#[path = "../../examples/serve_catalog.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod serve_catalog;

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{Endpoint, RawJson, Secret, UrlEndpoint};
use mcp_host_transport::{CallOptions, DialOptions, Session, SessionOptions, dialer};
use mcp_testkit::servers::{forward_lines, in_memory};
use tokio::sync::mpsc;

use crate::support::{TestServers, host, server};

const TOKEN: &str = "ann-0123456789abcdef";

async fn tools(session: &Session) -> Vec<String> {
    session.list_tools().await.unwrap().items.iter().map(|it| it.name.to_string()).collect()
}

#[tokio::test]
async fn example_serves_its_catalog_over_stdio_and_http() {
    let servers: Arc<TestServers> = Arc::default();
    let host = host(&servers, vec![server("demo"), server("own")]).await;
    let (announce, mut urls) = mpsc::unbounded_channel();
    let embedded = Arc::clone(&host);
    let dial = in_memory("example", move |link| {
        let (host, announce) = (Arc::clone(&embedded), announce.clone());
        forward_lines(link, async move |stream| {
            let tokens = Secret::new(format!("{TOKEN} servers=demo"));
            let announce = |url| announce.send(url).unwrap();
            serve_catalog::serve(host, &tokens, tokio::io::split(stream), announce).await.unwrap();
        })
    });
    let stdio = Session::connect(dial, SessionOptions::default()).await.unwrap();
    let url = urls.recv().await.unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let connect = async |token: &str| {
        let mut endpoint = UrlEndpoint::new(url.parse().unwrap());
        endpoint.headers.push(("Authorization".to_owned(), Secret::new(format!("Bearer {token}"))));
        let dial = dialer(&Endpoint::Http(endpoint), &DialOptions::default()).unwrap();
        Session::connect(dial, SessionOptions::default()).await
    };
    let refused = connect("bob-0123456789abcdef").await.err().unwrap();
    assert!(refused.to_string().contains("401"), "{refused}");
    let http = connect(TOKEN).await.unwrap();
    assert_eq!((&*stdio.server().name, &*http.server().name), ("example", "example"));

    // The token shows one server.
    let (all, of_demo) = (tools(&stdio).await, tools(&http).await);
    assert!(all.contains(&"own__echo".to_owned()), "{all:?}");
    assert!(!of_demo.is_empty() && of_demo.iter().all(|name| name.starts_with("demo__")), "{of_demo:?}");
    let arguments = RawJson::parse(r#"{"text":"hello"}"#.into()).unwrap();
    let echo = async |session: &Session| {
        session.call_tool("demo__echo", &arguments, CallOptions::default()).await.map(|it| it.value.text())
    };
    assert_eq!(echo(&stdio).await.unwrap(), "hello");
    assert_eq!(echo(&http).await.unwrap(), "hello");

    // The program ends with its client on stdio.
    stdio.close(Duration::from_secs(5)).await;
    assert!(echo(&http).await.is_err());
    host.shutdown().await;
    let lines = include_str!("../../examples/serve_catalog.rs").lines().count();
    assert!(lines <= 80, "{lines} lines");
}
