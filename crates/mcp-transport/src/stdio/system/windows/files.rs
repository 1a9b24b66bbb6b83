//! Files, programs and the environment on Windows.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Where a program is searched without `PATH`: nowhere.
pub(in crate::stdio) const DEFAULT_PATH: &str = "";

/// Variables that every program needs: without it, no program can use the network.
pub(in crate::stdio) const REQUIRED_VARIABLES: &[&str] = &["SYSTEMROOT"];

/// The extensions of programs in order of preference, a part of the usual `PATHEXT`. The system starts the first two,
/// and the standard library passes the others to `cmd.exe` with safe quoting. Other files of `PATHEXT` need a shell.
const PROGRAM_EXTENSIONS: [&str; 4] = ["com", "exe", "bat", "cmd"];

/// The form of a variable's name that is equal for all spellings of the name.
pub(in crate::stdio) fn environment_name(name: OsString) -> OsString {
    name.to_ascii_uppercase()
}

/// The names of the files that a command may mean.
pub(in crate::stdio) fn program_file_names(command: &str) -> Vec<String> {
    let with_extension = PROGRAM_EXTENSIONS.iter().map(|extension| format!("{command}.{extension}"));
    let exact = std::iter::once(command.to_owned());
    if has_program_extension(Path::new(command)) {
        exact.chain(with_extension).collect()
    } else {
        with_extension.chain(exact).collect()
    }
}

/// The metadata of a program's file. A link to an app of the Store (`python.exe` in `WindowsApps`) cannot be followed,
/// but can be started.
pub(in crate::stdio) fn program_metadata(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path).or_else(|_| fs::symlink_metadata(path))
}

/// Whether the system can execute a file.
pub(in crate::stdio) fn is_executable(path: &Path, _: &Metadata) -> bool {
    has_program_extension(path)
}

fn has_program_extension(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    PROGRAM_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Options that open a file for reading. On Windows no regular file blocks when it is opened.
pub(in crate::stdio) fn non_blocking_reader() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    options
}

/// Opens a file for appending, and creates it.
pub(in crate::stdio) fn open_for_appending(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Opens a lock file, and creates it. Only administrators create links by default.
pub(in crate::stdio) fn open_lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

/// Creates a folder, and those above it. In the profile of a user, only this user and administrators may read it.
pub(in crate::stdio) fn create_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_without_extension_means_a_program() {
        let names = |command: &str| program_file_names(command).join(" ");
        assert_eq!(names("npx"), "npx.com npx.exe npx.bat npx.cmd npx");
        assert_eq!(names("node.EXE"), "node.EXE node.EXE.com node.EXE.exe node.EXE.bat node.EXE.cmd");
        assert_eq!(
            names("python3.12"),
            "python3.12.com python3.12.exe python3.12.bat python3.12.cmd python3.12"
        );
    }
}
