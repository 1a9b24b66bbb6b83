//! The lists of a scope: the tools, prompts, resources and templates that it shows, in pages.
//!
//! Text and order depend only on the catalog and the scope, so equal content has equal bytes and cursors. All
//! scopes share the definitions; a listing has one flag per definition. A client can request many scopes, so each
//! must cost little memory.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use mcp_host_model::{HeaderArgument, ServerId};
use mcp_host_registry::{Catalog, ExposedTool, ItemList, ToolBudget, ViewFilter};

use crate::access::scope::Scope;
use crate::lists::definitions::{CatalogList, CatalogTarget, DefinitionEntry, DefinitionList, Definitions};
use crate::lists::exposed_uri::UriOwners;

/// Maximum size of a page in bytes. A larger definition has a page of its own.
pub(crate) const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// The recipients of the tools of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Models only. The client runs no apps, so tools that are for apps only are hidden.
    Models,
    /// Models and apps. The client gives each its tools.
    ModelsAndApps,
}

/// The filter that decides which definitions are listed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListFilter<'a> {
    pub(crate) scope: &'a Arc<Scope>,
    pub(crate) audience: Audience,
    /// The limit on the number and size of the tools.
    pub(crate) budget: ToolBudget,
}

/// The lists of a scope.
#[derive(Debug)]
pub(crate) struct Listing {
    definitions: Arc<Definitions>,
    lists: [VisibleList; 4],
    /// The servers of the scope that are leased.
    leased: Vec<ServerId>,
}

/// The visible definitions of one list.
#[derive(Debug)]
struct VisibleList {
    /// Whether each definition is visible, by its position in the [`DefinitionList`].
    visible: Box<[bool]>,
    pages: Vec<Page>,
    /// The hash of the visible definitions. Cursors contain its first bytes.
    hash: blake3::Hash,
}

/// A page of a list.
#[derive(Debug)]
struct Page {
    /// The positions of its definitions, hidden ones included.
    range: Range<usize>,
    /// The size of its visible definitions.
    bytes: usize,
}

/// The error for a cursor of another list, or of an earlier version of this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StaleCursor;

impl Audience {
    /// Whether a tool is for this audience.
    pub(crate) fn includes(self, tool: &ExposedTool) -> bool {
        self == Audience::ModelsAndApps || tool.tool.is_for_models()
    }
}

impl Listing {
    /// Builds the lists of the definitions that pass a filter. `leased` are the servers that are not shared.
    pub(crate) fn build(
        definitions: Arc<Definitions>,
        ListFilter { scope, audience, budget }: ListFilter<'_>,
        mut leased: Vec<ServerId>,
    ) -> Listing {
        let is_offered = |entry: &DefinitionEntry| {
            // The gateway's own resources require an unfiltered scope.
            let Some(CatalogTarget { server, .. }) = &entry.target else { return scope.is_unfiltered() };
            scope.server.as_ref().is_none_or(|only| only == server)
        };
        let catalog = definitions.catalog();
        let mut selected = select_definitions(catalog, scope);
        let lists = CatalogList::ALL.map(|kind| {
            let selected = std::mem::take(&mut selected[kind as usize]);
            let mut tracker = budget.start();
            let fits = |at: usize, entry: &DefinitionEntry| {
                let is_for_audience = audience == Audience::ModelsAndApps || entry.is_for_models;
                let is_limited = kind == CatalogList::Tools && !budget.is_unlimited();
                is_for_audience
                    && (!is_limited || catalog.tools().get(at).is_none_or(|tool| tracker.try_add(tool)))
            };
            VisibleList::of(definitions.list(kind), selected, is_offered, fits)
        });
        leased.retain(|server| scope.server.as_ref().is_none_or(|only| only == server));
        Listing { definitions, lists, leased }
    }

    /// The servers of which anything is visible, in the order of the catalog.
    pub(crate) fn servers(&self) -> Vec<ServerId> {
        let mut servers: Vec<ServerId> = Vec::new();
        for (_, entry) in CatalogList::ALL.into_iter().flat_map(|kind| self.visible(kind)) {
            if let Some(CatalogTarget { server, .. }) = &entry.target
                && servers.last() != Some(server)
                && !servers.contains(server)
            {
                servers.push(server.clone());
            }
        }
        servers
    }

    /// Whether a server of the scope is leased.
    pub(crate) fn has_leased(&self) -> bool {
        !self.leased.is_empty()
    }

    /// Whether this server is leased.
    pub(crate) fn is_leased(&self, server: &ServerId) -> bool {
        self.leased.contains(server)
    }

