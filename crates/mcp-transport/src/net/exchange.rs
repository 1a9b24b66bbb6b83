//! One request and its response, including authorization and redirects.
//!
//! A redirect is followed only if it keeps method and body (307 and 308; any for a GET) and the origin: headers contain
//! secrets that no other server may receive.

use std::time::Instant;

use http::header::{LOCATION, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use mcp_host_model::Secret;
use url::Url;

use super::authorization::{
    Authorization, AuthorizedRequest, Challenge, ChallengeAction, MAX_ATTEMPTS, Unauthorized,
    with_credentials,
};
use super::timeouts::ERROR_BODY_TIMEOUT;
use super::{Client, ExchangeError, RequestParts, RequestTarget, Response};
use crate::error::request_error::{RedirectProblem, RequestError};
use crate::error::session_words::mentions_session;

/// Maximum number of redirects of one request.
const MAX_REDIRECTS: usize = 4;

/// Maximum length of the target of a redirect in a message.
const MAX_REDIRECT_TARGET_BYTES: usize = 440;

/// What to do with a redirect.
#[derive(Debug, PartialEq, Eq)]
enum Redirect {
    Follow(Url),
    Refuse(RedirectProblem),
}

impl Client {
    /// Sends a request and waits for the head of its response. Dropping the future closes the connection, or resets the
    /// stream of an HTTP/2 connection.
    pub(crate) async fn send(
        &self,
        target: &RequestTarget,
        request: RequestParts<'_>,
    ) -> Result<Response, ExchangeError> {
        // Rare cases are boxed, because they would enlarge every request's future.
        if let Some(authorization) = &self.endpoint.authorization
            // The token is for this origin only.
            && target.url.origin() == self.endpoint.url.origin()
        {
            return Box::pin(self.send_authorized(&**authorization, target, request)).await;
        }
        let response = self.send_plain(target, request).await?;
        if response.status.is_redirection() {
            return Box::pin(self.follow_redirects(response, target.url.clone(), request)).await;
        }
        Ok(response)
    }

    /// Sends a request with a token. Sends it again after 401 or 403 if a new token may help: the server did
    /// not process it.
    async fn send_authorized(
        &self,
        authorization: &dyn Authorization,
        target: &RequestTarget,
        request: RequestParts<'_>,
    ) -> Result<Response, ExchangeError> {
        for earlier_challenges in 0..MAX_ATTEMPTS {
            let mut authorized = AuthorizedRequest::new(request.method.as_str(), &target.url);
            authorized.body = request.body.map(|body| &**body);
            let credentials = authorization.credentials(authorized).await.map_err(not_authorized)?;
            let sent_at = Instant::now();
            let headers_with_token;
            let mut request = request;
            if let Some(credentials) = &credentials {
                self.endpoint.redactor.add(&credentials.token);
                headers_with_token =
                    with_credentials(request.headers, credentials).map_err(not_authorized)?;
                request.headers = &headers_with_token;
            }
            let mut response = self.send_plain(target, request).await?;
            if response.status.is_redirection() {
                response = self.follow_redirects(response, target.url.clone(), request).await?;
            }
            let token = credentials.map(|it| it.token);
            if request.in_established_session && may_mean_lost_session(&mut response, token.as_ref()).await {
                return Ok(response);
            }
            let Some(challenge) = Challenge::from_response(&response, token, sent_at, earlier_challenges)
            else {
                return Ok(response);
            };
            match authorization.on_challenge(challenge).await.map_err(not_authorized)? {
                ChallengeAction::Retry => {}
                ChallengeAction::ReturnResponse => return Ok(response),
            }
        }
        Err(not_authorized(Unauthorized::new("the server refuses every token")))
    }

    /// Follows the redirect of a response to a request to `url`, and further ones.
    async fn follow_redirects(
        &self,
        mut response: Response,
        mut url: Url,
        request: RequestParts<'_>,
    ) -> Result<Response, ExchangeError> {
        for _ in 0..MAX_REDIRECTS {
            let status = response.status.as_u16();
            let location = response.headers.get(LOCATION).and_then(|value| value.to_str().ok());
            match decide_redirect(request.method, status, location, &url) {
                Redirect::Follow(next) => url = next,
                Redirect::Refuse(mut problem) => {
                    if let RedirectProblem::OtherOrigin(target) | RedirectProblem::LosesMessage(target) =
                        &mut problem
                    {
                        *target = self.endpoint.redactor.clean(target, MAX_REDIRECT_TARGET_BYTES);
                    }
                    return Err(refused_redirect(status, problem));
                }
            }
            response = self.send_plain(&RequestTarget::new(url.clone()), request).await?;
            if !response.status.is_redirection() {
                return Ok(response);
            }
        }
        Err(refused_redirect(response.status.as_u16(), RedirectProblem::TooMany))
    }
}

/// Whether a response that refuses access may mean that the server no longer knows the session of the request: it asks
/// for no login, or its text is about a session.
async fn may_mean_lost_session(response: &mut Response, token: Option<&Secret>) -> bool {
    if response.status != StatusCode::UNAUTHORIZED {
        return false;
    }
    if token.is_none() && !response.headers.contains_key(WWW_AUTHENTICATE) {
        return true;
    }
    let beginning = response.peek_beginning(ERROR_BODY_TIMEOUT).await;
    mentions_session(&String::from_utf8_lossy(&beginning))
}

fn refused_redirect(status: u16, problem: RedirectProblem) -> ExchangeError {
    ExchangeError::Refused(RequestError::Redirected { status, problem })
}

fn not_authorized(why: Unauthorized) -> ExchangeError {
    ExchangeError::Refused(RequestError::NotAuthorized(why.message))
}

/// Decides whether to follow a redirect from `url`. Messages show a target without its query,
/// and without its path if it is on another host: both may be secret.
fn decide_redirect(method: &Method, status: u16, location: Option<&str>, url: &Url) -> Redirect {
    let Some(next) = location.and_then(|location| url.join(location).ok()) else {
        return Redirect::Refuse(RedirectProblem::NoLocation);
    };
    let origin = next.origin();
    let path = if next.host() == url.host() { next.path() } else { "" };
    let target = format!("{}{path}", origin.ascii_serialization());
    if origin != url.origin() {
        return Redirect::Refuse(RedirectProblem::OtherOrigin(target));
    }
    let keeps_message = matches!(status, 307 | 308) || (method == Method::GET && matches!(status, 301..=303));
    if !keeps_message {
        return Redirect::Refuse(RedirectProblem::LosesMessage(target));
    }
    Redirect::Follow(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, location: Option<&str>, want: &str) {
        check_for(&Method::POST, status, location, want);
    }

    #[track_caller]
    fn check_for(method: &Method, status: u16, location: Option<&str>, want: &str) {
        let url = Url::parse("https://example.com/mcp?key=k").unwrap();
        let got = match decide_redirect(method, status, location, &url) {
            Redirect::Follow(url) => url.to_string(),
            Redirect::Refuse(problem) => RequestError::Redirected { status, problem }.to_string(),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn redirect_keeps_origin_and_message() {
        check(307, Some("/mcp/"), "https://example.com/mcp/");
        check(308, Some("https://example.com:443/x"), "https://example.com/x");
        let elsewhere = "the server redirects to https://evil.example (HTTP 307), which is not followed";
        check(307, Some("https://evil.example/secret"), elsewhere);
        let plain = "the server redirects to http://example.com/mcp (HTTP 308), which is not followed";
        check(308, Some("http://user:secret@example.com/mcp"), plain);
        let page = "the server redirects to https://example.com/login (HTTP 302), which loses the message";
        check(302, Some("/login?next=secret"), page);
        let slash = "the server redirects to https://example.com/mcp/ (HTTP 301), which loses the message";
        check(301, Some("/mcp/"), slash);
        check(307, None, "the server redirects (HTTP 307) without a valid location");
        check(304, Some("http://["), "the server redirects (HTTP 304) without a valid location");
    }

    #[test]
    fn get_follows_any_redirect_within_its_origin() {
        check_for(&Method::GET, 302, Some("/sse/"), "https://example.com/sse/");
        check_for(&Method::GET, 308, Some("sse"), "https://example.com/sse");
        let elsewhere = "the server redirects to https://evil.example (HTTP 301), which is not followed";
        check_for(&Method::GET, 301, Some("https://evil.example/sse"), elsewhere);
        let page = "the server redirects to https://example.com/sse (HTTP 300), which loses the message";
        check_for(&Method::GET, 300, Some("/sse"), page);
    }
}
