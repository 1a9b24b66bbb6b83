//! The lock file beside a configuration.
//!
//! An existing lock file applies unless `--lock-policy off` is given. If it cannot be read, no server is started.

use std::path::Path;

use mcp_host_runtime::{Approval, lock_path, read_lock};

use crate::config::command_line_server::COMMAND_LINE;
use crate::config::context::Context;
use crate::config::file_error::ConfigFileError;
use crate::config::lock_mode::LockMode;
use crate::output::console::Report;
use crate::runtime::run_blocking;

/// The path of a configuration from standard input, which has no lock file.
pub(super) const STANDARD_INPUT: &str = "/dev/stdin";

/// The note about a lock file of version 1.
pub(crate) const RENEWAL: &str = "the lock file has version 1, which does not bind what the servers start; \
    `mcp-host lock --all` renews it";

/// Reads the lock file of a configuration. `None` if there is none or the lock mode ignores it. A server of the command
/// line has none. A missing file is
/// an error if the lock mode requires one.
pub(crate) async fn load_approval(
    context: &Context,
    configuration: &Path,
) -> Result<Option<Approval>, ConfigFileError> {
    let Some(policy) = context.lock_mode.policy() else { return Ok(None) };
    if context.command_line.is_some() {
        return match context.lock_mode {
            LockMode::Required(_) => Err(ConfigFileError {
                path: COMMAND_LINE.to_owned(),
                message: "a server of the command line has no lock file, and --locked requires one"
                    .to_owned(),
                help: Some("add it to a configuration with `mcp-host add`, and lock that".to_owned()),
            }),
            LockMode::Off | LockMode::IfPresent(_) => Ok(None),
        };
    }
    let path = lock_path(configuration);
    let read = if configuration == Path::new(STANDARD_INPUT) {
        Ok(None)
    } else {
        let path = path.clone();
        run_blocking(move || read_lock(&path)).await
    };
    let file_error = |message: String, help: &str| {
        Err(ConfigFileError { path: path.display().to_string(), message, help: Some(help.to_owned()) })
    };
    match (read, context.lock_mode) {
        (Ok(Some(loaded)), _) => {
            let mut approval = Approval::default();
            approval.lock = loaded.lock.into();
            approval.policy = policy;
            if approval.lock.programs.is_none() {
                context.print(Report::err(context.console.note(RENEWAL))).await;
            }
            Ok(Some(approval))
        }
        (Ok(None), LockMode::Required(_)) => {
            let message = format!("{} does not exist, and --locked requires it", path.display());
            file_error(message, "create it with `mcp-host lock`")
        }
        (Ok(None), LockMode::Off | LockMode::IfPresent(_)) => Ok(None),
        (Err(error), _) => file_error(error.to_string(), "correct it, or ignore it with `--lock-policy off`"),
    }
}
