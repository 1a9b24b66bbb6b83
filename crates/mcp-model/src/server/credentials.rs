//! Credentials with which a host obtains tokens of a server.

/// The credentials of an OAuth client: the host itself is the client, and no user logs in at it. `V` is the
/// type of secret values, unresolved or resolved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ClientCredentials<V> {
    /// What the host does with them.
    pub grant: ClientGrant,
    /// The client id, as registered at the server's authorization server.
    pub client_id: String,
    /// What proves the client's identity.
    pub key: ClientKey<V>,
    /// The scopes to request; if empty, those that the server names.
    pub scopes: Vec<String>,
    /// The only issuer that receives the credentials; any that the server names if `None`.
    pub issuer: Option<String>,
}

impl<V> ClientCredentials<V> {
    /// Creates credentials for the scopes that the server names, at any issuer.
    pub fn new(grant: ClientGrant, client_id: impl Into<String>, key: ClientKey<V>) -> ClientCredentials<V> {
        ClientCredentials { grant, client_id: client_id.into(), key, scopes: Vec::new(), issuer: None }
    }
}

/// For whom a client obtains tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers name every form, so that none is forgotten")]
pub enum ClientGrant {
    /// For itself (`client_credentials`).
    ClientCredentials,
    /// For the user of each caller, whose access token it exchanges (`token_exchange`, RFC 8693). It lists the server's
    /// tools with a token for itself.
    TokenExchange,
}

/// What proves the identity of a client.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers name every form, so that none is forgotten")]
pub enum ClientKey<V> {
    /// A secret that the authorization server knows.
    Secret(V),
    /// A private key in PEM form, which signs assertions (`private_key_jwt`).
    PrivateKey(V),
}

impl<V> ClientKey<V> {
    /// The secret or the key.
    pub fn value(&self) -> &V {
        match self {
            ClientKey::Secret(value) | ClientKey::PrivateKey(value) => value,
        }
    }
}
