//! The HTTP side: Streamable HTTP with both kinds of responses, HTTP with server-sent events, and WebSocket upgrades.
//! The path selects the server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_tests::faults::{At, Script, Step};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use crate::act::{After, act, go_on};
use crate::connection::{Connection, Writer};
use crate::framing::{Framing, chunk};
use crate::message;
use crate::websocket;

/// All servers of this process.
#[derive(Default)]
pub(crate) struct Site(Mutex<HashMap<String, Arc<Server>>>);

/// One server.
pub(crate) struct Server {
    pub(crate) script: Script,
    replaced: AtomicBool,
    website: AtomicBool,
    deaf: AtomicBool,
    streams: Mutex<HashMap<u64, Arc<Connection>>>,
    numbers: AtomicU64,
}

/// The head of a request.
pub(crate) struct Head {
    verb: String,
    path: String,
    headers: HashMap<String, String>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

impl Site {
    /// The server of `/<key>/<script>/<leaf>`, and the leaf.
    fn find(&self, path: &str) -> Option<(Arc<Server>, String)> {
        let mut parts = path.trim_start_matches('/').splitn(3, '/');
        let (key, script, leaf) = (parts.next()?, parts.next()?, parts.next()?);
        let script = Script::parse(script).ok()?;
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Posted messages belong to the stream of the same server.
        let place = if leaf.starts_with("messages") { "sse" } else { leaf };
        let server = servers.entry(format!("{key}/{place}")).or_insert_with(|| Arc::new(Server::new(script)));
        let server = Arc::clone(server);
        Some((server, leaf.to_owned()))
    }
}

impl Server {
    fn new(script: Script) -> Server {
        Server {
            script,
            replaced: AtomicBool::new(false),
            website: AtomicBool::new(false),
            deaf: AtomicBool::new(false),
            streams: Mutex::default(),
            numbers: AtomicU64::new(1),
        }
    }

    pub(crate) fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::SeqCst)
    }

    /// Another server takes over from now on.
    pub(crate) async fn replace(&self) {
        self.replaced.store(true, Ordering::SeqCst);
        self.website.store(self.script.does(Step::Website), Ordering::SeqCst);
        let streams = std::mem::take(&mut *self.streams.lock().unwrap_or_else(PoisonError::into_inner));
        for stream in streams.into_values() {
            stream.reset().await;
        }
    }

    fn stream(&self, number: u64) -> Option<Arc<Connection>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// The response that replaces the result at this trigger.
    fn refusal(&self, at: Option<At>, path: &str) -> Option<Vec<u8>> {
        if self.website.load(Ordering::SeqCst) {
            return Some(reply(404, "Content-Type: text/html\r\n", "<h1>Welcome</h1>"));
        }
        if self.is_replaced() || at != Some(self.script.at) {
            return None;
        }
        self.script.steps.iter().find_map(|step| match step {
            Step::Status(code) => Some(reply(*code, challenge(*code), "")),
            Step::Spoken(code) => Some(reply(*code, challenge(*code), &format!("no luck: {code}"))),
            Step::Round => Some(reply(307, &format!("Location: {path}\r\n"), "")),
            Step::Away => Some(reply(307, "Location: http://192.0.2.1/elsewhere\r\n", "")),
            _ => None,
        })
    }
}

fn challenge(code: u16) -> &'static str {
    match code {
        401 => "WWW-Authenticate: Bearer realm=\"faulty\"\r\n",
        429 => "Retry-After: 1\r\n",
        _ => "",
    }
}

fn reply(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
}

/// Serves one connection to its end.
pub(crate) async fn serve(socket: TcpStream, site: Arc<Site>) {
    let (read, write) = socket.into_split();
    let connection = Arc::new(Connection::new(Writer::Socket(write)));
    let mut reader = BufReader::new(read);
    while let Some(head) = hear(&mut reader).await {
        let Some((server, leaf)) = site.find(&head.path) else {
            connection.write(&reply(404, "", "no such server")).await;
            return;
        };
        if server.deaf.load(Ordering::SeqCst) && head.verb == "POST" {
            return hold(&mut reader, Duration::from_secs(60), Reads::Not).await;
        }
        let length = head.header("content-length").parse().unwrap_or(0);
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).await.is_err() {
            return;
        }
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let after = match (head.verb.as_str(), leaf.split('?').next().unwrap_or_default()) {
            ("GET", "ws") => {
                if let Some(refusal) = server.refusal(Some(At::Open), &head.path) {
                    connection.write(&refusal).await;
                    return;
                }
                return websocket::serve(&head, &mut reader, &server, &connection).await;
            }
            ("GET", "sse") => return stream(&head, &mut reader, &server, &connection).await,
            ("POST", "messages") => posted(&head, &message, &server, &connection).await,
            ("POST", "mcp") => {
                lane(&head, &message, Framing::ResponseEvent { begun: false }, &server, &connection).await
            }
            ("POST", "json") => lane(&head, &message, Framing::ResponseDocument, &server, &connection).await,
            ("GET", "mcp") if server.script.at == At::Hear && !server.is_replaced() => {
                listen(&server, &connection).await
            }
            ("DELETE", _) => match server.refusal(Some(At::Close), &head.path) {
                Some(refusal) => said(&connection, &refusal).await,
                None if server.script.at == At::Close => After::Hold,
                None => said(&connection, &reply(200, "", "")).await,
            },
            _ => said(&connection, &reply(405, "", "")).await,
        };
        match after {
            After::Next => {}
            After::Hold => return hold(&mut reader, Duration::from_secs(60), Reads::On).await,
            After::Gone => return,
            After::Replaced => {
                server.replace().await;
                return connection.reset().await;
            }
            After::Deaf => server.deaf.store(true, Ordering::SeqCst),
        }
    }
}

