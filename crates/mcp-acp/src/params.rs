//! Checks of the other parameters: the session's folders, and lists that are null.
//!
//! Paths are checked as text; the caller checks whether they exist ([`FolderStatus`]). Only the checked members are
//! read: a client may send any other JSON, in particular in `_meta`, even JSON that serde_json's values cannot
//! represent.

use std::collections::HashMap;

use mcp_host_config::acp::Tolerance;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::diagnostic::{RequestDiagnostic, SERVERS_POINTER};
use crate::policy::{AgentProfile, FolderStatus};
use crate::request::SessionRequest;

/// The maximum size of parameters that are read here. mcp-config rejects longer ones.
const MAX_PARAMS_BYTES: usize = 1 << 20;

/// The maximum number of additional folders.
const MAX_DIRECTORIES: usize = 128;

/// The maximum length of a path in bytes. No known system allows more.
const MAX_PATH_BYTES: usize = 4096;

/// The checked members of the parameters.
#[derive(Default)]
pub(crate) struct RequestParams {
    /// The session's folder.
    cwd: Option<String>,
    additional: ListMember<Vec<Option<String>>>,
    servers: ListMember<Vec<ServerEntry>>,
}

/// A member that should be a list.
#[derive(Default)]
enum ListMember<T> {
    #[default]
    Absent,
    Null,
    List(T),
    Other,
}

/// An entry of `mcpServers`.
#[derive(Default)]
struct ServerEntry {
    transport: Option<String>,
    name: Option<String>,
    /// The names of its lists that are null.
    nulls: Vec<&'static str>,
}

/// The members of an object. Of duplicates the last counts; mcp-config reports both.
type Members<'a> = HashMap<String, &'a RawValue>;

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

/// Returns the text of a string; `None` if it is missing, not a string, or cannot be decoded.
fn string(json: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(json?.get()).ok()
}

impl<T> ListMember<Vec<T>> {
    fn of<'a>(json: Option<&'a RawValue>, item: impl Fn(&'a RawValue) -> T) -> ListMember<Vec<T>> {
        let Some(json) = json else { return ListMember::Absent };
        if json.get() == "null" {
            return ListMember::Null;
        }
        match <Vec<&RawValue>>::deserialize(json) {
            Ok(items) => ListMember::List(items.into_iter().map(item).collect()),
            Err(_) => ListMember::Other,
        }
    }

    fn items(&self) -> &[T] {
        match self {
            ListMember::List(items) => items,
            ListMember::Absent | ListMember::Null | ListMember::Other => &[],
        }
    }
}

impl ServerEntry {
    fn of(json: &RawValue) -> ServerEntry {
        let members = Members::deserialize(json).unwrap_or_default();
        let of = |key: &str| members.get(key).copied();
        let nulls = ["args", "env", "headers"].into_iter();
        ServerEntry {
            transport: string(of("type")),
            name: string(of("name")),
            nulls: nulls.filter(|key| of(key).is_some_and(|value| value.get() == "null")).collect(),
        }
    }
}

impl RequestParams {
    pub(crate) fn read(request: &SessionRequest) -> RequestParams {
        let text = request.params.as_str();
        if text.len() > MAX_PARAMS_BYTES {
            return RequestParams::default();
        }
        // mcp-config reports parameters that are not an object.
        let members: Members<'_> = serde_json::from_str(text).unwrap_or_default();
        let of = |key: &str| members.get(key).copied();
        RequestParams {
            cwd: string(of("cwd")),
            additional: ListMember::of(of("additionalDirectories"), |path| string(Some(path))),
            servers: ListMember::of(of("mcpServers"), ServerEntry::of),
        }
    }

    /// Returns the session's folder.
    pub(crate) fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// Returns the additional folders, without those that are not strings.
    pub(crate) fn additional_directories(&self) -> Vec<String> {
        self.additional.items().iter().flatten().cloned().collect()
    }

    /// Returns the `type` of an entry.
    pub(crate) fn type_of(&self, index: usize) -> Option<&str> {
        self.servers.items().get(index)?.transport.as_deref()
    }

    /// Returns the name of an entry.
    pub(crate) fn name_of(&self, index: usize) -> Option<String> {
        let name = self.servers.items().get(index)?.name.as_deref().filter(|name| !name.is_empty())?;
        Some(name.chars().take(256).collect())
    }

    /// Checks the folders, and finds lists that are null (ACPX-02, ACPX-09, ACPX-10).
    pub(crate) fn check(&self, agent: &AgentProfile<'_>) -> ParamDiagnostics {
        let mut diagnostics = ParamDiagnostics::default();
        if let Some(cwd) = self.cwd() {
            // mcp-config reports a relative path.
            if is_absolute(cwd) {
                diagnostics.errors.extend(folder("/params/cwd", "cwd", cwd, agent));
            }
        }
        self.check_additional(agent, &mut diagnostics);
        let nulls = agent.policy.null_lists;
        if matches!(self.servers, ListMember::Null) {
            diagnostics.add(nulls, null_list(SERVERS_POINTER, "mcpServers"));
        }
        for (index, entry) in self.servers.items().iter().enumerate() {
            for key in &entry.nulls {
                diagnostics.add(nulls, null_list(&format!("{SERVERS_POINTER}/{index}/{key}"), key));
            }
        }
        diagnostics
    }

    fn check_additional(&self, agent: &AgentProfile<'_>, diagnostics: &mut ParamDiagnostics) {
        const POINTER: &str = "/params/additionalDirectories";
        let items = match &self.additional {
            ListMember::Absent => return,
            ListMember::Null => {
                return diagnostics.add(agent.policy.null_lists, null_list(POINTER, "additionalDirectories"));
            }
            ListMember::Other => {
                let diagnostic =
                    RequestDiagnostic::at_pointer(POINTER, "'additionalDirectories' must be a list");
                return diagnostics.errors.push(diagnostic.with_suggestion("write a list of absolute paths"));
            }
            // None of the folders is checked.
            ListMember::List(items) if items.len() > MAX_DIRECTORIES => {
                let many = items.len();
                let message = format!(
                    "'additionalDirectories' has {many} folders; a session may have at most {MAX_DIRECTORIES}"
                );
                return diagnostics.errors.push(
                    RequestDiagnostic::at_pointer(POINTER, message)
                        .with_suggestion("use a common parent folder"),
                );
            }
            ListMember::List(items) => items,
        };
        for (index, item) in items.iter().enumerate() {
            let pointer = format!("{POINTER}/{index}");
            let diagnostic = match item.as_deref() {
                Some(path) if is_absolute(path) => folder(&pointer, "additionalDirectories", path, agent),
                Some(_) | None => {
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
}

fn null_list(pointer: &str, key: &str) -> RequestDiagnostic {
    RequestDiagnostic::at_pointer(pointer, format!("'{key}' is null, which is read as an empty list"))
        .with_suggestion(format!("write `\"{key}\": []`"))
}

fn folder(pointer: &str, key: &str, path: &str, agent: &AgentProfile<'_>) -> Option<RequestDiagnostic> {
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

/// Decides by the text, because the agent may run on another system.
fn is_absolute(path: &str) -> bool {
    let drive = matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    drive || path.starts_with('/') || path.starts_with("\\\\")
}
