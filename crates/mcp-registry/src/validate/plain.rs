//! Arguments that fit their schema at first sight: most schemas ask for nothing but types, names and simple limits, and
//! most arguments have them. Those are walked as the text that they are, without a tree of them.
//!
//! What is said here is only ever "it fits". Whatever this does not know, of the schema or of the value, is left to the
//! validator, which decides about it and finds the words; so this must be no more generous than that one is.

mod class;
mod walk;

use serde_json::{Map, Value};

use class::Class;

/// The most names that are looked through one by one: the properties of one object, and the texts of one `enum`.
const MOST_NAMES: usize = 64;

/// What a schema asks of a value of each kind; `None` where such a value is not sure to fit.
#[derive(Debug, Default)]
pub(super) struct Plain {
    null: Option<()>,
    boolean: Option<()>,
    number: Option<Numbers>,
    text: Option<Texts>,
    array: Option<Items>,
    object: Option<Members>,
}

/// What is asked of a value; `None` where it may be anything.
type Asked = Option<Box<Plain>>;

#[derive(Debug)]
struct Numbers {
    only: Only,
    least: Option<i64>,
    most: Option<i64>,
}

/// Which numbers fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Only {
    /// Those that are written as whole ones.
    Whole,
    /// Others, too, where there is no limit.
    Any,
}

#[derive(Debug)]
struct Texts {
    among: Option<Vec<Box<str>>>,
    class: Option<Class>,
    length: Length,
}

#[derive(Debug)]
struct Items {
    each: Asked,
    length: Length,
}

/// How many characters or items there are, both ends included.
#[derive(Debug, Clone, Copy)]
struct Length {
    least: u64,
    most: u64,
}

#[derive(Debug)]
struct Members {
    known: Vec<(Box<str>, Asked)>,
    /// A bit for each of those that must be there.
    required: u64,
    others: Others,
}

/// What members of other names are.
#[derive(Debug)]
enum Others {
    Refused,
    Asked(Asked),
}

impl Plain {
    /// What `schema` asks of a value, where all of that is plain. The validator must have taken the schema.
    pub(super) fn of(schema: &Value) -> Option<Plain> {
        match schema {
            Value::Bool(true) => Plain::of_members(&Map::new()),
            Value::Object(members) => Plain::of_members(members),
            Value::Bool(false) | Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    fn of_members(schema: &Map<String, Value>) -> Option<Plain> {
        let is_plain = |key: &String| KEYWORDS.contains(&key.as_str()) || says_nothing(key);
        if !schema.keys().all(is_plain) {
            return None;
        }
        if let Some(alternatives) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            let alone = schema.keys().filter(|it| !says_nothing(it)).count() == 1;
            return alone.then(|| Plain::of_alternatives(alternatives)).flatten();
        }
        let mut kinds = Kinds::of(schema.get("type"))?;
        let mut among = None;
        let options = match (schema.get("enum"), schema.get("const")) {
            (None, None) => None,
            (Some(options), None) => Some(options.as_array()?.as_slice()),
            (None, Some(option)) => Some(std::slice::from_ref(option)),
            (Some(_), Some(_)) => return None,
        };
        if let Some(options) = options {
            let texts: Vec<Box<str>> = options.iter().filter_map(Value::as_str).map(Into::into).collect();
            if texts.len() > MOST_NAMES {
                return None;
            }
            // Of other values it is not known here whether they are meant.
            kinds =
                Kinds { null: kinds.null && options.contains(&Value::Null), text: kinds.text, ..Kinds::NONE };
            among = Some(texts);
        }
        Some(Plain {
            null: kinds.null.then_some(()),
            boolean: kinds.boolean.then_some(()),
            number: match kinds.number {
                Some(only) => Some(Numbers {
                    only,
                    least: limit(schema.get("minimum"), Value::as_i64)?,
                    most: limit(schema.get("maximum"), Value::as_i64)?,
                }),
                None => None,
            },
            text: match kinds.text {
                true => Some(Texts {
                    among,
                    class: limit(schema.get("pattern"), |it| Class::of(it.as_str()?))?,
                    length: Length::of(schema, "minLength", "maxLength")?,
                }),
                false => None,
            },
            array: match kinds.array {
                true => Some(Items {
                    each: asked(schema.get("items"))?,
                    length: Length::of(schema, "minItems", "maxItems")?,
                }),
                false => None,
            },
            object: match kinds.object {
                true => Some(Members::of(schema)?),
                false => None,
            },
        })
    }

    /// Alternatives of which no two take values of one kind: then a value has one at the most.
    fn of_alternatives(alternatives: &Value) -> Option<Plain> {
        let mut res = Plain::default();
        for it in alternatives.as_array()? {
            let Plain { null, boolean, number, text, array, object } = Plain::of(it)?;
            put(&mut res.null, null)?;
            put(&mut res.boolean, boolean)?;
            put(&mut res.number, number)?;
            put(&mut res.text, text)?;
            put(&mut res.array, array)?;
            put(&mut res.object, object)?;
        }
        Some(res)
    }
}

/// Takes what is asked of one kind; nothing where another alternative asks something of it.
fn put<T>(place: &mut Option<T>, it: Option<T>) -> Option<()> {
    match (&place, it) {
        (_, None) => Some(()),
        (None, it) => {
            *place = it;
            Some(())
        }
        (Some(_), Some(_)) => None,
    }
}

/// The keywords that are understood here.
const KEYWORDS: [&str; 16] = [
    "type",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
];

/// Keywords that ask for nothing. A format is left to the server, in every draft. Definitions matter to who refers to
/// them, and `$ref` is no keyword that is understood here.
fn says_nothing(key: &str) -> bool {
    matches!(
        key,
        "title"
            | "description"
            | "default"
            | "examples"
            | "format"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "$comment"
            | "$schema"
            | "$defs"
            | "definitions"
    )
}

/// The kinds of values that `type` names.
#[derive(Clone, Copy)]
struct Kinds {
    null: bool,
    boolean: bool,
    number: Option<Only>,
    text: bool,
    array: bool,
    object: bool,
}

impl Kinds {
    const NONE: Kinds =
        Kinds { null: false, boolean: false, number: None, text: false, array: false, object: false };

