//! The catalog type: an immutable value.
//!
//! A change makes a new catalog. The order is that of the configuration, then of each server, so the same content
//! gives the same catalog.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use mcp_host_model::ServerId;

use crate::catalog::catalog_list::{CatalogList, NamedList};
use crate::catalog::exposed_items::{ExposedPrompt, ExposedResource, ExposedTemplate, ExposedTool};
use crate::catalog::item_list::ItemList;
use crate::catalog::lookup::{ToolLookup, find_nearest};
use crate::catalog::name_index::{NameIndex, SliceItem};
use crate::catalog::name_owner::NameOwner;
use crate::catalog::server_slice::ServerSlice;
use crate::filter::rules::Decision;
use crate::hash::{CatalogHash, HashEncoder};
use crate::lists::{Builtins, CatalogServer, ListKind};
use crate::lock::Drift;
use crate::problem::Problem;

/// The exposed items of all servers under unique names, with the decisions that led to them.
///
/// Invariant: exposed names are unique among tools, and among prompts; the URIs of resources, and of templates, are
/// unique within a server.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    pub(super) builtins: Builtins,
    pub(super) toolsets: Vec<ServerId>,
    pub(super) problems: Vec<Problem>,
    /// The slice of each server, in order.
    pub(super) slices: Vec<Arc<ServerSlice>>,
    /// For each list, the position of the first item of each slice, and the number of items.
    pub(super) starts: [Vec<usize>; 4],
    /// The position of each slice, by its address.
    pub(super) positions: ahash::HashMap<usize, usize>,
    /// The names of tools and prompts.
    pub(super) names: NameIndex,
    /// The slice of each server as if there were no other servers, for reuse in the next catalog.
    pub(super) standalone: Vec<Arc<ServerSlice>>,
    /// The hash of the content, computed on first use.
    pub(super) hash: OnceLock<CatalogHash>,
}

impl Catalog {
    /// Builds a catalog of `servers`, in the configuration's order, and `builtins`.
    ///
    /// Of two items with one name, the host's own has priority, then the earlier server, then the earlier item of a
    /// server. The other is hidden with a problem that names both (DM-032, DM-051). A server whose id is the name of
    /// another toolset is hidden completely (DM-033).
    pub fn build(builtins: &Builtins, servers: &[CatalogServer]) -> Catalog {
        Catalog::build_approved(builtins, servers, &BTreeMap::new())
    }

    /// Builds a catalog in which `drifts` applies: by its policy, an item that differs from the approved one is
    /// hidden ([`ExposureVerdict::NotApproved`](crate::filter::rules::ExposureVerdict)) or exposed with a problem.
    pub fn build_approved(
        builtins: &Builtins,
        servers: &[CatalogServer],
        drifts: &BTreeMap<ServerId, Arc<Drift>>,
    ) -> Catalog {
        Catalog::assemble(builtins, servers, drifts, &Catalog::default())
    }

    /// Builds the catalog of [`build_approved`](Catalog::build_approved) with the builtins of this one, reusing the
    /// slices of servers whose lists, rules and drift are unchanged.
    pub fn successor<S: Borrow<CatalogServer>>(
        &self,
        servers: &[S],
        drifts: &BTreeMap<ServerId, Arc<Drift>>,
    ) -> Catalog {
        Catalog::assemble(&self.builtins, servers, drifts, self)
    }

    /// Returns an empty catalog.
    pub fn empty() -> Catalog {
        Catalog::default()
    }

    /// Returns the slices of the servers, in order.
    pub fn slices(&self) -> &[Arc<ServerSlice>] {
        &self.slices
    }

