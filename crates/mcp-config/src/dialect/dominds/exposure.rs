//! Lowers whitelists, blacklists and transforms to the rules for tools, prompts and resources (DM-036 to DM-048).
//!
//! A `transform` list at `tools`, `prompts` or `resources` replaces that of the server, even if empty (DMX-09). Skills
//! have other rules; they are checked and kept in the metadata.

use mcp_host_model::{Exposure, ExposureFilter, ExposureRules, NamePolicy, NameTransform, RawJson};
use serde_json::json;

use crate::de::{Field, OptionalField, ReadContext, dominds_path};
use crate::diagnostic::Code;
use crate::dialect::dominds::wire::{
    ListExposure, PrefixReplacement, PrefixTransform, ResourceExposure, Skills, TransformEntry,
};

/// The fields of a server that select and rename items.
pub(super) struct ExposureFields {
    pub(super) tools: OptionalField<ListExposure>,
    pub(super) prompts: OptionalField<ListExposure>,
    pub(super) resources: OptionalField<ResourceExposure>,
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
}

/// The result of lowering [`ExposureFields`].
pub(super) struct LoweredExposure {
    pub(super) exposure: Exposure,
    /// `maxBytes`, `mimeTypes` and `skills` of the resources.
    pub(super) resources: Option<RawJson>,
}

/// Lowers the fields that select and rename items.
pub(super) fn lower(fields: ExposureFields, context: &ReadContext) -> LoweredExposure {
    let ExposureFields { tools, prompts, resources, transform } = fields;
    let own = lower_transforms(transform, context).unwrap_or_default();
    let (resources, settings) = match resources.into_value() {
        Some(it) => lower_resources(it, &own, context),
        None => (new_rules(ExposureFilter::default(), own.clone(), NamePolicy::Slug), None),
    };
    // DMX-10: invalid names of prompts and resources are replaced; those of tools are rejected.
    let mut exposure = Exposure::all(NamePolicy::Slug);
    exposure.tools = lower_list(tools.into_value(), &own, NamePolicy::Reject, context);
    exposure.prompts = lower_list(prompts.into_value(), &own, NamePolicy::Slug, context);
    exposure.resources = resources;
    LoweredExposure { exposure, resources: settings }
}

/// The rules of a list.
fn new_rules(filter: ExposureFilter, transforms: Vec<NameTransform>, naming: NamePolicy) -> ExposureRules {
    let mut rules = ExposureRules::new(naming);
    (rules.filter, rules.transforms) = (filter, transforms);
    rules
}

/// Lowers the rules of tools or prompts. Without transforms of their own they get the `inherited` ones of the server.
fn lower_list(
    lists: Option<ListExposure>,
    inherited: &[NameTransform],
    naming: NamePolicy,
    context: &ReadContext,
) -> ExposureRules {
    let Some(ListExposure { whitelist, blacklist, transform }) = lists else {
        return new_rules(ExposureFilter::default(), inherited.to_vec(), naming);
    };
    let filter = ExposureFilter { whitelist: read_patterns(whitelist), blacklist: read_patterns(blacklist) };
    new_rules(filter, lower_transforms(transform, context).unwrap_or_else(|| inherited.to_vec()), naming)
}

/// Lowers the rules of resources, and their further settings as JSON.
fn lower_resources(
    resources: ResourceExposure,
    inherited: &[NameTransform],
    context: &ReadContext,
) -> (ExposureRules, Option<RawJson>) {
    let ResourceExposure { whitelist, blacklist, transform, mime_types, max_bytes, skills } = resources;
    if max_bytes.value().is_some_and(|it| *it <= 0) {
        let path = dominds_path(&max_bytes.at.pointer(context));
        let message = format!("Invalid mcp.yaml: {path} must be a positive integer");
        context.error(Code::OutOfRange, &max_bytes.at, message, "write bytes, such as 64000");
    }
    let skills = skills.into_value().map(|it| {
        let Skills { enabled, whitelist, blacklist, transform } = it;
        // These transforms are checked but not used, because Dominds names skills itself.
        lower_transforms(transform, context);
        json!({
            "enabled": enabled.into_value().unwrap_or(false),
            "whitelist": read_patterns(whitelist),
            "blacklist": read_patterns(blacklist),
        })
    });
    let is_set = mime_types.is_given() || max_bytes.is_given() || skills.is_some();
    let settings = json!({
        "mimeTypes": read_patterns(mime_types),
        "maxBytes": max_bytes.into_value(),
        "skills": skills,
    });
    let filter = ExposureFilter { whitelist: read_patterns(whitelist), blacklist: read_patterns(blacklist) };
    let transforms = lower_transforms(transform, context).unwrap_or_else(|| inherited.to_vec());
    let settings = is_set.then(|| RawJson::from_value(&settings).ok()).flatten();
    (new_rules(filter, transforms, NamePolicy::Slug), settings)
}

/// The patterns of a list. Blank ones are dropped; the others are not trimmed (DM-016).
fn read_patterns(list: OptionalField<Vec<Field<String>>>) -> Vec<String> {
    let all = list.into_value().unwrap_or_default().into_iter().filter_map(Field::into_value);
    all.filter(|it| !it.trim().is_empty()).collect()
}

/// Lowers transforms in list order; `None` if there is no list.
fn lower_transforms(
    list: OptionalField<Vec<Field<TransformEntry>>>,
    context: &ReadContext,
) -> Option<Vec<NameTransform>> {
    let mut res = Vec::new();
    for slot in list.into_value()? {
        let at = slot.at;
        let Some(TransformEntry { prefix, suffix }) = slot.into_value() else { continue };
        match (prefix.is_given(), suffix.is_given()) {
            (true, true) => {
                // DM-046: Dominds ignores the suffix silently.
                let message = format!(
                    "Invalid mcp.yaml: {} has both 'prefix' and 'suffix'",
                    dominds_path(&at.pointer(context))
                );
                let help = "write two entries, in the order they apply";
                context.error(Code::InvalidTransform, &at, message, help);
            }
            (false, false) => {
                let path = dominds_path(&at.pointer(context));
                let message =
                    format!("Invalid mcp.yaml: {path} must contain 'prefix' or 'suffix' transform entry");
                if !context.has_error(&at) {
                    context.error(Code::InvalidTransform, &at, message, "write `- prefix: \"x_\"`");
                }
            }
            (true, false) => res.extend(prefix.into_value().and_then(lower_prefix)),
            (false, true) => res.extend(suffix.into_value().map(NameTransform::Suffix)),
        }
    }
    Some(res)
}

fn lower_prefix(prefix: PrefixTransform) -> Option<NameTransform> {
    match prefix {
        PrefixTransform::Add(add) => Some(NameTransform::Prefix { remove: String::new(), add }),
        PrefixTransform::Replace(PrefixReplacement { remove, add }) => {
            Some(NameTransform::Prefix { remove: remove.into_value()?, add: add.into_value()? })
        }
    }
}
