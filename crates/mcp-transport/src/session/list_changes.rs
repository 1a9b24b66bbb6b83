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

/// A set of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListSet {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl ListSet {
    /// All lists.
    pub(crate) const ALL: ListSet = ListSet { tools: true, prompts: true, resources: true };

    /// Whether the set has any list.
    pub(crate) fn any(self) -> bool {
        self.tools || self.prompts || self.resources
    }
}

impl ListChangeCounts {
    /// Counts a change of each of these lists.
    pub(crate) fn count_lists(&mut self, changed: ListSet) {
        self.tools += u64::from(changed.tools);
        self.prompts += u64::from(changed.prompts);
        self.resources += u64::from(changed.resources);
    }

    /// Counts the list change that an event announces. Returns false if the event announces none.
    pub(crate) fn count_event(&mut self, event: &ServerEvent) -> bool {
        match event {
            ServerEvent::ToolsChanged => self.tools += 1,
            ServerEvent::PromptsChanged => self.prompts += 1,
            ServerEvent::ResourcesChanged => self.resources += 1,
            _ => return false,
        }
        true
    }
}
