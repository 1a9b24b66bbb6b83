//! Exposed URIs: the URIs of resources that clients receive.
//!
//! A URI is exposed unchanged. If an earlier server has the same one, a fragment with the server is added, so that a
//! client can read each of them: `file:///notes.md#mcp-host-server=files`. The URIs of a skill must not have fragments,
//! and relative links inside it must work, so they have the server at the start:
//! `skill://mcp-host-server=files/notes/SKILL.md`.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_host_model::internal::JsonCursor;
use mcp_host_model::{RawJson, ServerId};
use mcp_host_registry::ServerSlice;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::protocol::json_splice;
use crate::protocol::message_writer::json_string;

/// The text before the server in an exposed URI.
const SERVER_MARKER: &str = "mcp-host-server=";

/// The characters of a server's id that are encoded.
const ENCODED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The members of `_meta` that contain the URI of a tool's user interface: MCP Apps, its deprecated form, and the Apps
/// SDK of OpenAI.
const UI_URI_MEMBERS: [(&str, Option<&str>); 3] =
    [("ui", Some("resourceUri")), ("ui/resourceUri", None), ("openai/outputTemplate", None)];

/// Adds the server to a URI, as a fragment.
pub(crate) fn with_server(uri: &str, server: &ServerId) -> String {
    let separator = if uri.contains('#') { '&' } else { '#' };
    format!("{uri}{separator}{SERVER_MARKER}{}", encode_server(server))
}

/// Splits an exposed URI that names a server, in either form, into the server's URI and the result of
/// [`encode_server`].
pub(crate) fn split_server(uri: &str) -> Option<(Cow<'_, str>, &str)> {
    if let Some((own, server)) = split_authority(uri) {
        return Some((own.into(), server));
    }
    let (start, server) = uri.rsplit_once(SERVER_MARKER)?;
    Some((start.strip_suffix(['#', '&'])?.into(), server))
}

/// Adds the server to the URI of a skill or of its file, at the start. `None` if the URI has no authority.
pub(crate) fn with_server_authority(uri: &str, server: &ServerId) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    Some(format!("{scheme}://{SERVER_MARKER}{}/{rest}", encode_server(server)))
}

/// Splits a URI of [`with_server_authority`] into the server's URI and the result of [`encode_server`].
pub(crate) fn split_authority(uri: &str) -> Option<(String, &str)> {
    let (scheme, rest) = uri.split_once("://")?;
    let (server, rest) = rest.strip_prefix(SERVER_MARKER)?.split_once('/')?;
    Some((format!("{scheme}://{rest}"), server))
}

/// Encodes a server's id as a part of a URI.
pub(crate) fn encode_server(server: &ServerId) -> Cow<'_, str> {
    utf8_percent_encode(server.as_str(), ENCODED_CHARACTERS).into()
}

/// The servers whose URIs are exposed unchanged: the first one with each URI.
#[derive(Debug, Default)]
pub(crate) struct UriOwners(ahash::HashMap<String, ServerId>);

impl UriOwners {
    /// The owners of the resources, templates and user interfaces of these servers.
    pub(crate) fn of<'a, I: Iterator<Item = (&'a ServerSlice, &'a ToolUris)>>(
        servers: impl Fn() -> I,
    ) -> UriOwners {
        let mut owners = UriOwners::default();
        let mut add = |uri: &str, server: &ServerId| {
            if !owners.0.contains_key(uri) {
                owners.0.insert(uri.to_owned(), server.clone());
            }
        };
        for (slice, _) in servers() {
            slice.resources().iter().for_each(|item| add(&item.resource.uri, &item.server));
        }
        for (slice, _) in servers() {
            slice.templates().iter().for_each(|item| add(&item.template.uri_template, &item.server));
        }
        for (slice, tool_uris) in servers() {
            tool_uris.iter().for_each(|uri| add(uri, slice.server()));
        }
        owners
    }

    /// The URIs of a server's items that another server keeps unchanged.
    pub(crate) fn foreign_uris(&self, slice: &ServerSlice, tool_uris: &ToolUris) -> Vec<Box<str>> {
        let resources = slice.resources().iter().map(|item| &*item.resource.uri);
        let templates = slice.templates().iter().map(|item| &*item.template.uri_template);
        let uris = resources.chain(templates).chain(tool_uris.iter().map(|uri| &**uri));
        let is_foreign = |uri: &&str| self.get(uri).is_some_and(|owner| owner != slice.server());
        uris.filter(is_foreign).map(Box::from).collect()
    }

    /// The owner of a URI.
    pub(crate) fn get(&self, uri: &str) -> Option<&ServerId> {
        self.0.get(uri)
    }

    /// The exposed URI of a server's resource.
    pub(crate) fn exposed_uri<'a>(&self, uri: &'a str, server: &ServerId) -> Cow<'a, str> {
        match self.get(uri) {
            Some(owner) if owner != server => with_server(uri, server).into(),
            Some(_) | None => uri.into(),
        }
    }

    /// Replaces the URIs of a user interface in a tool's definition by exposed ones.
    pub(crate) fn expose_tool(&self, definition: &RawJson, server: &ServerId) -> RawJson {
        replace_uris(definition, |uri| match self.exposed_uri(uri, server) {
            Cow::Borrowed(_) => None,
            Cow::Owned(exposed) => Some(exposed),
        })
    }
}

