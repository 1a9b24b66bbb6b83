//! Files to add servers to, also those that do not exist yet.

use std::path::{Path, PathBuf};
use std::slice;

use mcp_host_config::{
    Document, EditError, FieldFallback, Profile, WrittenFile, add_server, detect, write_servers,
};
use mcp_host_model::{Dialect, ServerSpec};

use crate::config::context::Context;
use crate::config::file::{ConfigFile, open};
use crate::config::file_error::ConfigFileError;

/// The help if the dialect of a new file is not known.
pub(super) const NAME_HELP: &str = "name it .mcp.json, .minds/mcp.yaml or agent.yaml, or add `--dialect`";

/// A file to add servers to.
pub(super) struct TargetFile {
    pub(super) path: PathBuf,
    pub(super) profile: Profile,
    /// The text, if it exists.
    pub(super) text: Option<String>,
}

impl TargetFile {
    /// Reads the file; a missing one is new.
    pub(super) fn open(context: &Context, path: &Path) -> Result<TargetFile, ConfigFileError> {
        if path.try_exists().is_ok_and(|exists| !exists) {
            let profile = profile_of_new_file(context, path).map_err(|message| ConfigFileError {
                path: path.display().to_string(),
                message,
                help: Some(NAME_HELP.to_owned()),
            })?;
            return Ok(TargetFile { path: path.to_owned(), profile, text: None });
        }
        let ConfigFile { loaded, path, .. } = open(path, context)?;
        Ok(TargetFile { path, profile: loaded.profile, text: Some(loaded.text) })
    }
}

/// The profile of a file to create, by the options and its name. The error is a message for the user.
pub(super) fn profile_of_new_file(context: &Context, path: &Path) -> Result<Profile, String> {
    let (options, path) = (context.dialect, path.display().to_string());
    let dialect = options.dialect.or_else(|| detect(&path, ""));
    let profile = options.profile.or_else(|| dialect.map(Profile::default_for));
    let profile = profile
        .ok_or_else(|| format!("{path} does not exist, and its name does not determine the dialect"))?;
    match profile.dialect() {
        Dialect::Acp => Err(EditError::SessionRequest.to_string()),
        Dialect::HoloDeck | Dialect::Dominds | Dialect::McpJson => Ok(profile),
    }
}

/// The text of the document with this server. An empty text is that of a new file.
pub(super) fn add_to_text(document: &Document<'_>, server: &ServerSpec) -> Result<WrittenFile, EditError> {
    match document.profile.dialect() {
        Dialect::HoloDeck | Dialect::Dominds if document.text.is_empty() => {
            let written = write_servers(slice::from_ref(server), document.profile, &|_| None);
            let omitted = written.unsupported.iter().find(|it| it.fallback == FieldFallback::ServerOmitted);
            match omitted {
                Some(it) => {
                    Err(EditError::Unsupported { field: it.field.clone(), reason: it.reason.clone() })
                }
                None => Ok(written),
            }
        }
        Dialect::HoloDeck | Dialect::Dominds | Dialect::McpJson | Dialect::Acp => {
            add_server(document, server)
        }
    }
}
