//! Finds the configuration file: the named file, a known file in the named folder, or the nearest known file in the
//! current folder and its parents.
//!
//! Another user could place a file in a parent folder to have its programs started. A file in a parent folder is
//! therefore used only if no other user than the current one and root can change or replace it. The search ends at the
//! home folder. The current folder itself is trusted. On Windows, files inside the home folder count as
//! protected.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use mcp_host_model::Secret;
use mcp_host_runtime::lock_path;

use crate::config::command_line_server::{COMMAND_LINE, CommandLineServer};
use crate::runtime::system;

/// How many folders are searched, from the current one upwards.
const MAX_FOLDERS: usize = 64;

/// The configuration files that a folder may contain, in order of preference.
pub(crate) const CONFIG_PATHS: [&str; 8] = [
    ".minds/mcp.yaml",
    "agent.yaml",
    ".mcp.json",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".kiro/settings/mcp.json",
    ".roo/mcp.json",
    "mcp.json",
];

/// The extensions of configuration files.
const EXTENSIONS: [&str; 6] = ["json", "jsonc", "json5", "yaml", "yml", "toml"];

/// The path of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigPath {
    /// The path.
    pub(crate) path: PathBuf,
    /// Whether the file was found by search. If so, a note with its path is printed.
    pub(crate) is_discovered: bool,
    /// Whether it belongs to a project that no command named: the nearest file, unless it is in the home folder.
    pub(crate) is_of_project: bool,
    /// The text, if the command line describes it: then there is no file.
    pub(crate) text: Option<Secret>,
}

impl ConfigPath {
    /// A file that the command named, or that is in a folder that it named.
    fn named(path: PathBuf) -> ConfigPath {
        ConfigPath { path, is_discovered: false, is_of_project: false, text: None }
    }

    /// The configuration of a server of the command line. The user typed what it starts, so it needs no approval.
    pub(super) fn of_command_line(server: &CommandLineServer) -> ConfigPath {
        ConfigPath { text: Some(server.text.clone()), ..ConfigPath::named(COMMAND_LINE.into()) }
    }
}

/// Finds the configuration that `path` selects. `-` is standard input; an empty path selects the nearest
/// file. Reads the disk.
pub(crate) fn locate_config(path: &Path) -> Result<ConfigPath, String> {
    if path.as_os_str().is_empty() {
        let here =
            env::current_dir().map_err(|error| format!("cannot determine the current folder: {error}"))?;
        return find_nearest(&here, env::home_dir().as_deref(), &|it, folder| {
            it.is_file() && (folder == here || is_trusted(it, folder))
        });
    }
    if path == Path::new("-") {
        return Ok(ConfigPath::named("/dev/stdin".into()));
    }
    if path.is_dir() { find_in_folder(path, &|it| it.is_file()) } else { Ok(ConfigPath::named(path.into())) }
}

/// Whether the first word of a command names a configuration file or a folder with one, and not a server or a tool.
/// Reads the disk.
pub(crate) fn names_config(word: &str) -> bool {
    let path = Path::new(word);
    let extension = path.extension().and_then(|it| it.to_str());
    extension.is_some_and(|it| EXTENSIONS.contains(&it))
        || word.contains(std::path::is_separator)
        || ["-", ".", "..", ""].contains(&word)
        || path.is_file()
        || (path.is_dir() && locate_config(path).is_ok())
}

/// Finds the preferred configuration file of a folder.
fn find_in_folder(folder: &Path, is_file: &dyn Fn(&Path) -> bool) -> Result<ConfigPath, String> {
    // Without this, the path would begin with `./`.
    let base = if folder == Path::new(".") { Path::new("") } else { folder };
    match CONFIG_PATHS.iter().map(|it| base.join(it)).find(|it| is_file(it)) {
        Some(path) => {
            check_locks(&path, &|it| base.join(it), is_file)?;
            Ok(ConfigPath { is_discovered: true, ..ConfigPath::named(path) })
        }
        None => Err(format!("the folder {} contains none of {}", folder.display(), CONFIG_PATHS.join(", "))),
    }
}

/// Finds the nearest configuration file in `here` and its parents, up to `home`. `is_file` receives a path and the
/// folder that is searched.
fn find_nearest(
    here: &Path,
    home: Option<&Path>,
    is_file: &dyn Fn(&Path, &Path) -> bool,
) -> Result<ConfigPath, String> {
    let mut base = PathBuf::new();
    for folder in here.ancestors().take(MAX_FOLDERS) {
        if let Some(name) = CONFIG_PATHS.iter().find(|name| is_file(&folder.join(name), folder)) {
            check_locks(&folder.join(name), &|it| folder.join(it), &|it| is_file(it, folder))?;
            let is_of_project = Some(folder) != home;
            return Ok(ConfigPath {
                is_discovered: true,
                is_of_project,
                ..ConfigPath::named(base.join(name))
            });
        }
        if Some(folder) == home {
            break;
        }
        base.push("..");
    }
    let names = CONFIG_PATHS.join(", ");
    Err(format!("neither this folder nor a parent folder contains one of {names}; name a file or a folder"))
}

