//! The key `sandbox` of a server, in our own form and in that of VS Code.
//!
//! VS Code limits hosts, which Linux cannot: what is not obeyed is a warning.

use mcp_host_model::{Sandbox, SandboxPreset};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{Field, Location, NullableField, OptionalField, ReadContext};
use crate::diagnostic::{CheckError, Code};
use crate::dialect::checks;
use crate::syntax::output::{OutputMembers, OutputValue};

/// A sandbox: the name of a preset, or a mapping.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: `project`, `network`, `off`, or a mapping")]
#[schemars(rename = "McpSandbox", untagged)]
pub(crate) enum SandboxValue {
    #[serde(rename = "text")]
    Preset(PresetKey),
    #[serde(rename = "mapping")]
    Mapping(Box<SandboxMapping>),
}

/// What a sandbox allows without being listed. `project`: read programs, packages and the working directory; no
/// network. `network`: the same, and the whole network. `off`: there is no sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum PresetKey {
    Project,
    Network,
    Off,
}

/// A sandbox with what it allows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "McpSandboxMapping")]
pub(crate) struct SandboxMapping {
    /// What it allows without being listed. Default: `project`.
    preset: OptionalField<PresetKey>,
    /// Files and folders that it may also read.
    #[schemars(inner(regex(pattern = r"\S")))]
    read: OptionalField<Vec<Field<String>>>,
    /// Files and folders that it may also read and write.
    #[schemars(inner(regex(pattern = r"\S")))]
    write: OptionalField<Vec<Field<String>>>,
    /// Files and folders that it may not read, inside of allowed ones.
    #[schemars(inner(regex(pattern = r"\S")))]
    deny_read: OptionalField<Vec<Field<String>>>,
    /// Files and folders that it may not write, inside of allowed ones.
    #[schemars(inner(regex(pattern = r"\S")))]
    deny_write: OptionalField<Vec<Field<String>>>,
    /// TCP ports that it may connect to, on any host. Port 53 also allows UDP, for the names of hosts.
    #[schemars(inner(range(min = 1, max = 65535)))]
    ports: OptionalField<Vec<Field<i64>>>,
    /// Names of variables that it also inherits.
    env: OptionalField<Vec<Field<String>>>,
    /// Files, in the form of VS Code; it needs `sandboxEnabled`.
    filesystem: OptionalField<FilesystemMapping>,
    /// The network, in the form of VS Code; it needs `sandboxEnabled`.
    network: OptionalField<NetworkMapping>,
}

/// Files, in the form of VS Code.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "McpSandboxFiles")]
struct FilesystemMapping {
    /// Files and folders that it may write.
    #[schemars(inner(regex(pattern = r"\S")))]
    allow_write: OptionalField<Vec<Field<String>>>,
    /// Files and folders that it may not read.
    #[schemars(inner(regex(pattern = r"\S")))]
    deny_read: OptionalField<Vec<Field<String>>>,
    /// Files and folders that it may not write.
    #[schemars(inner(regex(pattern = r"\S")))]
    deny_write: OptionalField<Vec<Field<String>>>,
}

/// The network, in the form of VS Code.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "McpSandboxNetwork")]
struct NetworkMapping {
    /// Hosts that it may connect to. Here they open the ports of names and of the web, on all hosts.
    allowed_domains: OptionalField<Vec<Field<String>>>,
    /// Hosts that it may not connect to; without effect here.
    denied_domains: OptionalField<Vec<Field<String>>>,
}

/// The ports of DNS and of the web.
const WEB_PORTS: [u16; 3] = [53, 80, 443];

/// Lowers the key. `enabled` is VS Code's `sandboxEnabled`.
pub(crate) fn lower(
    value: NullableField<SandboxValue>,
    enabled: Option<bool>,
    context: &ReadContext,
) -> Option<Sandbox> {
    let at = value.at;
    let is_invalid = value.is_given() && value.value().is_none();
    match (value.into_value(), enabled) {
        // What the user wanted to forbid is unknown, so everything is.
        (None, _) if is_invalid => Some(Sandbox::new(SandboxPreset::Project)),
        (None, Some(true)) => Some(Sandbox::new(SandboxPreset::Project)),
        (None, Some(false)) => Some(Sandbox::new(SandboxPreset::Off)),
        (None, None) => None,
        (Some(SandboxValue::Preset(preset)), _) => Some(Sandbox::new(preset.into())),
        (Some(SandboxValue::Mapping(mapping)), enabled) => {
            let is_of_editor = mapping.filesystem.is_given() || mapping.network.is_given();
            if is_of_editor && !mapping.preset.is_given() && enabled != Some(true) {
                let message = "'sandbox' has no effect without `sandboxEnabled`";
                let help = "add `\"sandboxEnabled\": true`, or write `preset` into `sandbox`";
                context.warning(Code::NoEffect, &at.at_key(), message, help);
                return Some(Sandbox::new(SandboxPreset::Off));
            }
            Some(lower_mapping(*mapping, context))
        }
    }
}

