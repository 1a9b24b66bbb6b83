//! Checks of the parameters besides the servers: the session's folders, and lists that are null.
//!
//! Paths are checked as text; the caller checks whether they exist ([`FolderStatus`]).

use mcp_host_config::acp::{ListMember, SessionMembers, Tolerance};

use crate::diagnostic::{RequestDiagnostic, SERVERS_POINTER};
use crate::policy::{AgentProfile, FolderStatus};

/// The maximum number of additional folders.
const MAX_DIRECTORIES: usize = 128;

/// The maximum length of a path in bytes. No known system allows more.
const MAX_PATH_BYTES: usize = 4096;

/// The diagnostics, by severity.
#[derive(Default)]
pub(crate) struct ParamDiagnostics {
    pub(crate) errors: Vec<RequestDiagnostic>,
    pub(crate) warnings: Vec<RequestDiagnostic>,
}

impl ParamDiagnostics {
    fn add(&mut self, tolerance: Tolerance, diagnostic: RequestDiagnostic) {
        match tolerance {
            Tolerance::Reject => self.errors.push(diagnostic),
            Tolerance::Warn => self.warnings.push(diagnostic),
        }
    }
}

/// Checks the folders, and finds lists that are null (ACPX-02, ACPX-09, ACPX-10). mcp-config reports paths that are not
/// absolute.
pub(crate) fn check(members: &SessionMembers, agent: &AgentProfile<'_>) -> ParamDiagnostics {
    let SessionMembers { cwd, additional_directories, servers, .. } = members;
    let mut diagnostics = ParamDiagnostics::default();
    diagnostics.errors.extend(cwd.as_ref().and_then(|cwd| check_folder("/params/cwd", "cwd", cwd, agent)));
    check_additional_directories(additional_directories, agent, &mut diagnostics);
    let nulls = agent.policy.null_lists;
    if matches!(servers, ListMember::Null) {
        diagnostics.add(nulls, null_list_diagnostic(SERVERS_POINTER, "mcpServers"));
    }
    for (index, entry) in servers.items().iter().enumerate() {
        for key in &entry.null_lists {
            diagnostics.add(nulls, null_list_diagnostic(&format!("{SERVERS_POINTER}/{index}/{key}"), key));
        }
    }
    diagnostics
}

fn check_additional_directories(
    directories: &ListMember<Option<String>>,
    agent: &AgentProfile<'_>,
    diagnostics: &mut ParamDiagnostics,
) {
    const POINTER: &str = "/params/additionalDirectories";
    let items = match directories {
        ListMember::Absent => return,
        ListMember::Null => {
            return diagnostics
                .add(agent.policy.null_lists, null_list_diagnostic(POINTER, "additionalDirectories"));
        }
        ListMember::Other => {
            let diagnostic = RequestDiagnostic::at_pointer(POINTER, "'additionalDirectories' must be a list");
            return diagnostics.errors.push(diagnostic.with_suggestion("write a list of absolute paths"));
        }
        // None of the folders is checked.
        ListMember::List(items) if items.len() > MAX_DIRECTORIES => {
            let many = items.len();
            let message = format!(
                "'additionalDirectories' has {many} folders; a session may have at most {MAX_DIRECTORIES}"
            );
            return diagnostics.errors.push(
                RequestDiagnostic::at_pointer(POINTER, message).with_suggestion("use a common parent folder"),
            );
        }
        ListMember::List(items) => items,
    };
    for (index, item) in items.iter().enumerate() {
        let pointer = format!("{POINTER}/{index}");
        let diagnostic = match item.as_deref() {
            Some(path) => check_folder(&pointer, "additionalDirectories", path, agent),
            None => {
                let message = "'additionalDirectories' must contain absolute paths";
                Some(
                    RequestDiagnostic::at_pointer(pointer, message)
                        .with_suggestion("write the absolute path of a folder"),
                )
            }
        };
        diagnostics.errors.extend(diagnostic);
    }
}

/// The diagnostic about a list that is null.
fn null_list_diagnostic(pointer: &str, key: &str) -> RequestDiagnostic {
    RequestDiagnostic::at_pointer(pointer, format!("'{key}' is null, which is read as an empty list"))
        .with_suggestion(format!("write `\"{key}\": []`"))
}

/// Checks the path of a folder, and asks the agent about the folder.
fn check_folder(pointer: &str, key: &str, path: &str, agent: &AgentProfile<'_>) -> Option<RequestDiagnostic> {
    let (message, suggestion) = if path.contains('\0') {
        (format!("'{key}' must not contain NUL"), "remove it from the path")
    } else if path.len() > MAX_PATH_BYTES {
        let bytes = path.len();
        (
            format!("the path of '{key}' has {bytes} bytes; a path may have at most {MAX_PATH_BYTES}"),
            "use another folder",
        )
    } else {
        match (agent.check_folder)(path) {
            FolderStatus::Usable => return None,
            FolderStatus::Missing => {
                (format!("the folder '{key}' does not exist"), "create it, or use another folder")
            }
            FolderStatus::NotAFolder => (format!("'{key}' is not a folder"), "use the path of a folder"),
            FolderStatus::Forbidden => (format!("the folder '{key}' may not be used"), "use another folder"),
        }
    };
    Some(RequestDiagnostic::at_pointer(pointer, message).with_suggestion(suggestion))
}
