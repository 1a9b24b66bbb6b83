//! What a client's lists say, as bytes: made once for a generation and a scope, sent as often as somebody asks.
//!
//! Order and text follow from the catalog and the scope alone, so the same content gives the same bytes and the same
//! cursors. A definition is what its server wrote but for the name.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use bytes::Bytes;
use mcp_model::{RawJson, ServerId};
use mcp_registry::{Catalog, ExposedName};

use crate::own::OwnResource;
use crate::scope::{Leased, Names, Scope};
use crate::splice;

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

/// Whose something is, and what it is called in the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Its server.
    pub(crate) server: ServerId,
    /// Its exposed name; of a resource the URI.
    pub(crate) name: String,
}

/// The lists of a scope.
#[derive(Debug)]
pub(crate) struct Listing {
    tools: Pages,
    prompts: Pages,
    resources: Pages,
    templates: Pages,
    tool_index: HashMap<String, Target>,
    prompt_index: HashMap<String, Target>,
    /// By URI. Where two servers have one URI it is the first one's.
    resource_index: HashMap<String, Target>,
    template_index: HashMap<String, Target>,
    /// The templates in order.
    template_order: Vec<String>,
}

/// A list in pages.
#[derive(Debug)]
struct Pages {
    /// Each is the inside of a result: `"tools":[…]`, and `"nextCursor"` where another one follows.
    pages: Vec<Bytes>,
    /// Of the whole list, so that a cursor of another one is known as such.
    hash: blake3::Hash,
}

/// A cursor that leads nowhere: the list has changed since, or it never was one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StaleCursor;

impl Listing {
    /// Makes the lists. `is_shared` says of a server whether everybody may use one instance.
    pub(crate) fn build(
        catalog: &Catalog,
        scope: &Scope,
        own: &[OwnResource],
        is_shared: impl Fn(&ServerId) -> bool,
    ) -> Listing {
        let seen = Seen::of(catalog, scope);
        let offered = |it: &ServerId| {
            scope.server.as_ref().is_none_or(|only| only == it)
                && (scope.leased == Leased::Offered || is_shared(it))
        };
        let name = |exposed: &ExposedName, original: &str| match scope.names {
            Names::Exposed => exposed.as_str().to_owned(),
            Names::Original => original.to_owned(),
        };
        let mut res = Drafts::default();
        for (at, it) in catalog.tools().iter().enumerate() {
            if seen.tools[at] && offered(&it.server) {
                let target = Target { server: it.server.clone(), name: it.name.as_str().to_owned() };
                let shown = name(&it.name, &it.tool.name);
                res.tools.add(shown.clone(), target, definition(&it.tool.raw, &shown, scope.names));
            }
        }
        for (at, it) in catalog.prompts().iter().enumerate() {
            if seen.prompts[at] && offered(&it.server) {
                let target = Target { server: it.server.clone(), name: it.name.as_str().to_owned() };
                let shown = name(&it.name, &it.prompt.name);
                res.prompts.add(shown.clone(), target, definition(&it.prompt.raw, &shown, scope.names));
            }
        }
        for (at, it) in catalog.resources().iter().enumerate() {
            if seen.resources[at] && offered(&it.server) {
                let uri = it.resource.uri.to_string();
                let target = Target { server: it.server.clone(), name: uri.clone() };
                let shown = name(&it.name, &it.resource.name);
                res.resources.add(uri, target, definition(&it.resource.raw, &shown, scope.names));
            }
        }
        for (at, it) in catalog.templates().iter().enumerate() {
            if seen.templates[at] && offered(&it.server) {
                let uri = it.template.uri_template.to_string();
                let target = Target { server: it.server.clone(), name: uri.clone() };
                let shown = name(&it.name, &it.template.name);
                res.templates.add(uri, target, definition(&it.template.raw, &shown, scope.names));
            }
        }
        own.iter().for_each(|it| res.resources.items.push(it.definition().into_bytes()));
        res.listing()
    }

    /// The inside of a result with a page of a list: the first, or the one that `cursor` names.
    pub(crate) fn page(&self, kind: Kind, cursor: Option<&str>) -> Result<&Bytes, StaleCursor> {
        let Pages { pages, hash } = self.pages(kind);
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
        pages.get(at).ok_or(StaleCursor)
    }

    /// What a list says, in short: another hash is another list.
    pub(crate) fn hash(&self, kind: Kind) -> blake3::Hash {
        self.pages(kind).hash
    }

