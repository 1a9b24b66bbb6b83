//! Changes of the lists that a server announces.

use crate::rpc::handlers::ServerEvent;

/// The number of announced changes of each list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ListChangeCounts {
    /// Changes of the tool list.
    pub tools: u64,
    /// Changes of the prompt list.
    pub prompts: u64,
    /// Changes of the resource list.
    pub resources: u64,
}

/// The lists whose changes a server announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListChangeSupport {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl ListChangeSupport {
    /// All lists.
    pub(crate) const ALL: ListChangeSupport =
        ListChangeSupport { tools: true, prompts: true, resources: true };

    pub(crate) fn any(self) -> bool {
        self.tools || self.prompts || self.resources
    }
}

impl ListChangeCounts {
    /// Counts a change of these lists.
    pub(crate) fn add(&mut self, changed: ListChangeSupport) {
        self.tools += u64::from(changed.tools);
        self.prompts += u64::from(changed.prompts);
        self.resources += u64::from(changed.resources);
    }

    /// Counts the change that an event announces. Returns false if it announces none.
    pub(crate) fn count(&mut self, event: &ServerEvent) -> bool {
        match event {
            ServerEvent::ToolsChanged => self.tools += 1,
            ServerEvent::PromptsChanged => self.prompts += 1,
            ServerEvent::ResourcesChanged => self.resources += 1,
            _ => return false,
        }
        true
    }
}
