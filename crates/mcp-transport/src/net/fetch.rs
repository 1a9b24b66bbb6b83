//! Fetches a small document: one GET, bounded in size and time.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use http::header::ACCEPT;
use http::{HeaderValue, Method, StatusCode};
use mcp_host_model::UrlEndpoint;
use url::Url;

use super::tls::Authorities;
use super::url_endpoint::UrlOptions;
use super::{Client, HttpEndpoint, RequestParts, headers};

/// Fetches a JSON document of at most `max_bytes` within `timeout`. Follows redirects within the origin only. The error
/// is a message without the query of the URL.
pub async fn fetch_json(
    url: &Url,
    authorities: &Authorities,
    max_bytes: usize,
    timeout: Duration,
) -> Result<Vec<u8>, String> {
    let fetching = fetch(url, authorities, max_bytes);
    let too_slow = |_| format!("no answer within {} s", timeout.as_secs());
    tokio::time::timeout(timeout, fetching).await.map_err(too_slow)?
}

async fn fetch(url: &Url, authorities: &Authorities, max_bytes: usize) -> Result<Vec<u8>, String> {
    let options = UrlOptions { authorities: authorities.clone(), ..UrlOptions::default() };
    let endpoint = HttpEndpoint::new(&UrlEndpoint::new(url.clone()), &options);
    let endpoint = Arc::new(endpoint.map_err(|error| error.to_string())?);
    let client = Client::new(endpoint).await.map_err(|error| error.to_string())?;
    let (target, headers) = client.target_and_headers();
    let mut headers = headers::get_or_delete_headers(headers);
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let request = RequestParts::new(&Method::GET, &headers, None);
    let response = client.send(&target, request).await;
    let mut response = response.map_err(|error| error.into_error().to_string())?;
    if response.status != StatusCode::OK {
        return Err(format!("it answered with HTTP {}", response.status.as_u16()));
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        if body.len() + chunk.len() > max_bytes {
            return Err(format!("its answer has more than {max_bytes} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.to_vec())
}
