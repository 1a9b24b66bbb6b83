//! Detection of keys that differ from checked keys only in case.
//!
//! Some JSON readers ignore the case of keys: for them `Method` is the method, and the checked value is not the one
//! that they use. So no key may differ from a known key only in case. Unknown keys pass.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The keys of an object, or of each object of a list.
pub(super) struct Object {
    keys: &'static [&'static str],
    /// The objects of some keys.
    nested: &'static [(&'static str, &'static Object)],
}

/// The keys of a JSON-RPC message.
pub(super) const MESSAGE: &Object =
    &Object { keys: &["jsonrpc", "id", "method", "params", "result", "error"], nested: &[] };

/// The keys of the parameters of session requests.
pub(super) const SESSION_PARAMS: &Object = &Object {
    keys: &["cwd", "mcpServers", "additionalDirectories", "sessionId", "_meta"],
    nested: &[("mcpServers", SERVER)],
};

const SERVER: &Object = &Object {
    keys: &["type", "name", "command", "args", "env", "cwd", "url", "headers", "serverId", "_meta"],
    nested: &[("env", PAIR), ("headers", PAIR)],
};

const PAIR: &Object = &Object { keys: &["name", "value", "_meta"], nested: &[] };

/// Returns the known key that a key in `json` differs from only in case. Fails if `json` is invalid.
pub(super) fn differing_in_case(
    json: &str,
    object: &'static Object,
) -> Result<Option<&'static str>, serde_json::Error> {
    object.deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// Folds case in the widest sense: some readers treat `ſ` as `s`, and `İ` as `i`.
fn folded(key: &str) -> impl Iterator<Item = char> {
    let upper = key.chars().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).filter(|char| *char != '\u{307}')
}

impl<'de> DeserializeSeed<'de> for &'static Object {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &'static Object {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut differing = None;
        while let Some(key) = map.next_key::<String>()? {
            let known = self.keys.iter().copied().find(|known| folded(known).eq(folded(&key)));
            differing = differing.or(known.filter(|known| *known != key));
            match self.nested.iter().find(|(name, _)| *name == key) {
                Some((_, nested)) => differing = differing.or(map.next_value_seed(*nested)?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(differing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut differing = None;
        while let Some(item) = list.next_element_seed(self)? {
            differing = differing.or(item);
        }
        Ok(differing)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}
