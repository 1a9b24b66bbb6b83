//! Pages of list results.
//!
//! A page is read item by item. Each item is copied, so that it does not keep the page alive. An invalid item is
//! returned separately with the reason, and the other items are kept (HD-SC8).

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use bytestring::ByteString;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::json::cursor::JsonCursor;
use crate::json::raw::RawJson;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The valid items, in the server's order.
    pub items: Vec<T>,
    /// The invalid items.
    pub rejected: Vec<InvalidItem>,
    /// The cursor of the next page.
    pub next_cursor: Option<PageCursor>,
    /// What is wrong with the page as a whole. Its items are kept.
    pub defect: Option<PageDefect>,
    /// How long, and for which callers, the page may be cached.
    pub freshness: Freshness,
}

impl<T> Page<T> {
    /// Returns the valid items behind shared pointers. Drops [`Page::rejected`], so report these first.
    pub fn into_shared(self) -> Vec<Arc<T>> {
        self.items.into_iter().map(Arc::new).collect()
    }
}

/// The cursor of the next page: JSON, so that it is sent back as the server wrote it. Invariant: a string or a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PageCursor(Box<str>);

impl PageCursor {
    /// Returns the JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Returns whether it is an empty string. Before 2026-07-28 many servers end a list with it.
    pub fn is_empty(&self) -> bool {
        &*self.0 == "\"\""
    }

    /// Reads the value of `nextCursor`.
    fn read(text: &str) -> Result<Option<PageCursor>, PageDefect> {
        match text.as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9') => Ok(Some(PageCursor(text.into()))),
            Some(b'n') => Ok(None),
            _ => Err(PageDefect::InvalidCursor),
        }
    }
}

/// A defect of a page whose items, if any, could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageDefect {
    /// The list of this name is null.
    #[error("`{0}` is null where a list is expected")]
    NullList(&'static str),
    /// The cursor is neither a string nor a number, so the next page cannot be requested.
    #[error("`nextCursor` is neither a string nor a number")]
    InvalidCursor,
}

/// An invalid item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidItem {
    /// The item's name, if it has one.
    pub name: Option<String>,
    /// Its position in the server's list, from 1, if it is known.
    pub position: Option<usize>,
    /// The reason why it is invalid.
    pub reason: String,
}

impl InvalidItem {
    /// Creates an invalid item.
    pub fn new(name: Option<String>, position: Option<usize>, reason: impl Into<String>) -> InvalidItem {
        InvalidItem { name, position, reason: reason.into() }
    }

    /// Returns its name, else its position: `#5` is the fifth item of the list.
    pub fn label(&self) -> String {
        match (&self.name, self.position) {
            (Some(name), _) if !name.is_empty() => name.clone(),
            (_, Some(position)) => format!("#{position}"),
            (_, None) => "an item without a name".to_owned(),
        }
    }
}

/// How long, and for which callers, a result may be cached, as its server states. The default is not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Freshness {
    /// The time to live, from the moment of receipt.
    pub ttl: Duration,
    /// The callers that may share it.
    pub scope: CacheScope,
}

/// The callers that may use a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CacheScope {
    /// Callers with the same authorization.
    #[default]
    Private,
    /// All callers.
    Public,
}

impl Freshness {
    /// Returns the freshness of two results that are cached together: the shorter time to live, and the narrower scope.
    pub fn combine(self, other: Freshness) -> Freshness {
        let scope = match (self.scope, other.scope) {
            (CacheScope::Public, CacheScope::Public) => CacheScope::Public,
            (CacheScope::Private, _) | (_, CacheScope::Private) => CacheScope::Private,
        };
        Freshness { ttl: self.ttl.min(other.ttl), scope }
    }

    /// Reads the values of `ttlMs` and `cacheScope`. Invalid values count as missing.
    pub(crate) fn read(ttl_ms: Option<&RawValue>, cache_scope: Option<&RawValue>) -> Freshness {
        Freshness {
            ttl: ttl_ms.map(read_ttl).unwrap_or_default(),
            scope: cache_scope.map(read_scope).unwrap_or_default(),
        }
    }
}

fn read_ttl(milliseconds: &RawValue) -> Duration {
    // The conversion saturates: negative numbers become zero.
    let milliseconds: f64 = serde_json::from_str(milliseconds.get()).unwrap_or(0.0);
    Duration::from_millis(milliseconds as u64)
}

