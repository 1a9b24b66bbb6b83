//! Comparison of two schemas.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::annotations;
use crate::change::{Change, Comparison, Direction, Effect};
use crate::document::{Document, build_validator, escape, percent_encode};
use crate::error::{Error, Side};
use crate::generate::Generator;
use crate::inclusion::conjunction::location_text;
use crate::inclusion::{KeyDescriptions, MAX_LOCATIONS, Obstacle, ObstacleKind, obstacles};
use crate::keyword::{canonical, is_annotation, is_definitions};
use crate::witness::WitnessSearch;

/// The number of documents that are checked to prove the changes of one direction.
const MAX_CHECKED_DOCUMENTS: usize = 20_000;

/// The number of random documents that are checked in each direction.
const SAMPLE_COUNT: u64 = 48;

/// Finds all changes from `old` to `new`.
///
/// Draft 4 to draft 2020-12 are understood; `$schema` tells which. References are resolved inside each document. What
/// refers to another document is [`Verdict::Unknown`](crate::Verdict::Unknown); nothing is fetched.
///
/// If both schemas only define other schemas, the definitions are compared by name. Their locations and
/// documents are those of an object with a key for each definition.
///
/// # Errors
///
/// A document is not a JSON Schema, or exceeds [`MAX_DEPTH`](crate::MAX_DEPTH) or [`MAX_VALUES`](crate::MAX_VALUES).
pub fn compare(old: &Value, new: &Value) -> Result<Comparison, Error> {
    if let (Some(old_keys), Some(new_keys)) = (definitions_as_properties(old), definitions_as_properties(new))
    {
        let mut res = compare_roots(&old_keys, &new_keys)?;
        for change in &mut res.changes {
            point_into_definitions(old, &mut change.old_pointer);
            point_into_definitions(new, &mut change.new_pointer);
        }
        return Ok(res);
    }
    compare_roots(old, new)
}

fn compare_roots(old: &Value, new: &Value) -> Result<Comparison, Error> {
    let (old, new) = (Document::new(old, Side::Old)?, Document::new(new, Side::New)?);
    check_schema(&old, Side::Old)?;
    check_schema(&new, Side::New)?;
    if old.root == new.root {
        return Ok(Comparison { changes: Vec::new() });
    }
    let validators = (build_validator(&old), build_validator(&new));
    let forward = obstacles(old.node(), new.node(), KeyDescriptions::Required);
    let backward = obstacles(new.node(), old.node(), KeyDescriptions::Optional);

    let mut groups = ObstacleGroups::new();
    for obstacle in forward {
        groups
            .entry((obstacle.location_text(), obstacle.keyword.clone()))
            .or_default()
            .forward
            .push(obstacle);
    }
    for obstacle in backward {
        let key = group_key(&groups, &obstacle);
        groups.entry(key).or_default().backward.push(obstacle);
    }
    let new_search = |accepting, refusing| {
        let search =
            |(accepting, refusing)| WitnessSearch { accepting, refusing, budget: MAX_CHECKED_DOCUMENTS };
        Option::zip(accepting, refusing).map(search)
    };
    let mut reader = new_search(validators.0.as_ref(), validators.1.as_ref());
    let mut writer = new_search(validators.1.as_ref(), validators.0.as_ref());
    let mut changes: Vec<Change> =
        groups.into_iter().map(|(key, group)| group.into_change(key, &mut reader, &mut writer)).collect();
    changes.extend(draft_keyword_change(&old, &new));
    changes.extend(draft_integer_change(&old, &new));
    changes.extend(sampled_change(&old, &new, &validators, &changes));
    changes.extend(annotations::annotation_changes(&old.node(), &new.node()));
    changes.sort_by(|one, other| (&one.location, &one.keyword).cmp(&(&other.location, &other.keyword)));
    changes.dedup_by(|one, other| one == other);
    Ok(Comparison { changes })
}

/// A document that only defines schemas, as the schema of an object with a key for each definition.
///
/// `None` if the root has a constraint of its own.
fn definitions_as_properties(root: &Value) -> Option<Value> {
    let keywords = root.as_object()?;
    if !keywords.keys().all(|it| is_annotation(it) || is_definitions(it)) {
        return None;
    }
    let mut properties = Map::new();
    for (keyword, definitions) in keywords.iter().filter(|it| is_definitions(it.0)) {
        for name in definitions.as_object()?.keys() {
            let reference = format!("#/{keyword}/{}", percent_encode(&escape(name)));
            properties.entry(name).or_insert_with(|| json!({ "$ref": reference }));
        }
    }
    let mut res = keywords.clone();
    res.insert("properties".to_owned(), (!properties.is_empty()).then_some(properties)?.into());
    Some(res.into())
}

