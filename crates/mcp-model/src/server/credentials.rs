//! OAuth client credentials with which a host obtains access tokens for a server.

/// The credentials of the host as an OAuth client; no user logs in. `V` is the type of secret values:
/// [`ConfigValue`](crate::ConfigValue) before they are resolved, [`Secret`](crate::Secret) after.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ClientCredentials<V> {
    /// The grant type of the token requests.
    pub grant: ClientGrant,
    /// The client id, as registered at the server's authorization server.
    pub client_id: String,
    /// The key that proves the client's identity.
    pub key: ClientKey<V>,
    /// The scopes to request; if empty, those that the server names.
    pub scopes: Vec<String>,
    /// The only issuer that receives the credentials. Without one, the server could name an issuer that collects them.
    pub issuer: String,
}

impl<V> ClientCredentials<V> {
    /// Creates credentials for the scopes that the server names.
    pub fn new(
        grant: ClientGrant,
        client_id: impl Into<String>,
        key: ClientKey<V>,
        issuer: impl Into<String>,
    ) -> ClientCredentials<V> {
        ClientCredentials {
            grant,
            client_id: client_id.into(),
            key,
            scopes: Vec::new(),
            issuer: issuer.into(),
        }
    }
}

/// The grant type: the subject of the tokens that the client obtains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers name every form, so that none is forgotten")]
pub enum ClientGrant {
    /// Tokens for the client itself (`client_credentials`).
    ClientCredentials,
    /// Tokens for the user of each caller, in exchange for the user's access token (`token_exchange`, RFC 8693). The
    /// lists of the server are requested with a token for the client itself.
    TokenExchange,
}

/// A key that proves the identity of a client.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers name every form, so that none is forgotten")]
pub enum ClientKey<V> {
    /// A secret that the authorization server knows.
    Secret(V),
    /// A private key in PEM form, which signs assertions (`private_key_jwt`).
    PrivateKey(V),
}

impl<V> ClientKey<V> {
    /// Returns the secret or the private key.
    pub fn value(&self) -> &V {
        match self {
            ClientKey::Secret(value) | ClientKey::PrivateKey(value) => value,
        }
    }
}
