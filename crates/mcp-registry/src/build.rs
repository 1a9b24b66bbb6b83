//! How a catalog comes about: one pass over the servers in the configuration's order, who comes first stays.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use mcp_model::{Rules, ServerId, Severity};

use crate::decide::{Decider, transform};
use crate::quote::{cut, quote};
use crate::{
    Builtins, Decision, Drift, Enforcement, ExposedName, ExposedPrompt, ExposedResource, ExposedTemplate,
    ExposedTool, Item, ListKind, Lists, Problem, RejectedItem, ServerEntry, Verdict,
};

/// How servers differ from what was approved of them; one that is not there is not looked at.
pub(crate) type Drifts = BTreeMap<ServerId, Arc<Drift>>;

/// A catalog's content.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) tools: Vec<ExposedTool>,
    pub(crate) prompts: Vec<ExposedPrompt>,
    pub(crate) resources: Vec<ExposedResource>,
    pub(crate) templates: Vec<ExposedTemplate>,
    pub(crate) decisions: Decisions,
    pub(crate) problems: Vec<Problem>,
    pub(crate) toolsets: Vec<ServerId>,
}

/// What became of each item of each list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decisions {
    tools: Vec<Decision>,
    prompts: Vec<Decision>,
    resources: Vec<Decision>,
}

impl Decisions {
    pub(crate) fn of(&self, list: ListKind) -> &[Decision] {
        match list {
            ListKind::Tool => &self.tools,
            ListKind::Prompt => &self.prompts,
            ListKind::Resource => &self.resources,
        }
    }

    fn of_mut(&mut self, list: ListKind) -> &mut Vec<Decision> {
        match list {
            ListKind::Tool => &mut self.tools,
            ListKind::Prompt => &mut self.prompts,
            ListKind::Resource => &mut self.resources,
        }
    }
}

/// Decides on several names of one server in their order, collisions among them and with `builtins` included: what
/// the rules do to names before there is a connection. Of resources this judges names, for their URIs are not known.
pub fn decide_all(
    builtins: &Builtins,
    list: ListKind,
    server: &ServerId,
    rules: &Rules,
    originals: &[&str],
) -> Vec<Decision> {
    let decider = Decider::new(server, rules);
    match list {
        ListKind::Resource => originals.iter().map(|it| label(&decider, rules, it, it)).collect(),
        ListKind::Tool | ListKind::Prompt => {
            let mut names = Names::new(builtins, list);
            originals.iter().map(|it| names.settle(decider.decide(it))).collect()
        }
    }
}

/// Builds all of it.
pub(crate) fn parts(builtins: &Builtins, servers: &[ServerEntry], drifts: &Drifts) -> Parts {
    let mut res = Parts::default();
    let mut toolsets: HashMap<&str, Toolset> =
        builtins.toolsets.iter().map(|it| (it.as_str(), Toolset::Builtin)).collect();
    let mut tool_names = Names::new(builtins, ListKind::Tool);
    let mut prompt_names = Names::new(builtins, ListKind::Prompt);
    for entry in servers {
        if let Some(owner) = toolsets.get(entry.id.as_str()) {
            reject(&mut res, entry, *owner);
            continue;
        }
        toolsets.insert(entry.id.as_str(), Toolset::Server);
        res.toolsets.push(entry.id.clone());
        let server = &entry.id;
        let drift = drifts.get(server).map(|it| &**it);
        res.problems.extend(drift.and_then(|it| it.problem(server)));
        let decider = Decider::new(server, &entry.exposure.tools);
        for tool in &entry.lists.tools {
            let decision = tool_names.settle(decider.decide(&tool.name));
            let decision = res.unless_drifted(drift, (Item::Tool, &tool.name), decision);
            let shown = |name| ExposedTool { name, server: server.clone(), tool: tool.clone() };
            res.tools.extend(decision.exposed.clone().map(shown));
            res.decided(ListKind::Tool, decision);
        }
        let decider = Decider::new(server, &entry.exposure.prompts);
        for prompt in &entry.lists.prompts {
            let decision = prompt_names.settle(decider.decide(&prompt.name));
            let decision = res.unless_drifted(drift, (Item::Prompt, &prompt.name), decision);
            let shown = |name| ExposedPrompt { name, server: server.clone(), prompt: prompt.clone() };
            res.prompts.extend(decision.exposed.clone().map(shown));
            res.decided(ListKind::Prompt, decision);
        }
        resources(&mut res, entry, drift);
        malformed(&mut res, entry);
    }
    let mut ids = HashSet::new();
    let first: Vec<bool> = res.problems.iter().map(|it| ids.insert(it.id.as_str())).collect();
    let mut first = first.into_iter();
    res.problems.retain(|_| first.next().expect("there is one answer for each problem"));
    res
}

