//! A server's description of itself.

use mcp_host_model::{RawJson, SKILLS_EXTENSION, TASKS_EXTENSION};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::session::list_changes::ListSet;

/// A server's description of itself. None of it is verified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The name that the server gives itself; empty if missing. Not unique: a server is identified by its name in the
    /// configuration.
    pub name: String,
    /// The version.
    pub version: String,
    /// Instructions for a model.
    pub instructions: Option<String>,
    /// The capabilities.
    pub capabilities: ServerCapabilities,
    /// The complete `serverInfo` (name, version, title, icons), unchanged.
    pub implementation: Option<RawJson>,
}

/// The server's capabilities, as far as a session uses them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Whether it has tools.
    pub tools: bool,
    /// Whether it has prompts.
    pub prompts: bool,
    /// Whether it has resources.
    pub resources: bool,
    /// Whether it sends log messages.
    pub logging: bool,
    /// Its support of tasks.
    pub tasks: TaskCapabilities,
    /// Whether it has skills.
    pub skills: bool,
    /// The complete capabilities, unchanged.
    pub raw: Option<RawJson>,
}

impl ServerCapabilities {
    /// The capabilities of a server that was not queried: it may have anything.
    pub(crate) fn unknown() -> ServerCapabilities {
        ServerCapabilities { tools: true, prompts: true, resources: true, ..ServerCapabilities::default() }
    }

    /// Whether the server declares nothing at all, so that none of its lists is requested.
    pub fn is_empty(&self) -> bool {
        let is_undeclared = |raw: &RawJson| matches!(raw.as_str().trim(), "null" | "{}");
        !(self.tools || self.prompts || self.resources) && self.raw.as_ref().is_none_or(is_undeclared)
    }

    /// The lists whose changes the server announces.
    pub(crate) fn announced_lists(&self) -> ListSet {
        let members: Value = self.raw.as_ref().and_then(|it| it.read().ok()).unwrap_or_default();
        let announces = |list: &str| members[list]["listChanged"] == true;
        ListSet {
            tools: announces("tools"),
            prompts: announces("prompts"),
            resources: announces("resources"),
        }
    }

    /// Reads the capabilities. Invalid members count as absent.
    pub(crate) fn read(raw: &RawValue) -> ServerCapabilities {
        let Ok(members) = serde_json::from_str::<Map<String, Value>>(raw.get()) else {
            return ServerCapabilities::default();
        };
        let has = |name: &str| members.get(name).is_some_and(|it| !it.is_null());
        ServerCapabilities {
            tools: has("tools"),
            prompts: has("prompts"),
            resources: has("resources"),
            logging: has("logging"),
            tasks: TaskCapabilities::read(&members),
            skills: members.get("extensions").is_some_and(|it| it[SKILLS_EXTENSION].is_object()),
            raw: Some(RawJson::copy_of(raw)),
        }
    }
}

/// A server's support of tasks, in the form of 2025-11-25 or as the extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TaskCapabilities {
    /// Tool calls may become tasks.
    pub call: bool,
    /// Tasks can be cancelled.
    pub cancel: bool,
}

impl TaskCapabilities {
    fn read(capabilities: &Map<String, Value>) -> TaskCapabilities {
        let tasks = capabilities.get("tasks").unwrap_or(&Value::Null);
        let extension = capabilities.get("extensions").is_some_and(|it| it[TASKS_EXTENSION].is_object());
        TaskCapabilities {
            call: extension || tasks["requests"]["tools"]["call"].is_object(),
            cancel: extension || tasks["cancel"].is_object(),
        }
    }
}

/// Reads what a server reports about itself. Invalid members count as absent.
pub(crate) fn read_server_info(
    info: Option<&RawValue>,
    instructions: Option<String>,
    capabilities: Option<&RawValue>,
) -> ServerInfo {
    #[derive(Deserialize, Default)]
    struct Info {
        #[serde(default)]
        name: String,
        #[serde(default)]
        version: String,
    }
    let Info { name, version } = info.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default();
    let capabilities = capabilities.map(ServerCapabilities::read).unwrap_or_default();
    let implementation = info.map(RawJson::copy_of).filter(RawJson::is_object);
    ServerInfo { name, version, instructions, capabilities, implementation }
}
