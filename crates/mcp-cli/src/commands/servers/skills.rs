//! `skills`: lists the skills of servers, or prints a file of one.

use mcp_host_model::{ResourceResult, ServerId, Skill};
use mcp_host_runtime::{Host, HostError, RequestOptions, ServerState};
use serde_json::{Value, json};

use crate::args::{Format, ServerArgs, SkillsArgs};
use crate::config::context::Context;
use crate::host::{open_servers, report_with_servers};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::table::{Column, table};
use crate::output::{json, sanitize, style};
use crate::render::call_result::resource_text;
use crate::runtime::exit::Exit;
use crate::runtime::signals::Signals;

/// Starts the servers, and lists their skills or reads a file of one.
pub(crate) async fn run(
    context: &Context,
    args: &SkillsArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let ServerArgs { file, server, target: _ } = &args.servers;
    let (desired, approval) = open_servers(context, file.as_deref(), server.as_deref(), signals).await?;
    let exit = report_with_servers(context, desired, approval, signals, async |host| match &args.read {
        Some(uri) => Ok(file_report(context, read_skill_file(host, uri, args).await?)),
        None => Ok(list_skills(context, host).await),
    });
    Ok(exit.await)
}

/// Lists the skills of all servers that have any. The errors of the others are printed after them.
async fn list_skills(context: &Context, host: &Host) -> Report {
    let mut skills: Vec<(ServerId, Skill)> = Vec::new();
    let mut errors: Vec<(String, HostError)> = Vec::new();
    for status in &host.snapshot().servers {
        let Some(server) = status.id.id().cloned() else { continue };
        let info = host.server_info(&server);
        match (&status.error, info) {
            (Some(error), _) => errors.push((status.id.to_string(), error.clone())),
            (None, Some(info)) if info.capabilities.skills => {
                match host.list_skills(&server, RequestOptions::default()).await {
                    Ok(found) => skills.extend(found.into_iter().map(|skill| (server.clone(), skill))),
                    Err(error) => errors.push((status.id.to_string(), error)),
                }
            }
            (None, _) => {}
        }
    }
    let is_unreachable = host.snapshot().servers.iter().any(|status| status.state != ServerState::Ready);
    let exit = if is_unreachable {
        Exit::Unreachable
    } else if errors.is_empty() {
        Exit::Success
    } else {
        Exit::Failure
    };
    let out = match context.format {
        Format::Json => json::document(&json!({
            "skills": skills.iter().map(|(server, skill)| skill_json(server, skill)).collect::<Vec<_>>(),
            "errors": errors.iter().map(|(server, error)| json!({"server": server, "error": error.to_string()}))
                .collect::<Vec<_>>(),
        })),
        Format::Text if skills.is_empty() && errors.is_empty() => "no server has skills\n".to_owned(),
        Format::Text => {
            let rows: Vec<Vec<String>> = skills
                .into_iter()
                .map(|(server, skill)| vec![skill.name, server.to_string(), skill.uri, skill.description])
                .collect();
            let columns = ["NAME", "SERVER", "URI", "DESCRIPTION"].map(Column::Text);
            table(&columns, &rows, context.console.table_style())
        }
    };
    let colour = context.console.err_colour;
    let err = match context.format {
        Format::Json => String::new(),
        Format::Text => errors
            .iter()
            .map(|(server, error)| {
                let help = error.help.as_deref().map(sanitize::line);
                style::error(
                    colour,
                    &sanitize::block(&format!("server '{server}': {error}")),
                    help.as_deref(),
                )
            })
            .collect(),
    };
    Report { out, err, exit, ..Report::default() }
}

fn skill_json(server: &ServerId, skill: &Skill) -> Value {
    json!({
        "server": server,
        "name": skill.name,
        "description": skill.description,
        "uri": skill.uri,
        "files": skill.files.as_ref().map(|files| {
            files.iter().map(|it| json!({"uri": it.uri, "size": it.size, "digest": it.digest})).collect::<Vec<_>>()
        }),
    })
}

/// Reads a file of the skill with this URI: the one that `--resource` names, or `SKILL.md`.
async fn read_skill_file(host: &Host, uri: &str, args: &SkillsArgs) -> Result<ResourceResult, Failure> {
    let file = args.resource.as_deref().unwrap_or(uri);
    let server = args.servers.server.as_deref().and_then(|name| ServerId::parse(name).ok());
    let mut options = RequestOptions::default();
    options.server = server;
    host.read_skill_file(uri, file, options).await.map_err(|error| Failure::from_request_error(&error))
}

fn file_report(context: &Context, read: ResourceResult) -> Report {
    let out = match context.format {
        Format::Json => json::document(&read.raw),
        Format::Text => read.contents.iter().map(resource_text).collect(),
    };
    Report::out(out)
}
