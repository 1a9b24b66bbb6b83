//! Catalog construction: one pass over the servers in the configuration's order; the first owner of a name keeps it.
//!
//! Each server has a slice. The slice of an unchanged server is reused from the previous catalog.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use mcp_host_model::ServerId;

use crate::catalog::exposed_items::{ExposedPrompt, ExposedResource, ExposedTemplate, ExposedTool};
use crate::catalog::server_slice::{ExposedItem, ServerSlice};
use crate::catalog::snapshot::Catalog;
use crate::lists::{Builtins, CatalogServer};
use crate::lock::Drift;
use crate::name::exposed_name::ExposedName;

/// The drift of each server that has a lock entry or needs one.
pub(crate) type Drifts = BTreeMap<ServerId, Arc<Drift>>;

impl Catalog {
    /// Builds a catalog. `before` are the standalone slices of an earlier catalog with the same builtins.
    pub(super) fn assemble(
        builtins: &Builtins,
        servers: &[CatalogServer],
        drifts: &Drifts,
        before: &[Arc<ServerSlice>],
    ) -> Catalog {
        let before: HashMap<&ServerId, &Arc<ServerSlice>> =
            before.iter().map(|slice| (&slice.entry.id, slice)).collect();
        let mut owners: HashMap<&str, &str> = HashMap::new();
        let host = "the host itself has a toolset of this name";
        owners.extend(builtins.toolsets.iter().map(|name| (name.as_str(), host)));
        let mut catalog = Catalog { builtins: builtins.clone(), ..Catalog::default() };
        for entry in servers {
            if let Some(owner) = owners.get(entry.id.as_str()) {
                catalog.add(Arc::new(ServerSlice::compute_collided(entry, owner)));
                continue;
            }
            owners.insert(entry.id.as_str(), "an earlier server has this name");
            catalog.toolsets.push(entry.id.clone());
            let drift = drifts.get(&entry.id);
            let reusable = before.get(&entry.id).filter(|slice| slice.is_unchanged(entry, drift));
            let standalone = match reusable {
                Some(slice) => Arc::clone(slice),
                None => Arc::new(ServerSlice::compute_standalone(builtins, entry, drift)),
            };
            catalog.standalone.push(Arc::clone(&standalone));
            let slice = if catalog.has_collision(&standalone) {
                Arc::new(catalog.compute_slice(builtins, entry, drift))
            } else {
                standalone
            };
            catalog.add(slice);
        }
        let mut ids = HashSet::new();
        catalog.problems.retain(|problem| ids.insert(problem.id.clone()));
        catalog
    }

    /// Returns whether a name of this slice is already used.
    fn has_collision(&self, slice: &ServerSlice) -> bool {
        let has_used_name =
            |list: usize, index: &ahash::HashMap<ExposedName, usize>, exposed: &[ExposedItem]| {
                let mut names = exposed.iter().chain(&slice.withheld[list]);
                names.any(|(_, name)| index.contains_key(name) || self.withheld[list].contains_key(name))
            };
        has_used_name(0, &self.tool_index, &slice.tools)
            || has_used_name(1, &self.prompt_index, &slice.prompts)
    }

    /// Computes the slice of a server that follows the servers of this catalog.
    fn compute_slice(
        &self,
        builtins: &Builtins,
        entry: &CatalogServer,
        drift: Option<&Arc<Drift>>,
    ) -> ServerSlice {
        let withheld = |list: usize, name: &str| {
            self.withheld[list].get(name).map(|(server, original)| (server, &**original))
        };
        let tools = |name: &str| {
            let exposed = self.tool_index.get(name).map(|at| &self.tools[*at]);
            exposed.map(|it| (&it.server, &*it.tool.name)).or_else(|| withheld(0, name))
        };
        let prompts = |name: &str| {
            let exposed = self.prompt_index.get(name).map(|at| &self.prompts[*at]);
            exposed.map(|it| (&it.server, &*it.prompt.name)).or_else(|| withheld(1, name))
        };
        ServerSlice::compute(builtins, entry, drift, [&tools, &prompts])
    }

    /// Appends a slice.
    fn add(&mut self, slice: Arc<ServerSlice>) {
        let CatalogServer { id, exposure: _, lists } = &slice.entry;
        self.tool_index.reserve(slice.tools.len());
        self.tools.reserve(slice.tools.len());
        for (at, name) in &slice.tools {
            self.tool_index.insert(name.clone(), self.tools.len());
            let (name, tool) = (name.clone(), Arc::clone(&lists.tools[*at]));
            self.tools.push(ExposedTool::new(name, id.clone(), tool));
        }
        for (at, name) in &slice.prompts {
            self.prompt_index.insert(name.clone(), self.prompts.len());
            let (name, prompt) = (name.clone(), Arc::clone(&lists.prompts[*at]));
            self.prompts.push(ExposedPrompt { name, server: id.clone(), prompt });
        }
        self.resources.extend(slice.resources.iter().map(|(at, name)| {
            let (name, resource) = (name.clone(), Arc::clone(&lists.resources[*at]));
            ExposedResource { name, server: id.clone(), resource }
        }));
        self.templates.extend(slice.templates.iter().map(|(at, name)| {
            let (name, template) = (name.clone(), Arc::clone(&lists.templates[*at]));
            ExposedTemplate { name, server: id.clone(), template }
        }));
        let [tools, prompts] = &mut self.withheld;
        let [withheld_tools, withheld_prompts] = &slice.withheld;
        let owner = |original: &str| (id.clone(), original.into());
        tools.extend(withheld_tools.iter().map(|(at, name)| (name.clone(), owner(&lists.tools[*at].name))));
        prompts.extend(
            withheld_prompts.iter().map(|(at, name)| (name.clone(), owner(&lists.prompts[*at].name))),
        );
        self.problems.extend(slice.problems.iter().cloned());
        self.slices.push(slice);
    }
}
