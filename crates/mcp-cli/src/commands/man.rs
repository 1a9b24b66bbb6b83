//! `man`: the manual, all commands on one page.

use std::io::Write;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Arguments;
use crate::exit::Exit;
use crate::output::console::{Console, Report};

/// The page, in the language of `man`.
pub(crate) fn run(console: &Console) -> Report {
    match page() {
        Ok(out) => Report { out, err: String::new(), exit: Exit::Done, after: String::new() },
        Err(error) => console.failure(Exit::Wrong, &format!("the page cannot be written: {error}"), None),
    }
}

fn page() -> std::io::Result<String> {
    let mut command = Arguments::command();
    command.build();
    let mut out = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    // Pages of their own for the commands would have to be installed one by one.
    for it in command.get_subcommands().filter(|it| it.get_name() != "help") {
        section(it, &mut out)?;
    }
    man.render_extra_section(&mut out)?;
    man.render_version_section(&mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// One command: its words, and the options that are its alone.
fn section(command: &Command, out: &mut Vec<u8>) -> std::io::Result<()> {
    let own = command.clone().mut_args(|it| if it.is_global_set() { it.hide(true) } else { it });
    let name = command.get_name();
    let about = command.get_about().map(|it| it.to_string()).unwrap_or_default();
    writeln!(out, ".SH \"MCP\\-HOST {}\"\n{about}.", name.replace('-', "\\-").to_uppercase())?;
    let mut options = Vec::new();
    Man::new(own).render_options_section(&mut options)?;
    // The heading would be one of the page's, in the middle of a command's.
    out.extend(String::from_utf8_lossy(&options).replacen(".SH OPTIONS\n", "", 1).bytes());
    Ok(())
}
