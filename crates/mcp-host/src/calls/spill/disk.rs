//! What is done to the disk for large results. Everything here blocks, and a disk on another machine may never answer.
//!
//! The folder is made anew, with 128 random bits in its name and closed to everybody else, so whatever somebody has put
//! beside it beforehand, a link included, is never opened. It is used only where nobody but us and the system may put
//! something else in its place, or in the place of a folder above it. Its name says whose it is: what a host leaves that
//! was killed is removed by the next one.

use std::fmt::Debug;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mcp_transport::ProcessIdentity;
use tempfile::{Builder, TempDir};

/// What the names of all our folders begin with.
const PREFIX: &str = "mcp-host-";

/// Where files are kept.
pub(super) trait Disk: Debug + Send + Sync {
    /// Makes a folder of our own in `directory`, which is made as well if it is not there.
    fn make(&self, directory: &Path) -> io::Result<TempDir>;
    /// Writes a new file in such a folder.
    fn write(&self, folder: &Path, bytes: &[u8], extension: &str) -> io::Result<PathBuf>;
    /// Removes a file.
    fn remove(&self, file: &Path);
    /// Removes a folder with all that is in it.
    fn clear(&self, folder: TempDir) -> io::Result<()>;
}

/// The machine's disk.
#[derive(Debug)]
pub(super) struct Local;

impl Disk for Local {
    fn make(&self, directory: &Path) -> io::Result<TempDir> {
        new_folder(directory)
    }

    fn write(&self, folder: &Path, bytes: &[u8], extension: &str) -> io::Result<PathBuf> {
        let suffix = format!(".{extension}");
        // A file that could not be written to its end is removed when this is dropped.
        let mut file = Builder::new().prefix("result-").rand_bytes(16).suffix(&suffix).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.flush()?;
        Ok(file.keep().map_err(|it| it.error)?.1)
    }

    fn remove(&self, file: &Path) {
        // Whoever has removed it himself wanted the same.
        let _ = fs::remove_file(file);
    }

    fn clear(&self, folder: TempDir) -> io::Result<()> {
        folder.close()
    }
}

/// A folder that is new, and nobody else's. Both folders that it makes are closed to others.
fn new_folder(directory: &Path) -> io::Result<TempDir> {
    let mut own = DirBuilder::new();
    own.recursive(true);
    let mut builder = Builder::new();
    let owner = ProcessIdentity::current().map(|it| format!("{PREFIX}{it}-"));
    builder.prefix(owner.as_deref().unwrap_or(PREFIX)).rand_bytes(22);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        own.mode(0o700);
        builder.permissions(fs::Permissions::from_mode(0o700));
    }
    own.create(directory)?;
    // What a result says of a file is read elsewhere: its path must not depend on where the reader stands, nor on a link
    // that somebody turns round later.
    let directory = directory.canonicalize()?;
    let folder = builder.tempdir_in(&directory)?;
    // A folder that we have just made is ours, whoever we are.
    match refusal(&standings(&directory)?, standing(folder.path())?.owner) {
        Some(reason) => Err(io::Error::new(io::ErrorKind::PermissionDenied, reason)),
        None => Ok(folder),
    }
}

