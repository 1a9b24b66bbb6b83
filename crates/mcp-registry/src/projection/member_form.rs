//! The forms of members that every client reads, and the correction of objects that break them.
//!
//! A member that may be missing is dropped if it has another form. An object without a mistake keeps its bytes.

use mcp_host_model::RawJson;
use mcp_host_model::internal::is_deeper_than;
use serde_json::Value;
use serde_json::value::RawValue;

/// The maximum depth of nested containers. Readers of many languages fail at about 128.
const MAX_DEPTH: usize = 100;

/// What an optional member must be.
#[derive(Clone, Copy)]
pub(super) enum MemberForm {
    Text,
    Number,
    /// A number from 0 to 1.
    Fraction,
    Flag,
    /// A date with a time and an offset, as in ISO 8601.
    Timestamp,
    /// An object with these members. Other members of it may have any value but null.
    Object(&'static [(&'static str, MemberForm)]),
    /// A list of objects with these members. The first one is required.
    Objects(&'static [(&'static str, MemberForm)]),
    Texts,
    /// A list of `user` and `assistant`.
    Roles,
    /// What the function returns for a value; `None` if the value must be dropped.
    Corrected(fn(&RawJson) -> Option<RawJson>),
    /// Anything but null.
    Any,
}

use MemberForm::{Any, Corrected, Flag, Fraction, Number, Object, Objects, Roles, Text, Texts, Timestamp};

pub(super) const ICONS: MemberForm =
    Objects(&[("src", Text), ("mimeType", Text), ("sizes", Texts), ("theme", Text)]);

/// The annotations of resources and of content blocks.
pub(super) const ANNOTATIONS: MemberForm =
    Object(&[("audience", Roles), ("priority", Fraction), ("lastModified", Timestamp)]);

/// Returns the object with each member in its form.
pub(super) fn correct_object(object: &RawJson, forms: &[(&str, MemberForm)]) -> RawJson {
    correct_members(object, |key, value| {
        let form = forms.iter().find(|(name, _)| *name == key).map_or(Any, |(_, form)| *form);
        form.correct(value)
    })
}

/// Returns the object with each member as `correct` returns it, and without those for which it returns `None`. A value
/// of another type is returned unchanged.
pub(super) fn correct_members(
    object: &RawJson,
    mut correct: impl FnMut(&str, &RawJson) -> Option<RawJson>,
) -> RawJson {
    let Some(members) = object.members() else { return object.clone() };
    let mut is_changed = false;
    let mut text = String::from("{");
    for (key, value) in &members {
        let corrected = correct(key, value);
        is_changed |= corrected.as_ref() != Some(value);
        let Some(corrected) = corrected else { continue };
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(&**key).to_string());
        text.push(':');
        text.push_str(corrected.as_str());
    }
    if !is_changed {
        return object.clone();
    }
    text.push('}');
    built_json(text)
}

/// Returns the object with a member in front of the others.
pub(super) fn with_first_member(object: &RawJson, member: &str) -> RawJson {
    let rest = &object.as_str()[1..];
    let comma = if rest.trim_ascii_start() == "}" { "" } else { "," };
    built_json(format!("{{{member}{comma}{rest}"))
}

/// Returns the elements of a list; `None` for another value.
pub(super) fn elements(list: &RawJson) -> Option<Vec<RawJson>> {
    let elements: Vec<&RawValue> = list.read().ok()?;
    Some(elements.into_iter().map(|element| list.slice(element)).collect())
}

/// Returns the list of these elements.
pub(super) fn list_of(elements: &[RawJson]) -> RawJson {
    let texts: Vec<&str> = elements.iter().map(RawJson::as_str).collect();
    built_json(format!("[{}]", texts.join(",")))
}

/// Returns whether containers are nested too deeply for readers of other programs.
pub(super) fn is_too_deep(value: &RawJson) -> bool {
    is_deeper_than(value.as_bytes(), MAX_DEPTH)
}

/// The JSON value of a text that was built from JSON values.
pub(super) fn built_json(text: String) -> RawJson {
    RawJson::parse(text.into()).expect("parts of JSON make JSON")
}

impl MemberForm {
    /// Returns the value in this form, or `None` if it must be dropped.
    pub(super) fn correct(self, value: &RawJson) -> Option<RawJson> {
        let first = value.as_bytes()[0];
        let keep = |is_valid: bool| is_valid.then(|| value.clone());
        match self {
            Text => keep(first == b'"'),
            Number => keep(first == b'-' || first.is_ascii_digit()),
            Fraction => keep(value.read::<f64>().is_ok_and(|number| (0.0..=1.0).contains(&number))),
            Flag => keep(matches!(first, b't' | b'f')),
            Timestamp => keep(value.to_text().is_some_and(|text| is_timestamp(&text))),
            Any => keep(first != b'n' && !is_too_deep(value)),
            Object(forms) => {
                keep(first == b'{' && !is_too_deep(value)).map(|value| correct_object(&value, forms))
            }
            Objects(forms) => correct_objects(value, forms),
            Texts => keep(value.read::<Vec<String>>().is_ok()),
            Roles => {
                keep(value.read::<Vec<String>>().is_ok_and(|roles| roles.iter().all(|role| is_role(role))))
            }
            Corrected(correct) => correct(value),
        }
    }
}

/// Returns whether a text is the role of a participant.
pub(super) fn is_role(text: &str) -> bool {
    matches!(text, "user" | "assistant")
}

/// Returns whether a text is a date and a time with an offset, such as `2026-01-02T03:04:05Z`.
fn is_timestamp(text: &str) -> bool {
    let matches = |text: &str, pattern: &str| {
        text.len() == pattern.len()
            && text.bytes().zip(pattern.bytes()).all(|(byte, expected)| match expected {
                b'0' => byte.is_ascii_digit(),
                expected => byte == expected,
            })
    };
    let Some((start, rest)) = text.split_at_checked("0000-00-00T00:00".len()) else { return false };
    let rest = match rest.split_at_checked(":00".len()) {
        Some((seconds, rest)) if matches(seconds, ":00") => rest,
        _ => rest,
    };
    let offset =
        rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches(|it: char| it.is_ascii_digit()));
    matches(start, "0000-00-00T00:00")
        && (offset == "Z" || matches(offset, "+00:00") || matches(offset, "-00:00"))
}

/// Returns the list without elements that lack the first of `forms`. `None` if it is no list.
fn correct_objects(value: &RawJson, forms: &[(&str, MemberForm)]) -> Option<RawJson> {
    if is_too_deep(value) {
        return None;
    }
    let elements = elements(value)?;
    let corrected: Vec<RawJson> = elements
        .iter()
        .map(|element| correct_object(element, forms))
        .filter(|element| {
            let members = element.members().unwrap_or_default();
            forms.first().is_none_or(|(required, _)| members.iter().any(|(key, _)| key == required))
        })
        .collect();
    Some(if corrected == elements { value.clone() } else { list_of(&corrected) })
}
