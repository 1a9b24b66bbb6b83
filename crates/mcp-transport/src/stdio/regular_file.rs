//! Opens files that must not block: those that a search finds, that a configuration names, or that the user names.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::system;

/// Opens a regular file for reading. Any other file is an error, because it could block: a FIFO without a writer when
/// it is opened, a terminal when it is read.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    // A device may react to being opened, so its kind is checked before too.
    check_kind(&fs::metadata(path)?)?;
    // The file may have been replaced since.
    let file = system::non_blocking_reader().open(path)?;
    check_kind(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file that the user names, for reading: a regular file, or a stream that this process has already, such as
/// `/dev/stdin` or the `/dev/fd/63` of a shell's `<(COMMAND)`. The stream may block when it is read.
pub fn open_named_file(path: &Path) -> io::Result<File> {
    if is_own_stream(path) { File::open(path) } else { open_regular_file(path) }
}

/// Opens a file for appending, and creates it for its owner only. Fails for a FIFO that nothing reads, which would
/// block.
pub fn open_for_appending(path: &Path) -> io::Result<File> {
    system::open_for_appending(path)
}

/// Opens a lock file, and creates it for its owner only. Fails for a link, which another user could have placed.
pub fn open_lock_file(path: &Path) -> io::Result<File> {
    let file = system::open_lock_file(path)?;
    check_kind(&file.metadata()?)?;
    Ok(file)
}

/// Whether a path names an open file of this process.
fn is_own_stream(path: &Path) -> bool {
    let is_in = |folder: &str| path.parent() == Some(Path::new(folder));
    path == Path::new("/dev/stdin") || is_in("/dev/fd") || is_in("/proc/self/fd")
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
#[cfg(unix)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::{Read, Write};
    use std::os::unix::fs::OpenOptionsExt;

    use nix::libc;
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
    // RPT-250
    #[test]
    fn named_file_is_regular_or_a_stream_of_the_process() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"text").unwrap();
        drop(writer);
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let mut text = String::new();
        open_named_file(Path::new(&path)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        for path in [&fifo, Path::new("/dev/tty"), Path::new("/dev/zero"), Path::new("/dev/fd/../zero")] {
            assert!(open_named_file(path).is_err(), "{path:?}");
        }
    }

    // RPT-250
    #[test]
    fn pipe_without_a_reader_is_not_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let (file, fifo) = (folder.path().join("file"), folder.path().join("fifo"));
        for text in ["a", "b"] {
            open_for_appending(&file).unwrap().write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "ab");
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        let error = open_for_appending(&fifo).unwrap_err();
        assert_eq!(error.to_string(), "it is a pipe that no program reads");
        let mut reader = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&fifo).unwrap();
        open_for_appending(&fifo).unwrap().write_all(b"text").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }

    // RPT-254
    #[test]
    fn lock_file_that_is_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink(path("target"), path("link")).unwrap();
        let error = open_lock_file(&path("link")).unwrap_err();
        assert_eq!(error.to_string(), "it is a symbolic link; delete it");
        assert!(!path("target").exists());
        nix::unistd::mkfifo(&path("fifo"), Mode::S_IRWXU).unwrap();
        assert!(open_lock_file(&path("fifo")).is_err());
        open_lock_file(&path("lock")).unwrap();
        open_lock_file(&path("lock")).unwrap();
    }
}
