//! One server's slice of a catalog: its exposed items, computed once per version of the server's lists.
//!
//! Without a name collision, a slice does not depend on other servers, and the next catalog reuses it. So when one
//! server starts or stops, the slices of the others are not recomputed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use mcp_host_model::{ExposureRules, RawJson, ServerId, Severity};

use crate::catalog::catalog_list::{NamedList, PerNamedList};
use crate::catalog::exposed_items::{ExposedPrompt, ExposedResource, ExposedTemplate, ExposedTool};
use crate::catalog::name_owner::NameOwner;
use crate::filter::rules::{CompiledRules, Decision, ExposureVerdict};
use crate::hash::{CatalogHash, HashEncoder};
use crate::lists::{Builtins, CatalogServer, ListKind, RejectedItem, ServerLists};
use crate::lock::{Drift, DriftConsequence, Enforcement, ItemKind};
use crate::name::display::{quote, truncate};
use crate::name::exposed_name::ExposedName;
use crate::problem::Problem;

/// An item with a name: its position in the server's list, and its name.
type NamedPosition = (usize, ExposedName);

/// One server's slice of a catalog. The next catalog has the same one if nothing about the server has changed.
#[derive(Debug)]
pub struct ServerSlice {
    pub(crate) entry: CatalogServer,
    drift: Option<Arc<Drift>>,
    /// Whether the server has a toolset; false if the toolset's name is used by another one.
    pub(crate) has_toolset: bool,
    pub(crate) tools: Vec<ExposedTool>,
    pub(crate) prompts: Vec<ExposedPrompt>,
    pub(crate) resources: Vec<ExposedResource>,
    pub(crate) templates: Vec<ExposedTemplate>,
    /// The unapproved tools, and the unapproved prompts. They are hidden, but their names stay reserved.
    pub(crate) withheld: PerNamedList<Vec<NamedPosition>>,
    /// The decisions on tools, prompts and resources.
    decisions: [Vec<Decision>; 3],
    /// The positions of the decisions that hide a tool.
    hidden_tools: Vec<usize>,
    pub(crate) problems: Vec<Problem>,
    /// The hash of everything exposed, computed on first use.
    hash: OnceLock<CatalogHash>,
}

/// A lookup of an exposed name among those of earlier servers. Returns the server and the item's original name.
pub(crate) type EarlierNames<'a> = &'a dyn Fn(&str) -> Option<(&'a ServerId, &'a str)>;

/// Decides on several names of one server in order, including collisions among them and with `builtins`. The
/// server need not be connected. Resources are decided by name, because their URIs are unknown.
pub fn decide_all(
    builtins: &Builtins,
    list: ListKind,
    server: &ServerId,
    rules: &ExposureRules,
    originals: &[&str],
) -> Vec<Decision> {
    let compiled = CompiledRules::new(server, rules);
    match list {
        ListKind::Resource => originals.iter().map(|it| decide_label(&compiled, it, it)).collect(),
        ListKind::Tool | ListKind::Prompt => {
            let mut names = NameTable::new(builtins, list, &|_| None);
            originals.iter().map(|it| names.claim(&compiled, it)).collect()
        }
    }
}

impl ServerSlice {
    /// Returns the server.
    pub fn server(&self) -> &ServerId {
        &self.entry.id
    }

    /// Returns the exposed tools, in order.
    pub fn tools(&self) -> &[ExposedTool] {
        &self.tools
    }

    /// Returns the exposed prompts, in order.
    pub fn prompts(&self) -> &[ExposedPrompt] {
        &self.prompts
    }

    /// Returns the exposed resources, in order.
    pub fn resources(&self) -> &[ExposedResource] {
        &self.resources
    }

    /// Returns the exposed resource templates, in order.
    pub fn templates(&self) -> &[ExposedTemplate] {
        &self.templates
    }

    /// Computes the slice of a server as if there were no other servers.
    pub(crate) fn compute_standalone(
        builtins: &Builtins,
        entry: &CatalogServer,
        drift: Option<&Arc<Drift>>,
    ) -> ServerSlice {
        let none: EarlierNames<'_> = &|_| None;
        ServerSlice::compute(builtins, entry, drift, PerNamedList { tools: none, prompts: none })
    }

