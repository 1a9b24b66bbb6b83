//! The parameters beside the servers: the session's folders, and lists that are null.
//!
//! What a path is, is decided by its text; whether it is there, the caller says ([`Folder`]). Only what is looked at is
//! read: what a client sends besides, `_meta` above all, may be any JSON, also what no value of ours could hold.

use std::collections::HashMap;

use mcp_config::acp::Tolerance;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::finding::SERVERS;
use crate::{Agent, Finding, Folder, SetUp};

/// The longest parameters that are looked at a second time. mcp-config refuses longer ones.
const LONGEST: usize = 1 << 20;

/// How many folders a session may have besides its own.
const MOST_DIRECTORIES: usize = 128;

/// The longest path of a folder, in bytes; no system that is known takes a longer one.
const LONGEST_PATH: usize = 4096;

/// What the parameters say, as far as it is looked at.
#[derive(Default)]
pub(crate) struct Parameters {
    cwd: Written,
    additional: Member<Vec<Written>>,
    servers: Member<Vec<Entry>>,
}

/// A member that may be a list.
#[derive(Default)]
enum Member<T> {
    #[default]
    Absent,
    Null,
    List(T),
    Other,
}

/// A member that may be text.
#[derive(Default)]
enum Written {
    #[default]
    Absent,
    Text(String),
    /// It is no text, or text that cannot be read.
    Other,
}

/// An entry of `mcpServers`.
#[derive(Default)]
struct Entry {
    tag: Written,
    name: Written,
    /// Those of its lists that are null.
    nulls: Vec<&'static str>,
}

/// The members of an object. Of two of one name the last counts; mcp-config tells of both.
type Members<'a> = HashMap<String, &'a RawValue>;

/// What is wrong with them, and what is forgiven.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<Finding>,
    pub(crate) notes: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, relief: Tolerance, finding: Finding) {
        match relief {
            Tolerance::Reject => self.errors.push(finding),
            Tolerance::Warn => self.notes.push(finding),
        }
    }
}

impl Written {
    fn of(json: Option<&RawValue>) -> Written {
        match json.map(|it| serde_json::from_str(it.get())) {
            None => Written::Absent,
            Some(Ok(text)) => Written::Text(text),
            Some(Err(_)) => Written::Other,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Written::Text(text) => Some(text),
            Written::Absent | Written::Other => None,
        }
    }
}

impl<T> Member<Vec<T>> {
    fn of<'a>(json: Option<&'a RawValue>, item: impl Fn(&'a RawValue) -> T) -> Member<Vec<T>> {
        let Some(json) = json else { return Member::Absent };
        if json.get() == "null" {
            return Member::Null;
        }
        match <Vec<&RawValue>>::deserialize(json) {
            Ok(items) => Member::List(items.into_iter().map(item).collect()),
            Err(_) => Member::Other,
        }
    }

    fn items(&self) -> &[T] {
        match self {
            Member::List(items) => items,
            Member::Absent | Member::Null | Member::Other => &[],
        }
    }
}

impl Entry {
    fn of(json: &RawValue) -> Entry {
        let members = Members::deserialize(json).unwrap_or_default();
        let of = |key: &str| members.get(key).copied();
        let nulls = ["args", "env", "headers"].into_iter();
        Entry {
            tag: Written::of(of("type")),
            name: Written::of(of("name")),
            nulls: nulls.filter(|key| of(key).is_some_and(|it| it.get() == "null")).collect(),
        }
    }
}

impl Parameters {
    pub(crate) fn read(set_up: &SetUp) -> Parameters {
        let text = set_up.params.as_str();
        if text.len() > LONGEST {
            return Parameters::default();
        }
        // That they are no object, mcp-config says.
        let members: Members<'_> = serde_json::from_str(text).unwrap_or_default();
        let of = |key: &str| members.get(key).copied();
        Parameters {
            cwd: Written::of(of("cwd")),
            additional: Member::of(of("additionalDirectories"), |it| Written::of(Some(it))),
            servers: Member::of(of("mcpServers"), Entry::of),
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
        if matches!(self.servers, Member::Null) {
            res.add(nulls, null(SERVERS, "mcpServers"));
        }
        for (index, entry) in self.servers.items().iter().enumerate() {
            for key in &entry.nulls {
                res.add(nulls, null(&format!("{SERVERS}/{index}/{key}"), key));
            }
        }
        res
    }

    fn additional(&self, agent: &Agent<'_>, res: &mut Findings) {
        const POINTER: &str = "/params/additionalDirectories";
        let items = match &self.additional {
            Member::Absent => return,
            Member::Null => return res.add(agent.policy.null_lists, null(POINTER, "additionalDirectories")),
            Member::Other => {
                let finding = Finding::at(POINTER, "'additionalDirectories' must be a list");
                return res.errors.push(finding.suggest("write a list of absolute paths"));
            }
            // None of so many is looked at.
            Member::List(items) if items.len() > MOST_DIRECTORIES => {
                let many = items.len();
                let message = format!(
                    "'additionalDirectories' has {many} folders, and a session may have {MOST_DIRECTORIES} at most"
                );
                return res.errors.push(Finding::at(POINTER, message).suggest("name a folder above them"));
            }
            Member::List(items) => items,
        };
        for (index, item) in items.iter().enumerate() {
            let pointer = format!("{POINTER}/{index}");
            let finding = match item.text() {
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
    } else if path.len() > LONGEST_PATH {
        let bytes = path.len();
        (
            format!("the path of '{key}' has {bytes} bytes, and {LONGEST_PATH} at most are taken"),
            "name another",
        )
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