fn read_scope(text: &RawValue) -> CacheScope {
    match text.get() {
        "\"public\"" => CacheScope::Public,
        _ => CacheScope::Private,
    }
}

/// A list item as a server sends it, borrowed from the page.
pub(crate) trait ListItem<'a>: Deserialize<'a> {
    /// The type of the owned item.
    type Output;
    /// The noun for messages, with its article: `a tool`.
    const LABEL: &'static str;

    /// Validates and converts the item, or returns the reason why it is invalid.
    fn read(self, definition: ItemDefinition<'a>) -> Result<Self::Output, String>;
}

/// The JSON of a whole item.
pub(crate) struct ItemDefinition<'a> {
    /// The copy, which the item keeps.
    pub(crate) raw: RawJson,
    /// The original text in the page.
    text: &'a str,
}

impl ItemDefinition<'_> {
    /// Returns `value`, which is a part of the original text, as a slice of the copy.
    pub(crate) fn slice(&self, value: &RawValue) -> RawJson {
        self.raw.slice_by_offset(self.text, value)
    }

    /// Returns [`ItemDefinition::slice`] of a string, and `None` for any other value.
    pub(crate) fn string_slice(&self, value: Option<&RawValue>) -> Option<RawJson> {
        value.filter(|value| value.get().starts_with('"')).map(|value| self.slice(value))
    }
}

/// Reads the list under `key`, the cursor and the freshness in one pass. `result` begins with the JSON object that
/// contains them; other members, and what follows the object, are ignored.
pub(crate) fn read_list<'a, T: ListItem<'a>>(
    result: &'a [u8],
    key: &'static str,
) -> Result<Page<T::Output>, serde_json::Error> {
    let text = utf8_prefix(result);
    read_page::<T>(text, key).map_err(|error| {
        // The cursor's error has no position in the text. That of serde_json has one, if it is a syntax error.
        let syntax_error = IgnoredAny::deserialize(&mut serde_json::Deserializer::from_str(text)).err();
        match syntax_error {
            Some(_) if text.len() < result.len() => serde::de::Error::custom("it is no UTF-8"),
            Some(syntax_error) => syntax_error,
            None => error,
        }
    })
}

