//! Lenient parsing of the documents of servers and authorization servers. No I/O.
//!
//! rmcp reads these documents strictly. Here they get the form that it expects, as far as their meaning is clear, and
//! what would lead to another authorization server's tokens is refused.

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Map, Value};
use url::{Url, form_urlencoded};

/// Maximum lifetime of a token: a hundred years. A longer one is shortened to it.
const MAX_LIFETIME_SECONDS: f64 = 3.2e9;

/// Minimum length of a secret that is removed from an error. A shorter one could be any word of it.
const MIN_SECRET_BYTES: usize = 8;

/// Maximum number of authorization servers that are read of a list.
const MAX_LISTED_ISSUERS: usize = 16;

/// Errors of a refresh that may succeed later, or with another client. The refresh token is still valid.
const OTHER_REFRESH_ERRORS: [&str; 6] = [
    "invalid_client",
    "slow_down",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "use_dpop_nonce",
];

/// Converts the response of a token endpoint to the form of RFC 6749.
///
/// Providers send: lifetimes as texts and fractions, no `token_type`, scopes as a list, null for a missing token, a
/// form instead of JSON, and errors with a status of success. A refused refresh is `invalid_grant` in whatever words.
pub(crate) fn normalize_token_response(
    mut response: Response<Vec<u8>>,
    is_refresh: bool,
) -> Response<Vec<u8>> {
    let members = parse_members(&response);
    let is_token = members.as_ref().is_some_and(|it| it.get("access_token").is_some_and(Value::is_string));
    let is_error = members.as_ref().is_some_and(|it| it.contains_key("error"));
    if response.status().is_success() && is_token {
        *response.status_mut() = StatusCode::OK;
        return with_json(response, normalize_token(members.unwrap_or_default()));
    }
    if response.status().is_success() && is_error {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    let is_refused = response.status().is_client_error()
        && ![StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&response.status());
    if !is_refused {
        return response;
    }
    let mut members = members.unwrap_or_default();
    let error = members.get("error").and_then(Value::as_str).unwrap_or_default();
    if is_refresh && error != "invalid_grant" && !OTHER_REFRESH_ERRORS.contains(&error) {
        members.insert("error".to_owned(), "invalid_grant".into());
    }
    if members.is_empty() { response } else { with_json(response, members) }
}

/// Removes the secrets that a request sent from its error, which is shown and logged.
pub(crate) fn hide_secrets(mut response: Response<Vec<u8>>, secrets: &[String]) -> Response<Vec<u8>> {
    if response.status().is_success() {
        return response;
    }
    let mut text = String::from_utf8_lossy(response.body()).into_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES) {
        let escaped = Value::from(secret.as_str()).to_string();
        text = text.replace(escaped.trim_matches('"'), "***").replace(secret.as_str(), "***");
    }
    *response.body_mut() = text.into_bytes();
    response
}

/// Completes the response to a registration: without `redirect_uris`, those of the request are registered. Responses
/// to other requests are returned as they are.
pub(crate) fn normalize_registration(response: Response<Vec<u8>>, request: &[u8]) -> Response<Vec<u8>> {
    let request: Map<String, Value> = serde_json::from_slice(request).unwrap_or_default();
    let redirects = request.get("redirect_uris").filter(|_| response.status().is_success());
    let Some(redirects) = redirects else { return response };
    let Some(mut members) = parse_members(&response).filter(|it| it.contains_key("client_id")) else {
        return response;
    };
    if !members.get("redirect_uris").is_some_and(Value::is_array) {
        members.insert("redirect_uris".to_owned(), redirects.clone());
    }
    if let Some(Value::Number(id)) = members.get("client_id") {
        let id = id.to_string();
        members.insert("client_id".to_owned(), id.into());
    }
    // An empty secret is none.
    if members.get("client_secret").and_then(Value::as_str).is_none_or(str::is_empty) {
        members.remove("client_secret");
    }
    with_json(response, members)
}

/// The authorization servers that the metadata of a protected resource lists. Empty for other documents.
pub(crate) fn listed_issuers(response: &Response<Vec<u8>>) -> Vec<String> {
    let members = parse_members(response).filter(|it| !it.contains_key("token_endpoint")).unwrap_or_default();
    let listed = members.get("authorization_servers").and_then(Value::as_array).into_iter().flatten();
    let listed = listed.filter_map(Value::as_str).take(MAX_LISTED_ISSUERS);
    listed.map(|issuer| issuer.trim().to_owned()).collect()
}

