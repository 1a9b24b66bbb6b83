//! Resources and resource templates of list results, and results of `resources/read`.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::raw::RawJson;
use crate::json::unescape::UnescapedString;
use crate::lists::page::{Freshness, ItemDefinition, ListItem, Page, read_list};

/// One resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// The URI.
    pub uri: Box<str>,
    /// The name; the URI if the server gives none.
    pub name: Box<str>,
    /// The description, a JSON string.
    pub description: Option<RawJson>,
    /// The complete definition.
    pub raw: RawJson,
}

/// A template for URIs of resources.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// A URI template (RFC 6570).
    pub uri_template: Box<str>,
    /// The name; the URI template if the server gives none.
    pub name: Box<str>,
    /// The description, a JSON string.
    pub description: Option<RawJson>,
    /// The complete definition.
    pub raw: RawJson,
}

impl Resource {
    /// Returns the decoded description, empty if there is none.
    pub fn description_text(&self) -> Cow<'_, str> {
        self.description.as_ref().and_then(RawJson::to_text).unwrap_or_default()
    }
}

impl ResourceTemplate {
    /// Returns the decoded description, empty if there is none.
    pub fn description_text(&self) -> Cow<'_, str> {
        self.description.as_ref().and_then(RawJson::to_text).unwrap_or_default()
    }
}

/// The result of `resources/read`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceResult {
    /// The parts, in order. A folder has several.
    pub contents: Vec<ResourceContent>,
    /// How long, and for which callers, the result may be cached.
    pub freshness: Freshness,
    /// The complete result.
    pub raw: RawJson,
}

/// One part of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceContent {
    /// The URI.
    pub uri: String,
    /// The media type, if known.
    pub mime_type: Option<String>,
    /// The content.
    pub body: ResourceBody,
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

impl ResourceBody {
    /// Returns the bytes. Fails if the server's base64 is invalid.
    pub fn to_bytes(&self) -> Result<Vec<u8>, base64::DecodeError> {
        match self {
            ResourceBody::Text(text) => Ok(text.clone().into_bytes()),
            ResourceBody::Blob(blob) => BASE64_STANDARD.decode(blob),
        }
    }
}

/// Reads the result of `resources/list`. Fails if it is not a list. The result is at the start of `result`, which
/// need not be validated; what follows it is ignored.
pub fn read_resources<B: AsRef<[u8]> + ?Sized>(result: &B) -> Result<Page<Resource>, serde_json::Error> {
    read_list::<ResourceJson<'_>>(result.as_ref(), "resources")
}

/// Reads the result of `resources/templates/list`. Fails if it is not a list. The result is at the start of `result`,
/// which need not be validated; what follows it is ignored.
pub fn read_resource_templates<B: AsRef<[u8]> + ?Sized>(
    result: &B,
) -> Result<Page<ResourceTemplate>, serde_json::Error> {
    read_list::<ResourceTemplateJson<'_>>(result.as_ref(), "resourceTemplates")
}

/// Reads the result of `resources/read`. Fails if it has no contents, or a part that is neither text nor blob.
pub fn read_resource_result(result: &RawJson) -> Result<ResourceResult, serde_json::Error> {
    #[derive(Deserialize)]
    struct ReadResultJson<'a> {
        contents: Vec<ContentJson>,
        #[serde(borrow, rename = "ttlMs")]
        ttl: Option<&'a RawValue>,
        #[serde(borrow, rename = "cacheScope")]
        scope: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct ContentJson {
        uri: String,
        #[serde(rename = "mimeType")]
        mime_type: Option<String>,
        text: Option<UnescapedString>,
        blob: Option<String>,
    }
    let wire: ReadResultJson<'_> = result.read()?;
    let read_content = |ContentJson { uri, mime_type, text, blob }| {
        let body = match (blob, text) {
            (Some(blob), _) => ResourceBody::Blob(blob),
            (None, Some(UnescapedString(text))) => ResourceBody::Text(text),
            (None, None) => return Err(serde::de::Error::custom("a part has neither `text` nor `blob`")),
        };
        Ok(ResourceContent { uri, mime_type, body })
    };
    Ok(ResourceResult {
        contents: wire.contents.into_iter().map(read_content).collect::<Result<_, _>>()?,
        freshness: Freshness::read(wire.ttl, wire.scope),
        raw: result.clone(),
    })
}

