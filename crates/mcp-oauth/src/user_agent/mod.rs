//! The user's part of a login: opening a page and returning from it.

pub(crate) mod loopback_redirect;
pub(crate) mod private_page;

use async_trait::async_trait;
use url::Url;

/// Opens login pages for a user.
#[async_trait]
pub trait UserAgent: Send + Sync {
    /// Prepares to receive the redirect of one login. The error contains the reason.
    async fn start_login(&self) -> Result<Box<dyn Login>, String>;
}

/// A login of a user that has started.
#[async_trait]
pub trait Login: Send + Sync {
    /// The redirect URI.
    fn redirect_uri(&self) -> &Url;

    /// Has the user open `page` and resolves with the URL of the redirect, query included. Dropping the future ends the
    /// login. The error contains the reason.
    ///
    /// The page is https or on this machine. Its host was chosen by the authorization server and must be shown in full.
    async fn authorize(self: Box<Self>, page: Url) -> Result<Url, String>;
}