    /// Writes the members of a JSON result: the list with the page of `cursor` (or the first page), and
    /// `nextCursor` if another page follows.
    pub(crate) fn write(
        &self,
        kind: CatalogList,
        cursor: Option<&str>,
        output: &mut Vec<u8>,
    ) -> Result<(), StaleCursor> {
        let (definitions, VisibleList { visible, pages, hash }) = self.list(kind);
        let page_number = match cursor {
            None => 0,
            Some(cursor) => {
                let (hash_digits, number) = cursor.rsplit_once('.').ok_or(StaleCursor)?;
                if hash_digits != cursor_hash(hash) {
                    return Err(StaleCursor);
                }
                number.parse().map_err(|_| StaleCursor)?
            }
        };
        let Page { range: page, bytes: page_bytes } = pages.get(page_number).ok_or(StaleCursor)?;
        output.reserve(*page_bytes + 100);
        output.extend_from_slice(format!("\"{}\":[", kind.result_member()).as_bytes());
        let mut start = page.start;
        let mut is_first = true;
        while let Some(begin) = (start..page.end).find(|at| visible[*at]) {
            let end = (begin..page.end).find(|at| !visible[*at]).unwrap_or(page.end);
            if !std::mem::take(&mut is_first) {
                output.push(b',');
            }
            definitions.write(begin..end, output);
            start = end;
        }
        output.push(b']');
        if page_number + 1 < pages.len() {
            let next = format!(",\"nextCursor\":\"{}.{}\"", cursor_hash(hash), page_number + 1);
            output.extend_from_slice(next.as_bytes());
        }
        Ok(())
    }

    /// The hash of the visible definitions of a list.
    pub(crate) fn hash(&self, kind: CatalogList) -> blake3::Hash {
        self.list(kind).1.hash
    }

    /// Whether nothing is visible except the gateway's own resources.
    pub(crate) fn is_empty(&self) -> bool {
        CatalogList::ALL.into_iter().all(|kind| self.visible(kind).all(|(_, entry)| entry.target.is_none()))
    }

    /// Whether all tools of a server are hidden, and it has some.
    pub(crate) fn hides_server(&self, server: &ServerId) -> bool {
        let (definitions, list) = self.list(CatalogList::Tools);
        let is_own = |entry: &DefinitionEntry| entry.target.as_ref().is_some_and(|it| it.server == *server);
        let own = definitions.entries().enumerate().filter(|(_, entry)| is_own(entry));
        let mut own = own.map(|(at, _)| list.visible[at]).peekable();
        own.peek().is_some() && own.all(|is_visible| !is_visible)
    }

    /// Finds the definition that is listed under this key: the name of a tool or prompt, or the URI of a resource or
    /// template. Of several, the first one.
    pub(crate) fn find(&self, kind: CatalogList, key: &str) -> Option<&CatalogTarget> {
        self.target(kind, self.position(kind, key)?)
    }

    /// The position of the definition that is listed under this key.
    pub(crate) fn position(&self, kind: CatalogList, key: &str) -> Option<usize> {
        self.definitions.find(kind, key).find(|at| self.lists[kind as usize].visible[*at])
    }

    /// The server and the catalog name of the definition at a position.
    pub(crate) fn target(&self, kind: CatalogList, at: usize) -> Option<&CatalogTarget> {
        self.definitions.list(kind).entry(at).target.as_ref()
    }

    /// The arguments of the tool at a position that headers repeat.
    pub(crate) fn header_arguments(&self, at: usize) -> &[HeaderArgument] {
        self.definitions.list(CatalogList::Tools).header_arguments(at)
    }

    /// The servers that keep their URIs, hidden ones included.
    pub(crate) fn uri_owners(&self) -> &UriOwners {
        self.definitions.uri_owners()
    }

    /// Finds the template that matches a URI, of one server or of all. Of several, the one with the longest literal
    /// prefix and suffix; of equally long ones, the first.
    pub(crate) fn matching_template(&self, uri: &str, server: Option<&ServerId>) -> Option<&CatalogTarget> {
        let targets =
            self.visible(CatalogList::Templates).filter_map(|(at, entry)| Some((at, entry.target.as_ref()?)));
        let matching = targets
            .filter(|(_, target)| server.is_none_or(|server| target.server == *server))
            .filter_map(|(at, target)| Some((literal_length(&target.name, uri)?, Reverse(at), target)));
        matching.max_by_key(|(length, at, _)| (*length, *at)).map(|(_, _, target)| target)
    }

