//! Validation of arguments and structured results against JSON Schema.
//!
//! Schemas come from untrusted servers, so everything is bounded: the size and the references of a schema (see
//! [`schema_cost`]), its patterns, the work of one check, and the length of the messages. References to other
//! documents are never fetched. A schema that cannot be used does not block a call: the arguments are not checked,
//! and the outcome is [`ValidationOutcome::Unvalidated`]. Messages never contain the values of arguments or
//! results.

mod schema_cost;
pub(crate) mod schema_defect;
mod schema_violation;
mod violation;

use std::fmt;
use std::sync::{Arc, Weak};

use jsonschema::{Draft, PatternOptions, Validator};
use lru::LruCache;
use mcp_host_model::RawJson;
use parking_lot::Mutex;
use serde_json::Value;

use crate::name::display::truncate;
use schema_cost::{
    ErrorDetail, MAX_SCHEMA_BYTES, PatternEngine, SchemaAnalysis, SchemaCost, analyze, measure_value,
};
use schema_defect::{argument_type_defect, schema_defect};
pub use schema_violation::SchemaViolation;

/// A cache of compiled schemas.
///
/// The key of a schema is its text. The cache is shared by reference. Its content affects the speed of a validation,
/// never the outcome.
pub struct ValidatorCache {
    entries: Mutex<BoundedCache>,
}

/// The outcome of a validation that found no violation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a value is valid or was not checked; an invalid one is an error"
)]
pub enum ValidationOutcome {
    /// The value matches the schema.
    Valid,
    /// The value was not checked, for this reason; see
    /// [`Problem::tool_unvalidated`](crate::problem::Problem::tool_unvalidated).
    Unvalidated(String),
}

/// The error for arguments that violate their tool's schema. Prints one line per violation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .errors.iter().map(SchemaViolation::to_string).collect::<Vec<_>>().join("\n"))]
#[non_exhaustive]
pub struct InvalidArguments {
    /// The violations: at least one, at most [`ValidatorCache::MAX_ERRORS`].
    pub errors: Vec<SchemaViolation>,
}

/// The error for a result that violates its tool's `outputSchema`. Prints one line per violation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .errors.iter().map(SchemaViolation::to_string).collect::<Vec<_>>().join("\n"))]
#[non_exhaustive]
pub struct InvalidResult {
    /// The violations: at least one, at most [`ValidatorCache::MAX_ERRORS`].
    pub errors: Vec<SchemaViolation>,
}

/// What is validated. Displayed as a noun for messages.
#[derive(Clone, Copy, PartialEq, Eq, strum::Display)]
enum ValidatedValue {
    #[strum(to_string = "the arguments")]
    Arguments,
    #[strum(to_string = "the structured content")]
    Result,
}

impl ValidatorCache {
    /// The maximum number of violations in one error.
    pub const MAX_ERRORS: usize = 10;

    /// Creates an empty cache.
    pub fn new() -> ValidatorCache {
        ValidatorCache { entries: Mutex::default() }
    }

    /// Validates `arguments` against `schema`.
    ///
    /// The draft is the one that `$schema` names. Without `$schema` it is draft-07 if `items` is an array anywhere (the
    /// tuple syntax of that draft), and 2020-12 otherwise.
    pub fn check_arguments(
        &self,
        schema: &RawJson,
        arguments: &RawJson,
    ) -> Result<ValidationOutcome, InvalidArguments> {
        validate(ValidatedValue::Arguments, &self.get_or_compile(schema), arguments)
            .map_err(|errors| InvalidArguments { errors })
    }

    /// Validates `arguments` against `schema`. The slot has its compiled form if the cache has it.
    pub(crate) fn check_arguments_in(
        &self,
        slot: &SchemaSlot,
        schema: &RawJson,
        arguments: &RawJson,
    ) -> Result<ValidationOutcome, InvalidArguments> {
        let compiled = slot.get_or_insert(|| self.get_or_compile(schema));
        validate(ValidatedValue::Arguments, &compiled, arguments)
            .map_err(|errors| InvalidArguments { errors })
    }

