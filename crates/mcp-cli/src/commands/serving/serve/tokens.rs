//! The tokens of `serve`: read from a file and a variable; the file is followed.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use mcp_host_gateway::{ScopeMap, TokenUpdater, Tokens};
use mcp_host_model::{Secret, ServerId};
use mcp_host_registry::{NamedView, Selection, ViewFilter};
use mcp_host_runtime::{FileWatch, Host};

use crate::config::views::Views;
use crate::output::count;
use crate::output::failure::Failure;
use crate::output::log::OPERATOR;
use crate::runtime::bounded_read::read_file;
use crate::runtime::run_blocking;
use crate::runtime::system::can_others_write;

/// The maximum size of a token file, in bytes.
const MAX_TOKEN_FILE: u64 = 1024 * 1024;

/// The file and the variable that contain the tokens.
pub(super) struct TokenSource {
    file: Option<PathBuf>,
    /// The lines of the environment variable.
    variable: Option<Secret>,
    /// The configuration, whose views lines may name.
    configuration: PathBuf,
}

impl TokenSource {
    /// The file and the variable of this name, for a configuration.
    pub(super) fn new(
        file: Option<PathBuf>,
        variable: Option<&str>,
        configuration: PathBuf,
    ) -> Result<TokenSource, Failure> {
        let read = |name| {
            std::env::var(name).map(Secret::new).map_err(|_| {
                Failure::new(format!("the environment variable {name} is not set or not valid UTF-8"))
            })
        };
        Ok(TokenSource { file, variable: variable.map(read).transpose()?, configuration })
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
    pub(super) async fn follow(
        self,
        tokens: Tokens,
        updater: TokenUpdater,
        host: &Host,
        limits: &ViewLimits,
    ) -> Infallible {
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
                    let ended_sessions = updater.replace(tokens.clone()).unwrap_or_default();
                    let (tokens_text, sessions_text) =
                        (count(tokens.len(), "token"), count(ended_sessions, "session"));
                    tracing::info!(
                        target: OPERATOR,
                        "applied the token file {shown}: {tokens_text}; {sessions_text} ended"
                    );
                    publish_views(host, tokens, limits).await;
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
            let read = run_blocking(move || {
                warn_if_writable(&path);
                read_file(&path, MAX_TOKEN_FILE)
            });
            let read = read.await;
            text = read.map_err(|error| format!("cannot read {shown}: {error}"))?;
        }
        if let Some(variable) = &self.variable {
            text.push('\n');
            text.push_str(variable.expose());
        }
        let configuration = self.configuration.clone();
        let text = run_blocking(move || replace_views(text, &configuration)).await?;
        let tokens = Tokens::read(&Secret::new(text)).map_err(|error| error.to_string())?;
        if tokens.is_empty() {
            return Err("the token file or variable contains no token".to_owned());
        }
        Ok(tokens)
    }
}

/// Replaces each `view=NAME` in lines of tokens by what the view of the configuration selects. Reads the disk.
fn replace_views(text: String, configuration: &Path) -> Result<String, String> {
    if !text.contains("view=") {
        return Ok(text);
    }
    let views = Views::read(configuration).map_err(|error| error.message)?;
    // The first word is the token itself.
    let replace_word = |(at, word): (usize, &str)| match word.strip_prefix("view=").filter(|_| at > 0) {
        Some(name) => views.selections(name).map_err(|error| error.message),
        None => Ok(word.to_owned()),
    };
    let replace_line = |line: &str| {
        if line.trim_start().starts_with('#') {
            return Ok(String::new());
        }
        let words = line.split_whitespace().enumerate().map(replace_word).collect::<Result<Vec<_>, _>>();
        words.map(|words| words.join(" "))
    };
    Ok(text.lines().map(replace_line).collect::<Result<Vec<_>, String>>()?.join("\n"))
}

/// Logs a warning if every user can change the file, and so give out tokens. Reads the disk.
fn warn_if_writable(path: &Path) {
    if path.metadata().is_ok_and(|file| file.is_file() && can_others_write(&file)) {
        let shown = path.display();
        tracing::warn!(target: OPERATOR, "every user can change the token file {shown}: run chmod 600 {shown}");
    }
}

/// What limits the views of clients, besides the scopes of listed tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct ViewLimits {
    /// The only server that is served, if any.
    pub(super) only_server: Option<ServerId>,
    /// The filters of all clients.
    pub(super) views: Vec<ViewFilter>,
    /// The scopes of access tokens; `None` without an authorization server.
    pub(super) scopes: Option<ScopeMap>,
}