    fn list(&self, kind: CatalogList) -> (&DefinitionList, &VisibleList) {
        (self.definitions.list(kind), &self.lists[kind as usize])
    }

    /// The visible definitions of a list, with their positions.
    fn visible(&self, kind: CatalogList) -> impl Iterator<Item = (usize, &DefinitionEntry)> {
        let (definitions, list) = self.list(kind);
        definitions.entries().enumerate().filter(|(at, _)| list.visible[*at])
    }
}

impl VisibleList {
    /// Determines the visible definitions among the `selected` ones, and divides them into pages. Of several with the
    /// same key, only the first is visible. `fits` is called last, with the position of a definition that is visible
    /// otherwise.
    fn of(
        definitions: &DefinitionList,
        selected: Vec<bool>,
        is_offered: impl Fn(&DefinitionEntry) -> bool,
        mut fits: impl FnMut(usize, &DefinitionEntry) -> bool,
    ) -> VisibleList {
        let mut visible = selected;
        // The gateway's own resources are not in the catalog.
        visible.resize(definitions.len(), true);
        let mut hasher = blake3::Hasher::new();
        let mut pages = Vec::new();
        let (mut page_start, mut page_bytes) = (0, 0);
        for (at, entry) in definitions.entries().enumerate() {
            visible[at] = visible[at]
                && is_offered(entry)
                && !definitions.earlier_with_key(at).any(|earlier| visible[earlier])
                && fits(at, entry);
            if !visible[at] {
                continue;
            }
            hasher.update(entry.hash.as_bytes());
            if page_bytes > 0 && page_bytes + entry.len() > MAX_PAGE_BYTES {
                pages.push(Page { range: page_start..at, bytes: page_bytes });
                (page_start, page_bytes) = (at, 0);
            }
            page_bytes += entry.len();
        }
        // There is at least one page. Only a list without visible definitions has an empty page.
        pages.push(Page { range: page_start..visible.len(), bytes: page_bytes });
        VisibleList { visible: visible.into(), pages, hash: hasher.finalize() }
    }
}

/// The total length of a template's literal prefix and suffix; `None` if the URI does not match them.
fn literal_length(template: &str, uri: &str) -> Option<usize> {
    let (prefix, rest) = template.split_once('{')?;
    let suffix = rest.rsplit_once('}')?.1;
    let length = prefix.len() + suffix.len();
    (uri.len() > length && uri.starts_with(prefix) && uri.ends_with(suffix)).then_some(length)
}

/// Applies the views of a scope. Returns whether each definition passes all of `views` and one of `granted`, by list
/// and by position in the catalog.
fn select_definitions(catalog: &Catalog, scope: &Scope) -> [Vec<bool>; 4] {
    let counts = [
        catalog.tools().len(),
        catalog.prompts().len(),
        catalog.resources().len(),
        catalog.templates().len(),
    ];
    let mut selected = counts.map(|count| vec![true; count]);
    for view in &scope.views {
        narrow_to_view(&mut selected, catalog, view);
    }
    if scope.granted.is_empty() {
        return selected;
    }
    let mut granted = counts.map(|count| vec![false; count]);
    for view in &scope.granted {
        let mut passing = selected.clone();
        narrow_to_view(&mut passing, catalog, view);
        for (is_granted, passes) in granted.iter_mut().flatten().zip(passing.iter().flatten()) {
            *is_granted |= passes;
        }
    }
    granted
}

/// Clears the flags of items that a view hides.
fn narrow_to_view(selected: &mut [Vec<bool>; 4], catalog: &Catalog, view: &ViewFilter) {
    let view = catalog.view(view);
    let [tools, prompts, resources, templates] = selected;
    narrow(tools, catalog.tools(), &view.tools);
    narrow(prompts, catalog.prompts(), &view.prompts);
    narrow(resources, catalog.resources(), &view.resources);
    narrow(templates, catalog.templates(), &view.templates);
}

/// Clears the flags of items that are not in `viewed`, which has the order of `all`.
fn narrow<T>(selected: &mut [bool], all: ItemList<'_, T>, viewed: &[&T]) {
    let mut viewed = viewed.iter().copied().peekable();
    for (selected, item) in selected.iter_mut().zip(all) {
        let is_viewed = viewed.next_if(|next| std::ptr::eq(*next, item)).is_some();
        *selected &= is_viewed;
    }
}

/// The start of a hash in hexadecimal digits, for cursors.
fn cursor_hash(hash: &blake3::Hash) -> String {
    hash.to_hex()[..24].to_owned()
}

#[cfg(test)]
mod tests;
