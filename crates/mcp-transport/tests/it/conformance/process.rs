//! The peer on stdio: a real process with real pipes. It passes its input to the test over a socket and writes
//! what the test sends. It exits when the test closes the socket, and closes the socket when its input ends.

use mcp_host_model::{Secret, StdioEndpoint};
use mcp_host_transport::testing::{Script, ServerAction, Value};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::framing;
use super::peers::WriteStyle;

/// The script of the process. Its last line, which is not JSON-RPC, tells the test that its input has ended. It
/// waits for its own children, because not every system reaps orphans at once.
const PROCESS: &str = r#"
exec 3<>"/dev/tcp/127.0.0.1/$PORT" 4<&0
{ cat <&4; printf 'over\n'; } >&3 &
cat <&3 4<&-
kill $! 2>/dev/null
wait
"#;

/// The endpoint of a process that relays to this port.
pub(super) fn endpoint(port: u16) -> StdioEndpoint {
    let mut endpoint = StdioEndpoint::new("bash");
    endpoint.args = vec![Secret::new("-c"), Secret::new(PROCESS)];
    endpoint.env.push(("PORT".to_owned(), Secret::new(port.to_string())));
    endpoint
}

/// The test's side of the relay.
pub(super) struct Peer {
    pub(super) port: u16,
    _serving: JoinSet<()>,
}

impl Peer {
    pub(super) async fn start(style: WriteStyle, script: Script) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // One process at a time, because a session has one.
                let _ = serve(socket, style, &script).await;
            }
        });
        Peer { port, _serving: serving }
    }
}

async fn serve(socket: TcpStream, style: WriteStyle, script: &Script) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let (reader, mut writer) = socket.into_split();
    let mut lines = BufReader::new(reader).lines();
    writer.write_all(style.begin.as_bytes()).await?;
    while let Some(line) = lines.next_line().await? {
        if line == "over" {
            return Ok(());
        }
        // The last line is cut off if the client disconnects in a message.
        let message: Value = serde_json::from_str(&line)?;
        for act in script(&message) {
            let line = |text: &str| framing::line(text, style.line_ending);
            let bytes = match act {
                ServerAction::Send(text) | ServerAction::Respond(_, text) => line(&text),
                ServerAction::SendFirstHalf(text) => framing::halves(&line(&text)).0.to_owned(),
                ServerAction::SendSecondHalf(text) => framing::halves(&line(&text)).1.to_owned(),
                ServerAction::KeepOpen => continue,
                ServerAction::Disconnect => return Ok(()),
            };
            writer.write_all(bytes.as_bytes()).await?;
        }
    }
    Ok(())
}