    /// Returns the tools, in order.
    pub fn tools(&self) -> ItemList<'_, ExposedTool> {
        self.list(CatalogList::Tools, |slice| &slice.tools)
    }

    /// Returns the tool with exactly this exposed name.
    pub fn tool(&self, exposed: &str) -> Option<&ExposedTool> {
        self.names.exposed(NamedList::Tools, exposed).map(SliceItem::tool)
    }

    /// Returns the position of the tool with exactly this exposed name.
    pub fn tool_position(&self, exposed: &str) -> Option<usize> {
        self.names.exposed(NamedList::Tools, exposed).map(|item| self.position(CatalogList::Tools, item))
    }

    /// Returns the position of the prompt with exactly this exposed name.
    pub fn prompt_position(&self, exposed: &str) -> Option<usize> {
        self.names.exposed(NamedList::Prompts, exposed).map(|item| self.position(CatalogList::Prompts, item))
    }

    /// Returns the position of an item in a list.
    fn position(&self, list: CatalogList, SliceItem { slice, at }: &SliceItem) -> usize {
        self.starts[list as usize][self.positions[&Arc::as_ptr(slice).addr()]] + at
    }

    /// Finds a tool by its exposed name, or else by an original name that only one tool has.
    pub fn find(&self, name: &str) -> ToolLookup<'_> {
        match self.find_exactly(name) {
            ToolLookup::Missing { .. } => ToolLookup::Missing { nearest: find_nearest(&self.slices, name) },
            found => found,
        }
    }

    /// Finds a tool as [`find`](Catalog::find) does, without the nearest one if there is none.
    pub fn find_exactly(&self, name: &str) -> ToolLookup<'_> {
        if let Some(tool) = self.tool(name) {
            return ToolLookup::Found(tool);
        }
        match self.names.tools_by_original(name) {
            [] => ToolLookup::Missing { nearest: None },
            [item] => ToolLookup::Found(item.tool()),
            many => {
                let mut many: Vec<&SliceItem> = many.iter().collect();
                many.sort_by_key(|item| self.position(CatalogList::Tools, item));
                ToolLookup::Ambiguous(many.into_iter().map(SliceItem::tool).collect())
            }
        }
    }

    /// Returns the tool of a server by its exposed name, or else by its original name.
    pub fn tool_of(&self, server: &ServerId, name: &str) -> Option<&ExposedTool> {
        let originals = self.names.tools_by_original(name).iter().map(SliceItem::tool);
        self.tool(name).into_iter().chain(originals).find(|tool| tool.server == *server)
    }

    /// Returns the prompts, in order.
    pub fn prompts(&self) -> ItemList<'_, ExposedPrompt> {
        self.list(CatalogList::Prompts, |slice| &slice.prompts)
    }

    /// Returns the prompt with exactly this exposed name.
    pub fn prompt(&self, exposed: &str) -> Option<&ExposedPrompt> {
        self.names.exposed(NamedList::Prompts, exposed).map(|item| &item.slice.prompts[item.at])
    }

    /// Returns the resources, in order.
    pub fn resources(&self) -> ItemList<'_, ExposedResource> {
        self.list(CatalogList::Resources, |slice| &slice.resources)
    }

    /// Returns the resource templates, in order.
    pub fn templates(&self) -> ItemList<'_, ExposedTemplate> {
        self.list(CatalogList::Templates, |slice| &slice.templates)
    }

    fn list<T>(&self, list: CatalogList, items: fn(&ServerSlice) -> &[T]) -> ItemList<'_, T> {
        ItemList { slices: &self.slices, starts: &self.starts[list as usize], items }
    }

    /// Returns the decision on each item, exposed or hidden, in order. Of each server, templates follow resources,
    /// and malformed items are last.
    pub fn decisions(&self, list: ListKind) -> impl Iterator<Item = &Decision> {
        self.slices.iter().flat_map(move |slice| slice.decisions(list))
    }

    /// Returns the decisions that hide a tool, in order.
    pub fn hidden_tools(&self) -> impl Iterator<Item = &Decision> {
        self.slices.iter().flat_map(|slice| slice.hidden_tools())
    }

    /// Returns the owner of a tool or prompt name (DM-055, DM-097). Resource names are only labels and have no owner.
    pub fn owner(&self, list: ListKind, name: &str) -> Option<NameOwner<'_>> {
        match list {
            ListKind::Tool if self.builtins.tools.iter().any(|it| it == name) => Some(NameOwner::Host),
            ListKind::Tool => self.tool(name).map(|it| NameOwner::Server(&it.server)),
            ListKind::Prompt => self.prompt(name).map(|it| NameOwner::Server(&it.server)),
            ListKind::Resource => None,
        }
    }

    /// Returns the owner of a toolset name.
    pub fn toolset_owner(&self, name: &str) -> Option<NameOwner<'_>> {
        if self.builtins.toolsets.iter().any(|it| it == name) {
            return Some(NameOwner::Host);
        }
        self.toolsets.iter().find(|it| it.as_str() == name).map(NameOwner::Server)
    }

    /// Returns the problems of hidden items and servers, with unique ids.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the exposed servers, in order. Each is a toolset (DM-030), even without tools.
    pub fn toolsets(&self) -> &[ServerId] {
        &self.toolsets
    }

    /// Returns the host's own toolsets.
    pub fn builtin_toolsets(&self) -> &[String] {
        &self.builtins.toolsets
    }

    /// Returns the hash of everything exposed: names, servers and definitions byte for byte, and toolsets, in order.
    pub fn hash(&self) -> CatalogHash {
        *self.hash.get_or_init(|| {
            let mut encoder = HashEncoder::new("mcp-registry catalog 3");
            for slice in self.slices.iter().filter(|slice| slice.has_toolset) {
                encoder.write_text(slice.entry.id.as_str());
                encoder.write_bytes(slice.hash().as_bytes());
            }
            encoder.finish()
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