/// Replaces a pointer into the schema that [`definitions_as_properties`] makes by one into the definitions.
fn point_into_definitions(root: &Value, pointer: &mut String) {
    let Some(rest) = pointer.strip_prefix("/properties") else { return };
    let name = rest.split('/').nth(1).map_or(String::new(), |it| format!("/{it}"));
    let has = |keyword: &&str| root.pointer(&format!("/{keyword}{name}")).is_some();
    let Some(keyword) = ["$defs", "definitions"].into_iter().find(has) else { return };
    *pointer = format!("/{keyword}{rest}");
}

/// Validates a schema against the meta-schema of its draft.
fn check_schema(document: &Document<'_>, side: Side) -> Result<(), Error> {
    // The meta-schema of the draft that is used, whatever `$schema` says.
    let meta = match document.draft {
        jsonschema::Draft::Draft4 => jsonschema::draft4::meta::validate(document.root),
        jsonschema::Draft::Draft6 => jsonschema::draft6::meta::validate(document.root),
        jsonschema::Draft::Draft7 => jsonschema::draft7::meta::validate(document.root),
        jsonschema::Draft::Draft201909 => jsonschema::draft201909::meta::validate(document.root),
        _ => jsonschema::draft202012::meta::validate(document.root),
    };
    meta.map_err(|error| {
        let at = error.instance_path().to_string();
        let mut message = error.masked().to_string();
        message.truncate(message.char_indices().nth(200).map_or(message.len(), |it| it.0));
        Error::NotASchema { side, message: format!("at `{at}`: {message}") }
    })
}

/// The obstacles, grouped by location and keyword.
type ObstacleGroups<'a> = BTreeMap<(String, String), ObstacleGroup<'a>>;

/// The key of the group for a backward obstacle. The two directions may find a shared schema at different locations
/// first, so the other locations of the obstacle are tried too.
fn group_key(groups: &ObstacleGroups<'_>, obstacle: &Obstacle<'_>) -> (String, String) {
    let key = |location: String| (location, obstacle.keyword.clone());
    let own = key(obstacle.location_text());
    if groups.contains_key(&own) {
        return own;
    }
    let mut others = obstacle.other_locations.iter().map(|it| key(location_text(it)));
    others.find(|it| groups.contains_key(it)).unwrap_or(own)
}

/// The obstacles at one location and keyword.
#[derive(Default)]
struct ObstacleGroup<'a> {
    /// Obstacles to the inclusion of the old schema in the new one.
    forward: Vec<Obstacle<'a>>,
    /// Obstacles to the inclusion of the new schema in the old one.
    backward: Vec<Obstacle<'a>>,
}

impl ObstacleGroup<'_> {
    /// The change that these obstacles are.
    fn into_change(
        self,
        (location, keyword): (String, String),
        reader: &mut Option<WitnessSearch<'_>>,
        writer: &mut Option<WitnessSearch<'_>>,
    ) -> Change {
        let Self { mut forward, backward } = self;
        // A key that is refused is not read either.
        forward.sort_by_key(|it| it.kind != ObstacleKind::Refused);
        let (reader, writer) = (find_effect(&forward, reader), find_effect(&backward, writer));
        let is_loss = |it: &&Obstacle<'_>| it.kind != ObstacleKind::Added;
        let (lost, gained) = (forward.iter().find(is_loss), backward.iter().find(is_loss));
        let is_proven = reader.witness.is_some() || writer.witness.is_some();
        let is_default = lost.is_some_and(|it| it.kind == ObstacleKind::Default);
        let direction = match (lost.is_some(), gained.is_some()) {
            (true, _) | (_, true) if !is_proven => Direction::Unknown,
            _ if is_default => Direction::Changed,
            (true, true) => Direction::Changed,
            (true, false) => Direction::Narrowed,
            (false, true) => Direction::Widened,
            (false, false) if !forward.is_empty() => Direction::Widened,
            (false, false) => Direction::Narrowed,
        };
        let obstacle = lost.or(forward.first());
        let (old_pointer, new_pointer, values) = match (obstacle, gained.or(backward.first())) {
            (Some(it), _) => (it.left_pointer(), it.right_pointer(), it.values),
            (None, Some(it)) => (it.right_pointer(), it.left_pointer(), (it.values.1, it.values.0)),
            (None, None) => (String::new(), String::new(), (None, None)),
        };
        let description = describe(&keyword, values, obstacle.map(|it| &it.kind), gained.is_some());
        let (other_locations, more_locations) = other_locations(&location, forward.iter().chain(&backward));
        Change {
            location,
            other_locations,
            more_locations,
            keyword,
            description,
            direction,
            old_pointer,
            new_pointer,
            reader,
            writer,
        }
    }
}

