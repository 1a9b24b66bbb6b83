//! Which file is meant: the one that is named, or the one a named folder is known to hold.

use std::path::{Path, PathBuf};

/// Where a folder keeps its configuration, the first that is there.
const PLACES: [&str; 8] = [
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

/// Looks at the disk.
pub(crate) fn locate(path: &Path) -> Result<Target, String> {
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

    #[test]
    fn a_file_stands_for_itself_whether_it_is_there_or_not() {
        let path = Path::new("no/such/agent.yaml");
        assert_eq!(locate(path), Ok(Target { path: path.into(), found: false }));
    }
}
