//! The tools, prompts, resources and templates that a scope shows, in pages.
//!
//! Text and order depend only on the catalog and the scope, so equal content has equal bytes and cursors. All
//! scopes share the definitions; a listing has one flag per definition. A client can request many scopes, so each
//! must cost little memory.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use mcp_model::ServerId;
use mcp_registry::Catalog;

use crate::access::scope::{LeasedServers, Scope};
pub(crate) use crate::lists::definitions::Target;
use crate::lists::definitions::{DefinitionList, Definitions};

/// Maximum size of a page in bytes. A larger definition has a page of its own.
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;

/// The kinds of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    /// The member of the result that holds the list.
    fn member(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources => "resources",
            ListKind::Templates => "resourceTemplates",
        }
    }
}

/// The lists of a scope.
#[derive(Debug)]
pub(crate) struct Listing {
    definitions: Arc<Definitions>,
    tools: VisibleList,
    prompts: VisibleList,
    resources: VisibleList,
    templates: VisibleList,
}

/// The visible definitions of one list.
#[derive(Debug)]
struct VisibleList {
    /// Whether each definition is visible, by its position in the [`DefinitionList`].
    seen: Box<[bool]>,
    /// The positions of each page, hidden definitions included.
    pages: Vec<Range<usize>>,
    /// The hash of the visible definitions. Cursors contain its first bytes.
    hash: blake3::Hash,
}

/// A cursor of another list, or of an earlier version of this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StaleCursor;

impl Listing {
    /// Builds the lists of a scope. `is_shared` returns whether all clients share one instance of a server.
    pub(crate) fn build(
        definitions: Arc<Definitions>,
        catalog: &Catalog,
        scope: &Scope,
        is_shared: impl Fn(&ServerId) -> bool,
    ) -> Listing {
        let Selected { tools, prompts, resources, templates } = Selected::of(catalog, scope);
        let mut known: HashMap<ServerId, bool> = HashMap::new();
        let mut offered = |it: Option<&Target>| {
            // The gateway's own resources require an unfiltered scope.
            let Some(Target { server, .. }) = it else { return scope.is_whole() };
            if let Some(known) = known.get(server) {
                return *known;
            }
            let is_offered = scope.server.as_ref().is_none_or(|only| only == server)
                && (scope.leased == LeasedServers::Offered || is_shared(server));
            known.insert(server.clone(), is_offered);
            is_offered
        };
        Listing {
            tools: VisibleList::of(&definitions.tools, tools, &mut offered),
            prompts: VisibleList::of(&definitions.prompts, prompts, &mut offered),
            resources: VisibleList::of(&definitions.resources, resources, &mut offered),
            templates: VisibleList::of(&definitions.templates, templates, &mut offered),
            definitions,
        }
    }

    /// Writes the members of a JSON result: the list with the page of `cursor` (or the first page), and
    /// `nextCursor` if another page follows.
    pub(crate) fn write(
        &self,
        kind: ListKind,
        cursor: Option<&str>,
        res: &mut Vec<u8>,
    ) -> Result<(), StaleCursor> {
        let (items, VisibleList { seen, pages, hash }) = self.part(kind);
        let at = match cursor {
            None => 0,
            Some(cursor) => {
                let (of, at) = cursor.rsplit_once('.').ok_or(StaleCursor)?;
                if of != short(hash) {
                    return Err(StaleCursor);
                }
                at.parse().map_err(|_| StaleCursor)?
            }
        };
        let page = pages.get(at).ok_or(StaleCursor)?.clone();
        res.reserve(items.text(page.clone()).len() + 100);
        res.push(b'"');
        res.extend_from_slice(kind.member().as_bytes());
        res.extend_from_slice(b"\":[");
        let mut start = page.start;
        let mut is_first = true;
        while let Some(begin) = (start..page.end).find(|it| seen[*it]) {
            let end = (begin..page.end).find(|it| !seen[*it]).unwrap_or(page.end);
            if !std::mem::take(&mut is_first) {
                res.push(b',');
            }
            res.extend_from_slice(items.text(begin..end));
            start = end;
        }
        res.push(b']');
        if at + 1 < pages.len() {
            res.extend_from_slice(format!(",\"nextCursor\":\"{}.{}\"", short(hash), at + 1).as_bytes());
        }
        Ok(())
    }

    /// The hash of the visible definitions of a list.
    pub(crate) fn hash(&self, kind: ListKind) -> blake3::Hash {
        self.part(kind).1.hash
    }

    /// Whether nothing is visible except the gateway's own resources.
    pub(crate) fn is_empty(&self) -> bool {
        [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::Templates].into_iter().all(
            |kind| {
                let (items, part) = self.part(kind);
                part.all().all(|at| items.target(at).is_none())
            },
        )
    }

