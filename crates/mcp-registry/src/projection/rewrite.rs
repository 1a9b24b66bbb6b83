//! A schema written out by a profile: references in their place, keywords kept, dropped or refused.
//!
//! Bounded in depth and in the number of schemas written, so that references which double at each step end soon.
//! Keys are written in the order of the alphabet, whatever order a map of serde_json has in this build.

use std::collections::BTreeMap;

use mcp_model::RawJson;
use serde::Serialize;
use serde_json::{Map, Value};

use super::profile::{Dialect, Profile};
use crate::quote::quote;

/// The most schemas that one tool is written out to.
const SCHEMAS: usize = 10_000;

/// Writes `schema` out. `None` where the tool takes no arguments and the dialect cannot say an empty object.
pub(super) fn rewrite(schema: &Value, profile: &Profile) -> Result<Option<RawJson>, String> {
    if !jsonschema::draft202012::meta::is_valid(schema) {
        return Err("its schema is none of draft 2020-12".to_owned());
    }
    let mut writer = Writer {
        root: schema,
        profile,
        open: Vec::new(),
        schemas: 0,
        properties: 0,
        enum_values: 0,
        characters: 0,
    };
    let written = writer.schema(schema, 0)?;
    if written.0.get("type") != Some(&Written::Value(Value::from("object")))
        || written.0.contains_key("anyOf")
    {
        return Err("the root is no plain object".to_owned());
    }
    let nothing =
        matches!(written.0.get("properties"), None | Some(Written::Map(_)) if writer.properties == 0);
    if nothing && profile.dialect == Dialect::OpenApi {
        return Ok(None);
    }
    Ok(Some(RawJson::of(&written).expect("a map with text keys is JSON")))
}

struct Writer<'a> {
    root: &'a Value,
    profile: &'a Profile,
    /// References being written out.
    open: Vec<&'a str>,
    schemas: usize,
    properties: usize,
    enum_values: usize,
    /// Those of properties' names and of enumerated or constant texts.
    characters: usize,
}

/// A schema on its way out, in the order of its keys.
#[derive(Debug, PartialEq, Serialize)]
struct Out(BTreeMap<String, Written>);

#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Written {
    Value(Value),
    Schema(Out),
    List(Vec<Out>),
    Map(BTreeMap<String, Out>),
}

impl<'a> Writer<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<Out, String> {
        let Value::Object(schema) = schema else {
            return Err("it has a schema that is no object".to_owned());
        };
        self.schemas += 1;
        if depth > self.profile.depth || self.open.len() > self.profile.depth || self.schemas > SCHEMAS {
            return Err("its schema is too large or too deep when written out".to_owned());
        }
        if let Some(reference) = schema.get("$ref") {
            return self.reference(schema, reference, depth);
        }
        if let Some(keyword) = self.profile.refuse.iter().find(|it| schema.contains_key(**it)) {
            return Err(format!("`{keyword}` cannot be said"));
        }
        match schema.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) if self.profile.dialect == Dialect::OpenApi => {}
            Some(_) => return Err("`additionalProperties` cannot be said".to_owned()),
        }
        let mut res = Out(BTreeMap::new());
        for (keyword, value) in schema.iter().filter(|(it, _)| self.profile.keep.contains(&it.as_str())) {
            let written = self.keyword(keyword, value, depth)?;
            res.0.extend(written.map(|it| (keyword.clone(), it)));
        }
        if !["type", "enum", "const", "anyOf"].iter().any(|it| schema.contains_key(*it)) {
            return Err("it has a schema without `type`".to_owned());
        }
        if is_type(schema, "array") && !schema.contains_key("items") {
            return Err("a list of unknown items cannot be said".to_owned());
        }
        match self.profile.dialect {
            Dialect::Closed => closed(schema, &mut res, depth)?,
            Dialect::OpenApi => open_api(schema, &mut res, depth)?,
        }
        Ok(res)
    }

    /// Puts what a reference points to in its place; a description beside it stays.
    fn reference(
        &mut self,
        schema: &'a Map<String, Value>,
        reference: &'a Value,
        depth: usize,
    ) -> Result<Out, String> {
        let text = reference.as_str().ok_or("it has a `$ref` that is no text")?;
        let shapes = |it: &&String| {
            let it = it.as_str();
            let remark = matches!(it, "$ref" | "description" | "title");
            !remark && (self.profile.keep.contains(&it) || self.profile.refuse.contains(&it))
        };
        if schema.keys().any(|it| shapes(&it) || it == "additionalProperties") {
            return Err("keywords beside a `$ref` cannot be said".to_owned());
        }
        let target = text.strip_prefix('#').and_then(|it| self.root.pointer(it));
        let target = target.ok_or_else(|| format!("{} leads nowhere inside the schema", quote(text)))?;
        if text == "#" || self.open.contains(&text) {
            return Err(format!("{} refers to itself", quote(text)));
        }
        self.open.push(text);
        let mut res = self.schema(target, depth)?;
        self.open.pop();
        if let Some(description) = schema.get("description") {
            res.0.insert("description".to_owned(), Written::Value(description.clone()));
        }
        Ok(res)
    }

    fn count(&mut self, text: &str) -> Result<(), String> {
        self.characters += text.chars().count();
        if self.characters > self.profile.characters {
            return Err(format!(
                "its names and values have more than {} characters",
                self.profile.characters
            ));
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &'a Value, depth: usize) -> Result<Option<Written>, String> {
        Ok(Some(match (keyword, value) {
            ("properties", Value::Object(properties)) => {
                self.properties += properties.len();
                properties.keys().try_for_each(|it| self.count(it))?;
                if self.properties > self.profile.properties {
                    return Err(format!("it has more than {} properties", self.profile.properties));
                }
                let each =
                    properties.iter().map(|(name, it)| Ok((name.clone(), self.schema(it, depth + 1)?)));
                Written::Map(each.collect::<Result<_, String>>()?)
            }
            ("items", it) => Written::Schema(self.schema(it, depth + 1)?),
            ("anyOf", Value::Array(ways)) => {
                let each = ways.iter().map(|it| self.schema(it, depth + 1));
                Written::List(each.collect::<Result<_, String>>()?)
            }
            ("enum", Value::Array(values)) => {
                self.enum_values += values.len();
                values.iter().filter_map(Value::as_str).try_for_each(|it| self.count(it))?;
                if self.enum_values > self.profile.enum_values {
                    return Err(format!("it has more than {} enumerated values", self.profile.enum_values));
                }
                Written::Value(value.clone())
            }
            ("const", Value::String(text)) => {
                self.count(text)?;
                Written::Value(value.clone())
            }
            ("properties" | "anyOf" | "enum", _) => return Err(format!("its `{keyword}` is malformed")),
            ("format", it) if !it.as_str().is_some_and(|it| self.profile.formats.contains(&it)) => {
                return Ok(None);
            }
            (_, it) => Written::Value(it.clone()),
        }))
    }
}

