//! A loopback HTTP listener for the redirect of a login page.
//!
//! Only the request with this login's `state` ends the login; all others are refused. If the browser runs on another
//! machine, the user may enter the redirect URL by hand.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use url::Url;

use crate::user_agent::{Login, UserAgent};

/// Maximum number of bytes read of a request.
const MAX_REQUEST_BYTES: usize = 16 << 10;

/// How long a connection may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 16;

const PATH: &str = "/callback";

/// A [`UserAgent`] for programs on the user's machine. It passes the page to `show`, which opens or prints it, and
/// receives the redirect on a loopback port.
pub struct LoopbackRedirect {
    show: Arc<dyn Fn(&Url) + Send + Sync>,
    manual_input: Option<Arc<ManualInput>>,
}

/// Lines entered by the user.
struct ManualInput {
    lines: Mutex<mpsc::Receiver<String>>,
    /// Called for each line that is not the redirect URL.
    on_rejected_line: Box<dyn Fn() + Send + Sync>,
}

struct PendingLogin {
    listener: TcpListener,
    redirect: Url,
    show: Arc<dyn Fn(&Url) + Send + Sync>,
    manual_input: Option<Arc<ManualInput>>,
}

impl LoopbackRedirect {
    /// Calls `show` once for each login; it must not block.
    pub fn new(show: impl Fn(&Url) + Send + Sync + 'static) -> LoopbackRedirect {
        LoopbackRedirect { show: Arc::new(show), manual_input: None }
    }

    /// Also accepts the redirect URL as a line from the user, for a browser on another machine, where the redirect
    /// fails and shows the URL. `on_rejected_line` is called for each other line; it must not block.
    #[must_use]
    pub fn with_manual_input(
        self,
        lines: mpsc::Receiver<String>,
        on_rejected_line: impl Fn() + Send + Sync + 'static,
    ) -> LoopbackRedirect {
        let manual_input =
            ManualInput { lines: Mutex::new(lines), on_rejected_line: Box::new(on_rejected_line) };
        LoopbackRedirect { manual_input: Some(Arc::new(manual_input)), ..self }
    }
}

impl ManualInput {
    /// Waits for the first line with the redirect URL, possibly forever.
    async fn wait_for_redirect(&self, redirect: &Url, expected_state: &str) -> Url {
        let mut lines = self.lines.lock().await;
        while let Some(line) = lines.recv().await {
            let line = line.trim().trim_matches(['"', '\'', '<', '>']);
            if line.is_empty() {
                continue;
            }
            // Absolute URLs only: a relative one would resolve against ours.
            match Url::parse(line).ok().and_then(|it| check_redirect(it, redirect, expected_state)) {
                Some(redirected) => return redirected,
                None => (self.on_rejected_line)(),
            }
        }
        std::future::pending().await
    }
}

/// The redirect URL from the user, if lines are accepted.
async fn manual_redirect(manual_input: Option<&ManualInput>, redirect: &Url, expected_state: &str) -> Url {
    match manual_input {
        Some(manual_input) => manual_input.wait_for_redirect(redirect, expected_state).await,
        None => std::future::pending().await,
    }
}

#[async_trait]
impl UserAgent for LoopbackRedirect {
    async fn start_login(&self) -> Result<Box<dyn Login>, String> {
        let failed = |it: std::io::Error| format!("no port for the redirect of the login page: {it}");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let redirect = Url::parse(&format!("http://127.0.0.1:{port}{PATH}")).expect("it is a URL");
        Ok(Box::new(PendingLogin {
            listener,
            redirect,
            show: Arc::clone(&self.show),
            manual_input: self.manual_input.clone(),
        }))
    }
}

#[async_trait]
impl Login for PendingLogin {
    fn redirect_uri(&self) -> &Url {
        &self.redirect
    }

    async fn authorize(self: Box<Self>, page: Url) -> Result<Url, String> {
        let state = state_parameter(&page).ok_or("the login page's URL contains no state")?;
        (self.show)(&page);
        let mut connections = tokio::task::JoinSet::new();
        let manual_input = manual_redirect(self.manual_input.as_deref(), &self.redirect, &state);
        tokio::pin!(manual_input);
        loop {
            tokio::select! {
                redirected = &mut manual_input => return Ok(redirected),
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    // A failed connection is ignored.
                    let Ok((socket, _)) = accepted else { continue };
                    let (redirect, state) = (self.redirect.clone(), state.clone());
                    connections.spawn(async move {
                        tokio::time::timeout(REQUEST_TIMEOUT,
                            serve_connection(socket, &redirect, &state)).await.ok().flatten()
                    });
                }
                Some(done) = connections.join_next() => {
                    if let Ok(Some(redirected)) = done {
                        return Ok(redirected);
                    }
                }
            }
        }
    }
}

