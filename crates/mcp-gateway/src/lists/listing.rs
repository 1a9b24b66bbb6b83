//! What a client's lists say: which of the generation's definitions his scope shows, and how they are cut into pages.
//!
//! Order and text follow from the catalog and the scope alone, so the same content gives the same bytes and the same
//! cursors. A definition is what its server wrote but for the name, and stands in memory once for all who see it: what is
//! kept for a scope is a bit for each definition, so that clients who make scopes up make nothing large.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use mcp_model::ServerId;
use mcp_registry::Catalog;

use crate::access::scope::{Leased, Scope};
pub(crate) use crate::lists::definitions::Target;
use crate::lists::definitions::{Items, Shown};

/// How large a page may grow before the next one begins.
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;

/// The four lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl Kind {
    /// The member of a result that holds the list.
    fn member(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::Resources => "resources",
            Kind::Templates => "resourceTemplates",
        }
    }
}

/// The lists of a scope.
#[derive(Debug)]
pub(crate) struct Listing {
    shown: Arc<Shown>,
    tools: Part,
    prompts: Part,
    resources: Part,
    templates: Part,
}

/// What is seen of a list.
#[derive(Debug)]
struct Part {
    /// By position.
    seen: Box<[bool]>,
    /// Where the pages begin and end, by position.
    pages: Vec<Range<usize>>,
    /// Of the whole list, so that a cursor of another one is known as such.
    hash: blake3::Hash,
}

/// A cursor that leads nowhere: the list has changed since, or it never was one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StaleCursor;

impl Listing {
    /// Makes the lists out of what this catalog has to show. `is_shared` says of a server whether everybody may use one
    /// instance.
    pub(crate) fn build(
        shown: Arc<Shown>,
        catalog: &Catalog,
        scope: &Scope,
        is_shared: impl Fn(&ServerId) -> bool,
    ) -> Listing {
        let Seen { tools, prompts, resources, templates } = Seen::of(catalog, scope);
        let mut known: HashMap<ServerId, bool> = HashMap::new();
        let mut offered = |it: Option<&Target>| {
            // What is the gateway's own is for those who see everything.
            let Some(Target { server, .. }) = it else { return scope.is_whole() };
            if let Some(known) = known.get(server) {
                return *known;
            }
            let is_offered = scope.server.as_ref().is_none_or(|only| only == server)
                && (scope.leased == Leased::Offered || is_shared(server));
            known.insert(server.clone(), is_offered);
            is_offered
        };
        Listing {
            tools: Part::of(&shown.tools, tools, &mut offered),
            prompts: Part::of(&shown.prompts, prompts, &mut offered),
            resources: Part::of(&shown.resources, resources, &mut offered),
            templates: Part::of(&shown.templates, templates, &mut offered),
            shown,
        }
    }

    /// Writes the inside of a result with a page of a list: the first, or the one that `cursor` names.
    pub(crate) fn write(
        &self,
        kind: Kind,
        cursor: Option<&str>,
        res: &mut Vec<u8>,
    ) -> Result<(), StaleCursor> {
        let (items, Part { seen, pages, hash }) = self.part(kind);
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

    /// What a list says, in short: another hash is another list.
    pub(crate) fn hash(&self, kind: Kind) -> blake3::Hash {
        self.part(kind).1.hash
    }

    /// Is there nothing of any server to see?
    pub(crate) fn is_empty(&self) -> bool {
        [Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates].into_iter().all(|kind| {
            let (items, part) = self.part(kind);
            part.all().all(|at| items.target(at).is_none())
        })
    }

    /// The tool that is shown under this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Target> {
        self.of_key(Kind::Tools, name)
    }

    /// The prompt that is shown under this name.
    pub(crate) fn prompt(&self, name: &str) -> Option<&Target> {
        self.of_key(Kind::Prompts, name)
    }

