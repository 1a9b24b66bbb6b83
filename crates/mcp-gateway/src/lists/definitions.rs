//! What there is to show in one generation, as text: made once for all who see a part of it.
//!
//! Definitions stand behind each other in one buffer with commas between, so that a list that leaves nothing out is one
//! piece of it, and what somebody sees of it is no more than where it stands.

use std::ops::Range;
use std::sync::Arc;

use mcp_model::{RawJson, ServerId};
use mcp_registry::{Catalog, ExposedName};

use crate::access::scope::Names;
use crate::lists::gateway_resources::OwnResource;
use crate::protocol::json_splice;

/// Whose something is, and what it is called in the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Its server.
    pub(crate) server: ServerId,
    /// Its exposed name; of a resource the URI.
    pub(crate) name: String,
}

/// All there is, under the catalog's names or the servers' own. Each list has the catalog's order; the gateway's own
/// resources come last.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) tools: Items,
    pub(crate) prompts: Items,
    pub(crate) resources: Items,
    pub(crate) templates: Items,
}

/// The definitions of one list.
#[derive(Debug, Default)]
pub(crate) struct Items {
    text: Vec<u8>,
    items: Vec<Item>,
    /// The last one of a name.
    index: ahash::HashMap<Arc<str>, usize>,
}

/// One definition.
#[derive(Debug)]
struct Item {
    /// Where it stands in the text.
    range: Range<usize>,
    hash: blake3::Hash,
    /// By what it is asked for: the name that is shown, or the URI.
    key: Arc<str>,
    /// `None` for what is the gateway's own.
    target: Option<Target>,
    /// The one before it that is asked for in the same way.
    same: Option<usize>,
}

impl Shown {
    /// All that a catalog has.
    pub(crate) fn of(catalog: &Catalog, names: Names, own: &[OwnResource]) -> Shown {
        let name = |exposed: &ExposedName, original: &str| match names {
            Names::Exposed => exposed.as_str().to_owned(),
            Names::Original => original.to_owned(),
        };
        let mut res = Shown {
            tools: Items::default(),
            prompts: Items::default(),
            resources: Items::default(),
            templates: Items::default(),
        };
        for it in catalog.tools() {
            let target = Target { server: it.server.clone(), name: it.name.as_str().to_owned() };
            let shown = name(&it.name, &it.tool.name);
            res.tools.add(&shown, Some(target), &definition(&it.tool.raw, &shown, names));
        }
        for it in catalog.prompts() {
            let target = Target { server: it.server.clone(), name: it.name.as_str().to_owned() };
            let shown = name(&it.name, &it.prompt.name);
            res.prompts.add(&shown, Some(target), &definition(&it.prompt.raw, &shown, names));
        }
        for it in catalog.resources() {
            let uri = it.resource.uri.to_string();
            let shown = name(&it.name, &it.resource.name);
            let target = Target { server: it.server.clone(), name: uri.clone() };
            res.resources.add(&uri, Some(target), &definition(&it.resource.raw, &shown, names));
        }
        for it in catalog.templates() {
            let uri = it.template.uri_template.to_string();
            let shown = name(&it.name, &it.template.name);
            let target = Target { server: it.server.clone(), name: uri.clone() };
            res.templates.add(&uri, Some(target), &definition(&it.template.raw, &shown, names));
        }
        own.iter().for_each(|it| res.resources.add(it.uri(), None, it.definition().as_bytes()));
        res
    }
}

fn definition(raw: &RawJson, name: &str, names: Names) -> Vec<u8> {
    match names {
        Names::Exposed => json_splice::named(raw, name),
        Names::Original => raw.as_bytes().to_vec(),
    }
}

impl Items {
    fn add(&mut self, key: &str, target: Option<Target>, definition: &[u8]) {
        if !self.items.is_empty() {
            self.text.push(b',');
        }
        let start = self.text.len();
        self.text.extend_from_slice(definition);
        let key: Arc<str> = key.into();
        // What is the gateway's own is asked for elsewhere.
        let same = match &target {
            Some(_) => self.index.insert(Arc::clone(&key), self.items.len()),
            None => None,
        };
        let hash = blake3::hash(definition);
        self.items.push(Item { range: start..self.text.len(), hash, key, target, same });
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whose one is; `None` for the gateway's own.
    pub(crate) fn target(&self, at: usize) -> Option<&Target> {
        self.items[at].target.as_ref()
    }

    /// By what one is asked for.
    pub(crate) fn key(&self, at: usize) -> &str {
        &self.items[at].key
    }

    /// What one says, in short.
    pub(crate) fn hash(&self, at: usize) -> &blake3::Hash {
        &self.items[at].hash
    }

    /// How long one is, in bytes.
    pub(crate) fn bytes(&self, at: usize) -> usize {
        self.items[at].range.len()
    }

    /// All that are asked for in this way, the last one first.
    pub(crate) fn of_key(&self, key: &str) -> impl Iterator<Item = usize> {
        std::iter::successors(self.index.get(key).copied(), |at| self.items[*at].same)
    }

    /// Those before this one that are asked for in the same way.
    pub(crate) fn before(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.items[at].same, |at| self.items[*at].same)
    }

    /// The text of several that stand behind each other, with commas between.
    pub(crate) fn text(&self, range: Range<usize>) -> &[u8] {
        match range.is_empty() {
            true => &[],
            false => &self.text[self.items[range.start].range.start..self.items[range.end - 1].range.end],
        }
    }
}
