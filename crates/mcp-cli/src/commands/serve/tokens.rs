//! The tokens of `serve`: read from a file and a variable; the file is followed.

use std::convert::Infallible;
use std::path::PathBuf;

use mcp_gateway::{TokenUpdater, Tokens};
use mcp_host::{FileWatch, Host};
use mcp_model::Secret;
use mcp_registry::Selection;

use crate::output::count;
use crate::output::failure::Failure;
use crate::output::log::OPERATOR;
use crate::runtime::blocking;
use crate::runtime::bounded_read::read_file;

/// The maximum size of a token file, in bytes.
const MAX_TOKEN_FILE: u64 = 1024 * 1024;

/// Where the tokens come from.
pub(super) struct TokenSource {
    file: Option<PathBuf>,
    /// The lines of the environment variable.
    variable: Option<Secret>,
}

impl TokenSource {
    /// The file and the variable of this name.
    pub(super) fn new(file: Option<PathBuf>, variable: Option<&str>) -> Result<TokenSource, Failure> {
        let read = |name| {
            std::env::var(name).map(Secret::new).map_err(|_| {
                Failure::new(format!("the environment variable {name} is not set or not valid UTF-8"))
            })
        };
        Ok(TokenSource { file, variable: variable.map(read).transpose()? })
    }

    /// The tokens at the start; none if there is neither a file nor a variable.
    pub(super) async fn read_at_start(&self) -> Result<Tokens, Failure> {
        if self.file.is_none() && self.variable.is_none() {
            return Ok(Tokens::default());
        }
        self.read().await.map_err(Failure::new)
    }

    /// Applies every change of the file after `tokens` were read. A content that cannot be used changes nothing. Never
    /// returns.
    pub(super) async fn follow(self, tokens: Tokens, updater: TokenUpdater, host: &Host) -> Infallible {
        let Some(path) = &self.file else { return std::future::pending().await };
        let shown = path.display();
        let mut watch = FileWatch::new(path);
        let mut last = Ok(tokens);
        loop {
            watch.changed().await;
            let read = self.read().await;
            if last == read {
                continue;
            }
            match &read {
                Ok(tokens) => {
                    let ended = updater.replace(tokens.clone()).unwrap_or_default();
                    let (tokens_text, ended) = (count(tokens.len(), "token"), count(ended, "session"));
                    tracing::info!(
                        target: OPERATOR,
                        "applied the token file {shown}: {tokens_text}; {ended} ended"
                    );
                    publish_scopes(host, tokens).await;
                }
                Err(reason) => {
                    tracing::warn!(
                        target: OPERATOR,
                        "refused the token file {shown}: {reason}; the previous tokens remain"
                    );
                }
            }
            last = read;
        }
    }

    /// Reads all tokens; an error is a message. There is at least one.
    async fn read(&self) -> Result<Tokens, String> {
        let mut text = String::new();
        if let Some(path) = self.file.clone() {
            let shown = path.display().to_string();
            let read = blocking(move || read_file(&path, MAX_TOKEN_FILE)).await;
            text = read.map_err(|error| format!("cannot read {shown}: {error}"))?;
        }
        if let Some(variable) = &self.variable {
            text.push('\n');
            text.push_str(variable.expose());
        }
        let tokens = Tokens::read(&Secret::new(text)).map_err(|error| error.to_string())?;
        if tokens.is_empty() {
            return Err("the token file or variable contains no token".to_owned());
        }
        Ok(tokens)
    }
}

/// Publishes the scopes of the tokens, so that the host reports servers in them that do not exist. Logs these.
pub(super) async fn publish_scopes(host: &Host, tokens: &Tokens) {
    host.set_views(tokens.views().map(|(_, view)| view.clone()).collect()).await;
    let published = host.snapshot();
    let is_missing =
        |name: &&String| !name.contains('*') && !published.servers.iter().any(|server| server.id == **name);
    for (token, view) in tokens.views() {
        let Selection::Patterns(servers) = &view.toolsets else { continue };
        for server in servers.iter().filter(is_missing) {
            tracing::warn!(
                target: OPERATOR,
                "the scope of the token `{token}` names the server `{server}`, which does not exist"
            );
        }
    }
}
