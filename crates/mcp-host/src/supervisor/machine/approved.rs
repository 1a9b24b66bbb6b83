//! How the servers that run differ from what was approved of them, worked out once for each state of their lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_model::ServerId;
use mcp_registry::{Drift, ListKind, ServerIdentity, ServerLists, ServerSnapshot};

use super::slot::Live;
use super::view::Instructions;
use super::{Action, Machine};
use crate::config::approval::Approval;
use crate::supervisor::connector::kinds;

/// What was looked at, and what came of it.
pub(super) struct Looked {
    lists: Arc<ServerLists>,
    about: ServerIdentity,
    read: Vec<ListKind>,
    drift: Arc<Drift>,
}

impl<I> Live<I> {
    /// The lists that were read.
    pub(super) fn read(&self) -> Vec<ListKind> {
        let unread = self.listed.unread();
        kinds(&self.server).into_iter().filter(|it| !unread.contains(it)).collect()
    }
}

impl<I: Clone> Machine<I> {
    /// This, and nothing else, is approved from now on; everything where `None`.
    pub(super) fn approve(&mut self, approval: Option<Approval>) -> Vec<Action<I>> {
        if self.settings.approval != approval {
            self.settings.approval = approval;
            self.looked.clear();
            self.touch();
        }
        Vec::new()
    }

    /// How each server that runs differs.
    pub(super) fn drifts(&mut self) -> BTreeMap<ServerId, Arc<Drift>> {
        let Some(approval) = &self.settings.approval else { return BTreeMap::new() };
        let mut looked = BTreeMap::new();
        for live in self.slots.iter().filter_map(|it| it.live.as_ref()) {
            let id = live.ticket.server.clone();
            let (lists, about, read) = (&live.listed.lists, &live.listed.about, live.read());
            let known = self
                .looked
                .remove(&id)
                .filter(|it| Arc::ptr_eq(&it.lists, lists) && it.about == *about && it.read == read);
            let known = known.unwrap_or_else(|| {
                let drift = approval.drift(&id, &ServerSnapshot::of(about.clone(), lists), &read);
                Looked { lists: Arc::clone(lists), about: about.clone(), read, drift: Arc::new(drift) }
            });
            looked.insert(id, known);
        }
        self.looked = looked;
        self.looked.iter().map(|(id, it)| (id.clone(), Arc::clone(&it.drift))).collect()
    }

    /// Which of a server's instructions models may read.
    pub(super) fn instructions(&self, server: &ServerId) -> Instructions {
        match (&self.settings.approval, self.looked.get(server)) {
            (None, _) => Instructions::Any,
            (Some(_), Some(it)) if it.drift.withholds_instructions() => Instructions::Withheld,
            (Some(_), _) => Instructions::Known,
        }
    }
}
