//! Drift of running servers from their approved definitions, cached until their lists or identity change.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_host_model::ServerId;
use mcp_host_registry::{Drift, ListKind, ServerSnapshot};

use super::Machine;
use super::routing::InstructionsAccess;
use super::slot::RunningServer;
use super::state::CachedDrift;
use crate::config::approval::Approval;
use crate::supervisor::lists::enabled_lists;

impl<I> RunningServer<I> {
    /// The lists that were read.
    pub(super) fn read_lists(&self) -> Vec<ListKind> {
        let unread = self.listed.failed_lists();
        enabled_lists(&self.server).into_iter().filter(|it| !unread.contains(it)).collect()
    }
}

impl<I: Clone> Machine<I> {
    /// Sets the approved definitions; `None` approves everything.
    pub(super) fn set_approval(&mut self, approval: Option<Approval>) {
        if self.settings.approval != approval {
            self.settings.approval = approval;
            self.drift_cache.clear();
            self.mark_catalog_stale();
        }
    }

    /// Computes the drift of each running server and caches it. Empty without an approval.
    pub(super) fn update_drifts(&mut self) -> BTreeMap<ServerId, Arc<Drift>> {
        let Some(approval) = &self.settings.approval else { return BTreeMap::new() };
        let mut cache = BTreeMap::new();
        for running in self.slots.iter().filter_map(|it| it.running.as_ref()) {
            let id = running.ticket.server.clone();
            let (lists, about, read) = (&running.listed.lists, &running.listed.about, running.read_lists());
            let known = self
                .drift_cache
                .remove(&id)
                .filter(|it| Arc::ptr_eq(&it.lists, lists) && it.about == *about && it.read == read);
            let known = known.unwrap_or_else(|| {
                let drift = approval.drift(&id, &ServerSnapshot::of(about.clone(), lists), &read);
                CachedDrift { lists: Arc::clone(lists), about: about.clone(), read, drift: Arc::new(drift) }
            });
            cache.insert(id, known);
        }
        self.drift_cache = cache;
        self.drift_cache.iter().map(|(id, it)| (id.clone(), Arc::clone(&it.drift))).collect()
    }

    /// Which instructions of a server may be shown to models. `update_drifts` runs first.
    pub(super) fn instructions(&self, server: &ServerId) -> InstructionsAccess {
        match (&self.settings.approval, self.drift_cache.get(server)) {
            (None, _) => InstructionsAccess::Any,
            (Some(_), Some(it)) if it.drift.withholds_instructions() => InstructionsAccess::Withheld,
            (Some(_), _) => InstructionsAccess::ApprovedOnly,
        }
    }
}
