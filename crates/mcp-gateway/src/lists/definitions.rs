//! The definitions of one generation as text, shared by all scopes.
//!
//! The definitions of a list of one server are in one buffer, separated by commas. A list consists of ranges of these
//! buffers. A change of one server costs only its own definitions; the others are those of the previous generation.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use mcp_host_model::{HeaderArgument, Method, RawJson, ServerId};
use mcp_host_registry::{
    Catalog, ExposedName, ServerSlice, prompt_for_clients, resource_for_clients, tool_for_clients,
};

use crate::access::scope::NameStyle;
use crate::lists::exposed_uri::{ToolUris, UriOwners, find_tool_uris};
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
    catalog: Arc<Catalog>,
    names: NameStyle,
    servers: Vec<Arc<ServerDefinitions>>,
    lists: [DefinitionList; 4],
    /// Empty for original names, which are those of one server.
    uri_owners: UriOwners,
}

/// The definitions of one server. The next generation uses them again if nothing that they depend on has changed.
#[derive(Debug)]
struct ServerDefinitions {
    slice: Arc<ServerSlice>,
    /// The URIs of the user interfaces of its tools.
    tool_uris: ToolUris,
    /// The URIs of its items that are exposed with the server, because an earlier server has the same ones.
    foreign_uris: Vec<Box<str>>,
    lists: [Arc<DefinitionPart>; 4],
}

/// The definitions of one list.
#[derive(Debug, Default)]
pub(crate) struct DefinitionList {
    parts: Vec<Arc<DefinitionPart>>,
    /// The position of the first entry of each part.
    starts: Vec<usize>,
    len: usize,
    /// The position of the last entry with each key.
    keys: ahash::HashMap<Arc<str>, usize>,
    /// The position of the previous entry with the same key, by the position of an entry. Few keys are repeated.
    previous: ahash::HashMap<usize, usize>,
}

/// Consecutive definitions of a list: those of one server, or those of the gateway.
#[derive(Debug, Default)]
pub(crate) struct DefinitionPart {
    /// The definitions, separated by commas.
    text: Vec<u8>,
    entries: Vec<DefinitionEntry>,
    /// The arguments that headers repeat, by the position of the tool. Most tools have none.
    header_arguments: ahash::HashMap<usize, Vec<HeaderArgument>>,
    /// What is the same for all listings that show the whole part, computed by the first one.
    summary: OnceLock<PartSummary>,
}

/// What is known of a whole part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartSummary {
    /// The hash of all entries.
    pub(crate) hash: blake3::Hash,
    /// Whether all entries are for models.
    pub(crate) is_for_models: bool,
}

/// One definition.
#[derive(Debug)]
pub(crate) struct DefinitionEntry {
    /// Its range in the text of its part.
    range: Range<usize>,
    pub(crate) hash: blake3::Hash,
    /// `None` for a resource of the gateway.
    pub(crate) target: Option<CatalogTarget>,
    /// The original name, or the exposed URI. `None` for an exposed name, which the catalog finds, and for a resource
    /// of the gateway, which is looked up elsewhere.
    key: Option<Arc<str>>,
    /// Whether it is for models; a tool may be for apps only.
    pub(crate) is_for_models: bool,
}

impl Definitions {
    /// All definitions of a catalog. Those of unchanged servers are taken from `before`, which has the same names.
    pub(crate) fn of(
        catalog: &Arc<Catalog>,
        names: NameStyle,
        gateway_resources: &[GatewayResource],
        before: Option<&Definitions>,
    ) -> Definitions {
        let known = before.map_or(&[][..], |before| &before.servers).iter();
        let known: ahash::HashMap<*const ServerSlice, &Arc<ServerDefinitions>> =
            known.map(|server| (Arc::as_ptr(&server.slice), server)).collect();
        let known = |slice: &Arc<ServerSlice>| known.get(&Arc::as_ptr(slice)).copied();
        let tool_uris: Vec<ToolUris> = match names {
            NameStyle::Exposed => {
                let uris =
                    |slice| known(slice).map_or_else(|| find_tool_uris(slice), |it| it.tool_uris.clone());
                catalog.slices().iter().map(uris).collect()
            }
            NameStyle::Original => Vec::new(),
        };
        let slices = || catalog.slices().iter().zip(&tool_uris).map(|(slice, uris)| (&**slice, uris));
        let uri_owners = UriOwners::of(slices);
        let servers: Vec<Arc<ServerDefinitions>> = (catalog.slices().iter().enumerate())
            .map(|(at, slice)| {
                let tool_uris = tool_uris.get(at).cloned().unwrap_or_default();
                let foreign_uris = uri_owners.foreign_uris(slice, &tool_uris);
                match known(slice).filter(|known| known.foreign_uris == foreign_uris) {
                    Some(known) => Arc::clone(known),
                    None => {
                        let lists = define_items(slice, names, &uri_owners).map(Arc::new);
                        let slice = Arc::clone(slice);
                        Arc::new(ServerDefinitions { slice, tool_uris, foreign_uris, lists })
                    }
                }
            })
            .collect();
        let lists = CatalogList::ALL.map(|kind| {
            let mut list = DefinitionList::default();
            servers.iter().for_each(|server| list.add(&server.lists[kind as usize]));
            if kind == CatalogList::Resources {
                let mut own = DefinitionPart::default();
                for resource in gateway_resources {
                    own.add(None, None, resource.definition().as_bytes());
                }
                list.add(&Arc::new(own));
            }
            list
        });
        Definitions { catalog: Arc::clone(catalog), names, servers, lists, uri_owners }
    }

