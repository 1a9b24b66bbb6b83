//! Execution of a script for one message.

use std::sync::Arc;
use std::time::Duration;

use mcp_tests::faults::{Script, Step};
use serde_json::Value;

use crate::connection::Connection;
use crate::framing::{Framing, LAST_CHUNK};
use crate::message;
use crate::process;

/// What to do after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// Read the next message.
    Next,
    /// Keep the connection open without further messages.
    Hold,
    /// Close the connection.
    Gone,
    /// Another server takes over.
    Replaced,
    /// Stop reading.
    Deaf,
}

/// Handles a message.
pub(crate) async fn act(
    script: &Script,
    message: &Value,
    mut framing: Framing,
    connection: &Arc<Connection>,
    replaced: bool,
) -> After {
    let Some(well) = message::answer(script, message, replaced) else { return After::Next };
    let steps: &[Step] = match message::moment(message) {
        Some(at) if at == script.at && !replaced => &script.steps,
        _ => &[Step::Well],
    };
    let text = well.to_string().into_bytes();
    for step in steps {
        let written = match step {
            Step::Half => {
                let framed = framing.frame(&text);
                connection.write(&framed[..framed.len() - text.len() / 2]).await
            }
            Step::Drip(milliseconds) => {
                connection.drip(&framing.frame(&text), 1, Duration::from_millis(*milliseconds)).await
            }
            Step::Utf16 => connection.write(&framing.utf16(&text)).await,
            Step::Misframed => connection.write(&framing.misframed(&text)).await,
            Step::Hush if framing.has_own_response() => return After::Hold,
            Step::Hush => true,
            Step::End => {
                connection.end().await;
                return After::Gone;
            }
            Step::Reset => {
                connection.reset().await;
                return After::Gone;
            }
            Step::Replaced | Step::Website => return After::Replaced,
            Step::Deaf => return After::Deaf,
            Step::Flood | Step::Endless | Step::Alive => {
                let going_on = go_on(*step, framing, Arc::clone(connection));
                if framing.has_own_response() {
                    going_on.await;
                    return After::Gone;
                }
                tokio::spawn(going_on);
                true
            }
            Step::Exit(_)
            | Step::Orphan
            | Step::Escape
            | Step::CloseOutput
            | Step::FillErrors
            | Step::Allocate => {
                process::act(*step).await;
                true
            }
            Step::Well
            | Step::Twice
            | Step::Bom
            | Step::Latin1
            | Step::WrongId
            | Step::TextId
            | Step::Unasked
            | Step::Error
            | Step::Deep(_)
            | Step::Huge(_)
            | Step::Pages
            | Step::SamePage => {
                let mut written = true;
                for payload in message::payloads(*step, message, &well) {
                    written &= connection.write(&framing.frame(&payload)).await;
                }
                written
            }
            // Statuses are handled before.
            Step::Status(_) | Step::Spoken(_) | Step::Round | Step::Away => true,
            // These belong to the start and the end.
            Step::Banner
            | Step::Stubborn
            | Step::SelfSigned
            | Step::WrongName
            | Step::Expired
            | Step::NoServer => true,
        };
        if !written {
            return After::Gone;
        }
    }
    if let Framing::ResponseEvent { begun: true } = framing {
        connection.write(LAST_CHUNK).await;
    }
    After::Next
}

/// Sends data without end, until the peer stops reading.
pub(crate) async fn go_on(step: Step, mut framing: Framing, connection: Arc<Connection>) {
    let (begin, piece, pause) = match step {
        // Many messages per write, to be fast.
        Step::Flood => (framing.head(), framing.frame(&message::notice()).repeat(200), Duration::ZERO),
        Step::Endless => {
            let (begin, piece) = framing.endless();
            (begin, piece, Duration::ZERO)
        }
        _ => (framing.head(), framing.alive(), Duration::from_millis(10)),
    };
    let mut goes_on = connection.write(&begin).await;
    while goes_on {
        goes_on = connection.write(&piece).await;
        // Lets other tasks run.
        match pause.is_zero() {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(pause).await,
        }
    }
}
