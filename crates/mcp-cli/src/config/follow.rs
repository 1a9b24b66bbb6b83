//! The configuration file of a command that follows its changes.

use std::path::Path;

use mcp_host::{Approval, FollowLock, FollowRequest, lock_path};

use crate::config::context::Context;
use crate::config::file::FileError;
use crate::config::locate::{ConfigPath, locate_config};
use crate::config::lock::{STANDARD_INPUT, load_approval};
use crate::output::console::Report;

/// A configuration file to follow.
pub(crate) struct FollowedConfig {
    /// The file and its lock file.
    pub(crate) request: FollowRequest,
    /// The content of the lock file at the start.
    pub(crate) approval: Option<Approval>,
}

impl FollowedConfig {
    /// Finds the configuration that `path` selects, or the nearest one, and reads its lock file. Prints the path of a
    /// file that was found by search.
    pub(crate) async fn find(context: &Context, path: Option<&Path>) -> Result<FollowedConfig, FileError> {
        let path = path.unwrap_or(Path::new(""));
        let ConfigPath { path, is_discovered } = locate_config(path).map_err(|message| FileError {
            path: path.display().to_string(),
            message,
            help: None,
        })?;
        let mut notes = if is_discovered { context.console.discovery_note(&path) } else { String::new() };
        // The host reads the file itself. Standard input can be read only once.
        if path != Path::new(STANDARD_INPUT)
            && let Ok(file) = context.open(&path).await
        {
            notes.push_str(&file.profile_note());
        }
        if !notes.is_empty() {
            context.print(Report::err(notes)).await;
        }
        let approval = load_approval(context, &path).await?;
        let policy = context.lock_mode.policy().filter(|_| path != Path::new(STANDARD_INPUT));
        let lock = policy.map(|policy| FollowLock { path: lock_path(&path), policy });
        let files = vec![context.load_request(path)];
        Ok(FollowedConfig { request: FollowRequest { lock, ..FollowRequest::new(files) }, approval })
    }
}
