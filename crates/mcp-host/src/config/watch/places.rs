//! Which folders must be watched, and which names in them matter, so that every way in which a path can come to mean
//! another content is heard of. What is on the disk is asked of the caller, so that all of it can be told in rows.
//!
//! Folders are watched and never files: a watch on a file goes deaf when another file is renamed over it. A path is
//! walked through every link on its way, for a mounted folder is exchanged by turning one link (`..data`) while the
//! file itself, and the link that it is, stay. Where the walk ends too early, the last folder that is there is watched
//! for the name that is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// More links than this on one way are a circle, for us as for the system.
const MOST_LINKS: usize = 40;

/// What stands at a path; a link is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing, or nothing that may be looked at.
    Missing,
    /// A link to this.
    Link(PathBuf),
    /// Anything else.
    There,
}

/// What must be listened to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Places {
    /// The folders to watch.
    pub(crate) folders: BTreeMap<PathBuf, Need>,
    /// The paths whose events count, all directly inside of those folders, and the folders themselves.
    pub(crate) names: BTreeSet<PathBuf>,
}

/// How much a folder's watch is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// It only tells that a folder below it is exchanged as a whole, and may be one that we may not read.
    Helpful,
    /// Without it an ordinary edit is not heard of.
    Required,
}

impl Places {
    /// Adds what the absolute `path` needs; `look` tells what stands where.
    pub(crate) fn add(&mut self, path: &Path, look: &dyn Fn(&Path) -> Entry) {
        let mut folder = PathBuf::new();
        // The next component is the last of these.
        let mut rest = components(path);
        let mut links = 0;
        while let Some(step) = rest.pop() {
            let name = match step {
                Step::Root(root) => {
                    folder = root;
                    continue;
                }
                Step::Up => {
                    folder.pop();
                    continue;
                }
                Step::Name(name) => name,
            };
            let full = folder.join(name);
            let entry = look(&full);
            let is_last = rest.is_empty();
            match entry {
                Entry::Link(target) if links < MOST_LINKS => {
                    links += 1;
                    self.listen(&folder, full);
                    rest.extend(components(&target));
                }
                Entry::There if !is_last => folder = full,
                Entry::There | Entry::Missing | Entry::Link(_) => {
                    self.listen(&folder, full);
                    return;
                }
            }
        }
    }

    /// `full` in `folder` matters, and whether the folder stays what it is.
    fn listen(&mut self, folder: &Path, full: PathBuf) {
        self.names.insert(full);
        self.names.insert(folder.to_owned());
        self.folders.insert(folder.to_owned(), Need::Required);
        if let Some(above) = folder.parent() {
            self.folders.entry(above.to_owned()).or_insert(Need::Helpful);
        }
    }
}

enum Step {
    Root(PathBuf),
    Up,
    Name(OsString),
}

/// The steps of a path, the first one last.
fn components(path: &Path) -> Vec<Step> {
    let step = |it: Component<'_>| match it {
        Component::Prefix(_) | Component::RootDir => Some(Step::Root(PathBuf::from(it.as_os_str()))),
        Component::CurDir => None,
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Name(name.to_owned())),
    };
    let mut res: Vec<Step> = path.components().filter_map(step).collect();
    res.reverse();
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk as `a/ a/b a/l->b`: what ends with `/` or stands alone is there.
    fn disk(text: &str) -> impl Fn(&Path) -> Entry + '_ {
        move |path| {
            let path = path.to_str().unwrap();
            for entry in text.split_whitespace() {
                match entry.split_once("->") {
                    Some((link, target)) if link == path => return Entry::Link(target.into()),
                    None if entry.trim_end_matches('/') == path => return Entry::There,
                    Some(_) | None => {}
                }
            }
            Entry::Missing
        }
    }

    /// The folders, the merely helpful ones in parentheses, and the names that are no such folders.
    #[track_caller]
    fn check(text: &str, path: &str, want: &str) {
        let mut places = Places::default();
        places.add(Path::new(path), &disk(text));
        let folders = places.folders.iter().map(|(folder, need)| match need {
            Need::Required => folder.display().to_string(),
            Need::Helpful => format!("({})", folder.display()),
        });
        let names = places.names.iter().filter(|it| !places.folders.contains_key(*it));
        let names = names.map(|it| it.display().to_string());
        let (folders, names): (Vec<_>, Vec<_>) = (folders.collect(), names.collect());
        assert_eq!(format!("{} | {}", folders.join(" "), names.join(" ")), want);
    }

    #[test]
    fn dm_092_the_folder_of_a_file_is_watched() {
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
    fn dm_092_of_what_is_missing_the_nearest_folder_is_watched() {
        check("/p/ /p/.minds/", "/p/.minds/mcp.yaml", "(/p) /p/.minds | /p/.minds/mcp.yaml");
        check("/p/", "/p/.minds/mcp.yaml", "(/) /p | /p/.minds");
        check("", "/p/.minds/mcp.yaml", "/ | /p");
    }

    #[test]
    fn dm_092_every_link_on_the_way_counts() {
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
    fn a_circle_of_links_ends() {
        check("/a->/b /b->/a", "/a/x", "/ | /a /b");
    }
}
