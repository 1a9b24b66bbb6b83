//! Writes or reports the fields that several dialects share. What a dialect cannot express is reported.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_host_model::{
    Discovery, EnvInheritance, Exposure, ExposureFilter, ExposureRules, Limits, NamePolicy, Passthrough,
    RawJson, Sharing, SpecOrigin, SseFallback, TransportKind, UrlSpec,
};

use crate::diagnostic::quoted;
use crate::dialect::lowering::{CONFIG_VARIABLE, EXTRA_METADATA, SSE_CONNECT_TIMEOUT};
use crate::dialect::write::report::WriteReport;
use crate::syntax::output::{OutputMembers, OutputValue};

/// Reports an inherited environment that differs from that of the dialect.
pub(crate) fn report_inherit(wanted: EnvInheritance, default: EnvInheritance, report: &mut WriteReport<'_>) {
    if wanted == default {
        return;
    }
    let why = format!("{} has its own rule for the environment of a program", report.title());
    let fallback = match default {
        EnvInheritance::None => "it inherits nothing",
        EnvInheritance::Safe => "it inherits only safe variables",
        EnvInheritance::All => "it inherits everything",
    };
    report.add_replaced("inherit", why, fallback);
}

/// Adds the member `sharing`, if the source states it. Otherwise reports a sharing that differs from that of the
/// dialect.
pub(crate) fn write_sharing(
    wanted: Sharing,
    default: Sharing,
    origin: &SpecOrigin,
    members: &mut OutputMembers,
    report: &mut WriteReport<'_>,
) {
    match stated_sharing(origin) {
        Some(member) => members.push(member),
        None => report_sharing(wanted, default, report),
    }
}

/// The member `sharing`, if the source states it.
pub(crate) fn stated_sharing(origin: &SpecOrigin) -> Option<(String, OutputValue)> {
    let word = match origin.stated_sharing? {
        Sharing::Auto => "auto",
        Sharing::Shared => "shared",
        Sharing::PerOwner => "per-client",
    };
    Some(("sharing".to_owned(), OutputValue::text(word)))
}

/// Reports a sharing of instances that differs from that of the dialect.
pub(crate) fn report_sharing(wanted: Sharing, default: Sharing, report: &mut WriteReport<'_>) {
    if (wanted == Sharing::PerOwner) == (default == Sharing::PerOwner) {
        return;
    }
    let why = format!("{} has its own rule for sharing a server", report.title());
    let fallback = match default {
        Sharing::Auto | Sharing::Shared => "all sessions share one instance",
        Sharing::PerOwner => "each session has an instance of its own",
    };
    report.add_replaced("sharing", why, fallback);
}

/// Reports a fallback to server-sent events, for dialects without it.
pub(crate) fn report_sse_fallback(wanted: SseFallback, report: &mut WriteReport<'_>) {
    match wanted {
        SseFallback::Never => {}
        SseFallback::Allowed => {
            let why = format!("{} requires a single transport", report.title());
            report.add_replaced("sse_fallback", why, "Streamable HTTP only");
        }
    }
}

/// Reports a session that stays open on the server when the client closes, for dialects that always end it.
pub(crate) fn report_open_session(spec: &UrlSpec, kind: TransportKind, report: &mut WriteReport<'_>) {
    let stays_open = kind == TransportKind::Http && !spec.terminate_on_close;
    report.add_unsupported_if(stays_open, "terminate_on_close", "keeping a session open");
}

/// Reports limits that differ from the defaults, except the `written` ones.
pub(crate) fn report_limits(
    limits: &Limits,
    kind: TransportKind,
    written: &[&str],
    report: &mut WriteReport<'_>,
) {
    let defaults = Limits::default();
    let is_other_connect = ![default_connect_timeout(kind), defaults.connect].contains(&limits.connect);
    let changed = [
        ("limits.request", limits.request != defaults.request),
        ("limits.idle", limits.idle.is_some()),
        ("limits.connect", is_other_connect),
        ("limits.startup", limits.startup != defaults.startup),
        ("limits.sse_read", limits.sse_read != defaults.sse_read),
        ("limits.message_bytes", limits.message_bytes != defaults.message_bytes),
        ("limits.result_bytes", limits.result_bytes != defaults.result_bytes),
        ("limits.list_items", limits.list_items != defaults.list_items),
        ("limits.list_pages", limits.list_pages != defaults.list_pages),
    ];
    for (field, _) in changed.iter().filter(|it| it.1 && !written.contains(&it.0)) {
        report.add_unsupported(*field, "this limit");
    }
}

/// The default connect timeout of a transport.
pub(crate) fn default_connect_timeout(kind: TransportKind) -> Duration {
    match kind {
        TransportKind::Sse => SSE_CONNECT_TIMEOUT,
        TransportKind::Stdio | TransportKind::WebSocket | TransportKind::Http | _ => {
            Limits::default().connect
        }
    }
}

/// Reports lists that are not requested, for dialects that always request them.
pub(crate) fn report_discovery(discovery: Discovery, report: &mut WriteReport<'_>) {
    let Discovery { tools, prompts, .. } = discovery;
    if !tools {
        report.add_unsupported("discovery.tools", "that tools are not listed");
    }
    if !prompts {
        report.add_unsupported("discovery.prompts", "that prompts are not listed");
    }
}

