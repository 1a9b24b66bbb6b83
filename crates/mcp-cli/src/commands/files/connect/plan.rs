//! What `connect` changes: the text of a client's file, and the text of the host's configuration. Writes no file.

use std::path::Path;

use mcp_host_config::{
    Document, EditError, NewServer, NewTransport, Profile, ServerEntry, UnsupportedField, add_server, read,
    remove_server,
};
use mcp_host_model::{ConfigValue, ServerId, ServerSpec, Severity, StdioSpec, TemplatePart, TransportSpec};
use serde::Serialize;

use crate::commands::files::new_file::{TargetFile, add_to_text};
use crate::commands::files::server_copy::{AddedEntry, FoundServer, add_entry, read_entry};
use crate::config::file::ConfigFile;
use crate::output::error_chain;

/// The name of the host's entry in the file of a client.
pub(super) const ENTRY_NAME: &str = "mcp-host";

/// The host's entry in the file of a client: the program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostEntry {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

/// The configuration of the host, with the servers that it receives.
pub(super) struct HostConfig {
    pub(super) file: TargetFile,
    /// The text with the moved servers.
    pub(super) after: String,
}

/// What `connect` finds or changes in a client's file.
pub(super) enum ClientPlan {
    /// The file has the host's entry. Other servers beside it are named.
    Connected { others: Vec<String> },
    /// The file changes.
    Change(ClientChange),
}

/// A change of a client's file.
#[derive(Default)]
pub(super) struct ClientChange {
    /// The text; `None` if the file is missing.
    pub(super) before: Option<String>,
    pub(super) after: String,
    /// The servers that the host's configuration receives.
    pub(super) moved: Vec<String>,
    /// The servers that the host's configuration has already.
    pub(super) known: Vec<String>,
    pub(super) left: Vec<LeftServer>,
    /// What the host's configuration cannot express.
    pub(super) losses: Vec<UnsupportedField>,
    /// The moved values that may be secrets, each as `SERVER: FIELD`.
    pub(super) secrets: Vec<String>,
}

/// A server that stays in the client's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LeftServer {
    pub(super) server: String,
    #[serde(rename = "why")]
    pub(super) reason: String,
}

impl HostConfig {
    pub(super) fn new(file: TargetFile) -> HostConfig {
        HostConfig { after: file.text.clone().unwrap_or_default(), file }
    }

    /// Takes over a server, unless an equal one is there. The error says why it is not possible.
    fn take(&mut self, name: &ServerId, found: &FoundServer) -> Result<Option<AddedEntry>, String> {
        let path = self.file.path.display().to_string();
        let document = Document::new(&path, &self.after, self.file.profile);
        if read(&document).entries.iter().any(|it| it.name == name.as_str()) {
            return match is_same(&document, name, found) {
                true => Ok(None),
                false => Err(format!("{path} has another server of this name")),
            };
        }
        add_entry(&document, found).map(Some)
    }
}

impl HostEntry {
    /// The entry as a server for the file of a client.
    fn spec(&self) -> ServerSpec {
        let HostEntry { command, args } = self.clone();
        let id = ServerId::parse(ENTRY_NAME).expect("it has no control characters");
        NewServer::new(id, NewTransport::Stdio { command, args, env: Vec::new() }).into_spec(Profile::McpJson)
    }

    /// Whether a server starts the host with the same configuration, perhaps with another path of the program and other
    /// options.
    fn is_in(&self, server: &ServerSpec) -> bool {
        let configuration = |stdio: &StdioSpec| stdio.args.get(1)?.as_literal().map(str::to_owned);
        own_program(server).is_some_and(|stdio| configuration(stdio) == self.args.get(1).cloned())
    }
}