/// Returns the longest prefix that is UTF-8.
fn utf8_prefix(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

fn read_page<'a, T: ListItem<'a>>(
    text: &'a str,
    key: &'static str,
) -> Result<Page<T::Output>, serde_json::Error> {
    let mut cursor = JsonCursor::new(text);
    let mut list = None;
    let mut next_cursor = Ok(None);
    let mut null_list = None;
    let mut freshness = Freshness::default();
    cursor.begin_container(b'{')?;
    while let Some(name) = cursor.next_key()? {
        match &*name {
            name if name == key && cursor.peek_byte() == Some(b'n') => {
                cursor.read_value::<()>()?;
                null_list = Some(PageDefect::NullList(key));
                list = Some((Vec::new(), Vec::new()));
            }
            name if name == key => list = Some(read_items::<T>(&mut cursor)?),
            "nextCursor" => next_cursor = PageCursor::read(cursor.skip_value()?.as_str()),
            "ttlMs" => freshness.ttl = read_ttl(cursor.read_value()?),
            "cacheScope" => freshness.scope = read_scope(cursor.read_value()?),
            _ => {
                cursor.skip_value()?;
            }
        }
    }
    let (items, rejected) = list.ok_or_else(|| serde::de::Error::missing_field(key))?;
    let (next_cursor, defect) = match next_cursor {
        Ok(next_cursor) => (next_cursor, null_list),
        Err(defect) => (None, null_list.or(Some(defect))),
    };
    Ok(Page { items, rejected, next_cursor, defect, freshness })
}

/// The valid and the invalid items.
type ItemsRead<T> = (Vec<T>, Vec<InvalidItem>);

fn read_items<'a, T: ListItem<'a>>(
    cursor: &mut JsonCursor<'a>,
) -> Result<ItemsRead<T::Output>, serde_json::Error> {
    let (mut items, mut rejected) = (Vec::new(), Vec::new());
    let mut arena = Arena::default();
    cursor.begin_container(b'[')?;
    while cursor.next_element(b']')? {
        let (text, item) = cursor.read_with_text::<T>()?;
        let read = match item {
            Ok(item) => item.read(ItemDefinition { raw: arena.copy(text, cursor.remaining_bytes()), text }),
            Err(error) => Err(format!("not {}: {error}", T::LABEL)),
        };
        match read {
            Ok(item) => items.push(item),
            Err(reason) => {
                let position = Some(items.len() + rejected.len() + 1);
                rejected.push(InvalidItem { name: read_name(text), position, reason });
            }
        }
    }
    items.shrink_to_fit();
    Ok((items, rejected))
}

/// A buffer for copies of items. The items of a page share buffers, but do not keep the page alive: its frame may be
/// 20 MB, of which one tool is kept.
#[derive(Default)]
struct Arena(BytesMut);

/// The usual size of a buffer. It is smaller if the rest of the page is, and larger for a larger item.
const BUFFER_BYTES: usize = 256 << 10;

impl Arena {
    /// Copies an item that is followed by `remaining` bytes of the page.
    fn copy(&mut self, item: &str, remaining: usize) -> RawJson {
        if self.0.capacity() < item.len() {
            self.0 = BytesMut::with_capacity(BUFFER_BYTES.min(item.len() + remaining).max(item.len()));
        }
        self.0.extend_from_slice(item.as_bytes());
        let copy = ByteString::try_from(self.0.split()).expect("a copy of a `str` is UTF-8");
        RawJson::from_valid(copy)
    }
}

/// Reads the member `name` of an item that may be invalid otherwise.
fn read_name(item: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct NameJson {
        name: String,
    }
    serde_json::from_str::<NameJson>(item).ok().map(|json| json.name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(members: &str, want: (u64, CacheScope)) {
        let page = crate::read_tools(&format!("{{\"tools\":[]{members}}}")).unwrap();
        let Freshness { ttl, scope } = page.freshness;
        assert_eq!((ttl.as_millis(), scope), (want.0.into(), want.1), "{members}");
    }

    #[test]
    fn freshness_is_read_from_pages() {
        use CacheScope::{Private, Public};
        check("", (0, Private));
        check(r#","ttlMs":5000,"cacheScope":"public""#, (5000, Public));
        check(r#","cacheScope":"private","ttlMs":0"#, (0, Private));
        check(r#","ttlMs":-1,"cacheScope":"""#, (0, Private));
        check(r#","ttlMs":"soon","cacheScope":7"#, (0, Private));
        check(r#","ttlMs":1e300"#, (u64::MAX, Private));
    }

    #[test]
    fn combined_freshness_has_the_shorter_ttl_and_narrower_scope() {
        let of = |seconds, scope| Freshness { ttl: Duration::from_secs(seconds), scope };
        let both = of(3, CacheScope::Public).combine(of(2, CacheScope::Public));
        assert_eq!(both, of(2, CacheScope::Public));
        assert_eq!(both.combine(of(9, CacheScope::Private)), of(2, CacheScope::Private));
    }

    /// `want` is the cursor and the defect.
    #[track_caller]
    fn check_cursor(members: &str, want: (Option<&str>, Option<PageDefect>)) {
        let page = crate::read_prompts(&format!("{{{members}}}")).unwrap();
        assert_eq!((page.next_cursor.as_ref().map(PageCursor::as_json), page.defect), want, "{members}");
    }

    // RPT-020, RPT-021
    #[test]
    fn odd_cursors_and_null_lists_leave_the_page_readable() {
        let null_list = Some(PageDefect::NullList("prompts"));
        check_cursor(r#""prompts":[]"#, (None, None));
        check_cursor(r#""prompts":[],"nextCursor":null"#, (None, None));
        check_cursor(r#""nextCursor": "a\nb" ,"prompts":[]"#, (Some(r#""a\nb""#), None));
        check_cursor(r#""prompts":[],"nextCursor":7"#, (Some("7"), None));
        check_cursor(r#""prompts":[],"nextCursor":-1.5e3"#, (Some("-1.5e3"), None));
        for odd in ["{}", "[7]", "true", "false"] {
            let members = format!(r#""prompts":[],"nextCursor":{odd}"#);
            check_cursor(&members, (None, Some(PageDefect::InvalidCursor)));
        }
        check_cursor(r#""prompts": null"#, (None, null_list));
        check_cursor(r#""prompts":null,"nextCursor":"x""#, (Some("\"x\""), null_list));
        check_cursor(r#""prompts":null,"nextCursor":{}"#, (None, null_list));
    }

    // RPT-114
    #[test]
    fn invalid_item_has_its_position_in_the_list() {
        let page =
            crate::read_prompts(r#"{"prompts":[{"name":"a"},7,{"name":"b"},{"name":""},{}]}"#).unwrap();
        let labels: Vec<_> = page.rejected.iter().map(InvalidItem::label).collect();
        assert_eq!((page.items.len(), labels), (2, vec!["#2".to_owned(), "#4".to_owned(), "#5".to_owned()]));
    }

    #[track_caller]
    fn check_error(page: &[u8], want: &str) {
        let error = crate::read_tools(page).unwrap_err().to_string();
        assert!(error.starts_with(want), "{error}");
    }

    #[test]
    fn page_errors_have_positions() {
        check_error(
            br#"{"tools":[{"name":"a","inputSchema":{}}"#,
            "EOF while parsing a list at line 1 column 39",
        );
        check_error(br#"{"tools":[{"name":"a" "b":1}]}"#, "expected `,` or `}` at line 1 column 23");
        check_error(br#"{"tools":[{} {}]}"#, "expected `,` or `]` at line 1 column 14");
        check_error(b"{\"tools\":[{\"name\":\"\xFF\"}]}", "it is no UTF-8");
        check_error(br#"{"tools":{}}"#, "expected `[`");
        check_error(br#"{"tool":[]}"#, "missing field `tools`");
        check_error(br#"{"tools":nil}"#, "expected ident");
        check_error(br#"{"tools":[],"nextCursor":}"#, "expected value");
        // What follows the page is ignored.
        assert!(crate::read_tools(&b"{\"tools\":[]},\"id\":\"\xFF\""[..]).is_ok());
    }

    proptest! {
        /// Compares the page with serde_json's reading of the same text.
        #[test]
        fn pages_agree_with_serde_json(parts in prop::collection::vec(prop::sample::select(vec![
            r#"{"name":"a","inputSchema":{}}"#,
            r#" {"x":[{}],"inputSchema":{"type" : "object"},"name":"b\t","description":"d","annotations":[]} "#,
            r#"{"name":"c","inputSchema":[]}"#,
            r#"{"name":7,"inputSchema":{}}"#,
            r#"{"name":"d","name":"d","inputSchema":{}}"#,
            r#"{"inputSchema":{}}"#,
            "7", "null", "[]", "{", "]", " ", ",", ",", ",", ",",
        ]), 0..8)) {
            let text = format!("{{\"nextCursor\":\"x\",\"tools\":[{}],\"y\":{{}}}}", parts.concat());
            let known: Option<Vec<&RawValue>> = serde_json::from_str::<BTreeMap<&str, &RawValue>>(&text)
                .ok()
                .and_then(|it| serde_json::from_str(it["tools"].get()).ok());
            let page = crate::read_tools(&text).ok();
            prop_assert_eq!(page.is_some(), known.is_some(), "{}", text);
            let (Some(page), Some(known)) = (page, known) else { return Ok(()) };
            prop_assert_eq!(page.items.len() + page.rejected.len(), known.len());
            let good = known.iter().filter(|it| {
                let is_twice = it.get().matches("\"name\"").count() > 1;
                let value: serde_json::Value = serde_json::from_str(it.get()).unwrap();
                let schema = value.get("inputSchema");
                let has_schema = schema.is_none_or(|it| it.is_object() || *it == serde_json::json!([]));
                value["name"].is_string() && has_schema && !is_twice
            });
            for (tool, raw) in page.items.iter().zip(good.clone()) {
                let value: serde_json::Value = serde_json::from_str(raw.get()).unwrap();
                prop_assert_eq!(tool.raw.as_str(), raw.get());
                prop_assert_eq!(value["name"].as_str(), Some(&*tool.name));
                prop_assert_eq!(value["description"].as_str().unwrap_or_default(), tool.description_text());
                let schema: serde_json::Value = tool.input_schema.read().unwrap();
                match value.get("inputSchema").filter(|it| it.is_object()) {
                    Some(own) => prop_assert_eq!(own, &schema),
                    None => prop_assert_eq!(schema, serde_json::json!({"type": "object"})),
                }
            }
            prop_assert_eq!(page.items.len(), good.count());
        }
    }
}
