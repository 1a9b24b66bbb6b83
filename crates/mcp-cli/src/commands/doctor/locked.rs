//! Whether a server is as it was approved, where there is a lock: what a host would withhold, and what to do about it.

use std::sync::Arc;

use mcp_host::{Approval, ServerDefinitions};
use mcp_model::ServerId;
use mcp_registry::{Enforcement, ItemDrift};

use super::examine::Said;
use super::{Blame, Outcome};
use crate::source::Unreadable;

/// How many differences are told; `lock --check` tells all of them.
const MOST: usize = 5;

/// What to do about what is not as it was approved.
const LOOK: &str =
    "`mcp-host lock --check` shows what has changed, `mcp-host lock --update SERVER` approves of it";

/// The lock of a configuration, read before servers are looked at.
#[derive(Debug, Clone)]
pub(super) enum Locked {
    /// There is none, or it is not to be looked at.
    Not,
    /// It cannot be used: a host starts nothing.
    Unusable(Arc<Unreadable>),
    /// It says what is approved.
    Approved(Arc<Approval>),
}

impl Locked {
    /// From what reading it has brought.
    pub(super) fn of(read: Result<Option<Approval>, Unreadable>) -> Locked {
        match read {
            Ok(None) => Locked::Not,
            Ok(Some(approval)) => Locked::Approved(Arc::new(approval)),
            Err(unreadable) => Locked::Unusable(Arc::new(unreadable)),
        }
    }

    /// What is to be said before the server is looked at, if anything is.
    pub(super) fn before(&self) -> Option<Said> {
        match self {
            Locked::Not | Locked::Approved(_) => None,
            Locked::Unusable(it) => Some(Said {
                outcome: Outcome::Failed(Blame::Configuration),
                message: it.message.clone(),
                help: it.help.clone(),
            }),
        }
    }

    /// What is to be said of what a server offers, if anything is.
    pub(super) fn compared(&self, server: &ServerId, offer: &ServerDefinitions) -> Option<Said> {
        match self {
            Locked::Not | Locked::Unusable(_) => None,
            Locked::Approved(approval) => Some(compared(approval, server, offer)),
        }
    }
}

fn compared(approval: &Approval, server: &ServerId, offer: &ServerDefinitions) -> Said {
    let drift = offer.drift(server, approval);
    let count = match offer.observed.items.values().map(|it| it.len()).sum::<usize>() {
        1 => "1 item".to_owned(),
        many => format!("{many} items"),
    };
    if drift.is_empty() {
        return Said::done(format!("it is as it was approved: {count}"));
    }
    let done = |enforcement: Enforcement| match enforcement {
        Enforcement::Withhold => "is withheld",
        Enforcement::Warn => "is shown with a warning",
    };
    if drift.is_never_approved() {
        let done = done(approval.policy.added);
        return Said::doubtful(
            format!("nothing of it was ever approved: what it offers ({count}) {done}"),
            LOOK,
        );
    }
    let about = drift.about().iter().map(|it| format!("its {}", it.words()));
    let items = drift.items();
    let items = items.iter().map(|ItemDrift { item, key, change: _ }| match drift.enforcement(*item, key) {
        Some((enforcement, why)) => format!("{} `{key}` {}: {why}", item.as_str(), done(enforcement)),
        None => format!("{} `{key}` is gone", item.as_str()),
    });
    // What is withheld is told first.
    let mut all: Vec<String> = items.chain(about).collect();
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    Said::doubtful(format!("it is not as it was approved: {}", all.join("; ")), LOOK)
}
