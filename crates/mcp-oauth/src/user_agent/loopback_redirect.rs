//! A loopback HTTP listener for the redirect of a login page.
//!
//! Only the request with this login's `state` ends the login; all others are refused. If the browser runs on another
//! machine, the user may enter the redirect URL by hand.
//!
//! A program that opens a browser shows the address to other users of the machine, who can list processes. Therefore it
//! can open a private file instead, which leads to a start page on the loopback port. The start page redirects to the
//! login page once and sets a cookie. Then only the browser with this cookie can end the login.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::internal::is_loopback;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use url::{Host, Url};

use crate::jwt;
use crate::user_agent::private_page::{StartPageLinks, create_private_page};
use crate::user_agent::{Login, UserAgent};

/// Maximum number of bytes read of a request.
const MAX_REQUEST_BYTES: usize = 16 << 10;

/// How long a connection may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 16;

/// The path of the redirect URI, unless one is registered.
const DEFAULT_PATH: &str = "/callback";

/// The name of the cookie of the browser that opened the start page.
const COOKIE: &str = "mcp-host-login";

/// A [`UserAgent`] for programs on the user's machine. It passes the page to `show`, which opens or prints it, and
/// receives the redirect on a loopback port.
pub struct LoopbackRedirect {
    opener: PageOpener,
    redirect: Url,
    manual_input: Option<Arc<ManualInput>>,
}

/// The callback that opens the login page.
#[derive(Clone)]
enum PageOpener {
    /// Opens the login page.
    Page(Arc<dyn Fn(&Url) + Send + Sync>),
    StartPage(OpenStartPage),
}

/// Opens the start page.
#[derive(Clone)]
struct OpenStartPage {
    /// The folder of the private file.
    folder: PathBuf,
    open: Arc<dyn Fn(&StartPageLinks<'_>) + Send + Sync>,
}

/// Why an address cannot be a redirect URI of [`LoopbackRedirect`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is not an address of this machine: write http://localhost:PORT/PATH or http://127.0.0.1:PORT/PATH"
)]
#[non_exhaustive]
pub struct InvalidRedirect(pub Url);

/// The lines that the user enters.
struct ManualInput {
    lines: Mutex<mpsc::Receiver<String>>,
    /// Called for each line that is not the redirect URL.
    on_rejected_line: Box<dyn Fn() + Send + Sync>,
}

/// A login whose redirect is received on a port.
struct PendingLogin {
    listener: TcpListener,
    redirect: Url,
    opener: PageOpener,
    manual_input: Option<Arc<ManualInput>>,
}

/// Handles the requests of browsers. Only the redirect with this `state` ends the login.
struct RequestHandler {
    redirect: Url,
    state: String,
    start_page: Option<StartPage>,
}

/// The page that a browser opens first.
struct StartPage {
    /// Its path, which cannot be guessed.
    path: String,
    login_page: Url,
    /// The value of the cookie that the first visitor gets.
    cookie: String,
    is_visited: AtomicBool,
}

/// A request of a browser that ends the login.
enum BrowserEvent {
    /// The redirect at the end of the login.
    Redirect(Url),
    /// A second request for the start page: another user may have opened it.
    SecondVisit,
}

impl LoopbackRedirect {
    /// Calls `show` with the login page, once for each login; it must not block.
    pub fn new(show: impl Fn(&Url) + Send + Sync + 'static) -> LoopbackRedirect {
        LoopbackRedirect::with_opener(PageOpener::Page(Arc::new(show)))
    }