/// Publishes the views of all clients, so that the host reports what their limits leave out, and servers that do not
/// exist. Logs the latter.
pub(super) async fn publish_views(host: &Host, tokens: &Tokens, limits: &ViewLimits) {
    host.set_views(named_views(tokens, limits)).await;
    let published = host.snapshot();
    let is_missing = |name: &&String| {
        !name.contains('*') && !published.servers.iter().any(|server| server.id == name.as_str())
    };
    for (token, view) in tokens.views().filter_map(|(token, view)| Some((token, view?))) {
        let Selection::Patterns(servers) = &view.toolsets else { continue };
        for server in servers.iter().filter(is_missing) {
            tracing::warn!(
                target: OPERATOR,
                "the scope of the token `{token}` names the server `{server}`, which does not exist"
            );
        }
    }
}

/// The views of all clients. Tokens with equal views share one.
fn named_views(tokens: &Tokens, limits: &ViewLimits) -> Vec<NamedView> {
    let server_filter = limits.only_server.as_ref().map(|server| {
        let toolsets = Selection::Patterns(vec![server.to_string()]);
        ViewFilter { toolsets, ..ViewFilter::default() }
    });
    let filters = |view: Option<&ViewFilter>| {
        server_filter.iter().chain(&limits.views).chain(view).cloned().collect::<Vec<_>>()
    };
    let mut by_filters: Vec<(Vec<ViewFilter>, Vec<&str>)> = Vec::new();
    for (token, view) in tokens.views() {
        let filters = filters(view);
        match by_filters.iter_mut().find(|(known, _)| *known == filters) {
            // Tokens of the same name belong to one client.
            Some((_, names)) if names.contains(&token) => {}
            Some((_, names)) => names.push(token),
            None => by_filters.push((filters, vec![token])),
        }
    }
    let mut views: Vec<NamedView> = by_filters
        .into_iter()
        .map(|(filters, names)| NamedView { name: token_names(&names), filters })
        .collect();
    match &limits.scopes {
        Some(scopes) => {
            views.extend(scopes.iter().map(|(scope, view)| NamedView {
                name: format!("the scope `{scope}`"),
                filters: filters(view),
            }))
        }
        None if tokens.is_empty() => {
            views.push(NamedView { name: "all clients".to_owned(), filters: filters(None) });
        }
        None => {}
    }
    views
}

/// The names of tokens, as part of a sentence.
fn token_names(names: &[&str]) -> String {
    let [first, rest @ ..] = names else { return String::new() };
    match rest {
        [] => format!("the token `{first}`"),
        _ => format!("the token `{first}` and {} with the same scope", count(rest.len(), "other")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of tokens and of scopes; expects the names of the views with their numbers of filters.
    #[track_caller]
    fn check(tokens: &str, scopes: Option<&str>, only_server: Option<&str>, want: &[(&str, usize)]) {
        let tokens = Tokens::read(&Secret::new(tokens.to_owned())).unwrap();
        let only_server = only_server.map(|server| ServerId::parse(server).unwrap());
        let scopes = scopes.map(|scopes| ScopeMap::read(scopes).unwrap());
        let views = named_views(&tokens, &ViewLimits { only_server, views: Vec::new(), scopes });
        let views: Vec<_> = views.iter().map(|view| (view.name.as_str(), view.filters.len())).collect();
        assert_eq!(views, want);
    }

    #[test]
    fn each_scope_of_a_client_is_one_view() {
        check("", None, None, &[("all clients", 0)]);
        check("", None, Some("docs"), &[("all clients", 1)]);
        let ann = "ann-0123456789abcdef name=ann servers=docs\n";
        check(ann, None, None, &[("the token `ann`", 1)]);
        check(ann, None, Some("docs"), &[("the token `ann`", 2)]);
        let bob = "bob-0123456789abcdef name=bob servers=docs\ncat-0123456789abcdef name=cat\n";
        let same = ("the token `ann` and 1 other with the same scope", 1);
        check(&format!("{ann}{bob}"), None, None, &[same, ("the token `cat`", 0)]);
        check(
            "",
            Some("read servers=docs\nadmin"),
            None,
            &[("the scope `read`", 1), ("the scope `admin`", 0)],
        );
    }
}