/// Whether a request was refused because the server does not know the parameter `resource`.
pub(crate) fn refuses_resource(response: &Response<Vec<u8>>) -> bool {
    let error = parse_members(response).and_then(|it| it.get("error")?.as_str().map(str::to_owned));
    response.status() == StatusCode::BAD_REQUEST && error.as_deref() == Some("invalid_request")
}

/// The metadata of a protected resource, after its check.
pub(crate) struct ResourceMetadata {
    /// The document, with the configured URL as its identifier.
    pub(crate) response: Response<Vec<u8>>,
    /// The identifier that it states, if that is broader than the configured URL.
    pub(crate) broader_resource: Option<Url>,
}

/// Checks and converts the metadata of a protected resource. Its identifier is replaced by the configured URL if it
/// differs from that in a slash at the end or in its query, or if it is broader: other servers of the host may accept a
/// token for the broader one. The document at the root describes the origin, so it is returned as it is, like other
/// documents.
///
/// An error means that the document names an authorization server by the address of a document. rmcp does not compare
/// the issuer of such a document, so that it could pass for another issuer's.
pub(crate) fn normalize_resource_metadata(
    response: Response<Vec<u8>>,
    requested: &Url,
    resource: &Url,
) -> Result<ResourceMetadata, String> {
    let unchanged = |response| Ok(ResourceMetadata { response, broader_resource: None });
    let Some(mut members) = parse_members(&response).filter(|it| !it.contains_key("token_endpoint")) else {
        return unchanged(response);
    };
    let listed = members.get("authorization_servers").and_then(Value::as_array).into_iter().flatten();
    for name in listed.chain(members.get("authorization_server")).filter_map(Value::as_str) {
        let url = Url::parse(name.trim()).or_else(|_| requested.join(name.trim()));
        if url.is_ok_and(|url| url.path().contains("/.well-known/")) {
            let name: String = name.chars().take(200).collect();
            return Err(format!(
                "the server names {name} as its authorization server, which is the address of a document, not an issuer"
            ));
        }
    }
    let stated = members.get("resource").and_then(Value::as_str).and_then(|it| Url::parse(it).ok());
    let Some(stated) = stated.filter(|stated| covers(stated, resource)) else {
        return unchanged(response);
    };
    let is_broader = trimmed_path(&stated) != trimmed_path(resource);
    if is_broader && requested.path() == "/.well-known/oauth-protected-resource" {
        return unchanged(response);
    }
    members.insert("resource".to_owned(), resource.as_str().into());
    let broader_resource = is_broader.then_some(stated);
    Ok(ResourceMetadata { response: with_json(response, members), broader_resource })
}