    /// Validates the `structuredContent` of a result against its tool's `outputSchema`. A missing
    /// `structuredContent` is invalid. Do not call this for a failed result (`isError`): the schema does not
    /// apply to it.
    ///
    /// The host decides what to do about an invalid result. The protocol requires that servers conform to the
    /// schema; it only recommends that clients validate.
    pub fn check_result(
        &self,
        schema: &RawJson,
        structured: Option<&RawJson>,
    ) -> Result<ValidationOutcome, InvalidResult> {
        let missing = || {
            vec![SchemaViolation::of_whole_value("the tool promises structured content, and there is none")]
        };
        let structured = structured.ok_or_else(|| InvalidResult { errors: missing() })?;
        validate(ValidatedValue::Result, &self.get_or_compile(schema), structured)
            .map_err(|errors| InvalidResult { errors })
    }

    /// Returns the cached schema, or compiles and caches it. It is compiled outside the lock: two callers may compile
    /// the same schema, but no caller waits while another one compiles.
    fn get_or_compile(&self, schema: &RawJson) -> Arc<CacheEntry> {
        let text = schema.as_bytes();
        if let Some(entry) = self.entries.lock().entries.get(text) {
            return Arc::clone(entry);
        }
        let entry = Arc::new(compile(schema));
        // A schema that is too large is not compiled, and its text is not kept.
        if text.len() <= MAX_SCHEMA_BYTES {
            self.entries.lock().insert(text.into(), Arc::clone(&entry));
        }
        entry
    }
}

impl Default for ValidatorCache {
    fn default() -> ValidatorCache {
        ValidatorCache::new()
    }
}

impl fmt::Debug for ValidatorCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValidatorCache").field("compiled", &self.entries.lock().entries.len()).finish()
    }
}

/// Validates a value against a schema.
fn validate(
    subject: ValidatedValue,
    schema: &CacheEntry,
    value: &RawJson,
) -> Result<ValidationOutcome, Vec<SchemaViolation>> {
    let CompiledSchema { validator, cost, argument_defect } = match schema {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(ValidationOutcome::Unvalidated(reason.clone())),
    };
    if let (ValidatedValue::Arguments, Some(reason)) = (subject, argument_defect) {
        return Ok(ValidationOutcome::Unvalidated(reason.clone()));
    }
    let value = value.read::<Value>().map_err(|error| {
        let message = nesting_error(&error).map_or_else(
            || format!("{subject} cannot be read: {error}"),
            |nesting| format!("{subject} are {nesting}"),
        );
        vec![SchemaViolation::of_whole_value(message)]
    })?;
    let size = measure_value(&value);
    // The reason is the beginning of a sentence that ends with the value.
    if let Err(reason) = cost.check_size(size) {
        return Ok(ValidationOutcome::Unvalidated(format!("{reason} {subject}")));
    }
    if validator.is_valid(&value) {
        return Ok(ValidationOutcome::Valid);
    }
    let errors: Vec<SchemaViolation> = match cost.error_detail(size) {
        ErrorDetail::All => validator
            .iter_errors(&value)
            .take(ValidatorCache::MAX_ERRORS)
            .map(|error| violation::describe(&error))
            .collect(),
        ErrorDetail::First => validator.validate(&value).err().iter().map(violation::describe).collect(),
        ErrorDetail::None => Vec::new(),
    };
    if errors.is_empty() {
        return Err(vec![SchemaViolation::of_whole_value(format!("{subject} do not fit the tool's schema"))]);
    }
    Err(errors)
}

/// A compiled schema and the cost of checks against it.
struct CompiledSchema {
    validator: Validator,
    cost: SchemaCost,
    /// The reason why it cannot be the schema of arguments, if there is one.
    argument_defect: Option<String>,
}

/// The largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// The backtracking limit for a pattern with look-around or back references.
const MAX_BACKTRACKS: usize = 20_000;

/// Recognizes the error for JSON that is nested more deeply than serde_json permits, and returns a message for it.
/// serde_json has no error kind for this. The other possible errors for [`RawJson`] are unpaired surrogates and
/// numbers out of range.
fn nesting_error(error: &serde_json::Error) -> Option<&'static str> {
    error.to_string().starts_with("recursion limit exceeded").then_some("nested too deeply")
}

/// The reason why a schema cannot be read.
pub(crate) fn unreadable_schema_reason(error: &serde_json::Error) -> String {
    match nesting_error(error) {
        Some(nesting) => format!("its schema is {nesting}"),
        None => format!("its schema cannot be read: {error}"),
    }
}