async fn said(connection: &Connection, bytes: &[u8]) -> After {
    if connection.write(bytes).await { After::Next } else { After::Gone }
}

/// Whether a held connection is still read.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    On,
    Not,
}

/// Holds a connection until the peer closes it.
async fn hold(reader: &mut BufReader<OwnedReadHalf>, most: Duration, reads: Reads) {
    let mut rest = [0; 64];
    let waiting = async {
        match reads {
            Reads::On => while reader.read(&mut rest).await.is_ok_and(|it| it > 0) {},
            Reads::Not => std::future::pending().await,
        }
    };
    let _ = tokio::time::timeout(most, waiting).await;
}

/// A request of Streamable HTTP.
async fn lane(
    head: &Head,
    message: &Value,
    framing: Framing,
    server: &Server,
    connection: &Arc<Connection>,
) -> After {
    let moment = message::moment(message);
    if let Some(refusal) = server.refusal(moment, &head.path) {
        return said(connection, &refusal).await;
    }
    // The other server does not know the sessions.
    let generation = if server.is_replaced() { "second" } else { "first" };
    let session = head.header("mcp-session-id");
    if !session.is_empty() && session != generation {
        return said(connection, &reply(404, "", "no such session")).await;
    }
    let begins = message["method"] == "initialize" && (server.script.at != At::Open || server.is_replaced());
    match message::answer(&server.script, message, server.is_replaced()) {
        Some(answer) if begins => {
            let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {generation}\r\n");
            said(connection, &reply(200, &headers, &answer.to_string())).await
        }
        // Notifications and responses are accepted.
        None => said(connection, &reply(202, "", "")).await,
        Some(_) if moment == Some(At::Hear) && server.script.at == At::Hear => {
            listen(server, connection).await
        }
        Some(_) => act(&server.script, message, framing, connection, server.is_replaced()).await,
    }
}

/// The stream for unsolicited messages.
async fn listen(server: &Server, connection: &Arc<Connection>) -> After {
    let mut framing = Framing::ResponseEvent { begun: false };
    for step in &server.script.steps {
        match step {
            Step::End => {
                connection.write(&framing.head()).await;
                connection.write(crate::framing::LAST_CHUNK).await;
            }
            Step::Reset => {
                connection.write(&framing.head()).await;
                connection.reset().await;
                return After::Gone;
            }
            step => {
                go_on(*step, framing, Arc::clone(connection)).await;
                return After::Gone;
            }
        }
    }
    After::Next
}

/// The stream of HTTP with server-sent events.
async fn stream(
    head: &Head,
    reader: &mut BufReader<OwnedReadHalf>,
    server: &Server,
    connection: &Arc<Connection>,
) {
    if let Some(refusal) = server.refusal(Some(At::Open), &head.path) {
        connection.write(&refusal).await;
        return;
    }
    let number = server.numbers.fetch_add(1, Ordering::SeqCst);
    server.streams.lock().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::clone(connection));
    let place = head.path.trim_end_matches("sse");
    let first = format!("event: endpoint\ndata: {place}messages?session={number}\n\n");
    let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.write(&[begin.as_bytes(), &chunk(first.as_bytes())].concat()).await;
    if server.script.at == At::Hear {
        let step = server.script.steps[0];
        tokio::spawn(go_on(step, Framing::Event, Arc::clone(connection)));
    }
    let mut rest = [0; 64];
    tokio::select! {
        _ = reader.read(&mut rest) => {}
        () = connection.over() => {}
    }
    server.streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
}

/// A message for one of these streams.
async fn posted(head: &Head, message: &Value, server: &Server, connection: &Connection) -> After {
    if let Some(refusal) = server.refusal(message::moment(message), &head.path) {
        return said(connection, &refusal).await;
    }
    let number = head.path.rsplit_once('=').and_then(|it| it.1.parse().ok()).unwrap_or(0);
    let Some(stream) = server.stream(number) else {
        return said(connection, &reply(404, "", "no such session")).await;
    };
    if !connection.write(&reply(202, "", "")).await {
        return After::Gone;
    }
    match act(&server.script, message, Framing::Event, &stream, server.is_replaced()).await {
        // The stream has ended, but not this connection.
        After::Gone | After::Next | After::Hold => After::Next,
        after => after,
    }
}

async fn hear(reader: &mut BufReader<OwnedReadHalf>) -> Option<Head> {
    let mut line = String::new();
    reader.read_line(&mut line).await.ok().filter(|it| *it > 0)?;
    let mut words = line.split(' ');
    let (verb, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some(Head { verb, path, headers })
}
