//! Catalog construction: one pass over the servers in the configuration's order; the first owner of a name keeps it.
//!
//! Each server has a slice. The slice of an unchanged server is reused from the previous catalog, and so are its names
//! in the index, unless servers collide.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::{HashMap, HashSet};
use mcp_host_model::ServerId;

use crate::catalog::catalog_list::{NamedList, PerNamedList};
use crate::catalog::name_index::NameIndex;
use crate::catalog::server_slice::{EarlierNames, ServerSlice};
use crate::catalog::snapshot::Catalog;
use crate::lists::{Builtins, CatalogServer};
use crate::lock::Drift;

/// The drift of each server that has a lock entry or needs one.
pub(crate) type Drifts = BTreeMap<ServerId, Arc<Drift>>;

impl Catalog {
    /// Builds a catalog. `before` is an earlier catalog with the same builtins, or an empty one.
    pub(super) fn assemble<S: Borrow<CatalogServer>>(
        builtins: &Builtins,
        servers: &[S],
        drifts: &Drifts,
        before: &Catalog,
    ) -> Catalog {
        let known: HashMap<&ServerId, &Arc<ServerSlice>> =
            before.standalone.iter().map(|slice| (&slice.entry.id, slice)).collect();
        let mut owners: HashMap<&str, &str> = HashMap::default();
        let host = "the host itself has a toolset of this name";
        owners.extend(builtins.toolsets.iter().map(|name| (name.as_str(), host)));
        let mut catalog = Catalog { builtins: builtins.clone(), ..Catalog::default() };
        for entry in servers.iter().map(S::borrow) {
            if let Some(owner) = owners.get(entry.id.as_str()) {
                catalog.slices.push(Arc::new(ServerSlice::compute_collided(entry, owner)));
                continue;
            }
            owners.insert(entry.id.as_str(), "an earlier server has this name");
            catalog.toolsets.push(entry.id.clone());
            let drift = drifts.get(&entry.id);
            let reusable = known.get(&entry.id).filter(|slice| slice.is_unchanged(entry, drift));
            let standalone = match reusable {
                Some(slice) => Arc::clone(slice),
                None => Arc::new(ServerSlice::compute_standalone(builtins, entry, drift)),
            };
            catalog.standalone.push(Arc::clone(&standalone));
            catalog.slices.push(standalone);
        }
        match before.updated_names(&catalog.slices) {
            Some(names) => catalog.names = names,
            None => catalog.resolve_collisions(),
        }
        catalog.count_items();
        let mut ids = HashSet::default();
        let problems = catalog.slices.iter().flat_map(|slice| &slice.problems);
        catalog.problems = problems.filter(|problem| ids.insert(&problem.id)).cloned().collect();
        catalog
    }

    /// Returns the names of these slices, of which some are slices of this catalog. Returns `None` if a name has
    /// several users now, or had several in this catalog.
    fn updated_names(&self, slices: &[Arc<ServerSlice>]) -> Option<NameIndex> {
        let own = self.slices.iter().filter(|slice| slice.has_toolset);
        if !own.zip(&self.standalone).all(|(slice, standalone)| Arc::ptr_eq(slice, standalone)) {
            return None;
        }
        let pointers = |slices: &[Arc<ServerSlice>]| -> HashSet<*const ServerSlice> {
            slices.iter().map(Arc::as_ptr).collect()
        };
        let (before, now) = (pointers(&self.slices), pointers(slices));
        let mut names = self.names.clone();
        self.slices.iter().filter(|slice| !now.contains(&Arc::as_ptr(slice))).for_each(|it| names.remove(it));
        let mut added = slices.iter().filter(|slice| !before.contains(&Arc::as_ptr(slice)));
        added.all(|slice| names.try_insert(slice)).then_some(names)
    }

    /// Computes the names, and the slices of servers whose names earlier servers use.
    fn resolve_collisions(&mut self) {
        let mut names = NameIndex::default();
        for slice in &mut self.slices {
            if !names.try_insert(slice) {
                let tools = |name: &str| names.user(NamedList::Tools, name);
                let prompts = |name: &str| names.user(NamedList::Prompts, name);
                let earlier = PerNamedList { tools: &tools as EarlierNames<'_>, prompts: &prompts };
                *slice = Arc::new(slice.compute_beside(&self.builtins, earlier));
                names.try_insert(slice);
            }
        }
        self.names = names;
    }

    /// Sets the positions of the slices and of their items.
    fn count_items(&mut self) {
        self.starts = [0; 4].map(|start| vec![start]);
        for slice in &self.slices {
            let counts =
                [slice.tools.len(), slice.prompts.len(), slice.resources.len(), slice.templates.len()];
            for (starts, count) in self.starts.iter_mut().zip(counts) {
                starts.push(starts[starts.len() - 1] + count);
            }
        }
        let slices = self.slices.iter().enumerate();
        self.positions = slices.map(|(at, slice)| (Arc::as_ptr(slice).addr(), at)).collect();
    }
}
