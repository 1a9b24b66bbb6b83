//! Drift of running servers from their approved definitions, cached until their lists or identity change.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_host_model::ServerId;
use mcp_host_registry::{Drift, ServerSnapshot};

use super::Machine;
use super::routing::{InstructionsAccess, read_lists};
use super::state::CachedDrift;
use crate::config::approval::Approval;
use crate::supervisor::lists::ListSnapshot;

impl<I: Clone> Machine<I> {
    /// Sets the approved definitions; `None` approves everything.
    pub(super) fn set_approval(&mut self, approval: Option<Approval>) {
        if self.settings.approval != approval {
            self.settings.approval = approval;
            self.drift_cache.clear();
            self.mark_catalog_stale();
        }
    }

    /// Updates the cached drift of each running server and returns it. Without an approval there is none.
    pub(super) fn update_drifts(&mut self) -> BTreeMap<ServerId, Arc<Drift>> {
        let Some(approval) = &self.settings.approval else { return BTreeMap::new() };
        let mut cache = BTreeMap::new();
        for running in self.slots.iter().filter_map(|it| it.running.as_ref()) {
            let id = running.ticket.server.clone();
            let ListSnapshot { lists, identity, .. } = &*running.listing;
            let read_lists = read_lists(&running.server, &running.listing);
            let cached = self.drift_cache.remove(&id).filter(|it| {
                Arc::ptr_eq(&it.lists, lists) && it.identity == *identity && it.read_lists == read_lists
            });
            let cached = cached.unwrap_or_else(|| {
                let drift = approval.drift(&id, &ServerSnapshot::of(identity.clone(), lists), &read_lists);
                let (lists, identity) = (Arc::clone(lists), identity.clone());
                CachedDrift { lists, identity, read_lists, drift: Arc::new(drift) }
            });
            cache.insert(id, cached);
        }
        self.drift_cache = cache;
        self.drift_cache.iter().map(|(id, it)| (id.clone(), Arc::clone(&it.drift))).collect()
    }

    /// Returns whether the instructions of a server may be shown to models. Call `update_drifts` before.
    pub(super) fn instructions_access(&self, server: &ServerId) -> InstructionsAccess {
        match (&self.settings.approval, self.drift_cache.get(server)) {
            (None, _) => InstructionsAccess::Any,
            (Some(_), Some(it)) if it.drift.withholds_instructions() => InstructionsAccess::Withheld,
            (Some(_), _) => InstructionsAccess::ApprovedOnly,
        }
    }
}
