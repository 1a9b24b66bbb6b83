//! The status of an item in the lock file, with or without a comparison with what its server offers now.

use mcp_host_model::ServerId;
use mcp_host_registry::{DriftConsequence, Enforcement, ItemKind, ListKind};
use mcp_host_runtime::{Approval, ServerDefinitions};
use serde::Serialize;

/// The status of one item.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct LockStatus {
    state: ApprovalState,
    /// Whether the item is hidden.
    pub(super) withheld: bool,
    /// The status in words.
    pub(super) message: String,
}

/// The relation of an item to the lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ApprovalState {
    /// In the lock file; not compared with the server.
    Listed,
    /// Unchanged since its approval.
    Approved,
    /// Changed since its approval.
    Drifted,
    /// Never approved.
    Unapproved,
    /// In the lock file, but no longer offered by its server.
    Gone,
}

/// The status of a name in one of a server's lists, by the lock file. `offer` is what the server offers now, if it was
/// started. `None` if the name is neither offered nor approved, and for a resource without `offer`, because the lock
/// file identifies resources by URI.
pub(super) fn lock_status(
    approval: &Approval,
    server: &ServerId,
    offer: Option<&ServerDefinitions>,
    list: ListKind,
    name: &str,
) -> Option<LockStatus> {
    let (item, key) = lock_key(offer, list, name)?;
    let approved = approval.lock.server(server);
    let is_listed = approved.is_some_and(|approved| approved.item(item, &key).is_some());
    let Some(offer) = offer else {
        if is_listed {
            let message = "approved; `--start` compares it with the server";
            return Some(LockStatus::not_withheld(ApprovalState::Listed, message));
        }
        let message = if approved.is_some() { "never approved" } else { "its server was never approved" };
        return Some(LockStatus {
            state: ApprovalState::Unapproved,
            withheld: approval.policy.added == Enforcement::Withhold,
            message: message.to_owned(),
        });
    };
    if offer.observed.item(item, &key).is_none() {
        let message = "approved, but no longer offered by its server";
        return is_listed.then(|| LockStatus::not_withheld(ApprovalState::Gone, message));
    }
    Some(match offer.drift(server, approval).consequence(item, &key) {
        None => LockStatus::not_withheld(ApprovalState::Approved, "unchanged since approval"),
        Some(DriftConsequence { enforcement, reason, .. }) => LockStatus {
            state: if is_listed { ApprovalState::Drifted } else { ApprovalState::Unapproved },
            withheld: enforcement == Enforcement::Withhold,
            message: reason,
        },
    })
}

impl LockStatus {
    fn not_withheld(state: ApprovalState, message: &str) -> LockStatus {
        LockStatus { state, withheld: false, message: message.to_owned() }
    }
}

/// The key of an item in the lock file: the URI for resources, otherwise the name.
fn lock_key(offer: Option<&ServerDefinitions>, list: ListKind, name: &str) -> Option<(ItemKind, String)> {
    match list {
        ListKind::Tool => Some((ItemKind::Tool, name.to_owned())),
        ListKind::Prompt => Some((ItemKind::Prompt, name.to_owned())),
        ListKind::Resource => {
            let lists = &offer?.lists;
            let resource = lists.resources.iter().find(|resource| *resource.name == *name);
            let template = || lists.templates.iter().find(|template| *template.name == *name);
            match resource {
                Some(resource) => Some((ItemKind::Resource, resource.uri.to_string())),
                None => template().map(|template| (ItemKind::Template, template.uri_template.to_string())),
            }
        }
    }
}