    /// Computes the slice of the same server beside others, which use the names that these functions find.
    pub(crate) fn compute_beside<'a>(
        &self,
        builtins: &'a Builtins,
        earlier: PerNamedList<EarlierNames<'a>>,
    ) -> ServerSlice {
        ServerSlice::compute(builtins, &self.entry, self.drift.as_ref(), earlier)
    }

    /// Computes the slice of a server. `earlier` finds the names that earlier servers use.
    fn compute<'a>(
        builtins: &'a Builtins,
        entry: &CatalogServer,
        drift: Option<&Arc<Drift>>,
        earlier: PerNamedList<EarlierNames<'a>>,
    ) -> ServerSlice {
        let mut res = ServerSlice::empty(entry, drift);
        let server = &entry.id;
        let ServerLists { tools, prompts, resources, templates, rejected: _ } = &*entry.lists;
        let drift = drift.map(|it| &**it);
        res.problems.extend(drift.and_then(|it| it.problem(server)));
        let names = NameTable::new(builtins, ListKind::Tool, earlier.tools);
        let originals = tools.iter().map(|it| &*it.name);
        let named = res.name_items(NamedList::Tools, &entry.exposure.tools, originals, names, drift);
        let exposed = |(at, name): NamedPosition| {
            let mut exposed = ExposedTool::new(name, server.clone(), Arc::clone(&tools[at]));
            exposed.is_approved = drift.is_some_and(|drift| drift.approves(ItemKind::Tool, &tools[at].name));
            exposed
        };
        res.tools = named.into_iter().map(exposed).collect();
        let names = NameTable::new(builtins, ListKind::Prompt, earlier.prompts);
        let originals = prompts.iter().map(|it| &*it.name);
        let named = res.name_items(NamedList::Prompts, &entry.exposure.prompts, originals, names, drift);
        let exposed = |(at, name): NamedPosition| ExposedPrompt {
            name,
            server: server.clone(),
            prompt: Arc::clone(&prompts[at]),
        };
        res.prompts = named.into_iter().map(exposed).collect();
        let rules = CompiledRules::new(server, &entry.exposure.resources);
        let labels = resources.iter().map(|it| (&*it.name, &*it.uri));
        let named = res.name_resources(ItemKind::Resource, &rules, labels, drift);
        let exposed = |(at, name): NamedPosition| ExposedResource {
            name,
            server: server.clone(),
            resource: Arc::clone(&resources[at]),
        };
        res.resources = named.into_iter().map(exposed).collect();
        let labels = templates.iter().map(|it| (&*it.name, &*it.uri_template));
        let named = res.name_resources(ItemKind::Template, &rules, labels, drift);
        let exposed = |(at, name): NamedPosition| ExposedTemplate {
            name,
            server: server.clone(),
            template: Arc::clone(&templates[at]),
        };
        res.templates = named.into_iter().map(exposed).collect();
        res.add_malformed();
        res
    }

    /// Computes the slice of a server whose toolset name `owner` already uses: everything is hidden (DM-033, X-19).
    pub(crate) fn compute_collided(entry: &CatalogServer, owner: &str) -> ServerSlice {
        let mut res = ServerSlice { has_toolset: false, ..ServerSlice::empty(entry, None) };
        let id = &entry.id;
        let message = format!("Toolset name collision: {id} ({owner}); its tools are not shown");
        res.problems.push(Problem::server_error(id, Severity::Error, message));
        let decision = |original: &str| Decision {
            server: id.clone(),
            original: original.to_owned(),
            exposed: None,
            verdict: ExposureVerdict::Collision,
            rule: format!("toolset name {}: {owner}", quote(id.as_str())).into(),
        };
        let ServerLists { tools, prompts, resources, templates, rejected: _ } = &*entry.lists;
        let labels = resources.iter().map(|it| &*it.name).chain(templates.iter().map(|it| &*it.name));
        res.decisions = [
            tools.iter().map(|it| decision(&it.name)).collect(),
            prompts.iter().map(|it| decision(&it.name)).collect(),
            labels.map(decision).collect(),
        ];
        res.hidden_tools = (0..tools.len()).collect();
        res
    }

    /// An empty slice.
    fn empty(entry: &CatalogServer, drift: Option<&Arc<Drift>>) -> ServerSlice {
        ServerSlice {
            entry: entry.clone(),
            drift: drift.cloned(),
            has_toolset: true,
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            withheld: PerNamedList::default(),
            decisions: Default::default(),
            hidden_tools: Vec::new(),
            problems: Vec::new(),
            hash: OnceLock::new(),
        }
    }

    /// Returns whether the inputs are unchanged. Lists and drifts are immutable, so pointer equality suffices.
    pub(crate) fn is_unchanged(&self, entry: &CatalogServer, drift: Option<&Arc<Drift>>) -> bool {
        let is_same_drift = match (&self.drift, drift) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let CatalogServer { id, exposure, lists } = &self.entry;
        is_same_drift && Arc::ptr_eq(lists, &entry.lists) && *id == entry.id && *exposure == entry.exposure
    }

    /// The decisions on the items of a list, in order.
    pub(crate) fn decisions(&self, list: ListKind) -> &[Decision] {
        &self.decisions[list_index(list)]
    }

    /// The decisions that hide a tool.
    pub(crate) fn hidden_tools(&self) -> impl Iterator<Item = &Decision> {
        self.hidden_tools.iter().map(|at| &self.decisions(ListKind::Tool)[*at])
    }

    /// Records a decision and, if it hides the item, a problem.
    fn record_decision(&mut self, list: ListKind, decision: Decision) {
        self.problems.extend(Problem::hidden(list, &decision));
        let decisions = &mut self.decisions[list_index(list)];
        if list == ListKind::Tool && decision.exposed.is_none() {
            self.hidden_tools.push(decisions.len());
        }
        decisions.push(decision);
    }

    /// Changes the decision on an exposed item that differs from the approved one to withheld, or adds a problem, by
    /// the policy. `key` identifies the item in the lock file: its original name or its URI. The caller keeps the name
    /// of a withheld item reserved; otherwise another item could get this name and be mistaken for the approved one.
    fn enforce_approval(
        &mut self,
        drift: Option<&Drift>,
        item: ItemKind,
        key: &str,
        decision: Decision,
    ) -> Decision {
        if decision.exposed.is_none() {
            return decision;
        }
        let Some(DriftConsequence { enforcement, reason }) = drift.and_then(|it| it.consequence(item, key))
        else {
            return decision;
        };
        match enforcement {
            Enforcement::Withhold => Decision {
                exposed: None,
                verdict: ExposureVerdict::NotApproved,
                rule: reason.into(),
                ..decision
            },
            Enforcement::Warn => {
                // A server that was never approved has one problem for all its items.
                if drift.is_some_and(|it| !it.is_never_approved()) {
                    self.problems.push(Problem::drifted(item.list(), &decision, &reason));
                }
                decision
            }
        }
    }

    /// Decides on the names of tools or prompts, and returns the exposed ones. Withheld ones keep their names reserved.
    fn name_items<'a>(
        &mut self,
        list: NamedList,
        rules: &ExposureRules,
        originals: impl Iterator<Item = &'a str>,
        mut names: NameTable<'_, 'a>,
        drift: Option<&Drift>,
    ) -> Vec<NamedPosition> {
        let (server, item) = (self.entry.id.clone(), list.item());
        let compiled = CompiledRules::new(&server, rules);
        let mut exposed = Vec::with_capacity(originals.size_hint().0);
        names.own.reserve(originals.size_hint().0);
        for (at, original) in originals.enumerate() {
            let decision = names.claim(&compiled, original);
            let name = decision.exposed.clone().map(|it| (at, it));
            let decision = self.enforce_approval(drift, item, original, decision);
            if decision.exposed.is_some() {
                exposed.extend(name);
            } else {
                self.withheld.get_mut(list).extend(name);
            }
            self.record_decision(item.list(), decision);
        }
        exposed
    }

    /// Decides on resources or templates, and returns the exposed ones. They are filtered and transformed by name, and
    /// unique by URI. `labels` are their names and URIs.
    fn name_resources<'a>(
        &mut self,
        item: ItemKind,
        rules: &CompiledRules<'_>,
        labels: impl Iterator<Item = (&'a str, &'a str)>,
        drift: Option<&Drift>,
    ) -> Vec<NamedPosition> {
        let (mut uris, mut exposed) = (HashSet::new(), Vec::new());
        for (at, (name, uri)) in labels.enumerate() {
            let decision = hide_duplicate_uri(&mut uris, uri, decide_label(rules, name, uri));
            let decision = self.enforce_approval(drift, item, uri, decision);
            exposed.extend(decision.exposed.clone().map(|it| (at, it)));
            self.record_decision(item.list(), decision);
        }
        exposed
    }

    /// Adds decisions for malformed items.
    fn add_malformed(&mut self) {
        let CatalogServer { id, exposure: _, lists } = self.entry.clone();
        for RejectedItem { list, item } in &lists.rejected {
            let original = item.label();
            let (verdict, rule) = (ExposureVerdict::Malformed, truncate(item.reason.clone(), 300).into());
            self.record_decision(
                *list,
                Decision { server: id.clone(), original, exposed: None, verdict, rule },
            );
        }
    }

    /// Returns the hash of the exposed names and definitions, byte for byte and in order.
    pub(crate) fn hash(&self) -> &CatalogHash {
        self.hash.get_or_init(|| {
            let mut encoder = HashEncoder::new("mcp-registry share 1");
            encoder.write_items(self.tools.iter().map(|it| (&it.name, &it.tool.raw)));
            encoder.write_items(self.prompts.iter().map(|it| (&it.name, &it.prompt.raw)));
            encoder.write_items(self.resources.iter().map(|it| (&it.name, &it.resource.raw)));
            encoder.write_items(self.templates.iter().map(|it| (&it.name, &it.template.raw)));
            encoder.finish()
        })
    }
}

