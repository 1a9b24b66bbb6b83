//! The part of a login that a person has: a page to open, and the way back from it.

use async_trait::async_trait;
use url::Url;

/// Asks a user to agree.
#[async_trait]
pub trait UserAgent: Send + Sync {
    /// Makes ready to receive the answer of one login. Says in words why it cannot.
    async fn start_login(&self) -> Result<Box<dyn Login>, String>;
}

/// One login.
#[async_trait]
pub trait Login: Send + Sync {
    /// Where the authorization server sends the user back to.
    fn redirect_uri(&self) -> &Url;

    /// Has the user open `page`, and resolves with the address that he was sent back to, query and all. Dropping the
    /// future ends the visit. Says in words why it came to nothing.
    ///
    /// The page is https, or on this machine; its host is the authorization server's choice and to be shown in full.
    async fn authorize(self: Box<Self>, page: Url) -> Result<Url, String>;
}
