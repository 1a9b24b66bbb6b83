//! The cost of a schema, estimated before it is compiled.
//!
//! References let a small schema describe an infinite one, or one that doubles at each step. They are followed here
//! only to count; nothing is built. Within the bounds, the time of a check grows with the size of the value.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// The largest schema that is compiled, in bytes. The largest known schemas of real servers are a tenth of it.
pub(super) const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// The analysis of a schema.
pub(super) struct SchemaAnalysis {
    /// The cost of checks.
    pub(super) cost: SchemaCost,
    /// Whether `items` is an array anywhere, as before 2020-12.
    pub(super) has_tuples: bool,
    /// Whether `$schema` names the draft.
    pub(super) names_draft: bool,
}

/// The cost of checks against one schema.
pub(super) struct SchemaCost {
    /// An estimate of the number of schemas that one check visits, with references expanded at each use.
    expansion: u64,
    /// The depth of the expanded schema.
    depth: u64,
    /// The number of references if the schema is recursive; `None` if it is not.
    recursive_references: Option<u64>,
    /// The number of patterns.
    patterns: u64,
    /// The engine that runs them.
    pub(super) engine: PatternEngine,
}

/// A regular expression engine.
pub(super) enum PatternEngine {
    /// Linear time in the text.
    Linear,
    /// Backtracking, with a limit.
    Backtracking,
}

/// The size of a value.
#[derive(Clone, Copy)]
pub(super) struct ValueSize {
    /// The number of values, nested ones included.
    values: u64,
    /// The number of strings and member names.
    texts: u64,
    /// The total size of these texts in bytes.
    bytes: u64,
    /// The depth of nesting.
    depth: u64,
}

/// The maximum number of references.
const MAX_REFERENCES: usize = 500;
/// The maximum number of references other than `#` and `#/…`. Their targets are not resolved here.
const MAX_FOREIGN_REFERENCES: usize = 16;
/// The maximum number of patterns.
const MAX_PATTERNS: usize = 128;
/// The maximum depth of a schema, with references expanded.
const MAX_DEPTH: u64 = 200;
/// The maximum depth of a recursive check.
const MAX_RECURSIVE_DEPTH: u64 = 2_000;
/// The maximum number of steps of a check, one per schema and value: about a second.
const MAX_STEPS: u64 = 30_000_000;
/// The maximum number of bytes that patterns match in a check, counted per pattern.
const MAX_PATTERN_TEXT: u64 = 64 << 20;
/// The maximum number of strings that backtracking patterns match in a check, counted per pattern.
const MAX_BACKTRACKED_TEXTS: u64 = 1_500;
/// The maximum number of steps for collecting all violations.
const MAX_DETAILED_STEPS: u64 = 1_000_000;

impl SchemaCost {
    /// Fails if a value of this size is too expensive to check. The error is the beginning of a sentence: the caller
    /// appends what the value is.
    pub(super) fn check_size(&self, size: ValueSize) -> Result<(), &'static str> {
        if self.expansion.saturating_mul(size.values) > MAX_STEPS {
            return Err("the schema is too large to check");
        }
        if self.recursive_references.is_some() && self.depth.saturating_mul(size.depth) > MAX_RECURSIVE_DEPTH
        {
            return Err("the schema is recursive, and too deep to check");
        }
        let texts = match self.engine {
            PatternEngine::Linear => 0,
            PatternEngine::Backtracking => self.patterns.saturating_mul(size.texts),
        };
        if texts > MAX_BACKTRACKED_TEXTS || self.patterns.saturating_mul(size.bytes) > MAX_PATTERN_TEXT {
            return Err("the schema has too many patterns to check");
        }
        Ok(())
    }

    /// Returns how many violations may be collected. Unlike a plain validity check, collecting does not cache
    /// results, so a recursive schema may visit one value on very many paths.
    pub(super) fn error_detail(&self, size: ValueSize) -> ErrorDetail {
        // An upper bound of the paths to one value.
        let paths = match self.recursive_references {
            Some(references) => references.saturating_pow(u32::try_from(size.depth).unwrap_or(u32::MAX)),
            None => 1,
        };
        let steps = self.expansion.saturating_mul(size.values).saturating_mul(paths);
        if steps <= MAX_DETAILED_STEPS {
            ErrorDetail::All
        } else if steps <= MAX_STEPS {
            ErrorDetail::First
        } else {
            ErrorDetail::None
        }
    }
}

/// The number of violations that may be collected.
pub(super) enum ErrorDetail {
    /// All violations.
    All,
    /// Only the first, because each one is kept in memory.
    First,
    /// None: only that the value is invalid.
    None,
}

