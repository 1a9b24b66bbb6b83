//! Unix: process groups, pipes, modes of files. Linux has a launcher of its own.

mod child;
mod child_status;
mod descriptor_limit;
mod files;
#[cfg(target_os = "linux")]
mod linux_launcher;
#[cfg(target_os = "linux")]
mod linux_sandbox;
mod pipes;
mod process_group;
#[cfg(not(target_os = "linux"))]
mod std_launcher;
mod tagged_processes;

pub(in crate::stdio) use child::{Child, process_exit};
pub use descriptor_limit::raise_descriptor_limit;
pub(in crate::stdio) use files::{
    DEFAULT_PATH, REQUIRED_VARIABLES, create_private_folder, environment_name, is_executable,
    non_blocking_reader, open_for_appending, open_lock_file, program_file_names, program_metadata,
    start_error,
};
pub(in crate::stdio) use pipes::{StderrPipe, StdinPipe, StdoutPipe, set_pipe_capacity};
pub(in crate::stdio) use tagged_processes::{end_processes, kill_by_token};

/// Whether the system ends all processes of a server when the host ends. Here it ends direct children only, on Linux.
pub(in crate::stdio) const ENDS_GROUPS_WITH_HOST: bool = false;

/// Whether the system can restrict what a server reaches.
pub(in crate::stdio) const HAS_SANDBOX: bool = cfg!(target_os = "linux");
