//! The lists of a scope: the tools, prompts, resources and templates that it shows, in pages.
//!
//! Text and order depend only on the catalog and the scope, so equal content has equal bytes and cursors. All
//! scopes share the definitions; a listing has at most one flag per definition. A client can request many scopes, so
//! each must cost little memory.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use mcp_host_model::{HeaderArgument, ServerId};
use mcp_host_registry::{Catalog, ExposedTool, ItemList, ToolBudget, ViewFilter};

use crate::access::scope::Scope;
use crate::lists::definitions::{
    CatalogList, CatalogTarget, DefinitionEntry, DefinitionList, DefinitionPart, Definitions, hash_of,
};
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
    /// The visible definitions of each part of the [`DefinitionList`].
    parts: Vec<VisiblePart>,
    pages: Vec<Page>,
    /// The hash of the visible definitions. Cursors contain its first bytes.
    hash: blake3::Hash,
}

/// The visible definitions of one part of a list. A whole part costs no work for each of its definitions.
#[derive(Debug)]
enum VisiblePart {
    /// All of them.
    Whole,
    /// Those with `true`.
    Some(Box<[bool]>),
}

/// A page of a list.
#[derive(Debug)]
struct Page {
    /// The positions of its definitions, hidden ones included.
    range: Range<usize>,
    /// The size of its visible definitions, with a comma after each.
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
        let is_offered = |part: &DefinitionPart| {
            // The gateway's own resources require an unfiltered scope.
            let Some(server) = part.server() else { return scope.is_unfiltered() };
            scope.server.as_ref().is_none_or(|only| only == server)
        };
        let catalog = definitions.catalog();
        let mut selected = select_definitions(catalog, scope);
        let lists = CatalogList::ALL.map(|kind| {
            let selected = selected.as_mut().map(|selected| std::mem::take(&mut selected[kind as usize]));
            let mut tracker = budget.start();
            let is_limited = kind == CatalogList::Tools && !budget.is_unlimited();
            let is_for_all = audience == Audience::ModelsAndApps;
            let fits = |at: usize, entry: &DefinitionEntry| {
                (is_for_all || entry.is_for_models)
                    && (!is_limited || catalog.tools().get(at).is_none_or(|tool| tracker.try_add(tool)))
            };
            let fit_all = |part: &DefinitionPart| !is_limited && (is_for_all || part.summary().is_for_models);
            VisibleList::of(definitions.list(kind), selected, is_offered, fit_all, fits)
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
        let (definitions, VisibleList { parts, pages, hash }) = self.list(kind);
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
        let mut is_first = true;
        for ((start, part), visible) in definitions.parts().zip(parts) {
            let count = part.entries().len();
            let mut rest =
                page.start.saturating_sub(start).min(count)..page.end.saturating_sub(start).min(count);
            while let Some(run) = visible.next_run(rest.clone()) {
                if !std::mem::take(&mut is_first) {
                    output.push(b',');
                }
                rest.start = run.end;
                output.extend_from_slice(part.text(run));
            }
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
        let mut own = own.map(|(at, _)| list.is_visible(definitions, at)).peekable();
        own.peek().is_some() && own.all(|is_visible| !is_visible)
    }

    /// Finds the definition that is listed under this key: the name of a tool or prompt, or the URI of a resource or
    /// template. Of several, the first one.
    pub(crate) fn find(&self, kind: CatalogList, key: &str) -> Option<&CatalogTarget> {
        self.target(kind, self.position(kind, key)?)
    }

    /// The position of the definition that is listed under this key.
    pub(crate) fn position(&self, kind: CatalogList, key: &str) -> Option<usize> {
        let (definitions, list) = self.list(kind);
        self.definitions.find(kind, key).find(|at| list.is_visible(definitions, *at))
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
        let parts = definitions.parts().zip(&list.parts);
        parts.flat_map(|((start, part), visible)| {
            let entries = part.entries().iter().enumerate();
            let visible = entries.filter(|(at, _)| visible.contains(*at));
            visible.map(move |(at, entry)| (start + at, entry))
        })
    }
}

impl VisibleList {
    /// Determines the visible definitions among the `selected` ones, by default all, and divides them into pages. Of
    /// several with the same key, only the first is visible. `fits` is called last, with the position of a definition
    /// that is visible otherwise; `fit_all` returns whether all of a part fit.
    fn of(
        definitions: &DefinitionList,
        selected: Option<Vec<bool>>,
        is_offered: impl Fn(&DefinitionPart) -> bool,
        fit_all: impl Fn(&DefinitionPart) -> bool,
        mut fits: impl FnMut(usize, &DefinitionEntry) -> bool,
    ) -> VisibleList {
        let mut parts: Vec<VisiblePart> = Vec::new();
        let mut hasher = blake3::Hasher::new();
        let mut pages = Pages::default();
        for (start, part) in definitions.parts() {
            let entries = part.entries();
            let is_offered = is_offered(part);
            let is_whole =
                selected.is_none() && is_offered && !definitions.has_repeated_keys() && fit_all(part);
            if is_whole {
                parts.push(VisiblePart::Whole);
                hasher.update(part.summary().hash.as_bytes());
                pages.add(part, start, 0..entries.len());
                continue;
            }
            let mut visible = vec![false; entries.len()];
            for (at, entry) in entries.iter().enumerate() {
                let position = start + at;
                // The gateway's own resources are not in the catalog.
                let is_selected = |selected: &Vec<bool>| selected.get(position).is_none_or(|flag| *flag);
                let is_visible = |earlier: usize| match earlier.checked_sub(start) {
                    Some(at) => visible[at],
                    None => is_visible(definitions, &parts, earlier),
                };
                visible[at] = is_offered
                    && selected.as_ref().is_none_or(is_selected)
                    && !definitions.earlier_with_key(position).any(is_visible)
                    && fits(position, entry);
            }
            let visible = VisiblePart::Some(visible.into());
            let mut rest = 0..entries.len();
            if visible.next_run(rest.clone()).is_some() {
                let shown = entries.iter().enumerate().filter(|(at, _)| visible.contains(*at));
                hasher.update(hash_of(shown.map(|(_, entry)| entry)).as_bytes());
            }
            while let Some(run) = visible.next_run(rest.clone()) {
                rest.start = run.end;
                pages.add(part, start, run);
            }
            parts.push(visible);
        }
        VisibleList { parts, pages: pages.finish(definitions.len()), hash: hasher.finalize() }
    }

    /// Whether the definition at a position is visible.
    fn is_visible(&self, definitions: &DefinitionList, at: usize) -> bool {
        is_visible(definitions, &self.parts, at)
    }
}

/// Like [`VisibleList::is_visible`], for a list that has only these parts yet.
fn is_visible(definitions: &DefinitionList, parts: &[VisiblePart], at: usize) -> bool {
    let (part, at) = definitions.locate(at);
    parts[part].contains(at)
}

impl VisiblePart {
    /// Whether the definition at this position in the part is visible.
    fn contains(&self, at: usize) -> bool {
        match self {
            VisiblePart::Whole => true,
            VisiblePart::Some(visible) => visible[at],
        }
    }

    /// The first consecutive visible definitions in a range.
    fn next_run(&self, range: Range<usize>) -> Option<Range<usize>> {
        match self {
            VisiblePart::Whole => Some(range).filter(|range| !range.is_empty()),
            VisiblePart::Some(visible) => {
                let begin = range.clone().find(|at| visible[*at])?;
                let end = (begin..range.end).find(|at| !visible[*at]).unwrap_or(range.end);
                Some(begin..end)
            }
        }
    }
}

/// Divides the visible definitions of a list into pages.
#[derive(Default)]
struct Pages {
    full: Vec<Page>,
    /// The position of the first definition of the current page.
    start: usize,
    /// The size of the current page.
    bytes: usize,
}

impl Pages {
    /// Adds consecutive definitions of a part that begins at position `start`.
    fn add(&mut self, part: &DefinitionPart, start: usize, mut run: Range<usize>) {
        while !run.is_empty() {
            let fitting = part.count_fitting(run.clone(), MAX_PAGE_BYTES.saturating_sub(self.bytes));
            if fitting == 0 && self.bytes > 0 {
                self.full.push(Page { range: self.start..start + run.start, bytes: self.bytes });
                (self.start, self.bytes) = (start + run.start, 0);
                continue;
            }
            let added = run.start..run.start + fitting.max(1);
            run.start = added.end;
            self.bytes += part.text(added).len() + 1;
        }
    }

    /// The pages of a list with `len` definitions. There is at least one. Only a list without visible definitions has
    /// an empty page.
    fn finish(mut self, len: usize) -> Vec<Page> {
        self.full.push(Page { range: self.start..len, bytes: self.bytes });
        self.full
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
/// and by position in the catalog; `None` if there are no views.
fn select_definitions(catalog: &Catalog, scope: &Scope) -> Option<[Vec<bool>; 4]> {
    if scope.views.is_empty() && scope.granted.is_empty() {
        return None;
    }
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
        return Some(selected);
    }
    let mut granted = counts.map(|count| vec![false; count]);
    for view in &scope.granted {
        let mut passing = selected.clone();
        narrow_to_view(&mut passing, catalog, view);
        for (is_granted, passes) in granted.iter_mut().flatten().zip(passing.iter().flatten()) {
            *is_granted |= passes;
        }
    }
    Some(granted)
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
