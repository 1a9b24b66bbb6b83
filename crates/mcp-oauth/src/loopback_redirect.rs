//! The way back from a login page: a port of this machine that takes one request.
//!
//! Whatever else knocks there is turned away: only the request that brings back this login's `state` ends the visit.
//! Where the browser is on another machine, nothing ever knocks; then the user may type the address that it ended at.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use url::Url;

use crate::user_agent::{Login, UserAgent};

/// The most of a request that is read: an address with a code in it.
const MOST_BYTES: usize = 16 << 10;

/// How long a connection may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many connections are heard at once.
const MOST_AT_ONCE: usize = 16;

const PATH: &str = "/callback";

/// A [`UserAgent`] for programs on the user's machine: hands the page to `show`, which opens it or prints it, and hears
/// the answer on a loopback port of its own.
pub struct LoopbackRedirect {
    show: Arc<dyn Fn(&Url) + Send + Sync>,
    typed: Option<Arc<Typed>>,
}

/// What the user types, line by line.
struct Typed {
    lines: Mutex<mpsc::Receiver<String>>,
    /// Told of each line that is not the answer.
    refused: Box<dyn Fn() + Send + Sync>,
}

struct Waiting {
    listener: TcpListener,
    redirect: Url,
    show: Arc<dyn Fn(&Url) + Send + Sync>,
    typed: Option<Arc<Typed>>,
}

impl LoopbackRedirect {
    /// `show` is called once for each login, and must not wait.
    pub fn new(show: impl Fn(&Url) + Send + Sync + 'static) -> LoopbackRedirect {
        LoopbackRedirect { show: Arc::new(show), typed: None }
    }

    /// The same with a user who may type the address that the browser ended at, for one on another machine: there it
    /// shows an error, and the address. A line that is no answer of this login is not looked at further, and `refused` is
    /// told, which must not wait.
    #[must_use]
    pub fn with_manual_input(
        self,
        lines: mpsc::Receiver<String>,
        refused: impl Fn() + Send + Sync + 'static,
    ) -> LoopbackRedirect {
        let typed = Typed { lines: Mutex::new(lines), refused: Box::new(refused) };
        LoopbackRedirect { typed: Some(Arc::new(typed)), ..self }
    }
}

impl Typed {
    /// The first line that is the answer. Waits for ever where there is none.
    async fn answer(&self, redirect: &Url, own: &str) -> Url {
        let mut lines = self.lines.lock().await;
        while let Some(line) = lines.recv().await {
            let line = line.trim().trim_matches(['"', '\'', '<', '>']);
            if line.is_empty() {
                continue;
            }
            // An address alone: what is relative to ours would be taken for one.
            match Url::parse(line).ok().and_then(|it| is_answer(it, redirect, own)) {
                Some(back) => return back,
                None => (self.refused)(),
            }
        }
        std::future::pending().await
    }
}

/// The answer of whoever types, where somebody does.
async fn typed_answer(typed: Option<&Typed>, redirect: &Url, own: &str) -> Url {
    match typed {
        Some(typed) => typed.answer(redirect, own).await,
        None => std::future::pending().await,
    }
}

#[async_trait]
impl UserAgent for LoopbackRedirect {
    async fn start_login(&self) -> Result<Box<dyn Login>, String> {
        let failed = |it: std::io::Error| format!("no port for the answer of the login page: {it}");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let redirect = Url::parse(&format!("http://127.0.0.1:{port}{PATH}")).expect("it is a URL");
        Ok(Box::new(Waiting { listener, redirect, show: Arc::clone(&self.show), typed: self.typed.clone() }))
    }
}

#[async_trait]
impl Login for Waiting {
    fn redirect_uri(&self) -> &Url {
        &self.redirect
    }

    async fn authorize(self: Box<Self>, page: Url) -> Result<Url, String> {
        let state = state(&page).ok_or("the login page's address names no state")?;
        (self.show)(&page);
        let mut heard = tokio::task::JoinSet::new();
        let typed = typed_answer(self.typed.as_deref(), &self.redirect, &state);
        tokio::pin!(typed);
        loop {
            tokio::select! {
                back = &mut typed => return Ok(back),
                accepted = self.listener.accept(), if heard.len() < MOST_AT_ONCE => {
                    // A connection that breaks at once is nobody's answer.
                    let Ok((socket, _)) = accepted else { continue };
                    let (redirect, state) = (self.redirect.clone(), state.clone());
                    heard.spawn(async move {
                        tokio::time::timeout(PATIENCE, hear(socket, &redirect, &state)).await.ok().flatten()
                    });
                }
                Some(done) = heard.join_next() => {
                    if let Ok(Some(back)) = done {
                        return Ok(back);
                    }
                }
            }
        }
    }
}

/// Hears one connection out; the address that it asks for, where it is the answer.
async fn hear(mut socket: TcpStream, redirect: &Url, state: &str) -> Option<Url> {
    let mut read = Vec::new();
    while !read.windows(4).any(|it| it == b"\r\n\r\n") {
        if read.len() >= MOST_BYTES || socket.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
    let back = answer(&read, redirect, state);
    let (status, text) = match &back {
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
    // Whoever does not read it has brought the answer all the same.
    let _ = socket.write_all((head + &page).as_bytes()).await;
    let _ = socket.shutdown().await;
    back
}

/// The address in a request that is the answer of this login.
fn answer(request: &[u8], redirect: &Url, own: &str) -> Option<Url> {
    let text = std::str::from_utf8(request).ok()?;
    let target = text.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    is_answer(redirect.join(target).ok()?, redirect, own)
}

fn is_answer(back: Url, redirect: &Url, own: &str) -> Option<Url> {
    let ours = back.origin() == redirect.origin() && back.path() == PATH && state(&back)? == own;
    ours.then_some(back)
}

fn state(url: &Url) -> Option<String> {
    url.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: &str, want: Option<&str>) {
        let redirect = Url::parse("http://127.0.0.1:9/callback").unwrap();
        let got = answer(request.as_bytes(), &redirect, "s1").map(String::from);
        assert_eq!(got.as_deref(), want, "{request}");
    }

    #[tokio::test]
    async fn who_types_the_address_answers_as_the_browser_would() {
        let refused = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let (sender, lines) = mpsc::channel(8);
        let counted = Arc::clone(&refused);
        let count = move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        let user = LoopbackRedirect::new(|_| {}).with_manual_input(lines, count);
        let visit = user.start_login().await.unwrap();
        let redirect = visit.redirect_uri().clone();
        let wanted = format!("{redirect}?code=c&state=s1");
        for line in [
            "",
            "what is this?",
            "?code=c&state=s1",
            "https://evil.example/callback?code=c&state=s1",
            &format!("{redirect}?code=c&state=s2"),
            &format!(" <{wanted}>\r"),
        ] {
            sender.send(line.to_owned()).await.unwrap();
        }
        let page = Url::parse("https://login.example/?state=s1").unwrap();
        assert_eq!(visit.authorize(page).await.map(String::from), Ok(wanted));
        assert_eq!(refused.load(std::sync::atomic::Ordering::Relaxed), 4);
    }

    #[test]
    fn only_the_answer_with_this_logins_state_counts() {
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
