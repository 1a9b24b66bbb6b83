//! The log, for those who ask for it: on standard error, and quiet about the wires' own libraries.

use std::io;

use mcp_config::Colour;
use tracing_subscriber::EnvFilter;

/// What is logged. The libraries below say much, and some of it may be what a server sent.
const FILTER: &str = "warn,mcp_host=debug,mcp_transport=debug,rmcp=warn";

/// Begins to log. Called once.
pub(crate) fn start(colour: Colour) {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(FILTER))
        .with_writer(io::stderr)
        .with_ansi(colour == Colour::Always)
        // A log that cannot be written is no reason to end: without this its failure is printed, and that panics.
        .log_internal_errors(false)
        .init();
}
