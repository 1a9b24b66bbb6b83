//! `explain`: shows, rule by rule, the effect of the configuration and the lock file on a name.
//!
//! No server is started without `--start`, so that filters can be tested before a server exists.

mod call_rules;
mod lock_status;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use mcp_host_config::{Colour, ResolvedServer};
use mcp_host_model::{Endpoint, Exposure, ExposureRules, ServerId};
use mcp_host_registry::{
    Builtins, Catalog, CatalogServer, CompiledRules, Decision, ExposureVerdict, ListKind, RuleStep,
    ToolLookup, decide_all,
};
use mcp_host_runtime::{Approval, Host, LoadedConfig, ServerDefinitions, Supervision};
use serde::Serialize;

use crate::args::{ExplainArgs, Format};
use crate::config::context::Context;
use crate::config::file::ConfigFile;
use crate::config::lock::load_approval;
use crate::host::startup::{WaitFor, wait_for_servers};
use crate::host::{gateway_options, select_server, unknown_server, with_host};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{json, sanitize, style};
use crate::render::status::server_lines;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal};
use lock_status::{LockStatus, lock_status};

/// The names to explain, by list.
type NamesByList = [(ListKind, Vec<String>); 3];

/// The checked arguments.
struct PreparedExplain {
    config: ConfigFile,
    /// More than one only with `--start`.
    servers: Vec<ServerId>,
    names: NamesByList,
    approval: Option<Approval>,
}

/// Explains the requested names, by the configuration alone or with the started servers.
pub(crate) async fn run(
    context: &Context,
    args: ExplainArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    if !args.call.is_empty() {
        return call_rules::run(context, args, signals).await;
    }
    let start = args.start;
    let prepared = run_until_signal(signals, prepare(context, args)).await??;
    if !start {
        let explanations: Vec<Explanation> =
            prepared.servers.iter().flat_map(|server| explain_server(&prepared, server, None)).collect();
        return Ok(print(context, &explanations, Report::default()).await);
    }
    let mut desired = prepared.config.loaded.desired.clone();
    if let [server] = prepared.servers.as_slice() {
        desired = select_server(desired, Some(server.as_str()))?;
    }
    // Start the servers without the lock file, so that the items that the lock file withholds are explained too.
    let exit = with_host(Host::start(gateway_options(Supervision::Off)), desired, signals, async |host| {
        wait_for_servers(host, &context.progress(), WaitFor::All).await;
        let (mut all, mut any_unreachable) = (Vec::new(), false);
        for server in &prepared.servers {
            match host.server_definitions(server) {
                Some(offer) => all.extend(explain_server(&prepared, server, Some(&offer))),
                None => any_unreachable = true,
            }
        }
        remove_found_elsewhere(&mut all);
        let mut report = Report::default();
        let is_incomplete = all.is_empty() || all.iter().any(|it| it.offered == Some(false));
        if any_unreachable && is_incomplete {
            report.err = server_lines(&host.snapshot(), context.console.err_colour);
            report.exit = Exit::Unreachable;
        }
        if any_unreachable && all.is_empty() {
            return context.print(report).await;
        }
        print(context, &all, report).await
    });
    Ok(exit.await)
}

/// Removes the explanations of missing names that another server offers.
fn remove_found_elsewhere(explanations: &mut Vec<Explanation>) {
    let found: HashSet<(ListKind, String)> = explanations
        .iter()
        .filter(|it| it.offered == Some(true))
        .map(|it| (it.kind, it.decision.original.clone()))
        .collect();
    explanations
        .retain(|it| it.offered != Some(false) || !found.contains(&(it.kind, it.decision.original.clone())));
}

/// Reads the configuration and the lock file, and selects the servers.
async fn prepare(context: &Context, args: ExplainArgs) -> Result<PreparedExplain, Failure> {
    let ExplainArgs { file, server, tool, call: _, user: _, prompt, resource, start, rules: _ } = args;
    let config = context.open(file.as_deref().unwrap_or(Path::new(""))).await?;
    let colour = context.console.err_colour;
    let err = config.detection_notes() + &config.syntax_diagnostics_text(colour);
    context.print(Report::err(err)).await;
    let notes = config.loaded.desired.servers.iter().filter_map(|it| sandbox_note(context, it));
    context.print(Report::err(notes.collect())).await;
    let valid = &config.loaded.reading.servers;
    let servers = if start && server.is_none() && valid.len() > 1 {
        valid.iter().map(|spec| spec.id.clone()).collect()
    } else {
        vec![find_server(&config, server.as_deref())?]
    };
    let approval = load_approval(context, &config.path).await?;
    let names = [(ListKind::Tool, tool), (ListKind::Prompt, prompt), (ListKind::Resource, resource)];
    Ok(PreparedExplain { config, servers, names, approval })
}

