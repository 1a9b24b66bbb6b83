//! Lowers whitelists, blacklists and transforms to the rules of the three lists (DM-036 to DM-048).
//!
//! A `transform` list at `tools`, `prompts` or `resources` replaces that of the server, even if empty (DMX-09). Skills
//! have other rules; they are checked and kept in the metadata.

use mcp_host_model::{Exposure, ExposureFilter, ExposureRules, NamePolicy, NameTransform, RawJson};
use serde_json::json;

use crate::de::{Field, OptionalField, ReadContext, dominds_path};
use crate::diagnostic::Code;
use crate::dialect::dominds::wire::{Lists, Prefix, Replacement, Resources, Skills, TransformEntry};

/// The fields of a server that select and rename items.
pub(super) struct ExposureFields {
    pub(super) tools: OptionalField<Lists>,
    pub(super) prompts: OptionalField<Lists>,
    pub(super) resources: OptionalField<Resources>,
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
}

/// The result of lowering [`ExposureFields`].
pub(super) struct LoweredExposure {
    pub(super) exposure: Exposure,
    /// `maxBytes`, `mimeTypes` and `skills` of the resources.
    pub(super) resources: Option<RawJson>,
}

/// Lowers the fields that select and rename items.
pub(super) fn lower(named: ExposureFields, context: &ReadContext) -> LoweredExposure {
    let ExposureFields { tools, prompts, resources, transform } = named;
    let own = transforms(transform, context).unwrap_or_default();
    let (resources, settings) = match resources.take() {
        Some(it) => resource_rules(it, &own, context),
        None => (rules(ExposureFilter::default(), own.clone(), NamePolicy::Slug), None),
    };
    // DMX-10: invalid names of prompts and resources are replaced; those of tools are rejected.
    let mut exposure = Exposure::all(NamePolicy::Slug);
    exposure.tools = list_rules(tools.take(), &own, NamePolicy::Reject, context);
    exposure.prompts = list_rules(prompts.take(), &own, NamePolicy::Slug, context);
    exposure.resources = resources;
    LoweredExposure { exposure, resources: settings }
}

fn rules(filter: ExposureFilter, transforms: Vec<NameTransform>, naming: NamePolicy) -> ExposureRules {
    let mut rules = ExposureRules::new(naming);
    (rules.filter, rules.transforms) = (filter, transforms);
    rules
}

fn list_rules(
    lists: Option<Lists>,
    inherited: &[NameTransform],
    naming: NamePolicy,
    context: &ReadContext,
) -> ExposureRules {
    let Some(Lists { whitelist, blacklist, transform }) = lists else {
        return rules(ExposureFilter::default(), inherited.to_vec(), naming);
    };
    let filter = ExposureFilter { whitelist: patterns(whitelist), blacklist: patterns(blacklist) };
    rules(filter, transforms(transform, context).unwrap_or_else(|| inherited.to_vec()), naming)
}

fn resource_rules(
    resources: Resources,
    inherited: &[NameTransform],
    context: &ReadContext,
) -> (ExposureRules, Option<RawJson>) {
    let Resources { whitelist, blacklist, transform, mime_types, max_bytes, skills } = resources;
    if max_bytes.value().is_some_and(|it| *it <= 0) {
        let message = format!(
            "Invalid mcp.yaml: {} must be a positive integer",
            dominds_path(&max_bytes.at.pointer(context))
        );
        context.error(Code::OutOfRange, &max_bytes.at, message, "write bytes, such as 64000");
    }
    let skills = skills.take().map(|it| {
        let Skills { enabled, whitelist, blacklist, transform } = it;
        // These transforms are checked but not used, because Dominds names skills itself.
        transforms(transform, context);
        json!({
            "enabled": enabled.take().unwrap_or(false),
            "whitelist": patterns(whitelist),
            "blacklist": patterns(blacklist),
        })
    });
    let is_set = mime_types.is_given() || max_bytes.is_given() || skills.is_some();
    let settings = json!({
        "mimeTypes": patterns(mime_types),
        "maxBytes": max_bytes.take(),
        "skills": skills,
    });
    let filter = ExposureFilter { whitelist: patterns(whitelist), blacklist: patterns(blacklist) };
    let transforms = transforms(transform, context).unwrap_or_else(|| inherited.to_vec());
    let settings = is_set.then(|| RawJson::from_value(&settings).ok()).flatten();
    (rules(filter, transforms, NamePolicy::Slug), settings)
}

/// The patterns of a list. Blank ones are dropped; the others are not trimmed (DM-016).
fn patterns(list: OptionalField<Vec<Field<String>>>) -> Vec<String> {
    let all = list.take().unwrap_or_default().into_iter().filter_map(Field::take);
    all.filter(|it| !it.trim().is_empty()).collect()
}

/// Transforms in list order; `None` if there is no list.
fn transforms(
    list: OptionalField<Vec<Field<TransformEntry>>>,
    context: &ReadContext,
) -> Option<Vec<NameTransform>> {
    let mut res = Vec::new();
    for slot in list.take()? {
        let at = slot.at;
        let Some(TransformEntry { prefix, suffix }) = slot.take() else { continue };
        match (prefix.is_given(), suffix.is_given()) {
            (true, true) => {
                // DM-046: Dominds ignores the suffix silently.
                let message = format!(
                    "Invalid mcp.yaml: {} has both 'prefix' and 'suffix'",
                    dominds_path(&at.pointer(context))
                );
                context.error(
                    Code::InvalidTransform,
                    &at,
                    message,
                    "write two entries, in the order they apply",
                );
            }
            (false, false) => {
                let path = dominds_path(&at.pointer(context));
                let message =
                    format!("Invalid mcp.yaml: {path} must contain 'prefix' or 'suffix' transform entry");
                if !context.has_error(&at) {
                    context.error(Code::InvalidTransform, &at, message, "write `- prefix: \"x_\"`");
                }
            }
            (true, false) => res.extend(prefix.take().and_then(lower_prefix)),
            (false, true) => res.extend(suffix.take().map(NameTransform::Suffix)),
        }
    }
    Some(res)
}

fn lower_prefix(prefix: Prefix) -> Option<NameTransform> {
    match prefix {
        Prefix::Add(add) => Some(NameTransform::Prefix { remove: String::new(), add }),
        Prefix::Replace(Replacement { remove, add }) => {
            Some(NameTransform::Prefix { remove: remove.take()?, add: add.take()? })
        }
    }
}
