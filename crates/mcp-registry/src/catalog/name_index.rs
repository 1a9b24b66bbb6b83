//! The names of a catalog's tools and prompts. The next catalog shares the index, and changes only the names of changed
//! servers.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use mcp_host_model::{ServerId, Tool};
use rpds::HashTrieMapSync;

use crate::catalog::catalog_list::{NamedList, PerNamedList};
use crate::catalog::exposed_items::ExposedTool;
use crate::catalog::server_slice::ServerSlice;
use crate::name::exposed_name::ExposedName;

/// A map that is cheap to clone.
type SharedMap<K, V> = HashTrieMapSync<K, V, ahash::RandomState>;

/// The names of tools and prompts: those of exposed items, and the reserved ones of withheld items.
#[derive(Debug, Clone)]
pub(crate) struct NameIndex {
    /// The names, each with the item that uses it.
    used: PerNamedList<SharedMap<ExposedName, NamedItem>>,
    /// The exposed tools by their original names, in no order.
    originals: SharedMap<OriginalName, Arc<[SliceItem]>>,
}

/// An item of a server, by its position in a list of the server's slice.
#[derive(Clone)]
pub(crate) struct SliceItem {
    pub(crate) slice: Arc<ServerSlice>,
    pub(crate) at: usize,
}

impl SliceItem {
    /// Returns the tool at the position.
    pub(crate) fn tool(&self) -> &ExposedTool {
        &self.slice.tools[self.at]
    }

    /// Returns the original name of the withheld item at the position.
    fn withheld_name(&self, list: NamedList) -> &str {
        let lists = &self.slice.entry.lists;
        let at = self.slice.withheld.get(list)[self.at].0;
        match list {
            NamedList::Tools => &lists.tools[at].name,
            NamedList::Prompts => &lists.prompts[at].name,
        }
    }
}

impl fmt::Debug for SliceItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.slice.entry.id, self.at)
    }
}

/// The tool or prompt that uses a name.
#[derive(Debug, Clone)]
enum NamedItem {
    Exposed(SliceItem),
    /// The position is that in [`ServerSlice::withheld`].
    Withheld(SliceItem),
}

/// The original name of a tool.
#[derive(Debug, Clone)]
struct OriginalName(Arc<Tool>);

impl Borrow<str> for OriginalName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl Hash for OriginalName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl PartialEq for OriginalName {
    fn eq(&self, other: &OriginalName) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for OriginalName {}

impl Default for NameIndex {
    fn default() -> NameIndex {
        let hasher = ahash::RandomState::new();
        let names = || SharedMap::new_with_hasher_and_ptr_kind(hasher.clone());
        NameIndex {
            used: PerNamedList { tools: names(), prompts: names() },
            originals: SharedMap::new_with_hasher_and_ptr_kind(hasher.clone()),
        }
    }
}

impl NameIndex {
    /// Returns the exposed item of a list with this name.
    pub(crate) fn exposed(&self, list: NamedList, name: &str) -> Option<&SliceItem> {
        match self.used.get(list).get(name)? {
            NamedItem::Exposed(item) => Some(item),
            NamedItem::Withheld(_) => None,
        }
    }

    /// Returns the exposed tools with this original name, in no order.
    pub(crate) fn tools_by_original(&self, name: &str) -> &[SliceItem] {
        self.originals.get(name).map_or(&[], |items| items)
    }

    /// Returns the server and the original name of the item that uses a name.
    pub(crate) fn user(&self, list: NamedList, name: &str) -> Option<(&ServerId, &str)> {
        let (item, original): (_, &str) = match (self.used.get(list).get(name)?, list) {
            (NamedItem::Exposed(item), NamedList::Tools) => (item, &item.slice.tools[item.at].tool.name),
            (NamedItem::Exposed(item), NamedList::Prompts) => {
                (item, &item.slice.prompts[item.at].prompt.name)
            }
            (NamedItem::Withheld(item), list) => (item, item.withheld_name(list)),
        };
        Some((&item.slice.entry.id, original))
    }

    /// Adds the names of a slice. Returns false, and adds nothing, if one of them is already used.
    pub(crate) fn try_insert(&mut self, slice: &Arc<ServerSlice>) -> bool {
        if names(slice).any(|(list, name, _)| self.used.get(list).contains_key(name)) {
            return false;
        }
        for (list, name, item) in names(slice) {
            self.used.get_mut(list).insert_mut(name.clone(), item);
        }
        for (at, tool) in slice.tools.iter().enumerate() {
            let others = self.tools_by_original(&tool.tool.name).iter().cloned();
            let all = others.chain([SliceItem { slice: Arc::clone(slice), at }]).collect();
            self.originals.insert_mut(OriginalName(Arc::clone(&tool.tool)), all);
        }
        true
    }

    /// Removes the names of a slice.
    pub(crate) fn remove(&mut self, slice: &Arc<ServerSlice>) {
        for (list, name, _) in names(slice) {
            self.used.get_mut(list).remove_mut(name);
        }
        for tool in &slice.tools {
            let original = &*tool.tool.name;
            let is_other = |item: &&SliceItem| !Arc::ptr_eq(&item.slice, slice);
            let others: Arc<[SliceItem]> =
                self.tools_by_original(original).iter().filter(is_other).cloned().collect();
            self.originals.remove_mut(original);
            if let Some(SliceItem { slice, at }) = others.first() {
                self.originals.insert_mut(OriginalName(Arc::clone(&slice.tools[*at].tool)), others);
            }
        }
    }
}

/// The names that a slice uses, each with its list.
fn names(slice: &Arc<ServerSlice>) -> impl Iterator<Item = (NamedList, &ExposedName, NamedItem)> {
    let item = |at| SliceItem { slice: Arc::clone(slice), at };
    let exposed = move |list, name, at| (list, name, NamedItem::Exposed(item(at)));
    let tools = slice.tools.iter().enumerate();
    let tools = tools.map(move |(at, tool)| exposed(NamedList::Tools, &tool.name, at));
    let prompts = slice.prompts.iter().enumerate();
    let prompts = prompts.map(move |(at, prompt)| exposed(NamedList::Prompts, &prompt.name, at));
    let withheld = [NamedList::Tools, NamedList::Prompts].into_iter().flat_map(move |list| {
        let items = slice.withheld.get(list).iter().enumerate();
        items.map(move |(at, (_, name))| (list, name, NamedItem::Withheld(item(at))))
    });
    tools.chain(prompts).chain(withheld)
}
