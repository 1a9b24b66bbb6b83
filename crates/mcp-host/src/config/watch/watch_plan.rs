//! Watch plans: the folders to watch, and the relevant paths in them, so that each change of a file's content is
//! reported. Does no I/O: the caller provides access to the file system.
//!
//! Folders are watched, not files, because a watch on a file is lost when another file replaces it. Every symbolic
//! link on the path is followed and watched: Kubernetes updates a mounted volume by replacing one link (`..data`).
//! If the path does not exist, the last existing folder on it is watched for the missing entry.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The maximum number of links that are followed on a path. It ends cycles.
const MAX_LINKS: usize = 40;

/// The entry of the file system at a path. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathEntry {
    /// There is none, or it is not accessible.
    Missing,
    /// A link with this target.
    Link(PathBuf),
    /// A file, a folder or anything else that is not a link.
    Other,
}

/// The folders to watch, and the paths whose events are relevant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WatchPlan {
    /// The folders to watch, and whether each watch is required.
    pub(crate) folders: BTreeMap<PathBuf, WatchNeed>,
    /// The relevant paths: entries of the folders, and the folders themselves. Events for other paths are ignored.
    pub(crate) names: BTreeSet<PathBuf>,
}

/// Whether a watch on a folder is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchNeed {
    /// The watch only reports that a watched subfolder was replaced. It may fail, for example when the folder is
    /// unreadable.
    Helpful,
    /// The watch reports ordinary edits. If it fails, changes are missed.
    Required,
}

impl WatchPlan {
    /// Adds the watches for an absolute path. `read_entry` returns the entry at a path.
    pub(crate) fn add(&mut self, path: &Path, read_entry: &dyn Fn(&Path) -> PathEntry) {
        let mut folder = PathBuf::new();
        // Reversed, so that `pop` returns the next component.
        let mut rest = reversed_steps(path);
        let mut links = 0;
        while let Some(step) = rest.pop() {
            let name = match step {
                PathStep::Root(root) => {
                    // On Windows a drive or share precedes the root: `push` keeps it.
                    folder.push(root);
                    continue;
                }
                PathStep::Parent => {
                    folder.pop();
                    continue;
                }
                PathStep::Name(name) => name,
            };
            let full = folder.join(name);
            let entry = read_entry(&full);
            let is_last = rest.is_empty();
            match entry {
                PathEntry::Link(target) if links < MAX_LINKS => {
                    links += 1;
                    self.add_watch(&folder, full);
                    rest.extend(reversed_steps(&target));
                }
                PathEntry::Other if !is_last => folder = full,
                PathEntry::Other | PathEntry::Missing | PathEntry::Link(_) => {
                    self.add_watch(&folder, full);
                    return;
                }
            }
        }
    }

    /// Watches `folder` for its entry `full`, and the parent of `folder` for a replacement of `folder`.
    fn add_watch(&mut self, folder: &Path, full: PathBuf) {
        self.names.insert(full);
        self.names.insert(folder.to_owned());
        self.folders.insert(folder.to_owned(), WatchNeed::Required);
        if let Some(parent) = folder.parent() {
            self.folders.entry(parent.to_owned()).or_insert(WatchNeed::Helpful);
        }
    }
}

/// One component of a path.
enum PathStep {
    Root(PathBuf),
    Parent,
    Name(OsString),
}

/// Returns the components of a path in reverse order.
fn reversed_steps(path: &Path) -> Vec<PathStep> {
    let step = |it: Component<'_>| match it {
        Component::Prefix(_) | Component::RootDir => Some(PathStep::Root(PathBuf::from(it.as_os_str()))),
        Component::CurDir => None,
        Component::ParentDir => Some(PathStep::Parent),
        Component::Normal(name) => Some(PathStep::Name(name.to_owned())),
    };
    let mut steps: Vec<PathStep> = path.components().filter_map(step).collect();
    steps.reverse();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file system from its entries: `a/` is a folder, `a/b` a file, `a/l->b` a link.
    fn disk(text: &str) -> impl Fn(&Path) -> PathEntry + '_ {
        move |path| {
            let path = path.to_str().unwrap();
            for entry in text.split_whitespace() {
                match entry.split_once("->") {
                    Some((link, target)) if link == path => return PathEntry::Link(target.into()),
                    None if entry.trim_end_matches('/') == path => return PathEntry::Other,
                    Some(_) | None => {}
                }
            }
            PathEntry::Missing
        }
    }

    /// Checks the plan for a path. `want` has the folders (those with a helpful watch in parentheses), then the
    /// other relevant paths.
    #[track_caller]
    fn check(text: &str, path: &str, want: &str) {
        let mut plan = WatchPlan::default();
        plan.add(Path::new(path), &disk(text));
        let folders = plan.folders.iter().map(|(folder, need)| match need {
            WatchNeed::Required => folder.display().to_string(),
            WatchNeed::Helpful => format!("({})", folder.display()),
        });
        let names = plan.names.iter().filter(|it| !plan.folders.contains_key(*it));
        let names = names.map(|it| it.display().to_string());
        let (folders, names): (Vec<_>, Vec<_>) = (folders.collect(), names.collect());
        assert_eq!(format!("{} | {}", folders.join(" "), names.join(" ")), want);
    }

    #[test]
    fn dm_092_folder_of_file_is_watched() {
        check(
            "/p/ /p/.minds/ /p/.minds/mcp.yaml",
            "/p/.minds/mcp.yaml",
            "(/p) /p/.minds | /p/.minds/mcp.yaml",
        );
        check("/p/ /p/a.yaml", "/p/./x/../a.yaml", "(/) /p | /p/x");
        check("/p/ /p/x/ /p/a.yaml", "/p/./x/../a.yaml", "(/) /p | /p/a.yaml");
        check("/a.yaml", "/a.yaml", "/ | /a.yaml");
    }

    #[test]
    fn dm_092_nearest_existing_folder_is_watched() {
        check("/p/ /p/.minds/", "/p/.minds/mcp.yaml", "(/p) /p/.minds | /p/.minds/mcp.yaml");
        check("/p/", "/p/.minds/mcp.yaml", "(/) /p | /p/.minds");
        check("", "/p/.minds/mcp.yaml", "/ | /p");
    }

    #[test]
    fn dm_092_every_link_on_the_path_is_watched() {
        let mounted = "/c/ /c/..1/ /c/..1/m.yaml /c/..data->..1 /c/m.yaml->..data/m.yaml";
        check(mounted, "/c/m.yaml", "(/) /c /c/..1 | /c/..1/m.yaml /c/..data /c/m.yaml");
        let elsewhere = "/p/ /p/m.yaml->/q/n.yaml /q/ /q/n.yaml";
        check(elsewhere, "/p/m.yaml", "(/) /p /q | /p/m.yaml /q/n.yaml");
        let dangling = "/p/ /p/m.yaml->../q/n.yaml";
        check(dangling, "/p/m.yaml", "/ /p | /p/m.yaml /q");
        let folder = "/p->/real /real/ /real/m.yaml";
        check(folder, "/p/m.yaml", "/ /real | /p /real/m.yaml");
    }

    #[test]
    fn link_cycles_end() {
        check("/a->/b /b->/a", "/a/x", "/ | /a /b");
    }
}
