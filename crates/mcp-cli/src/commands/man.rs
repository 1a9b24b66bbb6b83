//! `man`: prints the manual page, with all commands on one page.

use std::io::Write;

use clap::Command;
use clap_mangen::Man;

use crate::args::command_line;
use crate::output::console::Report;
use crate::output::failure::Failure;

/// Returns the manual page in roff.
pub(crate) fn run() -> Result<Report, Failure> {
    let failed = |error| Failure::new(format!("cannot generate the manual page: {error}"));
    render_page().map(Report::out).map_err(failed)
}

fn render_page() -> std::io::Result<String> {
    let mut command = command_line();
    command.build();
    let mut out = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    // All commands are on one page, because separate pages would have to be installed one by one.
    for subcommand in command.get_subcommands().filter(|it| it.get_name() != "help") {
        write_section(subcommand, &mut out)?;
    }
    man.render_extra_section(&mut out)?;
    man.render_version_section(&mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Writes the section of one command, without the global options.
fn write_section(command: &Command, out: &mut Vec<u8>) -> std::io::Result<()> {
    let own = command.clone().mut_args(|it| if it.is_global_set() { it.hide(true) } else { it });
    let name = command.get_name();
    let about = command.get_about().map(|it| it.to_string()).unwrap_or_default();
    writeln!(out, ".SH \"MCP\\-HOST {}\"\n{about}.", name.replace('-', "\\-").to_uppercase())?;
    let mut options = Vec::new();
    Man::new(own).render_options_section(&mut options)?;
    // Remove the heading, because it would end the section of the command.
    out.extend(String::from_utf8_lossy(&options).replacen(".SH OPTIONS\n", "", 1).bytes());
    Ok(())
}
