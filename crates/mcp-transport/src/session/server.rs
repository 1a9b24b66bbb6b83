//! What a server says about itself.

use mcp_model::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A server as it introduced itself. Everything here is a claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerInfo {
    /// Its own name; empty where it gave none. Not unique: the configuration's name is what identifies it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it wants to be used, for a model to read.
    pub instructions: Option<String>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
}

/// What a server can do, as far as it decides something here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerCapabilities {
    /// It has tools.
    pub tools: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It has resources.
    pub resources: bool,
    /// It sends log messages.
    pub logging: bool,
    /// All of it, as it came.
    pub raw: Option<RawJson>,
}

impl ServerCapabilities {
    /// A server that was never asked may have anything.
    pub(crate) fn unknown() -> ServerCapabilities {
        ServerCapabilities { tools: true, prompts: true, resources: true, logging: false, raw: None }
    }

    /// The lists whose changes the server tells.
    pub(crate) fn list_changes_supported(&self) -> ListChangeSupport {
        #[derive(Deserialize, Default)]
        struct Wire {
            tools: Option<List>,
            prompts: Option<List>,
            resources: Option<List>,
        }
        #[derive(Deserialize)]
        struct List {
            #[serde(default, rename = "listChanged")]
            list_changed: bool,
        }
        let wire: Wire = self.raw.as_ref().and_then(|it| it.read().ok()).unwrap_or_default();
        let tells = |it: Option<List>| it.is_some_and(|it| it.list_changed);
        ListChangeSupport {
            tools: tells(wire.tools),
            prompts: tells(wire.prompts),
            resources: tells(wire.resources),
        }
    }

    pub(crate) fn read(raw: &RawValue) -> ServerCapabilities {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            tools: Option<&'a RawValue>,
            #[serde(borrow)]
            prompts: Option<&'a RawValue>,
            #[serde(borrow)]
            resources: Option<&'a RawValue>,
            #[serde(borrow)]
            logging: Option<&'a RawValue>,
        }
        let Ok(Wire { tools, prompts, resources, logging }) = serde_json::from_str(raw.get()) else {
            return ServerCapabilities::default();
        };
        ServerCapabilities {
            tools: tools.is_some(),
            prompts: prompts.is_some(),
            resources: resources.is_some(),
            logging: logging.is_some(),
            raw: Some(RawJson::copy_of(raw)),
        }
    }
}

/// Which lists' changes a server tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListChangeSupport {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl ListChangeSupport {
    /// All of them.
    pub(crate) const ALL: ListChangeSupport =
        ListChangeSupport { tools: true, prompts: true, resources: true };

    pub(crate) fn any(self) -> bool {
        self.tools || self.prompts || self.resources
    }
}
