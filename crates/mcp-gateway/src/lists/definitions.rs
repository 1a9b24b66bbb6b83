//! The definitions of one generation as text, shared by all scopes.
//!
//! The definitions of a list are in one buffer, separated by commas. An unfiltered list is a slice of the buffer, and
//! a filtered one consists of ranges.

use std::ops::Range;
use std::sync::Arc;

use mcp_model::{RawJson, ServerId};
use mcp_registry::{Catalog, ExposedName};

use crate::access::scope::NameStyle;
use crate::lists::gateway_resources::GatewayResource;
use crate::protocol::json_splice;

/// The server and the catalog name of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) server: ServerId,
    /// The exposed name; for a resource its URI.
    pub(crate) name: String,
}

/// All definitions, under exposed or original names, in the order of the catalog. The gateway's own resources are
/// last.
#[derive(Debug)]
pub(crate) struct Definitions {
    pub(crate) tools: DefinitionList,
    pub(crate) prompts: DefinitionList,
    pub(crate) resources: DefinitionList,
    pub(crate) templates: DefinitionList,
}

/// The definitions of one list.
#[derive(Debug, Default)]
pub(crate) struct DefinitionList {
    text: Vec<u8>,
    items: Vec<DefinitionEntry>,
    /// The last entry of each key.
    index: ahash::HashMap<Arc<str>, usize>,
}

/// One definition.
#[derive(Debug)]
struct DefinitionEntry {
    /// Its range in the text.
    range: Range<usize>,
    hash: blake3::Hash,
    /// Its lookup key: the listed name, or the URI.
    key: Arc<str>,
    /// `None` for a resource of the gateway.
    target: Option<Target>,
    /// The previous entry with the same key.
    same: Option<usize>,
}

impl Definitions {
    /// All definitions of a catalog.
    pub(crate) fn of(catalog: &Catalog, names: NameStyle, own: &[GatewayResource]) -> Definitions {
        let name = |exposed: &ExposedName, original: &str| match names {
            NameStyle::Exposed => exposed.as_str().to_owned(),
            NameStyle::Original => original.to_owned(),
        };
        let mut res = Definitions {
            tools: DefinitionList::default(),
            prompts: DefinitionList::default(),
            resources: DefinitionList::default(),
            templates: DefinitionList::default(),
        };
        for it in catalog.tools() {
            let target = Target { server: it.server.clone(), name: it.name.as_str().to_owned() };
            let definitions = name(&it.name, &it.tool.name);
            res.tools.add(&definitions, Some(target), &definition(&it.tool.raw, &definitions, names));
        }
        for it in catalog.prompts() {
            let target = Target { server: it.server.clone(), name: it.name.as_str().to_owned() };
            let definitions = name(&it.name, &it.prompt.name);
            res.prompts.add(&definitions, Some(target), &definition(&it.prompt.raw, &definitions, names));
        }
        for it in catalog.resources() {
            let uri = it.resource.uri.to_string();
            let definitions = name(&it.name, &it.resource.name);
            let target = Target { server: it.server.clone(), name: uri.clone() };
            res.resources.add(&uri, Some(target), &definition(&it.resource.raw, &definitions, names));
        }
        for it in catalog.templates() {
            let uri = it.template.uri_template.to_string();
            let definitions = name(&it.name, &it.template.name);
            let target = Target { server: it.server.clone(), name: uri.clone() };
            res.templates.add(&uri, Some(target), &definition(&it.template.raw, &definitions, names));
        }
        own.iter().for_each(|it| res.resources.add(it.uri(), None, it.definition().as_bytes()));
        res
    }
}

fn definition(raw: &RawJson, name: &str, names: NameStyle) -> Vec<u8> {
    match names {
        NameStyle::Exposed => json_splice::with_name(raw, name),
        NameStyle::Original => raw.as_bytes().to_vec(),
    }
}

impl DefinitionList {
    fn add(&mut self, key: &str, target: Option<Target>, definition: &[u8]) {
        if !self.items.is_empty() {
            self.text.push(b',');
        }
        let start = self.text.len();
        self.text.extend_from_slice(definition);
        let key: Arc<str> = key.into();
        // The gateway's own resources are looked up elsewhere.
        let same = match &target {
            Some(_) => self.index.insert(Arc::clone(&key), self.items.len()),
            None => None,
        };
        let hash = blake3::hash(definition);
        self.items.push(DefinitionEntry { range: start..self.text.len(), hash, key, target, same });
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The target of an entry; `None` for a resource of the gateway.
    pub(crate) fn target(&self, at: usize) -> Option<&Target> {
        self.items[at].target.as_ref()
    }

    /// The key of an entry.
    pub(crate) fn key(&self, at: usize) -> &str {
        &self.items[at].key
    }

    /// The hash of an entry.
    pub(crate) fn hash(&self, at: usize) -> &blake3::Hash {
        &self.items[at].hash
    }

    /// The size of an entry in bytes.
    pub(crate) fn bytes(&self, at: usize) -> usize {
        self.items[at].range.len()
    }

    /// All entries with this key, the last one first.
    pub(crate) fn find(&self, key: &str) -> impl Iterator<Item = usize> {
        std::iter::successors(self.index.get(key).copied(), |at| self.items[*at].same)
    }

    /// The earlier entries with the same key.
    pub(crate) fn before(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.items[at].same, |at| self.items[*at].same)
    }

    /// The text of consecutive entries, with commas between them.
    pub(crate) fn text(&self, range: Range<usize>) -> &[u8] {
        if range.is_empty() {
            return &[];
        }
        &self.text[self.items[range.start].range.start..self.items[range.end - 1].range.end]
    }
}
