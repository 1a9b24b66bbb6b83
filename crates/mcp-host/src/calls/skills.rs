//! Skills of servers (SEP-2640): lists, single skills, and their files.
//!
//! Requests are routed like those for resources. A file is checked against the size and the hash that its skill states.

use std::sync::Arc;

use bytes::Bytes;
use mcp_host_model::{
    ErrorKind, InvalidItem, Method, RawJson, ResourceResult, ServerId, Skill, SkillFile,
    read_resource_result, read_skill_result,
};
use mcp_host_transport::{CallResponse, ListResult};
use sha2::{Digest, Sha256};

use crate::calls::raw_result::{RawResult, RequestFailure};
use crate::calls::request_options::RequestOptions;
use crate::calls::requests::RequestRouter;
use crate::calls::resource_lookup::LookupItem;
use crate::calls::route::{CatalogVersion, SendRequest};
use crate::calls::tool_lookup::display_name;
use crate::error::HostError;

/// Sends a request of the skills extension, and returns the raw result. Without a URI it is about all skills of
/// `options.server`.
pub(crate) async fn send_skill_request_raw(
    router: &RequestRouter,
    method: Method,
    uri: Option<&str>,
    options: RequestOptions,
) -> Result<RawResult, RequestFailure> {
    let item = uri.map_or(LookupItem::Skills, LookupItem::Resource);
    let has_uri = uri.is_some();
    let send: SendRequest<CallResponse<RawJson>> = Arc::new(move |session, uri, options| {
        Box::pin(session.skill_request_raw(method, has_uri.then_some(uri), options))
    });
    router.send_raw(method, item, options, send).await
}

/// Requests all skills of a server, and ignores invalid ones.
pub(crate) async fn list_skills(
    router: &RequestRouter,
    server: &ServerId,
    options: RequestOptions,
) -> Result<Vec<Skill>, HostError> {
    let options = RequestOptions { server: Some(server.clone()), ..options };
    let send: SendRequest<ListResult<Skill>> =
        Arc::new(|session, _, options| Box::pin(session.list_skills(options)));
    let (item, version) = (LookupItem::Skills, CatalogVersion::Latest);
    let listed = router.send(Method::ListSkills, item, options, version, send).await;
    let list = listed.map_err(|it| it.error)?.value;
    if let Some(defect) = &list.defect {
        tracing::warn!(%server, %defect, "the list of skills is incomplete");
    }
    for InvalidItem { name, reason, .. } in list.rejected {
        let name = name.unwrap_or_default();
        tracing::warn!(%server, name, reason, "ignoring an invalid skill");
    }
    Ok(list.items)
}

/// Reads `SKILL.md` or another listed file of a skill.
pub(crate) async fn read_skill_file(
    router: &RequestRouter,
    skill_uri: &str,
    file_uri: &str,
    options: RequestOptions,
) -> Result<ResourceResult, HostError> {
    let skill_result =
        send_skill_request_raw(router, Method::GetSkill, Some(skill_uri), options.clone()).await;
    let RawResult { result, server, .. } = skill_result.map_err(|it| it.error)?;
    let skill = read_skill_result(&result);
    let skill = skill.map_err(|error| invalid_response(&server, &format!("a skill: {error}")))?;
    let listed = skill.file(file_uri);
    if skill.files.is_some() && listed.is_none() {
        let message = format!("{} is not a file of the skill", display_name(file_uri));
        return Err(HostError::new(ErrorKind::Validation, message));
    }
    let options = RequestOptions { server: Some(server.clone()), ..options };
    let read = router.read_resource_raw(file_uri, options).await.map_err(|it| it.error)?;
    let read = read_resource_result(&read.result)
        .map_err(|error| invalid_response(&server, &format!("a file of a skill: {error}")))?;
    if let Some(listed) = listed {
        check_file(listed, &read)
            .map_err(|reason| invalid_response(&server, &format!("{}: {reason}", display_name(file_uri))))?;
    }
    Ok(read)
}

/// Creates the error of an invalid response.
fn invalid_response(server: &ServerId, reason: &str) -> HostError {
    HostError::new(ErrorKind::Protocol, format!("server '{server}' sent {reason}"))
}

/// Checks a file against the size and the hash that its skill states.
fn check_file(listed: &SkillFile, read: &ResourceResult) -> Result<(), String> {
    let content = read.contents.iter().find(|it| it.uri == listed.uri).ok_or("no content has this URI")?;
    let bytes = content.body.to_bytes().map_err(|error| error.to_string())?;
    if bytes.len() as u64 != listed.size {
        return Err(format!("it has {} bytes, and the skill states {}", bytes.len(), listed.size));
    }
    let digest = format!("sha256:{:x}", Bytes::copy_from_slice(&Sha256::digest(&bytes)));
    match digest == listed.digest {
        true => Ok(()),
        false => Err(format!("its hash is {digest}, and the skill states {}", display_name(&listed.digest))),
    }
}
