//! Token revocation (RFC 7009).
//!
//! Revocation is requested only if the issuer is still the one that issued the grant, at the endpoint of its metadata,
//! with the client of the grant.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use mcp_host_model::Secret;
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::flow::{Flow, FlowError};
use crate::grant::{Grant, RegisteredClient};

/// The result of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revocation {
    /// The tokens are revoked.
    Revoked,
    /// The authorization server has no revocation endpoint; the tokens expire by themselves.
    Unsupported,
    /// There was no grant.
    NoGrant,
}

impl Flow {
    /// Revokes a grant. The error contains the reason.
    pub(crate) async fn revoke(&self, grant: &Grant) -> Result<Revocation, String> {
        let server = match self.discover(None).await {
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
        let Some(endpoint) = fields.get("revocation_endpoint").and_then(Value::as_str) else {
            return Ok(Revocation::Unsupported);
        };
        let authentication =
            ClientAuthentication::of(&grant.client, fields.get("revocation_endpoint_auth_methods_supported"));
        // Most servers revoke the access token together with the refresh token, which is therefore revoked first.
        let tokens = grant.refresh_token.iter().map(|it| (it, "refresh_token"));
        for (token, hint) in tokens.chain([(&grant.access_token, "access_token")]) {
            self.revoke_token(endpoint, (token, hint), &grant.client, authentication).await?;
        }
        Ok(Revocation::Revoked)
    }

    async fn revoke_token(
        &self,
        endpoint: &str,
        (token, hint): (&Secret, &str),
        client: &RegisteredClient,
        authentication: ClientAuthentication,
    ) -> Result<(), String> {
        let failed = "the login could not be revoked there";
        let mut request = Request::builder().method(Method::POST).uri(endpoint);
        request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        request = request.header(ACCEPT, "application/json");
        let mut form = Serializer::new(String::new());
        form.append_pair("token", token.expose()).append_pair("token_type_hint", hint);
        match (authentication, &client.secret) {
            (ClientAuthentication::Header, Some(secret)) => {
                let escaped = |it: &str| byte_serialize(it.as_bytes()).collect::<String>();
                let both = format!("{}:{}", escaped(&client.id), escaped(secret.expose()));
                request = request.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(both)));
            }
            (ClientAuthentication::Form, Some(secret)) => {
                form.append_pair("client_id", &client.id).append_pair("client_secret", secret.expose());
            }
            (ClientAuthentication::Header | ClientAuthentication::Form, None) => {
                form.append_pair("client_id", &client.id);
            }
        }
        let request = request.body(form.finish().into_bytes()).map_err(|_| failed.to_owned())?;
        let response = self.http_client.fetch(request).await.map_err(|it| format!("{failed}: {it}"))?;
        match response.status().as_u16() {
            200..=299 => Ok(()),
            // The server revokes refresh tokens only, and this access token with it.
            400 if hint == "access_token" && is_unsupported(response.body()) => Ok(()),
            code => Err(format!("{failed}: it answers with {code}")),
        }
    }
}

/// How a client authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientAuthentication {
    Header,
    Form,
}

impl ClientAuthentication {
    /// HTTP Basic, the default, unless only the form is supported.
    fn of(client: &RegisteredClient, methods: Option<&Value>) -> ClientAuthentication {
        let methods = methods.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let supports = |name: &str| methods.iter().any(|it| it.as_str() == Some(name));
        let form_only = supports("client_secret_post") && !supports("client_secret_basic");
        if client.secret.is_some() && form_only {
            ClientAuthentication::Form
        } else {
            ClientAuthentication::Header
        }
    }
}

fn is_unsupported(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["error"].as_str() == Some("unsupported_token_type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(methods: Option<Value>, want: ClientAuthentication) {
        let client =
            RegisteredClient { id: "c".to_owned(), secret: Some(Secret::from("s")), redirect_uri: None };
        assert_eq!(ClientAuthentication::of(&client, methods.as_ref()), want, "{methods:?}");
    }

    #[test]
    fn client_uses_a_supported_authentication_method() {
        check(None, ClientAuthentication::Header);
        check(
            Some(serde_json::json!(["client_secret_post", "client_secret_basic"])),
            ClientAuthentication::Header,
        );
        check(Some(serde_json::json!(["client_secret_post"])), ClientAuthentication::Form);
        check(Some(serde_json::json!("client_secret_post")), ClientAuthentication::Header);
    }

    #[test]
    fn unsupported_token_type_is_recognized() {
        assert!(is_unsupported(br#"{"error":"unsupported_token_type"}"#));
        assert!(!is_unsupported(br#"{"error":"invalid_client"}"#) && !is_unsupported(b"no"));
    }
}