/// A note about the sandbox of a server, if it has one.
fn sandbox_note(context: &Context, server: &ResolvedServer) -> Option<String> {
    let Endpoint::Stdio(stdio) = &server.endpoint else { return None };
    let sandbox = stdio.sandbox.as_ref()?;
    let (id, sandbox) = (sanitize::line(server.spec.id.as_str()), sanitize::line(&sandbox.to_string()));
    Some(context.console.note(&format!("{id} runs in a sandbox: {sandbox}")))
}

/// Explains each requested name by the rules of a server. `offer` is what the server offers, if it was started.
fn explain_server(
    prepared: &PreparedExplain,
    server: &ServerId,
    offer: Option<&ServerDefinitions>,
) -> Vec<Explanation> {
    let PreparedExplain { config, servers: _, names, approval } = prepared;
    let spec = config.loaded.reading.servers.iter().find(|spec| spec.id == *server);
    let exposure = &spec.expect("find_server returns a valid server").exposure;
    let Exposure { tools, prompts, resources, .. } = exposure;
    let all_names = offer.filter(|_| names.iter().all(|(_, names)| names.is_empty())).map(offered_names);
    let mut explanations: Vec<Explanation> = Vec::new();
    for (list, names) in all_names.as_ref().unwrap_or(names) {
        let rules = match list {
            ListKind::Tool => tools,
            ListKind::Prompt => prompts,
            ListKind::Resource => resources,
        };
        explanations.extend(explain_names(*list, server, rules, names));
    }
    if let Some(approval) = approval {
        for explanation in &mut explanations {
            let name = &explanation.decision.original;
            explanation.lock = lock_status(approval, server, offer, explanation.kind, name);
        }
    }
    if let Some(offer) = offer {
        let (exposure, lists) = (exposure.clone(), Arc::clone(&offer.lists));
        let entry = CatalogServer::new(server.clone(), exposure, lists);
        let catalog = Catalog::build(&Builtins::default(), &[entry]);
        let offered = offered_names(offer);
        for explanation in explanations.iter_mut().filter(|it| offer.read_lists.contains(&it.kind)) {
            explanation.compare_with(&offered, &catalog);
        }
    }
    explanations
}

/// Prints the explanations, and what `report` contains. A name that does not exist is a failure.
async fn print(context: &Context, explanations: &[Explanation], mut report: Report) -> Exit {
    let any_missing = explanations.iter().any(|it| it.offered == Some(false));
    let colour = context.console.out_colour;
    report.out = match context.format {
        Format::Json => json::document(&ExplainJson { decisions: explanations }),
        Format::Text if explanations.is_empty() => "the server offers nothing\n".to_owned(),
        Format::Text => {
            let texts: Vec<String> = explanations.iter().map(|it| it.text(colour)).collect();
            texts.join("\n")
        }
    };
    if any_missing && report.exit == Exit::Success {
        report.exit = Exit::Failure;
    }
    context.print(report).await
}

/// The server's own names of everything that it offers.
fn offered_names(offer: &ServerDefinitions) -> NamesByList {
    let lists = &offer.lists;
    let resources = lists.resources.iter().map(|resource| resource.name.to_string());
    let templates = lists.templates.iter().map(|template| template.name.to_string());
    [
        (ListKind::Tool, lists.tools.iter().map(|tool| tool.name.to_string()).collect()),
        (ListKind::Prompt, lists.prompts.iter().map(|prompt| prompt.name.to_string()).collect()),
        (ListKind::Resource, resources.chain(templates).collect()),
    ]
}

/// The named server, or the only one.
fn find_server(config: &ConfigFile, name: Option<&str>) -> Result<ServerId, Failure> {
    let LoadedConfig { reading, .. } = &config.loaded;
    let names: Vec<String> = reading.entries.iter().map(|entry| entry.name.clone()).collect();
    let entry = match (name, reading.entries.as_slice()) {
        (_, []) => return Err(Failure::new("no servers are configured")),
        (None, [entry]) => entry,
        (None, [_, ..]) => {
            return Err(Failure::usage(format!("select a server with `--server`: {}", names.join(", "))));
        }
        (Some(name), entries) => match entries.iter().find(|entry| entry.name == name) {
            Some(entry) => entry,
            None => return Err(Failure::usage(unknown_server(name, &names))),
        },
    };
    match reading.servers.iter().find(|spec| spec.id.as_str() == entry.name) {
        Some(spec) => Ok(spec.id.clone()),
        None => {
            let name = &entry.name;
            Err(Failure::new(format!("the entry of server `{name}` is invalid, so its rules are unknown")))
        }
    }
}