/// Reads one request; returns its URL if it is the redirect.
async fn serve_connection(mut socket: TcpStream, redirect: &Url, state: &str) -> Option<Url> {
    let mut received = Vec::new();
    while !received.windows(4).any(|it| it == b"\r\n\r\n") {
        if received.len() >= MAX_REQUEST_BYTES || socket.read_buf(&mut received).await.ok()? == 0 {
            return None;
        }
    }
    let redirected = redirect_of_request(&received, redirect, state);
    let (status, text) = match &redirected {
        Some(it) if it.query_pairs().any(|(name, _)| name == "error") => ("200 OK", "The login was refused."),
        Some(_) => ("200 OK", "You are logged in. This window can be closed."),
        None => ("404 Not Found", "Nothing is here."),
    };
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>mcp-host</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        page.len()
    );
    // The redirect counts even if the browser does not read the response.
    let _ = socket.write_all((head + &page).as_bytes()).await;
    let _ = socket.shutdown().await;
    redirected
}

/// The URL of a request if it is this login's redirect.
fn redirect_of_request(request: &[u8], redirect: &Url, expected_state: &str) -> Option<Url> {
    let text = std::str::from_utf8(request).ok()?;
    let target = text.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    check_redirect(redirect.join(target).ok()?, redirect, expected_state)
}

fn check_redirect(redirected: Url, redirect: &Url, expected_state: &str) -> Option<Url> {
    let is_expected = redirected.origin() == redirect.origin()
        && redirected.path() == PATH
        && state_parameter(&redirected)? == expected_state;
    is_expected.then_some(redirected)
}

fn state_parameter(url: &Url) -> Option<String> {
    url.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: &str, want: Option<&str>) {
        let redirect = Url::parse("http://127.0.0.1:9/callback").unwrap();
        let got = redirect_of_request(request.as_bytes(), &redirect, "s1").map(String::from);
        assert_eq!(got.as_deref(), want, "{request}");
    }

    #[tokio::test]
    async fn entered_url_completes_the_login() {
        let on_rejected_line = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let (sender, lines) = mpsc::channel(8);
        let counted = Arc::clone(&on_rejected_line);
        let count = move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        let user = LoopbackRedirect::new(|_| {}).with_manual_input(lines, count);
        let login = user.start_login().await.unwrap();
        let redirect = login.redirect_uri().clone();
        let expected = format!("{redirect}?code=c&state=s1");
        for line in [
            "",
            "what is this?",
            "?code=c&state=s1",
            "https://evil.example/callback?code=c&state=s1",
            &format!("{redirect}?code=c&state=s2"),
            &format!(" <{expected}>\r"),
        ] {
            sender.send(line.to_owned()).await.unwrap();
        }
        let page = Url::parse("https://login.example/?state=s1").unwrap();
        assert_eq!(login.authorize(page).await.map(String::from), Ok(expected));
        assert_eq!(on_rejected_line.load(std::sync::atomic::Ordering::Relaxed), 4);
    }

    #[test]
    fn only_a_redirect_with_the_right_state_counts() {
        check(
            "GET /callback?code=c&state=s1 HTTP/1.1\r\n",
            Some("http://127.0.0.1:9/callback?code=c&state=s1"),
        );
        check(
            "GET /callback?error=access_denied&state=s1 HTTP/1.1\r\n",
            Some("http://127.0.0.1:9/callback?error=access_denied&state=s1"),
        );
        check("GET /callback?code=c&state=s2 HTTP/1.1\r\n", None);
        check("GET /callback?code=c HTTP/1.1\r\n", None);
        check("GET /other?code=c&state=s1 HTTP/1.1\r\n", None);
        check("POST /callback?code=c&state=s1 HTTP/1.1\r\n", None);
        check("GET //evil.example/callback?code=c&state=s1 HTTP/1.1\r\n", None);
        check("", None);
    }
}
