//! What a server answers, looked at before it goes on: it must be an object, and may ask for input only where its era
//! has that, and for what its client can give.
//!
//! Only the members that say what kind of result it is are touched; the rest stays the bytes it was.

use std::sync::LazyLock;

use mcp_host::{RawResult, RequestError};
use mcp_model::{Era, RawJson, RpcError, code};
use memchr::memmem::Finder;

use super::Asked;
use crate::protocol::request_state::Sealed;
use crate::protocol::{json_splice, response, upstream_error};
use crate::session::elicitation::Answers;
use crate::session::pending_input::MOST_QUESTIONS;

/// The member that says what kind of result it is.
const KIND: &str = "resultType";

impl Asked<'_> {
    /// The result as the client gets it. `name` is what it was asked for by.
    pub(super) fn received(&self, received: RawResult, name: &str) -> Result<RawJson, RpcError> {
        let RawResult { result, server, request_id: _ } = received;
        let failed = |what: &str| {
            RpcError::new(code::INTERNAL_ERROR, format!("MCPProtocolError: server '{server}' {what}"))
        };
        if !result.is_object() {
            return Err(failed("answered with a result that is no object"));
        }
        // What is nowhere in the text is no member either, and that is the common case.
        let text = result.as_bytes();
        static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(KIND));
        if FINDER.find(text).is_none() && memchr::memchr(b'\\', text).is_none() {
            return Ok(result);
        }
        let Some(members) = json_splice::ordered(&result) else {
            return Err(failed("answered with no JSON object"));
        };
        let all = |key: &'static str| members.iter().filter(move |(name, _)| name == key).map(|(_, it)| it);
        if all(KIND).next().is_none() {
            return Ok(result);
        }
        // In the older eras the member means nothing: whatever stands there, the result is complete.
        if self.gateway.era(&server) == Some(Era::Legacy) {
            let complete = response::text("complete");
            let other = |key: &str, value: &str| (key == KIND && value != complete).then(|| complete.clone());
            return Ok(json_splice::replaced(&result, other));
        }
        if [KIND, "inputRequests", "requestState"].iter().any(|it| all(it).nth(1).is_some()) {
            return Err(failed("says twice what kind of result it gives"));
        }
        if all(KIND).next().and_then(RawJson::to_text).as_deref() != Some("input_required") {
            return Ok(result);
        }
        if self.caller.era() == Era::Legacy || !self.may_need_input() {
            return Err(failed("asks for input where none can be asked for"));
        }
        let questions = match all("inputRequests").next() {
            Some(it) => json_splice::ordered(it).ok_or_else(|| failed("asks for input in no object"))?,
            None => Vec::new(),
        };
        if questions.len() > MOST_QUESTIONS {
            return Err(failed(&format!("asks for more than {MOST_QUESTIONS} things at once")));
        }
        let answers = self.caller.able.answers();
        for (_, question) in &questions {
            admitted(answers, question).map_err(|it| failed(&format!("asks for input: {it}")))?;
        }
        let Some(state) = all("requestState").next() else {
            return match questions.is_empty() {
                true => Err(failed("asks for input and does not say which")),
                false => Ok(result),
            };
        };
        let state = state.to_text().ok_or_else(|| failed("gives a `requestState` that is no text"))?;
        let sealed = self.gateway.seal.seal(&self.sealed(&server, name), &state);
        let sealed = response::text(&sealed);
        Ok(json_splice::replaced(&result, |key, _| (key == "requestState").then(|| sealed.clone())))
    }

    /// What the client is told where a server gave no result.
    pub(super) fn refused(&self, unanswered: RequestError) -> RpcError {
        upstream_error::refused(unanswered, &self.caller.able.capabilities)
    }

    /// Whose a state is, and of what.
    pub(super) fn sealed<'a>(&'a self, server: &'a mcp_model::ServerId, name: &'a str) -> Sealed<'a> {
        Sealed { principal: &self.caller.principal, server, method: &self.request.method, name }
    }

    /// May a server ask for input before it answers this?
    pub(super) fn may_need_input(&self) -> bool {
        matches!(&*self.request.method, "tools/call" | "prompts/get" | "resources/read")
    }
}

/// Looks whether the client may be asked this.
fn admitted(answers: Answers, question: &RawJson) -> Result<(), String> {
    let members = json_splice::ordered(question).ok_or("a question must be a JSON object")?;
    let all = |key: &'static str| members.iter().filter(move |(name, _)| name == key).map(|(_, it)| it);
    if all("method").nth(1).is_some() || all("params").nth(1).is_some() {
        return Err("a question says something twice".to_owned());
    }
    let method = all("method").next().and_then(RawJson::to_text).ok_or("a question has no `method`")?;
    let params = all("params").next().cloned().unwrap_or_else(RawJson::empty_object);
    answers.admit(&method, &params).map_err(|it| it.message)
}
