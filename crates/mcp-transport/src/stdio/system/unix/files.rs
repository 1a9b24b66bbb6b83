//! Files, programs and the environment on Unix.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;

use crate::error::disconnect::StartError;

/// Where a program is searched without `PATH`.
pub(in crate::stdio) const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Variables that every program needs.
pub(in crate::stdio) const REQUIRED_VARIABLES: &[&str] = &[];

/// The form of a variable's name that is equal for all spellings of the name.
pub(in crate::stdio) fn environment_name(name: OsString) -> OsString {
    name
}

/// The names of the files that a command may mean.
pub(in crate::stdio) fn program_file_names(command: &str) -> Vec<String> {
    vec![command.to_owned()]
}

/// The metadata of a program's file.
pub(in crate::stdio) fn program_metadata(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path)
}

/// Whether the system can execute a file.
pub(in crate::stdio) fn is_executable(_: &Path, metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// Options that open a file for reading, and neither wait for a writer nor make a terminal the controlling one.
pub(in crate::stdio) fn non_blocking_reader() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Opens a file for appending, and creates it for its owner only. A FIFO that nothing reads is an error.
pub(in crate::stdio) fn open_for_appending(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => {
            io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe that no program reads")
        }
        _ => error,
    })?;
    // Only the opening must not block.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    Ok(file)
}

/// Opens a lock file, and creates it for its owner only. A link is an error.
pub(in crate::stdio) fn open_lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    file.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link; delete it"),
        _ => error,
    })
}

/// Creates a folder that only the user may read, and those above it.
pub(in crate::stdio) fn create_private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Why the system refused to start a program, if its error number has a meaning of its own.
pub(in crate::stdio) fn start_error(_: &io::Error) -> Option<StartError> {
    None
}
