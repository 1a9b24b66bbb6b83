//! Do arguments fit a tool's schema, and does its structured result? A cache of compiled schemas, and nothing else that
//! changes.
//!
//! Schemas come from servers that nobody vouches for, so everything is bounded: the schema's size and references
//! (see [`survey`]), its patterns, the work of one check, the length of what is said about it. Nothing is fetched. A
//! schema that cannot be used stops no call: its arguments pass unchecked, and the outcome says so. What an argument
//! or a result held is never said.

mod lately;
mod message;
mod plain;
mod survey;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jsonschema::{Draft, PatternOptions, Validator};
use mcp_model::RawJson;
use serde_json::Value;

use crate::name::quote::cut;
use lately::Lately;
use plain::Plain;
use survey::{Cost, Details, Engine, Survey, survey};

/// Validators of tools' schemas, each compiled once.
///
/// A cache of values: it is shared by reference, and what it answers depends on the question alone.
pub struct ValidatorCache {
    cache: Mutex<Cache>,
}

/// What became of a check that found nothing wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValidationOutcome {
    /// The arguments fit the schema.
    Valid,
    /// They were not checked, for this reason; see [`Problem::tool_unvalidated`](crate::problem::Problem::tool_unvalidated).
    Unvalidated(String),
}

/// Arguments that do not fit. Prints one line for each mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .errors.iter().map(SchemaViolation::to_string).collect::<Vec<_>>().join("\n"))]
pub struct InvalidArguments {
    /// What is wrong, at least one mistake and at most ten.
    pub errors: Vec<SchemaViolation>,
}

