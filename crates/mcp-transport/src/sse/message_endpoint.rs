//! Resolves and checks the URL for POSTs, from the server's `endpoint` event. No I/O.
//!
//! Headers and messages contain secrets: neither is sent to another origin than the configured one.

use url::Url;

/// Maximum length of the URL.
const MAX_URL_BYTES: usize = 8 << 10;

/// Resolves the URL of an `endpoint` event against that of the stream. The error is a message; of a foreign
/// URL it contains only the origin, because the path may be secret.
pub(super) fn resolve(stream: &Url, data: &[u8]) -> Result<Url, String> {
    if data.len() > MAX_URL_BYTES {
        return Err("the server's URL for messages is too long".to_owned());
    }
    let text = str::from_utf8(data).map_err(|_| invalid_url())?;
    let mut url = stream.join(text.trim()).map_err(|_| invalid_url())?;
    let origin = url.origin();
    if origin != stream.origin() {
        let location = if origin.is_tuple() {
            origin.ascii_serialization()
        } else {
            format!("a URL of the scheme `{}`", url.scheme())
        };
        return Err(format!(
            "the server's URL for messages is at {location}, but messages are only sent to {}",
            stream.origin().ascii_serialization()
        ));
    }
    // Only configured credentials are sent, as a header. A fragment is never sent.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    Ok(url)
}

fn invalid_url() -> String {
    "the server's URL for messages is invalid".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the resolved URL, or the error, for the URL of a stream.
    #[track_caller]
    fn check(stream: &str, data: &str, want: &str) {
        let stream = Url::parse(stream).unwrap();
        let got = match resolve(&stream, data.as_bytes()) {
            Ok(url) => url.to_string(),
            Err(why) => why,
        };
        assert_eq!(got, want, "{data:?}");
    }

    #[test]
    fn message_endpoint_is_resolved_against_the_stream_url() {
        let stream = "https://example.com/a/sse?key=k";
        check(stream, "/messages/?session_id=1", "https://example.com/messages/?session_id=1");
        check(stream, "messages?s=1", "https://example.com/a/messages?s=1");
        check(stream, "?s=1", "https://example.com/a/sse?s=1");
        check(stream, " /m \n", "https://example.com/m");
        check(stream, "https://EXAMPLE.com:443/m#f", "https://example.com/m");
        check(stream, "//example.com/m", "https://example.com/m");
        check(stream, "https://user:password@example.com/m", "https://example.com/m");
        check("http://[::1]:80/sse", "http://[0:0:0:0:0:0:0:1]/m", "http://[::1]/m");
    }

    #[test]
    fn another_origin_is_refused_and_only_the_origin_reported() {
        let check = |data: &str, named: &str| {
            let why = format!("the server's URL for messages is at {named}, but messages are only sent to ");
            check("https://example.com/sse", data, &format!("{why}https://example.com"));
        };
        check("https://evil.example/m?secret", "https://evil.example");
        check("//evil.example/m", "https://evil.example");
        check("http://example.com/m", "http://example.com");
        check("https://example.com:8443/m", "https://example.com:8443");
        check("https://example.com@evil.example/m", "https://evil.example");
        check("https://example.com.evil.example/m", "https://example.com.evil.example");
        check("\\\\evil.example\\m", "https://evil.example");
        check("file:///etc/passwd", "a URL of the scheme `file`");
        check("data:text/plain,a", "a URL of the scheme `data`");
        check("javascript:alert(1)", "a URL of the scheme `javascript`");
    }

    #[test]
    fn invalid_url_is_refused() {
        let unusable = "the server's URL for messages is invalid";
        check("https://example.com/sse", "https://", unusable);
        check("https://example.com/sse", "https://a b/", unusable);
        let url = Url::parse("https://example.com/sse").unwrap();
        assert_eq!(resolve(&url, b"/m\xff"), Err(unusable.to_owned()));
        assert_eq!(
            resolve(&url, "x".repeat(MAX_URL_BYTES + 1).as_bytes()),
            Err("the server's URL for messages is too long".to_owned())
        );
    }
}