/// The other locations of a change, and the number of those beyond the listed ones.
fn other_locations<'a, 'o: 'a>(
    own: &str,
    obstacles: impl Iterator<Item = &'a Obstacle<'o>>,
) -> (Vec<String>, usize) {
    let mut res: Vec<String> = Vec::new();
    for text in obstacles.flat_map(|it| it.other_locations.iter().chain([&it.location])).map(location_text) {
        if text != own && !res.contains(&text) && res.len() < MAX_LOCATIONS {
            res.push(text);
        }
    }
    let more = res.len().saturating_sub(Change::MAX_LISTED);
    res.truncate(Change::MAX_LISTED);
    (res, more)
}

/// The effect of obstacles in one direction. Searches a document that proves a break.
fn find_effect(found: &[Obstacle<'_>], search: &mut Option<WitnessSearch<'_>>) -> Effect {
    let mut losses = found.iter().filter(|it| it.kind != ObstacleKind::Added).peekable();
    if losses.peek().is_none() {
        return Effect::HARMLESS;
    }
    // A new or removed statement of a default does not prove another behaviour.
    let is_decidable = |it: &&Obstacle<'_>| {
        it.kind != ObstacleKind::Default || (it.values.0.is_some() && it.values.1.is_some())
    };
    let witness =
        search.as_mut().and_then(|it| losses.filter(is_decidable).find_map(|one| it.find_witness(one)));
    witness.map_or(Effect::UNKNOWN, Effect::broken_by)
}

/// The description of a change. `values` are those of the keyword, the old one first; `forward` is the kind of the
/// forward obstacle; `is_gain` tells whether more is accepted.
fn describe(
    keyword: &str,
    values: (Option<&Value>, Option<&Value>),
    forward: Option<&ObstacleKind>,
    is_gain: bool,
) -> String {
    let lost = forward.is_some_and(|it| *it != ObstacleKind::Added);
    let text = match (keyword, forward, lost, is_gain) {
        ("properties", Some(ObstacleKind::Added), ..) => "the key is added",
        ("properties", Some(ObstacleKind::Ignored), ..) => "the key is no longer read",
        ("properties", _, true, _) => "the key is no longer allowed",
        ("properties", _, false, true) => "the key is allowed now",
        ("properties", ..) => "the key is removed",
        ("required", _, true, _) => "the key is required now",
        ("required", ..) => "the key is no longer required",
        ("false", _, true, _) => "nothing is accepted any more",
        ("false", ..) => "some values are accepted now",
        ("additionalProperties", Some(ObstacleKind::Ignored), ..) => "other keys are no longer read",
        ("additionalProperties", Some(ObstacleKind::Refused), true, false) => "other keys are restricted",
        ("additionalProperties", None, ..) => "other keys are allowed now",
        ("anyOf" | "oneOf", _, true, true) => "the alternatives have changed",
        ("anyOf" | "oneOf", _, true, false) => "an alternative is no longer accepted",
        ("anyOf" | "oneOf", _, false, _) => "another alternative is accepted",
        ("(limit)", ..) => "the schemas are too large or too deep to be compared here",
        ("$ref", ..) => "a reference has no target in the document",
        _ => "",
    };
    if !text.is_empty() {
        return text.to_owned();
    }
    match values {
        (Some(old), Some(new)) if old == new => format!("`{keyword}` has another meaning here"),
        (Some(old), Some(new)) => format!("`{keyword}` changes from {} to {}", shorten(old), shorten(new)),
        (None, Some(new)) => format!("`{keyword}` is added: {}", shorten(new)),
        (Some(old), None) => format!("`{keyword}` is removed: {}", shorten(old)),
        (None, None) => format!("`{keyword}` has changed"),
    }
}

