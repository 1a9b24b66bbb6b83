//! What differs between systems: child processes with their groups, pipes, files, and the environment.
//!
//! Each system has the same items. Everything else in this crate is the same on all systems.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::raise_descriptor_limit;
#[cfg(unix)]
pub(super) use unix::{
    Child, DEFAULT_PATH, ENDS_GROUPS_WITH_HOST, HAS_SANDBOX, REQUIRED_VARIABLES, StderrPipe, StdinPipe,
    StdoutPipe, create_private_folder, end_processes, environment_name, is_executable, kill_by_token,
    non_blocking_reader, open_for_appending, open_lock_file, process_exit, program_file_names,
    program_metadata, set_pipe_capacity, start_error,
};
#[cfg(windows)]
pub use windows::raise_descriptor_limit;
#[cfg(windows)]
pub(super) use windows::{
    Child, DEFAULT_PATH, ENDS_GROUPS_WITH_HOST, HAS_SANDBOX, REQUIRED_VARIABLES, StderrPipe, StdinPipe,
    StdoutPipe, create_private_folder, end_processes, environment_name, is_executable, kill_by_token,
    non_blocking_reader, open_for_appending, open_lock_file, process_exit, program_file_names,
    program_metadata, set_pipe_capacity, start_error,
};
