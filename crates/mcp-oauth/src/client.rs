//! Clients of authorization servers, and their form requests with the client's authentication.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use mcp_host_model::Secret;
use serde_json::{Value, json};
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::grant::RegisteredClient;
use crate::jwt;
use crate::private_key::PrivateKey;

/// The type of a client assertion that is a JWT (RFC 7523).
const CLIENT_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// How long a client assertion is valid.
const ASSERTION_LIFETIME_SECONDS: u64 = 60;

/// A client that was registered by hand.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OAuthClient {
    /// The client id.
    pub id: String,
    /// How it authenticates.
    pub authentication: ClientAuthentication,
}

impl OAuthClient {
    /// A client with this id.
    pub fn new(id: impl Into<String>, authentication: ClientAuthentication) -> OAuthClient {
        OAuthClient { id: id.into(), authentication }
    }

    pub(crate) fn secret(&self) -> Option<&Secret> {
        match &self.authentication {
            ClientAuthentication::Secret(secret) => Some(secret),
            ClientAuthentication::None | ClientAuthentication::PrivateKey(_) => None,
        }
    }
}

/// How a client authenticates at a token endpoint.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// Not at all.
    None,
    /// With a secret, in a header or in the form, as the server supports.
    Secret(Secret),
    /// With a signed assertion (`private_key_jwt`).
    PrivateKey(PrivateKey),
}

/// A token or revocation endpoint.
pub(crate) struct FormEndpoint<'a> {
    pub(crate) url: &'a str,
    pub(crate) issuer: &'a str,
    /// The supported methods of authentication, from the metadata.
    pub(crate) methods: Option<&'a Value>,
}

impl FormEndpoint<'_> {
    /// Builds the request with a form, without empty values. The error is the reason why that is not possible.
    pub(crate) fn build_request(
        &self,
        client: &OAuthClient,
        form: &[(&str, String)],
        now: u64,
    ) -> Result<Request<Vec<u8>>, &'static str> {
        let mut request = Request::builder().method(Method::POST).uri(self.url);
        request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        request = request.header(ACCEPT, "application/json");
        let mut body = Serializer::new(String::new());
        body.extend_pairs(form.iter().filter(|(_, value)| !value.is_empty()));
        match &client.authentication {
            ClientAuthentication::None => {
                body.append_pair("client_id", &client.id);
            }
            ClientAuthentication::Secret(secret) if self.accepts_form_only() => {
                body.append_pair("client_id", &client.id).append_pair("client_secret", secret.expose());
            }
            ClientAuthentication::Secret(secret) => {
                let escape = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let credentials = format!("{}:{}", escape(&client.id), escape(secret.expose()));
                request = request.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(credentials)));
            }
            ClientAuthentication::PrivateKey(key) => {
                // Its audience is the issuer, so that the assertion is useless anywhere else (RFC 7523).
                let id = &client.id;
                let unique = jwt::random_id().ok_or("the system provides no randomness")?;
                let expiry = now.saturating_add(ASSERTION_LIFETIME_SECONDS);
                let claims = json!({
                    "iss": id, "sub": id, "aud": self.issuer, "iat": now, "exp": expiry, "jti": unique,
                });
                let assertion = key.sign_claims(&claims).ok_or("the client's assertion cannot be signed")?;
                body.append_pair("client_assertion_type", CLIENT_ASSERTION_TYPE);
                body.append_pair("client_assertion", &assertion);
            }
        }
        request.body(body.finish().into_bytes()).map_err(|_| "the address of the endpoint is invalid")
    }

    /// Whether a secret must be sent in the form. HTTP Basic is the default.
    fn accepts_form_only(&self) -> bool {
        let methods = self.methods.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let supports = |name: &str| methods.iter().any(|method| method.as_str() == Some(name));
        supports("client_secret_post") && !supports("client_secret_basic")
    }
}

impl From<&RegisteredClient> for OAuthClient {
    fn from(client: &RegisteredClient) -> OAuthClient {
        let secret = |secret: &Secret| ClientAuthentication::Secret(secret.clone());
        let authentication = client.secret.as_ref().map_or(ClientAuthentication::None, secret);
        OAuthClient::new(client.id.clone(), authentication)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(methods: Option<Value>, is_in_form: bool) {
        let client = OAuthClient::new("c", ClientAuthentication::Secret(Secret::from("s")));
        let endpoint =
            FormEndpoint { url: "https://login.example/token", issuer: "", methods: methods.as_ref() };
        let request = endpoint.build_request(&client, &[("scope", String::new())], 0).unwrap();
        let (form, header) = ("client_id=c&client_secret=s", "Basic Yzpz");
        let got = (request.body().as_slice(), request.headers().get(AUTHORIZATION).map(|it| it.as_bytes()));
        let want = if is_in_form { (form.as_bytes(), None) } else { (&b""[..], Some(header.as_bytes())) };
        assert_eq!(got, want, "{methods:?}");
    }

    #[test]
    fn client_uses_a_supported_authentication_method() {
        check(None, false);
        check(Some(json!(["client_secret_post", "client_secret_basic"])), false);
        check(Some(json!(["client_secret_post"])), true);
        check(Some(json!("client_secret_post")), false);
    }
}
