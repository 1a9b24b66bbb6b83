//! The metadata that an issuer publishes at its own address.
//!
//! A server can name a document that only claims to be the issuer's. What an issuer publishes itself is its own, also
//! if it has the name of another issuer.

use http::Request;
use http::header::ACCEPT;
use rmcp::transport::auth::AuthorizationMetadata;
use url::Url;

use super::HttpClient;

/// Maximum number of characters of an issuer in a message.
const MAX_SHOWN_CHARS: usize = 200;

impl HttpClient {
    /// Fetches the metadata of an issuer. The error contains the reason.
    pub(crate) async fn fetch_metadata(&self, issuer: &str) -> Result<AuthorizationMetadata, String> {
        let url: Url = issuer.parse().map_err(|_| "the configured issuer is not a URL".to_owned())?;
        let mut reason = None;
        for address in metadata_addresses(&url) {
            let request = Request::get(address.as_str()).header(ACCEPT, "application/json");
            let request = request.body(Vec::new()).expect("a URL is a URI");
            match self.fetch(request).await {
                Ok(response) if response.status().is_success() => {
                    if let Ok(metadata) = serde_json::from_slice(response.body()) {
                        return Ok(metadata);
                    }
                }
                Ok(_) => {}
                Err(error) => reason = Some(error.to_string()),
            }
        }
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let issuer: String = issuer.chars().take(MAX_SHOWN_CHARS).collect();
        Err(format!("the issuer {issuer} does not publish its metadata{reason}"))
    }
}

/// The addresses of an issuer's metadata (RFC 8414, OpenID Connect Discovery).
fn metadata_addresses(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let oauth = format!("/.well-known/oauth-authorization-server{path}");
    let inserted = format!("/.well-known/openid-configuration{path}");
    let appended = format!("{path}/.well-known/openid-configuration");
    let mut paths = vec![oauth, inserted, appended];
    paths.dedup();
    let address = |path: String| {
        let mut url = issuer.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.set_path(&path);
        url
    };
    paths.into_iter().map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(issuer: &str, want: &[&str]) {
        let addresses = metadata_addresses(&issuer.parse().unwrap());
        let paths: Vec<&str> = addresses.iter().map(Url::path).collect();
        assert_eq!(paths, want, "{issuer}");
    }

    #[test]
    fn metadata_is_searched_at_the_address_of_the_issuer() {
        let root = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
        check("https://id.example", &root);
        check("https://id.example/?a#b", &root);
        check(
            "https://id.example/tenant/",
            &[
                "/.well-known/oauth-authorization-server/tenant",
                "/.well-known/openid-configuration/tenant",
                "/tenant/.well-known/openid-configuration",
            ],
        );
    }
}
