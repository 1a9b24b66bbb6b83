//! Fields that several dialects cannot express, or that they write in the same way. Each function reports the part
//! that the dialect cannot express.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_host_model::{
    Discovery, EnvInheritance, Exposure, ExposureFilter, ExposureRules, Limits, NamePolicy, Passthrough,
    RawJson, Sharing, SpecOrigin, SseFallback, TransportKind, UrlSpec,
};

use crate::diagnostic::quoted;
use crate::dialect::lowering::{CONFIG_VARIABLE, SSE_CONNECT};
use crate::dialect::write::report::WriteReport;
use crate::syntax::output::OutputValue;

/// Reports an inherited environment that differs from the dialect's.
pub(crate) fn report_inherit(wanted: EnvInheritance, given: EnvInheritance, report: &mut WriteReport<'_>) {
    if wanted == given {
        return;
    }
    let why = format!("{} has its own rule for the environment of a program", report.title());
    let done = match given {
        EnvInheritance::None => "it inherits nothing",
        EnvInheritance::Safe => "it inherits only safe variables",
        EnvInheritance::All => "it inherits everything",
    };
    report.replaced("inherit", why, done);
}

/// The member `sharing`, if the source states it. Otherwise reports a sharing that differs from the dialect's.
pub(crate) fn write_sharing(
    wanted: Sharing,
    given: Sharing,
    origin: &SpecOrigin,
    members: &mut Vec<(String, OutputValue)>,
    report: &mut WriteReport<'_>,
) {
    let word = match origin.stated_sharing {
        None => return report_sharing(wanted, given, report),
        Some(Sharing::Auto) => "auto",
        Some(Sharing::Shared) => "shared",
        Some(Sharing::PerOwner) => "per-client",
    };
    members.push(("sharing".to_owned(), OutputValue::text(word)));
}

/// Reports a sharing of instances that differs from the dialect's.
pub(crate) fn report_sharing(wanted: Sharing, given: Sharing, report: &mut WriteReport<'_>) {
    if (wanted == Sharing::PerOwner) == (given == Sharing::PerOwner) {
        return;
    }
    let why = format!("{} has its own rule for sharing a server", report.title());
    let done = match given {
        Sharing::Auto | Sharing::Shared => "all sessions share one instance",
        Sharing::PerOwner => "each session has an instance of its own",
    };
    report.replaced("sharing", why, done);
}

/// Reports a fallback transport, for dialects without one.
pub(crate) fn report_fallback(wanted: SseFallback, report: &mut WriteReport<'_>) {
    match wanted {
        SseFallback::Never => {}
        SseFallback::Allowed => {
            let why = format!("{} requires a single transport", report.title());
            report.replaced("sse_fallback", why, "Streamable HTTP only");
        }
    }
}

/// Reports a session that is not ended when it is closed, for dialects that always end it.
pub(crate) fn report_open_session(spec: &UrlSpec, kind: TransportKind, report: &mut WriteReport<'_>) {
    let stays_open = kind == TransportKind::Http && !spec.terminate_on_close;
    report.unsupported_if(stays_open, "terminate_on_close", "keeping a session open");
}

/// Reports limits that differ from the defaults, except those that were written.
pub(crate) fn report_limits(
    limits: &Limits,
    kind: TransportKind,
    written: &[&str],
    report: &mut WriteReport<'_>,
) {
    let usual = Limits::default();
    let is_other_connect = ![default_connect(kind), usual.connect].contains(&limits.connect);
    let changed = [
        ("limits.request", limits.request != usual.request),
        ("limits.idle", limits.idle.is_some()),
        ("limits.connect", is_other_connect),
        ("limits.startup", limits.startup != usual.startup),
        ("limits.sse_read", limits.sse_read != usual.sse_read),
        ("limits.message_bytes", limits.message_bytes != usual.message_bytes),
        ("limits.result_bytes", limits.result_bytes != usual.result_bytes),
        ("limits.list_items", limits.list_items != usual.list_items),
        ("limits.list_pages", limits.list_pages != usual.list_pages),
    ];
    for (field, _) in changed.iter().filter(|it| it.1 && !written.contains(&it.0)) {
        report.unsupported(*field, "this limit");
    }
}

/// The default timeout of connecting.
pub(crate) fn default_connect(kind: TransportKind) -> Duration {
    match kind {
        TransportKind::Sse => SSE_CONNECT,
        TransportKind::Stdio | TransportKind::WebSocket | TransportKind::Http | _ => {
            Limits::default().connect
        }
    }
}

/// Reports lists that are not requested, for dialects that always request them.
pub(crate) fn report_discovery(discovery: Discovery, report: &mut WriteReport<'_>) {
    let Discovery { tools, prompts, .. } = discovery;
    if !tools {
        report.unsupported("discovery.tools", "that tools are not listed");
    }
    if !prompts {
        report.unsupported("discovery.prompts", "that prompts are not listed");
    }
}

