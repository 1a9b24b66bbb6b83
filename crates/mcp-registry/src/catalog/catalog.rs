//! Every server's tools, prompts, resources and templates under names that are unique: an immutable value.
//!
//! There is no change here, only a new catalog: whoever holds one holds all of it. The order is that of the
//! configuration, then each server's own, so the same content gives the same catalog.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use mcp_model::ServerId;

use crate::catalog::build;
use crate::catalog::lists::{Builtins, ListKind, ServerEntry};
use crate::catalog::lookup::ToolLookup;
use crate::catalog::lookup::nearest;
use crate::catalog::ownership::Owner;
use crate::catalog::server_slice::ServerSlice;
use crate::filter::rules::Decision;
use crate::hash::CatalogHash;
use crate::hash::Encoder;
use crate::lock::Drift;
use crate::name::exposed_items::{ExposedPrompt, ExposedResource, ExposedTemplate, ExposedTool};
use crate::name::exposed_name::ExposedName;
use crate::problem::Problem;

/// What a host shows, and how it got there.
///
/// Invariant: exposed names are unique among tools, and among prompts; the URIs of resources, and of templates, are
/// unique within a server.
#[derive(Debug, Clone)]
pub struct Catalog {
    tools: Vec<ExposedTool>,
    prompts: Vec<ExposedPrompt>,
    resources: Vec<ExposedResource>,
    templates: Vec<ExposedTemplate>,
    problems: Vec<Problem>,
    toolsets: Vec<ServerId>,
    builtins: Builtins,
    tool_index: ahash::HashMap<ExposedName, usize>,
    prompt_index: ahash::HashMap<ExposedName, usize>,
    /// Positions of `tools`, ordered by original name; made for the first who asks.
    by_original: OnceLock<Vec<usize>>,
    /// What each server shows, in order, and what each would show if no other were there.
    slices: Vec<Arc<ServerSlice>>,
    standalone: Vec<Arc<ServerSlice>>,
    /// Made for the first who asks.
    hash: OnceLock<CatalogHash>,
}

impl Catalog {
    /// Puts together what `servers`, in the configuration's order, have to show beside `builtins`.
    ///
    /// Where two want one name the host's own wins, then the earlier server, then within a server the earlier item;
    /// the other is left out with a problem that names both (DM-032, DM-051). A server whose id is the name of
    /// another toolset is left out as a whole (DM-033).
    pub fn build(builtins: &Builtins, servers: &[ServerEntry]) -> Catalog {
        Catalog::build_approved(builtins, servers, &BTreeMap::new())
    }

    /// The same, where `drifts` says of servers how they differ from what was approved of them: by its policy what
    /// differs is withheld ([`Verdict::NotApproved`](crate::filter::decide::Verdict)), or shown with a problem.
    pub fn build_approved(
        builtins: &Builtins,
        servers: &[ServerEntry],
        drifts: &BTreeMap<ServerId, Arc<Drift>>,
    ) -> Catalog {
        Catalog::assemble(builtins, servers, drifts, &[])
    }

    /// The catalog of [`build_approved`](Catalog::build_approved) with the builtins of this one, for less: what this
    /// one knows of servers whose lists, rules and drift are the very same is taken over.
    pub fn successor(&self, servers: &[ServerEntry], drifts: &BTreeMap<ServerId, Arc<Drift>>) -> Catalog {
        Catalog::assemble(&self.builtins, servers, drifts, &self.standalone)
    }

    fn assemble(
        builtins: &Builtins,
        servers: &[ServerEntry],
        drifts: &BTreeMap<ServerId, Arc<Drift>>,
        before: &[Arc<ServerSlice>],
    ) -> Catalog {
        let parts = build::build_parts(builtins, servers, drifts, before);
        let build::CatalogParts { tools, prompts, resources, templates, problems, toolsets, .. } = parts;
        let build::CatalogParts { tool_index, prompt_index, slices: shares, standalone: alone, .. } = parts;
        Catalog {
            tools,
            prompts,
            resources,
            templates,
            problems,
            toolsets,
            builtins: builtins.clone(),
            tool_index,
            prompt_index,
            by_original: OnceLock::new(),
            slices: shares,
            standalone: alone,
            hash: OnceLock::new(),
        }
    }