/// Removes the folders in `directory` whose host was killed.
pub(super) fn tidy(directory: &Path) -> io::Result<()> {
    let directory = match directory.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        directory => directory?,
    };
    // Who reads whose folders are dead can read this as well.
    let Ok(us) = standing(Path::new("/proc/self")) else { return Ok(()) };
    if refusal(&standings(&directory)?, us.owner).is_some() {
        return Ok(());
    }
    for entry in fs::read_dir(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let owner = name.to_str().and_then(|it| it.strip_prefix(PREFIX)?.rsplit_once('-'));
        let is_left =
            owner.and_then(|(owner, _)| ProcessIdentity::parse(owner)).is_some_and(|it| it.is_dead());
        // Another user's folder may call itself what it likes, and what a link leads to is not in here.
        if is_left && entry.file_type()?.is_dir() && standing(&entry.path())?.owner == us.owner {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Whose a folder is, and who may write in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    path: PathBuf,
    owner: u32,
    mode: u32,
}

/// Why what we make in the last of these folders, each in the one before, may come to be somebody else's; `None` where
/// only we and the system can put another thing in its place.
fn refusal(folders: &[Standing], us: u32) -> Option<String> {
    folders.iter().find_map(|it| {
        let path = it.path.display();
        if it.owner != us && it.owner != 0 {
            let owner = it.owner;
            return Some(format!("{path} belongs to another user ({owner}), who may replace what is in it"));
        }
        // In a sticky folder, as the system's for temporary files, each may only touch his own.
        (it.mode & 0o022 != 0 && it.mode & 0o1000 == 0).then(|| {
            let mode = it.mode & 0o7777;
            format!("other users may replace what is in {path} (its mode is {mode:o})")
        })
    })
}

/// The folder and all above it, the highest first. The path is canonical.
fn standings(directory: &Path) -> io::Result<Vec<Standing>> {
    let mut all = directory.ancestors().map(standing).collect::<io::Result<Vec<_>>>()?;
    all.reverse();
    Ok(all)
}

fn standing(path: &Path) -> io::Result<Standing> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path)?;
        Ok(Standing { path: path.to_owned(), owner: metadata.uid(), mode: metadata.mode() })
    }
    #[cfg(not(unix))]
    Ok(Standing { path: path.to_owned(), owner: 0, mode: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders as `owner mode`, the highest first; we are user 7. The number of the one for which it is refused.
    #[track_caller]
    fn check(folders: &[&str], want: Option<usize>) {
        let standing = |(at, text): (usize, &&str)| {
            let (owner, mode) = text.split_once(' ').unwrap();
            let mode = u32::from_str_radix(mode, 8).unwrap();
            Standing { path: format!("/{at}").into(), owner: owner.parse().unwrap(), mode }
        };
        let folders: Vec<_> = folders.iter().enumerate().map(standing).collect();
        let refused = refusal(&folders, 7);
        assert_eq!(refused.is_some(), want.is_some(), "{refused:?}");
        if let (Some(refused), Some(at)) = (refused, want) {
            assert!(refused.contains(&format!("/{at} ")), "{refused}");
        }
    }

    #[test]
    fn hd_133_a_folder_is_safe_where_only_we_and_the_system_can_replace_it() {
        check(&["0 755", "0 755", "7 700"], None);
        check(&["0 755", "0 1777", "7 755"], None);
        check(&["0 755", "0 1777"], None);
        check(&["0 755", "7 775"], Some(1));
        check(&["0 755", "7 757", "7 700"], Some(1));
        check(&["0 755", "0 777", "7 700"], Some(1));
        check(&["0 755", "0 1777", "8 755"], Some(2));
        check(&["0 755", "8 700", "7 700"], Some(1));
        check(&["0 755", "8 1777", "7 700"], Some(1));
    }

    #[test]
    fn hd_133_a_refusal_says_which_folder_it_is_and_why() {
        let standing = |owner, mode| [Standing { path: "/a".into(), owner, mode }];
        let theirs = refusal(&standing(8, 0o40755), 7).unwrap();
        assert_eq!(theirs, "/a belongs to another user (8), who may replace what is in it");
        let open = refusal(&standing(7, 0o40777), 7).unwrap();
        assert_eq!(open, "other users may replace what is in /a (its mode is 777)");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn hd_133_what_a_killed_host_left_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let ours = ProcessIdentity::current().unwrap().to_string();
        let [id, started, world] = ours.split('-').collect::<Vec<_>>()[..] else { panic!("{ours}") };
        let dead = format!("{PREFIX}{id}-0-{world}-aaaa");
        let others = [
            format!("{PREFIX}{id}-{started}-{world}-aaaa"),
            format!("{PREFIX}{id}-0-{world}0-aaaa"),
            format!("{PREFIX}{id}-0-0-aaaa"),
            format!("{PREFIX}{id}-0-{world}"),
            format!("{PREFIX}aaaa"),
            format!("other-{id}-0-{world}-aaaa"),
        ];
        for name in others.iter().chain([&dead]) {
            fs::create_dir(place.path().join(name)).unwrap();
            fs::write(place.path().join(name).join("result.txt"), "x").unwrap();
        }
        // A link is not followed, whatever it calls itself.
        let aside = tempfile::tempdir().unwrap();
        fs::write(aside.path().join("kept"), "x").unwrap();
        let link = place.path().join(format!("{PREFIX}{id}-0-{world}-bbbb"));
        std::os::unix::fs::symlink(aside.path(), &link).unwrap();

        tidy(place.path()).unwrap();
        assert!(!place.path().join(&dead).exists());
        for name in &others {
            assert!(place.path().join(name).join("result.txt").exists(), "{name}");
        }
        assert!(link.is_symlink() && aside.path().join("kept").exists());
        tidy(&place.path().join("nowhere")).unwrap();

        // Where others could have put it there, nothing is believed.
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir(place.path().join(&dead)).unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        tidy(place.path()).unwrap();
        assert!(place.path().join(&dead).exists());
    }
}
