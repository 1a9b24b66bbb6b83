//! The text of a lock file: sorted JSON, one member per line, for readable reviews.
//!
//! The file may come from another person or tool. Reading rejects everything unknown, with its position.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::{
    DefinitionPart, ItemKind, ItemSnapshot, JsonDigest, LockFile, ProgramRecord, ServerIdentity,
    ServerSnapshot,
};
use crate::name::display::{escape_name, truncate};

/// The value of `format`.
const FORMAT: &str = "mcp-lock";
/// The version of the format: 2 has programs.
const VERSION: u32 = 2;
/// The version without programs.
const VERSION_WITHOUT_PROGRAMS: u32 = 1;
/// The maximum size in bytes.
const MAX_BYTES: usize = 8 << 20;
/// The maximum number of members of one object.
const MAX_MEMBERS: usize = 100_000;

/// The error for an invalid lock file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockParseError {
    /// The text is too large.
    #[error("it is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// The version is unsupported.
    #[error("it has version {found} of the format, and only versions 1 and {VERSION} are known here")]
    Version {
        /// The version.
        found: u32,
    },
    /// The text is invalid.
    #[error("line {line}, column {column}: {message}")]
    Invalid {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The message.
        message: String,
    },
}

/// The members that are checked first, so that an unknown version has an error of its own.
#[derive(Deserialize)]
struct LockHeaderJson {
    format: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockJson {
    format: String,
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    programs: Option<UniqueKeyMap<ProgramRecord>>,
    servers: UniqueKeyMap<ServerJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<JsonDigest>,
    #[serde(default, skip_serializing_if = "UniqueKeyMap::is_empty")]
    tools: UniqueKeyMap<ItemSnapshot>,
    #[serde(default, skip_serializing_if = "UniqueKeyMap::is_empty")]
    prompts: UniqueKeyMap<ItemSnapshot>,
    #[serde(default, skip_serializing_if = "UniqueKeyMap::is_empty")]
    resources: UniqueKeyMap<ItemSnapshot>,
    #[serde(default, skip_serializing_if = "UniqueKeyMap::is_empty")]
    templates: UniqueKeyMap<ItemSnapshot>,
}

impl LockFile {
    /// Serializes the lock file.
    pub fn to_text(&self) -> String {
        let servers = self.servers.iter().map(|(name, it)| (name.clone(), server_to_json(it))).collect();
        let programs = self.programs.clone().map(UniqueKeyMap);
        let version = if programs.is_some() { VERSION } else { VERSION_WITHOUT_PROGRAMS };
        let servers = UniqueKeyMap(servers);
        let wire = LockJson { format: FORMAT.to_owned(), version, programs, servers };
        let mut res =
            serde_json::to_string_pretty(&wire).expect("its keys are texts, and it writes to memory");
        res.push('\n');
        res
    }

    /// Parses a lock file. Fails with the first error.
    pub fn parse(text: &str) -> Result<LockFile, LockParseError> {
        if text.len() > MAX_BYTES {
            return Err(LockParseError::TooLarge);
        }
        let invalid = |error: serde_json::Error| LockParseError::Invalid {
            line: error.line(),
            column: error.column(),
            message: error_message(&error),
        };
        let LockHeaderJson { format, version } = serde_json::from_str(text).map_err(invalid)?;
        if format != FORMAT {
            let message = format!("`format` is not \"{FORMAT}\"");
            return Err(LockParseError::Invalid { line: 1, column: 1, message });
        }
        if ![VERSION, VERSION_WITHOUT_PROGRAMS].contains(&version) {
            return Err(LockParseError::Version { found: version });
        }
        let LockJson { format: _, version: _, programs, servers } =
            serde_json::from_str(text).map_err(invalid)?;
        if (version == VERSION) != programs.is_some() {
            let message = format!("`programs` belongs to version {VERSION} of the format");
            return Err(LockParseError::Invalid { line: 1, column: 1, message });
        }
        Ok(LockFile {
            programs: programs.map(|it| it.0),
            servers: servers.0.into_iter().map(|(name, it)| (name, server_from_json(it))).collect(),
        })
    }
}

/// Returns the message without the position, which the error has separately. It may contain text of the file.
fn error_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |it| it.0);
    truncate(message.chars().filter(|it| !it.is_control()).collect(), 200)
}

