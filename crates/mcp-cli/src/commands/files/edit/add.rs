//! `add`: adds a server from a command, a package name, a URL or a `server.json`; creates the file if it is missing.

use std::path::{Path, PathBuf};

use mcp_host_config::{
    Document, EditError, NewServer, NewTransport, PackageKind, Profile, PublishedServer, UnsupportedField,
    UrlTransportKind, WrittenFile, detect, parse_server_json, prompts_for_inputs, write_servers,
};
use mcp_host_model::{Dialect, ServerId, ServerSpec};
use mcp_host_runtime::create_private;

use super::{Edit, EditMode, TextChange, edit_report, failure_report};
use crate::args::AddArgs;
use crate::config::context::Context;
use crate::config::file::ConfigFile;
use crate::output::console::Report;
use crate::output::error_chain;
use crate::output::failure::Failure;
use crate::render::suggestions::{quote, quote_path};
use crate::runtime::bounded_read::{input_name, read_file};

/// The maximum size of a `server.json`, in bytes.
const MAX_SERVER_JSON: u64 = 2 << 20;

/// A server to add to a file.
struct AddRequest {
    file: PathBuf,
    server: NewServer,
    mode: EditMode,
    /// The variables that the server needs, each as `NAME: description`.
    required_variables: Vec<String>,
    /// The names of the variables that hold secrets.
    secrets: Vec<String>,
}

/// Builds the request from the arguments, and reads a `server.json` if they name one. The error is a message for
/// the user.
fn build_request(args: AddArgs) -> Result<AddRequest, String> {
    let AddArgs {
        file,
        server,
        command,
        npm,
        pypi,
        image,
        server_json,
        args,
        env,
        url,
        transport: url_transport,
        header,
        description,
        dry_run,
    } = args;
    let env = parse_name_value_pairs("--env", env)?;
    let package = |kind: PackageKind, package: String| {
        let name = server_name_from_package(&package);
        (name, kind.transport(&package, args.clone(), env.clone()))
    };
    let (mut required_variables, mut secrets) = (Vec::new(), Vec::new());
    let mut published_description = None;
    let (default_name, transport) = if let Some(command) = command {
        let name = command.rsplit('/').next().unwrap_or_default().to_owned();
        (name, NewTransport::Stdio { command, args, env })
    } else if let Some(name) = npm {
        package(PackageKind::Npm, name)
    } else if let Some(name) = pypi {
        package(PackageKind::Pypi, name)
    } else if let Some(name) = image {
        package(PackageKind::Oci, name)
    } else if let Some(path) = server_json {
        let text = read_file(&path, MAX_SERVER_JSON)
            .map_err(|error| format!("could not read {}: {error}", input_name(&path)))?;
        let server = parse_server_json(&text).map_err(|error| format!("{}: {error}", input_name(&path)))?;
        let PublishedServer { name, description, transport, required_values, secret_variables, .. } = server;
        (required_variables, secrets, published_description) =
            (required_values, secret_variables, description);
        (name, transport)
    } else {
        let url = url.unwrap_or_default();
        let kind = url_transport.unwrap_or_else(|| UrlTransportKind::guess(&url));
        (
            server_name_from_url(&url),
            NewTransport::Url { kind, url, headers: parse_name_value_pairs("--header", header)? },
        )
    };
    let name = server.unwrap_or(default_name);
    let id =
        ServerId::parse(&name).map_err(|error| format!("{error}; give the server's name after the file"))?;
    let mut server = NewServer::new(id, transport);
    server.description = description.or(published_description);
    Ok(AddRequest { file, server, mode: EditMode::new(dry_run), required_variables, secrets })
}

