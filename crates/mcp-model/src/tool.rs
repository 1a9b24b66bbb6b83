//! Tools, prompts and resources as a server lists them.
//!
//! The definition's own bytes are kept and everything else is a slice of them, so ten thousand tools cost little
//! more than their JSON. [`read_tools`], [`read_prompts`], [`read_resources`] and [`read_resource_templates`] read
//! one page; an item that is malformed is set aside with its reason and the rest of the page stands (DM-048's
//! neighbours, HD-SC8).

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::RawJson;

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The name the server knows it by.
    pub name: Box<str>,
    /// Its description, a JSON string.
    pub description: Option<RawJson>,
    /// JSON Schema of its arguments: an object.
    pub input_schema: RawJson,
    /// JSON Schema of its structured result.
    pub output_schema: Option<RawJson>,
    /// What the server says about its effects.
    pub hints: ToolHints,
    /// The whole definition.
    pub raw: RawJson,
}

impl Tool {
    /// The description's text, empty where there is none.
    pub fn description_text(&self) -> Cow<'_, str> {
        self.description.as_ref().and_then(RawJson::to_text).unwrap_or_default()
    }
}

/// A tool's annotations that decide something here. They are claims: a host shows them, and uses them only to decide
/// whether a call whose answer was lost may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolHints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
    /// `idempotentHint`.
    pub idempotent: Option<bool>,
    /// `openWorldHint`.
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// May a call be sent a second time when it is not known whether the first one ran?
    pub fn repeatable(self) -> bool {
        self.read_only == Some(true) || self.idempotent == Some(true)
    }
}

/// One prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The name the server knows it by.
    pub name: Box<str>,
    /// Its description, a JSON string.
    pub description: Option<RawJson>,
    /// The whole definition, arguments included.
    pub raw: RawJson,
}

/// One resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its URI.
    pub uri: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its description, a JSON string.
    pub description: Option<RawJson>,
    /// The whole definition.
    pub raw: RawJson,
}

/// A pattern of resources: whoever fills it in has the URI of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceTemplate {
    /// Its URI template, RFC 6570.
    pub uri_template: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its description, a JSON string.
    pub description: Option<RawJson>,
    /// The whole definition.
    pub raw: RawJson,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What could be read, in the server's order.
    pub items: Vec<T>,
    /// What could not.
    pub rejected: Vec<Rejected>,
    /// Where the next page begins. An empty cursor is a cursor.
    pub next_cursor: Option<String>,
}

/// An item of a list that is no tool, prompt, resource or template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads the result of `tools/list`. Fails when it is no list at all.
pub fn read_tools(result: &RawJson) -> Result<Page<Tool>, serde_json::Error> {
    list(result, "tools", tool)
}

/// Reads the result of `prompts/list`. Fails when it is no list at all.
pub fn read_prompts(result: &RawJson) -> Result<Page<Prompt>, serde_json::Error> {
    list(result, "prompts", prompt)
}

/// Reads the result of `resources/list`. Fails when it is no list at all.
pub fn read_resources(result: &RawJson) -> Result<Page<Resource>, serde_json::Error> {
    list(result, "resources", resource)
}

/// Reads the result of `resources/templates/list`. Fails when it is no list at all.
pub fn read_resource_templates(result: &RawJson) -> Result<Page<ResourceTemplate>, serde_json::Error> {
    list(result, "resourceTemplates", template)
}

fn list<T>(
    result: &RawJson,
    key: &'static str,
    read: fn(RawJson) -> Result<T, String>,
) -> Result<Page<T>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(result.as_str());
    let (values, next_cursor) = deserializer.deserialize_map(List(key))?;
    Ok(page(values, next_cursor, read))
}

