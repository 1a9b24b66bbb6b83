//! The lists of a catalog.

use crate::lock::ItemKind;

/// A list of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatalogList {
    Tools,
    Prompts,
    Resources,
    Templates,
}

/// A list whose items have unique names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedList {
    Tools,
    Prompts,
}

impl NamedList {
    /// Returns the kind of its items.
    pub(crate) fn item(self) -> ItemKind {
        match self {
            NamedList::Tools => ItemKind::Tool,
            NamedList::Prompts => ItemKind::Prompt,
        }
    }
}

/// One value for each list whose items have unique names.
#[derive(Debug, Clone, Default)]
pub(crate) struct PerNamedList<T> {
    pub(crate) tools: T,
    pub(crate) prompts: T,
}

impl<T> PerNamedList<T> {
    /// Returns the value of a list.
    pub(crate) fn get(&self, list: NamedList) -> &T {
        match list {
            NamedList::Tools => &self.tools,
            NamedList::Prompts => &self.prompts,
        }
    }

    /// Returns the value of a list.
    pub(crate) fn get_mut(&mut self, list: NamedList) -> &mut T {
        match list {
            NamedList::Tools => &mut self.tools,
            NamedList::Prompts => &mut self.prompts,
        }
    }
}