    /// The tool that is listed under this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Target> {
        self.find(ListKind::Tools, name)
    }

    /// The prompt that is listed under this name.
    pub(crate) fn prompt(&self, name: &str) -> Option<&Target> {
        self.find(ListKind::Prompts, name)
    }

    /// The resource with this URI; the first one if several servers have it.
    pub(crate) fn resource(&self, uri: &str) -> Option<&Target> {
        self.find(ListKind::Resources, uri)
    }

    /// The template with exactly this URI template.
    pub(crate) fn template(&self, uri: &str) -> Option<&Target> {
        self.find(ListKind::Templates, uri)
    }

    /// The template that matches a URI. Of several, the one with the longest literal prefix and suffix; of equally
    /// long ones, the first.
    pub(crate) fn matching_template(&self, uri: &str) -> Option<&Target> {
        let (items, part) = self.part(ListKind::Templates);
        let fitting = part.all().filter_map(|at| Some((literal(items.key(at), uri)?, at)));
        let (_, best) = fitting.max_by_key(|(said, at)| (*said, std::cmp::Reverse(*at)))?;
        items.target(best)
    }

    fn find(&self, kind: ListKind, key: &str) -> Option<&Target> {
        let (items, part) = self.part(kind);
        items.target(items.find(key).find(|at| part.seen[*at])?)
    }

    /// The definitions of a list, and the visible ones among them.
    fn part(&self, kind: ListKind) -> (&DefinitionList, &VisibleList) {
        match kind {
            ListKind::Tools => (&self.definitions.tools, &self.tools),
            ListKind::Prompts => (&self.definitions.prompts, &self.prompts),
            ListKind::Resources => (&self.definitions.resources, &self.resources),
            ListKind::Templates => (&self.definitions.templates, &self.templates),
        }
    }
}

impl VisibleList {
    /// Determines the visible definitions. Of several with the same key, only the first is visible.
    fn of(
        items: &DefinitionList,
        mut seen: Vec<bool>,
        mut offered: impl FnMut(Option<&Target>) -> bool,
    ) -> VisibleList {
        // The gateway's own resources are not in the catalog.
        seen.resize(items.len(), true);
        for at in 0..items.len() {
            seen[at] = seen[at] && offered(items.target(at)) && !items.before(at).any(|it| seen[it]);
        }
        let mut hasher = blake3::Hasher::new();
        for at in (0..items.len()).filter(|it| seen[*it]) {
            hasher.update(items.hash(at).as_bytes());
        }
        let pages = cut(items, &seen);
        VisibleList { seen: seen.into(), pages, hash: hasher.finalize() }
    }

    /// The positions of the visible definitions.
    fn all(&self) -> impl Iterator<Item = usize> {
        self.seen.iter().enumerate().filter(|(_, seen)| **seen).map(|(at, _)| at)
    }
}

/// Cuts a list into pages. There is at least one page. Only a list without visible definitions has an empty page.
fn cut(items: &DefinitionList, seen: &[bool]) -> Vec<Range<usize>> {
    let mut res = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for at in (0..items.len()).filter(|it| seen[*it]) {
        if bytes > 0 && bytes + items.bytes(at) > PAGE_BYTES {
            res.push(start..at);
            (start, bytes) = (at, 0);
        }
        bytes += items.bytes(at);
    }
    res.push(start..items.len());
    res
}

/// The total length of a template's literal prefix and suffix; `None` if the URI does not match them.
fn literal(template: &str, uri: &str) -> Option<usize> {
    let (start, rest) = template.split_once('{')?;
    let end = rest.rsplit_once('}')?.1;
    let fits = uri.len() > start.len() + end.len() && uri.starts_with(start) && uri.ends_with(end);
    fits.then_some(start.len() + end.len())
}

/// Whether each definition passes all views of a scope, by its position in the catalog.
struct Selected {
    tools: Vec<bool>,
    prompts: Vec<bool>,
    resources: Vec<bool>,
    templates: Vec<bool>,
}

impl Selected {
    fn of(catalog: &Catalog, scope: &Scope) -> Selected {
        let mut res = Selected {
            tools: vec![true; catalog.tools().len()],
            prompts: vec![true; catalog.prompts().len()],
            resources: vec![true; catalog.resources().len()],
            templates: vec![true; catalog.templates().len()],
        };
        for view in &scope.views {
            let viewed = catalog.view(view);
            narrow(&mut res.tools, catalog.tools(), &viewed.tools);
            narrow(&mut res.prompts, catalog.prompts(), &viewed.prompts);
            narrow(&mut res.resources, catalog.resources(), &viewed.resources);
            narrow(&mut res.templates, catalog.templates(), &viewed.templates);
        }
        res
    }
}

/// Clears the flags of definitions that are not in `viewed`. It has the order of `all`.
fn narrow<T>(seen: &mut [bool], all: &[T], viewed: &[&T]) {
    let mut viewed = viewed.iter().copied().peekable();
    for (seen, it) in seen.iter_mut().zip(all) {
        let is_in = viewed.next_if(|next| std::ptr::eq(*next, it)).is_some();
        *seen &= is_in;
    }
}

/// The start of a hash in hexadecimal digits, for cursors.
fn short(hash: &blake3::Hash) -> String {
    hash.as_bytes()[..12].iter().fold(String::with_capacity(24), |mut res, it| {
        write!(res, "{it:02x}").expect("a String takes everything");
        res
    })
}

#[cfg(test)]
mod tests;
