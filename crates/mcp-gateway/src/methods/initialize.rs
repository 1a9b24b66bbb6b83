//! How the gateway introduces itself: `initialize` and `server/discover`.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_model::{Era, ProtocolVersion, RawJson, RpcError, ServerId, code};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::LIST_TTL_MS;
use crate::access::scope::Scope;
use crate::gateway::Inner;
use crate::protocol::json_splice;

/// How long the instructions of several servers may be together, in bytes. One for whom there is no room is left out.
const MOST_INSTRUCTIONS: usize = 16 * 1024;

/// How long the capabilities of a client may be, in bytes: they are kept. Longer ones count as none.
pub(crate) const MOST_CAPABILITIES: usize = 64 * 1024;

/// What a client and the gateway have agreed upon.
pub(crate) struct Agreed {
    /// The version of the session.
    pub(crate) version: ProtocolVersion,
    /// What the client can do.
    pub(crate) capabilities: RawJson,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "protocolVersion")]
    version: Cow<'a, str>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
}

/// Reads the parameters of `initialize`. A version that is not known, or has no sessions, is answered with the newest
/// that has.
pub(crate) fn agree(params: &RawJson) -> Result<Agreed, RpcError> {
    let wire: Params<'_> = params.read().map_err(|it| {
        RpcError::new(code::INVALID_PARAMS, format!("the parameters of `initialize` cannot be read: {it}"))
    })?;
    let version = wire.version.parse().ok().filter(|it: &ProtocolVersion| it.era() == Era::Legacy);
    let fits = |it: &&RawValue| it.get().len() <= MOST_CAPABILITIES;
    let capabilities = wire.capabilities.filter(fits).map(RawJson::copy_of).filter(RawJson::is_object);
    Ok(Agreed {
        version: version.unwrap_or(ProtocolVersion::LATEST_LEGACY),
        capabilities: capabilities.unwrap_or_else(RawJson::empty_object),
    })
}

/// The result of `initialize`.
pub(crate) fn initialized(gateway: &Inner, agreed: &Agreed, scope: &Arc<Scope>) -> RawJson {
    let mut res = json!({
        "protocolVersion": agreed.version.as_str(),
        "capabilities": capabilities(gateway, scope, Era::Legacy),
        "serverInfo": value(&gateway.introduction()),
    });
    if let Some(instructions) = instructions(gateway, scope) {
        res["instructions"] = json!(instructions);
    }
    RawJson::from_value(&res).expect("its keys are strings")
}

/// The result of `server/discover`.
pub(super) fn discovered(gateway: &Inner, scope: &Arc<Scope>) -> RawJson {
    let mut res = json!({
        "resultType": "complete",
        "supportedVersions": [ProtocolVersion::LATEST.as_str()],
        "capabilities": capabilities(gateway, scope, Era::Modern),
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": value(&gateway.introduction()) },
    });
    res["ttlMs"] = serde_json::from_str(LIST_TTL_MS).expect("it is a number");
    if let Some(instructions) = instructions(gateway, scope) {
        res["instructions"] = json!(instructions);
    }
    RawJson::from_value(&res).expect("its keys are strings")
}

/// What the gateway can do. Servers come and go, so it does not depend on which are there now; but before one server alone
/// it can do what that one can.
fn capabilities(gateway: &Inner, scope: &Arc<Scope>, era: Era) -> serde_json::Value {
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

/// How the servers want to be used, for a model to read: each in its own words, under its name where there are several.
fn instructions(gateway: &Inner, scope: &Arc<Scope>) -> Option<String> {
    let of = |id: &ServerId| gateway.host.details(id)?.info?.instructions;
    if let Some(server) = &scope.server {
        return of(server);
    }
    // Who sees a part is not told of the rest.
    if !scope.is_whole() {
        return None;
    }
    let published = gateway.published();
    let mut res = String::new();
    for id in published.servers.iter().filter_map(|it| ServerId::parse(&it.id).ok()) {
        let Some(text) = of(&id).filter(|it| !it.trim().is_empty()) else { continue };
        let part = format!("# {id}\n\n{}\n\n", text.trim());
        if res.len() + part.len() <= MOST_INSTRUCTIONS {
            res.push_str(&part);
        }
    }
    (!res.is_empty()).then(|| res.trim_end().to_owned())
}

fn value(raw: &RawJson) -> serde_json::Value {
    raw.read().expect("it is JSON")
}
