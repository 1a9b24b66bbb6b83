//! The server over WebSocket, subprotocol `mcp`, beside Streamable HTTP and with its bounds: this machine only, and no
//! page of a browser's from elsewhere.
//!
//! Inside, a socket is a pair of streams with a message a line, as over standard input and output: what holds there
//! holds here. Each socket has a state of its own for a legacy client; sessionless requests share that of the process.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State as Shared;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connection::Connection;
use crate::life::Life;
use crate::neighbour::is_neighbour;
use crate::serve::serve;
use crate::server::Demo;
use crate::state::State;

pub(crate) const PATH: &str = "/ws";

/// How many sockets may be open at once.
const MOST_SOCKETS: u32 = 64;

/// The largest message of a client, in bytes.
const LARGEST: usize = 4 << 20;

/// How much may wait between a socket and the server, in each direction.
const BETWEEN: usize = 64 << 10;

/// How long a client may leave what is sent to it unread.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long all sockets may take to close.
const PARTING: Duration = Duration::from_secs(1);

/// The open sockets of one server.
#[derive(Clone)]
pub(crate) struct Sockets {
    places: Arc<Semaphore>,
    process: Arc<State>,
    life: Arc<Life>,
    /// The address that the server listens at.
    own: IpAddr,
}

impl Sockets {
    pub(crate) fn new(own: IpAddr, process: Arc<State>, life: Arc<Life>) -> Sockets {
        Sockets { places: Arc::new(Semaphore::new(MOST_SOCKETS as usize)), process, life, own }
    }

    /// The route at [`PATH`].
    pub(crate) fn route(&self) -> Router {
        Router::new().route(PATH, routing::any(open)).with_state(self.clone())
    }

    /// Resolves when no socket is left, or after a moment; from then on none is opened.
    pub(crate) async fn closed(&self) {
        // A client that does not let go is left to the end of the process.
        let _ = tokio::time::timeout(PARTING, self.places.acquire_many(MOST_SOCKETS)).await;
        self.places.close();
    }
}

async fn open(Shared(sockets): Shared<Sockets>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    if !is_neighbour(&headers, sockets.own) {
        return (StatusCode::FORBIDDEN, "the demo server is for this machine only").into_response();
    }
    let Ok(place) = Arc::clone(&sockets.places).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many sockets are open").into_response();
    };
    upgrade
        .protocols(["mcp"])
        .max_message_size(LARGEST)
        .max_frame_size(LARGEST)
        .on_upgrade(move |socket| converse(socket, sockets, place))
}

/// Serves one client until it leaves, or the server ends. The place is given back when this resolves.
async fn converse(socket: WebSocket, sockets: Sockets, _place: OwnedSemaphorePermit) {
    let life = Arc::new(sockets.life.of_a_session());
    let (here, there) = tokio::io::duplex(BETWEEN);
    let (read, write) = tokio::io::split(there);
    let demo = Demo::new(Arc::new(State::default()), sockets.process, Arc::clone(&life));
    let serving = serve(demo, Connection::new(AsyncRwTransport::new_server(read, write), Arc::clone(&life)));
    let (lines, messages) = tokio::io::split(here);
    let (mut to, from) = socket.split();
    let code = tokio::select! {
        biased;
        // As if the process had died in that instant: without a word.
        _ = life.exited() => return,
        () = sockets.life.over() => close_code::AWAY,
        code = hear(from, messages) => code,
        code = tell(lines, &mut to) => code,
        _ = serving => close_code::NORMAL,
    };
    let farewell = Message::Close(Some(CloseFrame { code, reason: "".into() }));
    let _ = tokio::time::timeout(PARTING, to.send(farewell)).await;
}

/// Messages to lines, until there are no more; then with which code the socket is closed.
async fn hear(mut from: SplitStream<WebSocket>, mut messages: impl AsyncWrite + Unpin) -> u16 {
    loop {
        let mut line = match from.next().await {
            Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
            Some(Ok(Message::Binary(_))) => return close_code::UNSUPPORTED,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Close(_))) | None => return close_code::NORMAL,
            Some(Err(_)) => return close_code::PROTOCOL,
        };
        // A line break between two tokens would cut the message in two.
        line = line.replace(['\n', '\r'], " ");
        line.push('\n');
        if messages.write_all(line.as_bytes()).await.is_err() {
            return close_code::NORMAL;
        }
    }
}

/// Lines to messages, likewise.
async fn tell(lines: impl AsyncRead + Unpin, to: &mut SplitSink<WebSocket, Message>) -> u16 {
    let mut lines = BufReader::new(lines).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let sent = tokio::time::timeout(PATIENCE, to.send(Message::Text(line.into()))).await;
        if !matches!(sent, Ok(Ok(()))) {
            return close_code::POLICY;
        }
    }
    close_code::NORMAL
}