fn lower_mapping(mapping: SandboxMapping, context: &ReadContext) -> Sandbox {
    let SandboxMapping { preset, read, write, deny_read, deny_write, ports, env, filesystem, network } =
        mapping;
    let mut res = Sandbox::new(preset.into_value().map_or(SandboxPreset::Project, SandboxPreset::from));
    let paths = |slot| lower_texts(slot, check_path, context);
    (res.read, res.write) = (paths(read), paths(write));
    (res.deny_read, res.deny_write) = (paths(deny_read), paths(deny_write));
    res.env = lower_texts(env, checks::check_env_name, context);
    for port in ports.into_value().unwrap_or_default() {
        match port.value().map(|it| u16::try_from(*it)) {
            Some(Ok(number)) if number > 0 => res.ports.push(number),
            Some(_) => {
                context.error(
                    Code::OutOfRange,
                    &port.at,
                    "a port is a number from 1 to 65535",
                    "write the number of the port, such as 443",
                );
            }
            None => {}
        }
    }
    if let Some(FilesystemMapping { allow_write, deny_read, deny_write }) = filesystem.into_value() {
        res.write.extend(paths(allow_write));
        res.deny_read.extend(paths(deny_read));
        res.deny_write.extend(paths(deny_write));
    }
    if let Some(NetworkMapping { allowed_domains, denied_domains }) = network.into_value() {
        lower_domains(&allowed_domains, &mut res, context);
        if denied_domains.value().is_some_and(|it| !it.is_empty()) {
            let message = "'deniedDomains' is not obeyed: here a sandbox knows ports only, not hosts";
            let help = "allow no port that the hosts have, or remove it";
            context.warning(Code::NoEffect, &denied_domains.at.at_key(), message, help);
        }
    }
    res
}

/// Lowers hosts to ports, with a warning.
fn lower_domains(domains: &OptionalField<Vec<Field<String>>>, res: &mut Sandbox, context: &ReadContext) {
    let hosts: Vec<&str> =
        domains.value().into_iter().flatten().filter_map(|it| it.value().map(String::as_str)).collect();
    if hosts.contains(&"*") {
        res.preset = SandboxPreset::Network;
    } else if !hosts.is_empty() {
        let message =
            "'allowedDomains' opens the ports 53, 80 and 443 of all hosts: here a sandbox knows ports only";
        let help = "write `ports` instead, to state which";
        context.warning(Code::NoEffect, &domains.at.at_key(), message, help);
        res.ports.extend(WEB_PORTS);
    }
}

fn lower_texts(
    slot: OptionalField<Vec<Field<String>>>,
    check: fn(&str) -> Result<(), CheckError>,
    context: &ReadContext,
) -> Vec<String> {
    let text = |field: Field<String>| {
        let at: Location = field.at;
        field.into_value().filter(|text| context.report_check(&at, check(text)))
    };
    slot.into_value().unwrap_or_default().into_iter().filter_map(text).collect()
}

fn check_path(text: &str) -> Result<(), CheckError> {
    if text.trim().is_empty() {
        return Err(CheckError::new(
            Code::EmptyValue,
            "a path of 'sandbox' must not be empty",
            "write the path of a file or folder, or remove it",
        ));
    }
    checks::check_argument(text)
}

impl From<PresetKey> for SandboxPreset {
    fn from(key: PresetKey) -> SandboxPreset {
        match key {
            PresetKey::Project => SandboxPreset::Project,
            PresetKey::Network => SandboxPreset::Network,
            PresetKey::Off => SandboxPreset::Off,
        }
    }
}

/// The value of the key in our own form.
pub(crate) fn written(sandbox: &Sandbox) -> OutputValue {
    let Sandbox { preset, read, write, deny_read, deny_write, ports, env, .. } = sandbox;
    let mut members: OutputMembers = Vec::new();
    for (key, list) in
        [("read", read), ("write", write), ("denyRead", deny_read), ("denyWrite", deny_write), ("env", env)]
    {
        if !list.is_empty() {
            members.push((key.to_owned(), OutputValue::List(list.iter().map(OutputValue::text).collect())));
        }
    }
    if !ports.is_empty() {
        members
            .push(("ports".to_owned(), OutputValue::List(ports.iter().map(OutputValue::scalar).collect())));
    }
    let preset = OutputValue::text(preset.as_str());
    if members.is_empty() {
        return preset;
    }
    members.insert(0, ("preset".to_owned(), preset));
    OutputValue::Map(members)
}
