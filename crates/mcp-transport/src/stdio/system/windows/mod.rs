//! Windows: job objects, named pipes, the names of programs.

mod child;
mod console;
mod files;
mod pipes;

pub use child::raise_descriptor_limit;
pub(in crate::stdio) use child::{Child, end_processes, kill_by_token, process_exit, start_error};
pub(in crate::stdio) use files::{
    DEFAULT_PATH, REQUIRED_VARIABLES, create_private_folder, environment_name, is_executable,
    non_blocking_reader, open_for_appending, open_lock_file, program_file_names, program_metadata,
};
pub(in crate::stdio) use pipes::{StderrPipe, StdinPipe, StdoutPipe, set_pipe_capacity};

/// Whether the system ends all processes of a server when the host ends: the last handle of their job is closed then.
pub(in crate::stdio) const ENDS_GROUPS_WITH_HOST: bool = true;

/// Whether the system can restrict what a server reaches.
pub(in crate::stdio) const HAS_SANDBOX: bool = false;