/// Parses texts of the form `NAME=value`. An error does not repeat the text, which may be a secret.
fn parse_name_value_pairs(flag: &str, texts: Vec<String>) -> Result<Vec<(String, String)>, String> {
    let pair = |text: String| {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("`{flag}` needs NAME=VALUE, but one value has no `=`"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    texts.into_iter().map(pair).collect()
}

/// A short name for a package: `@scope/mcp-server-x@1` is `x`.
fn server_name_from_package(package: &str) -> String {
    let last = package.rsplit('/').next().unwrap_or_default();
    let bare = last.split(['@', ':', '=', '<', '>', '~', '[']).next().unwrap_or_default();
    let stripped = ["mcp-server-", "server-", "mcp-"].iter().find_map(|prefix| bare.strip_prefix(prefix));
    let name = stripped.or_else(|| bare.strip_suffix("-mcp-server")).or_else(|| bare.strip_suffix("-mcp"));
    name.filter(|name| !name.is_empty()).unwrap_or(bare).to_owned()
}

/// A short name for the server of a URL: `https://mcp.example.com/x` is `example`.
fn server_name_from_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let label = host.split('.').find(|label| !["www", "mcp", "api"].contains(label));
    label.unwrap_or(host).to_owned()
}

/// Adds a server. Blocks.
pub(crate) fn run(context: &Context, args: AddArgs) -> Result<Report, Failure> {
    let AddRequest { file, server, mode, required_variables, secrets } =
        build_request(args).map_err(Failure::usage)?;
    let name = server.id.to_string();
    let edit = Edit { server: &name, done: "added", unchanged: "already exists", mode };
    let mut prompted = Vec::new();
    // VS Code prompts for secrets and stores them outside the file.
    let adapt = |document: &Document<'_>| {
        if prompts_for_inputs(document) {
            prompted = secrets;
        }
        server.with_inputs_for(&prompted)
    };
    let mut report = if file.try_exists().is_ok_and(|exists| !exists) {
        let name = file.to_string_lossy();
        let empty = Document::new(&name, "", Profile::McpJson);
        create_file(context, &file, adapt(&empty), &edit)?
    } else {
        super::run(context, &file, &edit, |config: &ConfigFile| {
            let spec = adapt(&config.document()).into_spec(config.loaded.profile);
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
    let test = format!("`mcp-host doctor {} --server {}` tests it", quote_path(&file), quote(&name));
    report.after = context.console.suggestion(&test);
    Ok(report)
}

/// Creates a file that contains only this server.
fn create_file(
    context: &Context,
    file: &Path,
    server: NewServer,
    edit: &Edit<'_>,
) -> Result<Report, Failure> {
    let path = file.display().to_string();
    let failed = |error: String, help: Option<&str>| {
        Failure::from(failure_report(context, edit, path.clone(), error, help.map(str::to_owned)))
    };
    let options = context.dialect;
    let dialect = options.dialect.or_else(|| detect(&path, ""));
    let Some(profile) = options.profile.or_else(|| dialect.map(Profile::default_for)) else {
        let message = format!("{path} does not exist, and its name does not determine the dialect");
        let help = "name it .mcp.json, .minds/mcp.yaml or agent.yaml, or add `--dialect`";
        return Err(failed(message, Some(help)));
    };
    if profile.dialect() == Dialect::Acp {
        return Err(failed(EditError::SessionRequest.to_string(), None));
    }
    let (after, losses) = new_file_text(file, profile, server.into_spec(profile))
        .map_err(|error| failed(error.to_string(), None))?;
    if edit.mode == EditMode::Write {
        create_private(file, &after).map_err(|error| failed(error_chain(&error), None))?;
    }
    Ok(edit_report(context, edit, TextChange { path: path.clone(), before: "", after: &after }, losses))
}

/// The text of a new file with this server, and what the dialect cannot express.
fn new_file_text(
    file: &Path,
    profile: Profile,
    server: ServerSpec,
) -> Result<(String, Vec<UnsupportedField>), EditError> {
    let name = file.display().to_string();
    match profile.dialect() {
        Dialect::McpJson => {
            let empty = Document::new(&name, "", profile);
            mcp_host_config::add_server(&empty, &server)
                .map(|WrittenFile { text, unsupported, .. }| (text, unsupported))
        }
        Dialect::HoloDeck | Dialect::Dominds | Dialect::Acp => {
            let WrittenFile { text, unsupported, .. } =
                write_servers(std::slice::from_ref(&server), profile, &|_| None);
            Ok((text, unsupported))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_derived_from_packages_and_urls() {
        let check = |package: &str, want: &str| assert_eq!(server_name_from_package(package), want);
        check("@modelcontextprotocol/server-everything@1.2", "everything");
        check("mcp-server-git==1.0", "git");
        check("firecrawl-mcp", "firecrawl");
        check("docker.io/mcp/time:latest", "time");
        check("server-", "server-");
        let check = |url: &str, want: &str| assert_eq!(server_name_from_url(url), want);
        check("https://mcp.example.com/x", "example");
        check("http://127.0.0.1:8080/mcp", "127");
        check("https://u:p@api.github.com", "github");
    }
}