#[derive(Deserialize)]
struct ResourceJson<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
}

impl<'a> ListItem<'a> for ResourceJson<'a> {
    type Output = Resource;
    const LABEL: &'static str = "a resource";

    fn read(self, definition: ItemDefinition<'a>) -> Result<Resource, String> {
        if self.uri.is_empty() {
            return Err("its `uri` is empty".to_owned());
        }
        Ok(Resource {
            uri: self.uri.as_ref().into(),
            name: self.name.as_deref().unwrap_or(&self.uri).into(),
            description: definition.string_slice(self.description),
            raw: definition.raw,
        })
    }
}

#[derive(Deserialize)]
struct ResourceTemplateJson<'a> {
    #[serde(borrow, rename = "uriTemplate")]
    uri_template: Cow<'a, str>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
}

impl<'a> ListItem<'a> for ResourceTemplateJson<'a> {
    type Output = ResourceTemplate;
    const LABEL: &'static str = "a resource template";

    fn read(self, definition: ItemDefinition<'a>) -> Result<ResourceTemplate, String> {
        if self.uri_template.is_empty() {
            return Err("its `uriTemplate` is empty".to_owned());
        }
        Ok(ResourceTemplate {
            uri_template: self.uri_template.as_ref().into(),
            name: self.name.as_deref().unwrap_or(&self.uri_template).into(),
            description: definition.string_slice(self.description),
            raw: definition.raw,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn hd_sc8_one_malformed_template_leaves_the_others() {
        let page = read_resource_templates(&json(
            r#"{"resourceTemplates":[{"uriTemplate":"a://{x}","name":"n"},{"name":"b"},{"uriTemplate":""},
                {"uriTemplate":"c://{y}"}],"nextCursor":""}"#,
        ))
        .unwrap();
        let names: Vec<&str> = page.items.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["n", "c://{y}"]);
        assert_eq!(page.rejected[0].name.as_deref(), Some("b"));
        assert_eq!(page.rejected[1].reason, "its `uriTemplate` is empty");
        assert!(page.next_cursor.is_some_and(|cursor| cursor.is_empty()));
    }

    #[test]
    fn name_of_a_template_defaults_to_its_uri_template() {
        let text = r#"{"resourceTemplates":[{"uriTemplate":"f:{path}","name":"file","description":"One file."},
            {"uriTemplate":"g:{x}"},{"uriTemplate":"","name":"e"},{"name":"n"}]}"#;
        let page = read_resource_templates(&json(text)).unwrap();
        let items: Vec<_> = page.items.iter().map(|it| (&*it.uri_template, &*it.name)).collect();
        assert_eq!(items, [("f:{path}", "file"), ("g:{x}", "g:{x}")]);
        assert_eq!(
            page.rejected.iter().map(|it| it.name.as_deref()).collect::<Vec<_>>(),
            [Some("e"), Some("n")]
        );
    }

    #[test]
    fn resource_content_is_text_or_bytes() {
        let read = |text: &str| read_resource_result(&json(text));
        let got = read(
            r#"{"contents":[{"uri":"a:1","mimeType":"text/plain","text":"hello"},{"uri":"a:2","blob":"AQI="}],
                "ttlMs":1000,"cacheScope":"public"}"#,
        )
        .unwrap();
        let bytes: Vec<Vec<u8>> = got.contents.iter().map(|it| it.body.to_bytes().unwrap()).collect();
        assert_eq!(bytes, [b"hello".to_vec(), vec![1, 2]]);
        assert_eq!(got.freshness.ttl, Duration::from_secs(1));
        assert!(ResourceBody::Blob("?".to_owned()).to_bytes().is_err());
        assert_eq!(read(r#"{"contents":[]}"#).unwrap().contents, []);
        for odd in ["{}", r#"{"contents":[{"uri":"a:1"}]}"#, r#"{"contents":[{"text":"x"}]}"#] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }
}
