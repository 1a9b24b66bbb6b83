//! The end of a login at the server that gave it (RFC 7009): its tokens are worth nothing to whoever has a copy.
//!
//! Asked only where the issuer is still the one that gave the grant, at the place that its metadata names, by the client
//! that the grant belongs to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use mcp_model::Secret;
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::flow::{Flow, Trouble};
use crate::grant::{Grant, RegisteredClient};

/// What became of a grant at the server that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// Its tokens are worth nothing any more.
    Revoked,
    /// The authorization server takes none back; they end by themselves.
    Unsupported,
    /// There was no grant.
    NoGrant,
}

impl Flow {
    /// Ends a grant. Says in words why it could not be done.
    pub(crate) async fn revoke(&self, grant: &Grant) -> Result<Revocation, String> {
        let found = match self.discover(None).await {
            Ok(found) => found,
            Err(Trouble::Failed(why)) => return Err(why),
            Err(Trouble::Gone) => return Err("the authorization server is not there any more".to_owned()),
        };
        if found.issuer != grant.issuer {
            return Err("the server has another authorization server by now".to_owned());
        }
        let fields = &found.metadata.additional_fields;
        let Some(endpoint) = fields.get("revocation_endpoint").and_then(Value::as_str) else {
            return Ok(Revocation::Unsupported);
        };
        let manner = Manner::of(&grant.client, fields.get("revocation_endpoint_auth_methods_supported"));
        // With the one for renewals the others end in most places; where they do not, this one was asked for first.
        let tokens = grant.refresh_token.iter().map(|it| (it, "refresh_token"));
        for (token, hint) in tokens.chain([(&grant.access_token, "access_token")]) {
            self.give_back(endpoint, (token, hint), &grant.client, manner).await?;
        }
        Ok(Revocation::Revoked)
    }

    async fn give_back(
        &self,
        endpoint: &str,
        (token, hint): (&Secret, &str),
        client: &RegisteredClient,
        manner: Manner,
    ) -> Result<(), String> {
        let unusable = "it cannot be told that the login is over";
        let mut request = Request::builder().method(Method::POST).uri(endpoint);
        request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        request = request.header(ACCEPT, "application/json");
        let mut form = Serializer::new(String::new());
        form.append_pair("token", token.expose()).append_pair("token_type_hint", hint);
        match (manner, &client.secret) {
            (Manner::Header, Some(secret)) => {
                let escaped = |it: &str| byte_serialize(it.as_bytes()).collect::<String>();
                let both = format!("{}:{}", escaped(&client.id), escaped(secret.expose()));
                request = request.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(both)));
            }
            (Manner::Form, Some(secret)) => {
                form.append_pair("client_id", &client.id).append_pair("client_secret", secret.expose());
            }
            (Manner::Header | Manner::Form, None) => {
                form.append_pair("client_id", &client.id);
            }
        }
        let request = request.body(form.finish().into_bytes()).map_err(|_| unusable.to_owned())?;
        let response = self.fetch.fetch(request).await.map_err(|it| format!("{unusable}: {it}"))?;
        match response.status().as_u16() {
            200..=299 => Ok(()),
            // It ends tokens of the other kind alone, and with them this one.
            400 if hint == "access_token" && is_unsupported(response.body()) => Ok(()),
            code => Err(format!("{unusable}: it answers with {code}")),
        }
    }
}

/// How a client with a secret says who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Header,
    Form,
}

impl Manner {
    /// In the header, as nothing else is said, unless only the form is taken.
    fn of(client: &RegisteredClient, methods: Option<&Value>) -> Manner {
        let methods = methods.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let takes = |name: &str| methods.iter().any(|it| it.as_str() == Some(name));
        let by_form = takes("client_secret_post") && !takes("client_secret_basic");
        if client.secret.is_some() && by_form { Manner::Form } else { Manner::Header }
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
    fn check(methods: Option<Value>, want: Manner) {
        let client =
            RegisteredClient { id: "c".to_owned(), secret: Some(Secret::from("s")), redirect_uri: None };
        assert_eq!(Manner::of(&client, methods.as_ref()), want, "{methods:?}");
    }

    #[test]
    fn a_client_says_who_it_is_in_the_way_that_is_taken() {
        check(None, Manner::Header);
        check(Some(serde_json::json!(["client_secret_post", "client_secret_basic"])), Manner::Header);
        check(Some(serde_json::json!(["client_secret_post"])), Manner::Form);
        check(Some(serde_json::json!("client_secret_post")), Manner::Header);
    }

    #[test]
    fn only_one_refusal_is_none() {
        assert!(is_unsupported(br#"{"error":"unsupported_token_type"}"#));
        assert!(!is_unsupported(br#"{"error":"invalid_client"}"#) && !is_unsupported(b"no"));
    }
}