/// The change of a client's file. Takes the servers into the host's configuration. The error says why the file cannot
/// be changed.
pub(super) fn plan(
    client: &ConfigFile,
    host: &mut HostConfig,
    entry: &HostEntry,
) -> Result<ClientPlan, String> {
    let reading = &client.loaded.reading;
    let names = || reading.entries.iter().map(|it| it.name.clone());
    let server = |name: &str| reading.servers.iter().find(|it| it.id.as_str() == name);
    if server(ENTRY_NAME).is_some_and(|it| entry.is_in(it)) {
        return Ok(ClientPlan::Connected { others: names().filter(|name| name != ENTRY_NAME).collect() });
    }
    if let Some(mistake) = unreadable(client) {
        return Err(mistake);
    }
    let document = client.document();
    let mut change = ClientChange { before: Some(document.text.to_owned()), ..ClientChange::default() };
    // First, because a file may not lose its last server: then its map of servers is gone, too.
    let added = add_server(&document, &entry.spec()).map_err(|error| match error {
        EditError::AlreadyExists { .. } => {
            format!("it has another server named `{ENTRY_NAME}`; rename that first")
        }
        other => other.to_string(),
    });
    change.after = added?.text;
    for it in &reading.entries {
        let removed = movable(client, it).and_then(|found| {
            let text = remove_server(&document.with_text(&change.after), &it.name)
                .map_err(|error| error.to_string())?;
            let name = ServerId::parse(&it.name).map_err(|error| error.to_string())?;
            Ok((text, host.take(&name, &found)?))
        });
        match removed {
            Ok((text, None)) => {
                change.after = text;
                change.known.push(it.name.clone());
            }
            Ok((text, Some(added))) => {
                change.after = text;
                host.after = added.text;
                change.losses.extend(added.losses);
                change.secrets.extend(added.secrets.iter().map(|field| format!("{}: {field}", it.name)));
                change.moved.push(it.name.clone());
            }
            Err(reason) => change.left.push(LeftServer { server: it.name.clone(), reason }),
        }
    }
    Ok(ClientPlan::Change(change))
}

/// The change that creates the file of a client. The error says why that is not possible.
pub(super) fn plan_new(path: &str, entry: &HostEntry) -> Result<ClientPlan, String> {
    let added = add_to_text(&Document::new(path, "", Profile::McpJson), &entry.spec());
    let after = added.map_err(|error| error_chain(&error))?.text;
    Ok(ClientPlan::Change(ClientChange { after, ..ClientChange::default() }))
}

/// Why no entry of the file can be moved: it is refused as a whole.
fn unreadable(client: &ConfigFile) -> Option<String> {
    let reading = &client.loaded.reading;
    let error = reading.diagnostics.iter().find(|it| it.server.is_none() && it.severity == Severity::Error);
    error.filter(|_| client.loaded.reading.refused).map(|it| format!("line {}: {}", it.line, it.message))
}

/// The server of an entry, if it may be moved. The error says why it stays.
fn movable(client: &ConfigFile, entry: &ServerEntry) -> Result<FoundServer, String> {
    if entry.pointer.starts_with("/projects/") {
        return Err("it belongs to a project".to_owned());
    }
    let found = read_entry(client, entry)?;
    if own_program(&found.spec).is_some() {
        return Err("it starts mcp-host".to_owned());
    }
    if needs_workspace(&found.spec) {
        return Err("it names the folder that the client has open".to_owned());
    }
    Ok(found)
}

/// The program and arguments of a server that starts `mcp-host serve`.
fn own_program(server: &ServerSpec) -> Option<&StdioSpec> {
    let TransportSpec::Stdio(stdio) = &server.transport else { return None };
    let program = Path::new(&stdio.command).file_stem()?;
    let is_serve = stdio.args.first().and_then(ConfigValue::as_literal) == Some("serve");
    (program == "mcp-host" && is_serve).then_some(stdio)
}

/// Whether a value of a server is the folder that the client has open. The host has none.
fn needs_workspace(server: &ServerSpec) -> bool {
    let is_workspace =
        |part: &TemplatePart| matches!(part, TemplatePart::Variable(name) if name.starts_with("workspace"));
    let names_workspace = |value: &ConfigValue| match value {
        ConfigValue::Template(parts) => parts.iter().any(is_workspace),
        ConfigValue::Literal(_) | ConfigValue::HostEnv { .. } => false,
    };
    match &server.transport {
        TransportSpec::Stdio(stdio) => {
            let mut values = stdio.args.iter().chain(stdio.env.iter().map(|it| &it.1)).chain(&stdio.env_file);
            let mut texts = stdio.cwd.iter().chain([&stdio.command]);
            values.any(names_workspace) || texts.any(|it| it.contains("${workspace"))
        }
        TransportSpec::Sse(url) | TransportSpec::WebSocket(url) | TransportSpec::Http(url) => {
            names_workspace(&url.url) || url.headers.iter().any(|it| names_workspace(&it.1))
        }
    }
}

/// Whether the configuration has the server already: it starts or connects to the same.
fn is_same(document: &Document<'_>, name: &ServerId, found: &FoundServer) -> bool {
    let transport = |document: &Document<'_>| {
        read(document).servers.into_iter().find(|it| it.id == *name).map(|it| it.transport)
    };
    let alone = add_entry(&document.with_text(""), found).ok();
    let alone = alone.and_then(|added| transport(&document.with_text(&added.text)));
    alone.is_some() && alone == transport(document)
}