/// Reports filters and transforms, for dialects without them, and a name policy that differs from that of the
/// dialect. Name lengths are configured in the host, not in a dialect.
pub(crate) fn report_exposure(exposure: &Exposure, naming: Option<NamePolicy>, report: &mut WriteReport<'_>) {
    for (list, rules) in exposure_lists(exposure) {
        let ExposureRules {
            filter: ExposureFilter { whitelist, blacklist },
            transforms,
            naming: _,
            limit: _,
            ..
        } = rules;
        if !whitelist.is_empty() || !blacklist.is_empty() {
            report.add_unsupported(format!("{list}.filter"), "this filter");
        }
        if !transforms.is_empty() {
            report.add_unsupported(format!("{list}.transforms"), "changed names");
        }
    }
    if let Some(naming) = naming {
        report_naming(exposure, NamePolicies::same(naming), report);
    }
}

/// The name policies of a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamePolicies {
    pub(crate) tools: NamePolicy,
    pub(crate) prompts: NamePolicy,
    pub(crate) resources: NamePolicy,
}

impl NamePolicies {
    /// The same policy for each list.
    pub(crate) fn same(policy: NamePolicy) -> NamePolicies {
        NamePolicies { tools: policy, prompts: policy, resources: policy }
    }
}

/// Reports name policies that differ from those of the dialect. The report describes the dialect's policy for tools.
pub(crate) fn report_naming(exposure: &Exposure, default: NamePolicies, report: &mut WriteReport<'_>) {
    let Exposure { tools, prompts, resources, .. } = exposure;
    let naming = NamePolicies { tools: tools.naming, prompts: prompts.naming, resources: resources.naming };
    if naming == default {
        return;
    }
    let fallback = match default.tools {
        NamePolicy::Reject => "names are unchanged; invalid names are left out",
        NamePolicy::Normalise { class: _ } => "invalid characters of names become `-`",
        NamePolicy::Qualify { class: _ } => "names begin with the server's name",
        NamePolicy::Slug => "invalid characters of names become `_`",
        NamePolicy::Pass => "names are unchanged",
    };
    report.add_replaced("naming", format!("{} has its own rule for names", report.title()), fallback);
}

/// The rules of each list, with the name of the list.
pub(crate) fn exposure_lists(exposure: &Exposure) -> [(&'static str, &ExposureRules); 3] {
    let Exposure { tools, prompts, resources, .. } = exposure;
    [("tools", tools), ("prompts", prompts), ("resources", resources)]
}

/// Reports metadata that the dialect cannot express, which is all but the `written` keys.
pub(crate) fn report_metadata(
    metadata: &BTreeMap<String, RawJson>,
    written: &[&str],
    report: &mut WriteReport<'_>,
) {
    for key in metadata.keys().filter(|it| !written.contains(&it.as_str())) {
        report.add_unsupported(format!("metadata.{key}"), &format!("`{}`", quoted(key)));
    }
}

/// Reports the defaults of inputs, which are lost unless the program of the file prompts for inputs.
pub(crate) fn report_inputs(origin: &SpecOrigin, report: &mut WriteReport<'_>) {
    report.add_unsupported_if(!origin.inputs.is_empty(), INPUTS_FIELD, "`inputs`");
}

/// The field that [`report_inputs`] reports.
pub(crate) const INPUTS_FIELD: &str = "metadata.inputs";

/// Writes `config`, the configuration for the server itself, in dialects without it. For a child process, a literal
/// one becomes an environment variable of `env`, because that is how the process receives it anyway (HDX-08). Any
/// other is omitted.
pub(crate) fn write_config(
    config: Option<&Passthrough>,
    env: Option<&mut OutputMembers>,
    report: &mut WriteReport<'_>,
) {
    let why = format!("{} cannot express configuration for the server itself", report.title());
    match (config, env) {
        (None, _) => {}
        (Some(Passthrough::Literal(json)), Some(env)) => {
            env.retain(|it| it.0 != CONFIG_VARIABLE);
            env.push((CONFIG_VARIABLE.to_owned(), OutputValue::text(json.as_str())));
            let done = format!("wrote the variable {CONFIG_VARIABLE}, which passes it to the program");
            report.add_replaced("config", why, done);
        }
        (Some(Passthrough::Literal(_) | Passthrough::Template(_)), _) => report.add_omitted("config", why),
    }
}

/// Adds a member unless its list or map is empty.
pub(crate) fn push_non_empty(members: &mut OutputMembers, key: &str, value: OutputValue) {
    if !value.is_empty_collection() {
        members.push((key.to_owned(), value));
    }
}

/// Adds the unknown members that the reader of the same dialect kept.
pub(crate) fn push_extra(members: &mut OutputMembers, metadata: &BTreeMap<String, RawJson>) {
    if let Some(OutputValue::Map(extra)) = metadata.get(EXTRA_METADATA).and_then(OutputValue::from_json) {
        for member in extra {
            if !members.iter().any(|it| it.0 == member.0) {
                members.push(member);
            }
        }
    }
}
