//! The parameters beside the servers: the session's folders, and lists that are null.
//!
//! What a path is, is decided by its text; whether it is there, the caller says ([`Folder`]).

use mcp_config::acp::Relief;
use serde_json::Value;

use crate::finding::SERVERS;
use crate::{Agent, Finding, Folder, SetUp};

/// The longest parameters that are looked at a second time. mcp-config refuses longer ones.
const LONGEST: usize = 1 << 20;

/// What the parameters say, as values.
pub(crate) struct Parameters {
    params: Value,
}

/// What is wrong with them, and what is forgiven.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<Finding>,
    pub(crate) notes: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, relief: Relief, finding: Finding) {
        match relief {
            Relief::Refused => self.errors.push(finding),
            Relief::Reported => self.notes.push(finding),
        }
    }
}

impl Parameters {
    pub(crate) fn read(set_up: &SetUp) -> Parameters {
        let text = set_up.params.as_str();
        let params = if text.len() > LONGEST { None } else { serde_json::from_str(text).ok() };
        Parameters { params: params.unwrap_or_default() }
    }

    /// The folder of the session.
    pub(crate) fn cwd(&self) -> Option<&str> {
        self.params["cwd"].as_str()
    }

    /// The folders besides; only those that are text.
    pub(crate) fn additional_directories(&self) -> Vec<String> {
        let all = self.params["additionalDirectories"].as_array();
        all.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    }

    /// The entries as they are written.
    fn entries(&self) -> &[Value] {
        self.params["mcpServers"].as_array().map_or(&[], Vec::as_slice)
    }

    /// What an entry's `type` says.
    pub(crate) fn type_of(&self, index: usize) -> Option<&str> {
        self.entries().get(index)?["type"].as_str()
    }

    /// What an entry is called.
    pub(crate) fn name_of(&self, index: usize) -> Option<String> {
        let name = self.entries().get(index)?["name"].as_str().filter(|it| !it.is_empty())?;
        Some(name.chars().take(256).collect())
    }

    /// Looks at the folders, and for lists that are null (ACPX-02, ACPX-09, ACPX-10).
    pub(crate) fn look(&self, agent: &Agent<'_>) -> Findings {
        let mut res = Findings::default();
        if let Some(cwd) = self.cwd() {
            // That it is absolute is mcp-config's to say.
            if is_absolute(cwd) {
                res.errors.extend(folder("/params/cwd", "cwd", cwd, agent));
            }
        }
        self.additional(agent, &mut res);
        let nulls = agent.policy.null_lists;
        if self.params.get("mcpServers").is_some_and(Value::is_null) {
            res.add(nulls, null(SERVERS, "mcpServers"));
        }
        for (index, entry) in self.entries().iter().enumerate() {
            for key in ["args", "env", "headers"] {
                if entry.get(key).is_some_and(Value::is_null) {
                    res.add(nulls, null(&format!("{SERVERS}/{index}/{key}"), key));
                }
            }
        }
        res
    }

    fn additional(&self, agent: &Agent<'_>, res: &mut Findings) {
        const POINTER: &str = "/params/additionalDirectories";
        let Some(list) = self.params.get("additionalDirectories") else { return };
        if list.is_null() {
            return res.add(agent.policy.null_lists, null(POINTER, "additionalDirectories"));
        }
        let Some(items) = list.as_array() else {
            let finding = Finding::at(POINTER, "'additionalDirectories' must be a list");
            return res.errors.push(finding.suggest("write a list of absolute paths"));
        };
        for (index, item) in items.iter().enumerate() {
            let pointer = format!("{POINTER}/{index}");
            let finding = match item.as_str() {
                Some(path) if is_absolute(path) => folder(&pointer, "additionalDirectories", path, agent),
                Some(_) | None => {
                    let message = "'additionalDirectories' must hold absolute paths";
                    Some(Finding::at(pointer, message).suggest("write the whole path of a folder"))
                }
            };
            res.errors.extend(finding);
        }
    }
}

fn null(pointer: &str, key: &str) -> Finding {
    Finding::at(pointer, format!("'{key}' is null, which is read as an empty list"))
        .suggest(format!("write `\"{key}\": []`"))
}

fn folder(pointer: &str, key: &str, path: &str, agent: &Agent<'_>) -> Option<Finding> {
    let (message, suggestion) = if path.contains('\0') {
        (format!("'{key}' must not hold NUL"), "write the path without it")
    } else {
        match (agent.folder)(path) {
            Folder::Usable => return None,
            Folder::Missing => (format!("the folder '{key}' does not exist"), "create it, or name another"),
            Folder::NotAFolder => (format!("'{key}' is no folder"), "name a folder"),
            Folder::Forbidden => (format!("the folder '{key}' may not be used"), "name another"),
        }
    };
    Some(Finding::at(pointer, message).suggest(suggestion))
}

/// By the text alone: the agent may run on another system than whoever tests it.
fn is_absolute(path: &str) -> bool {
    let drive = matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    drive || path.starts_with('/') || path.starts_with("\\\\")
}
