//! A transport of one's own, over TCP with one message per line, and its check against the contract of transports:
//! `cargo run -p mcp-host-transport --features testing --example own_transport`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use mcp_host_model::Limits;
use mcp_host_transport::testing::{ResponseForm, Script, ServerAction, check_transport};
use mcp_host_transport::{
    Dial, Disconnect, DisconnectReason, FrameSink, Link, MessageClass, Outbound, OutboundMessage,
    OutboundQueue, RequestError, StartError, StreamId, Transport, async_trait,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, tcp};

#[derive(Clone)]
struct TcpTransport {
    address: SocketAddr,
    max_message_bytes: usize,
}

#[async_trait]
impl Transport for TcpTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let Link { mut outbound, inbound, mut shutdown, .. } = link;
        // Whatever ends first ends the connection. Dropping this future closes the socket.
        let reason = tokio::select! {
            reason = self.carry(&*inbound, &mut outbound) => reason,
            _ = shutdown.requested() => DisconnectReason::Stopped,
        };
        Disconnect::new(reason)
    }
}

impl TcpTransport {
    async fn carry(&self, inbound: &dyn FrameSink, outbound: &mut OutboundQueue) -> DisconnectReason {
        let (read, write) = match TcpStream::connect(self.address).await {
            Ok(stream) => stream.into_split(),
            Err(error) => {
                let refusal = StartError::Refused(RequestError::new(error.to_string()));
                return DisconnectReason::NotStarted(refusal);
            }
        };
        let end = tokio::select! {
            end = receive(read, inbound, self.max_message_bytes) => end,
            end = send(write, outbound) => end,
        };
        end.unwrap_or_else(|error| DisconnectReason::Broken(error.to_string()))
    }
}

async fn receive(
    read: tcp::OwnedReadHalf,
    inbound: &dyn FrameSink,
    max_message_bytes: usize,
) -> io::Result<DisconnectReason> {
    let mut reader = BufReader::new(read);
    let max_line_bytes = max_message_bytes as u64 + 1;
    loop {
        let mut line = Vec::new();
        (&mut reader).take(max_line_bytes).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(DisconnectReason::PeerClosed);
        } else if line.pop() != Some(b'\n') {
            return Ok(DisconnectReason::Broken("a line is too long or cut off".to_owned()));
        }
        // The session counts a line that is not JSON-RPC as noise. A flood of unsolicited messages must not keep a
        // CPU core busy.
        if let MessageClass::Unsolicited(_) = inbound.deliver(StreamId::Shared, line.into()) {
            tokio::task::yield_now().await;
        }
    }
}

async fn send(mut write: tcp::OwnedWriteHalf, outbound: &mut OutboundQueue) -> io::Result<DisconnectReason> {
    while let Some(command) = outbound.next().await {
        let (Outbound::Send(OutboundMessage { body, .. }) | Outbound::Cancel { notice: Some(body), .. }) =
            command
        else {
            continue;
        };
        // Line breaks between the tokens of JSON become blanks.
        let mut line: Vec<u8> =
            body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
        line.push(b'\n');
        write.write_all(&line).await?;
    }
    Ok(DisconnectReason::Stopped)
}

impl Dial for TcpTransport {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(self.clone())
    }
    fn label(&self) -> String {
        self.address.to_string()
    }
    fn redact(&self, text: &str) -> String {
        text.chars().take(2000).collect()
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
#[expect(clippy::print_stdout, reason = "the report")]
pub(crate) async fn check() {
    let start = async |script, limits: Limits| {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(serve(listener, script));
        Arc::new(TcpTransport { address, max_message_bytes: limits.message_bytes }) as Arc<dyn Dial>
    };
    let report = check_transport(ResponseForm::Shared, start).await;
    report.assert_ok();
    println!("{report}");
}

#[tokio::main]
async fn main() {
    check().await;
}