/// A result that is not what its tool's `outputSchema` promises. Prints one line for each mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .errors.iter().map(SchemaViolation::to_string).collect::<Vec<_>>().join("\n"))]
pub struct InvalidResult {
    /// What is wrong, at least one mistake and at most ten.
    pub errors: Vec<SchemaViolation>,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaViolation {
    /// What was expected; never the value that was given.
    pub message: String,
    /// JSON pointer to the value, empty for the whole.
    pub pointer: String,
}

/// What is judged, in words.
#[derive(Clone, Copy)]
struct Subject(&'static str);

const ARGUMENTS: Subject = Subject("the arguments");
const RESULT: Subject = Subject("the structured content");

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

impl ValidatorCache {
    /// The most mistakes that one answer names.
    pub const MAX_ERRORS: usize = 10;

    /// An empty cache.
    pub fn new() -> ValidatorCache {
        ValidatorCache { cache: Mutex::default() }
    }

    /// Checks `arguments` against `schema`.
    ///
    /// The draft is the one `$schema` names, else draft-07 where `items` is an array anywhere (a tuple, as it was
    /// written then), else 2020-12.
    pub fn check_arguments(
        &self,
        schema: &RawJson,
        arguments: &RawJson,
    ) -> Result<ValidationOutcome, InvalidArguments> {
        self.judge(ARGUMENTS, schema, arguments).map_err(|errors| InvalidArguments { errors })
    }

    /// Checks the `structuredContent` of a result against its tool's `outputSchema`, in the same way; a result without
    /// any is invalid, too. The result of a call that failed (`isError`) promises nothing, and is not to be checked.
    ///
    /// What to do about an invalid one is the host's choice: the protocol asks servers to keep the promise, and
    /// clients only to look.
    pub fn check_result(
        &self,
        schema: &RawJson,
        structured: Option<&RawJson>,
    ) -> Result<ValidationOutcome, InvalidResult> {
        let missing =
            || vec![SchemaViolation::whole("the tool promises structured content, and there is none")];
        let structured = structured.ok_or_else(|| InvalidResult { errors: missing() })?;
        self.judge(RESULT, schema, structured).map_err(|errors| InvalidResult { errors })
    }

    fn judge(
        &self,
        subject: Subject,
        schema: &RawJson,
        value: &RawJson,
    ) -> Result<ValidationOutcome, Vec<SchemaViolation>> {
        let Subject(subject) = subject;
        let entry = self.compiled(schema);
        let Compiled { validator, cost, plain } = match &entry.compiled {
            Ok(it) => it,
            Err(reason) => return Ok(ValidationOutcome::Unvalidated(reason.clone())),
        };
        if let (Some(plain), Some(most)) = (plain, cost.most_values(value.as_bytes().len()))
            && plain.fits(value.as_str(), most)
        {
            debug_assert!(fits(validator, cost, value), "a quick look is more generous than the validator");
            return Ok(ValidationOutcome::Valid);
        }
        let value = value.read::<Value>().map_err(|it| {
            let message = too_deep(&it).map_or_else(
                || format!("{subject} cannot be read: {it}"),
                |deep| format!("{subject} are {deep}"),
            );
            vec![SchemaViolation::whole(message)]
        })?;
        let size = survey::size(&value);
        if let Err(reason) = cost.allows(size) {
            return Ok(ValidationOutcome::Unvalidated(format!("{reason} {subject}")));
        }
        if validator.is_valid(&value) {
            return Ok(ValidationOutcome::Valid);
        }
        let errors: Vec<SchemaViolation> = match cost.details(size) {
            Details::All => validator
                .iter_errors(&value)
                .take(Self::MAX_ERRORS)
                .map(|it| message::describe(&it))
                .collect(),
            Details::First => validator.validate(&value).err().iter().map(message::describe).collect(),
            Details::None => Vec::new(),
        };
        if errors.is_empty() {
            return Err(vec![SchemaViolation::whole(format!("{subject} do not fit the tool's schema"))]);
        }
        Err(errors)
    }

    /// Compiles outside the lock: two callers may do the same work once, nobody waits for a slow schema.
    fn compiled(&self, schema: &RawJson) -> Arc<Entry> {
        let schema_bytes = schema.as_bytes();
        if let Some(it) = self.lock().known(schema_bytes) {
            return it;
        }
        let hash = *blake3::hash(schema_bytes).as_bytes();
        if let Some(it) = self.lock().get(schema_bytes, &hash) {
            return it;
        }
        let entry = Entry { compiled: compile(schema), bytes: schema_bytes.len(), used: AtomicU64::new(0) };
        self.lock().insert(schema_bytes, hash, entry)
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        // A panic elsewhere leaves a cache that is still one: nothing in it is half done.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ValidatorCache {
    fn default() -> ValidatorCache {
        ValidatorCache::new()
    }
}

impl fmt::Debug for ValidatorCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validators").field("compiled", &self.lock().entries.len()).finish()
    }
}

impl SchemaViolation {
    fn whole(message: impl Into<String>) -> SchemaViolation {
        SchemaViolation { message: message.into(), pointer: String::new() }
    }
}

/// A schema ready for use, or why it cannot be used.
type Outcome = Result<Compiled, String>;

struct Compiled {
    validator: Validator,
    cost: Cost,
    /// The same, where it is plain.
    plain: Option<Plain>,
}

/// What the long way says, in short.
fn fits(validator: &Validator, cost: &Cost, value: &RawJson) -> bool {
    value.read::<Value>().is_ok_and(|it| cost.allows(survey::size(&it)).is_ok() && validator.is_valid(&it))
}

/// The largest schema that is compiled, in bytes. The largest seen in use have a tenth of it.
const SCHEMA_BYTES: usize = 256 << 10;
/// The largest compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;
/// How often a pattern with look-around or back references may go back.
const PATTERN_STEPS: usize = 20_000;

/// JSON that was checked can still be nested too deeply for serde_json, which is too deep for any tool. Besides it may hold
/// half of a surrogate pair, or a number that is too large.
fn too_deep(error: &serde_json::Error) -> Option<&'static str> {
    error.to_string().starts_with("recursion limit exceeded").then_some("nested too deeply")
}