/// The URIs of the user interfaces of a server's tools.
pub(crate) type ToolUris = Arc<[Box<str>]>;

/// Finds the URIs of the user interfaces of a server's tools.
pub(crate) fn find_tool_uris(slice: &ServerSlice) -> ToolUris {
    let uris = slice.tools().iter().flat_map(|item| find_uris(&item.tool.raw));
    uris.map(|uri| uri.text.into()).collect()
}

/// A URI in a JSON text.
struct UriString<'a> {
    /// The string with its quotes, a slice of the JSON text.
    json: &'a str,
    text: Cow<'a, str>,
}

/// Replaces the URIs for which `exposed` returns another one: those of resource links, embedded resources, contents of
/// resources, and user interfaces.
pub(crate) fn replace_uris(object: &RawJson, exposed: impl FnMut(&str) -> Option<String>) -> RawJson {
    replace_found(object, find_uris(object), exposed)
}

/// Replaces those of the URIs in `found` for which `exposed` returns another one.
fn replace_found(
    object: &RawJson,
    found: Vec<UriString<'_>>,
    mut exposed: impl FnMut(&str) -> Option<String>,
) -> RawJson {
    let replaced = found.into_iter().filter_map(|uri| Some((uri.json, json_string(&exposed(&uri.text)?))));
    json_splice::replace_slices(object, replaced)
}

/// Replaces the URIs for which `exposed` returns another one: those of a skill and its files, also as the result of
/// `skills/get`, and those in the result of `resources/directory/read`.
pub(crate) fn replace_skill_uris(object: &RawJson, exposed: impl Fn(&str) -> Option<String>) -> RawJson {
    let mut found = Vec::new();
    // What has another form contains no URIs.
    let _ = read_members(&mut JsonCursor::new(object.as_str()), |name, cursor| match name {
        "skill" => read_members(cursor, |name, cursor| read_skill_member(name, cursor, &mut found)),
        _ => read_skill_member(name, cursor, &mut found),
    });
    replace_found(object, found, exposed)
}

/// Reads a member of a skill, or of the result of `resources/directory/read`.
fn read_skill_member<'a>(
    name: &str,
    cursor: &mut JsonCursor<'a>,
    found: &mut Vec<UriString<'a>>,
) -> serde_json::Result<()> {
    match name {
        "uri" => read_uri(cursor, found),
        "resources" => read_blocks(cursor, found),
        _ => cursor.skip_value().map(drop),
    }
}

/// Finds the URIs in a result or a tool's definition, in their order.
fn find_uris(object: &RawJson) -> Vec<UriString<'_>> {
    let mut found = Vec::new();
    // What has another form contains no URIs.
    let _ = read_members(&mut JsonCursor::new(object.as_str()), |name, cursor| match name {
        // A task of 2026-07-28 contains its result.
        "result" => read_members(cursor, |name, cursor| read_member(name, cursor, &mut found)),
        _ => read_member(name, cursor, &mut found),
    });
    found
}

/// Reads a member of a result or a tool's definition.
fn read_member<'a>(
    name: &str,
    cursor: &mut JsonCursor<'a>,
    found: &mut Vec<UriString<'a>>,
) -> serde_json::Result<()> {
    match name {
        "content" | "contents" => read_blocks(cursor, found),
        "messages" if cursor.peek_byte() == Some(b'[') => cursor.read_array(|cursor| {
            read_members(cursor, |name, cursor| match name {
                "content" => read_blocks(cursor, found),
                _ => cursor.skip_value().map(drop),
            })
        }),
        "_meta" => read_members(cursor, |name, cursor| {
            match UI_URI_MEMBERS.iter().find(|(member, _)| *member == name) {
                Some((_, None)) => read_uri(cursor, found),
                Some((_, Some(inner))) => read_members(cursor, |name, cursor| match name == *inner {
                    true => read_uri(cursor, found),
                    false => cursor.skip_value().map(drop),
                }),
                None => cursor.skip_value().map(drop),
            }
        }),
        _ => cursor.skip_value().map(drop),
    }
}

/// Reads a content block, or a list of them.
fn read_blocks<'a>(cursor: &mut JsonCursor<'a>, found: &mut Vec<UriString<'a>>) -> serde_json::Result<()> {
    match cursor.peek_byte() {
        Some(b'[') => cursor.read_array(|cursor| read_block(cursor, found)),
        _ => read_block(cursor, found),
    }
}

/// Reads a content block: a link has a URI, and an embedded resource contains an object that has one.
fn read_block<'a>(cursor: &mut JsonCursor<'a>, found: &mut Vec<UriString<'a>>) -> serde_json::Result<()> {
    read_members(cursor, |name, cursor| match name {
        "uri" => read_uri(cursor, found),
        "resource" => read_members(cursor, |name, cursor| match name {
            "uri" => read_uri(cursor, found),
            _ => cursor.skip_value().map(drop),
        }),
        _ => cursor.skip_value().map(drop),
    })
}

