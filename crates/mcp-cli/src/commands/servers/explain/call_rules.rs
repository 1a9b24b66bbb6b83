//! `explain --call`: which rule decides whether a tool may be called, and why.
//!
//! Without `--start` the annotations of the tool are unknown. They do not count then, as those of any tool that no lock
//! file approves.

use std::path::Path;

use mcp_host_config::ResolvedServer;
use mcp_host_model::ToolAction;
use mcp_host_registry::{CallFacts, tool_action};
use mcp_host_runtime::{Host, RuleDecision, RulePolicy, Supervision};
use serde::Serialize;

use crate::args::{ExplainArgs, Format};
use crate::config::call_rules::read_rules;
use crate::config::context::Context;
use crate::config::lock::load_approval;
use crate::host::startup::{WaitFor, wait_for_servers};
use crate::host::{gateway_options, select_server, with_host};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{json, sanitize};
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal};

/// The JSON document.
#[derive(Serialize)]
struct CallsJson {
    calls: Vec<CallExplanation>,
}

/// The decision about calls of a tool.
#[derive(Serialize)]
struct CallExplanation {
    server: String,
    tool: String,
    user: Option<String>,
    /// `allow`, `ask` or `deny`.
    effect: &'static str,
    /// The rule; `None` if no rule matches.
    rule: Option<String>,
    /// What the tool does: `reads`, `writes` or `destructive`.
    action: &'static str,
    /// Whether the annotations of the tool count, because a lock file approves it.
    approved: bool,
}

/// The action of a tool, and whether a lock file approves it.
#[derive(Clone, Copy)]
struct KnownTool {
    action: ToolAction,
    is_approved: bool,
}

/// What is known of a tool without its server.
const UNKNOWN_TOOL: KnownTool = KnownTool { action: ToolAction::Destructive, is_approved: false };

/// Explains the decisions about calls.
pub(super) async fn run(
    context: &Context,
    args: ExplainArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let ExplainArgs { file, server, call, user, start, rules, .. } = args;
    let preparing = async {
        let policy = RulePolicy::new(read_rules(&rules).await?);
        let config = context.open(file.as_deref().unwrap_or(Path::new(""))).await?;
        let err = config.detection_notes() + &config.syntax_diagnostics_text(context.console.err_colour);
        context.print(Report::err(err)).await;
        let approval = load_approval(context, &config.path).await?;
        Ok::<_, Failure>((policy, config, approval))
    };
    let (policy, config, approval) = run_until_signal(signals, preparing).await??;
    let desired = select_server(config.loaded.desired, server.as_deref())?;
    if desired.servers.is_empty() {
        return Err(match desired.failed.first() {
            Some(failed) => Failure::new(format!("server `{}`: {}", failed.id, failed.error.message)),
            None => Failure::new("no servers are configured"),
        });
    }
    let servers = desired.servers.clone();
    let explain = |server: &ResolvedServer, tool: &str, known: KnownTool| {
        let id = &server.spec.id;
        let facts = CallFacts { server: id, tool, action: known.action, user: user.as_deref() };
        let RuleDecision { effect, rule, .. } = policy.explain(Some(server), &facts);
        CallExplanation {
            server: id.to_string(),
            tool: tool.to_owned(),
            user: user.clone(),
            effect: effect.as_str(),
            rule: rule.as_deref().map(str::to_owned),
            action: known.action.into(),
            approved: known.is_approved,
        }
    };
    if !start {
        let explain_all = |server| call.iter().map(move |tool| explain(server, tool, UNKNOWN_TOOL));
        let calls = servers.iter().flat_map(explain_all).collect();
        return Ok(context.print(report(context, calls)).await);
    }
    let mut options = gateway_options(Supervision::Off);
    options.catalog.approval = approval;
    let exit = with_host(Host::start(options), desired, signals, async |host| {
        wait_for_servers(host, &context.progress(), WaitFor::All).await;
        let snapshot = host.snapshot();
        let mut calls = Vec::new();
        for server in &servers {
            for name in &call {
                let tool = snapshot
                    .catalog
                    .tools()
                    .iter()
                    .find(|it| it.server == server.spec.id && *it.tool.name == **name);
                if let Some(tool) = tool {
                    let action = tool_action(tool.tool.hints, tool.is_approved);
                    calls.push(explain(server, name, KnownTool { action, is_approved: tool.is_approved }));
                }
            }
        }
        if calls.is_empty() {
            let message = "no server that runs shows such a tool; `mcp-host explain --tool` tells why";
            return context.print_failure(Failure::new(message)).await;
        }
        context.print(report(context, calls)).await
    });
    Ok(exit.await)
}

fn report(context: &Context, calls: Vec<CallExplanation>) -> Report {
    Report::out(match context.format {
        Format::Text => calls.iter().map(CallExplanation::text).collect(),
        Format::Json => json::document(&CallsJson { calls }),
    })
}

impl CallExplanation {
    fn text(&self) -> String {
        let CallExplanation { server, tool, user, effect, rule, action, approved } = self;
        let user = user.as_ref().map(|it| format!(" for {}", sanitize::line(it))).unwrap_or_default();
        let result = match *effect {
            "allow" => "is sent",
            "ask" => "waits for your approval",
            _ => "is refused",
        };
        let rule = match rule {
            Some(rule) => sanitize::line(rule),
            None => format!("none matches; the default is `{effect}`"),
        };
        let why =
            if *approved { "by its approved annotations" } else { "because no lock file approves the tool" };
        format!(
            "a call of `{}` of server `{}`{user} {result}\n  rule   {rule}\n  hints  {action}, {why}\n",
            sanitize::line(tool),
            sanitize::line(server)
        )
    }
}
