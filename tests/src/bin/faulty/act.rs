//! One message in, everything that the script does about it.

use std::sync::Arc;
use std::time::Duration;

use mcp_tests::faults::{Script, Step};
use serde_json::Value;

use crate::form::{Form, LAST_CHUNK};
use crate::message;
use crate::outlet::Outlet;
use crate::process;

/// What comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The next message.
    Next,
    /// Nothing on this connection: it stays as it is.
    Hold,
    /// This connection is over.
    Gone,
    /// The server is, and somebody else is in its place.
    Replaced,
    /// No more is read.
    Deaf,
}

/// What is done about a message.
pub(crate) async fn act(
    script: &Script,
    message: &Value,
    mut form: Form,
    outlet: &Arc<Outlet>,
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
                let framed = form.frame(&text);
                outlet.write(&framed[..framed.len() - text.len() / 2]).await
            }
            Step::Drip(milliseconds) => {
                outlet.drip(&form.frame(&text), 1, Duration::from_millis(*milliseconds)).await
            }
            Step::Utf16 => outlet.write(&form.utf16(&text)).await,
            Step::Misframed => outlet.write(&form.misframed(&text)).await,
            Step::Hush if form.is_lane() => return After::Hold,
            Step::Hush => true,
            Step::End => {
                outlet.end().await;
                return After::Gone;
            }
            Step::Reset => {
                outlet.reset().await;
                return After::Gone;
            }
            Step::Replaced | Step::Website => return After::Replaced,
            Step::Deaf => return After::Deaf,
            Step::Flood | Step::Endless | Step::Alive => {
                let going_on = go_on(*step, form, Arc::clone(outlet));
                if form.is_lane() {
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
                    written &= outlet.write(&form.frame(&payload)).await;
                }
                written
            }
            // These are for wires that answer with a status, and were seen before.
            Step::Status(_) | Step::Spoken(_) | Step::Round | Step::Away => true,
            // And these for the beginning and the end.
            Step::Banner
            | Step::Stubborn
            | Step::SelfSigned
            | Step::WrongName
            | Step::Expired
            | Step::Nobody => true,
        };
        if !written {
            return After::Gone;
        }
    }
    if let Form::LaneEvent { begun: true } = form {
        outlet.write(LAST_CHUNK).await;
    }
    After::Next
}

/// Sends what has no end, until nobody takes it.
pub(crate) async fn go_on(step: Step, mut form: Form, outlet: Arc<Outlet>) {
    let (begin, piece, pause) = match step {
        // Many at a time: it is to be fast, and not busy.
        Step::Flood => (form.head(), form.frame(&message::notice()).repeat(200), Duration::ZERO),
        Step::Endless => {
            let (begin, piece) = form.endless();
            (begin, piece, Duration::ZERO)
        }
        _ => (form.head(), form.alive(), Duration::from_millis(10)),
    };
    let mut goes_on = outlet.write(&begin).await;
    while goes_on {
        goes_on = outlet.write(&piece).await;
        // Others are to have a turn.
        match pause.is_zero() {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(pause).await,
        }
    }
}
