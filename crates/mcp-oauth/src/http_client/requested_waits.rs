//! The waits that servers ask for with `Retry-After`, by origin.
//!
//! A short wait delays a request, which is then sent once more. A long one ends it with an error, and so the later
//! requests to the origin until then.

use std::time::{Duration, SystemTime};

use http::Response;
use mcp_host_transport::RetryAfter;
use mcp_host_transport::internal::error_body::retry_after;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use url::Url;

use super::error::HttpClientError;

/// Maximum number of origins. A login uses a few.
const MAX_ORIGINS: usize = 64;

/// The origins that asked to wait.
#[derive(Default)]
pub(super) struct RequestedWaits(Mutex<Vec<RequestedWait>>);

/// A wait that a server requested.
struct RequestedWait {
    origin: String,
    until: Instant,
}

impl RequestedWaits {
    /// Sends a request as soon as its origin allows it, and once more if it then asks to wait. `send` may be called
    /// twice.
    pub(super) async fn obey<F>(
        &self,
        url: &Url,
        send: impl Fn() -> F,
    ) -> Result<Response<Vec<u8>>, HttpClientError>
    where
        F: Future<Output = Result<Response<Vec<u8>>, HttpClientError>>,
    {
        let origin = url.origin().ascii_serialization();
        self.wait(&origin).await?;
        let response = send().await?;
        if !self.record(&origin, &response) {
            return Ok(response);
        }
        self.wait(&origin).await?;
        let response = send().await?;
        self.record(&origin, &response);
        Ok(response)
    }

    /// Waits until a request to this origin is allowed. Fails if that takes too long.
    async fn wait(&self, origin: &str) -> Result<(), HttpClientError> {
        let until = self.0.lock().iter().find(|wait| wait.origin == origin).map(|wait| wait.until);
        let Some(until) = until else { return Ok(()) };
        let wait = until.saturating_duration_since(Instant::now());
        if RetryAfter::new(wait).request_wait().is_none() {
            let seconds = wait.as_secs_f64().ceil();
            return Err(HttpClientError::Failed(format!("{origin} asks to wait for {seconds} s")));
        }
        sleep_until(until).await;
        Ok(())
    }

    /// Records how long a response asks to wait. Returns whether it does.
    fn record(&self, origin: &str, response: &Response<Vec<u8>>) -> bool {
        let wait = requested_wait(response);
        let mut waits = self.0.lock();
        waits.retain(|it| it.origin != origin && it.until > Instant::now());
        waits.truncate(MAX_ORIGINS);
        if let Some(wait) = wait {
            waits.push(RequestedWait { origin: origin.to_owned(), until: Instant::now() + wait });
        }
        wait.is_some()
    }
}

/// How long a response asks to wait before the next request; `None` if it does not.
fn requested_wait(response: &Response<Vec<u8>>) -> Option<Duration> {
    let is_busy = matches!(response.status().as_u16(), 429 | 503);
    let after = retry_after(response.headers(), SystemTime::now()).filter(|_| is_busy);
    after.map(|it| it.wait())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Sends two requests to an origin that answers with these statuses and values of `Retry-After`, then with 200.
    /// Expects the outcomes with the seconds after which each ended.
    async fn check(responses: &[(u16, &str)], want: &str) {
        let (waits, sent, begun) = (RequestedWaits::default(), AtomicUsize::new(0), Instant::now());
        let url: Url = "https://id.example/token".parse().unwrap();
        let mut got = Vec::new();
        for _ in 0..2 {
            let send = || {
                let (status, after) =
                    responses.get(sent.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or((200, ""));
                let response = Response::builder().status(status).header("retry-after", after);
                std::future::ready(Ok(response.body(Vec::new()).unwrap()))
            };
            let outcome = match waits.obey(&url, send).await {
                Ok(response) => response.status().as_u16().to_string(),
                Err(error) => error.to_string(),
            };
            got.push(format!("{outcome} after {}", begun.elapsed().as_secs()));
        }
        assert_eq!(got.join(", "), want);
    }

    // RPT-063
    #[tokio::test(start_paused = true)]
    async fn origin_that_asks_to_wait_gets_no_request_meanwhile() {
        let busy = "https://id.example asks to wait for";
        check(&[(429, "7")], "200 after 7, 200 after 7").await;
        check(&[(503, "0")], "200 after 0, 200 after 0").await;
        check(&[(429, "1"), (429, "2")], "429 after 1, 200 after 3").await;
        check(&[(429, "30")], &format!("{busy} 30 s after 0, {busy} 30 s after 0")).await;
        check(&[(429, "1"), (503, "86400")], &format!("503 after 1, {busy} 600 s after 1")).await;
        check(&[(429, "soon"), (500, "9")], "429 after 0, 500 after 0").await;
    }
}
