//! Token revocation (RFC 7009).
//!
//! A revocation is requested only if the issuer is still the one that issued the grant, at the endpoint of its
//! metadata, with the client of the grant.

use serde_json::Value;

use crate::client::{FormEndpoint, OAuthClient};
use crate::flow::{Flow, FlowError};
use crate::grant::Grant;
use crate::jwt::now;

/// The result of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RevocationOutcome {
    /// The tokens are revoked.
    Revoked,
    /// The authorization server has no revocation endpoint; the tokens expire by themselves.
    Unsupported,
    /// There was no grant.
    NoGrant,
}

impl Flow {
    /// Revokes a grant. The error contains the reason.
    pub(crate) async fn revoke(&self, grant: &Grant) -> Result<RevocationOutcome, String> {
        let server = match self.discover(None, Some(&grant.issuer)).await {
            Ok(server) => server,
            Err(FlowError::Failed(why)) => return Err(why),
            Err(FlowError::InvalidGrant) => {
                return Err("the authorization server does not know the login".to_owned());
            }
        };
        if server.issuer != grant.issuer {
            return Err("the server now uses another authorization server".to_owned());
        }
        let fields = &server.metadata.additional_fields;
        let Some(url) = fields.get("revocation_endpoint").and_then(Value::as_str) else {
            return Ok(RevocationOutcome::Unsupported);
        };
        let methods = fields.get("revocation_endpoint_auth_methods_supported");
        let endpoint = FormEndpoint { url, issuer: &server.issuer, methods };
        let client = OAuthClient::from(&grant.client);
        // Most servers revoke the access token together with the refresh token, which is therefore revoked first.
        let tokens = grant.refresh_token.iter().map(|it| (it, "refresh_token"));
        let failed = |why: String| format!("the login could not be revoked there: {why}");
        for (token, hint) in tokens.chain([(&grant.access_token, "access_token")]) {
            let form = [("token", token.expose().to_owned()), ("token_type_hint", hint.to_owned())];
            let request =
                endpoint.build_request(&client, &form, now()).map_err(|why| failed(why.to_owned()))?;
            let response = self.http_client.fetch(request).await.map_err(|it| failed(it.to_string()))?;
            match response.status().as_u16() {
                200..=299 => {}
                // The server revokes refresh tokens only, and this access token with it.
                400 if hint == "access_token" && is_unsupported_token_type(response.body()) => {}
                code => return Err(failed(format!("it answers with {code}"))),
            }
        }
        Ok(RevocationOutcome::Revoked)
    }
}

fn is_unsupported_token_type(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["error"].as_str() == Some("unsupported_token_type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_token_type_is_recognized() {
        assert!(is_unsupported_token_type(br#"{"error":"unsupported_token_type"}"#));
        assert!(
            !is_unsupported_token_type(br#"{"error":"invalid_client"}"#) && !is_unsupported_token_type(b"no")
        );
    }
}
