//! `initialize` and `server/discover`.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_model::{Era, ProtocolVersion, RawJson, RpcError, ServerId, code};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::LIST_TTL_MS;
use crate::access::scope::Scope;
use crate::gateway::GatewayInner;
use crate::protocol::json_splice;
use crate::protocol::meta::MAX_CAPABILITY_BYTES;
use crate::session::state::Handshake;

/// Maximum size of the combined instructions in bytes. Instructions that do not fit are left out.
const MAX_INSTRUCTION_BYTES: usize = 16 * 1024;

#[derive(Deserialize)]
struct InitializeParams<'a> {
    #[serde(borrow, rename = "protocolVersion")]
    version: Cow<'a, str>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
}

/// Reads the parameters of `initialize`. For an unknown version, or one without sessions, the latest version with
/// sessions is used.
pub(crate) fn read_handshake(params: &RawJson) -> Result<Handshake, RpcError> {
    let raw: InitializeParams<'_> = params.read().map_err(|it| {
        RpcError::new(code::INVALID_PARAMS, format!("the parameters of `initialize` cannot be read: {it}"))
    })?;
    let version = raw.version.parse().ok().filter(|it: &ProtocolVersion| it.era() == Era::Legacy);
    let fits = |it: &&RawValue| it.get().len() <= MAX_CAPABILITY_BYTES;
    let capabilities = raw.capabilities.filter(fits).map(RawJson::copy_of).filter(RawJson::is_object);
    Ok(Handshake {
        version: version.unwrap_or(ProtocolVersion::LATEST_LEGACY),
        capabilities: capabilities.unwrap_or_else(RawJson::empty_object),
    })
}

/// The result of `initialize`.
pub(crate) fn initialize_result(
    gateway: &GatewayInner,
    handshake: &Handshake,
    scope: &Arc<Scope>,
) -> RawJson {
    let mut res = json!({
        "protocolVersion": handshake.version.as_str(),
        "capabilities": capabilities(gateway, scope, Era::Legacy),
        "serverInfo": value(&gateway.server_info()),
    });
    if let Some(instructions) = instructions(gateway, scope) {
        res["instructions"] = json!(instructions);
    }
    RawJson::from_value(&res).expect("its keys are strings")
}

/// The result of `server/discover`.
pub(super) fn discover_result(gateway: &GatewayInner, scope: &Arc<Scope>) -> RawJson {
    let mut res = json!({
        "resultType": "complete",
        "supportedVersions": [ProtocolVersion::LATEST.as_str()],
        "capabilities": capabilities(gateway, scope, Era::Modern),
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": value(&gateway.server_info()) },
    });
    res["ttlMs"] = serde_json::from_str(LIST_TTL_MS).expect("it is a number");
    if let Some(instructions) = instructions(gateway, scope) {
        res["instructions"] = json!(instructions);
    }
    RawJson::from_value(&res).expect("its keys are strings")
}

/// The gateway's capabilities. They do not depend on which servers run, except that a scope with one server has only
/// the capabilities of that server.
fn capabilities(gateway: &GatewayInner, scope: &Arc<Scope>, era: Era) -> serde_json::Value {
    let mut res = json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "completions": {},
    });
    if era == Era::Legacy {
        res["logging"] = json!({});
    }
    let info = scope.server.as_ref().and_then(|it| gateway.host.details(it)?.info);
    if let (Some(raw), Some(own)) = (info.and_then(|it| it.capabilities.raw), res.as_object_mut()) {
        let has: Vec<String> = json_splice::members(&raw).into_iter().map(|(key, _)| key).collect();
        own.retain(|key, _| has.contains(key));
    }
    res
}

/// The servers' instructions for a model; under their names if there are several.
fn instructions(gateway: &GatewayInner, scope: &Arc<Scope>) -> Option<String> {
    let of = |id: &ServerId| gateway.host.details(id)?.info?.instructions;
    if let Some(server) = &scope.server {
        return of(server);
    }
    // A filtered scope must not reveal other servers.
    if !scope.is_whole() {
        return None;
    }
    let published = gateway.published();
    let mut res = String::new();
    for id in published.servers.iter().filter_map(|it| ServerId::parse(&it.id).ok()) {
        let Some(text) = of(&id).filter(|it| !it.trim().is_empty()) else { continue };
        let part = format!("# {id}\n\n{}\n\n", text.trim());
        if res.len() + part.len() <= MAX_INSTRUCTION_BYTES {
            res.push_str(&part);
        }
    }
    (!res.is_empty()).then(|| res.trim_end().to_owned())
}

fn value(raw: &RawJson) -> serde_json::Value {
    raw.read().expect("it is JSON")
}