    /// Is there nothing to see?
    pub(crate) fn is_empty(&self) -> bool {
        let indexes = [&self.tool_index, &self.prompt_index, &self.resource_index, &self.template_index];
        indexes.into_iter().all(HashMap::is_empty)
    }

    /// The tool that is shown under this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Target> {
        self.tool_index.get(name)
    }

    /// The prompt that is shown under this name.
    pub(crate) fn prompt(&self, name: &str) -> Option<&Target> {
        self.prompt_index.get(name)
    }

    /// The resource of this URI.
    pub(crate) fn resource(&self, uri: &str) -> Option<&Target> {
        self.resource_index.get(uri)
    }

    /// The template of this text.
    pub(crate) fn template(&self, uri: &str) -> Option<&Target> {
        self.template_index.get(uri)
    }

    /// The template that a URI comes from: of those that fit, the one that says most of it; of several the first.
    pub(crate) fn fitting(&self, uri: &str) -> Option<&Target> {
        let fits = |it: &&String| literal(it, uri).is_some();
        let best = self.template_order.iter().filter(fits).rev().max_by_key(|it| literal(it, uri))?;
        self.template(best)
    }

    fn pages(&self, kind: Kind) -> &Pages {
        match kind {
            Kind::Tools => &self.tools,
            Kind::Prompts => &self.prompts,
            Kind::Resources => &self.resources,
            Kind::Templates => &self.templates,
        }
    }
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

fn definition(raw: &RawJson, name: &str, names: Names) -> Vec<u8> {
    match names {
        Names::Exposed => splice::named(raw, name),
        Names::Original => raw.as_bytes().to_vec(),
    }
}

#[derive(Default)]
struct Drafts {
    tools: Draft,
    prompts: Draft,
    resources: Draft,
    templates: Draft,
}

#[derive(Default)]
struct Draft {
    items: Vec<Vec<u8>>,
    order: Vec<String>,
    index: HashMap<String, Target>,
}

impl Draft {
    /// Adds an item unless its key is taken.
    fn add(&mut self, key: String, target: Target, definition: Vec<u8>) {
        if self.index.contains_key(&key) {
            return;
        }
        self.order.push(key.clone());
        self.index.insert(key, target);
        self.items.push(definition);
    }
}

impl Drafts {
    fn listing(self) -> Listing {
        let Drafts { tools, prompts, resources, templates } = self;
        Listing {
            tools: pages(Kind::Tools, &tools.items),
            prompts: pages(Kind::Prompts, &prompts.items),
            resources: pages(Kind::Resources, &resources.items),
            templates: pages(Kind::Templates, &templates.items),
            tool_index: tools.index,
            prompt_index: prompts.index,
            resource_index: resources.index,
            template_index: templates.index,
            template_order: templates.order,
        }
    }
}

fn pages(kind: Kind, items: &[Vec<u8>]) -> Pages {
    let mut hasher = blake3::Hasher::new();
    for item in items {
        hasher.update(&(item.len() as u64).to_le_bytes());
        hasher.update(item);
    }
    let hash = hasher.finalize();
    let parts = cut(items);
    let last = parts.len() - 1;
    let page = |(at, part): (usize, Range<usize>)| {
        let mut res = format!("\"{}\":[", kind.member()).into_bytes();
        for (at, item) in items[part].iter().enumerate() {
            if at > 0 {
                res.push(b',');
            }
            res.extend_from_slice(item);
        }
        res.push(b']');
        if at < last {
            res.extend_from_slice(format!(",\"nextCursor\":\"{}.{}\"", short(&hash), at + 1).as_bytes());
        }
        Bytes::from(res)
    };
    Pages { pages: parts.into_iter().enumerate().map(page).collect(), hash }
}

/// Where the pages begin and end: each has an item at least, and there is one page at least.
fn cut(items: &[Vec<u8>]) -> Vec<Range<usize>> {
    let mut res = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, item) in items.iter().enumerate() {
        if at > start && bytes + item.len() > PAGE_BYTES {
            res.push(start..at);
            (start, bytes) = (at, 0);
        }
        bytes += item.len();
    }
    res.push(start..items.len());
    res
}

fn short(hash: &blake3::Hash) -> String {
    hash.as_bytes()[..12].iter().fold(String::with_capacity(24), |mut res, it| {
        write!(res, "{it:02x}").expect("a String takes everything");
        res
    })
}

#[cfg(test)]
mod tests;
