//! A lock as the text of a file: JSON, sorted, one member a line, so that a review sees what changes.
//!
//! Somebody else may have written it: what is not understood to the last member is refused, with its place.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::{About, Approved, Digest, Item, Lock, Part, Print};
use crate::name::quote::{cut, label};

/// What a lock says that it is.
const FORMAT: &str = "mcp-lock";
/// The version of the format.
const VERSION: u32 = 1;
/// The largest text, in bytes.
const MOST_BYTES: usize = 8 << 20;
/// The most members of one object.
const MOST_MEMBERS: usize = 100_000;

/// Why a text is no lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// It is too large.
    #[error("it is larger than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    /// It is of another version.
    #[error("it has version {found} of the format, and only version {VERSION} is known here")]
    Version {
        /// Which.
        found: u32,
    },
    /// It is none.
    #[error("line {line}, column {column}: {message}")]
    Invalid {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
}

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    format: String,
    version: u32,
    servers: Once<WireServer>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireServer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<Digest>,
    #[serde(default, skip_serializing_if = "Once::is_empty")]
    tools: Once<Print>,
    #[serde(default, skip_serializing_if = "Once::is_empty")]
    prompts: Once<Print>,
    #[serde(default, skip_serializing_if = "Once::is_empty")]
    resources: Once<Print>,
    #[serde(default, skip_serializing_if = "Once::is_empty")]
    templates: Once<Print>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WirePrint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input_schema: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mime_type: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    annotations: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other: Option<Digest>,
    /// The description's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Lock {
    /// The lock as text.
    pub fn to_text(&self) -> String {
        let servers = self.servers.iter().map(|(name, it)| (name.clone(), wire(it))).collect();
        let wire = Wire { format: FORMAT.to_owned(), version: VERSION, servers: Once(servers) };
        let mut res =
            serde_json::to_string_pretty(&wire).expect("its keys are texts, and it writes to memory");
        res.push('\n');
        res
    }

    /// Reads a lock. Fails with the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Lock, LockError> {
        if text.len() > MOST_BYTES {
            return Err(LockError::TooLarge);
        }
        let invalid = |error: serde_json::Error| LockError::Invalid {
            line: error.line(),
            column: error.column(),
            message: said(&error),
        };
        let Head { format, version } = serde_json::from_str(text).map_err(invalid)?;
        if format != FORMAT {
            let message = format!("`format` is not \"{FORMAT}\"");
            return Err(LockError::Invalid { line: 1, column: 1, message });
        }
        if version != VERSION {
            return Err(LockError::Version { found: version });
        }
        let Wire { format: _, version: _, servers } = serde_json::from_str(text).map_err(invalid)?;
        Ok(Lock { servers: servers.0.into_iter().map(|(name, it)| (name, approved(it))).collect() })
    }
}

/// What is wrong, without its place, which is said beside it. Words of the text may be in it.
fn said(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |it| it.0);
    cut(message.chars().filter(|it| !it.is_control()).collect(), 200)
}

fn wire(approved: &Approved) -> WireServer {
    let Approved { about: About { name, version, instructions }, items } = approved;
    let of = |item: Item| Once(items.get(&item).cloned().unwrap_or_default());
    WireServer {
        name: name.clone(),
        version: version.clone(),
        instructions: *instructions,
        tools: of(Item::Tool),
        prompts: of(Item::Prompt),
        resources: of(Item::Resource),
        templates: of(Item::Template),
    }
}

fn approved(server: WireServer) -> Approved {
    let WireServer { name, version, instructions, tools, prompts, resources, templates } = server;
    let items = [
        (Item::Tool, tools.0),
        (Item::Prompt, prompts.0),
        (Item::Resource, resources.0),
        (Item::Template, templates.0),
    ];
    let items = items.into_iter().filter(|it| !it.1.is_empty()).collect();
    Approved { about: About { name, version, instructions }, items }
}

impl Serialize for Print {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = |part: Part| self.parts.get(&part).copied();
        let wire = WirePrint {
            name: of(Part::Name),
            title: of(Part::Title),
            description: of(Part::Description),
            input_schema: of(Part::InputSchema),
            output_schema: of(Part::OutputSchema),
            arguments: of(Part::Arguments),
            mime_type: of(Part::MimeType),
            annotations: of(Part::Annotations),
            other: of(Part::Other),
            text: self.text.clone(),
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Print {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Print, D::Error> {
        let WirePrint {
            name,
            title,
            description,
            input_schema,
            output_schema,
            arguments,
            mime_type,
            annotations,
            other,
            text,
        } = WirePrint::deserialize(deserializer)?;
        let parts = [
            (Part::Name, name),
            (Part::Title, title),
            (Part::Description, description),
            (Part::InputSchema, input_schema),
            (Part::OutputSchema, output_schema),
            (Part::Arguments, arguments),
            (Part::MimeType, mime_type),
            (Part::Annotations, annotations),
            (Part::Other, other),
        ];
        let parts = parts.into_iter().filter_map(|(part, it)| Some((part, it?))).collect();
        Ok(Print { parts, text })
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        Digest::parse(&text).ok_or_else(|| D::Error::custom("a hash is `sha256:` and 64 hexadecimal digits"))
    }
}

/// An object in which each key stands once.
#[derive(Serialize)]
#[serde(transparent)]
struct Once<T>(BTreeMap<String, T>);

impl<T> Once<T> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Once<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Once<T>, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = BTreeMap<String, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut res = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    if res.contains_key(&key) {
                        return Err(A::Error::custom(format!("`{}` stands there twice", label(&key))));
                    }
                    if res.len() == MOST_MEMBERS {
                        return Err(A::Error::custom(format!("there are more than {MOST_MEMBERS} members")));
                    }
                    let value = map.next_value()?;
                    res.insert(key, value);
                }
                Ok(res)
            }
        }
        deserializer.deserialize_map(Members(PhantomData)).map(Once)
    }
}
