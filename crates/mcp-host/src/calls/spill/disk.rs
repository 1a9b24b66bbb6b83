//! Disk operations for overflow files. All of them block; those on a network disk may never return.
//!
//! The folder has 128 random bits in its name and is private, so files or links that someone prepared are never opened.
//! It is created only where no other user can replace it or a folder above it. Its name identifies the host process, so
//! that the next host can remove it.

use std::fmt::Debug;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mcp_host_transport::ProcessIdentity;
use tempfile::{Builder, TempDir};

use super::policy::SpillLifetime;
use crate::fs::folder_ownership::{ancestor_ownership, ownership, unsafe_reason};
use crate::fs::system;

/// The prefix of the folder names.
const FOLDER_PREFIX: &str = "mcp-host-";

/// Storage for overflow files.
pub(super) trait Disk: Debug + Send + Sync {
    /// Creates a private folder in `directory`, which is created if missing.
    fn create_folder(&self, directory: &Path, lifetime: SpillLifetime) -> io::Result<TempDir>;
    /// Writes a new file in such a folder.
    fn write(&self, folder: &Path, bytes: &[u8], extension: &str) -> io::Result<PathBuf>;
    /// Removes a file.
    fn remove_file(&self, file: &Path);
    /// Removes a folder with its content.
    fn remove_folder(&self, folder: TempDir) -> io::Result<()>;
}

/// The local file system.
#[derive(Debug)]
pub(super) struct LocalDisk;

impl Disk for LocalDisk {
    fn create_folder(&self, directory: &Path, lifetime: SpillLifetime) -> io::Result<TempDir> {
        create_private_folder(directory, lifetime)
    }

    fn write(&self, folder: &Path, bytes: &[u8], extension: &str) -> io::Result<PathBuf> {
        let suffix = format!(".{extension}");
        // Dropping it removes an incomplete file.
        let mut file = Builder::new().prefix("result-").rand_bytes(16).suffix(&suffix).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.flush()?;
        Ok(file.keep().map_err(|it| it.error)?.1)
    }

    fn remove_file(&self, file: &Path) {
        // It may have been removed already.
        let _ = fs::remove_file(file);
    }

    fn remove_folder(&self, folder: TempDir) -> io::Result<()> {
        folder.close()
    }
}

/// Creates a new private folder in `directory`, which is created if missing. Other users cannot open them. The name of
/// one that is kept names no host, so no later host removes it.
fn create_private_folder(directory: &Path, lifetime: SpillLifetime) -> io::Result<TempDir> {
    let mut builder = Builder::new();
    let owner = ProcessIdentity::current().filter(|_| lifetime == SpillLifetime::Host);
    let owner = owner.map(|it| format!("{FOLDER_PREFIX}{it}-"));
    builder.prefix(owner.as_deref().unwrap_or(FOLDER_PREFIX)).rand_bytes(22);
    builder.disable_cleanup(lifetime == SpillLifetime::Kept);
    system::set_private_folder(&mut builder);
    system::private_folder_builder().create(directory)?;
    // The path is used elsewhere, so it must be absolute and must not depend on links.
    let directory = directory.canonicalize()?;
    let folder = builder.tempdir_in(&directory)?;
    // The owner of the new folder is the user of this process.
    match unsafe_reason(&ancestor_ownership(&directory)?, ownership(folder.path())?.owner) {
        Some(reason) => Err(io::Error::new(io::ErrorKind::PermissionDenied, reason)),
        None => Ok(folder),
    }
}

/// Removes the folders of killed hosts from `directory`.
pub(super) fn remove_stale(directory: &Path) -> io::Result<()> {
    let directory = match directory.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        directory => directory?,
    };
    // `ProcessIdentity` needs /proc as well.
    let Ok(this_process) = ownership(Path::new("/proc/self")) else { return Ok(()) };
    if unsafe_reason(&ancestor_ownership(&directory)?, this_process.owner).is_some() {
        return Ok(());
    }
    for entry in fs::read_dir(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let owner = name.to_str().and_then(|it| it.strip_prefix(FOLDER_PREFIX)?.rsplit_once('-'));
        let is_stale =
            owner.and_then(|(owner, _)| ProcessIdentity::parse(owner)).is_some_and(|it| it.is_dead());
        // Another user's folder may have any name, and links are not followed.
        if is_stale && entry.file_type()?.is_dir() && ownership(&entry.path())?.owner == this_process.owner {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn hd_133_only_folders_of_killed_hosts_are_removed() {
        let target = tempfile::tempdir().unwrap();
        let ours = ProcessIdentity::current().unwrap().to_string();
        let [id, started, world] = ours.split('-').collect::<Vec<_>>()[..] else { panic!("{ours}") };
        let dead = format!("{FOLDER_PREFIX}{id}-0-{world}-aaaa");
        let others = [
            format!("{FOLDER_PREFIX}{id}-{started}-{world}-aaaa"),
            format!("{FOLDER_PREFIX}{id}-0-{world}0-aaaa"),
            format!("{FOLDER_PREFIX}{id}-0-0-aaaa"),
            format!("{FOLDER_PREFIX}{id}-0-{world}"),
            format!("{FOLDER_PREFIX}aaaa"),
            format!("other-{id}-0-{world}-aaaa"),
        ];
        for name in others.iter().chain([&dead]) {
            fs::create_dir(target.path().join(name)).unwrap();
            fs::write(target.path().join(name).join("result.txt"), "x").unwrap();
        }
        // Links are not followed.
        let aside = tempfile::tempdir().unwrap();
        fs::write(aside.path().join("kept"), "x").unwrap();
        let link = target.path().join(format!("{FOLDER_PREFIX}{id}-0-{world}-bbbb"));
        std::os::unix::fs::symlink(aside.path(), &link).unwrap();

        remove_stale(target.path()).unwrap();
        assert!(!target.path().join(&dead).exists());
        for name in &others {
            assert!(target.path().join(name).join("result.txt").exists(), "{name}");
        }
        assert!(link.is_symlink() && aside.path().join("kept").exists());
        remove_stale(&target.path().join("nowhere")).unwrap();

        // In a folder that others can write, nothing is removed.
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir(target.path().join(&dead)).unwrap();
        fs::set_permissions(target.path(), fs::Permissions::from_mode(0o777)).unwrap();
        remove_stale(target.path()).unwrap();
        assert!(target.path().join(&dead).exists());
    }
}
