//! Properties of the step from any generation to any other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mcp_host_model::{CallRules, Discovery, Endpoint, Limits, ServerId, Sharing, StdioEndpoint};
use mcp_host_registry::{
    Catalog, CatalogServer, CatalogStep, DesiredServer, ExposedName, ExposureSettings, ListKind, NameOwner,
    ReloadPlan, RuntimeSettings,
};
use proptest::prelude::*;

use crate::{builtins, servers};

/// Plans a reload. The lists of a server are part of its runtime settings, so other lists require a restart.
fn plan(old: &[CatalogServer], new: &[CatalogServer]) -> ReloadPlan {
    let endpoint = |entry: &CatalogServer| Endpoint::Stdio(StdioEndpoint::new(format!("{:?}", entry.lists)));
    let endpoints = [old, new].map(|servers| servers.iter().map(endpoint).collect::<Vec<_>>());
    let (limits, calls) = (Limits::default(), CallRules::default());
    let [old, new] = [(old, &endpoints[0]), (new, &endpoints[1])].map(|(servers, endpoints)| {
        let desired = |(entry, endpoint)| {
            let CatalogServer { id, exposure, .. }: &CatalogServer = entry;
            let runtime = RuntimeSettings::new(endpoint, None, Discovery::default());
            let (limits, calls, sharing) = (&limits, &calls, Sharing::Shared);
            DesiredServer::new(id, runtime, ExposureSettings { exposure, limits, sharing, calls })
        };
        servers.iter().zip(endpoints).map(desired).collect::<Vec<_>>()
    });
    ReloadPlan::compute(&old, &new)
}

/// Keeps one server per id, and none with the name of a toolset of the host.
fn with_unique_ids(mut servers: Vec<CatalogServer>) -> Vec<CatalogServer> {
    let mut ids: BTreeSet<String> = builtins().toolsets.into_iter().collect();
    servers.retain(|server| ids.insert(server.id.to_string()));
    servers
}

fn order(servers: &[CatalogServer]) -> Vec<ServerId> {
    servers.iter().map(|server| server.id.clone()).collect()
}

/// All exposed items, decisions and problems of a catalog as text.
fn written(catalog: &Catalog) -> Vec<String> {
    let json = |it: serde_json::Result<String>| it.expect("it can be written");
    let mut res = vec![
        catalog.hash().to_string(),
        json(serde_json::to_string(&catalog.tools())),
        json(serde_json::to_string(&catalog.prompts())),
        json(serde_json::to_string(&catalog.resources())),
        json(serde_json::to_string(catalog.problems())),
    ];
    let lists = [ListKind::Tool, ListKind::Prompt, ListKind::Resource];
    res.extend(lists.map(|it| json(serde_json::to_string(&catalog.decisions(it).collect::<Vec<_>>()))));
    res
}

/// A registry of another host, which is changed in place, one name after the other.
struct CopiedRegistry {
    /// The names with their servers; `None` for the host's own.
    tools: HashMap<String, Option<ServerId>>,
    toolsets: BTreeMap<String, Vec<ExposedName>>,
}

impl CopiedRegistry {
    fn new() -> CopiedRegistry {
        let tools = builtins().tools.into_iter().map(|it| (it, None)).collect();
        CopiedRegistry { tools, toolsets: BTreeMap::new() }
    }

    /// Takes one step to the catalog `new`. Fails if the step is not possible.
    fn take(&mut self, step: CatalogStep<'_>, new: &Catalog) -> Result<(), TestCaseError> {
        match step {
            CatalogStep::RemoveToolset(id) => {
                prop_assert!(self.toolsets.remove(id.as_str()).is_some(), "{id} is not there")
            }
            CatalogStep::RemoveTool(name) => {
                let owner = self.tools.remove(name.as_str());
                prop_assert!(matches!(owner, Some(Some(_))), "{name} is not there, or is the host's");
            }
            CatalogStep::AddTool(name) => {
                let tool = new.tool(name.as_str()).expect("the new catalog has it");
                let before = self.tools.insert(name.to_string(), Some(tool.server.clone()));
                prop_assert_eq!(before, None, "{} is there already", name);
            }
            CatalogStep::AddToolset(id) => {
                let tools = new.tools().iter().filter(|it| it.server == *id).map(|item| item.name.clone());
                let before = self.toolsets.insert(id.to_string(), tools.collect());
                prop_assert_eq!(before, None, "{} is there already", id);
            }
        }
        for (id, tools) in &self.toolsets {
            let there = |it: &ExposedName| {
                self.tools
                    .get(it.as_str())
                    .is_some_and(|owner| owner.as_ref().is_some_and(|it| it.as_str() == id))
            };
            prop_assert!(tools.iter().all(there), "{id} has a tool that is not there");
        }
        Ok(())
    }

    #[track_caller]
    fn is(&self, catalog: &Catalog) -> Result<(), TestCaseError> {
        let own = builtins().tools.into_iter().map(|it| (it, None));
        let shown = catalog.tools().iter().map(|item| (item.name.to_string(), Some(item.server.clone())));
        prop_assert_eq!(&self.tools, &own.chain(shown).collect::<HashMap<_, _>>());
        let toolsets: Vec<&str> = self.toolsets.keys().map(String::as_str).collect();
        let mut want: Vec<&str> = catalog.toolsets().iter().map(ServerId::as_str).collect();
        want.sort_unstable();
        prop_assert_eq!(toolsets, want);
        Ok(())
    }
}

