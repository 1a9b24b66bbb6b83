//! The parameters beside the servers: the session's folders, and lists that are null.
//!
//! What a path is, is decided by its text; whether it is there, the caller says ([`FolderStatus`]). Only what is looked at is
//! read: what a client sends besides, `_meta` above all, may be any JSON, also what no value of ours could hold.

use std::collections::HashMap;

use mcp_config::acp::Tolerance;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::diagnostic::SERVERS_POINTER;
use crate::{AgentProfile, FolderStatus, RequestDiagnostic, SessionRequest};

/// The longest parameters that are looked at a second time. mcp-config refuses longer ones.
const MAX_PARAMS_BYTES: usize = 1 << 20;

/// How many folders a session may have besides its own.
const MAX_DIRECTORIES: usize = 128;

/// The longest path of a folder, in bytes; no system that is known takes a longer one.
const MAX_PATH_BYTES: usize = 4096;

/// What the parameters say, as far as it is looked at.
#[derive(Default)]
pub(crate) struct RequestParams {
    cwd: StringMember,
    additional: ListMember<Vec<StringMember>>,
    servers: ListMember<Vec<ServerEntry>>,
}

/// A member that may be a list.
#[derive(Default)]
enum ListMember<T> {
    #[default]
    Absent,
    Null,
    List(T),
    Other,
}

/// A member that may be text.
#[derive(Default)]
enum StringMember {
    #[default]
    Absent,
    Text(String),
    /// It is no text, or text that cannot be read.
    Other,
}

/// An entry of `mcpServers`.
#[derive(Default)]
struct ServerEntry {
    tag: StringMember,
    name: StringMember,
    /// Those of its lists that are null.
    nulls: Vec<&'static str>,
}

/// The members of an object. Of two of one name the last counts; mcp-config tells of both.
type Members<'a> = HashMap<String, &'a RawValue>;

/// What is wrong with them, and what is forgiven.
#[derive(Default)]
pub(crate) struct ParamDiagnostics {
    pub(crate) errors: Vec<RequestDiagnostic>,
    pub(crate) warnings: Vec<RequestDiagnostic>,
}

impl ParamDiagnostics {
    fn add(&mut self, relief: Tolerance, finding: RequestDiagnostic) {
        match relief {
            Tolerance::Reject => self.errors.push(finding),
            Tolerance::Warn => self.warnings.push(finding),
        }
    }
}

impl StringMember {
    fn of(json: Option<&RawValue>) -> StringMember {
        match json.map(|it| serde_json::from_str(it.get())) {
            None => StringMember::Absent,
            Some(Ok(text)) => StringMember::Text(text),
            Some(Err(_)) => StringMember::Other,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            StringMember::Text(text) => Some(text),
            StringMember::Absent | StringMember::Other => None,
        }
    }
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
            tag: StringMember::of(of("type")),
            name: StringMember::of(of("name")),
            nulls: nulls.filter(|key| of(key).is_some_and(|it| it.get() == "null")).collect(),
        }
    }
}

impl RequestParams {
    pub(crate) fn read(set_up: &SessionRequest) -> RequestParams {
        let text = set_up.params.as_str();
        if text.len() > MAX_PARAMS_BYTES {
            return RequestParams::default();
        }
        // That they are no object, mcp-config says.
        let members: Members<'_> = serde_json::from_str(text).unwrap_or_default();
        let of = |key: &str| members.get(key).copied();
        RequestParams {
            cwd: StringMember::of(of("cwd")),
            additional: ListMember::of(of("additionalDirectories"), |it| StringMember::of(Some(it))),
            servers: ListMember::of(of("mcpServers"), ServerEntry::of),
        }
    }

    /// The folder of the session.
    pub(crate) fn cwd(&self) -> Option<&str> {
        self.cwd.text()
    }

    /// The folders besides; only those that are text.
    pub(crate) fn additional_directories(&self) -> Vec<String> {
        self.additional.items().iter().filter_map(|it| it.text().map(str::to_owned)).collect()
    }

    /// What an entry's `type` says.
    pub(crate) fn type_of(&self, index: usize) -> Option<&str> {
        self.servers.items().get(index)?.tag.text()
    }

