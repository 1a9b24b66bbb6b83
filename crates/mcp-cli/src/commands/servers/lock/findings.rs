//! Findings in what the servers offer: an item with a hard one is approved only if the user accepts findings.

use std::collections::BTreeMap;

use mcp_host_model::ServerId;
use mcp_host_registry::{
    Drift, IdentityPart, ItemFinding, ItemKind, LockFile, OtherTools, ServerSnapshot, server_findings,
};
use mcp_host_runtime::ServerDefinitions;

use crate::render::findings::is_hard;

/// The findings of all servers, by server.
pub(super) struct OfferFindings(BTreeMap<String, Vec<ItemFinding>>);

/// What a finding is about: an item, or the instructions.
type FindingItem<'a> = Option<(ItemKind, &'a str)>;

fn item_of(found: &ItemFinding) -> FindingItem<'_> {
    found.item.as_ref().map(|(kind, key)| (*kind, key.as_str()))
}

impl OfferFindings {
    /// Scans what the servers offer.
    pub(super) fn of(offers: &[(ServerId, ServerDefinitions)]) -> OfferFindings {
        let found = offers.iter().map(|(id, offer)| {
            let own = offer.lists.tools.iter().map(|it| &*it.name);
            let others = offers.iter().filter(|it| it.0 != *id);
            let others = others.flat_map(|(_, other)| other.lists.tools.iter().map(|it| &*it.name));
            let tools = OtherTools::new(others, own);
            (id.as_str().to_owned(), server_findings(offer.instructions.as_deref(), &offer.lists, &tools))
        });
        OfferFindings(found.collect())
    }

    /// Returns the findings of the items of a server that differ from what was approved.
    pub(super) fn of_drift(&self, server: &str, drift: &Drift) -> Vec<ItemFinding> {
        let differs = |found: &&ItemFinding| match item_of(found) {
            Some((kind, key)) => drift.consequence(kind, key).is_some(),
            None => {
                drift.is_never_approved() || drift.identity_changes().contains(&IdentityPart::Instructions)
            }
        };
        self.0.get(server).into_iter().flatten().filter(differs).cloned().collect()
    }

    /// Returns the items with hard findings of a server that are not approved as they are.
    pub(super) fn unapproved<'a>(
        &'a self,
        server: &str,
        offer: &ServerDefinitions,
        lock: &LockFile,
    ) -> Vec<FindingItem<'a>> {
        let approved = lock.servers.get(server);
        let is_unapproved = |item: &FindingItem<'_>| !is_approved(approved, offer, *item);
        let mut items: Vec<FindingItem<'a>> =
            self.0.get(server).into_iter().flatten().filter(|it| is_hard(it)).map(item_of).collect();
        items.dedup();
        items.into_iter().filter(is_unapproved).collect()
    }

    /// Removes from `lock` what `before` did not have and what has a hard finding. Returns the number of such items.
    pub(super) fn hold_back(
        &self,
        lock: &mut LockFile,
        before: &LockFile,
        offers: &[(ServerId, ServerDefinitions)],
    ) -> usize {
        let mut count = 0;
        for (id, offer) in offers {
            for item in self.unapproved(id.as_str(), offer, before) {
                let Some(now) = lock.servers.get_mut(id.as_str()) else { continue };
                if !is_approved(Some(now), offer, item) {
                    continue;
                }
                count += 1;
                let old = before.servers.get(id.as_str());
                match item {
                    None => now.identity.instructions = old.and_then(|it| it.identity.instructions),
                    Some((kind, key)) => {
                        let items = now.items.entry(kind).or_default();
                        match old.and_then(|it| it.item(kind, key)) {
                            Some(approved) => drop(items.insert(key.to_owned(), approved.clone())),
                            None => drop(items.remove(key)),
                        }
                    }
                }
            }
        }
        count
    }
}

/// Whether an item is approved as the server offers it.
fn is_approved(approved: Option<&ServerSnapshot>, offer: &ServerDefinitions, item: FindingItem<'_>) -> bool {
    let Some(approved) = approved else { return false };
    match item {
        None => approved.identity.instructions == offer.observed.identity.instructions,
        Some((kind, key)) => approved.item(kind, key) == offer.observed.item(kind, key),
    }
}