    /// Calls `open` once for each login; it must not block. `open` opens the private file in a browser, and shows the
    /// host of the login page. The file is in `folder` until the login ends.
    ///
    /// The start page can be opened once, and only the browser that opened it can end the login. Another user of the
    /// machine, who sees the path of the file, cannot read it.
    pub fn with_start_page(
        folder: impl Into<PathBuf>,
        open: impl Fn(&StartPageLinks<'_>) + Send + Sync + 'static,
    ) -> LoopbackRedirect {
        let (folder, open) = (folder.into(), Arc::new(open));
        LoopbackRedirect::with_opener(PageOpener::StartPage(OpenStartPage { folder, open }))
    }

    fn with_opener(opener: PageOpener) -> LoopbackRedirect {
        let redirect = Url::parse(&format!("http://127.0.0.1{DEFAULT_PATH}")).expect("it is a URL");
        LoopbackRedirect { opener, redirect, manual_input: None }
    }

    /// Uses this redirect URI, as it is registered for a client: `http://localhost:3118/callback`. Without a port, any
    /// free one is used.
    ///
    /// # Errors
    ///
    /// It is not a plain `http` address of this machine.
    pub fn with_redirect_uri(self, redirect: Url) -> Result<LoopbackRedirect, InvalidRedirect> {
        let is_local = is_loopback(&redirect) && redirect.scheme() == "http";
        let has_more =
            redirect.query().is_some() || redirect.fragment().is_some() || !redirect.username().is_empty();
        if !is_local || has_more {
            return Err(InvalidRedirect(redirect));
        }
        Ok(LoopbackRedirect { redirect, ..self })
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

/// Waits for the redirect URL from the user; forever if no lines are accepted.
async fn wait_for_manual_redirect(
    manual_input: Option<&ManualInput>,
    redirect: &Url,
    expected_state: &str,
) -> Url {
    match manual_input {
        Some(manual_input) => manual_input.wait_for_redirect(redirect, expected_state).await,
        None => std::future::pending().await,
    }
}

#[async_trait]
impl UserAgent for LoopbackRedirect {
    async fn start_login(&self) -> Result<Box<dyn Login>, String> {
        let failed = |it: std::io::Error| format!("no port for the redirect of the login page: {it}");
        let mut redirect = self.redirect.clone();
        let address: IpAddr = match redirect.host() {
            Some(Host::Ipv6(address)) => address.into(),
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Domain(_)) | None => Ipv4Addr::LOCALHOST.into(),
        };
        let listener = TcpListener::bind((address, redirect.port().unwrap_or(0))).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        redirect.set_port(Some(port)).expect("an http URL has a port");
        let (opener, manual_input) = (self.opener.clone(), self.manual_input.clone());
        Ok(Box::new(PendingLogin { listener, redirect, opener, manual_input }))
    }
}

#[async_trait]
impl Login for PendingLogin {
    fn redirect_uri(&self) -> &Url {
        &self.redirect
    }

    async fn authorize(self: Box<Self>, page: Url) -> Result<Url, String> {
        let state = state_parameter(&page).ok_or("the login page's URL contains no state")?;
        // The private file is deleted when the login ends.
        let (start_page, _file) = match &self.opener {
            PageOpener::Page(show) => {
                show(&page);
                (None, None)
            }
            PageOpener::StartPage(OpenStartPage { folder, open }) => {
                let start_page = StartPage::new(page).ok_or("the system provides no randomness")?;
                let address = self.redirect.join(&start_page.path).expect("it is a path");
                let file = create_private_page(folder, &address)
                    .map_err(|error| format!("no private page in {}: {error}", folder.display()))?;
                let login_page = &start_page.login_page;
                open(&StartPageLinks { file: file.path(), address: &address, login_page });
                (Some(start_page), Some(file))
            }
        };
        let mut connections = tokio::task::JoinSet::new();
        let manual_input = wait_for_manual_redirect(self.manual_input.as_deref(), &self.redirect, &state);
        let redirect = self.redirect.clone();
        let handler = Arc::new(RequestHandler { redirect, state: state.clone(), start_page });
        tokio::pin!(manual_input);
        loop {
            tokio::select! {
                redirected = &mut manual_input => return Ok(redirected),
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    // A failed connection is ignored.
                    let Ok((socket, _)) = accepted else { continue };
                    let handler = Arc::clone(&handler);
                    connections.spawn(async move {
                        let served = serve_connection(socket, &handler);
                        tokio::time::timeout(REQUEST_TIMEOUT, served).await.ok().flatten()
                    });
                }
                Some(done) = connections.join_next() => match done {
                    Ok(Some(BrowserEvent::Redirect(redirected))) => return Ok(redirected),
                    Ok(Some(BrowserEvent::SecondVisit)) => {
                        let why = "the page was opened twice, so that another user may have it: log in again";
                        return Err(why.to_owned());
                    }
                    Ok(None) | Err(_) => {}
                },
            }
        }
    }
}

/// Reads one request and responds to it.
async fn serve_connection(mut socket: TcpStream, handler: &RequestHandler) -> Option<BrowserEvent> {
    let mut received = Vec::new();
    while !received.windows(4).any(|it| it == b"\r\n\r\n") {
        if received.len() >= MAX_REQUEST_BYTES || socket.read_buf(&mut received).await.ok()? == 0 {
            return None;
        }
    }
    let reply = handler.handle(&received);
    let page =
        format!("<!doctype html><meta charset=\"utf-8\"><title>mcp-host</title><p>{}</p>\n", reply.text);
    let head = format!(
        "HTTP/1.1 {}\r\n{}Content-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        reply.status,
        reply.fields,
        page.len()
    );
    // The request counts even if the browser does not read the response.
    let _ = socket.write_all((head + &page).as_bytes()).await;
    let _ = socket.shutdown().await;
    reply.event
}

/// The response to a request.
struct Reply {
    status: &'static str,
    text: &'static str,
    /// Further header lines.
    fields: String,
    /// What the request means for the login.
    event: Option<BrowserEvent>,
}

impl Reply {
    fn new(status: &'static str, text: &'static str, event: Option<BrowserEvent>) -> Reply {
        Reply { status, text, fields: String::new(), event }
    }
}

impl StartPage {
    /// `None` if the system provides no randomness.
    fn new(login_page: Url) -> Option<StartPage> {
        let (path, cookie) = (format!("/login/{}", jwt::random_id()?), jwt::random_id()?);
        Some(StartPage { path, login_page, cookie, is_visited: AtomicBool::new(false) })
    }

