//! What a call costs above the wire: a session on a wire that answers at once, without a process or a socket.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use divan::AllocProfiler;
use mcp_host_model::RawJson;
use mcp_host_transport::{
    CallOptions, Dial, Disconnect, DisconnectReason, Eras, HandshakeMode, Link, Outbound, Session,
    SessionOptions, StreamId, Transport,
};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// Answers every request: a handshake, or a text of the given length.
struct Echo(usize);

impl Dial for Echo {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(Echo(self.0))
    }

    fn label(&self) -> String {
        "echo".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

#[async_trait]
impl Transport for Echo {
    async fn run(self: Box<Self>, mut link: Link) -> Disconnect {
        let text = "x".repeat(self.0);
        loop {
            let message = tokio::select! {
                out = link.outbound.next() => match out {
                    Some(Outbound::Send(message)) => message,
                    Some(Outbound::Cancel { .. }) => continue,
                    None => break,
                },
                _ = link.shutdown.requested() => break,
            };
            let Some(id) = message.head.id else { continue };
            let result = match message.head.method_name().unwrap_or_default() {
                "initialize" => {
                    r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"e"}}"#
                        .to_owned()
                }
                _ => format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#),
            };
            let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            link.inbound.deliver(StreamId::Shared, Bytes::from(frame));
        }
        Disconnect::new(DisconnectReason::Stopped)
    }
}

#[divan::bench(args = [100, 10_000, 1_000_000])]
fn call(bencher: divan::Bencher<'_, '_>, answer_bytes: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut options = SessionOptions::default();
    options.eras = Eras::Legacy;
    let session =
        runtime.block_on(Session::connect(Arc::new(Echo(answer_bytes)), options)).expect("a session");
    let arguments = RawJson::parse(r#"{"text":"hello"}"#.into()).expect("JSON");
    bencher.bench_local(|| {
        let call = session.call_tool("echo", &arguments, CallOptions::default());
        runtime.block_on(call).expect("an answer").value.content.len()
    });
}
