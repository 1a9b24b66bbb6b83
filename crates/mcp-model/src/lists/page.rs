//! Pages of list results.
//!
//! A page is read item by item. Each item is copied, so that it does not keep the page alive. A malformed item is set
//! aside with its reason, and the others are kept (HD-SC8).

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
    /// The cursor of the next page. An empty cursor is a cursor.
    pub next_cursor: Option<String>,
    /// How long the page may be cached.
    pub freshness: Freshness,
}

impl<T> Page<T> {
    /// Returns the items behind shared pointers. [`Page::rejected`] is dropped: read it first to report invalid items.
    pub fn into_shared(self) -> Vec<Arc<T>> {
        self.items.into_iter().map(Arc::new).collect()
    }
}

/// An invalid item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidItem {
    /// The item's name, if it has one.
    pub name: Option<String>,
    /// The reason.
    pub reason: String,
}

impl InvalidItem {
    /// Creates an invalid item.
    pub fn new(name: Option<String>, reason: impl Into<String>) -> InvalidItem {
        InvalidItem { name, reason: reason.into() }
    }
}

/// How long, and by which callers, a result may be cached, as its server states. The default is not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Freshness {
    /// Time to live, from the moment of receipt.
    pub ttl: Duration,
    /// The callers that may share it.
    pub scope: CacheScope,
}

/// The callers that may use a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CacheScope {
    /// Callers with the same authorization. The default.
    #[default]
    Private,
    /// All callers.
    Public,
}

impl Freshness {
    /// Combines two results that are used together.
    pub fn combine(self, other: Freshness) -> Freshness {
        let scope = match (self.scope, other.scope) {
            (CacheScope::Public, CacheScope::Public) => CacheScope::Public,
            (CacheScope::Private, _) | (_, CacheScope::Private) => CacheScope::Private,
        };
        Freshness { ttl: self.ttl.min(other.ttl), scope }
    }

    /// Reads the members of a result. Invalid values count as missing.
    pub(crate) fn read(ttl_ms: Option<&RawValue>, cache_scope: Option<&RawValue>) -> Freshness {
        Freshness {
            ttl: ttl_ms.map(ttl).unwrap_or_default(),
            scope: cache_scope.map(scope).unwrap_or_default(),
        }
    }
}

fn ttl(milliseconds: &RawValue) -> Duration {
    // Negative numbers become zero; the conversion saturates.
    let milliseconds: f64 = serde_json::from_str(milliseconds.get()).unwrap_or(0.0);
    Duration::from_millis(milliseconds as u64)
}

fn scope(text: &RawValue) -> CacheScope {
    match text.get() {
        "\"public\"" => CacheScope::Public,
        _ => CacheScope::Private,
    }
}

/// A borrowed list item.
pub(crate) trait ListItem<'a>: Deserialize<'a> {
    /// The owned item.
    type Output;
    /// The noun for messages, with its article.
    const LABEL: &'static str;

    /// Validates and converts the item, or returns the reason why it is invalid.
    fn read(self, whole: Definition<'a>) -> Result<Self::Output, String>;
}

/// The definition of an item: the copy, and the original text.
pub(crate) struct Definition<'a> {
    pub(crate) raw: RawJson,
    text: &'a str,
}

impl Definition<'_> {
    /// Returns a value inside the definition as a slice of the copy.
    pub(crate) fn part(&self, value: &RawValue) -> RawJson {
        self.raw.slice_by_offset(self.text, value)
    }

    /// Returns a string inside the definition; `None` for another value.
    pub(crate) fn string(&self, value: Option<&RawValue>) -> Option<RawJson> {
        value.filter(|it| it.get().starts_with('"')).map(|it| self.part(it))
    }
}