/// Reads the members of an object. Skips any other value.
fn read_members<'a>(
    cursor: &mut JsonCursor<'a>,
    mut member: impl FnMut(&str, &mut JsonCursor<'a>) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    match cursor.peek_byte() {
        Some(b'{') => cursor.read_object(|name, cursor| member(&name, cursor)).map(drop),
        _ => cursor.skip_value().map(drop),
    }
}

/// Reads a URI. Skips a value that is not a string.
fn read_uri<'a>(cursor: &mut JsonCursor<'a>, found: &mut Vec<UriString<'a>>) -> serde_json::Result<()> {
    let value = cursor.skip_value()?;
    found.extend(value.to_text().map(|text| UriString { json: value.as_str(), text }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(id: &str) -> ServerId {
        ServerId::parse(id).unwrap()
    }

    #[test]
    fn exposed_uri_names_its_server_and_is_read_back() {
        for (uri, id, want) in [
            ("ui://a/b.html", "files", "ui://a/b.html#mcp-host-server=files"),
            ("x:1#part", "my files", "x:1#part&mcp-host-server=my%20files"),
            ("x:1#mcp-host-server=a", "b#&", "x:1#mcp-host-server=a&mcp-host-server=b%23%26"),
        ] {
            let exposed = with_server(uri, &server(id));
            assert_eq!(exposed, want);
            assert_eq!(split_server(&exposed), Some((uri.into(), &*encode_server(&server(id)))));
        }
        for (uri, id, want) in [
            ("skill://a/SKILL.md", "files", "skill://mcp-host-server=files/a/SKILL.md"),
            ("file:///a/SKILL.md", "a/b", "file://mcp-host-server=a%2Fb//a/SKILL.md"),
        ] {
            let exposed = with_server_authority(uri, &server(id)).unwrap();
            assert_eq!(exposed, want);
            assert_eq!(split_server(&exposed), Some((uri.into(), &*encode_server(&server(id)))));
        }
        assert_eq!(with_server_authority("x:1", &server("a")), None);
        assert_eq!(split_server("x:mcp-host-server=a"), None);
        assert_eq!(split_server("x:1"), None);
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        let json = RawJson::parse(text.to_owned().into()).unwrap();
        let replaced = replace_uris(&json, |uri| (uri == "u:1").then(|| "U".to_owned()));
        assert_eq!(replaced.as_str(), want);
    }

    #[test]
    fn uris_of_skills_are_replaced() {
        for (text, want) in [
            (
                r#"{"frontmatter":{"uri":"u:1"},"resources":[{"uri":"u:2"},{"uri":"u:1"}],"uri":"u:1"}"#,
                r#"{"frontmatter":{"uri":"u:1"},"resources":[{"uri":"u:2"},{"uri":"U"}],"uri":"U"}"#,
            ),
            (
                r#"{"skill":{"uri":"u:1","resources":"dynamic"},"ttlMs":0}"#,
                r#"{"skill":{"uri":"U","resources":"dynamic"},"ttlMs":0}"#,
            ),
        ] {
            let json = RawJson::parse(text.to_owned().into()).unwrap();
            let replaced = replace_skill_uris(&json, |uri| (uri == "u:1").then(|| "U".to_owned()));
            assert_eq!(replaced.as_str(), want);
        }
    }

    #[test]
    fn uris_of_results_and_tools_are_replaced() {
        check(
            r#"{"content":[{"type":"text","text":"u:1"}, {"uri" : "u:1"},{"resource":{"text":"","uri":"u\u003a1"}},7]}"#,
            r#"{"content":[{"type":"text","text":"u:1"}, {"uri" : "U"},{"resource":{"text":"","uri":"U"}},7]}"#,
        );
        check(
            r#"{"messages":[{"role":"user","content":{"uri":"u:1"}},{"content":[{"uri":"u:2"},{"uri":"u:1"}]}]}"#,
            r#"{"messages":[{"role":"user","content":{"uri":"U"}},{"content":[{"uri":"u:2"},{"uri":"U"}]}]}"#,
        );
        check(r#"{"contents":[{"uri":"u:1","text":"u:1"}]}"#, r#"{"contents":[{"uri":"U","text":"u:1"}]}"#);
        check(
            r#"{"_meta":{"ui":{"resourceUri":"u:1","x":1},"ui/resourceUri":"u:1","openai/outputTemplate":"u:1","uri":"u:1"}}"#,
            r#"{"_meta":{"ui":{"resourceUri":"U","x":1},"ui/resourceUri":"U","openai/outputTemplate":"U","uri":"u:1"}}"#,
        );
        check(
            r#"{"status":"completed","result":{"content":[{"uri":"u:1"}],"result":{"content":[{"uri":"u:1"}]}}}"#,
            r#"{"status":"completed","result":{"content":[{"uri":"U"}],"result":{"content":[{"uri":"u:1"}]}}}"#,
        );
        for other in
            [r#"{"content":"u:1","uri":"u:1","messages":1,"_meta":[]}"#, "[1]", r#"{"content":[{"uri":1}]}"#]
        {
            check(other, other);
        }
    }
}
