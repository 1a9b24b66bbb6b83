//! The workspace of a server: the folder that relative paths start at, and in which the server starts.

use std::path::{Path, PathBuf};

use mcp_host_model::Dialect;

use crate::dialect::editor::program::is_user_file;
use crate::resolve::values::Resolver;

impl Resolver<'_> {
    /// The workspace that relative paths start at: the project that the entry states, else the folder of the
    /// configuration file, or its parent if the folder is one that a dialect uses in a workspace (`.minds`, `.vscode`).
    pub(super) fn workspace(&self) -> PathBuf {
        if let Some(project) = &self.origin.project {
            return PathBuf::from(project);
        }
        let directory = self.context.directory;
        let inner = self.config_folders.iter().map(Path::new).find(|it| directory.ends_with(it));
        let levels = inner.map_or(0, |it| it.components().count());
        directory.ancestors().nth(levels).unwrap_or(Path::new("")).to_owned()
    }

    /// The folder in which a server without `cwd` starts: the workspace. `None` if its file belongs to no workspace:
    /// it belongs to a user, or is an ACP request: its session has a folder of its own.
    pub(super) fn start_folder(&self) -> Option<PathBuf> {
        let workspace = self.workspace();
        let is_of_user = || {
            let name = self.origin.file.rsplit(['/', '\\']).next().unwrap_or_default();
            let home = self.home().map(PathBuf::from);
            self.origin.project.is_none() && is_user_file(&self.context.directory.join(name), home.as_deref())
        };
        let has_workspace = match self.origin.dialect() {
            Dialect::Acp => false,
            Dialect::McpJson => !is_of_user(),
            Dialect::HoloDeck | Dialect::Dominds => true,
        };
        Some(workspace).filter(|it| has_workspace && !it.as_os_str().is_empty())
    }

    /// The home folder of the user.
    pub(super) fn home(&self) -> Option<String> {
        ["HOME", "USERPROFILE"].into_iter().find_map(|it| (self.context.variable)(it))
    }
}
