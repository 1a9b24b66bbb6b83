//! The roots of a session's servers: its folder, and the additional ones.
//!
//! The roots are constant for one set of servers; another request creates another set.

use std::path::Path;

use async_trait::async_trait;
use mcp_host_acp::ValidatedRequest;
use mcp_host_model::RpcError;
use mcp_host_transport::{Root, Roots};
use url::Url;

/// The roots of one session.
pub(crate) struct SessionRoots(Vec<Root>);

impl SessionRoots {
    /// Creates the roots: `cwd`, then `additionalDirectories` in order, without duplicates. Paths of another operating
    /// system are omitted.
    pub(crate) fn of(session: &ValidatedRequest) -> SessionRoots {
        let mut roots: Vec<Root> = Vec::new();
        for path in std::iter::once(&session.cwd).chain(&session.additional_directories) {
            let Ok(url) = Url::from_file_path(path) else { continue };
            let (uri, name) = (String::from(url), Path::new(path).file_name());
            if roots.iter().all(|root| root.uri != uri) {
                roots.push({
                    let mut root = Root::new(uri);
                    root.name = name.and_then(|name| name.to_str()).map(str::to_owned);
                    root
                });
            }
        }
        SessionRoots(roots)
    }
}

#[async_trait]
impl Roots for SessionRoots {
    async fn roots(&self) -> Result<Vec<Root>, RpcError> {
        Ok(self.0.clone())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {

    use super::*;

    #[track_caller]
    fn check(cwd: &str, additional: &[&str], want: &[&str]) {
        let mut session = ValidatedRequest::new(cwd.to_owned());
        session.additional_directories = additional.iter().map(|path| (*path).to_owned()).collect();
        let roots = SessionRoots::of(&session).0;
        let got: Vec<_> = roots
            .iter()
            .map(|root| format!("{} {}", root.uri, root.name.as_deref().unwrap_or("-")))
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn session_folders_are_roots_in_order() {
        check("/", &[], &["file:/// -"]);
        check(
            "/desk/a b#c",
            &["/desk/\u{e9}", "/x/"],
            &["file:///desk/a%20b%23c a b#c", "file:///desk/%C3%A9 \u{e9}", "file:///x x"],
        );
        check("/a", &["/b", "/a", "C:\\c"], &["file:///a a", "file:///b b"]);
    }
}