/// Fails if the chosen file has no lock file, and another one of the folder has: a file that was added must not take
/// the place of one that is locked.
fn check_locks(
    chosen: &Path,
    in_folder: &dyn Fn(&str) -> PathBuf,
    is_file: &dyn Fn(&Path) -> bool,
) -> Result<(), String> {
    let is_locked = |path: &Path| is_file(path) && is_file(&lock_path(path));
    let locked = CONFIG_PATHS.iter().map(|it| in_folder(it)).find(|it| it != chosen && is_locked(it));
    match locked.filter(|_| !is_locked(chosen)) {
        Some(other) => Err(format!(
            "{} has no lock file, and {} has one; name the file to use",
            chosen.display(),
            other.display()
        )),
        None => Ok(()),
    }
}

/// Whether only the current user and root can change or replace the file. The file, `folder` and the folders between
/// them must be owned by one of these users, must not be symbolic links, and must not be writable by others.
fn is_trusted(path: &Path, folder: &Path) -> bool {
    let is_protected = |path: &Path| {
        fs::symlink_metadata(path)
            .is_ok_and(|metadata| !metadata.is_symlink() && system::is_trusted(path, &metadata))
    };
    path.ancestors().take_while(|it| *it != folder).all(is_protected) && is_protected(folder)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(folder: &str, files: &[&str], want: &str) {
        let is_file = |path: &Path| files.iter().any(|it| Path::new(it) == path);
        let got = find_in_folder(Path::new(folder), &is_file)
            .map_or_else(|it| it, |it| it.path.display().to_string());
        assert_eq!(got, want);
    }

    #[test]
    fn folder_selects_its_preferred_configuration() {
        check("a", &["a/agent.yaml", "a/.minds/mcp.yaml"], "a/.minds/mcp.yaml");
        check("a/", &["a/agent.yaml"], "a/agent.yaml");
        check(".", &["agent.yaml"], "agent.yaml");
        check("a", &["a/.vscode/mcp.json", "a/mcp.json"], "a/.vscode/mcp.json");
        check(
            "a",
            &["a/mcp.yaml"],
            "the folder a contains none of .minds/mcp.yaml, agent.yaml, .mcp.json, .vscode/mcp.json, .cursor/mcp.json, \
             .kiro/settings/mcp.json, .roo/mcp.json, mcp.json",
        );
    }

    #[track_caller]
    fn check_nearest(here: &str, files: &[&str], want: &str) {
        let is_file = |path: &Path, _: &Path| files.iter().any(|it| Path::new(it) == path);
        let got = find_nearest(Path::new(here), Some(Path::new("/home/me")), &is_file);
        assert_eq!(got.map_or_else(|it| it, |it| it.path.display().to_string()), want);
    }

    /// RPT-280
    #[test]
    fn rpt_280_nearest_file_is_of_a_project_unless_it_is_in_the_home_folder() {
        let home = Path::new("/home/me");
        let check = |here: &str, file: &str, want: bool| {
            let found = find_nearest(Path::new(here), Some(home), &|path, _| path == Path::new(file));
            assert_eq!(found.map(|it| it.is_of_project), Ok(want), "{file}");
        };
        check("/home/me/a/b", "/home/me/a/.mcp.json", true);
        check("/home/me/a", "/home/me/a/.vscode/mcp.json", true);
        check("/home/me/a", "/home/me/.cursor/mcp.json", false);
        check("/home/me", "/home/me/.mcp.json", false);
        check("/srv/a", "/srv/.mcp.json", true);
        let named = find_in_folder(Path::new("a"), &|it| it == Path::new("a/.mcp.json"));
        assert_eq!(named.map(|it| it.is_of_project), Ok(false));
    }

    #[test]
    fn nearest_configuration_is_found() {
        check_nearest("/home/me/a/b", &["/home/me/a/b/agent.yaml", "/home/me/a/.mcp.json"], "agent.yaml");
        check_nearest("/home/me/a/b", &["/home/me/a/.mcp.json"], "../.mcp.json");
        check_nearest("/home/me/a/b", &["/home/me/.minds/mcp.yaml"], "../../.minds/mcp.yaml");
        check_nearest("/srv/x", &["/mcp.json"], "../../mcp.json");
        let none = "neither this folder nor a parent folder contains one of .minds/mcp.yaml, agent.yaml, .mcp.json, \
                    .vscode/mcp.json, .cursor/mcp.json, .kiro/settings/mcp.json, .roo/mcp.json, mcp.json; name a \
                    file or a folder";
        check_nearest("/home/me/a", &["/home/agent.yaml", "/agent.yaml"], none);
        check_nearest("/srv", &[], none);
    }

    #[test]
    fn parent_file_that_others_can_change_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
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
            assert!(!is_trusted(&file, folder), "{path:?} is writable by others");
            mode(path, usual);
        }
        let link = folder.join("mcp.json");
        symlink(&file, &link).unwrap();
        assert!(!is_trusted(&link, folder), "a symbolic link");
    }

    /// RPT-213
    #[test]
    fn first_word_names_a_configuration_or_not() {
        for word in ["-", ".", "..", "a.json", "missing.toml", "./x", "a/b", "/"] {
            assert!(names_config(word), "{word}");
        }
        for word in ["echo", "demo__echo", "calendar.get", "no-such-folder"] {
            assert!(!names_config(word), "{word}");
        }
    }

    #[test]
    fn named_file_is_used_even_if_missing() {
        let path = Path::new("no/such/agent.yaml");
        assert_eq!(locate_config(path), Ok(ConfigPath::named(path.into())));
    }
}
