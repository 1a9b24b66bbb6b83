//! `cargo xtask windows`: checks the product for Windows. With `--wine` builds it, and runs it under wine.

mod configs;
mod node;
mod scenarios;
mod toolchain;
mod wine;

use crate::error::Error;
use toolchain::Toolchain;

/// The packages of the product. They depend on all others.
pub(super) const PRODUCT: [&str; 3] = ["mcp-host-cli", "mcp-host-acp-agent", "mcp-host-rmcp"];

/// The package with the programs of the tests.
const TESTS: &str = "mcp-windows-tests";

/// Whether a compiler for Windows is installed.
pub(crate) fn is_available() -> bool {
    Toolchain::is_installed()
}

/// Checks for Windows, then runs what the arguments name.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Error> {
    let runs_wine = match arguments {
        [] => false,
        ["--wine"] => true,
        _ => return Err(Error::message("`windows` knows `--wine` only")),
    };
    let toolchain = Toolchain::find_or_install(runs_wine)?;
    // A build also finds what a check finds.
    let mut compile = toolchain.cargo(if runs_wine { "build" } else { "check" });
    for package in PRODUCT.into_iter().chain([TESTS]) {
        compile.args(["-p", package]);
    }
    crate::cargo::run(&mut compile)?;
    if runs_wine {
        scenarios::run(&wine::Wine::prepare(&toolchain)?)?;
    }
    Ok(())
}