/// Reads the list under one key, and the cursor. Whatever else a server puts beside them is passed over, in one pass.
struct List(&'static str);

impl<'de> Visitor<'de> for List {
    type Value = (Vec<&'de RawValue>, Option<String>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = None;
        let mut next_cursor = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == self.0 {
                values = Some(map.next_value()?);
            } else if key == "nextCursor" {
                next_cursor = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok((values.ok_or_else(|| serde::de::Error::missing_field(self.0))?, next_cursor))
    }
}

/// Reads each item out of one buffer of its own, so that what is kept does not keep the page alive: a page's frame
/// may be 20 MB of which one tool stays.
fn page<T>(
    values: Vec<&RawValue>,
    next_cursor: Option<String>,
    read: fn(RawJson) -> Result<T, String>,
) -> Page<T> {
    let mut arena = Vec::with_capacity(values.iter().map(|it| it.get().len()).sum());
    let ends: Vec<usize> = values
        .iter()
        .map(|it| {
            arena.extend_from_slice(it.get().as_bytes());
            arena.len()
        })
        .collect();
    let arena = Bytes::from(arena);
    let mut res = Page { items: Vec::with_capacity(ends.len()), rejected: Vec::new(), next_cursor };
    let mut start = 0;
    for (end, value) in ends.into_iter().zip(values) {
        let raw = RawJson::slice(&arena, start..end);
        start = end;
        match read(raw) {
            Ok(it) => res.items.push(it),
            Err(reason) => res.rejected.push(Rejected { name: name_of(value), reason }),
        }
    }
    res
}

fn tool(raw: RawJson) -> Result<Tool, String> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow)]
        description: Option<&'a RawValue>,
        #[serde(borrow, rename = "inputSchema")]
        input_schema: Option<&'a RawValue>,
        #[serde(borrow, rename = "outputSchema")]
        output_schema: Option<&'a RawValue>,
        #[serde(borrow)]
        annotations: Option<&'a RawValue>,
    }
    let wire: Wire<'_> = raw.read().map_err(|it| format!("not a tool: {it}"))?;
    let input_schema = wire.input_schema.ok_or("it has no `inputSchema`")?;
    if !input_schema.get().starts_with('{') {
        return Err("its `inputSchema` is no object".to_owned());
    }
    if wire.name.is_empty() {
        return Err("its name is empty".to_owned());
    }
    Ok(Tool {
        name: wire.name.as_ref().into(),
        description: text_in(&raw, wire.description),
        input_schema: RawJson::within(raw.bytes(), input_schema),
        output_schema: wire
            .output_schema
            .filter(|it| it.get().starts_with('{'))
            .map(|it| RawJson::within(raw.bytes(), it)),
        hints: wire.annotations.map(hints).unwrap_or_default(),
        raw: raw.clone(),
    })
}

/// A string inside a definition, as a slice of it; of anything else there is no text.
fn text_in(raw: &RawJson, value: Option<&RawValue>) -> Option<RawJson> {
    value.filter(|it| it.get().starts_with('"')).map(|it| RawJson::within(raw.bytes(), it))
}

/// Annotations are hints: one of the wrong type is as good as none.
fn hints(annotations: &RawValue) -> ToolHints {
    let lenient: std::collections::BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(annotations.get()).unwrap_or_default();
    let flag = |key: &str| lenient.get(key).and_then(|it| serde_json::from_str(it.get()).ok());
    ToolHints {
        read_only: flag("readOnlyHint"),
        destructive: flag("destructiveHint"),
        idempotent: flag("idempotentHint"),
        open_world: flag("openWorldHint"),
    }
}

fn prompt(raw: RawJson) -> Result<Prompt, String> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow)]
        description: Option<&'a RawValue>,
    }
    let wire: Wire<'_> = raw.read().map_err(|it| format!("not a prompt: {it}"))?;
    if wire.name.is_empty() {
        return Err("its name is empty".to_owned());
    }
    Ok(Prompt {
        name: wire.name.as_ref().into(),
        description: text_in(&raw, wire.description),
        raw: raw.clone(),
    })
}

fn resource(raw: RawJson) -> Result<Resource, String> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        uri: Cow<'a, str>,
        #[serde(borrow)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow)]
        description: Option<&'a RawValue>,
    }
    let wire: Wire<'_> = raw.read().map_err(|it| format!("not a resource: {it}"))?;
    if wire.uri.is_empty() {
        return Err("its `uri` is empty".to_owned());
    }
    Ok(Resource {
        uri: wire.uri.as_ref().into(),
        name: wire.name.as_deref().unwrap_or(&wire.uri).into(),
        description: text_in(&raw, wire.description),
        raw: raw.clone(),
    })
}