/// Compiles a schema, or returns the reason why it cannot be used.
fn compile(schema: &RawJson) -> Result<CompiledSchema, String> {
    if schema.as_bytes().len() > MAX_SCHEMA_BYTES {
        return Err(format!("its schema is larger than {} KiB", MAX_SCHEMA_BYTES >> 10));
    }
    let schema: Value = schema.read().map_err(|error| unreadable_schema_reason(&error))?;
    let SchemaAnalysis { mut cost, has_tuples, names_draft } = analyze(&schema)?;
    if let Some(defect) = schema_defect(&schema) {
        return Err(defect);
    }
    let argument_defect = argument_type_defect(&schema);
    // Drafts differ on whether `format` is an assertion, so it is left to the server: a value that the server
    // would accept must pass.
    let mut options = jsonschema::options().offline().should_validate_formats(false);
    if !names_draft {
        options = options.with_draft(if has_tuples { Draft::Draft7 } else { Draft::Draft202012 });
    }
    // Try the linear-time engine first. Only patterns with look-around or back references need the backtracking
    // engine.
    let linear = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
    if let Ok(validator) = options.clone().with_pattern_options(linear).build(&schema) {
        return Ok(CompiledSchema { validator, cost, argument_defect });
    }
    let backtracking = PatternOptions::fancy_regex()
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES)
        .backtrack_limit(MAX_BACKTRACKS);
    match options.with_pattern_options(backtracking).build(&schema) {
        Ok(validator) => {
            cost.engine = PatternEngine::Backtracking;
            Ok(CompiledSchema { validator, cost, argument_defect })
        }
        Err(error) => {
            Err(truncate(format!("its schema cannot be used: {}", violation::describe(&error)), 300))
        }
    }
}

/// A compiled schema, or the reason why it cannot be used.
type CacheEntry = Result<CompiledSchema, String>;

/// The compiled schema of a tool, while a cache has it. It affects only the speed of a validation, so a copy is empty,
/// and all are equal.
#[derive(Default)]
pub(crate) struct SchemaSlot(Mutex<Weak<CacheEntry>>);

impl SchemaSlot {
    /// Returns the schema. `find` is called if the cache has dropped it.
    fn get_or_insert(&self, find: impl FnOnce() -> Arc<CacheEntry>) -> Arc<CacheEntry> {
        if let Some(entry) = self.0.lock().upgrade() {
            return entry;
        }
        let entry = find();
        *self.0.lock() = Arc::downgrade(&entry);
        entry
    }
}

impl Clone for SchemaSlot {
    fn clone(&self) -> SchemaSlot {
        SchemaSlot::default()
    }
}

impl PartialEq for SchemaSlot {
    fn eq(&self, _: &SchemaSlot) -> bool {
        true
    }
}

impl Eq for SchemaSlot {}

impl fmt::Debug for SchemaSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SchemaSlot")
    }
}

/// Compiled schemas by their texts, bounded in number and in bytes. The least recently used are evicted.
struct BoundedCache {
    entries: LruCache<Box<[u8]>, Arc<CacheEntry>, ahash::RandomState>,
    /// The total size of the texts.
    bytes: usize,
}

impl BoundedCache {
    /// The maximum number of cached schemas.
    const MAX_ENTRIES: usize = 1_024;
    /// The limit for the total size of the cached schemas in bytes. Their compiled forms are about ten times
    /// larger.
    const MAX_BYTES: usize = 8 << 20;

    fn insert(&mut self, text: Box<[u8]>, entry: Arc<CacheEntry>) {
        let bytes = text.len();
        // Another caller may have compiled the same schema.
        if self.entries.put(text, entry).is_none() {
            self.bytes += bytes;
        }
        while self.entries.len() > Self::MAX_ENTRIES || self.bytes > Self::MAX_BYTES {
            let Some((text, _)) = self.entries.pop_lru() else { break };
            self.bytes -= text.len();
        }
    }
}

impl Default for BoundedCache {
    fn default() -> BoundedCache {
        BoundedCache { entries: LruCache::unbounded_with_hasher(ahash::RandomState::new()), bytes: 0 }
    }
}

#[cfg(test)]
mod tests;