/// Reads the list under `key` and the cursor in one pass. `result` starts with the JSON object that contains them;
/// what follows the object, and other members, are ignored.
pub(crate) fn read_list<'a, T: ListItem<'a>>(
    result: &'a [u8],
    key: &'static str,
) -> Result<Page<T::Output>, serde_json::Error> {
    let text = utf8_prefix(result);
    read_page::<T>(text, key).map_err(|shape| {
        // For a syntax error, serde_json's reading of the whole text gives the position.
        let syntax = IgnoredAny::deserialize(&mut serde_json::Deserializer::from_str(text)).err();
        match syntax {
            Some(_) if text.len() < result.len() => serde::de::Error::custom("it is no UTF-8"),
            Some(syntax) => syntax,
            None => shape,
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
    let mut walk = JsonCursor::new(text);
    let mut found = None;
    let mut next_cursor = None;
    let mut freshness = Freshness::default();
    walk.begin_container(b'{')?;
    while let Some(name) = walk.next_key()? {
        match &*name {
            it if it == key => found = Some(items::<T>(&mut walk)?),
            "nextCursor" => next_cursor = walk.read_value()?,
            "ttlMs" => freshness.ttl = ttl(walk.read_value()?),
            "cacheScope" => freshness.scope = scope(walk.read_value()?),
            _ => {
                walk.skip_value()?;
            }
        }
    }
    let (items, rejected) = found.ok_or_else(|| serde::de::Error::missing_field(key))?;
    Ok(Page { items, rejected, next_cursor, freshness })
}

/// The valid and the invalid items.
type ItemsRead<T> = (Vec<T>, Vec<InvalidItem>);

fn items<'a, T: ListItem<'a>>(walk: &mut JsonCursor<'a>) -> Result<ItemsRead<T::Output>, serde_json::Error> {
    let (mut items, mut rejected) = (Vec::new(), Vec::new());
    let mut arena = Arena::default();
    walk.begin_container(b'[')?;
    while walk.next_element(b']')? {
        let (text, item) = walk.read_with_text::<T>()?;
        let read = match item {
            Ok(item) => item.read(Definition { raw: arena.copy(text, walk.remaining_bytes()), text }),
            Err(why) => Err(format!("not {}: {why}", T::LABEL)),
        };
        match read {
            Ok(it) => items.push(it),
            Err(reason) => rejected.push(InvalidItem { name: name_of(text), reason }),
        }
    }
    items.shrink_to_fit();
    Ok((items, rejected))
}

/// Buffers for copied items, so that an item does not keep its page alive: a page's frame may be 20 MB, of which one
/// tool is kept.
#[derive(Default)]
struct Arena(BytesMut);

/// The size of a buffer, unless the rest of the page is smaller or an item is larger.
const BUFFER_BYTES: usize = 256 << 10;

impl Arena {
    /// Copies an item; `left` bytes of the page follow it.
    fn copy(&mut self, item: &str, left: usize) -> RawJson {
        if self.0.capacity() < item.len() {
            self.0 = BytesMut::with_capacity(BUFFER_BYTES.min(item.len() + left).max(item.len()));
        }
        self.0.extend_from_slice(item.as_bytes());
        let copy = ByteString::try_from(self.0.split()).expect("it was text before it was copied");
        RawJson::from_valid(copy)
    }
}

fn name_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Named>(text).ok().map(|it| it.name)
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
    fn combined_pages_use_the_shorter_ttl() {
        let of = |seconds, scope| Freshness { ttl: Duration::from_secs(seconds), scope };
        let both = of(3, CacheScope::Public).combine(of(2, CacheScope::Public));
        assert_eq!(both, of(2, CacheScope::Public));
        assert_eq!(both.combine(of(9, CacheScope::Private)), of(2, CacheScope::Private));
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
        check_error(br#"{"tools":[],"nextCursor":7}"#, "invalid type: integer `7`, expected a string");
        // What follows the page is ignored.
        assert!(crate::read_tools(&b"{\"tools\":[]},\"id\":\"\xFF\""[..]).is_ok());
    }

    proptest! {
        /// One pass must agree with serde_json on the whole page.
        #[test]
        fn items_are_read_independently(parts in prop::collection::vec(prop::sample::select(vec![
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
                value["name"].is_string() && value["inputSchema"].is_object() && !is_twice
            });
            for (tool, raw) in page.items.iter().zip(good.clone()) {
                let value: serde_json::Value = serde_json::from_str(raw.get()).unwrap();
                prop_assert_eq!(tool.raw.as_str(), raw.get());
                prop_assert_eq!(value["name"].as_str(), Some(&*tool.name));
                prop_assert_eq!(value["description"].as_str().unwrap_or_default(), tool.description_text());
                let schema: serde_json::Value = tool.input_schema.read().unwrap();
                prop_assert_eq!(&value["inputSchema"], &schema);
            }
            prop_assert_eq!(page.items.len(), good.count());
        }
    }
}
