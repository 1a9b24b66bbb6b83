//! A browser that accepts a login: it opens the login page and returns the redirect.

use async_trait::async_trait;
use mcp_host_oauth::{Login, UserAgent};
use url::Url;

/// Redirects are not followed: the target is the result.
pub(crate) struct Browser;

/// One login, with the redirect URI.
struct BrowserLogin(Url);

#[async_trait]
impl UserAgent for Browser {
    async fn start_login(&self) -> Result<Box<dyn Login>, String> {
        // No server listens there.
        let redirect = Url::parse("http://localhost:3000/callback").map_err(|it| it.to_string())?;
        Ok(Box::new(BrowserLogin(redirect)))
    }
}

#[async_trait]
impl Login for BrowserLogin {
    fn redirect_uri(&self) -> &Url {
        &self.0
    }

    async fn authorize(self: Box<Self>, page: Url) -> Result<Url, String> {
        let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
        let browser = browser.tls_certs_only([]).build().map_err(|it| it.to_string())?;
        let response = browser.get(page.clone()).send().await.map_err(|it| it.to_string())?;
        let location = response.headers().get("location").and_then(|it| it.to_str().ok());
        let location = location.ok_or("the login page does not redirect")?;
        page.join(location).map_err(|it| it.to_string())
    }
}
