//! Opens a page in the user's browser.

use std::ffi::OsStr;
use std::process::Stdio;

use crate::runtime::system;

/// Opens the page with the system's browser, without a shell. A failure is ignored: the address is printed.
pub(crate) fn open_browser(page: impl AsRef<OsStr>) {
    let mut command = system::browser_command();
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // Reaps the child process.
        std::thread::spawn(move || child.wait());
    }
}
