//! The definitions of one generation as text, shared by all scopes.
//!
//! The definitions of a list are in one buffer, separated by commas. An unfiltered list is a slice of the buffer, and
//! a filtered one consists of ranges.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use mcp_host_model::{HeaderArgument, Method, RawJson, ServerId};
use mcp_host_registry::{Catalog, ExposedName, prompt_for_clients, resource_for_clients, tool_for_clients};

use crate::access::scope::NameStyle;
use crate::lists::exposed_uri::UriOwners;
use crate::lists::gateway_resources::GatewayResource;
use crate::protocol::json_splice;
use crate::protocol::message_writer::json_string;

/// A list of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CatalogList {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl CatalogList {
    /// All lists. Each is at the index `list as usize`.
    pub(crate) const ALL: [CatalogList; 4] =
        [CatalogList::Tools, CatalogList::Prompts, CatalogList::Resources, CatalogList::Templates];

    /// The member of the result that holds the list.
    pub(crate) fn result_member(self) -> &'static str {
        match self {
            CatalogList::Tools => "tools",
            CatalogList::Prompts => "prompts",
            CatalogList::Resources => "resources",
            CatalogList::Templates => "resourceTemplates",
        }
    }

    /// The method of the notification about a change. Changed templates are reported as resources.
    pub(crate) fn change_notification(self) -> Method {
        match self {
            CatalogList::Tools => Method::ToolListChanged,
            CatalogList::Prompts => Method::PromptListChanged,
            CatalogList::Resources | CatalogList::Templates => Method::ResourceListChanged,
        }
    }
}

/// What a listed definition is for: a server and a name in the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CatalogTarget {
    pub(crate) server: ServerId,
    /// The exposed name; for a resource the server's URI.
    pub(crate) name: String,
}

/// All definitions, under exposed or original names, in the order of the catalog. The gateway's own resources are
/// last.
#[derive(Debug)]
pub(crate) struct Definitions {
    lists: [DefinitionList; 4],
    /// Empty for original names, which are those of one server.
    uri_owners: UriOwners,
}

/// The definitions of one list.
#[derive(Debug, Default)]
pub(crate) struct DefinitionList {
    text: Vec<u8>,
    entries: Vec<DefinitionEntry>,
    /// The position of the last entry with each key. A key is a listed name, or an exposed URI.
    index: ahash::HashMap<Arc<str>, usize>,
    /// The arguments that headers repeat, by the position of the tool. Most tools have none.
    header_arguments: ahash::HashMap<usize, Vec<HeaderArgument>>,
}

/// One definition.
#[derive(Debug)]
pub(crate) struct DefinitionEntry {
    /// Its range in the text.
    range: Range<usize>,
    pub(crate) hash: blake3::Hash,
    /// `None` for a resource of the gateway.
    pub(crate) target: Option<CatalogTarget>,
    /// The previous entry with the same key.
    previous: Option<usize>,
}

impl DefinitionEntry {
    /// Its size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }
}

impl Definitions {
    /// All definitions of a catalog.
    pub(crate) fn of(
        catalog: &Catalog,
        names: NameStyle,
        gateway_resources: &[GatewayResource],
    ) -> Definitions {
        let uri_owners = match names {
            NameStyle::Exposed => UriOwners::of(catalog),
            NameStyle::Original => UriOwners::default(),
        };
        let [mut tools, mut prompts, mut resources, mut templates] = <[DefinitionList; 4]>::default();
        for item in catalog.tools() {
            let definition = uri_owners.expose_tool(&tool_for_clients(&item.tool), &item.server);
            // No client expects the headers of a tool with an invalid mark.
            let repeated = HeaderArgument::all_in(&item.tool.input_schema).unwrap_or_default();
            if !repeated.is_empty() {
                tools.header_arguments.insert(tools.entries.len(), repeated);
            }
            tools.add_item(names, &item.server, &item.name, &item.tool.name, None, &definition);
        }
        for item in catalog.prompts() {
            let definition = prompt_for_clients(&item.prompt.raw);
            prompts.add_item(names, &item.server, &item.name, &item.prompt.name, None, &definition);
        }
        for item in catalog.resources() {
            let resource = &item.resource;
            let uri = ExposedUri::new("uri", &resource.uri, &item.server, &uri_owners);
            resources.add_item(
                names,
                &item.server,
                &item.name,
                &resource.name,
                Some(uri),
                &resource_for_clients(&resource.raw),
            );
        }
        for item in catalog.templates() {
            let template = &item.template;
            let uri = ExposedUri::new("uriTemplate", &template.uri_template, &item.server, &uri_owners);
            templates.add_item(
                names,
                &item.server,
                &item.name,
                &template.name,
                Some(uri),
                &resource_for_clients(&template.raw),
            );
        }
        for resource in gateway_resources {
            resources.add(resource.uri().into(), None, resource.definition().as_bytes());
        }
        Definitions { lists: [tools, prompts, resources, templates], uri_owners }
    }

