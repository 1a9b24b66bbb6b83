//! A tape on two streams, one message a line: what a child process that plays it does.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::recording::ServerRecording;
use crate::replayer::Replayer;
use mcp_transport::internal::{Line, LineBuffer};

/// The longest line that is read.
const LONGEST: usize = 64 << 20;

/// Plays a tape to whoever writes to `reader`, until that ends. LineBuffer that are no messages are passed over. Fails when a
/// stream does.
pub async fn serve(
    tape: Arc<ServerRecording>,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut player = Replayer::new(tape);
    let mut lines = LineBuffer::new(LONGEST);
    loop {
        while let Some(line) = lines.next() {
            if let Line::Whole(line) = line {
                answer(&mut player, &line, &mut writer).await?;
            }
        }
        if reader.read_buf(lines.spare()).await? == 0 {
            if let Some(rest) = lines.take_rest() {
                answer(&mut player, &rest, &mut writer).await?;
            }
            return Ok(());
        }
    }
}

async fn answer(
    player: &mut Replayer,
    line: &[u8],
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let played = player.receive(line);
    if played.is_empty() {
        return Ok(());
    }
    let mut text = Vec::new();
    for it in played {
        text.extend_from_slice(&it.message);
        text.push(b'\n');
    }
    writer.write_all(&text).await?;
    writer.flush().await
}
