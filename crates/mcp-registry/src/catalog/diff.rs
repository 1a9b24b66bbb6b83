//! The difference of two catalogs as data: for notifications, logs, and programs that keep a registry of their
//! own.
//!
//! The reasons for changes are not included. Positions are ignored: only the content under each name is compared.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use mcp_host_model::{RawJson, ServerId};
use serde::Serialize;

use crate::catalog::snapshot::Catalog;
use crate::name::exposed_name::ExposedName;

/// The differences of two catalogs, by list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct CatalogDiff {
    /// Tools, by exposed name.
    pub tools: ListDiff<ExposedName>,
    /// Prompts, by exposed name.
    pub prompts: ListDiff<ExposedName>,
    /// Resources, by server and URI.
    pub resources: ListDiff<ResourceKey>,
    /// Resource templates, by server and URI template.
    pub templates: ListDiff<ResourceKey>,
    /// Toolsets: the tools of one server each. A toolset is changed if any of its tools is.
    pub toolsets: ListDiff<ServerId>,
}

/// The differences of one list. A key is in at most one of the vectors, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListDiff<K> {
    /// Exposed now and not before, in the new order.
    pub added: Vec<K>,
    /// Exposed before and not now, in the old order.
    pub removed: Vec<K>,
    /// Exposed in both, with another server, name or definition (byte for byte); in the new order.
    pub changed: Vec<K>,
}

/// The key of a resource or a template in a diff.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct ResourceKey {
    /// The server.
    pub server: ServerId,
    /// The URI or URI template.
    pub uri: Box<str>,
}

/// One step from one catalog to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a program that applies the steps applies each; a wildcard would leave its list wrong"
)]
pub enum CatalogStep<'a> {
    /// Remove this toolset.
    RemoveToolset(&'a ServerId),
    /// Remove this tool.
    RemoveTool(&'a ExposedName),
    /// Add this tool of the new catalog.
    AddTool(&'a ExposedName),
    /// Add this toolset with its tools of the new catalog.
    AddToolset(&'a ServerId),
}

impl<K> Default for ListDiff<K> {
    fn default() -> ListDiff<K> {
        ListDiff { added: Vec::new(), removed: Vec::new(), changed: Vec::new() }
    }
}

impl<K> ListDiff<K> {
    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        let ListDiff { added, removed, changed } = self;
        [added, removed, changed].iter().all(|it| it.is_empty())
    }
}

impl CatalogDiff {
    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        let CatalogDiff { tools, prompts, resources, templates, toolsets } = self;
        let names = tools.is_empty() && prompts.is_empty() && toolsets.is_empty();
        names && resources.is_empty() && templates.is_empty()
    }

    /// Returns the steps for updating another registry: remove toolsets, remove tools, add tools, add toolsets
    /// (DM-109). In this order no toolset ever refers to a missing tool, and no name is used twice. Prompts and
    /// resources have no steps. The tools that the host itself offers are in no step (DM-097).
    pub fn steps(&self) -> impl Iterator<Item = CatalogStep<'_>> {
        let CatalogDiff { tools, toolsets, prompts: _, resources: _, templates: _ } = self;
        let remove_toolsets =
            toolsets.removed.iter().chain(&toolsets.changed).map(CatalogStep::RemoveToolset);
        let remove_tools = tools.removed.iter().chain(&tools.changed).map(CatalogStep::RemoveTool);
        let add_tools = tools.added.iter().chain(&tools.changed).map(CatalogStep::AddTool);
        let add_toolsets = toolsets.added.iter().chain(&toolsets.changed).map(CatalogStep::AddToolset);
        remove_toolsets.chain(remove_tools).chain(add_tools).chain(add_toolsets)
    }
}