/// Explains names of one list by its rules.
fn explain_names(
    list: ListKind,
    server: &ServerId,
    rules: &ExposureRules,
    names: &[String],
) -> Vec<Explanation> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let compiled_rules = CompiledRules::new(server, rules);
    let decisions = decide_all(&Builtins::default(), list, server, rules, &names);
    let explanations = decisions.into_iter().map(|decision| {
        let stages = compiled_rules.explain(list, &decision.original);
        let (offered, suggestion) = (None, None);
        Explanation { kind: list, list: list.as_str(), decision, stages, offered, suggestion, lock: None }
    });
    explanations.collect()
}

/// The JSON document of `explain`.
#[derive(Serialize)]
struct ExplainJson<'a> {
    decisions: &'a [Explanation],
}

/// The decision about one name, with every rule that contributed to it.
#[derive(Serialize)]
struct Explanation {
    #[serde(skip)]
    kind: ListKind,
    /// The name of the kind, for the document.
    list: &'static str,
    #[serde(flatten)]
    decision: Decision,
    /// The rules that apply to the name, in order, each with its result.
    stages: Vec<RuleStep>,
    /// Whether the server offers the name; `None` if that is unknown.
    offered: Option<bool>,
    /// A similar name, if the server does not offer this one.
    #[serde(skip)]
    suggestion: Option<String>,
    /// The status in the lock file, if there is one.
    lock: Option<LockStatus>,
}

impl Explanation {
    /// Compares the name with those that the server offers.
    fn compare_with(&mut self, offered: &NamesByList, catalog: &Catalog) {
        let original = &self.decision.original;
        let is_offered = offered.iter().any(|(list, names)| *list == self.kind && names.contains(original));
        self.offered = Some(is_offered);
        if !is_offered && self.kind == ListKind::Tool {
            let similar = match catalog.find(original) {
                ToolLookup::Found(tool) => Some(tool),
                ToolLookup::Missing { nearest } => nearest,
                ToolLookup::Ambiguous(_) => None,
            };
            self.suggestion = similar.map(|tool| tool.tool.name.to_string());
        }
    }

    /// The text about a name that the server does not offer.
    fn missing_text(&self, colour: Colour) -> String {
        let Decision { server, original, .. } = &self.decision;
        let suggestion =
            self.suggestion.as_ref().map(|name| format!("; did you mean `{}`?", sanitize::line(name)));
        let missing = style::paint(colour, style::FAILURE, "does not exist");
        let mut text = format!(
            "{} `{}` of server `{server}` {missing}{}\n",
            self.list,
            sanitize::line(original),
            suggestion.unwrap_or_default()
        );
        if let Some(LockStatus { message, .. }) = &self.lock {
            let _ = writeln!(text, "  {:9}  {}", "lock", sanitize::line(message));
        }
        text
    }

    /// The result in one line, then one line per rule.
    fn text(&self, colour: Colour) -> String {
        if self.offered == Some(false) {
            return self.missing_text(colour);
        }
        let Explanation { kind: _, list, decision, stages, offered: _, suggestion: _, lock } = self;
        let is_withheld = lock.as_ref().is_some_and(|it| it.withheld);
        let Decision { server, original, exposed, verdict, rule, .. } = decision;
        let original = sanitize::line(original);
        let (result_style, result) = match exposed {
            Some(_) if is_withheld => (style::FAILURE, "is not shown: withheld".to_owned()),
            Some(name) => (style::SUCCESS, format!("is shown as `{}`", sanitize::line(name.as_str()))),
            None => (style::FAILURE, format!("is not shown: {}", verdict.as_str())),
        };
        let result = style::paint(colour, result_style, &result);
        let mut text = format!("{list} `{original}` of server `{server}` {result}\n");
        for RuleStep { rule, message, name, .. } in stages {
            let name = match name {
                Some(name) => format!("`{}`", sanitize::line(name)),
                None => style::paint(colour, style::FAILURE, "hidden"),
            };
            let _ = writeln!(text, "  {:9}  {} → {name}", rule.as_str(), sanitize::line(message));
        }
        if let ExposureVerdict::Collision | ExposureVerdict::OwnCollision = verdict {
            let hidden = style::paint(colour, style::FAILURE, "hidden");
            let _ = writeln!(text, "  {:9}  {} → {hidden}", "collision", sanitize::line(rule));
        }
        if let Some(LockStatus { message, .. }) = lock {
            let effect = match exposed {
                Some(_) if is_withheld => {
                    format!(" → {}", style::paint(colour, style::FAILURE, "withheld"))
                }
                Some(name) => format!(" → `{}`", sanitize::line(name.as_str())),
                None => String::new(),
            };
            let _ = writeln!(text, "  {:9}  {}{effect}", "lock", sanitize::line(message));
        }
        text
    }
}