/// Measures a value.
pub(super) fn measure_value(value: &Value) -> ValueSize {
    let mut res = ValueSize { values: 0, texts: 0, bytes: 0, depth: 0 };
    let mut text = |it: &str| {
        res.texts += 1;
        res.bytes += it.len() as u64;
    };
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        res.values += 1;
        res.depth = res.depth.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|it| (it, depth + 1))),
            Value::Object(members) => {
                members.keys().for_each(|it| text(it));
                open.extend(members.values().map(|it| (it, depth + 1)));
            }
            Value::String(it) => text(it),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    res
}

/// Analyzes a schema. Fails with the reason if it exceeds a bound.
pub(super) fn analyze(schema: &Value) -> Result<SchemaAnalysis, String> {
    let counts = count_keywords(schema);
    let foreign = if counts.has_nested_ids { counts.references } else { counts.foreign_references };
    if counts.references > MAX_REFERENCES || foreign > MAX_FOREIGN_REFERENCES {
        return Err("its schema has too many references".to_owned());
    }
    if counts.patterns > MAX_PATTERNS {
        return Err(format!("its schema has more than {MAX_PATTERNS} patterns"));
    }
    let mut expander = ReferenceExpander {
        root: schema,
        done: HashMap::new(),
        open: HashSet::new(),
        is_recursive: foreign > 0,
    };
    expander.check_cycles()?;
    let Expansion { schemas, depth } = expander.expand(schema, 0)?;
    let recursive_references = expander.is_recursive.then_some(counts.references as u64);
    Ok(SchemaAnalysis {
        cost: SchemaCost {
            expansion: schemas,
            depth,
            recursive_references,
            patterns: counts.patterns as u64,
            // The caller replaces it if a pattern needs backtracking.
            engine: PatternEngine::Linear,
        },
        has_tuples: counts.has_tuples,
        names_draft: schema.get("$schema").is_some_and(Value::is_string),
    })
}

/// What a schema contains, as far as it affects the cost of checks.
#[derive(Default)]
struct KeywordCounts {
    references: usize,
    /// References other than `#` and `#/…`.
    foreign_references: usize,
    patterns: usize,
    has_tuples: bool,
    has_nested_ids: bool,
}

/// Counts keywords in the whole schema. Data such as `default` is skipped.
fn count_keywords(schema: &Value) -> KeywordCounts {
    #[derive(Clone, Copy, PartialEq)]
    enum ValueKind {
        Schema,
        /// A map whose keys are names, not keywords.
        NamedSchemas,
    }
    let mut res = KeywordCounts::default();
    let mut open = vec![(schema, ValueKind::Schema)];
    while let Some((value, kind)) = open.pop() {
        let members = match value {
            Value::Object(members) => members,
            Value::Array(items) => {
                open.extend(items.iter().map(|it| (it, ValueKind::Schema)));
                continue;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        };
        for (key, value) in members {
            if kind == ValueKind::NamedSchemas {
                open.push((value, ValueKind::Schema));
                continue;
            }
            match key.as_str() {
                "default" | "const" | "enum" | "examples" => continue,
                "$ref" => {
                    res.references += 1;
                    let local = value.as_str().is_some_and(|it| it == "#" || it.starts_with("#/"));
                    res.foreign_references += usize::from(!local);
                }
                "$dynamicRef" | "$recursiveRef" => {
                    res.references += 1;
                    res.foreign_references += 1;
                }
                "$id" | "id" if !std::ptr::eq(members, root_members(schema)) => {
                    res.has_nested_ids |= value.is_string()
                }
                "pattern" => res.patterns += usize::from(value.is_string()),
                "patternProperties" => res.patterns += value.as_object().map_or(0, Map::len),
                "items" => res.has_tuples |= value.is_array(),
                _ => {}
            }
            let has_names = matches!(
                key.as_str(),
                "properties"
                    | "patternProperties"
                    | "$defs"
                    | "definitions"
                    | "dependentSchemas"
                    | "dependencies"
            );
            open.push((value, if has_names { ValueKind::NamedSchemas } else { ValueKind::Schema }));
        }
    }
    res
}

/// The address of the root's members, which identifies the root: its `$id` does not count as nested.
fn root_members(schema: &Value) -> *const Map<String, Value> {
    schema.as_object().map_or(std::ptr::null(), std::ptr::from_ref)
}

/// Expands the references of a schema to measure it.
struct ReferenceExpander<'a> {
    root: &'a Value,
    /// The result for each schema that was expanded, by its address.
    done: HashMap<*const Value, Expansion>,
    /// The schemas that are being expanded.
    open: HashSet<*const Value>,
    /// Whether a reference is recursive, or leads out of the schema, where it may be recursive.
    is_recursive: bool,
}

/// The size of a schema with its references expanded.
#[derive(Clone, Copy)]
struct Expansion {
    /// The number of schemas that a check of one value visits.
    schemas: u64,
    depth: u64,
}

