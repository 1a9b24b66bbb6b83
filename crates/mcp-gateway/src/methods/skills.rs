//! Skills (SEP-2640): `skills/list`, `skills/get` and `resources/directory/read`.
//!
//! A list is forwarded page by page, one server after another, so that its size is bounded by that of a
//! server's page. A skill keeps its URIs unless another server has the same one; its files are read from the
//! server of its `SKILL.md`.

use mcp_host_model::{Method, RawJson, RpcError, ServerId};
use serde_json::value::RawValue;

use crate::access::scope::NameStyle;
use crate::lists::exposed_uri;
use crate::methods::context::RequestContext;
use crate::methods::lists::cursor_error;
use crate::methods::resources::MAX_URI_BYTES;
use crate::methods::server_result::protocol_error;
use crate::protocol::json_splice;
use crate::protocol::message_writer::json_string;
use crate::protocol::result_body::CheckedResult;
use crate::session::resource_origins::OriginKey;

impl RequestContext<'_> {
    /// Returns a page of the skills of one server. Its cursor names the server of the next page.
    pub(super) async fn list_skills(&self) -> Result<CheckedResult, RpcError> {
        let servers = self.servers_with_skills();
        let cursor = self.cursor()?;
        let (first, mut server_cursor) = match &cursor {
            None => (0, None),
            Some(cursor) => {
                let (encoded, server_cursor) = match cursor.split_once(':') {
                    Some((encoded, cursor)) => (encoded, Some(cursor)),
                    None => (&**cursor, None),
                };
                let is_named = |server: &ServerId| exposed_uri::encode_server(server) == encoded;
                (servers.iter().position(is_named).ok_or_else(cursor_error)?, server_cursor)
            }
        };
        let mut failure = None;
        for (at, server) in servers.iter().enumerate().skip(first) {
            match self.read_skills(server, server_cursor.take()).await {
                Ok(CheckedResult { object, info }) => {
                    return Ok(CheckedResult {
                        object: with_next_cursor(&object, server, servers.get(at + 1)),
                        info,
                    });
                }
                // The skills of the other servers are listed nevertheless.
                Err(error) => {
                    tracing::warn!(%server, error = error.message, "the skills could not be listed");
                    failure = failure.or(Some(error));
                }
            }
        }
        match failure {
            Some(error) if cursor.is_none() => Err(error),
            _ => Ok(RawJson::parse(r#"{"skills":[]}"#.into()).expect("it is JSON").into()),
        }
    }

    /// Requests a page of a server's skills, and replaces their URIs by exposed ones.
    async fn read_skills(&self, server: &ServerId, cursor: Option<&str>) -> Result<CheckedResult, RpcError> {
        self.admit_server(server)?;
        let cursor = cursor.map(|cursor| format!(r#"{{"cursor":{}}}"#, json_string(cursor)));
        let mut options = self.request_options(Some(server.clone()), "", &["cursor"])?;
        options.context.extra_params = cursor.map(|it| RawJson::parse(it.into()).expect("it is an object"));
        let page = self.gateway.host.send_skill_request_raw(Method::ListSkills, None, options).await;
        let page = page.map_err(|error| self.call_error(error))?;
        let CheckedResult { object: page, info } = self.check_result(page, "")?;
        let skills = json_splice::member(&page, "skills")
            .ok_or_else(|| protocol_error(server, "returned no list of skills"))?;
        let skills: Vec<String> = elements(&skills)
            .iter()
            .filter_map(|skill| {
                let exposed = self.expose_skill(skill, server);
                if exposed.is_none() {
                    tracing::warn!(%server, "a skill is not listed: another server has its URI");
                }
                Some(exposed?.as_str().to_owned())
            })
            .collect();
        let skills = format!("[{}]", skills.join(","));
        let object = json_splice::replace_values(&page, |key, _| (key == "skills").then(|| skills.clone()));
        Ok(CheckedResult { object, info })
    }

    /// Handles `skills/get` and `resources/directory/read`.
    pub(super) async fn handle_skill_request(&self, method: Method) -> Result<CheckedResult, RpcError> {
        let uri = self.required_text("uri")?;
        let (server_uri, options) = self.prepare_resource_request(&uri)?;
        let result = self.gateway.host.send_skill_request_raw(method, Some(&server_uri), options).await;
        let result = result.map_err(|error| self.resource_error(&uri, error))?;
        let server = result.server.clone();
        let result = self.check_result(result, &uri)?;
        let names_server = exposed_uri::split_authority(&uri).is_some();
        if names_server {
            let CheckedResult { object, info } = result;
            let named = |uri: &str| exposed_uri::with_server_authority(uri, &server);
            return Ok(CheckedResult { object: exposed_uri::replace_skill_uris(&object, named), info });
        }
        if method == Method::GetSkill && uri.len() <= MAX_URI_BYTES {
            self.gateway.resource_origins.claim(&OriginKey::of(self.client), &uri, &server);
        }
        Ok(result)
    }

    /// The servers of the scope that have skills, in the configured order.
    fn servers_with_skills(&self) -> Vec<ServerId> {
        let has_skills = |server: &ServerId| {
            let info = self.gateway.host.server_info(server);
            info.is_some_and(|info| info.capabilities.skills)
        };
        let snapshot = &self.resolution().snapshot;
        let servers = snapshot.server_ids().filter(|id| self.shows_all_resources(id) && has_skills(id));
        servers.cloned().collect()
    }

    /// Replaces the URIs of a skill by exposed ones. `None` if another server has its URI, and the URI cannot name the
    /// server.
    fn expose_skill(&self, skill: &RawJson, server: &ServerId) -> Option<RawJson> {
        let scope = &self.client.scope;
        let uri = json_splice::member(skill, "uri").and_then(|uri| uri.to_text().map(String::from));
        let Some(uri) = uri.filter(|uri| uri.len() <= MAX_URI_BYTES) else { return Some(skill.clone()) };
        if scope.server.is_some() && scope.names == NameStyle::Original {
            return Some(skill.clone());
        }
        let first = self.gateway.resource_origins.claim(&OriginKey::of(self.client), &uri, server);
        let listing = self.latest_listing();
        if listing.uri_owners().get(&uri).unwrap_or(&first) == server {
            return Some(skill.clone());
        }
        exposed_uri::with_server_authority(&uri, server)?;
        Some(exposed_uri::replace_skill_uris(skill, |uri| exposed_uri::with_server_authority(uri, server)))
    }

    /// Finds the server of the skill that contains a file: the one that sent the `SKILL.md` of a folder above it to the
    /// client.
    pub(super) fn skill_origin(&self, uri: &str) -> Option<ServerId> {
        /// Maximum number of folders above a file that are searched.
        const MAX_DEPTH: usize = 32;
        let origin_key = OriginKey::of(self.client);
        let folders = uri.rmatch_indices('/').map(|(end, _)| &uri[..end]);
        let mut folders = folders.take_while(|folder| !folder.ends_with(['/', ':'])).take(MAX_DEPTH);
        folders
            .find_map(|folder| self.gateway.resource_origins.get(&origin_key, &format!("{folder}/SKILL.md")))
    }
}

/// Replaces the cursor of a page by one of the gateway, if another page follows.
fn with_next_cursor(page: &RawJson, server: &ServerId, next_server: Option<&ServerId>) -> RawJson {
    let cursor =
        json_splice::member(page, "nextCursor").and_then(|cursor| cursor.to_text().map(String::from));
    let next = match (cursor, next_server) {
        (Some(cursor), _) => Some(format!("{}:{cursor}", exposed_uri::encode_server(server))),
        (None, Some(next)) => Some(exposed_uri::encode_server(next).into_owned()),
        (None, None) => None,
    };
    let page = json_splice::without_members(page, &["nextCursor"]);
    let Some(next) = next else { return page };
    let page = json_splice::with_defaults(&page, &[("nextCursor", &json_string(&next))]);
    RawJson::parse(page).expect("a member was added to an object")
}

/// The elements of a JSON array; of other values none.
fn elements(array: &RawJson) -> Vec<RawJson> {
    let elements: Vec<&RawValue> = array.read().unwrap_or_default();
    elements.into_iter().map(RawJson::copy_of).collect()
}