impl Parts {
    /// Keeps a decision, and the problem that it is.
    fn decided(&mut self, list: ListKind, decision: Decision) {
        self.problems.extend(Problem::hidden(list, &decision));
        self.decisions.of_mut(list).push(decision);
    }

    /// Withholds what would be shown and was not approved, or tells of it. What is withheld keeps its name: another
    /// item under it would be taken for the one that was approved.
    fn unless_drifted(
        &mut self,
        drift: Option<&Drift>,
        (item, key): (Item, &str),
        decision: Decision,
    ) -> Decision {
        if decision.exposed.is_none() {
            return decision;
        }
        let Some((enforcement, why)) = drift.and_then(|it| it.ruling(item, key)) else { return decision };
        match enforcement {
            Enforcement::Withhold => {
                Decision { exposed: None, verdict: Verdict::NotApproved, rule: why, ..decision }
            }
            Enforcement::Warn => {
                // Of a server of which nothing was approved one problem says so.
                if drift.is_some_and(|it| !it.is_unknown()) {
                    self.problems.push(Problem::drifted(item.list(), &decision, &why));
                }
                decision
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Toolset {
    Builtin,
    Server,
}

/// Leaves a server out whose toolset would have another's name (DM-033, X-19).
fn reject(res: &mut Parts, entry: &ServerEntry, owner: Toolset) {
    let id = &entry.id;
    let owner = match owner {
        Toolset::Builtin => "the host itself has a toolset of this name",
        Toolset::Server => "an earlier server has this name",
    };
    let message = format!("Toolset name collision: {id} ({owner}); its tools are not shown");
    res.problems.push(Problem::server_error(id, Severity::Error, message));
    let decision = |original: &str| Decision {
        server: id.clone(),
        original: original.to_owned(),
        exposed: None,
        verdict: Verdict::Collision,
        rule: format!("toolset name {}: {owner}", quote(id.as_str())),
    };
    let Lists { tools, prompts, resources, templates, rejected: _ } = &*entry.lists;
    let Decisions { tools: of_tools, prompts: of_prompts, resources: of_resources } = &mut res.decisions;
    of_tools.extend(tools.iter().map(|it| decision(&it.name)));
    of_prompts.extend(prompts.iter().map(|it| decision(&it.name)));
    of_resources.extend(resources.iter().map(|it| decision(&it.name)));
    of_resources.extend(templates.iter().map(|it| decision(&it.name)));
}

/// Shows resources and templates: filtered and transformed by name, told apart by URI.
fn resources(res: &mut Parts, entry: &ServerEntry, drift: Option<&Drift>) {
    let (server, rules) = (&entry.id, &entry.exposure.resources);
    let decider = Decider::new(server, rules);
    let mut uris = HashSet::new();
    for it in &entry.lists.resources {
        let decision = once(&mut uris, &it.uri, label(&decider, rules, &it.name, &it.uri));
        let decision = res.unless_drifted(drift, (Item::Resource, &it.uri), decision);
        let shown = |name| ExposedResource { name, server: server.clone(), resource: it.clone() };
        res.resources.extend(decision.exposed.clone().map(shown));
        res.decided(ListKind::Resource, decision);
    }
    let mut uris = HashSet::new();
    for it in &entry.lists.templates {
        let decision = once(&mut uris, &it.uri_template, label(&decider, rules, &it.name, &it.uri_template));
        let decision = res.unless_drifted(drift, (Item::Template, &it.uri_template), decision);
        let shown = |name| ExposedTemplate { name, server: server.clone(), template: it.clone() };
        res.templates.extend(decision.exposed.clone().map(shown));
        res.decided(ListKind::Resource, decision);
    }
}

/// Decides on what is asked for by URI. Its name is a label: filtered and transformed like any other, but nobody
/// calls it, so the naming policy has nothing to say; where nothing is left of it the URI stands for it.
fn label(decider: &Decider<'_>, rules: &Rules, name: &str, uri: &str) -> Decision {
    let (exposed, verdict, rule) = match decider.passes(name) {
        Ok(rule) => {
            let shown = Some(transform(&rules.transforms, name)).filter(|it| !it.is_empty());
            let shown = shown.unwrap_or_else(|| uri.to_owned());
            (Some(shown).filter(|it| !it.is_empty()), Verdict::Exposed, rule)
        }
        Err((verdict, rule)) => (None, verdict, rule),
    };
    let exposed = exposed.map(ExposedName::new);
    Decision { server: decider.server().clone(), original: name.to_owned(), exposed, verdict, rule }
}

/// Lets a URI be shown once.
fn once<'a>(uris: &mut HashSet<&'a str>, uri: &'a str, decision: Decision) -> Decision {
    if decision.exposed.is_none() || uris.insert(uri) {
        return decision;
    }
    let rule = format!("it lists its URI {} twice", quote(uri));
    Decision { exposed: None, verdict: Verdict::Collision, rule, ..decision }
}

/// Says what could not be read of a server's lists.
fn malformed(res: &mut Parts, entry: &ServerEntry) {
    for (at, RejectedItem { list, item }) in entry.lists.rejected.iter().enumerate() {
        let original = item.name.clone().unwrap_or_else(|| format!("#{}", at + 1));
        let (verdict, rule) = (Verdict::Malformed, cut(item.reason.clone(), 300));
        res.decided(*list, Decision { server: entry.id.clone(), original, exposed: None, verdict, rule });
    }
}

/// The names of one list that are taken, and by whom.
struct Names {
    list: ListKind,
    taken: HashMap<ExposedName, Holder>,
}

enum Holder {
    Builtin,
    Item { server: ServerId, original: String },
}

impl Names {
    fn new(builtins: &Builtins, list: ListKind) -> Names {
        let own = match list {
            ListKind::Tool => builtins.tools.as_slice(),
            ListKind::Prompt | ListKind::Resource => &[],
        };
        let named = own.iter().filter(|it| !it.is_empty());
        Names { list, taken: named.map(|it| (ExposedName::new(it.clone()), Holder::Builtin)).collect() }
    }

    /// Gives the decision's name to its item, or takes it from the decision because somebody else has it (SK-02).
    fn settle(&mut self, decision: Decision) -> Decision {
        let Some(name) = &decision.exposed else {
            return decision;
        };
        let (shown, list) = (quote(name.as_str()), self.list.as_str());
        let rule = match self.taken.get(name.as_str()) {
            None => {
                let (server, original) = (decision.server.clone(), decision.original.clone());
                self.taken.insert(name.clone(), Holder::Item { server, original });
                return decision;
            }
            Some(Holder::Builtin) => format!("the name {shown} belongs to a {list} of the host itself"),
            Some(Holder::Item { server, original }) => {
                format!("the name {shown} is taken by {list} {} of server `{server}`", quote(original))
            }
        };
        Decision { exposed: None, verdict: Verdict::Collision, rule, ..decision }
    }
}