impl Catalog {
    /// Compares two catalogs.
    pub fn diff(old: &Catalog, new: &Catalog) -> CatalogDiff {
        let key = |(server, uri): (&ServerId, &str)| ResourceKey { server: server.clone(), uri: uri.into() };
        CatalogDiff {
            tools: diff_lists(key_tools(old), key_tools(new), ExposedName::clone),
            prompts: diff_lists(key_prompts(old), key_prompts(new), ExposedName::clone),
            resources: diff_lists(key_resources(old), key_resources(new), key),
            templates: diff_lists(key_templates(old), key_templates(new), key),
            toolsets: diff_lists(key_toolsets(old), key_toolsets(new), ServerId::clone),
        }
    }
}

fn key_tools(catalog: &Catalog) -> KeyedItems<&ExposedName, (&ServerId, &RawJson)> {
    catalog.tools().iter().map(|it| (&it.name, (&it.server, &it.tool.raw))).collect()
}

fn key_prompts(catalog: &Catalog) -> KeyedItems<&ExposedName, (&ServerId, &RawJson)> {
    catalog.prompts().iter().map(|it| (&it.name, (&it.server, &it.prompt.raw))).collect()
}

fn key_resources(catalog: &Catalog) -> KeyedItems<(&ServerId, &str), (&ExposedName, &RawJson)> {
    let each = catalog.resources().iter();
    each.map(|it| ((&it.server, &*it.resource.uri), (&it.name, &it.resource.raw))).collect()
}

fn key_templates(catalog: &Catalog) -> KeyedItems<(&ServerId, &str), (&ExposedName, &RawJson)> {
    let each = catalog.templates().iter();
    each.map(|it| ((&it.server, &*it.template.uri_template), (&it.name, &it.template.raw))).collect()
}

/// The value of a toolset is its tools.
fn key_toolsets(catalog: &Catalog) -> KeyedItems<&ServerId, BTreeMap<&ExposedName, &RawJson>> {
    let mut tools: HashMap<&ServerId, BTreeMap<&ExposedName, &RawJson>> = HashMap::new();
    for it in catalog.tools() {
        tools.entry(&it.server).or_default().insert(&it.name, &it.tool.raw);
    }
    catalog.toolsets().iter().map(|it| (it, tools.remove(it).unwrap_or_default())).collect()
}

/// The items of one list, in order: unique keys, and the values that are compared.
type KeyedItems<K, V> = Vec<(K, V)>;

