//! Hearing of changed lists in the modern era, where a server tells them only to those who asked.
//!
//! One long request, `subscriptions/listen`, is kept open for as long as the connection lives. When it ends, what
//! changed meanwhile is unknown: every list counts as changed, so that whoever follows them reads them again.

use std::sync::Arc;
use std::time::Duration;

use mcp_model::ProtocolVersion;
use tokio::sync::watch;

use super::server::Announced;
use super::{Changes, Negotiated};
use crate::engine::{CallTerms, Engine};
use crate::pending::Outcome;
use crate::{Epoch, Head, LaneEnd, Outgoing, frame};

const METHOD: &str = "subscriptions/listen";

/// The pause before listening again: the first, and the longest.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Listens until the connection is over, or the server says that it does not do this.
pub(crate) async fn run(
    engine: Arc<Engine>,
    negotiated: Arc<Negotiated>,
    announced: Announced,
    changes: watch::Sender<Changes>,
) {
    let mut pause = FIRST;
    loop {
        let begun = tokio::time::Instant::now();
        let message = |id| outgoing(id, negotiated.version, announced, &negotiated.meta);
        match engine.call(CallTerms::default(), message).await.1 {
            Outcome::Answer { is_error: false, .. } | Outcome::LaneEnded(LaneEnd::Lost(_)) => {}
            // A server that is away for a while comes back; one that knows nothing of this never will.
            Outcome::LaneEnded(LaneEnd::Refused(fault)) if may_pass(fault.status) => {}
            Outcome::Answer { is_error: true, .. }
            | Outcome::LaneEnded(LaneEnd::Refused(_) | LaneEnd::NotExecuted(_))
            | Outcome::Expired(_)
            | Outcome::Closed(_) => return,
        }
        // A stream that held for a while was no failure.
        pause = if begun.elapsed() > LONGEST { FIRST } else { (pause * 2).min(LONGEST) };
        tokio::time::sleep(pause).await;
        changes.send_modify(|it| it.add(announced));
    }
}

/// May a refusal with this HTTP status be over by and by? Without a status nobody was there.
fn may_pass(status: Option<u16>) -> bool {
    status.is_none_or(|it| it == 429 || it >= 500)
}

fn outgoing(id: u64, version: ProtocolVersion, announced: Announced, meta: &str) -> Outgoing {
    let Announced { tools, prompts, resources } = announced;
    let wanted = [
        (tools, r#""toolsListChanged":true"#),
        (prompts, r#""promptsListChanged":true"#),
        (resources, r#""resourcesListChanged":true"#),
    ];
    let wanted: Vec<&str> =
        wanted.into_iter().filter_map(|(is_wanted, text)| is_wanted.then_some(text)).collect();
    let params = format!(r#""notifications":{{{}}}"#, wanted.join(","));
    let head = Head { id: Some(id), method: METHOD.into(), name: None, version: Some(version) };
    Outgoing { epoch: Epoch(0), head, body: frame::request(id, METHOD, &params, meta) }
}