fn template(raw: RawJson) -> Result<ResourceTemplate, String> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow, rename = "uriTemplate")]
        uri_template: Cow<'a, str>,
        #[serde(borrow)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow)]
        description: Option<&'a RawValue>,
    }
    let wire: Wire<'_> = raw.read().map_err(|it| format!("not a resource template: {it}"))?;
    if wire.uri_template.is_empty() {
        return Err("its `uriTemplate` is empty".to_owned());
    }
    Ok(ResourceTemplate {
        uri_template: wire.uri_template.as_ref().into(),
        name: wire.name.as_deref().unwrap_or(&wire.uri_template).into(),
        description: text_in(&raw, wire.description),
        raw: raw.clone(),
    })
}

fn name_of(value: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Named>(value.get()).ok().map(|it| it.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tools: &str, want: &str) {
        let json = format!("{{\"tools\":{tools},\"nextCursor\":\"\"}}");
        let page = read_tools(&RawJson::parse(Bytes::from(json)).unwrap()).unwrap();
        assert_eq!(page.next_cursor.as_deref(), Some(""), "an empty cursor is a cursor");
        let items = page.items.iter().map(|it| format!("{}({})", it.name, it.description_text()));
        let rejected =
            page.rejected.iter().map(|it| format!("!{}: {}", it.name.as_deref().unwrap_or("?"), it.reason));
        assert_eq!(items.chain(rejected).collect::<Vec<_>>().join("; "), want);
    }

    #[test]
    fn hd_sc8_one_malformed_tool_leaves_the_others() {
        check(
            r#"[{"name":"a","inputSchema":{}},{"name":"b"},{"name":"c","description":"x\ty","inputSchema":{"type":"object"}}]"#,
            "a(); c(x\ty); !b: it has no `inputSchema`",
        );
        check(r#"[{"name":"a","inputSchema":true}]"#, "!a: its `inputSchema` is no object");
        check(r#"[{"name":"","inputSchema":{}}]"#, "!: its name is empty");
        check(r#"[{"name":"a","inputSchema":{},"description":7,"annotations":[]}]"#, "a()");
        check("[]", "");
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        check("[],\"prompts\":{},\"x\":[]", "");
        for text in ["{}", "[]", r#"{"tools":{}}"#, "null"] {
            assert!(read_tools(&RawJson::parse(Bytes::from(text)).unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn templates_are_read_by_their_patterns() {
        let json = r#"{"resourceTemplates":[{"uriTemplate":"f:{path}","name":"file","description":"One file."},
            {"uriTemplate":"g:{x}"},{"uriTemplate":"","name":"e"},{"name":"n"}]}"#;
        let page = read_resource_templates(&RawJson::parse(Bytes::from(json)).unwrap()).unwrap();
        let items: Vec<_> = page.items.iter().map(|it| (&*it.uri_template, &*it.name)).collect();
        assert_eq!(items, [("f:{path}", "file"), ("g:{x}", "g:{x}")]);
        assert_eq!(
            page.rejected.iter().map(|it| it.name.as_deref()).collect::<Vec<_>>(),
            [Some("e"), Some("n")]
        );
    }

    #[test]
    fn hints_are_read_one_by_one() {
        let json = r#"{"tools":[{"name":"a","inputSchema":{},"annotations":{"readOnlyHint":true,"idempotentHint":"yes"}}]}"#;
        let page = read_tools(&RawJson::parse(Bytes::from(json)).unwrap()).unwrap();
        let hints = page.items[0].hints;
        assert_eq!((hints.read_only, hints.idempotent), (Some(true), None));
        assert!(hints.repeatable());
    }

    #[test]
    fn a_kept_tool_does_not_keep_its_page() {
        let padding = " ".repeat(1 << 20);
        let json = format!("{{{padding}\"tools\":[{{\"name\":\"a\",\"inputSchema\":{{}}}}]}}");
        let result = RawJson::parse(Bytes::from(json)).unwrap();
        let tool = read_tools(&result).unwrap().items.remove(0);
        let page = result.as_bytes().as_ptr_range();
        assert!(!page.contains(&tool.raw.as_bytes().as_ptr()));
        assert_eq!(tool.input_schema.as_bytes().as_ptr(), tool.raw.as_bytes()[26..].as_ptr());
    }
}