fn server_to_json(approved: &ServerSnapshot) -> ServerJson {
    let ServerSnapshot { identity: ServerIdentity { name, version, instructions }, items } = approved;
    let items_of = |item: ItemKind| UniqueKeyMap(items.get(&item).cloned().unwrap_or_default());
    ServerJson {
        name: name.clone(),
        version: version.clone(),
        instructions: *instructions,
        tools: items_of(ItemKind::Tool),
        prompts: items_of(ItemKind::Prompt),
        resources: items_of(ItemKind::Resource),
        templates: items_of(ItemKind::Template),
    }
}

fn server_from_json(server: ServerJson) -> ServerSnapshot {
    let ServerJson { name, version, instructions, tools, prompts, resources, templates } = server;
    let items = [
        (ItemKind::Tool, tools.0),
        (ItemKind::Prompt, prompts.0),
        (ItemKind::Resource, resources.0),
        (ItemKind::Template, templates.0),
    ];
    let items = items.into_iter().filter(|it| !it.1.is_empty()).collect();
    ServerSnapshot { identity: ServerIdentity { name, version, instructions }, items }
}

/// The name of the member with the start of the description. The other members are [`DefinitionPart`]s.
const TEXT_MEMBER: &str = "text";

impl Serialize for ItemSnapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (part, digest) in &self.parts {
            map.serialize_entry(part.as_str(), digest)?;
        }
        if let Some(text) = &self.text {
            map.serialize_entry(TEXT_MEMBER, text)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ItemSnapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ItemSnapshot, D::Error> {
        struct ItemVisitor;
        impl<'de> Visitor<'de> for ItemVisitor {
            type Value = ItemSnapshot;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ItemSnapshot, A::Error> {
                let mut item = ItemSnapshot::default();
                while let Some(key) = map.next_key::<String>()? {
                    let is_new = if key == TEXT_MEMBER {
                        item.text.replace(map.next_value()?).is_none()
                    } else if let Ok(part) = key.parse::<DefinitionPart>() {
                        item.parts.insert(part, map.next_value()?).is_none()
                    } else {
                        return Err(A::Error::custom(format!("unknown field `{}`", escape_name(&key))));
                    };
                    if !is_new {
                        return Err(duplicate_key(&key));
                    }
                }
                Ok(item)
            }
        }
        deserializer.deserialize_map(ItemVisitor)
    }
}

/// The error for a key that appears twice in an object.
fn duplicate_key<E: serde::de::Error>(key: &str) -> E {
    E::custom(format!("the key `{}` appears twice", escape_name(key)))
}

impl Serialize for JsonDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JsonDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonDigest, D::Error> {
        let text = String::deserialize(deserializer)?;
        JsonDigest::parse(&text)
            .ok_or_else(|| D::Error::custom("a hash is `sha256:` and 64 hexadecimal digits"))
    }
}

/// An object without duplicate keys.
#[derive(Serialize)]
#[serde(transparent)]
struct UniqueKeyMap<T>(BTreeMap<String, T>);

impl<T> UniqueKeyMap<T> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for UniqueKeyMap<T> {
    fn default() -> UniqueKeyMap<T> {
        UniqueKeyMap(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for UniqueKeyMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UniqueKeyMap<T>, D::Error> {
        struct MapVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for MapVisitor<T> {
            type Value = BTreeMap<String, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut res = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    if res.contains_key(&key) {
                        return Err(duplicate_key(&key));
                    }
                    if res.len() == MAX_MEMBERS {
                        return Err(A::Error::custom(format!("there are more than {MAX_MEMBERS} members")));
                    }
                    let value = map.next_value()?;
                    res.insert(key, value);
                }
                Ok(res)
            }
        }
        deserializer.deserialize_map(MapVisitor(PhantomData)).map(UniqueKeyMap)
    }
}