    /// The catalog that has the definitions.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The definitions of one list.
    pub(crate) fn list(&self, kind: CatalogList) -> &DefinitionList {
        &self.lists[kind as usize]
    }

    /// The positions of all entries with this key, the last one first. A key is a listed name, or an exposed URI.
    pub(crate) fn find(&self, kind: CatalogList, key: &str) -> impl Iterator<Item = usize> {
        let by_name = match (self.names, kind) {
            (NameStyle::Exposed, CatalogList::Tools) => self.catalog.tool_position(key),
            (NameStyle::Exposed, CatalogList::Prompts) => self.catalog.prompt_position(key),
            (NameStyle::Exposed, CatalogList::Resources | CatalogList::Templates)
            | (NameStyle::Original, _) => None,
        };
        let list = self.list(kind);
        by_name.into_iter().chain(list.with_earlier(list.keys.get(key).copied()))
    }

    /// Whether each server has the definitions that it has in an earlier generation.
    #[cfg(test)]
    pub(crate) fn shared_with(&self, before: &Definitions) -> Vec<bool> {
        let is_shared = |own| before.servers.iter().any(|other| Arc::ptr_eq(own, other));
        self.servers.iter().map(is_shared).collect()
    }

    /// The servers whose URIs are exposed unchanged.
    pub(crate) fn uri_owners(&self) -> &UriOwners {
        &self.uri_owners
    }
}

/// The definitions of a server's items, by list.
fn define_items(slice: &ServerSlice, names: NameStyle, uri_owners: &UriOwners) -> [DefinitionPart; 4] {
    let server = slice.server();
    let [mut tools, mut prompts, mut resources, mut templates] = <[DefinitionPart; 4]>::default();
    for item in slice.tools() {
        let definition = uri_owners.expose_tool(&tool_for_clients(&item.tool), server);
        // No client expects the headers of a tool with an invalid mark.
        let repeated = HeaderArgument::all_in(&item.tool.input_schema).unwrap_or_default();
        if !repeated.is_empty() {
            tools.header_arguments.insert(tools.entries.len(), repeated);
        }
        let original = &item.tool.name;
        tools.add_item(names, CatalogItem { server, exposed: &item.name, original, uri: None }, &definition);
        if let Some(entry) = tools.entries.last_mut() {
            entry.is_for_models = item.tool.is_for_models();
        }
    }
    for item in slice.prompts() {
        let definition = prompt_for_clients(&item.prompt.raw);
        let original = &item.prompt.name;
        prompts.add_item(
            names,
            CatalogItem { server, exposed: &item.name, original, uri: None },
            &definition,
        );
    }
    for item in slice.resources() {
        let resource = &item.resource;
        let uri = Some(ExposedUri::new("uri", &resource.uri, server, uri_owners));
        let definition = resource_for_clients(&resource.raw);
        let original = &resource.name;
        resources.add_item(names, CatalogItem { server, exposed: &item.name, original, uri }, &definition);
    }
    for item in slice.templates() {
        let template = &item.template;
        let uri = Some(ExposedUri::new("uriTemplate", &template.uri_template, server, uri_owners));
        let definition = resource_for_clients(&template.raw);
        let original = &template.name;
        templates.add_item(names, CatalogItem { server, exposed: &item.name, original, uri }, &definition);
    }
    [tools, prompts, resources, templates]
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

/// An item of the catalog that is added to a list.
struct CatalogItem<'a> {
    server: &'a ServerId,
    /// Its name in the catalog.
    exposed: &'a ExposedName,
    /// The server's name for it.
    original: &'a str,
    /// `None` for a tool or prompt.
    uri: Option<ExposedUri<'a>>,
}