    /// The definitions of one list.
    pub(crate) fn list(&self, kind: CatalogList) -> &DefinitionList {
        &self.lists[kind as usize]
    }

    /// The servers whose URIs are exposed unchanged.
    pub(crate) fn uri_owners(&self) -> &UriOwners {
        &self.uri_owners
    }
}

/// The URI of a resource, or the URI template of a template.
struct ExposedUri<'a> {
    /// The member of the definition that contains it.
    member: &'static str,
    /// The server's URI.
    own: &'a str,
    exposed: Cow<'a, str>,
}

impl<'a> ExposedUri<'a> {
    fn new(member: &'static str, own: &'a str, server: &ServerId, owners: &UriOwners) -> ExposedUri<'a> {
        ExposedUri { member, own, exposed: owners.exposed_uri(own, server) }
    }

    /// The definition with the exposed URI.
    fn expose(&self, definition: &RawJson) -> RawJson {
        match &self.exposed {
            Cow::Borrowed(_) => definition.clone(),
            Cow::Owned(exposed) => json_splice::replace_values(definition, |key, _| {
                (key == self.member).then(|| json_string(exposed))
            }),
        }
    }
}

impl DefinitionList {
    /// Adds an item of the catalog. Its key is its exposed URI, or its listed name if it has no URI.
    fn add_item(
        &mut self,
        names: NameStyle,
        server: &ServerId,
        exposed: &ExposedName,
        original: &str,
        uri: Option<ExposedUri<'_>>,
        raw: &RawJson,
    ) {
        let raw = &uri.as_ref().map_or_else(|| raw.clone(), |uri| uri.expose(raw));
        let (listed, definition) = match names {
            NameStyle::Exposed => (exposed.as_str(), json_splice::with_name(raw, exposed.as_str())),
            NameStyle::Original => (original, raw.clone().into_bytes()),
        };
        let key = uri.as_ref().map_or(listed, |uri| &uri.exposed).into();
        let name = uri.map_or(exposed.as_str(), |uri| uri.own).to_owned();
        self.add(key, Some(CatalogTarget { server: server.clone(), name }), &definition);
    }

    /// Adds a definition.
    fn add(&mut self, key: Arc<str>, target: Option<CatalogTarget>, definition: &[u8]) {
        if !self.entries.is_empty() {
            self.text.push(b',');
        }
        let start = self.text.len();
        self.text.extend_from_slice(definition);
        // The gateway's own resources are looked up elsewhere.
        let previous = match &target {
            Some(_) => self.index.insert(key, self.entries.len()),
            None => None,
        };
        let hash = blake3::hash(definition);
        self.entries.push(DefinitionEntry { range: start..self.text.len(), hash, target, previous });
    }

    /// The arguments of the tool at this position that headers repeat.
    pub(crate) fn header_arguments(&self, at: usize) -> &[HeaderArgument] {
        self.header_arguments.get(&at).map_or(&[], |repeated| repeated)
    }

    /// The definitions in their order.
    pub(crate) fn entries(&self) -> &[DefinitionEntry] {
        &self.entries
    }

    /// The positions of all entries with this key, the last one first.
    pub(crate) fn find(&self, key: &str) -> impl Iterator<Item = usize> {
        std::iter::successors(self.index.get(key).copied(), |at| self.entries[*at].previous)
    }

    /// The positions of the earlier entries with the same key.
    pub(crate) fn earlier_with_key(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.entries[at].previous, |at| self.entries[*at].previous)
    }

    /// The text of consecutive entries, with commas between them.
    pub(crate) fn text(&self, range: Range<usize>) -> &[u8] {
        match &self.entries[range] {
            [] => &[],
            [first, .., last] => &self.text[first.range.start..last.range.end],
            [only] => &self.text[only.range.clone()],
        }
    }
}
