//! Helpers for tests of the transports over a network.

#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod flood;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Reads the head of a request, or as much of it as was sent.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut res = Vec::new();
    while !res.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => res.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&res).into_owned()
}
