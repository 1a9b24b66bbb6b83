//! Rewrites a schema by a profile: references are inlined; keywords are kept, dropped or refused.
//!
//! Depth and number of schemas are bounded, so that doubling references terminate soon. Keys are written in
//! alphabetical order, independent of serde_json's map order in a build.

use std::collections::BTreeMap;

use mcp_host_model::RawJson;
use serde_json::{Map, Value};

use super::dialect::{apply_open_api, close_object, schema_types};
use super::profile::{ProviderProfile, SUPPORTED_KEYWORDS, SchemaDialect, UNSUPPORTED_KEYWORDS};
use super::schema_out::{SchemaOut, ValueOut};
use crate::name::display::quote;

/// The maximum number of schemas of one tool.
const MAX_SCHEMAS: usize = 10_000;

/// The reason for a schema that violates its meta-schema.
pub(super) const INVALID_SCHEMA: &str = "its schema is not valid in draft 2020-12";

/// The reason for a reference without a target.
pub(super) fn no_target_reason(reference: &str) -> String {
    format!("{} leads nowhere inside the schema", quote(reference))
}

/// Rewrites `schema`. `None` if the tool has no arguments and the dialect cannot express an empty object.
pub(super) fn rewrite(schema: &Value, profile: &ProviderProfile) -> Result<Option<RawJson>, String> {
    if !jsonschema::draft202012::meta::is_valid(schema) {
        return Err(INVALID_SCHEMA.to_owned());
    }
    let mut writer = SchemaWriter {
        root: schema,
        profile,
        open: Vec::new(),
        schemas: 0,
        properties: 0,
        enum_values: 0,
        characters: 0,
    };
    let written = writer.rewrite_schema(schema, 0)?;
    let has_other_keywords =
        ["anyOf", "enum", "const", "nullable"].iter().any(|it| written.0.contains_key(*it));
    if written.0.get("type") != Some(&ValueOut::Value(Value::from("object"))) || has_other_keywords {
        return Err("the root is not a plain object".to_owned());
    }
    let has_no_arguments =
        matches!(written.0.get("properties"), None | Some(ValueOut::Map(_)) if writer.properties == 0);
    if has_no_arguments && profile.dialect == SchemaDialect::OpenApi {
        return Ok(None);
    }
    Ok(Some(RawJson::from_value(&written).expect("a map with text keys is JSON")))
}

/// Rewrites one schema, and counts against the limits of the profile.
struct SchemaWriter<'a> {
    root: &'a Value,
    profile: &'a ProviderProfile,
    /// The references that are being inlined at this point, to detect recursion.
    open: Vec<&'a str>,
    schemas: usize,
    properties: usize,
    enum_values: usize,
    /// The characters of property names and of enumerated or constant texts.
    characters: usize,
}