impl DefinitionPart {
    /// Adds an item with its definition. Its key is its exposed URI, or its listed name if it has no URI.
    fn add_item(&mut self, names: NameStyle, item: CatalogItem<'_>, raw: &RawJson) {
        let CatalogItem { server, exposed, original, uri } = item;
        let raw = &uri.as_ref().map_or_else(|| raw.clone(), |uri| uri.expose(raw));
        let (listed, definition) = match names {
            NameStyle::Exposed => (None, json_splice::with_name(raw, exposed.as_str())),
            NameStyle::Original => (Some(original), raw.clone().into_bytes()),
        };
        let key = uri.as_ref().map(|uri| &*uri.exposed).or(listed).map(Arc::from);
        let name = uri.map_or(exposed.as_str(), |uri| uri.own).to_owned();
        self.add(key, Some(CatalogTarget { server: server.clone(), name }), &definition);
    }

    /// Adds a definition.
    fn add(&mut self, key: Option<Arc<str>>, target: Option<CatalogTarget>, definition: &[u8]) {
        if !self.entries.is_empty() {
            self.text.push(b',');
        }
        let start = self.text.len();
        self.text.extend_from_slice(definition);
        let (range, hash) = (start..self.text.len(), blake3::hash(definition));
        self.entries.push(DefinitionEntry { range, hash, target, key, is_for_models: true });
    }

    /// The entries in their order.
    pub(crate) fn entries(&self) -> &[DefinitionEntry] {
        &self.entries
    }

    /// The server of its entries; `None` for the gateway's own.
    pub(crate) fn server(&self) -> Option<&ServerId> {
        self.entries.first()?.target.as_ref().map(|target| &target.server)
    }

    /// What is known of the whole part.
    pub(crate) fn summary(&self) -> PartSummary {
        *self.summary.get_or_init(|| PartSummary {
            hash: hash_of(&self.entries),
            is_for_models: self.entries.iter().all(|entry| entry.is_for_models),
        })
    }

    /// The number of entries at the start of `range` that fit into `max_bytes` together, with a comma after each.
    pub(crate) fn count_fitting(&self, range: Range<usize>, max_bytes: usize) -> usize {
        let Some([first, ..]) = self.entries.get(range.clone()) else { return 0 };
        let start = first.range.start;
        self.entries[range].partition_point(|entry| entry.range.end + 1 - start <= max_bytes)
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

impl DefinitionList {
    /// Adds a part at the end.
    fn add(&mut self, part: &Arc<DefinitionPart>) {
        if part.entries.is_empty() {
            return;
        }
        for (at, entry) in part.entries.iter().enumerate() {
            let Some(key) = &entry.key else { continue };
            if let Some(previous) = self.keys.insert(Arc::clone(key), self.len + at) {
                self.previous.insert(self.len + at, previous);
            }
        }
        self.starts.push(self.len);
        self.len += part.entries.len();
        self.parts.push(Arc::clone(part));
    }

    /// The number of definitions.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The definition at a position.
    pub(crate) fn entry(&self, at: usize) -> &DefinitionEntry {
        let (part, at) = self.locate(at);
        &self.parts[part].entries[at]
    }

    /// The arguments of the tool at this position that headers repeat.
    pub(crate) fn header_arguments(&self, at: usize) -> &[HeaderArgument] {
        let (part, at) = self.locate(at);
        self.parts[part].header_arguments.get(&at).map_or(&[], |repeated| repeated)
    }

    /// The parts, each with the position of its first entry.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &DefinitionPart)> {
        self.starts.iter().copied().zip(self.parts.iter().map(|part| &**part))
    }

    /// Whether several entries have the same key.
    pub(crate) fn has_repeated_keys(&self) -> bool {
        !self.previous.is_empty()
    }

    /// The number of the part that has the entry at a position, and the position in it.
    pub(crate) fn locate(&self, at: usize) -> (usize, usize) {
        let part = self.starts.partition_point(|start| *start <= at) - 1;
        (part, at - self.starts[part])
    }

    /// The definitions in their order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &DefinitionEntry> {
        self.parts.iter().flat_map(|part| &part.entries)
    }

    /// The positions of the earlier entries with the same key.
    pub(crate) fn earlier_with_key(&self, at: usize) -> impl Iterator<Item = usize> {
        self.with_earlier(self.previous.get(&at).copied())
    }

    /// A position, and those of the earlier entries with the same key.
    fn with_earlier(&self, at: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(at, |at| self.previous.get(at).copied())
    }
}

/// The hash of entries.
pub(crate) fn hash_of<'a>(entries: impl IntoIterator<Item = &'a DefinitionEntry>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for entry in entries {
        hasher.update(entry.hash.as_bytes());
    }
    hasher.finalize()
}
