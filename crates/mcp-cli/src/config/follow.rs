//! The configuration file of a command that follows its changes.

use std::path::Path;

use mcp_host_runtime::{Approval, FollowHandle, FollowLock, FollowRequest, Host, lock_path};

use crate::config::approval::ask_about_file;
use crate::config::context::Context;
use crate::config::file::profile_note;
use crate::config::file_error::ConfigFileError;
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
    pub(crate) async fn find(
        context: &Context,
        path: Option<&Path>,
    ) -> Result<FollowedConfig, ConfigFileError> {
        let path = path.unwrap_or(Path::new(""));
        let config = locate_config(path).map_err(|message| ConfigFileError {
            path: path.display().to_string(),
            message,
            help: None,
        })?;
        let load_request = context.load_request(&config);
        let ConfigPath { path, is_discovered, .. } = config;
        if is_discovered {
            context.print(Report::err(context.console.discovery_note(&path))).await;
        }
        let approval = load_approval(context, &path).await?;
        let policy = context.lock_mode.policy().filter(|_| path != Path::new(STANDARD_INPUT));
        let lock = policy.map(|policy| FollowLock::new(lock_path(&path), policy));
        ask_about_file(context, &load_request).await;
        let mut request = FollowRequest::new(vec![load_request]);
        request.lock = lock;
        Ok(FollowedConfig { request, approval })
    }
}

/// Follows files, and prints a note for each whose profile was detected.
pub(crate) async fn follow(context: &Context, host: &Host, request: FollowRequest) -> FollowHandle {
    let asking = context.inputs.ask_for_inputs();
    let follow_handle = host.follow(request).await;
    drop(asking);
    for note in profile_notes(context, &follow_handle) {
        context.print(Report::err(context.console.note(&note))).await;
    }
    follow_handle
}

/// A note for each file whose profile was detected.
pub(crate) fn profile_notes(context: &Context, follow_handle: &FollowHandle) -> Vec<String> {
    follow_handle.profiles().iter().filter_map(|it| profile_note(context, &it.path, it.profile)).collect()
}
