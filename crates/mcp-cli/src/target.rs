//! Which file is meant: the one that is named, the one a named folder is known to hold, or, where nothing is named, the
//! nearest in this folder and those above it.
//!
//! What stands in a folder above may be somebody else's, who could have put it there to be started: it is taken only
//! where nobody but this user and the system can change it or put another one in its place, and the search ends at the
//! home folder. This folder itself is where the user has chosen to be.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

/// How many folders are looked through, from this one upwards.
const HIGHEST: usize = 64;

/// Where a folder keeps its configuration, the first that is there.
pub(crate) const PLACES: [&str; 8] = [
    ".minds/mcp.yaml",
    "agent.yaml",
    ".mcp.json",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".kiro/settings/mcp.json",
    ".roo/mcp.json",
    "mcp.json",
];

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The file.
    pub(crate) path: PathBuf,
    /// It was found in the folder that was named: the user is told which it is.
    pub(crate) found: bool,
}

/// Looks at the disk. `-` is standard input, and an empty path the nearest file.
pub(crate) fn locate(path: &Path) -> Result<Target, String> {
    if path.as_os_str().is_empty() {
        let here = env::current_dir().map_err(|it| format!("this folder cannot be told: {it}"))?;
        return nearest(&here, env::home_dir().as_deref(), &|it, folder| {
            it.is_file() && (folder == here || is_trusted(it, folder))
        });
    }
    if path == Path::new("-") {
        return Ok(Target { path: "/dev/stdin".into(), found: false });
    }
    if path.is_dir() {
        inside(path, &|it| it.is_file())
    } else {
        Ok(Target { path: path.into(), found: false })
    }
}

fn inside(folder: &Path, is_file: &dyn Fn(&Path) -> bool) -> Result<Target, String> {
    // `.` would only stand in the way of the name.
    let base = if folder == Path::new(".") { Path::new("") } else { folder };
    match PLACES.iter().map(|it| base.join(it)).find(|it| is_file(it)) {
        Some(path) => Ok(Target { path, found: true }),
        None => Err(format!("the folder {} holds none of {}", folder.display(), PLACES.join(", "))),
    }
}

/// Looks in the folder `here`, then in those above it, up to `home`.
fn nearest(
    here: &Path,
    home: Option<&Path>,
    is_file: &dyn Fn(&Path, &Path) -> bool,
) -> Result<Target, String> {
    let mut base = PathBuf::new();
    for folder in here.ancestors().take(HIGHEST) {
        if let Some(place) = PLACES.iter().find(|it| is_file(&folder.join(it), folder)) {
            return Ok(Target { path: base.join(place), found: true });
        }
        if Some(folder) == home {
            break;
        }
        base.push("..");
    }
    let places = PLACES.join(", ");
    Err(format!("neither this folder nor one above it holds one of {places}; name a file, or a folder"))
}

/// Can nobody but this user and the system say what is in the file? Neither the file, nor the folders that its name goes
/// through below `folder`, may be a link or be written by others, for whoever may do that may put another one there.
fn is_trusted(path: &Path, folder: &Path) -> bool {
    let is_own = |it: &Path| {
        fs::symlink_metadata(it).is_ok_and(|it| {
            let owned = it.uid() == geteuid().as_raw() || it.uid() == 0;
            owned && !it.is_symlink() && it.mode() & 0o022 == 0
        })
    };
    path.ancestors().take_while(|it| *it != folder).all(is_own) && is_own(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(folder: &str, files: &[&str], want: &str) {
        let is_file = |path: &Path| files.iter().any(|it| Path::new(it) == path);
        let got =
            inside(Path::new(folder), &is_file).map_or_else(|it| it, |it| it.path.display().to_string());
        assert_eq!(got, want);
    }

    #[test]
    fn a_folder_stands_for_the_configuration_inside() {
        check("a", &["a/agent.yaml", "a/.minds/mcp.yaml"], "a/.minds/mcp.yaml");
        check("a/", &["a/agent.yaml"], "a/agent.yaml");
        check(".", &["agent.yaml"], "agent.yaml");
        check("a", &["a/.vscode/mcp.json", "a/mcp.json"], "a/.vscode/mcp.json");
        check(
            "a",
            &["a/mcp.yaml"],
            "the folder a holds none of .minds/mcp.yaml, agent.yaml, .mcp.json, .vscode/mcp.json, .cursor/mcp.json, \
             .kiro/settings/mcp.json, .roo/mcp.json, mcp.json",
        );
    }

    #[track_caller]
    fn check_nearest(here: &str, files: &[&str], want: &str) {
        let is_file = |path: &Path, _: &Path| files.iter().any(|it| Path::new(it) == path);
        let got = nearest(Path::new(here), Some(Path::new("/home/me")), &is_file);
        assert_eq!(got.map_or_else(|it| it, |it| it.path.display().to_string()), want);
    }

    #[test]
    fn without_a_name_the_nearest_is_taken() {
        check_nearest("/home/me/a/b", &["/home/me/a/b/agent.yaml", "/home/me/a/.mcp.json"], "agent.yaml");
        check_nearest("/home/me/a/b", &["/home/me/a/.mcp.json"], "../.mcp.json");
        check_nearest("/home/me/a/b", &["/home/me/.minds/mcp.yaml"], "../../.minds/mcp.yaml");
        check_nearest("/srv/x", &["/mcp.json"], "../../mcp.json");
        let none = "neither this folder nor one above it holds one of .minds/mcp.yaml, agent.yaml, .mcp.json, \
                    .vscode/mcp.json, .cursor/mcp.json, .kiro/settings/mcp.json, .roo/mcp.json, mcp.json; name a file, or \
                    a folder";
        check_nearest("/home/me/a", &["/home/agent.yaml", "/agent.yaml"], none);
        check_nearest("/srv", &[], none);
    }

    #[test]
    fn what_others_may_change_is_not_taken_from_above() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(folder, 0o755);
        let (minds, file) = (folder.join(".minds"), folder.join(".minds/mcp.yaml"));
        fs::create_dir(&minds).unwrap();
        fs::write(&file, "").unwrap();
        mode(&minds, 0o755);
        mode(&file, 0o644);
        assert!(is_trusted(&file, folder));
        for (path, usual) in [(&file, 0o644), (&minds, 0o755), (&folder.to_path_buf(), 0o755)] {
            mode(path, usual | 0o020);
            assert!(!is_trusted(&file, folder), "{path:?} may be written by others");
            mode(path, usual);
        }
        let link = folder.join("mcp.json");
        symlink(&file, &link).unwrap();
        assert!(!is_trusted(&link, folder), "a link may be made to lead elsewhere");
    }

    #[test]
    fn a_file_stands_for_itself_whether_it_is_there_or_not() {
        let path = Path::new("no/such/agent.yaml");
        assert_eq!(locate(path), Ok(Target { path: path.into(), found: false }));
    }
}
