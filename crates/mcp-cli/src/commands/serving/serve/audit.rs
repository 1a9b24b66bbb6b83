//! The audit log of `serve --audit`.

use std::path::Path;

use mcp_host_gateway::AuditLog;

use crate::args::ServeArgs;
use crate::output::failure::Failure;
use crate::runtime::run_blocking;

/// The path that is standard output.
const STANDARD_OUTPUT: &str = "-";

/// Opens the audit log, if one is requested.
pub(super) async fn open_audit_log(args: &ServeArgs) -> Result<Option<AuditLog>, Failure> {
    let Some(path) = args.audit.clone() else { return Ok(None) };
    let is_stdout = path == Path::new(STANDARD_OUTPUT);
    if is_stdout && args.http.is_none() {
        let message = "with --stdio, standard output carries the protocol, so --audit needs a file";
        return Err(Failure::usage(message));
    }
    let shown = path.display().to_string();
    let open_log = move || if is_stdout { AuditLog::to_stdout() } else { AuditLog::to_file(&path) };
    let opened = run_blocking(open_log).await;
    opened.map(Some).map_err(|error| Failure::new(format!("cannot open the audit log {shown}: {error}")))
}
