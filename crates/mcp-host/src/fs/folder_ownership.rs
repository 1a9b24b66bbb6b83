//! Whether another user could replace what is in a folder.
//!
//! The owner and mode of a folder and of all folders above it are checked, after links are resolved.

use std::io;
use std::path::{Path, PathBuf};

use super::system::{Owner, owner};

/// The owner and mode of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ownership {
    path: PathBuf,
    /// The user id of the owner.
    pub(crate) owner: u32,
    /// The group id.
    group: u32,
    mode: u32,
}

/// A folder in which another user could replace what is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsafeFolder {
    /// It belongs to another user.
    #[error("{} belongs to another user ({owner}), who may replace what is in it", .path.display())]
    OtherOwner {
        /// The folder.
        path: PathBuf,
        /// The id of its owner.
        owner: u32,
    },
    /// Others can write to it.
    #[error("other users may replace what is in {} (its mode is {mode:o})", .path.display())]
    Writable {
        /// The folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its owner.
        owner: FolderOwner,
    },
}

/// The owner of a folder that others can write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FolderOwner {
    /// The current user.
    User,
    /// Root, who is another user.
    Root,
}

/// Returns the reason why another user than `user` and root could replace a folder in the last of `folders`, of which
/// each is inside the previous one. `None`: no other user could.
pub(crate) fn unsafe_reason(folders: &[Ownership], user: u32) -> Option<UnsafeFolder> {
    folders.iter().find_map(|it| {
        let path = it.path.clone();
        if it.owner != user && it.owner != 0 {
            return Some(UnsafeFolder::OtherOwner { path, owner: it.owner });
        }
        // In a sticky folder each user can change only its own entries.
        (it.mode & 0o022 != 0 && it.mode & 0o1000 == 0).then_some(UnsafeFolder::Writable {
            path,
            mode: it.mode & 0o7777,
            owner: if it.owner == user { FolderOwner::User } else { FolderOwner::Root },
        })
    })
}

/// Returns the ownership of the folder and its ancestors, from the root. The path must be canonical.
pub(crate) fn ancestor_ownership(directory: &Path) -> io::Result<Vec<Ownership>> {
    let mut folders = directory.ancestors().map(ownership).collect::<io::Result<Vec<_>>>()?;
    folders.reverse();
    Ok(folders)
}

/// Reads the ownership of one folder.
pub(crate) fn ownership(path: &Path) -> io::Result<Ownership> {
    let Owner { user, group, mode } = owner(path)?;
    Ok(Ownership { path: path.to_owned(), owner: user, group, mode })
}

/// Returns the reason why another user could replace what is in `path`, which may be missing yet. A group with the id
/// of the folder's owner counts as private, as many systems create one for each user. `None` if the system cannot tell.
pub(crate) fn shared_reason(path: &Path) -> Option<UnsafeFolder> {
    let existing = path.ancestors().find_map(|folder| folder.canonicalize().ok())?;
    let this_process = ownership(Path::new("/proc/self")).ok()?;
    let mut folders = ancestor_ownership(&existing).ok()?;
    for folder in &mut folders {
        if folder.group == folder.owner && folder.mode & 0o002 == 0 {
            folder.mode &= !0o020;
        }
    }
    unsafe_reason(&folders, this_process.owner)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// Checks folders as `owner mode`, from the root, for user 7. Expects the index of the refused one.
    #[track_caller]
    fn check(folders: &[&str], want: Option<usize>) {
        let owned = |(at, text): (usize, &&str)| {
            let (owner, mode) = text.split_once(' ').unwrap();
            let mode = u32::from_str_radix(mode, 8).unwrap();
            Ownership { path: format!("/{at}").into(), owner: owner.parse().unwrap(), group: 9, mode }
        };
        let folders: Vec<_> = folders.iter().enumerate().map(owned).collect();
        let refused = unsafe_reason(&folders, 7);
        assert_eq!(refused.is_some(), want.is_some(), "{refused:?}");
        if let (Some(refused), Some(at)) = (refused, want) {
            let refused = refused.to_string();
            assert!(refused.contains(&format!("/{at} ")), "{refused}");
        }
    }

    #[test]
    fn hd_133_folder_is_safe_if_only_we_and_root_can_replace_it() {
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
    fn hd_133_refusal_names_folder_and_reason() {
        let owned = |owner, mode| [Ownership { path: "/a".into(), owner, group: 9, mode }];
        let theirs = unsafe_reason(&owned(8, 0o40755), 7).unwrap().to_string();
        assert_eq!(theirs, "/a belongs to another user (8), who may replace what is in it");
        let open = unsafe_reason(&owned(7, 0o40777), 7).unwrap().to_string();
        assert_eq!(open, "other users may replace what is in /a (its mode is 777)");
    }

    // RPT-251
    #[test]
    fn shared_folder_is_found_through_links_and_missing_folders() {
        use std::fs;
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (open, link) = (folder.path().join("open"), folder.path().join("link"));
        fs::create_dir(&open).unwrap();
        symlink(&open, &link).unwrap();
        assert_eq!(shared_reason(&link.join("a/b")), None);
        let set_mode = |mode| fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o777);
        assert!(shared_reason(&link.join("a/b")).unwrap().to_string().contains("open (its mode is 777)"));
        set_mode(0o1777);
        assert_eq!(shared_reason(&link), None);
    }
}