proptest! {
    #[test]
    fn dm_098_plan_contains_each_server_once(old in servers(), new in servers()) {
        let ReloadPlan { added, removed, changed, re_exposed, unchanged, .. } = plan(&old, &new);
        let mut named: Vec<_> = [added, removed, changed, re_exposed, unchanged].concat();
        named.sort();
        let mut known: Vec<_> = old.into_iter().chain(new).map(|server| server.id).collect();
        known.sort();
        known.dedup();
        prop_assert_eq!(named, known);
    }

    /// Executing a reload plan gives the catalog of the new configuration.
    #[test]
    fn dm_095_plan_transforms_the_old_generation_into_the_new(old in servers(), new in servers()) {
        let (old, new) = (with_unique_ids(old), with_unique_ids(new));
        let ReloadPlan { added, removed, changed, re_exposed, unchanged: _, .. } = plan(&old, &new);
        let mut servers = old.clone();
        servers.retain(|entry| !removed.contains(&entry.id));
        for entry in &new {
            if changed.contains(&entry.id) || re_exposed.contains(&entry.id) {
                let at = servers.iter().position(|old| old.id == entry.id).expect("only running servers change");
                servers[at] = entry.clone();
            } else if added.contains(&entry.id) {
                servers.push(entry.clone());
            }
        }
        let order = order(&new);
        servers.sort_by_key(|entry| order.iter().position(|id| *id == entry.id));
        let catalog = Catalog::build(&builtins(), &old).successor(&servers, &BTreeMap::new());
        prop_assert_eq!(written(&catalog), written(&Catalog::build(&builtins(), &new)));
        for it in builtins().tools {
            prop_assert_eq!(catalog.owner(ListKind::Tool, &it), Some(NameOwner::Host));
        }
    }

    /// The steps of a difference change another registry from the old catalog to the new one. After each step
    /// every toolset has its tools, and the host's own tools are unchanged (DM-097, DM-109).
    #[test]
    fn dm_097_dm_109_catalog_is_consistent_after_each_step(old in servers(), new in servers()) {
        let (old, new) = (Catalog::build(&builtins(), &old), Catalog::build(&builtins(), &new));
        let mut registry = CopiedRegistry::new();
        for it in Catalog::diff(&Catalog::empty(), &old).steps() {
            registry.take(it, &old)?;
        }
        registry.is(&old)?;
        for it in Catalog::diff(&old, &new).steps() {
            registry.take(it, &new)?;
        }
        registry.is(&new)?;
    }

    /// A catalog that reuses slices of the previous one equals a catalog that is built from nothing.
    #[test]
    fn incremental_catalog_equals_a_new_build(
        servers in servers(),
        steps in prop::collection::vec((any::<prop::sample::Index>(), crate::entry(), 0..4_u8), 1..8),
    ) {
        let mut servers = servers;
        let mut catalog = Catalog::build(&builtins(), &servers);
        for (at, other, step) in steps {
            match step {
                0 => servers.insert(at.index(servers.len() + 1), other),
                _ if servers.is_empty() => {}
                1 => drop(servers.remove(at.index(servers.len()))),
                2 => {
                    let at = at.index(servers.len());
                    servers[at] = other;
                }
                // The same lists with other rules.
                _ => {
                    let at = at.index(servers.len());
                    servers[at].exposure = other.exposure;
                }
            }
            catalog = catalog.successor(&servers, &BTreeMap::new());
            prop_assert_eq!(written(&catalog), written(&Catalog::build(&builtins(), &servers)));
        }
    }

    #[test]
    fn equal_hashes_have_an_empty_diff(old in servers(), new in servers()) {
        let (old, new) = (Catalog::build(&builtins(), &old), Catalog::build(&builtins(), &new));
        prop_assert!(Catalog::diff(&old, &old).is_empty());
        if old.hash() == new.hash() {
            prop_assert!(Catalog::diff(&old, &new).is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Servers become ready in any order; the catalog keeps the configuration's order.
    #[test]
    fn dmx_17_equal_content_gives_equal_bytes(servers in servers(), seed in any::<u64>()) {
        let servers = with_unique_ids(servers);
        let want = written(&Catalog::build(&builtins(), &servers));
        let mut state = seed | 1;
        for _ in 0..100 {
            let mut arriving = servers.clone();
            for at in (1..arriving.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                arriving.swap(at, (state >> 33) as usize % (at + 1));
            }
            let order = order(&servers);
            let mut present: Vec<CatalogServer> = Vec::new();
            let mut catalog = Catalog::build(&builtins(), &[]);
            for entry in arriving {
                present.push(entry);
                present.sort_by_key(|entry| order.iter().position(|id| *id == entry.id));
                catalog = catalog.successor(&present, &BTreeMap::new());
            }
            prop_assert_eq!(&written(&catalog), &want);
        }
    }
}