impl HashEncoder {
    /// Hashes the names and definitions of items, in order.
    fn write_items<'a>(&mut self, items: impl ExactSizeIterator<Item = (&'a ExposedName, &'a RawJson)>) {
        self.write_number(items.len() as u64);
        for (name, raw) in items {
            self.write_text(name.as_str());
            self.write_bytes(raw.as_bytes());
        }
    }
}

/// The position of a list in [`ServerSlice::decisions`].
fn list_index(list: ListKind) -> usize {
    match list {
        ListKind::Tool => 0,
        ListKind::Prompt => 1,
        ListKind::Resource => 2,
    }
}

/// Decides on a resource or template. Its name is only a label: it is filtered and transformed, but no naming policy
/// applies. An empty label is replaced by the URI.
fn decide_label(rules: &CompiledRules<'_>, name: &str, uri: &str) -> Decision {
    let (exposed, verdict, rule) = match rules.filter_reason(name) {
        Ok(rule) => {
            let label = Some(rules.transform(name)).filter(|label| !label.is_empty());
            let label = label.unwrap_or(Cow::Borrowed(uri));
            (Some(label).filter(|label| !label.is_empty()), ExposureVerdict::Exposed, rule)
        }
        Err((verdict, rule)) => (None, verdict, rule),
    };
    let exposed = exposed.map(ExposedName::new);
    Decision { server: rules.server().clone(), original: name.to_owned(), exposed, verdict, rule }
}

