//! The console and the standard streams of this process on Windows.
//!
//! This is the only file for Windows with `unsafe`: these functions of the system have no safe counterpart.

#![expect(unsafe_code, reason = "functions of the system for consoles and handles")]

use windows::Win32::Foundation::{HANDLE_FLAG_INHERIT, HANDLE_FLAGS, SetHandleInformation};
use windows::Win32::System::Console::{
    CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent, GetConsoleCP, GetStdHandle, STD_ERROR_HANDLE,
    STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
};

/// Whether this process has a console, which its children share.
pub(super) fn has_console() -> bool {
    // SAFETY: it has no arguments and only reads.
    unsafe { GetConsoleCP() != 0 }
}

/// Sends Ctrl-Break to the process group of a child. Only processes with our console receive it.
pub(super) fn send_break(group: u32) {
    // Group 0 would be every process of the console.
    if group != 0 {
        // SAFETY: it has no pointers. An ended group is an error, which is of no interest.
        let _ = unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, group) };
    }
}

/// Excludes our standard streams from what children inherit. A child gets its own ones; with ours, our client would not
/// see their end while the child runs.
pub(super) fn keep_standard_streams() {
    for stream in [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
        // SAFETY: the handle belongs to this process, and only a flag of it changes. An invalid handle is an error.
        unsafe {
            if let Ok(handle) = GetStdHandle(stream) {
                let _ = SetHandleInformation(handle, HANDLE_FLAG_INHERIT.0, HANDLE_FLAGS(0));
            }
        }
    }
}