/// Whether an identifier covers the configured URL: the same path, or one above it. A URL with a fragment is none.
fn covers(stated: &Url, resource: &Url) -> bool {
    let rest = trimmed_path(resource).strip_prefix(trimmed_path(stated));
    stated.origin() == resource.origin()
        && stated.fragment().is_none()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The path without slashes at its end.
fn trimmed_path(url: &Url) -> &str {
    url.path().trim_end_matches('/')
}

/// Parses the members of a JSON object or a form.
fn parse_members(response: &Response<Vec<u8>>) -> Option<Map<String, Value>> {
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if content_type.starts_with("application/x-www-form-urlencoded") {
        let pairs = form_urlencoded::parse(response.body());
        return Some(pairs.map(|(name, value)| (name.into_owned(), value.into_owned().into())).collect());
    }
    serde_json::from_slice(response.body()).ok()
}

fn with_json(mut response: Response<Vec<u8>>, members: Map<String, Value>) -> Response<Vec<u8>> {
    *response.body_mut() = Value::Object(members).to_string().into_bytes();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Converts a token to the form of RFC 6749.
fn normalize_token(mut members: Map<String, Value>) -> Map<String, Value> {
    let lifetime = members.remove("expires_in").and_then(|it| match it {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    });
    // A server that states no lifetime, or none that can be, decides by its answers.
    if let Some(seconds) = lifetime.filter(|it: &f64| *it >= 1.0) {
        members.insert("expires_in".to_owned(), (seconds.min(MAX_LIFETIME_SECONDS) as u64).into());
    }
    let lacks = |members: &Map<String, Value>, name: &str| {
        members.get(name).and_then(Value::as_str).is_none_or(str::is_empty)
    };
    if lacks(&members, "token_type") {
        members.insert("token_type".to_owned(), "Bearer".into());
    }
    match members.remove("scope") {
        Some(Value::Array(names)) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            members.insert("scope".to_owned(), names.join(" ").into());
        }
        Some(Value::String(text)) if !text.trim().is_empty() => {
            members.insert("scope".to_owned(), text.into());
        }
        _ => {}
    }
    if lacks(&members, "refresh_token") {
        members.remove("refresh_token");
    }
    members
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn response(status: u16, body: &str) -> Response<Vec<u8>> {
        Response::builder().status(status).body(body.as_bytes().to_vec()).unwrap()
    }

    /// Checks a token with this member: the members that are read, besides the type `Bearer`.
    #[track_caller]
    fn check_token(member: &str, want: Value) {
        let body = format!(r#"{{"access_token":"t",{member}}}"#);
        let got = normalize_token_response(response(200, &body), false);
        let mut got: Value = serde_json::from_slice(got.body()).unwrap();
        let base = json!({"access_token": "t", "token_type": "Bearer"});
        for (name, value) in want.as_object().unwrap() {
            assert_eq!(got.as_object_mut().unwrap().remove(name), Some(value.clone()), "{member}");
        }
        for (name, value) in got.as_object().unwrap() {
            assert_eq!(base.get(name), Some(value), "{member}");
        }
    }

    #[test]
    fn tokens_of_all_providers_are_read() {
        check_token(r#""expires_in":3600"#, json!({"expires_in": 3600}));
        check_token(r#""expires_in":"3600""#, json!({"expires_in": 3600}));
        check_token(r#""expires_in":3599.5"#, json!({"expires_in": 3599}));
        check_token(r#""expires_in":" 60 ""#, json!({"expires_in": 60}));
        check_token(r#""expires_in":1e300"#, json!({"expires_in": 3_200_000_000_u64}));
        for none in ["0", "-1", "null", "\"soon\"", "true", "[]", "0.5"] {
            check_token(&format!(r#""expires_in":{none}"#), json!({}));
        }
        check_token(r#""token_type":null"#, json!({"token_type": "Bearer"}));
        check_token(r#""token_type":"bearer""#, json!({"token_type": "bearer"}));
        check_token(r#""scope":["a","b"]"#, json!({"scope": "a b"}));
        check_token(r#""scope":null"#, json!({}));
        check_token(r#""scope":"""#, json!({}));
        check_token(r#""refresh_token":null"#, json!({}));
        check_token(r#""refresh_token":"""#, json!({}));
        check_token(r#""refresh_token":"r""#, json!({"refresh_token": "r"}));
        let form =
            Response::builder().header("content-type", "application/x-www-form-urlencoded; charset=utf-8");
        let form = form.body(b"access_token=t&expires_in=5&scope=a+b".to_vec()).unwrap();
        let got: Value = serde_json::from_slice(normalize_token_response(form, false).body()).unwrap();
        assert_eq!(
            got,
            json!({"access_token": "t", "expires_in": 5, "scope": "a b", "token_type": "Bearer"})
        );
    }

    #[track_caller]
    fn check_error(status: u16, body: &str, is_refresh: bool, want: (u16, Option<&str>)) {
        let got = normalize_token_response(response(status, body), is_refresh);
        let error: Value = serde_json::from_slice(got.body()).unwrap_or_default();
        assert_eq!((got.status().as_u16(), error["error"].as_str()), want, "{body}");
    }

    // RPT-123
    #[test]
    fn refused_refresh_is_an_invalid_grant_in_any_words() {
        let array = r#"[{"logref":"1","message":"Bad credentials"}]"#;
        check_error(400, r#"{"error":"invalid_request"}"#, true, (400, Some("invalid_grant")));
        check_error(401, array, true, (401, Some("invalid_grant")));
        check_error(403, "<html>", true, (403, Some("invalid_grant")));
        check_error(400, r#"{"error":"invalid_request"}"#, false, (400, Some("invalid_request")));
        check_error(401, array, false, (401, None));
        check_error(401, r#"{"error":"invalid_client"}"#, true, (401, Some("invalid_client")));
        check_error(429, "", true, (429, None));
        check_error(500, "oops", true, (500, None));
        check_error(200, r#"{"error":"expired"}"#, false, (400, Some("expired")));
    }

    // RPT-263
    #[test]
    fn error_does_not_repeat_what_was_sent() {
        let sent = ["verifier-0123".to_owned(), "a\"b-012345".to_owned(), "short".to_owned()];
        let check = |status: u16, body: &str, want: &str| {
            let response = hide_secrets(response(status, body), &sent);
            assert_eq!(String::from_utf8_lossy(response.body()), want);
        };
        let body = r#"{"error":"x","error_description":"you sent verifier-0123, a\"b-012345 and short"}"#;
        check(400, body, r#"{"error":"x","error_description":"you sent ***, *** and short"}"#);
        check(500, "verifier-0123 a\"b-012345", "*** ***");
        check(200, r#"{"access_token":"verifier-0123"}"#, r#"{"access_token":"verifier-0123"}"#);
    }

    #[track_caller]
    fn check_registration(body: Value, want: Value) {
        let request = json!({"redirect_uris": ["http://127.0.0.1:9/callback"]}).to_string();
        let got = normalize_registration(response(201, &body.to_string()), request.as_bytes());
        assert_eq!(serde_json::from_slice::<Value>(got.body()).unwrap(), want, "{body}");
    }

    // RPT-144
    #[test]
    fn registration_is_completed() {
        let sent = json!(["http://127.0.0.1:9/callback"]);
        check_registration(json!({"client_id": "c"}), json!({"client_id": "c", "redirect_uris": sent}));
        let nulls = json!({"client_id": 7, "client_secret": "", "redirect_uris": null});
        check_registration(nulls, json!({"client_id": "7", "redirect_uris": sent}));
        let complete =
            json!({"client_id": "c", "client_secret": "s", "redirect_uris": ["https://x.example"]});
        check_registration(complete.clone(), complete);
        check_registration(json!({"error": "x"}), json!({"error": "x"}));
    }

    #[track_caller]
    fn check_metadata(body: Value, want: Result<&str, &str>) {
        check_metadata_at("/.well-known/oauth-protected-resource/mcp", body, want);
    }

    #[track_caller]
    fn check_metadata_at(path: &str, body: Value, want: Result<&str, &str>) {
        let requested = Url::parse("https://example.com").unwrap().join(path).unwrap();
        let resource = Url::parse("https://example.com/mcp").unwrap();
        let got = normalize_resource_metadata(response(200, &body.to_string()), &requested, &resource);
        let got = got.map(|ResourceMetadata { response, broader_resource }| {
            let document: Value = serde_json::from_slice(response.body()).unwrap();
            let mark = if broader_resource.is_some() { " (broader)" } else { "" };
            format!("{}{mark}", document["resource"].as_str().unwrap())
        });
        match want {
            Ok(want) => assert_eq!(got.as_deref(), Ok(want), "{body}"),
            Err(part) => assert!(got.as_ref().unwrap_err().contains(part), "{got:?}"),
        }
    }

    // RPT-143
    #[test]
    fn slash_at_the_end_makes_no_other_resource() {
        for same in ["https://example.com/mcp", "https://example.com/mcp/", "https://example.com/mcp?a=b"] {
            check_metadata(json!({"resource": same}), Ok("https://example.com/mcp"));
        }
        for other in [
            "https://example.org/mcp",
            "https://example.com:444/mcp",
            "http://example.com/mcp",
            "https://example.com/mc",
            "https://example.com/mcp/a",
            "https://example.com/#mcp",
            "x",
        ] {
            check_metadata(json!({"resource": other}), Ok(other));
        }
        // Metadata of an authorization server.
        let metadata =
            json!({"resource": "https://example.com", "token_endpoint": "https://example.com/token"});
        check_metadata(metadata, Ok("https://example.com"));
    }

    // RPT-233
    #[test]
    fn broader_resource_is_replaced_by_the_configured_url() {
        for broader in
            ["https://example.com", "https://example.com/", "https://example.com?a", "https://u@example.com"]
        {
            check_metadata(json!({"resource": broader}), Ok("https://example.com/mcp (broader)"));
            check_metadata_at(
                "/.well-known/oauth-protected-resource",
                json!({"resource": broader}),
                Ok(broader),
            );
        }
    }

    // RPT-221
    #[test]
    fn authorization_server_is_not_named_by_a_document() {
        let part = "which is the address of a document";
        for name in [
            "https://evil.example/.well-known/x",
            "/.well-known/oauth-authorization-server",
            " /a/.well-known/b",
        ] {
            let server =
                json!({"resource": "https://example.com/mcp", "authorization_servers": ["https://a", name]});
            check_metadata(server, Err(part));
            check_metadata(json!({"authorization_server": name}), Err(part));
        }
        let servers = json!(["https://a/.well-known", 1]);
        let fine = json!({"resource": "https://example.com/mcp", "authorization_servers": servers});
        check_metadata(fine, Ok("https://example.com/mcp"));
    }
}
