//! The logins of servers: the pages that users have to open, and why logins failed.

#[cfg(feature = "oauth")]
pub(crate) mod oauth;

use std::collections::HashMap;

use tokio::sync::watch;
use url::Url;

/// The page at which the user logs in to a server. Its host is chosen by the authorization server, so show it in full.
///
/// `Debug` prints its origin only, because its query is part of the login.
#[derive(Clone, derive_more::Debug, PartialEq, Eq)]
#[debug("LoginPage({})", _0.origin().ascii_serialization())]
pub struct LoginPage(Url);

impl LoginPage {
    /// Returns the URL.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// The login of a server that is not connected for lack of one.
#[cfg_attr(not(feature = "oauth"), expect(dead_code, reason = "without logins none is running"))]
enum LoginState {
    /// The user has to open this page.
    Pending(LoginPage),
    /// The last login failed, for this reason.
    Failed(String),
}

/// The logins of a set of servers, by server name.
pub(crate) struct LoginStates(watch::Sender<HashMap<String, LoginState>>);

/// A receiver of changes to [`LoginStates`].
pub(crate) struct LoginChanges(watch::Receiver<HashMap<String, LoginState>>);

impl Default for LoginStates {
    fn default() -> LoginStates {
        LoginStates(watch::Sender::new(HashMap::new()))
    }
}

impl LoginStates {
    /// Returns the page that the user has to open for a server, if there is one.
    pub(crate) fn page(&self, server: &str) -> Option<LoginPage> {
        match self.0.borrow().get(server) {
            Some(LoginState::Pending(page)) => Some(page.clone()),
            Some(LoginState::Failed(_)) | None => None,
        }
    }

    /// Returns the reason why the login to a server failed, if it failed.
    pub(crate) fn failure(&self, server: &str) -> Option<String> {
        match self.0.borrow().get(server) {
            Some(LoginState::Failed(reason)) => Some(reason.clone()),
            Some(LoginState::Pending(_)) | None => None,
        }
    }

    pub(crate) fn subscribe(&self) -> LoginChanges {
        LoginChanges(self.0.subscribe())
    }
}

impl LoginChanges {
    /// Waits for a change. Returns false if there will be none. Cancel-safe.
    pub(crate) async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_a_login_page_is_its_origin() {
        let page = LoginPage("https://login.example:8443/authorize/abc?state=secret#f".parse().unwrap());
        assert_eq!(format!("{page:?}"), "LoginPage(https://login.example:8443)");
        assert!(page.as_str().ends_with("?state=secret#f"));
    }
}
