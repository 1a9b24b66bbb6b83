//! A hand-written WebSocket server, for frames that a library does not send.

use std::sync::Arc;

use mcp_tests::faults::At;
use serde_json::Value;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::tcp::OwnedReadHalf;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::act::{After, act, go_on};
use crate::connection::Connection;
use crate::framing::{Framing, frame};
use crate::http::{Head, Server};

/// A received frame.
struct Frame {
    last: bool,
    opcode: u8,
    payload: Vec<u8>,
}

/// Accepts the upgrade and serves the connection.
pub(crate) async fn serve(
    head: &Head,
    reader: &mut BufReader<OwnedReadHalf>,
    server: &Server,
    connection: &Arc<Connection>,
) {
    let accept = derive_accept_key(head.header("sec-websocket-key").as_bytes());
    let opened = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: \
         {accept}\r\nSec-WebSocket-Protocol: mcp\r\n\r\n"
    );
    connection.write(opened.as_bytes()).await;
    if server.script.at == At::Hear {
        tokio::spawn(go_on(server.script.steps[0], Framing::Frame, Arc::clone(connection)));
    }
    let mut text = Vec::new();
    loop {
        let heard = tokio::select! {
            heard = read(reader) => heard,
            () = connection.over() => return,
        };
        let Some(Frame { last, opcode, payload }) = heard else { return };
        match opcode {
            0 | 1 => text.extend(payload),
            8 if server.script.at == At::Close => std::future::pending().await,
            8 => {
                connection.write(&frame(0x88, &payload)).await;
                return connection.end().await;
            }
            9 => {
                connection.write(&frame(0x8a, &payload)).await;
            }
            _ => {}
        }
        if opcode > 1 || !last {
            continue;
        }
        let message: Value = serde_json::from_slice(&std::mem::take(&mut text)).unwrap_or_default();
        match act(&server.script, &message, Framing::Frame, connection, server.is_replaced()).await {
            After::Next | After::Hold => {}
            After::Gone => return,
            After::Deaf => std::future::pending().await,
            After::Replaced => {
                server.replace().await;
                return connection.reset().await;
            }
        }
    }
}

async fn read(reader: &mut BufReader<OwnedReadHalf>) -> Option<Frame> {
    let first = reader.read_u8().await.ok()?;
    let length = match reader.read_u8().await.ok()? & 0x7f {
        126 => reader.read_u16().await.ok()?.into(),
        127 => reader.read_u64().await.ok()?,
        length => length.into(),
    };
    let mut mask = [0; 4];
    reader.read_exact(&mut mask).await.ok()?;
    let mut payload = vec![0; usize::try_from(length).ok()?];
    reader.read_exact(&mut payload).await.ok()?;
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    Some(Frame { last: first & 0x80 != 0, opcode: first & 0x0f, payload })
}