/// Changes the decision on an item to hidden if an earlier exposed item has the same URI.
fn hide_duplicate_uri<'a>(uris: &mut HashSet<&'a str>, uri: &'a str, decision: Decision) -> Decision {
    if decision.exposed.is_none() || uris.insert(uri) {
        return decision;
    }
    let rule = format!("it lists its URI {} twice", quote(uri)).into();
    Decision { exposed: None, verdict: ExposureVerdict::OwnCollision, rule, ..decision }
}

/// The names that are used in one list: by the host, by earlier servers, and by this server.
struct NameTable<'a, 'n> {
    list: ListKind,
    builtins: ahash::HashSet<&'a str>,
    earlier: EarlierNames<'a>,
    /// The exposed names of this server's items, with their original names.
    own: ahash::HashMap<ExposedName, &'n str>,
}

impl<'a, 'n> NameTable<'a, 'n> {
    fn new(builtins: &'a Builtins, list: ListKind, earlier: EarlierNames<'a>) -> NameTable<'a, 'n> {
        let builtins = match list {
            ListKind::Tool => builtins.tools.as_slice(),
            ListKind::Prompt | ListKind::Resource => &[],
        };
        let builtins = builtins.iter().map(String::as_str).collect();
        NameTable { list, builtins, earlier, own: ahash::HashMap::default() }
    }

    /// Decides on `original` and reserves its name, or returns a collision (SK-02).
    fn claim(&mut self, rules: &CompiledRules<'_>, original: &'n str) -> Decision {
        let mut decision = rules.decide(original);
        let Some(name) = &decision.exposed else { return decision };
        let is_other = self.own.get(name.as_str()).is_some_and(|earlier| *earlier != original);
        // An item that is listed twice stays a collision.
        if is_other && let Some(distinct) = rules.distinguish(&decision) {
            decision.exposed = Some(distinct);
        }
        self.reserve(decision, original)
    }

    /// Reserves the decision's name for `original`, or turns the decision into a collision.
    fn reserve(&mut self, decision: Decision, original: &'n str) -> Decision {
        let Some(name) = &decision.exposed else {
            return decision;
        };
        let (list, text) = (self.list.as_str(), name.as_str());
        let (verdict, rule) = if self.builtins.contains(text) {
            let rule = format!("the name {} belongs to a {list} of {} itself", quote(text), NameOwner::Host);
            (ExposureVerdict::Collision, rule)
        } else if let Some((server, original)) = (self.earlier)(text) {
            (ExposureVerdict::Collision, collision_rule(list, text, original, server))
        } else if let Some(earlier) = self.own.get(text) {
            (ExposureVerdict::OwnCollision, collision_rule(list, text, earlier, &decision.server))
        } else {
            self.own.insert(name.clone(), original);
            return decision;
        };
        Decision { exposed: None, verdict, rule: rule.into(), ..decision }
    }
}

/// The rule that hides an item, because the item `original` of `server` has its name.
fn collision_rule(list: &str, exposed: &str, original: &str, server: &ServerId) -> String {
    let (exposed, original) = (quote(exposed), quote(original));
    format!("the name {exposed} is taken by {list} {original} of {}", NameOwner::Server(server))
}