/// Compares two lists. `to_owned_key` converts a borrowed key for the result.
fn diff_lists<K: Copy + Eq + Hash, V: PartialEq, O>(
    old: KeyedItems<K, V>,
    new: KeyedItems<K, V>,
    to_owned_key: impl Fn(K) -> O,
) -> ListDiff<O> {
    let old_keys: Vec<K> = old.iter().map(|(key, _)| *key).collect();
    let mut only_old: HashMap<K, V> = old.into_iter().collect();
    let mut res = ListDiff::default();
    for (key, value) in new {
        match only_old.remove(&key) {
            None => res.added.push(to_owned_key(key)),
            Some(old_value) if old_value != value => res.changed.push(to_owned_key(key)),
            Some(_) => {}
        }
    }
    res.removed = old_keys.into_iter().filter(|key| only_old.contains_key(key)).map(to_owned_key).collect();
    res
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalog::snapshot::tests::{dominds, full};
    use crate::lists::{Builtins, CatalogServer, ServerLists};

    fn build(text: &str) -> Catalog {
        match text {
            "" => Catalog::empty(),
            text => Catalog::build(&Builtins::default(), &dominds(text)),
        }
    }

    /// Renders the changes as `+a -b ~c`: added, removed, changed.
    fn render<K>(changes: &ListDiff<K>, name: impl Fn(&K) -> String) -> String {
        let ListDiff { added, removed, changed } = changes;
        let mut words = Vec::new();
        for (sign, keys) in [("+", added), ("-", removed), ("~", changed)] {
            words.extend(keys.iter().map(|it| format!("{sign}{}", name(it))));
        }
        words.join(" ")
    }

    #[track_caller]
    fn check(old: &str, new: &str, tools: &str, toolsets: &str) {
        let got = Catalog::diff(&build(old), &build(new));
        assert_eq!(render(&got.tools, ExposedName::to_string), tools);
        assert_eq!(render(&got.toolsets, ServerId::to_string), toolsets);
        assert_eq!(got.is_empty(), tools.is_empty() && toolsets.is_empty());
    }

    #[test]
    fn dm_095_diff_lists_added_removed_and_changed() {
        check("", "", "", "");
        check("a: x y; b: z", "b: z; a: y x", "", "");
        check("", "a: x y", "+x +y", "+a");
        check("a: x y", "", "-x -y", "-a");
        check("a: x y; b: z", "a: y w; b: z v", "+w +v -x", "~a ~b");
        check("a: ; b: z", "b: z", "", "-a");
        // The name is the same, but its owner or definition changes.
        check("a: x", "b: x", "~x", "+b -a");
        check("a: x", "a: p_x |replace=p_>", "~x", "~a");
    }

    #[track_caller]
    fn check_steps(old: &str, new: &str, want: &str) {
        let difference = Catalog::diff(&build(old), &build(new));
        let steps = difference.steps().map(|it| match it {
            CatalogStep::RemoveToolset(id) => format!("[-{id}]"),
            CatalogStep::RemoveTool(name) => format!("-{name}"),
            CatalogStep::AddTool(name) => format!("+{name}"),
            CatalogStep::AddToolset(id) => format!("[+{id}]"),
        });
        assert_eq!(steps.collect::<Vec<_>>().join(" "), want);
    }

    #[test]
    fn dm_109_toolsets_are_removed_first_and_added_last() {
        check_steps("a: x", "a: x", "");
        check_steps("a: x; b: y", "b: y x; c: z", "[-a] [-b] -x +z +x [+c] [+b]");
        check_steps("a: x", "a: p_x |replace=p_>", "[-a] -x +x [+a]");
    }

    /// A catalog with one server `s` that has these resources, as `uri=name` pairs, and a template for each.
    fn catalog_with(prompts: &str, resources: &str, settings: &str) -> Catalog {
        let pairs: Vec<(&str, &str)> =
            resources.split_whitespace().map(|it| it.split_once('=').expect("a pair has `=`")).collect();
        let mut entry: CatalogServer = dominds(&format!("s: {settings}")).remove(0);
        entry.exposure.resources = entry.exposure.tools.clone();
        entry.lists = Arc::new(ServerLists { ..full("", prompts, &pairs) });
        Catalog::build(&Builtins::default(), &[entry])
    }

    #[test]
    fn dm_095_prompts_resources_and_templates_differ_by_the_same_rules() {
        let got = Catalog::diff(
            &catalog_with("greet bye", "f:a=a f:b=b f:c=c", ""),
            &catalog_with("hello greet", "f:a=a f:b=other f:d=d", ""),
        );
        let uri = |it: &ResourceKey| format!("{}@{}", it.uri, it.server);
        assert_eq!(render(&got.prompts, ExposedName::to_string), "+hello -bye");
        assert_eq!(render(&got.resources, uri), "+f:d@s -f:c@s ~f:b@s");
        assert_eq!(render(&got.templates, uri), "+f:d@s -f:c@s ~f:b@s");
        assert!(got.tools.is_empty() && !got.is_empty());
        // Another label is a change too.
        let renamed = Catalog::diff(&catalog_with("", "f:a=a", ""), &catalog_with("", "f:a=a", "|prefix=p_"));
        assert_eq!(render(&renamed.resources, uri), "~f:a@s");
        assert_eq!(
            serde_json::to_string(&renamed.resources).unwrap(),
            r#"{"added":[],"removed":[],"changed":[{"server":"s","uri":"f:a"}]}"#
        );
    }
}
