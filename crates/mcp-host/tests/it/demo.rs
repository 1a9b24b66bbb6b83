//! The demo server, which is another implementation of MCP, over in-memory streams.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_demo::CustomTools;
use mcp_host::{DesiredServers, Dialer, Host, HostOptions, ToolCall};
use mcp_model::{Content, Era, RawJson};
use mcp_transport::{Dial, Disconnect, DisconnectReason, HandshakeMode, Link, Outbound, StreamId, Transport};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::world::{server, told};

/// An address of demo servers: each connection gets a new demo server.
#[derive(Default)]
pub(crate) struct Site {
    /// Tools that replace those of the demo server.
    pub(crate) offer: Option<CustomTools>,
    connected: AtomicUsize,
    open: AtomicUsize,
}

impl Site {
    /// A site whose servers have these tools.
    pub(crate) fn offering(offer: CustomTools) -> Site {
        Site { offer: Some(offer), ..Site::default() }
    }

    /// The number of connections so far.
    pub(crate) fn connected(&self) -> usize {
        self.connected.load(Ordering::SeqCst)
    }

    /// The number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

/// A transport to a demo server over a pair of streams, with one message per line.
struct Demo(Arc<Site>);

impl Transport for Demo {
    fn run<'a>(self: Box<Self>, link: Link) -> Pin<Box<dyn Future<Output = Disconnect> + Send + 'a>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let open = Open::new(self.0);
            run(&open.0, link).await
        })
    }
}

/// Counts an open connection until it is dropped.
struct Open(Arc<Site>);

impl Open {
    fn new(site: Arc<Site>) -> Open {
        site.connected.fetch_add(1, Ordering::SeqCst);
        site.open.fetch_add(1, Ordering::SeqCst);
        Open(site)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn run(site: &Site, link: Link) -> Disconnect {
    let Link { outbound: mut out, inbound: inbox, shutdown: mut stop } = link;
    let (here, there) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(there);
    let mut served: Pin<Box<dyn Future<Output = _> + Send>> = match site.offer.clone() {
        None => Box::pin(mcp_demo::serve_stream(read, write)),
        Some(offer) => Box::pin(mcp_demo::serve_custom_tools(offer, read, write)),
    };
    let (read, mut write) = tokio::io::split(here);
    let mut lines = BufReader::new(read).lines();
    loop {
        tokio::select! {
                    _ = stop.requested() => return Disconnect::new(DisconnectReason::Stopped),
                    _ = &mut served => return Disconnect::new(DisconnectReason::PeerClosed),
                    line = lines.next_line() => match line.unwrap() {
                        Some(line) => {
        inbox.deliver(StreamId::Shared, line.into());
        }
                        None => return Disconnect::new(DisconnectReason::PeerClosed),
                    },
                    out = out.next() => {
                        let body = match out {
                            Some(Outbound::Send(message)) => message.body,
                            Some(Outbound::Cancel { notice: Some(notice), .. }) => notice,
                            Some(Outbound::Cancel { notice: None, .. }) => continue,
                            None => return Disconnect::new(DisconnectReason::Stopped),
                        };
                        write.write_all(&body).await.unwrap();
                        write.write_all(b"\n").await.unwrap();
                    }
                }
    }
}

pub(crate) struct DemoDial(pub(crate) Arc<Site>);

impl Dial for DemoDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(Demo(Arc::clone(&self.0)))
    }

    fn label(&self) -> String {
        "demo".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

#[tokio::test(start_paused = true)]
async fn hd_100_the_demo_server_is_used_from_beginning_to_end() {
    let dialer: Dialer = Arc::new(|_, _| Ok(Arc::new(DemoDial(Arc::default()))));
    let host = Host::with_dialer(HostOptions::default(), dialer);
    host.apply(DesiredServers { servers: vec![server("demo")], failed: Vec::new() }).await;
    host.ready().await;
    let published = host.snapshot();
    assert!(published.catalog.tool("demo__change_tools").is_some());
    assert!(!published.catalog.prompts().is_empty() && !published.catalog.resources().is_empty());
    assert!(!published.catalog.templates().is_empty());

    let call = |name: &str, arguments: &'static str| {
        ToolCall::new(name, RawJson::parse(arguments.as_bytes().into()).unwrap())
    };
    assert_eq!(told(&host.call(call("echo", r#"{"text":"hello"}"#)).await), "hello");
    let sum = host.call(call("demo__add", r#"{"a":2,"b":3}"#)).await;
    assert_eq!(sum.metadata.structured_content.unwrap().as_str(), r#"{"sum":5}"#);
    let wrong = told(&host.call(call("add", r#"{"a":"2","b":3}"#)).await);
    assert!(wrong.starts_with("ValidationError: Invalid arguments for tool 'add': /a: "), "{wrong}");
    assert_eq!(told(&host.call(call("fail", r#"{"message":"as asked"}"#)).await), "MCPToolError: as asked");
    let mixed = host.call(call("mixed", "{}")).await;
    assert!(mixed.content.iter().any(|it| matches!(it, Content::Image { .. })));

    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let mut sleep = call("sleep", r#"{"ms":400,"steps":4}"#);
    sleep.progress = Some(Arc::new(move |it| hears.lock().unwrap().push(it.progress)));
    let slept = host.call(sleep).await;
    assert!(slept.success, "{slept:?}");
    assert!(!heard.lock().unwrap().is_empty());

    // HD-115 in the modern era, where the client requests notifications of changes.
    assert_eq!(published.servers[0].era, Some(Era::Modern));
    let changed = told(&host.call(call("change_tools", r#"{"name":"surprise"}"#)).await);
    assert_eq!(changed, "added surprise");
    host.subscribe().wait_for(|it| it.catalog.tool("demo__surprise").is_some()).await.unwrap();
    assert_eq!(told(&host.call(call("demo__surprise", "{}")).await), "I am surprise, added at run time");
    host.shutdown().await;
}
