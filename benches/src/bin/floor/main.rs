//! The floor: what the same calls cost by hand, without anything that a client of MCP has to do besides.
//!
//! `floor --by hand|hyper|reqwest …`. Over stdio it is blocking pipes; over HTTP it is a hand-written exchange, or an
//! HTTP library alone. No deadline, no cancellation, no notifications: it is a measure, and no product.

#![expect(clippy::print_stdout, reason = "its one line of output is what it is for")]

mod exchange;
mod pipe;

use mcp_benches::options::Options;
use mcp_benches::{Failure, scenario};

fn main() -> Result<(), Failure> {
    let options = Options::read();
    let mut line = match options.transport() {
        "stdio" => pipe::run(&options)?,
        // One thread: all that it does is to move bytes.
        "http" => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(exchange::run(&options))?,
        other => return Err(format!("it has no transport {other:?}").into()),
    };
    scenario::finish(&mut line);
    println!("{line}");
    Ok(())
}