    /// Redirects the first visitor to the login page.
    fn handle_visit(&self) -> Reply {
        if self.is_visited.swap(true, Ordering::Relaxed) {
            return Reply::new("410 Gone", "This page was opened already.", Some(BrowserEvent::SecondVisit));
        }
        let fields = format!(
            "Location: {}\r\nSet-Cookie: {COOKIE}={}; Path=/; HttpOnly; SameSite=Lax\r\n",
            self.login_page, self.cookie
        );
        Reply { fields, ..Reply::new("302 Found", "The login page opens.", None) }
    }
}

impl RequestHandler {
    fn handle(&self, request: &[u8]) -> Reply {
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut fields);
        let is_complete = parsed.parse(request).is_ok_and(|it| it.is_complete());
        let is_get = is_complete && parsed.method == Some("GET");
        let Some(target) = parsed.path.filter(|_| is_get) else {
            return Reply::new("404 Not Found", "Nothing is here.", None);
        };
        if let Some(start_page) = self.start_page.as_ref().filter(|it| it.path == target) {
            return start_page.handle_visit();
        }
        let url = self.redirect.join(target).ok();
        match url.and_then(|url| check_redirect(url, &self.redirect, &self.state)) {
            None => Reply::new("404 Not Found", "Nothing is here.", None),
            Some(_) if !self.has_cookie(parsed.headers) => {
                Reply::new("403 Forbidden", "This browser did not begin the login.", None)
            }
            Some(url) if url.query_pairs().any(|(name, _)| name == "error") => {
                Reply::new("200 OK", "The login was refused.", Some(BrowserEvent::Redirect(url)))
            }
            Some(url) => {
                let text = "You are logged in. This window can be closed.";
                Reply::new("200 OK", text, Some(BrowserEvent::Redirect(url)))
            }
        }
    }