    /// What an entry is called.
    pub(crate) fn name_of(&self, index: usize) -> Option<String> {
        let name = self.servers.items().get(index)?.name.text().filter(|it| !it.is_empty())?;
        Some(name.chars().take(256).collect())
    }

    /// Looks at the folders, and for lists that are null (ACPX-02, ACPX-09, ACPX-10).
    pub(crate) fn check(&self, agent: &AgentProfile<'_>) -> ParamDiagnostics {
        let mut res = ParamDiagnostics::default();
        if let Some(cwd) = self.cwd() {
            // That it is absolute is mcp-config's to say.
            if is_absolute(cwd) {
                res.errors.extend(folder("/params/cwd", "cwd", cwd, agent));
            }
        }
        self.additional(agent, &mut res);
        let nulls = agent.policy.null_lists;
        if matches!(self.servers, ListMember::Null) {
            res.add(nulls, null_list(SERVERS_POINTER, "mcpServers"));
        }
        for (index, entry) in self.servers.items().iter().enumerate() {
            for key in &entry.nulls {
                res.add(nulls, null_list(&format!("{SERVERS_POINTER}/{index}/{key}"), key));
            }
        }
        res
    }

    fn additional(&self, agent: &AgentProfile<'_>, res: &mut ParamDiagnostics) {
        const POINTER: &str = "/params/additionalDirectories";
        let items = match &self.additional {
            ListMember::Absent => return,
            ListMember::Null => {
                return res.add(agent.policy.null_lists, null_list(POINTER, "additionalDirectories"));
            }
            ListMember::Other => {
                let finding =
                    RequestDiagnostic::at_pointer(POINTER, "'additionalDirectories' must be a list");
                return res.errors.push(finding.with_suggestion("write a list of absolute paths"));
            }
            // None of so many is looked at.
            ListMember::List(items) if items.len() > MAX_DIRECTORIES => {
                let many = items.len();
                let message = format!(
                    "'additionalDirectories' has {many} folders, and a session may have {MAX_DIRECTORIES} at most"
                );
                return res.errors.push(
                    RequestDiagnostic::at_pointer(POINTER, message)
                        .with_suggestion("name a folder above them"),
                );
            }
            ListMember::List(items) => items,
        };
        for (index, item) in items.iter().enumerate() {
            let pointer = format!("{POINTER}/{index}");
            let finding = match item.text() {
                Some(path) if is_absolute(path) => folder(&pointer, "additionalDirectories", path, agent),
                Some(_) | None => {
                    let message = "'additionalDirectories' must hold absolute paths";
                    Some(
                        RequestDiagnostic::at_pointer(pointer, message)
                            .with_suggestion("write the whole path of a folder"),
                    )
                }
            };
            res.errors.extend(finding);
        }
    }
}

fn null_list(pointer: &str, key: &str) -> RequestDiagnostic {
    RequestDiagnostic::at_pointer(pointer, format!("'{key}' is null, which is read as an empty list"))
        .with_suggestion(format!("write `\"{key}\": []`"))
}

fn folder(pointer: &str, key: &str, path: &str, agent: &AgentProfile<'_>) -> Option<RequestDiagnostic> {
    let (message, suggestion) = if path.contains('\0') {
        (format!("'{key}' must not hold NUL"), "write the path without it")
    } else if path.len() > MAX_PATH_BYTES {
        let bytes = path.len();
        (
            format!("the path of '{key}' has {bytes} bytes, and {MAX_PATH_BYTES} at most are taken"),
            "name another",
        )
    } else {
        match (agent.check_folder)(path) {
            FolderStatus::Usable => return None,
            FolderStatus::Missing => {
                (format!("the folder '{key}' does not exist"), "create it, or name another")
            }
            FolderStatus::NotAFolder => (format!("'{key}' is no folder"), "name a folder"),
            FolderStatus::Forbidden => (format!("the folder '{key}' may not be used"), "name another"),
        }
    };
    Some(RequestDiagnostic::at_pointer(pointer, message).with_suggestion(suggestion))
}

/// By the text alone: the agent may run on another system than whoever tests it.
fn is_absolute(path: &str) -> bool {
    let drive = matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    drive || path.starts_with('/') || path.starts_with("\\\\")
}