    /// The resource of this URI. Where two servers have one URI it is the first one's.
    pub(crate) fn resource(&self, uri: &str) -> Option<&Target> {
        self.of_key(Kind::Resources, uri)
    }

    /// The template of this text.
    pub(crate) fn template(&self, uri: &str) -> Option<&Target> {
        self.of_key(Kind::Templates, uri)
    }

    /// The template that a URI comes from: of those that fit, the one that says most of it; of several the first.
    pub(crate) fn fitting(&self, uri: &str) -> Option<&Target> {
        let (items, part) = self.part(Kind::Templates);
        let fitting = part.all().filter_map(|at| Some((literal(items.key(at), uri)?, at)));
        let (_, best) = fitting.max_by_key(|(said, at)| (*said, std::cmp::Reverse(*at)))?;
        items.target(best)
    }

    fn of_key(&self, kind: Kind, key: &str) -> Option<&Target> {
        let (items, part) = self.part(kind);
        items.target(items.of_key(key).find(|at| part.seen[*at])?)
    }

    fn part(&self, kind: Kind) -> (&Items, &Part) {
        match kind {
            Kind::Tools => (&self.shown.tools, &self.tools),
            Kind::Prompts => (&self.shown.prompts, &self.prompts),
            Kind::Resources => (&self.shown.resources, &self.resources),
            Kind::Templates => (&self.shown.templates, &self.templates),
        }
    }
}

impl Part {
    /// What is seen of these: of several that are asked for in the same way the first.
    fn of(items: &Items, mut seen: Vec<bool>, mut offered: impl FnMut(Option<&Target>) -> bool) -> Part {
        // The gateway's own, of which no catalog knows.
        seen.resize(items.len(), true);
        for at in 0..items.len() {
            seen[at] = seen[at] && offered(items.target(at)) && !items.before(at).any(|it| seen[it]);
        }
        let mut hasher = blake3::Hasher::new();
        for at in (0..items.len()).filter(|it| seen[*it]) {
            hasher.update(items.hash(at).as_bytes());
        }
        let pages = cut(items, &seen);
        Part { seen: seen.into(), pages, hash: hasher.finalize() }
    }

    /// The positions of what is seen.
    fn all(&self) -> impl Iterator<Item = usize> {
        self.seen.iter().enumerate().filter(|(_, seen)| **seen).map(|(at, _)| at)
    }
}

/// Where the pages begin and end: each has something at least that is seen, and there is one page at least.
fn cut(items: &Items, seen: &[bool]) -> Vec<Range<usize>> {
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

/// How many bytes of `uri` a template says word for word before its first variable and behind its last, if it fits at all.
fn literal(template: &str, uri: &str) -> Option<usize> {
    let (start, rest) = template.split_once('{')?;
    let end = rest.rsplit_once('}')?.1;
    let fits = uri.len() > start.len() + end.len() && uri.starts_with(start) && uri.ends_with(end);
    fits.then_some(start.len() + end.len())
}

/// What all views of a scope select, by position in the catalog.
struct Seen {
    tools: Vec<bool>,
    prompts: Vec<bool>,
    resources: Vec<bool>,
    templates: Vec<bool>,
}

impl Seen {
    fn of(catalog: &Catalog, scope: &Scope) -> Seen {
        let mut res = Seen {
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

/// Keeps what is among `viewed`, which has the order of `all`.
fn narrow<T>(seen: &mut [bool], all: &[T], viewed: &[&T]) {
    let mut viewed = viewed.iter().copied().peekable();
    for (seen, it) in seen.iter_mut().zip(all) {
        let is_in = viewed.next_if(|next| std::ptr::eq(*next, it)).is_some();
        *seen &= is_in;
    }
}

fn short(hash: &blake3::Hash) -> String {
    hash.as_bytes()[..12].iter().fold(String::with_capacity(24), |mut res, it| {
        write!(res, "{it:02x}").expect("a String takes everything");
        res
    })
}

#[cfg(test)]
mod tests;