/// Why a schema cannot be read.
pub(crate) fn unread_schema(error: &serde_json::Error) -> String {
    match too_deep(error) {
        Some(deep) => format!("its schema is {deep}"),
        None => format!("its schema cannot be read: {error}"),
    }
}

fn compile(schema: &RawJson) -> Outcome {
    if schema.as_bytes().len() > SCHEMA_BYTES {
        return Err(format!("its schema is larger than {} KiB", SCHEMA_BYTES >> 10));
    }
    let schema: Value = schema.read().map_err(|it| unread_schema(&it))?;
    let Survey { mut cost, has_tuples, names_draft } = survey(&schema)?;
    // Drafts differ over whether a format binds. It is the server's to judge: what it would take must not stop here.
    let mut options = jsonschema::options().offline().should_validate_formats(false);
    if !names_draft {
        options = options.with_draft(if has_tuples { Draft::Draft7 } else { Draft::Draft202012 });
    }
    // Patterns that look around or back are rare. All others run in a time that grows with the text alone.
    let plain = Plain::of(&schema);
    let linear = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    if let Ok(validator) = options.clone().with_pattern_options(linear).build(&schema) {
        return Ok(Compiled { validator, cost, plain });
    }
    let backtracking = PatternOptions::fancy_regex()
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .backtrack_limit(PATTERN_STEPS);
    match options.with_pattern_options(backtracking).build(&schema) {
        Ok(validator) => {
            cost.engine = Engine::Backtracking;
            Ok(Compiled { validator, cost, plain })
        }
        Err(error) => Err(cut(format!("its schema cannot be used: {}", message::describe(&error)), 300)),
    }
}

/// Outcomes by the hash of their schema's bytes. The least recently used make room.
#[derive(Default)]
struct Cache {
    /// Those that were asked for lately.
    lately: Lately,
    entries: HashMap<[u8; 32], Arc<Entry>>,
    bytes: usize,
    clock: u64,
}

struct Entry {
    compiled: Outcome,
    bytes: usize,
    used: AtomicU64,
}

impl Cache {
    /// The most schemas kept.
    const ENTRIES: usize = 1_024;
    /// The most bytes of schemas kept; what is compiled of them is some ten times larger.
    const BYTES: usize = 8 << 20;

    /// What is there of a schema that was asked for lately.
    fn known(&mut self, schema: &[u8]) -> Option<Arc<Entry>> {
        let entry = self.lately.of(schema)?;
        self.use_now(&entry);
        Some(entry)
    }

    fn get(&mut self, schema: &[u8], hash: &[u8; 32]) -> Option<Arc<Entry>> {
        let entry = Arc::clone(self.entries.get(hash)?);
        self.use_now(&entry);
        self.lately.learn(schema, &entry);
        Some(entry)
    }

    fn use_now(&mut self, entry: &Entry) {
        self.clock += 1;
        entry.used.store(self.clock, Ordering::Relaxed);
    }

    fn insert(&mut self, schema: &[u8], hash: [u8; 32], entry: Entry) -> Arc<Entry> {
        // A schema that is too large was not compiled, and its entry holds a sentence only.
        let entry = Arc::new(Entry { bytes: entry.bytes.min(SCHEMA_BYTES), ..entry });
        self.use_now(&entry);
        self.lately.learn(schema, &entry);
        self.bytes += entry.bytes;
        if let Some(twin) = self.entries.insert(hash, Arc::clone(&entry)) {
            self.bytes -= twin.bytes;
        }
        while self.entries.len() > Self::ENTRIES || self.bytes > Self::BYTES {
            let used = |it: &Entry| it.used.load(Ordering::Relaxed);
            let oldest = self.entries.iter().min_by_key(|(_, it)| used(it)).map(|(hash, _)| *hash);
            let Some(entry) = oldest.and_then(|it| self.entries.remove(&it)) else { break };
            self.bytes -= entry.bytes;
        }
        entry
    }
}

#[cfg(test)]
mod keywords;
#[cfg(test)]
mod tests;