fn is_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|it| it == name),
        it => it.is_some_and(|it| it == name),
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    is_type(schema, "object") || !schema.contains_key("type") && schema.contains_key("properties")
}

/// Closes an object, all of whose properties must be required.
fn closed(schema: &Map<String, Value>, res: &mut Out, depth: usize) -> Result<(), String> {
    if !is_object(schema) {
        return Ok(());
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if properties.is_none() && depth > 0 {
        return Err("an object of unknown properties cannot be said".to_owned());
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
    let mut names: Vec<&String> = properties.into_iter().flat_map(Map::keys).collect();
    names.sort();
    if let Some(name) = names.iter().find(|it| !is_required(it)) {
        return Err(format!("its property {} is optional", quote(name)));
    }
    res.0.entry("properties".to_owned()).or_insert_with(|| Written::Map(BTreeMap::new()));
    res.0.insert("required".to_owned(), Written::Value(names.into_iter().cloned().collect()));
    res.0.insert("additionalProperties".to_owned(), Written::Value(Value::Bool(false)));
    Ok(())
}

/// Says unions with `null`, constants and enumerations as OpenAPI does.
fn open_api(schema: &Map<String, Value>, res: &mut Out, depth: usize) -> Result<(), String> {
    let texts = |it: &Value| it.as_array().is_some_and(|it| it.iter().all(Value::is_string));
    if let Some(Value::Array(types)) = schema.get("type") {
        let mut others = types.iter().filter(|it| *it != "null");
        let (Some(only), None) = (others.next(), others.next()) else {
            return Err("a union of several types cannot be said".to_owned());
        };
        res.0.insert("type".to_owned(), Written::Value(only.clone()));
        if types.iter().any(|it| it == "null") {
            res.0.insert("nullable".to_owned(), Written::Value(Value::Bool(true)));
        }
    } else if schema.get("type").is_some_and(|it| it == "null") {
        return Err("`null` alone cannot be said".to_owned());
    }
    if let Some(constant) = schema.get("const") {
        res.0.remove("const");
        res.0.insert("enum".to_owned(), Written::Value(Value::Array(vec![constant.clone()])));
    }
    match res.0.get("enum") {
        Some(Written::Value(values)) if !texts(values) => {
            return Err("an enumeration of anything but texts cannot be said".to_owned());
        }
        Some(_) => {
            res.0.entry("type".to_owned()).or_insert_with(|| Written::Value(Value::from("string")));
        }
        None => {}
    }
    if res
        .0
        .get("enum")
        .is_some_and(|it| matches!(it, Written::Value(Value::Array(it)) if it.iter().any(|it| it == "")))
    {
        return Err("an empty text in an enumeration cannot be said".to_owned());
    }
    if let Some(Written::Value(Value::Array(required))) = res.0.get_mut("required") {
        let properties = schema.get("properties");
        required
            .retain(|it| it.as_str().is_some_and(|it| properties.is_some_and(|all| all.get(it).is_some())));
    }
    let none = schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    if depth > 0 && is_object(schema) && none {
        return Err("an object of unknown properties cannot be said".to_owned());
    }
    Ok(())
}