impl<'a> SchemaWriter<'a> {
    /// Rewrites a schema at this depth. Fails with the reason why the provider does not accept it.
    fn rewrite_schema(&mut self, schema: &'a Value, depth: usize) -> Result<SchemaOut, String> {
        let Value::Object(schema) = schema else {
            return Err("it has a schema that is not an object".to_owned());
        };
        self.schemas += 1;
        if depth > self.profile.max_depth
            || self.open.len() > self.profile.max_depth
            || self.schemas > MAX_SCHEMAS
        {
            return Err("its schema is too large or too deep when written out".to_owned());
        }
        if let Some(reference) = schema.get("$ref") {
            return self.inline_reference(schema, reference, depth);
        }
        if let Some(keyword) = UNSUPPORTED_KEYWORDS.iter().find(|it| schema.contains_key(**it)) {
            return Err(format!("`{keyword}` cannot be expressed"));
        }
        match schema.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) if self.profile.dialect == SchemaDialect::OpenApi => {}
            Some(_) => return Err("`additionalProperties` cannot be expressed".to_owned()),
        }
        if let Some(alternatives) = schema.get("anyOf") {
            return self.rewrite_any_of(schema, alternatives, depth);
        }
        let types = schema_types(schema);
        if types.is_empty() {
            return Err("it has a schema without `type`".to_owned());
        }
        if types.contains(&"array") && !schema.contains_key("items") {
            return Err("a list of unknown items cannot be expressed".to_owned());
        }
        let mut res = SchemaOut(BTreeMap::new());
        for (keyword, value) in schema.iter().filter(|(it, _)| self.profile.keeps_keyword(it, &types)) {
            let written = self.rewrite_keyword(keyword, value, &types, depth)?;
            res.0.extend(written.map(|it| (keyword.clone(), it)));
        }
        match self.profile.dialect {
            SchemaDialect::Closed => close_object(schema, &mut res, depth)?,
            SchemaDialect::OpenApi => apply_open_api(schema, &mut res, depth)?,
        }
        Ok(res)
    }

    /// Inlines a reference; annotations beside it are kept.
    fn inline_reference(
        &mut self,
        schema: &'a Map<String, Value>,
        reference: &'a Value,
        depth: usize,
    ) -> Result<SchemaOut, String> {
        let text = reference.as_str().ok_or("it has a `$ref` that is not a string")?;
        let constrains_shape = |it: &str| {
            SUPPORTED_KEYWORDS.contains(&it)
                || UNSUPPORTED_KEYWORDS.contains(&it)
                || it == "additionalProperties"
        };
        if schema.keys().any(|it| constrains_shape(it)) {
            return Err("keywords beside a `$ref` cannot be expressed".to_owned());
        }
        let target = text.strip_prefix('#').and_then(|it| self.root.pointer(it));
        let target = target.ok_or_else(|| no_target_reason(text))?;
        if text == "#" || self.open.contains(&text) {
            return Err(format!("{} refers to itself", quote(text)));
        }
        self.open.push(text);
        let mut res = self.rewrite_schema(target, depth)?;
        self.open.pop();
        if !res.0.contains_key("anyOf") || self.profile.allowed_beside_any_of.contains(&"description") {
            res.copy_remarks(schema);
        }
        Ok(res)
    }

    /// Rewrites alternatives. OpenAPI expresses `null` among them as `nullable`.
    fn rewrite_any_of(
        &mut self,
        schema: &'a Map<String, Value>,
        alternatives: &'a Value,
        depth: usize,
    ) -> Result<SchemaOut, String> {
        let alternatives = alternatives.as_array().ok_or("its `anyOf` is malformed")?;
        if let Some(keyword) =
            SUPPORTED_KEYWORDS.iter().find(|it| **it != "anyOf" && schema.contains_key(**it))
        {
            return Err(format!("`{keyword}` beside `anyOf` cannot be expressed"));
        }
        let is_null = |it: &&Value| it.get("type").is_some_and(|it| it == "null");
        let is_open_api = self.profile.dialect == SchemaDialect::OpenApi;
        let nullable = is_open_api && alternatives.iter().any(|it| is_null(&it));
        let expressed: Vec<&Value> = alternatives.iter().filter(|it| !(is_open_api && is_null(it))).collect();
        let mut res = match expressed.as_slice() {
            [] => return Err("`null` alone cannot be expressed".to_owned()),
            [only] if nullable => {
                let mut res = self.rewrite_schema(only, depth)?;
                if res.0.contains_key("anyOf") {
                    return Err("alternatives within alternatives cannot be expressed".to_owned());
                }
                res.allow_null();
                res.copy_remarks(schema);
                return Ok(res);
            }
            several => {
                let each = several.iter().map(|it| self.rewrite_schema(it, depth + 1));
                SchemaOut(BTreeMap::from([(
                    "anyOf".to_owned(),
                    ValueOut::List(each.collect::<Result<_, String>>()?),
                )]))
            }
        };
        if let Some(ValueOut::List(alternatives)) = res.0.get_mut("anyOf").filter(|_| nullable) {
            alternatives.iter_mut().filter(|it| !it.0.contains_key("anyOf")).for_each(SchemaOut::allow_null);
        }
        if self.profile.allowed_beside_any_of.contains(&"description") {
            res.copy_remarks(schema);
        }
        Ok(res)
    }

    /// Counts the characters of a name or value. Fails if there are too many.
    fn count_characters(&mut self, text: &str) -> Result<(), String> {
        self.characters += text.chars().count();
        if self.characters > self.profile.max_characters {
            return Err(format!(
                "its names and values have more than {} characters",
                self.profile.max_characters
            ));
        }
        Ok(())
    }

    /// Rewrites the value of a keyword; `None` if the keyword is dropped.
    fn rewrite_keyword(
        &mut self,
        keyword: &str,
        value: &'a Value,
        types: &[&str],
        depth: usize,
    ) -> Result<Option<ValueOut>, String> {
        Ok(Some(match (keyword, value) {
            ("properties", Value::Object(properties)) => {
                self.properties += properties.len();
                properties.keys().try_for_each(|it| self.count_characters(it))?;
                if self.properties > self.profile.max_properties {
                    return Err(format!("it has more than {} properties", self.profile.max_properties));
                }
                let each = properties
                    .iter()
                    .map(|(name, it)| Ok((name.clone(), self.rewrite_schema(it, depth + 1)?)));
                ValueOut::Map(each.collect::<Result<_, String>>()?)
            }
            ("items", it) => ValueOut::Schema(self.rewrite_schema(it, depth + 1)?),
            ("enum", Value::Array(values)) => {
                self.count_enumeration(values)?;
                ValueOut::Value(value.clone())
            }
            ("const", Value::String(text)) => {
                self.count_characters(text)?;
                ValueOut::Value(value.clone())
            }
            ("properties" | "enum", _) => return Err(format!("its `{keyword}` is malformed")),
            ("format", it) if !it.as_str().is_some_and(|it| self.profile.keeps_format(it, types)) => {
                return Ok(None);
            }
            (_, it) => ValueOut::Value(it.clone()),
        }))
    }

    /// Counts the values of an enumeration. Fails if there are too many.
    fn count_enumeration(&mut self, values: &[Value]) -> Result<(), String> {
        self.enum_values += values.len();
        let texts = || values.iter().filter_map(Value::as_str);
        texts().try_for_each(|it| self.count_characters(it))?;
        if self.enum_values > self.profile.max_enum_values {
            return Err(format!("it has more than {} enumerated values", self.profile.max_enum_values));
        }
        let Some((long_count, max_characters)) = self.profile.long_enum else { return Ok(()) };
        if values.len() > long_count && texts().map(|it| it.chars().count()).sum::<usize>() > max_characters {
            return Err(format!(
                "an enumeration of more than {long_count} values has more than {max_characters} characters"
            ));
        }
        Ok(())
    }
}
