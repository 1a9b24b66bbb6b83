//! The log, for those who ask for it: on standard error, and quiet about the wires' own libraries.

use std::io::{self, Write};

use mcp_config::Colour;
use tracing_subscriber::EnvFilter;

use crate::output::plain;

/// What is logged. The libraries below say much, and some of it may be what a server sent.
const FILTER: &str = "warn,mcp_host=debug,mcp_transport=debug,rmcp=warn";

/// Begins to log. Called once.
pub(crate) fn start(colour: Colour) {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(FILTER))
        .with_writer(move || Harmless(colour))
        .with_ansi(colour == Colour::Always)
        // A log that cannot be written is no reason to end: without this its failure is printed, and that panics.
        .log_internal_errors(false)
        .init();
}

/// Standard error, for words that may be a server's.
struct Harmless(Colour);

impl Write for Harmless {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = plain::shown(&String::from_utf8_lossy(bytes), self.0);
        io::stderr().write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
