//! Admission: who the client of a request is, by which credential, and what it may use.

use std::sync::Arc;

use crate::access::oauth::AccessGrant;
use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::access::tokens::Token;

/// An authenticated client.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) principal: Principal,
    /// The part of the catalog that its credential shows.
    pub(crate) scope: Arc<Scope>,
    /// `None` if every client is admitted.
    pub(crate) credential: Option<Credential>,
}

/// The bearer token of a client.
#[derive(Debug, Clone)]
pub(crate) enum Credential {
    /// A token of the list.
    Listed(Arc<Token>),
    /// What an access token of the authorization server grants.
    Access(Arc<AccessGrant>),
}

impl Credential {
    /// What the client's access token grants, if it has one.
    pub(crate) fn grant(&self) -> Option<&Arc<AccessGrant>> {
        match self {
            Credential::Access(grant) => Some(grant),
            Credential::Listed(_) => None,
        }
    }
}

impl From<Credential> for Admission {
    fn from(credential: Credential) -> Admission {
        let (principal, scope) = match &credential {
            Credential::Listed(token) => (&token.principal, &token.scope),
            Credential::Access(grant) => (&grant.principal, &grant.scope),
        };
        Admission { principal: principal.clone(), scope: Arc::clone(scope), credential: Some(credential) }
    }
}