/// Reports filters and transforms, for dialects without them, and a name policy that differs from the dialect's.
/// Name lengths are configured in the host, not in a dialect.
pub(crate) fn report_exposure(exposure: &Exposure, naming: Option<NamePolicy>, report: &mut WriteReport<'_>) {
    for (list, rules) in lists(exposure) {
        let ExposureRules {
            filter: ExposureFilter { whitelist, blacklist },
            transforms,
            naming: _,
            limit: _,
            ..
        } = rules;
        if !whitelist.is_empty() || !blacklist.is_empty() {
            report.unsupported(format!("{list}.filter"), "this filter");
        }
        if !transforms.is_empty() {
            report.unsupported(format!("{list}.transforms"), "changed names");
        }
    }
    if let Some(naming) = naming {
        self::report_naming(exposure, [naming; 3], report);
    }
}

/// Reports a name policy that differs from the dialect's. `given` are the dialect's policies for tools, prompts
/// and resources.
pub(crate) fn report_naming(exposure: &Exposure, given: [NamePolicy; 3], report: &mut WriteReport<'_>) {
    if lists(exposure).map(|it| it.1.naming) == given {
        return;
    }
    let done = match given[0] {
        NamePolicy::Reject => "names are unchanged; invalid names are left out",
        NamePolicy::Normalise { class: _ } => "invalid characters of names become `-`",
        NamePolicy::Qualify { class: _ } => "names begin with the server's name",
        NamePolicy::Slug => "invalid characters of names become `_`",
        NamePolicy::Pass => "names are unchanged",
    };
    report.replaced("naming", format!("{} has its own rule for names", report.title()), done);
}

pub(crate) fn lists(exposure: &Exposure) -> [(&'static str, &ExposureRules); 3] {
    let Exposure { tools, prompts, resources, .. } = exposure;
    [("tools", tools), ("prompts", prompts), ("resources", resources)]
}

/// Reports metadata of another dialect's reader, except the keys that were written.
pub(crate) fn report_metadata(
    metadata: &BTreeMap<String, RawJson>,
    written: &[&str],
    report: &mut WriteReport<'_>,
) {
    for key in metadata.keys().filter(|it| !written.contains(&it.as_str())) {
        report.unsupported(format!("metadata.{key}"), &format!("`{}`", quoted(key)));
    }
}

/// Reports the defaults of inputs, which are lost unless the program of the file prompts for inputs.
pub(crate) fn report_inputs(origin: &SpecOrigin, report: &mut WriteReport<'_>) {
    report.unsupported_if(!origin.inputs.is_empty(), INPUTS_FIELD, "`inputs`");
}

/// The field of [`report_inputs`].
pub(crate) const INPUTS_FIELD: &str = "metadata.inputs";

/// The configuration for the server, for dialects without it. For a child process, a literal one is written as an
/// environment variable, because that is how the process receives it anyway (HDX-08). Any other is reported.
pub(crate) fn write_config(
    config: Option<&Passthrough>,
    env: Option<&mut Vec<(String, OutputValue)>>,
    variable: impl FnOnce(String) -> OutputValue,
    report: &mut WriteReport<'_>,
) {
    let why = format!("{} cannot express configuration for the server itself", report.title());
    match (config, env) {
        (None, _) => {}
        (Some(Passthrough::Literal(json)), Some(env)) => {
            env.retain(|it| it.0 != CONFIG_VARIABLE);
            env.push((CONFIG_VARIABLE.to_owned(), variable(json.as_str().to_owned())));
            report.replaced(
                "config",
                why,
                format!("wrote the variable {CONFIG_VARIABLE}, which passes it to the program"),
            );
        }
        (Some(Passthrough::Literal(_) | Passthrough::Template(_)), _) => report.omitted("config", why),
    }
}

/// Adds a member unless its list or map is empty.
pub(crate) fn push_non_empty(members: &mut Vec<(String, OutputValue)>, key: &str, value: OutputValue) {
    if !value.is_empty_collection() {
        members.push((key.to_owned(), value));
    }
}

/// Metadata key: the unknown members, which readers keep.
pub(crate) const EXTRA: &str = "extra";

/// Adds unknown members that the reader of the same dialect kept.
pub(crate) fn push_extra(members: &mut Vec<(String, OutputValue)>, metadata: &BTreeMap<String, RawJson>) {
    if let Some(OutputValue::Map(extra)) = metadata.get(EXTRA).and_then(OutputValue::from_json) {
        for member in extra {
            if !members.iter().any(|it| it.0 == member.0) {
                members.push(member);
            }
        }
    }
}
