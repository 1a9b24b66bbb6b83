//! What differs between systems: signals, the terminal, permissions of files, and the browser.
//!
//! Each system has the same items.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{
    HangUp, TerminalSettings, TerminationSignals, browser_command, can_others_write, create_private_folder,
    detach, has_display, is_running, is_trusted, make_private, own_program, private_file_options, program_id,
    read_terminal_line, terminate_self,
};
#[cfg(windows)]
pub(crate) use windows::{
    HangUp, TerminalSettings, TerminationSignals, browser_command, can_others_write, create_private_folder,
    detach, has_display, is_running, is_trusted, make_private, own_program, private_file_options, program_id,
    read_terminal_line, terminate_self,
};
