//! The floor: a hand-written client with the minimal work for the same calls.
//!
//! `floor --by hand|hyper|reqwest …`. Over stdio it uses blocking pipes; over HTTP a hand-written exchange or an HTTP
//! library alone. It has no deadlines, cancellation or notifications, so it is only a reference.

#![expect(clippy::print_stdout, reason = "its one line of output is what it is for")]

mod exchange;
mod pipe;

use mcp_benches::options::Options;
use mcp_benches::{Failure, scenario};

fn main() -> Result<(), Failure> {
    let options = Options::read();
    let mut line = match options.transport() {
        "stdio" => pipe::run(&options)?,
        // One thread, because the client only moves bytes.
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