impl<'a> ReferenceExpander<'a> {
    /// Fails if references form a cycle that does not descend into the value, because a check of it would not end.
    fn check_cycles(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        let mut reachable = vec![self.root];
        let mut at = 0;
        while let Some(schema) = reachable.get(at).copied() {
            at += 1;
            let applied = self.in_place_subschemas(schema).into_iter().chain(inner_subschemas(schema));
            reachable.extend(applied.filter(|it| seen.insert(std::ptr::from_ref(*it))));
        }
        let mut done = HashSet::new();
        for it in reachable {
            self.check_cycle_from(it, &mut Vec::new(), &mut done)?;
        }
        Ok(())
    }

    /// Fails if the schemas that apply to the same value lead back to one of `path`, the schemas that led to this one.
    fn check_cycle_from(
        &self,
        schema: &'a Value,
        path: &mut Vec<*const Value>,
        done: &mut HashSet<*const Value>,
    ) -> Result<(), String> {
        let address = std::ptr::from_ref(schema);
        if done.contains(&address) {
            return Ok(());
        }
        if path.contains(&address) {
            return Err("its schema refers to itself without end".to_owned());
        }
        check_depth(path.len() as u64)?;
        path.push(address);
        for it in self.in_place_subschemas(schema) {
            self.check_cycle_from(it, path, done)?;
        }
        path.pop();
        done.insert(address);
        Ok(())
    }

    /// Expands `schema`, which is at depth `level`. Fails if it is nested too deeply.
    fn expand(&mut self, schema: &'a Value, level: u64) -> Result<Expansion, String> {
        if let Some(known) = self.done.get(&std::ptr::from_ref(schema)) {
            return Ok(*known);
        }
        if !self.open.insert(schema) {
            self.is_recursive = true;
            return Ok(Expansion { schemas: 1, depth: 1 });
        }
        check_depth(level)?;
        let (mut schemas, mut depth): (u64, u64) = (1 + count_compared_values(schema), 0);
        for it in self.in_place_subschemas(schema).into_iter().chain(inner_subschemas(schema)) {
            let expanded = self.expand(it, level + 1)?;
            schemas = schemas.saturating_add(expanded.schemas);
            depth = depth.max(expanded.depth);
        }
        // To determine what was evaluated, the check visits adjacent schemas once more.
        if schema.get("unevaluatedProperties").is_some() || schema.get("unevaluatedItems").is_some() {
            schemas = schemas.saturating_mul(2);
        }
        check_depth(level + depth)?;
        self.open.remove(&std::ptr::from_ref(schema));
        let expansion = Expansion { schemas, depth: depth + 1 };
        self.done.insert(schema, expansion);
        Ok(expansion)
    }

    /// Returns the schemas that apply to the same value as `schema`.
    fn in_place_subschemas(&self, schema: &'a Value) -> Vec<&'a Value> {
        let Some(members) = schema.as_object() else { return Vec::new() };
        let mut res = Vec::new();
        for (key, value) in members {
            match key.as_str() {
                "allOf" | "anyOf" | "oneOf" => res.extend(value.as_array().into_iter().flatten()),
                "not" | "if" | "then" | "else" => res.push(value),
                "dependentSchemas" | "dependencies" => {
                    res.extend(value.as_object().into_iter().flat_map(|it| it.values()));
                }
                "$ref" => res.extend(value.as_str().and_then(|it| self.resolve(it))),
                _ => {}
            }
        }
        res
    }

    /// Finds the target of a reference inside the schema.
    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        if !pointer.contains('%') {
            return self.root.pointer(pointer);
        }
        self.root.pointer(&decode_percent(pointer)?)
    }
}

/// Counts the values and names of the schema that are compared with one value.
fn count_compared_values(schema: &Value) -> u64 {
    let count_values = |it: &Value| measure_value(it).values;
    let keywords = ["enum", "const", "required", "dependentRequired"];
    keywords.iter().filter_map(|it| schema.get(it)).map(count_values).sum()
}

/// Returns the schemas that apply to values inside the value of `schema`.
fn inner_subschemas(schema: &Value) -> Vec<&Value> {
    let Some(members) = schema.as_object() else { return Vec::new() };
    let mut res = Vec::new();
    for (key, value) in members {
        match key.as_str() {
            "items" | "prefixItems" => match value {
                Value::Array(items) => res.extend(items),
                _ => res.push(value),
            },
            "additionalItems"
            | "contains"
            | "additionalProperties"
            | "propertyNames"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => res.push(value),
            "properties" | "patternProperties" => {
                res.extend(value.as_object().into_iter().flat_map(|it| it.values()));
            }
            _ => {}
        }
    }
    res
}

/// Fails if a schema is nested too deeply.
fn check_depth(depth: u64) -> Result<(), String> {
    if depth <= MAX_DEPTH { Ok(()) } else { Err("its schema is nested too deeply".to_owned()) }
}

/// Decodes the percent-encoding of a reference. `None` if it is invalid.
pub(super) fn decode_percent(text: &str) -> Option<String> {
    let mut res = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            res.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        res.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(res).ok()
}
