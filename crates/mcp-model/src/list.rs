//! Lists of what a server offers, one page at a time.
//!
//! A page is copied item by item into one buffer of its own; an item that is malformed is set aside with its reason,
//! and the rest of the page stands (DM-048's neighbours, HD-SC8).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::RawJson;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What could be read, in the server's order.
    pub items: Vec<T>,
    /// What could not.
    pub rejected: Vec<Rejected>,
    /// Where the next page begins. An empty cursor is a cursor.
    pub next_cursor: Option<String>,
    /// How long it may be used.
    pub freshness: Freshness,
}

impl<T> Page<T> {
    /// The items, for more than one to hold.
    pub fn shared(self) -> Vec<Arc<T>> {
        self.items.into_iter().map(Arc::new).collect()
    }
}

/// An item of a list that is none of what the list is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

/// How long a result may be used without asking again, as its server says. Nothing said is no time at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Freshness {
    /// From the moment it was received.
    pub ttl: Duration,
    /// By whom.
    pub scope: CacheScope,
}

/// Who may use a result that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheScope {
    /// Whoever asks with the same authorization. What a server does not say is this.
    #[default]
    Private,
    /// Anybody.
    Public,
}

impl Freshness {
    /// Of two results that are used together.
    pub fn and(self, other: Freshness) -> Freshness {
        let scope = match (self.scope, other.scope) {
            (CacheScope::Public, CacheScope::Public) => CacheScope::Public,
            (CacheScope::Private, _) | (_, CacheScope::Private) => CacheScope::Private,
        };
        Freshness { ttl: self.ttl.min(other.ttl), scope }
    }

    /// Reads it out of a result's own members. What cannot be read is as good as not there.
    pub(crate) fn read(ttl_ms: Option<&RawValue>, cache_scope: Option<&RawValue>) -> Freshness {
        Freshness {
            ttl: ttl_ms.map(ttl).unwrap_or_default(),
            scope: cache_scope.map(scope).unwrap_or_default(),
        }
    }
}

fn ttl(milliseconds: &RawValue) -> Duration {
    // Less than nothing is nothing, and a conversion that does not fit stays at the end of the range.
    let milliseconds: f64 = serde_json::from_str(milliseconds.get()).unwrap_or(0.0);
    Duration::from_millis(milliseconds as u64)
}

fn scope(text: &RawValue) -> CacheScope {
    match text.get() {
        "\"public\"" => CacheScope::Public,
        _ => CacheScope::Private,
    }
}

/// Reads the list under `key`: each item by `read`, which says in words what is wrong with one. `result` begins with the
/// JSON object that holds it, and what stands behind that is not looked at.
pub(crate) fn read_list<T>(
    result: &[u8],
    key: &'static str,
    read: fn(RawJson) -> Result<T, String>,
) -> Result<Page<T>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(result);
    let (values, next_cursor, freshness) = deserializer.deserialize_map(List(key))?;
    Ok(page(values, next_cursor, freshness, read))
}

/// Reads the list under one key, and the cursor. Whatever else a server puts beside them is passed over, in one pass.
struct List(&'static str);

impl<'de> Visitor<'de> for List {
    type Value = (Vec<&'de RawValue>, Option<String>, Freshness);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = None;
        let mut next_cursor = None;
        let mut freshness = Freshness::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == self.0 {
                values = Some(map.next_value()?);
            } else if key == "nextCursor" {
                next_cursor = map.next_value()?;
            } else if key == "ttlMs" {
                freshness.ttl = ttl(map.next_value()?);
            } else if key == "cacheScope" {
                freshness.scope = scope(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok((values.ok_or_else(|| serde::de::Error::missing_field(self.0))?, next_cursor, freshness))
    }
}

/// Reads each item out of one buffer of its own, so that what is kept does not keep the page alive: a page's frame
/// may be 20 MB of which one tool stays.
fn page<T>(
    values: Vec<&RawValue>,
    next_cursor: Option<String>,
    freshness: Freshness,
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
    let mut res =
        Page { items: Vec::with_capacity(ends.len()), rejected: Vec::new(), next_cursor, freshness };
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

/// A string inside a definition, as a slice of it; of anything else there is no text.
pub(crate) fn text_in(raw: &RawJson, value: Option<&RawValue>) -> Option<RawJson> {
    value.filter(|it| it.get().starts_with('"')).map(|it| RawJson::within(raw.bytes(), it))
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
    fn check(members: &str, want: (u64, CacheScope)) {
        let json = format!("{{\"x\":[]{members}}}");
        let result = RawJson::parse(Bytes::from(json)).unwrap();
        let page: Page<()> = read_list(result.as_bytes(), "x", |_| Ok(())).unwrap();
        let Freshness { ttl, scope } = page.freshness;
        assert_eq!((ttl.as_millis(), scope), (want.0.into(), want.1), "{members}");
    }

    #[test]
    fn a_list_says_how_long_it_may_be_used() {
        use CacheScope::{Private, Public};
        check("", (0, Private));
        check(r#","ttlMs":5000,"cacheScope":"public""#, (5000, Public));
        check(r#","cacheScope":"private","ttlMs":0"#, (0, Private));
        check(r#","ttlMs":-1,"cacheScope":"""#, (0, Private));
        check(r#","ttlMs":"soon","cacheScope":7"#, (0, Private));
        check(r#","ttlMs":1e300"#, (u64::MAX, Private));
    }

    #[test]
    fn pages_that_are_used_together_have_the_shorter_life() {
        let of = |seconds, scope| Freshness { ttl: Duration::from_secs(seconds), scope };
        let both = of(3, CacheScope::Public).and(of(2, CacheScope::Public));
        assert_eq!(both, of(2, CacheScope::Public));
        assert_eq!(both.and(of(9, CacheScope::Private)), of(2, CacheScope::Private));
    }
}
