//! How a catalog comes about: one pass over the servers in the configuration's order, who comes first stays.

use std::collections::{HashMap, HashSet};

use mcp_model::{Rules, ServerId, Severity};

use crate::decide::{Decider, transform};
use crate::quote::{cut, quote};
use crate::{
    Builtins, Decision, ExposedName, ExposedPrompt, ExposedResource, ExposedTool, ListKind, Problem,
    RejectedItem, ServerEntry, Verdict,
};

/// A catalog's content.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) tools: Vec<ExposedTool>,
    pub(crate) prompts: Vec<ExposedPrompt>,
    pub(crate) resources: Vec<ExposedResource>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) toolsets: Vec<ServerId>,
}

/// Decides on several tool names of one server in their order, collisions among them and with `builtins` included.
pub fn decide_all(
    builtins: &Builtins,
    server: &ServerId,
    rules: &Rules,
    originals: &[&str],
) -> Vec<Decision> {
    let mut names = Names::new(&builtins.tools);
    let decider = Decider::new(server, rules);
    originals.iter().map(|it| names.settle(ListKind::Tool, decider.decide(it))).collect()
}

/// Builds all of it.
pub(crate) fn parts(builtins: &Builtins, servers: &[ServerEntry]) -> Parts {
    let mut res = Parts::default();
    let mut toolsets: HashMap<&str, Toolset> =
        builtins.toolsets.iter().map(|it| (it.as_str(), Toolset::Builtin)).collect();
    let mut tool_names = Names::new(&builtins.tools);
    let mut prompt_names = Names::new(&[]);
    for entry in servers {
        if let Some(owner) = toolsets.get(entry.id.as_str()) {
            reject(&mut res, entry, *owner);
            continue;
        }
        toolsets.insert(entry.id.as_str(), Toolset::Server);
        res.toolsets.push(entry.id.clone());
        let decider = Decider::new(&entry.id, &entry.exposure.tools);
        for tool in &entry.lists.tools {
            let decision = tool_names.settle(ListKind::Tool, decider.decide(&tool.name));
            if let Some(name) = &decision.exposed {
                let (name, server) = (name.clone(), entry.id.clone());
                res.tools.push(ExposedTool { name, server, tool: tool.clone() });
            }
            res.problems.extend(Problem::hidden(ListKind::Tool, &decision));
            res.decisions.push(decision);
        }
        let decider = Decider::new(&entry.id, &entry.exposure.prompts);
        for prompt in &entry.lists.prompts {
            let decision = prompt_names.settle(ListKind::Prompt, decider.decide(&prompt.name));
            res.problems.extend(Problem::hidden(ListKind::Prompt, &decision));
            if let Some(name) = decision.exposed {
                res.prompts.push(ExposedPrompt { name, server: entry.id.clone(), prompt: prompt.clone() });
            }
        }
        resources(&mut res, entry);
        for (at, RejectedItem { list, item }) in entry.lists.rejected.iter().enumerate() {
            let decision = Decision {
                server: entry.id.clone(),
                original: item.name.clone().unwrap_or_else(|| format!("#{}", at + 1)),
                exposed: None,
                verdict: Verdict::Malformed,
                rule: cut(item.reason.clone(), 300),
            };
            res.problems.extend(Problem::hidden(*list, &decision));
            match list {
                ListKind::Tool => res.decisions.push(decision),
                ListKind::Prompt | ListKind::Resource => {}
            }
        }
    }
    let mut ids = HashSet::new();
    let first: Vec<bool> = res.problems.iter().map(|it| ids.insert(it.id.as_str())).collect();
    let mut first = first.into_iter();
    res.problems.retain(|_| first.next().expect("there is one answer for each problem"));
    res
}

#[derive(Clone, Copy)]
enum Toolset {
    Builtin,
    Server,
}

/// Leaves a server out whose toolset would have another's name (DM-033).
fn reject(res: &mut Parts, entry: &ServerEntry, owner: Toolset) {
    let id = &entry.id;
    let owner = match owner {
        Toolset::Builtin => "the host itself has a toolset of this name",
        Toolset::Server => "an earlier server has this name",
    };
    let message = format!("Toolset name collision: {id} ({owner}); its tools are not shown");
    res.problems.push(Problem::server_error(id, Severity::Error, message));
    res.decisions.extend(entry.lists.tools.iter().map(|tool| Decision {
        server: id.clone(),
        original: tool.name.to_string(),
        exposed: None,
        verdict: Verdict::Collision,
        rule: format!("toolset name {}: {owner}", quote(id.as_str())),
    }));
}

/// Shows resources: filtered and transformed by name, told apart by URI.
fn resources(res: &mut Parts, entry: &ServerEntry) {
    let rules = &entry.exposure.resources;
    let decider = Decider::new(&entry.id, rules);
    let mut uris = HashSet::new();
    for resource in &entry.lists.resources {
        let ruling = decider.passes(&resource.name).and_then(|_| {
            let taken = || format!("it lists its URI {} twice", quote(&resource.uri));
            if uris.insert(&resource.uri) { Ok(()) } else { Err((Verdict::Collision, taken())) }
        });
        match ruling {
            Ok(()) => res.resources.push(ExposedResource {
                name: transform(&rules.transforms, &resource.name),
                server: entry.id.clone(),
                resource: resource.clone(),
            }),
            Err((verdict, rule)) => {
                let (server, original) = (entry.id.clone(), resource.name.to_string());
                let decision = Decision { server, original, exposed: None, verdict, rule };
                res.problems.extend(Problem::hidden(ListKind::Resource, &decision));
            }
        }
    }
}

/// The names that are taken, and by whom.
struct Names(HashMap<ExposedName, Owner>);

enum Owner {
    Builtin,
    Item { server: ServerId, original: String },
}

impl Names {
    fn new(builtins: &[String]) -> Names {
        let named = builtins.iter().filter(|it| !it.is_empty());
        Names(named.map(|it| (ExposedName::new(it.clone()), Owner::Builtin)).collect())
    }

    /// Gives the decision's name to its item, or takes it from the decision because somebody else has it.
    fn settle(&mut self, list: ListKind, decision: Decision) -> Decision {
        let Some(name) = &decision.exposed else {
            return decision;
        };
        let shown = quote(name.as_str());
        let rule = match self.0.get(name.as_str()) {
            None => {
                let (server, original) = (decision.server.clone(), decision.original.clone());
                self.0.insert(name.clone(), Owner::Item { server, original });
                return decision;
            }
            Some(Owner::Builtin) => {
                format!("the name {shown} belongs to a {} of the host itself", list.as_str())
            }
            Some(Owner::Item { server, original }) => {
                format!(
                    "the name {shown} is taken by {} {} of server `{server}`",
                    list.as_str(),
                    quote(original)
                )
            }
        };
        Decision { exposed: None, verdict: Verdict::Collision, rule, ..decision }
    }
}
