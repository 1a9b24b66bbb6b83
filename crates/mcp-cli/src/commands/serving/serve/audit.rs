//! The audit log of `serve --audit`.

use std::convert::Infallible;
use std::path::Path;

use mcp_host_gateway::AuditLog;
use tokio::signal::unix::Signal;

use crate::args::ServeArgs;
use crate::output::failure::Failure;
use crate::output::log::OPERATOR;
use crate::runtime::run_blocking;

/// The path that is standard output.
const STANDARD_OUTPUT: &str = "-";

/// Opens the audit log, if one is requested.
pub(super) async fn open_audit_log(args: &ServeArgs) -> Result<Option<AuditLog>, Failure> {
    let Some(path) = args.audit.clone() else { return Ok(None) };
    let is_stdout = path == Path::new(STANDARD_OUTPUT);
    if is_stdout && args.stdio {
        let message = "with --stdio, standard output carries the protocol, so --audit needs a file";
        return Err(Failure::usage(message));
    }
    let shown = path.display().to_string();
    let open_log = move || if is_stdout { AuditLog::to_stdout() } else { AuditLog::to_file(&path) };
    let opened = run_blocking(open_log).await;
    opened.map(Some).map_err(|error| Failure::new(format!("cannot open the audit log {shown}: {error}")))
}

/// Opens the audit log again at each signal. Never returns.
pub(super) async fn reopen_on_signal(signal: Option<Signal>, audit: Option<&AuditLog>) -> Infallible {
    if let (Some(mut signal), Some(audit)) = (signal, audit) {
        while signal.recv().await.is_some() {
            audit.reopen();
            tracing::info!(target: OPERATOR, "opening the audit log again");
        }
    }
    std::future::pending().await
}
