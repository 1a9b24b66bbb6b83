//! A transport of one's own, over TCP with one message per line, and its check against the contract of transports:
//! `cargo run -p mcp-host-transport --features testing --example own_transport`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use mcp_transport::testing::{ResponseForm, Script, ServerAction, check_transport};
use mcp_transport::{
    Dial, Disconnect, DisconnectReason, FrameSink, Link, MessageClass, Outbound, OutboundQueue, RequestError,
    StartError, StreamId, Transport, async_trait,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, tcp};

const MAX_LINE_BYTES: u64 = 64 << 20;

struct TcpTransport(SocketAddr);

#[async_trait]
impl Transport for TcpTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let Link { mut outbound, inbound, mut shutdown, .. } = link;
        let (read, write) = match TcpStream::connect(self.0).await {
            Ok(stream) => stream.into_split(),
            Err(error) => {
                let refusal = StartError::Refused(RequestError::new(error.to_string()));
                return Disconnect::new(DisconnectReason::NotStarted(refusal));
            }
        };
        // Whatever ends first ends the connection. Dropping this future closes the socket.
        let end = tokio::select! {
            end = receive(read, &*inbound) => end,
            end = send(write, &mut outbound) => end,
            _ = shutdown.requested() => Ok(DisconnectReason::Stopped),
        };
        Disconnect::new(end.unwrap_or_else(|error| DisconnectReason::Broken(error.to_string())))
    }
}

async fn receive(read: tcp::OwnedReadHalf, inbound: &dyn FrameSink) -> io::Result<DisconnectReason> {
    let mut reader = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(DisconnectReason::PeerClosed);
        } else if line.pop() != Some(b'\n') {
            return Ok(DisconnectReason::Broken("a line is too long or cut off".to_owned()));
        }
        // A server that sends much that nobody waits for must not occupy a processor.
        if let MessageClass::Unsolicited(_) = inbound.deliver(StreamId::Shared, line.into()) {
            tokio::task::yield_now().await;
        }
    }
}

async fn send(mut write: tcp::OwnedWriteHalf, outbound: &mut OutboundQueue) -> io::Result<DisconnectReason> {
    while let Some(command) = outbound.next().await {
        let (Outbound::Send(mcp_transport::OutboundMessage { body, .. })
        | Outbound::Cancel { notice: Some(body), .. }) = command
        else {
            continue;
        };
        write.write_all(&[&body[..], b"\n"].concat()).await?;
    }
    Ok(DisconnectReason::Stopped)
}

struct TcpDial(SocketAddr);

impl Dial for TcpDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(TcpTransport(self.0))
    }
    fn label(&self) -> String {
        self.0.to_string()
    }
    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// A server for the check: performs the script on each connection.
async fn serve(listener: TcpListener, script: Script) -> io::Result<()> {
    loop {
        let (read, mut write) = listener.accept().await?.0.into_split();
        let script = Arc::clone(&script);
        tokio::spawn(async move {
            let mut lines = BufReader::new(read).lines();
            while let Some(message) = lines.next_line().await? {
                for action in script(&serde_json::from_str(&message)?) {
                    let text = match action {
                        ServerAction::Send(text) | ServerAction::Respond(_, text) => format!("{text}\n"),
                        ServerAction::SendFirstHalf(text) => text[..text.len() / 2].to_owned(),
                        ServerAction::SendSecondHalf(text) => format!("{}\n", &text[text.len() / 2..]),
                        ServerAction::KeepOpen => continue,
                        ServerAction::Disconnect => return Ok(()),
                    };
                    write.write_all(text.as_bytes()).await?;
                }
            }
            io::Result::Ok(())
        });
    }
}

/// Runs the check.
pub(crate) async fn check() {
    let start = async |script| {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(serve(listener, script));
        Arc::new(TcpDial(address)) as Arc<dyn Dial>
    };
    let mismatches = check_transport(ResponseForm::Shared, start).await;
    let lines: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

#[tokio::main]
async fn main() {
    check().await;
}
