//! Copies a server from one file to another, for `import` and `connect`.

use mcp_host_config::{
    Document, Reading, ServerEntry, Switch, UnsupportedField, WrittenFile, read, secret_fields, set_enabled,
};
use mcp_host_model::{ServerSpec, Severity};

use crate::commands::files::new_file::add_to_text;
use crate::config::file::ConfigFile;

/// A server to add, and whether it is enabled.
pub(super) struct FoundServer {
    pub(super) spec: ServerSpec,
    switch: Switch,
}

/// The server of an entry. The error says why there is none.
pub(super) fn read_entry(source: &ConfigFile, entry: &ServerEntry) -> Result<FoundServer, String> {
    let find = |reading: &Reading| reading.servers.iter().find(|it| it.id.as_str() == entry.name).cloned();
    if let Some(spec) = find(&source.loaded.reading) {
        return Ok(FoundServer { spec, switch: Switch::On });
    }
    let diagnostics = &source.loaded.reading.diagnostics;
    let mistake = diagnostics.iter().find(|it| {
        it.severity == Severity::Error && it.server.as_deref().is_none_or(|name| name == entry.name)
    });
    if let Some(mistake) = mistake {
        return Err(format!("line {}: {}", mistake.line, mistake.message));
    }
    let unsupported = "it has nothing to start".to_owned();
    if !entry.disabled {
        return Err(unsupported);
    }
    let document = source.document();
    let enabled = set_enabled(&document, &entry.name, Switch::On).map_err(|error| error.to_string())?;
    let spec = find(&read(&document.with_text(&enabled))).ok_or(unsupported)?;
    Ok(FoundServer { spec, switch: Switch::Off })
}

/// The text with an added server.
pub(super) struct AddedEntry {
    pub(super) text: String,
    pub(super) losses: Vec<UnsupportedField>,
    /// The fields that may be secrets.
    pub(super) secrets: Vec<String>,
}

/// Adds a server to a text. A disabled one stays disabled. The error says why it is not added.
pub(super) fn add_entry(document: &Document<'_>, found: &FoundServer) -> Result<AddedEntry, String> {
    let FoundServer { spec, switch } = found;
    let WrittenFile { mut text, unsupported: losses, .. } =
        add_to_text(document, spec).map_err(|error| error.to_string())?;
    if *switch == Switch::Off {
        text = set_enabled(&document.with_text(&text), spec.id.as_str(), Switch::Off)
            .map_err(|error| format!("it is disabled, and {error}"))?;
    }
    Ok(AddedEntry { text, losses, secrets: secret_fields(spec) })
}
