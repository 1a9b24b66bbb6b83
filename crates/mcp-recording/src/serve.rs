//! Replays a recording on a pair of streams, one message per line, as a stdio server does.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::recording::ServerRecording;
use crate::replayer::Replayer;
use mcp_host_transport::internal::{Line, LineBuffer};

/// Maximum length of a line.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Replays a recording to the client that writes to `reader`, until it ends. Invalid lines are skipped. Fails when a
/// stream fails.
pub async fn serve(
    recording: Arc<ServerRecording>,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut replayer = Replayer::new(recording);
    let mut lines = LineBuffer::new(MAX_LINE_BYTES);
    loop {
        while let Some(line) = lines.next_line() {
            if let Line::Whole(line) = line {
                respond(&mut replayer, &line, &mut writer).await?;
            }
        }
        if reader.read_buf(lines.read_buffer()).await? == 0 {
            if let Some(rest) = lines.take_rest() {
                respond(&mut replayer, &rest, &mut writer).await?;
            }
            return Ok(());
        }
    }
}

/// Writes the replayed messages for a line.
async fn respond(
    replayer: &mut Replayer,
    line: &[u8],
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let messages = replayer.receive(line);
    if messages.is_empty() {
        return Ok(());
    }
    let mut text = Vec::new();
    for it in messages {
        text.extend_from_slice(&it.message);
        text.push(b'\n');
    }
    writer.write_all(&text).await?;
    writer.flush().await
}