    /// Whether a request is of the browser that opened the start page, if there is one.
    fn has_cookie(&self, fields: &[httparse::Header<'_>]) -> bool {
        let Some(start_page) = &self.start_page else { return true };
        let cookies = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("cookie"));
        let pairs =
            cookies.filter_map(|field| std::str::from_utf8(field.value).ok()).flat_map(|it| it.split(';'));
        let expected = format!("{COOKIE}={}", start_page.cookie);
        pairs.into_iter().any(|pair| pair.trim() == expected)
    }
}

/// Returns the URL if it is the redirect of this login.
fn check_redirect(redirected: Url, redirect: &Url, expected_state: &str) -> Option<Url> {
    let is_expected = redirected.origin() == redirect.origin()
        && redirected.path() == redirect.path()
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
        let handler = RequestHandler { redirect, state: "s1".to_owned(), start_page: None };
        let got = match handler.handle(format!("{request}\r\n").as_bytes()).event {
            Some(BrowserEvent::Redirect(url)) => Some(String::from(url)),
            Some(BrowserEvent::SecondVisit) | None => None,
        };
        assert_eq!(got.as_deref(), want, "{request}");
    }

    // RPT-231
    #[test]
    fn only_the_browser_that_opened_the_start_page_ends_the_login() {
        let login_page = Url::parse("https://login.example/?state=s1").unwrap();
        let start_page = StartPage::new(login_page).unwrap();
        let (path, cookie) = (start_page.path.clone(), start_page.cookie.clone());
        let redirect = Url::parse("http://127.0.0.1:9/callback").unwrap();
        let handler = RequestHandler { redirect, state: "s1".to_owned(), start_page: Some(start_page) };
        let get = |target: &str, fields: &str| {
            handler.handle(format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n").as_bytes())
        };
        let callback = "/callback?code=c&state=s1";
        assert_eq!(get("/login/guess", "").status, "404 Not Found");
        let first = get(&path, "");
        assert_eq!(first.status, "302 Found");
        assert!(first.fields.contains("Location: https://login.example/?state=s1\r\n"), "{}", first.fields);
        assert!(first.fields.contains(&cookie) && first.event.is_none());
        // Another user who has read the address and the state.
        assert_eq!(get(callback, "").status, "403 Forbidden");
        assert_eq!(get(callback, "Cookie: mcp-host-login=guess\r\n").status, "403 Forbidden");
        let own = get(callback, &format!("Cookie: a=b; {COOKIE}={cookie}\r\n"));
        assert!(matches!(own.event, Some(BrowserEvent::Redirect(_))));
        assert!(matches!(get(&path, "").event, Some(BrowserEvent::SecondVisit)));
    }

    // RPT-131
    #[tokio::test]
    async fn registered_redirect_is_used() {
        let with_uri = |url: &str| LoopbackRedirect::new(|_| {}).with_redirect_uri(url.parse().unwrap());
        for refused in
            ["https://localhost/callback", "http://example.com/callback", "http://localhost/callback?a"]
        {
            assert!(with_uri(refused).is_err(), "{refused}");
        }
        let login = with_uri("http://localhost/oauth/back").unwrap().start_login().await.unwrap();
        let redirect = login.redirect_uri();
        assert_eq!((redirect.host_str(), redirect.path()), (Some("localhost"), "/oauth/back"));
        let port = redirect.port().unwrap();
        let error =
            with_uri(&format!("http://localhost:{port}/x")).unwrap().start_login().await.err().unwrap();
        assert!(error.contains("port"), "{error}");
    }

    #[tokio::test]
    async fn entered_url_completes_the_login() {
        let on_rejected_line = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let (sender, lines) = mpsc::channel(8);
        let rejected_count = Arc::clone(&on_rejected_line);
        let count = move || {
            rejected_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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
