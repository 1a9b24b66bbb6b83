//! `doctor`: tests each server step by step and explains the first step that fails.
//!
//! The steps are those of a host, one at a time and with their durations. Servers are tested concurrently. Reports
//! that are ready when the first ones are printed are in the order of the file, later ones in the order of their ends.

mod findings;
mod learn;
mod lists;
mod lock_check;
mod network;
mod report;
mod server_tests;
mod step_log;
mod steps;
mod text;

use std::path::Path;

use mcp_host_model::ErrorKind;
use mcp_host_runtime::{DesiredServers, FailedServer, HostError};

use crate::args::{DoctorArgs, Format, ServerArgs};
use crate::config::context::Context;
use crate::config::file::ConfigFile;
use crate::config::lock::load_approval;
use crate::host::select_server;
use crate::output::failure::Failure;
use crate::render::suggestions::SuggestedFile;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal};
use lock_check::LockState;
use server_tests::ServerTests;

/// Tests the servers of a configuration. A signal ends the tests; what is known then is printed.
pub(crate) async fn run(
    context: &Context,
    args: &DoctorArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let DoctorArgs { servers, learn } = args;
    let (desired, lock) = run_until_signal(signals, prepare(context, servers)).await??;
    let named = SuggestedFile::requested(context, servers.file.as_deref().unwrap_or(Path::new("")));
    if *learn {
        let work = async { context.print(learn::learn(context, desired, &lock, &named).await).await };
        return Ok(run_until_signal(signals, work).await.unwrap_or_else(Exit::Signal));
    }
    let mut tests = ServerTests::start(context, desired, lock);
    let signal = run_until_signal(signals, tests.wait()).await.err();
    let mut report = tests.final_report();
    if report.exit == Exit::Success && signal.is_none() && context.format == Format::Text {
        let tools = format!("`{}` lists their tools", named.command("tools"));
        report.after.push_str(&context.console.suggestion(&tools));
    }
    match signal {
        None => Ok(run_until_signal(signals, context.print(report)).await.unwrap_or_else(Exit::Signal)),
        // The end of this function drops the tests, and with them every process that they started.
        Some(signal) => Ok(context.print_interrupted(report, signal).await),
    }
}

/// Reads the file, asks for missing approvals, and returns the servers to test. If the file has errors, the valid
/// entries are still tested.
async fn prepare(context: &Context, servers: &ServerArgs) -> Result<(DesiredServers, LockState), Failure> {
    let ServerArgs { file, server, target: _ } = servers;
    let asking = context.inputs.ask_for_inputs();
    let file = context.open_and_report(file.as_deref()).await?;
    let lock = LockState::new(load_approval(context, &file.path).await);
    let file = context.ask_for_approval(file).await?;
    drop(asking);
    let desired = if file.loaded.refused { refused_servers(&file) } else { file.loaded.desired };
    Ok((select_server(desired, server.as_deref())?, lock))
}

/// The servers of a file that is refused as a whole, all as failed servers, so that none is started.
fn refused_servers(file: &ConfigFile) -> DesiredServers {
    let message = "the file has an error that affects all servers, so none of them is started";
    let mut error = HostError::new(ErrorKind::Config, message.to_owned());
    error.help = Some("correct what `mcp-host check` reports, then run `doctor` again".to_owned());
    let entries = file.loaded.reading.entries.iter();
    let failed = entries.map(|entry| FailedServer { id: entry.name.as_str().into(), error: error.clone() });
    DesiredServers::default().with_failed(failed)
}
