//! Opens files that must not block: those that a search finds, or that a configuration names.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc;

/// Opens a regular file for reading. Any other file is an error, because it could block: a FIFO without a writer when
/// it is opened, a terminal when it is read.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    // A device may react to being opened, so its kind is checked before too.
    check_kind(&fs::metadata(path)?)?;
    // The file may have been replaced since.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check_kind(&file.metadata()?)?;
    Ok(file)
}

fn check_kind(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use nix::sys::stat::Mode;

    use super::*;

    // RPT-250
    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        let mut text = String::new();
        open_regular_file(&path("link")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        nix::unistd::mkfifo(&path("fifo"), Mode::S_IRWXU).unwrap();
        let kind = |path: &Path| open_regular_file(path).unwrap_err().kind();
        assert_eq!(kind(&path("fifo")), io::ErrorKind::InvalidInput);
        assert_eq!(kind(Path::new("/dev/zero")), io::ErrorKind::InvalidInput);
        assert_eq!(kind(folder.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&path("missing")), io::ErrorKind::NotFound);
    }
}
