//! How an item stands to the lock: by what the lock says alone, or compared with what its server says now.

use mcp_host::{Approval, ServerDefinitions};
use mcp_model::ServerId;
use mcp_registry::{Enforcement, ItemKind, ListKind};
use serde::Serialize;

/// What the lock says of one item.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Standing {
    state: State,
    /// It is kept from models.
    pub(super) withheld: bool,
    /// Why, in words.
    pub(super) message: String,
}

/// How an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It was approved; whether it is so now was not looked at.
    Listed,
    /// It is as it was approved.
    Approved,
    /// It is not as it was approved.
    Drifted,
    /// It was never approved.
    Unapproved,
    /// It was approved, and its server has it no more.
    Gone,
}

/// What the lock says of a name in one of a server's lists; with what the server offers, where that is known. `None` where
/// the lock knows it by something else than its name, and that is not known.
pub(super) fn standing(
    approval: &Approval,
    server: &ServerId,
    offer: Option<&ServerDefinitions>,
    (list, name): (ListKind, &str),
) -> Option<Standing> {
    let (item, key) = known_by(offer, list, name)?;
    let approved = approval.lock.server(server);
    let is_listed = approved.is_some_and(|it| it.item(item, &key).is_some());
    let Some(offer) = offer else {
        return Some(match is_listed {
            true => Standing::shown(
                State::Listed,
                "it was approved; `--start` sees whether its server still says the same",
            ),
            false => {
                let message =
                    if approved.is_some() { "it was never approved" } else { NOTHING_OF_ITS_SERVER };
                Standing {
                    state: State::Unapproved,
                    withheld: approval.policy.added == Enforcement::Withhold,
                    message: message.to_owned(),
                }
            }
        });
    };
    if offer.observed.item(item, &key).is_none() {
        let message = "its server does not offer it";
        return is_listed
            .then(|| Standing::shown(State::Gone, &format!("it was approved, and {message} now")));
    }
    Some(match offer.drift(server, approval).enforcement(item, &key) {
        None => Standing::shown(State::Approved, "it is as it was approved"),
        Some((enforcement, message)) => Standing {
            state: if is_listed { State::Drifted } else { State::Unapproved },
            withheld: enforcement == Enforcement::Withhold,
            message,
        },
    })
}

const NOTHING_OF_ITS_SERVER: &str = "nothing of its server was ever approved";

impl Standing {
    fn shown(state: State, message: &str) -> Standing {
        Standing { state, withheld: false, message: message.to_owned() }
    }
}

/// What a lock knows an item by: resources by their URIs.
fn known_by(offer: Option<&ServerDefinitions>, list: ListKind, name: &str) -> Option<(ItemKind, String)> {
    match list {
        ListKind::Tool => Some((ItemKind::Tool, name.to_owned())),
        ListKind::Prompt => Some((ItemKind::Prompt, name.to_owned())),
        ListKind::Resource => {
            let lists = &offer?.lists;
            let resource = lists.resources.iter().find(|it| *it.name == *name);
            let template = || lists.templates.iter().find(|it| *it.name == *name);
            match resource {
                Some(it) => Some((ItemKind::Resource, it.uri.to_string())),
                None => template().map(|it| (ItemKind::Template, it.uri_template.to_string())),
            }
        }
    }
}
