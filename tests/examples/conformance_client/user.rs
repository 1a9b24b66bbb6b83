//! Handlers for server requests: accepts every form, samples one sentence, and has one root.

use async_trait::async_trait;
use mcp_host_model::{RawJson, RpcError};
use mcp_host_transport::{
    ElicitMode, ElicitParams, ElicitRequest, ElicitResult, Elicitation, Root, Roots, Sampling,
    SamplingRequest, SamplingResult,
};
use serde_json::Value;

use crate::form;

/// The user.
pub(crate) struct User;

#[async_trait]
impl Elicitation for User {
    fn modes(&self) -> &[ElicitMode] {
        &[ElicitMode::Form]
    }

    async fn elicit(&self, request: ElicitRequest) -> Result<ElicitResult, RpcError> {
        let ElicitParams::Form { schema } = request.params else { return Ok(ElicitResult::Decline) };
        let Ok(schema) = schema.read::<Value>() else { return Ok(ElicitResult::Decline) };
        Ok(ElicitResult::Accept(RawJson::from_value(&form::fill(&schema)).ok()))
    }
}

#[async_trait]
impl Sampling for User {
    async fn sample(&self, _request: SamplingRequest) -> Result<SamplingResult, RpcError> {
        Ok(SamplingResult::text("one-sentence", "A sentence."))
    }
}

#[async_trait]
impl Roots for User {
    async fn roots(&self) -> Result<Vec<Root>, RpcError> {
        Ok(vec![Root::new("file:///conformance")])
    }
}