/// The beginning of a value as text, for a description.
fn shorten(value: &Value) -> String {
    let text = value.to_string();
    let end = text.char_indices().nth(60).map_or(text.len(), |it| it.0);
    if end == text.len() { text } else { format!("{}…", &text[..end]) }
}

/// Keywords that some drafts ignore or read otherwise.
const DRAFT_SPECIFIC_KEYWORDS: &[&str] = &[
    "additionalItems",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// A change of `$schema` that may give a keyword another meaning.
fn draft_keyword_change(old: &Document<'_>, new: &Document<'_>) -> Option<Change> {
    let generation = |draft| match draft {
        jsonschema::Draft::Draft4 | jsonschema::Draft::Draft6 => 0,
        jsonschema::Draft::Draft7 => 1,
        _ => 2,
    };
    let (before, after) = (generation(old.draft), generation(new.draft));
    // These are the same in draft 7 and later.
    let is_stable =
        |it: &str| ["const", "if", "then", "else", "propertyNames"].contains(&it) && before.min(after) > 0;
    let text = canonical(old.root) + &canonical(new.root);
    let used = |it: &&&str| !is_stable(it) && text.contains(&format!("{it:?}:"));
    let keyword = DRAFT_SPECIFIC_KEYWORDS.iter().find(used).filter(|_| before != after)?;
    let description = format!("the drafts give `{keyword}` different meanings");
    Some(draft_change(description, Effect::UNKNOWN, Effect::UNKNOWN))
}

/// A change of `$schema` from or to draft 4, which does not count 1.0 as an integer; later drafts do.
fn draft_integer_change(old: &Document<'_>, new: &Document<'_>) -> Option<Change> {
    let is_first = |it: &Document<'_>| it.draft == jsonschema::Draft::Draft4;
    let (reader, writer) = match (is_first(old), is_first(new)) {
        (true, false) => (Effect::HARMLESS, Effect::UNKNOWN),
        (false, true) => (Effect::UNKNOWN, Effect::HARMLESS),
        (true, true) | (false, false) => return None,
    };
    let mut roots = [old.root, new.root].into_iter();
    let is_used = roots.any(|it| canonical(it).contains(r#""integer""#));
    let description = "the drafts differ about whether 1.0 is an integer".to_owned();
    is_used.then(|| draft_change(description, reader, writer))
}

/// A change of the draft, at the root.
fn draft_change(description: String, reader: Effect, writer: Effect) -> Change {
    Change {
        location: "(root)".to_owned(),
        other_locations: Vec::new(),
        more_locations: 0,
        keyword: "$schema".to_owned(),
        description,
        direction: Direction::Unknown,
        old_pointer: "/$schema".to_owned(),
        new_pointer: "/$schema".to_owned(),
        reader,
        writer,
    }
}

/// A break that random documents show and no other change has.
fn sampled_change(
    old: &Document<'_>,
    new: &Document<'_>,
    validators: &(Option<Validator>, Option<Validator>),
    changes: &[Change],
) -> Option<Change> {
    let (Some(old_validator), Some(new_validator)) = validators else { return None };
    let is_unbroken = |effect: fn(&Change) -> &Effect| changes.iter().all(|it| effect(it).witness.is_none());
    let find = |document: &Document<'_>, other: &Validator| {
        let generator = Generator::new(document.root)?;
        (0..SAMPLE_COUNT).filter_map(|seed| generator.document(seed)).find(|it| !other.is_valid(it))
    };
    let reader = is_unbroken(|it| &it.reader).then(|| find(old, new_validator)).flatten();
    let writer = is_unbroken(|it| &it.writer).then(|| find(new, old_validator)).flatten();
    let direction = match (&reader, &writer) {
        (None, None) => return None,
        (Some(_), Some(_)) => Direction::Changed,
        (Some(_), None) => Direction::Narrowed,
        (None, Some(_)) => Direction::Widened,
    };
    let effect = |witness: Option<Value>| witness.map_or(Effect::HARMLESS, Effect::broken_by);
    Some(Change {
        location: "(root)".to_owned(),
        other_locations: Vec::new(),
        more_locations: 0,
        keyword: "(document)".to_owned(),
        description: "a generated document is accepted by one of the schemas only".to_owned(),
        direction,
        old_pointer: String::new(),
        new_pointer: String::new(),
        reader: effect(reader),
        writer: effect(writer),
    })
}
