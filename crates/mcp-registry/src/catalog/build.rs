//! How a catalog comes about: one pass over the servers in the configuration's order, who comes first stays.
//!
//! Each server has a share, and what the catalog before it knew of a server that has not changed is taken over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use mcp_model::ServerId;

use crate::catalog::lists::{Builtins, ServerEntry};
use crate::catalog::server_slice::{ServerSlice, ShownItem};
use crate::lock::Drift;
use crate::name::exposed_items::{ExposedPrompt, ExposedResource, ExposedTemplate, ExposedTool};
use crate::name::exposed_name::ExposedName;
use crate::problem::Problem;

/// How servers differ from what was approved of them; one that is not there is not looked at.
pub(crate) type Drifts = BTreeMap<ServerId, Arc<Drift>>;

/// A catalog's content.
#[derive(Default)]
pub(crate) struct CatalogParts {
    pub(crate) tools: Vec<ExposedTool>,
    pub(crate) prompts: Vec<ExposedPrompt>,
    pub(crate) resources: Vec<ExposedResource>,
    pub(crate) templates: Vec<ExposedTemplate>,
    pub(crate) tool_index: ahash::HashMap<ExposedName, usize>,
    pub(crate) prompt_index: ahash::HashMap<ExposedName, usize>,
    /// Names of tools, and of prompts, that are withheld: who has them.
    withheld: [HashMap<ExposedName, (ServerId, Box<str>)>; 2],
    pub(crate) problems: Vec<Problem>,
    pub(crate) toolsets: Vec<ServerId>,
    /// What each server shows, in order.
    pub(crate) slices: Vec<Arc<ServerSlice>>,
    /// What each would show if no other were there.
    pub(crate) standalone: Vec<Arc<ServerSlice>>,
}

/// Builds all of it. `before` are shares of servers alone, beside the same builtins.
pub(crate) fn build_parts(
    builtins: &Builtins,
    servers: &[ServerEntry],
    drifts: &Drifts,
    before: &[Arc<ServerSlice>],
) -> CatalogParts {
    let before: HashMap<&ServerId, &Arc<ServerSlice>> = before.iter().map(|it| (&it.entry.id, it)).collect();
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let host = "the host itself has a toolset of this name";
    owners.extend(builtins.toolsets.iter().map(|it| (it.as_str(), host)));
    let mut res = CatalogParts::default();
    for entry in servers {
        if let Some(owner) = owners.get(entry.id.as_str()) {
            res.add(Arc::new(ServerSlice::toolset_collision(entry, owner)));
            continue;
        }
        owners.insert(entry.id.as_str(), "an earlier server has this name");
        res.toolsets.push(entry.id.clone());
        let drift = drifts.get(&entry.id);
        let known = before.get(&entry.id).filter(|it| it.is_unchanged(entry, drift));
        let alone = known
            .map_or_else(|| Arc::new(ServerSlice::standalone(builtins, entry, drift)), |it| Arc::clone(it));
        res.standalone.push(Arc::clone(&alone));
        let share = match res.has_collision(&alone) {
            true => Arc::new(res.slice_after_others(builtins, entry, drift)),
            false => alone,
        };
        res.add(share);
    }
    let mut ids = HashSet::new();
    let first: Vec<bool> = res.problems.iter().map(|it| ids.insert(it.id.as_str())).collect();
    let mut first = first.into_iter();
    res.problems.retain(|_| first.next().expect("there is one answer for each problem"));
    res
}

impl CatalogParts {
    /// Would a name of this share be shown that somebody before it has?
    fn has_collision(&self, share: &ServerSlice) -> bool {
        let taken = |list: usize, index: &ahash::HashMap<ExposedName, usize>, shown: &[ShownItem]| {
            let mut names = shown.iter().chain(&share.withheld[list]);
            names.any(|(_, name)| index.contains_key(name) || self.withheld[list].contains_key(name))
        };
        taken(0, &self.tool_index, &share.tools) || taken(1, &self.prompt_index, &share.prompts)
    }

    /// What a server shows beside those before it.
    fn slice_after_others(
        &self,
        builtins: &Builtins,
        entry: &ServerEntry,
        drift: Option<&Arc<Drift>>,
    ) -> ServerSlice {
        let withheld = |list: usize, name: &str| {
            self.withheld[list].get(name).map(|(server, original)| (server, &**original))
        };
        let tools = |name: &str| {
            let shown = self.tool_index.get(name).map(|at| &self.tools[*at]);
            shown.map(|it| (&it.server, &*it.tool.name)).or_else(|| withheld(0, name))
        };
        let prompts = |name: &str| {
            let shown = self.prompt_index.get(name).map(|at| &self.prompts[*at]);
            shown.map(|it| (&it.server, &*it.prompt.name)).or_else(|| withheld(1, name))
        };
        ServerSlice::after_others(builtins, entry, drift, [&tools, &prompts])
    }

    /// Puts a share behind the others.
    fn add(&mut self, share: Arc<ServerSlice>) {
        let ServerEntry { id, exposure: _, lists } = &share.entry;
        self.tool_index.reserve(share.tools.len());
        self.tools.reserve(share.tools.len());
        for (at, name) in &share.tools {
            self.tool_index.insert(name.clone(), self.tools.len());
            let (name, tool) = (name.clone(), Arc::clone(&lists.tools[*at]));
            self.tools.push(ExposedTool { name, server: id.clone(), tool });
        }
        for (at, name) in &share.prompts {
            self.prompt_index.insert(name.clone(), self.prompts.len());
            let (name, prompt) = (name.clone(), Arc::clone(&lists.prompts[*at]));
            self.prompts.push(ExposedPrompt { name, server: id.clone(), prompt });
        }
        self.resources.extend(share.resources.iter().map(|(at, name)| {
            let (name, resource) = (name.clone(), Arc::clone(&lists.resources[*at]));
            ExposedResource { name, server: id.clone(), resource }
        }));
        self.templates.extend(share.templates.iter().map(|(at, name)| {
            let (name, template) = (name.clone(), Arc::clone(&lists.templates[*at]));
            ExposedTemplate { name, server: id.clone(), template }
        }));
        let [tools, prompts] = &mut self.withheld;
        let [no_tools, no_prompts] = &share.withheld;
        let holder = |original: &str| (id.clone(), original.into());
        tools.extend(no_tools.iter().map(|(at, name)| (name.clone(), holder(&lists.tools[*at].name))));
        prompts.extend(no_prompts.iter().map(|(at, name)| (name.clone(), holder(&lists.prompts[*at].name))));
        self.problems.extend(share.problems.iter().cloned());
        self.slices.push(share);
    }
}
