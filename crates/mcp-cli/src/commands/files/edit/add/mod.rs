//! `add`: adds a server from a command, a package name, a URL, an entry in JSON or a `server.json`; creates the file if
//! it is missing.

mod positional;
mod request;

use std::path::Path;

use mcp_host_config::{Document, Profile, WrittenFile, prompts_for_inputs};
use mcp_host_model::ServerSpec;
use mcp_host_runtime::create_private;

use super::{Edit, EditMode, TextChange, edit_report, failure_report};
use crate::args::AddArgs;
use crate::commands::files::new_file::{NAME_HELP, add_to_text, profile_of_new_file};
use crate::config::approval::approve_written;
use crate::config::context::Context;
use crate::config::file::ConfigFile;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{error_chain, quote};
use crate::render::suggestions::quote_path;
use request::{AddRequest, build_request};

/// Adds a server. Blocks.
pub(crate) fn run(context: &Context, args: AddArgs) -> Result<Report, Failure> {
    let AddRequest { file, server, sandbox, mode, required_variables, secrets } =
        build_request(args).map_err(Failure::usage)?;
    let name = server.name().to_owned();
    let edit = Edit { server: &name, done: "added", unchanged: "already exists", mode };
    let mut prompted = Vec::new();
    // VS Code prompts for secrets and stores them outside the file.
    let adapt = |document: &Document<'_>| {
        if prompts_for_inputs(document) {
            prompted = secrets;
        }
        server.into_spec(document.profile, &prompted, sandbox)
    };
    let is_nearest = file.as_os_str().is_empty();
    let mut report = if !is_nearest && file.try_exists().is_ok_and(|exists| !exists) {
        create_file(context, &file, adapt, &edit)?
    } else {
        super::run(context, &file, &edit, |config: &ConfigFile| {
            let spec = adapt(&config.document());
            mcp_host_config::add_server(&config.document(), &spec)
                .map(|WrittenFile { text, unsupported, .. }| (text, unsupported))
        })?
    };
    for variable in &required_variables {
        let is_prompted = variable
            .split_once(':')
            .is_some_and(|(name, _)| prompted.iter().any(|prompted| prompted == name));
        let action = if is_prompted { "the editor prompts for" } else { "set the variable" };
        report.err.push_str(&context.console.note(&format!("{action} {variable}")));
    }
    let words = if is_nearest { String::new() } else { format!(" {}", quote_path(&file)) };
    let test = format!("`mcp-host doctor{words} --server {}` tests it", quote(&name));
    report.after = context.console.suggestion(&test);
    Ok(report)
}

/// The text of an mcp.json with only the server that the arguments describe. The error is a message for the user.
pub(crate) fn configuration_text(args: AddArgs) -> Result<String, String> {
    let AddRequest { server, .. } = build_request(args)?;
    let empty = Document::new("mcp.json", "", Profile::McpJson);
    let written = add_to_text(&empty, &server.into_spec(Profile::McpJson, &[], None));
    written.map(|it| it.text).map_err(|error| error.to_string())
}

/// Creates a file that contains only this server.
fn create_file(
    context: &Context,
    file: &Path,
    adapt: impl FnOnce(&Document<'_>) -> ServerSpec,
    edit: &Edit<'_>,
) -> Result<Report, Failure> {
    let path = file.display().to_string();
    let failed = |error: String, help: Option<&str>| {
        Failure::from(failure_report(context, edit, path.clone(), error, help.map(str::to_owned)))
    };
    let profile = profile_of_new_file(context, file).map_err(|message| failed(message, Some(NAME_HELP)))?;
    let empty = Document::new(&path, "", profile);
    let WrittenFile { text: after, unsupported: losses, .. } =
        add_to_text(&empty, &adapt(&empty)).map_err(|error| failed(error.to_string(), None))?;
    if edit.mode == EditMode::Write {
        create_private(file, &after).map_err(|error| failed(error_chain(&error), None))?;
        approve_written(context, file, edit.server);
    }
    Ok(edit_report(context, edit, TextChange { path: path.clone(), before: "", after: &after }, losses))
}