    /// A catalog of nothing.
    pub fn empty() -> Catalog {
        Catalog::build(&Builtins::default(), &[])
    }

    /// The tools, in order.
    pub fn tools(&self) -> &[ExposedTool] {
        &self.tools
    }

    /// The tool shown under exactly this name.
    pub fn tool(&self, exposed: &str) -> Option<&ExposedTool> {
        self.tool_index.get(exposed).map(|at| &self.tools[*at])
    }

    /// The tool that somebody means by `name`: its exposed name, else the original name of one tool only.
    pub fn find(&self, name: &str) -> ToolLookup<'_> {
        if let Some(tool) = self.tool(name) {
            return ToolLookup::Found(tool);
        }
        let original = |at: &usize| &*self.tools[*at].tool.name;
        let ordered = self.by_original.get_or_init(|| {
            let mut res: Vec<usize> = (0..self.tools.len()).collect();
            res.sort_by_key(|at| original(at));
            res
        });
        let start = ordered.partition_point(|at| original(at) < name);
        let end = start + ordered[start..].partition_point(|at| original(at) == name);
        match ordered[start..end] {
            [] => ToolLookup::Missing { nearest: nearest(&self.tools, name) },
            [at] => ToolLookup::Found(&self.tools[at]),
            ref many => ToolLookup::Ambiguous(many.iter().map(|at| &self.tools[*at]).collect()),
        }
    }

    /// The prompts, in order.
    pub fn prompts(&self) -> &[ExposedPrompt] {
        &self.prompts
    }

    /// The prompt shown under exactly this name.
    pub fn prompt(&self, exposed: &str) -> Option<&ExposedPrompt> {
        self.prompt_index.get(exposed).map(|at| &self.prompts[*at])
    }

    /// The resources, in order.
    pub fn resources(&self) -> &[ExposedResource] {
        &self.resources
    }

    /// The resource templates, in order.
    pub fn templates(&self) -> &[ExposedTemplate] {
        &self.templates
    }

    /// What became of each item of these lists, shown or not, in order; of each server templates come after resources
    /// and malformed items last.
    pub fn decisions(&self, list: ListKind) -> impl Iterator<Item = &Decision> {
        self.slices.iter().flat_map(move |it| it.decisions(list))
    }

    /// Who has this name among what is called by name (DM-055, DM-097): the tools or the prompts. Resources are told
    /// apart by URI, and nobody has their names.
    pub fn owner(&self, list: ListKind, name: &str) -> Option<Owner<'_>> {
        match list {
            ListKind::Tool if self.builtins.tools.iter().any(|it| it == name) => Some(Owner::Host),
            ListKind::Tool => self.tool(name).map(|it| Owner::Server(&it.server)),
            ListKind::Prompt => self.prompt(name).map(|it| Owner::Server(&it.server)),
            ListKind::Resource => None,
        }
    }

    /// Who has the toolset of this name.
    pub fn toolset_owner(&self, name: &str) -> Option<Owner<'_>> {
        if self.builtins.toolsets.iter().any(|it| it == name) {
            return Some(Owner::Host);
        }
        self.toolsets.iter().find(|it| it.as_str() == name).map(Owner::Server)
    }

    /// What a user should know about tools, prompts, resources and servers that are not shown. No two have one id.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The servers that are shown, each of which is a toolset (DM-030), in order; those without tools too.
    pub fn toolsets(&self) -> &[ServerId] {
        &self.toolsets
    }

    /// The host's own toolsets.
    pub fn builtin_toolsets(&self) -> &[String] {
        &self.builtins.toolsets
    }

    /// The hash of everything that is shown: names, servers and definitions byte for byte, and toolsets, in order.
    pub fn hash(&self) -> CatalogHash {
        *self.hash.get_or_init(|| {
            let mut encoder = Encoder::new("mcp-registry catalog 3");
            for share in self.slices.iter().filter(|it| it.is_toolset) {
                encoder.text(share.entry.id.as_str());
                encoder.bytes(share.hash().as_bytes());
            }
            encoder.hash()
        })
    }
}

impl Default for Catalog {
    fn default() -> Catalog {
        Catalog::empty()
    }
}

#[cfg(test)]
pub(crate) mod tests;
