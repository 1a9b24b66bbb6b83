//! `initialize` and `server/discover`.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_host_model::{Era, ProtocolVersion, RawJson, RpcError, ServerId, TASKS_EXTENSION, code};
use serde::Deserialize;
use serde_json::map::Entry;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::access::scope::Scope;
use crate::gateway::GatewayInner;
use crate::lists::listing::Audience;
use crate::methods::LIST_TTL_MS;
use crate::protocol::json_splice;
use crate::protocol::meta::{self, MAX_CAPABILITY_BYTES};
use crate::session::client_session::Handshake;
use crate::session::features::ClientFeatures;

/// Maximum size of the extensions that servers declare in bytes. Those of further servers are left out.
const MAX_EXTENSION_BYTES: usize = 64 * 1024;

/// Maximum size of the combined instructions in bytes. Instructions that do not fit are left out.
const MAX_INSTRUCTION_BYTES: usize = 16 * 1024;

#[derive(Deserialize)]
struct InitializeParams<'a> {
    #[serde(borrow, rename = "protocolVersion")]
    version: Cow<'a, str>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "clientInfo")]
    client_info: Option<&'a RawValue>,
}

/// Reads the parameters of `initialize`. For an unknown version, or one without sessions, the latest version with
/// sessions is used.
pub(crate) fn read_handshake(params: &RawJson) -> Result<Handshake, RpcError> {
    let InitializeParams { version, capabilities, client_info } = params.read().map_err(|error| {
        let message = format!("the parameters of `initialize` are invalid: {error}");
        RpcError::new(code::INVALID_PARAMS, message)
    })?;
    let version = version.parse().ok().filter(|version: &ProtocolVersion| version.era() == Era::Legacy);
    let capabilities = capabilities.filter(|capabilities| capabilities.get().len() <= MAX_CAPABILITY_BYTES);
    let capabilities = capabilities.map(RawJson::copy_of).filter(RawJson::is_object);
    Ok(Handshake {
        version: version.unwrap_or(ProtocolVersion::LATEST_LEGACY),
        features: ClientFeatures::of(capabilities.unwrap_or_else(RawJson::empty_object)),
        client_name: client_info.and_then(|info| meta::client_name(&RawJson::copy_of(info))),
    })
}

/// The result of `initialize`.
pub(crate) fn initialize_result(
    gateway: &GatewayInner,
    handshake: &Handshake,
    scope: &Arc<Scope>,
) -> RawJson {
    without_nulls(json!({
        "protocolVersion": handshake.version.as_str(),
        "capabilities": capabilities(gateway, scope, Era::Legacy),
        "serverInfo": server_info(gateway, scope),
        "instructions": instructions(gateway, scope),
    }))
}

/// The result of `server/discover`.
pub(super) fn discover_result(gateway: &GatewayInner, scope: &Arc<Scope>) -> RawJson {
    without_nulls(json!({
        "resultType": "complete",
        "supportedVersions": [ProtocolVersion::LATEST.as_str()],
        "capabilities": capabilities(gateway, scope, Era::Modern),
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info(gateway, scope) },
        "instructions": instructions(gateway, scope),
    }))
}

/// Removes members that are null, such as `instructions` if there are none.
fn without_nulls(mut result: Value) -> RawJson {
    if let Some(members) = result.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    RawJson::from_value(&result).expect("its keys are strings")
}

/// The gateway's name and version. In a scope with one server, with the title and the icons of that server for users.
fn server_info(gateway: &GatewayInner, scope: &Scope) -> Value {
    let mut info = json!({ "name": gateway.options.name, "version": gateway.options.version });
    let only = scope.server.as_ref().and_then(|server| gateway.host.server_info(server)?.implementation);
    let members = only.and_then(|only| only.read::<Map<String, Value>>().ok()).unwrap_or_default();
    // Without the description, which a model may see: a lock file does not cover it.
    for member in ["title", "icons", "websiteUrl"] {
        if let Some(value) = members.get(member) {
            info[member] = value.clone();
        }
    }
    info
}

/// The capabilities of the gateway and of the servers of the scope.
fn capabilities(gateway: &GatewayInner, scope: &Arc<Scope>, era: Era) -> Value {
    let info = scope.server.as_ref().and_then(|server| gateway.host.server_info(server));
    let mut capabilities = offered_capabilities(info.and_then(|info| info.capabilities.raw).as_ref());
    if era == Era::Legacy && has_server_with_tasks(gateway, scope) {
        capabilities["tasks"] = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
    }
    let extensions = extensions(gateway, scope, era);
    if !extensions.is_empty() {
        capabilities["extensions"] = extensions.into();
    }
    capabilities
}