    fn of(types: Option<&Value>) -> Option<Kinds> {
        let Some(types) = types else {
            let number = Some(Only::Any);
            return Some(Kinds { null: true, boolean: true, number, text: true, array: true, object: true });
        };
        let mut res = Kinds::NONE;
        let types = match types {
            Value::Array(types) => types.as_slice(),
            one => std::slice::from_ref(one),
        };
        for it in types {
            match it.as_str()? {
                "null" => res.null = true,
                "boolean" => res.boolean = true,
                "integer" => {
                    res.number.get_or_insert(Only::Whole);
                }
                "number" => res.number = Some(Only::Any),
                "string" => res.text = true,
                "array" => res.array = true,
                "object" => res.object = true,
                _ => return None,
            }
        }
        Some(res)
    }
}

impl Length {
    fn of(schema: &Map<String, Value>, least: &str, most: &str) -> Option<Length> {
        let least = limit(schema.get(least), Value::as_u64)?.unwrap_or(0);
        let most = limit(schema.get(most), Value::as_u64)?.unwrap_or(u64::MAX);
        Some(Length { least, most })
    }

    fn admits(self, length: u64) -> bool {
        (self.least..=self.most).contains(&length)
    }
}

/// A limit, if there is one; nothing where it is written in an unusual way.
fn limit<T>(limit: Option<&Value>, read: fn(&Value) -> Option<T>) -> Option<Option<T>> {
    match limit {
        None => Some(None),
        Some(limit) => read(limit).map(Some),
    }
}

/// What the schema inside another one asks.
fn asked(schema: Option<&Value>) -> Option<Asked> {
    match schema {
        None | Some(Value::Bool(true)) => Some(None),
        Some(schema) => Some(Some(Box::new(Plain::of(schema)?))),
    }
}

impl Members {
    fn of(schema: &Map<String, Value>) -> Option<Members> {
        let others = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => Others::Refused,
            schema => Others::Asked(asked(schema)?),
        };
        let mut known: Vec<(Box<str>, Asked)> = Vec::new();
        if let Some(properties) = schema.get("properties") {
            for (name, schema) in properties.as_object()? {
                known.push((name.as_str().into(), asked(Some(schema))?));
            }
        }
        let mut required = 0;
        for name in limit(schema.get("required"), |it| it.as_array().cloned())?.unwrap_or_default() {
            let name = name.as_str()?;
            let at = match known.iter().position(|(it, _)| **it == *name) {
                Some(at) => at,
                // It is one of the others, of which everything is taken.
                None => match &others {
                    Others::Asked(None) => {
                        known.push((name.into(), None));
                        known.len() - 1
                    }
                    Others::Asked(Some(_)) | Others::Refused => return None,
                },
            };
            required |= 1u64.checked_shl(u32::try_from(at).ok()?)?;
        }
        (known.len() <= MOST_NAMES).then_some(Members { known, required, others })
    }
}

#[cfg(test)]
mod tests;