/// The gateway's capabilities. They do not depend on which servers run, except that a scope with one server has only
/// those of the `only` server.
fn offered_capabilities(only: Option<&RawJson>) -> Value {
    let mut capabilities = json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "completions": {},
        "logging": {},
    });
    let offered = capabilities.as_object_mut().expect("it is an object");
    if let Some(only) = only {
        offered.retain(|name, _| json_splice::member(only, name).is_some_and(|it| it.is_object()));
        let resources = json_splice::member(only, "resources").unwrap_or_else(RawJson::empty_object);
        let has_subscriptions =
            json_splice::member(&resources, "subscribe").is_some_and(|it| it.as_str() == "true");
        if let Some(Value::Object(resources)) = offered.get_mut("resources").filter(|_| !has_subscriptions) {
            resources.remove("subscribe");
        }
    }
    capabilities
}

/// Whether a legacy server of the scope runs tools as tasks.
fn has_server_with_tasks(gateway: &GatewayInner, scope: &Arc<Scope>) -> bool {
    gateway.listing(scope, Audience::ModelsAndApps).servers().iter().any(|server| {
        let info = gateway.host.server_info(server);
        info.is_some_and(|it| it.capabilities.tasks.call) && gateway.era(server) != Some(Era::Modern)
    })
}

/// The extensions that servers of the scope declare. An extension of several servers has settings only if theirs are
/// equal. The extension for tasks is declared in the modern era only.
fn extensions(gateway: &GatewayInner, scope: &Arc<Scope>, era: Era) -> Map<String, Value> {
    let visible = gateway.listing(scope, Audience::ModelsAndApps).servers();
    let info_of = |server: &ServerId| gateway.host.server_info(server)?.capabilities.raw;
    let declared = visible.iter().filter_map(|server| json_splice::member(&info_of(server)?, "extensions"));
    let mut combined = Map::new();
    let mut bytes = 0;
    for extensions in declared {
        bytes += extensions.as_bytes().len();
        if bytes > MAX_EXTENSION_BYTES {
            break;
        }
        let extensions: Map<String, Value> = extensions.read().unwrap_or_default();
        let is_of_era = |name: &str| name != TASKS_EXTENSION || era == Era::Modern;
        for (name, settings) in extensions.into_iter().filter(|(name, _)| is_of_era(name)) {
            match combined.entry(name) {
                Entry::Occupied(mut other) if *other.get() != settings => drop(other.insert(json!({}))),
                Entry::Occupied(_) => {}
                Entry::Vacant(entry) => drop(entry.insert(settings)),
            }
        }
    }
    combined
}

/// The servers' instructions for a model; for the whole catalog, each under the name of its server.
fn instructions(gateway: &GatewayInner, scope: &Arc<Scope>) -> Option<String> {
    let instructions_of = |server: &ServerId| gateway.host.server_info(server)?.instructions;
    if let Some(server) = &scope.server {
        return instructions_of(server);
    }
    // A filtered scope must not reveal other servers.
    if !scope.is_unfiltered() {
        return None;
    }
    let snapshot = gateway.snapshot();
    let mut combined = String::new();
    for server in snapshot.server_ids() {
        let text = instructions_of(server).unwrap_or_default();
        let section = format!("# {server}\n\n{}\n\n", text.trim());
        if !text.trim().is_empty() && combined.len() + section.len() <= MAX_INSTRUCTION_BYTES {
            combined.push_str(&section);
        }
    }
    (!combined.is_empty()).then(|| combined.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(only: Option<&str>, want: Value) {
        let only = only.map(|text| RawJson::parse(text.to_owned().into()).unwrap());
        assert_eq!(offered_capabilities(only.as_ref()), want);
    }

    #[test]
    fn offered_capabilities_are_those_of_both_ends() {
        let (tools, resources) =
            (json!({"listChanged": true}), json!({"listChanged": true, "subscribe": true}));
        let all = json!({"tools": tools, "prompts": tools, "resources": resources, "completions": {}, "logging": {}});
        check(None, all);
        let server = r#"{"tools":{},"resources":{"subscribe":true},"logging":{},"prompts":null,"x":{}}"#;
        check(Some(server), json!({"tools": tools, "resources": resources, "logging": {}}));
        let server = r#"{"resources":{"subscribe":false},"completions":{}}"#;
        check(Some(server), json!({"resources": {"listChanged": true}, "completions": {}}));
        check(Some(r#"{"prompts":{}}"#), json!({"prompts": {"listChanged": true}}));
        check(Some("{}"), json!({}));
    }
}
