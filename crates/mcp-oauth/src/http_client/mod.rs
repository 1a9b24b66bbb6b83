//! The HTTP client for logins: few, small, bounded requests to allowed addresses only.

mod error;
mod lenient;
mod metadata;
mod requested_waits;
pub(crate) mod url_policy;

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use parking_lot::Mutex;
use reqwest::Request;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use tokio::sync::OnceCell;
use url::{Host, Url, form_urlencoded};

use crate::jwt::now;
use crate::proof::{ProofKey, ProvenRequest};
use error::{HttpClientError, MAX_RESPONSE_BYTES, REQUEST_TIMEOUT};
use lenient::ResourceMetadata;
use mcp_host_model::internal::is_loopback;
use mcp_host_transport::Authorities;
use mcp_host_transport::internal::tls;
use requested_waits::RequestedWaits;
use url_policy::{NetworkScope, check_url, may_reach, network_scope};

/// The HTTP client for the logins of one server.
pub(crate) struct HttpClient {
    /// The server's URL without its query.
    resource: Url,
    authorities: Authorities,
    /// Built by the first request, because it needs the certificate authorities of the system.
    client: OnceCell<reqwest::Client>,
    /// The proof of token requests, if the login has a key.
    proof: Mutex<Option<TokenProof>>,
    /// The origins that asked to wait.
    requested_waits: RequestedWaits,
    /// The origins that could not be reached since the discovery began.
    unreachable: Mutex<Vec<UnreachableOrigin>>,
    /// The authorization servers that the server has listed since the discovery began.
    listed_issuers: Mutex<Vec<String>>,
    /// The resource that the server's metadata states, if it is broader than the configured URL.
    broader_resource: Mutex<Option<Url>>,
}

/// An origin whose documents count as missing, because it could not be reached.
struct UnreachableOrigin {
    origin: String,
    reason: String,
}

/// The key that proves requests to a token endpoint.
#[derive(Clone)]
pub(crate) struct TokenProof {
    pub(crate) key: ProofKey,
    pub(crate) token_endpoint: String,
}

impl HttpClient {
    /// A client that has read nothing yet.
    pub(crate) fn new(resource: &Url, authorities: &Authorities) -> HttpClient {
        let mut resource = resource.clone();
        resource.set_query(None);
        HttpClient {
            resource,
            authorities: authorities.clone(),
            client: OnceCell::new(),
            proof: Mutex::default(),
            requested_waits: RequestedWaits::default(),
            unreachable: Mutex::default(),
            listed_issuers: Mutex::default(),
            broader_resource: Mutex::default(),
        }
    }

    /// The client of reqwest, which the first call builds. Fails with a message if it cannot be built.
    async fn client(&self) -> Result<&reqwest::Client, String> {
        let build = async || {
            // Fails if another provider is already installed, which is fine.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let config = tls::client_config(&self.authorities).await;
            let mut config = config.map_err(|failure| failure.to_string())?;
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            let mut builder = reqwest::Client::builder()
                .tls_backend_preconfigured(config)
                .redirect(Policy::none())
                .referer(false)
                .connect_timeout(REQUEST_TIMEOUT)
                .dns_resolver(Arc::new(GuardedResolver { server_host: resolver_host(&self.resource) }));
            if is_loopback(&self.resource) {
                builder = builder.no_proxy();
            }
            builder.build().map_err(|error| innermost_cause(&error))
        };
        self.client.get_or_try_init(build).await
    }

    /// Sets the proof of the token requests of a login. One login runs at a time.
    pub(crate) fn prove_token_requests(&self, proof: Option<TokenProof>) {
        *self.proof.lock() = proof;
    }

    /// Forgets what the last discovery has found, so that a new one tries everything again.
    pub(crate) fn begin_discovery(&self) {
        self.unreachable.lock().clear();
        self.listed_issuers.lock().clear();
        *self.broader_resource.lock() = None;
    }

    /// Whether the server lists this issuer among its authorization servers.
    pub(crate) fn is_listed(&self, issuer: &str) -> bool {
        let listed = self.listed_issuers.lock();
        listed.iter().any(|it| it.trim_end_matches('/') == issuer.trim_end_matches('/'))
    }

    /// The resource that the server's metadata states, if it is broader than the configured URL.
    pub(crate) fn broader_resource(&self) -> Option<Url> {
        self.broader_resource.lock().clone()
    }

    /// The origins that this discovery could not reach, with the reasons. `None` if it reached all.
    pub(crate) fn unreachable_origins(&self) -> Option<String> {
        let unreachable = self.unreachable.lock();
        let reasons = unreachable.iter().map(|it| format!("{}: {}", it.origin, it.reason));
        Some(reasons.collect::<Vec<_>>().join("; ")).filter(|it| !it.is_empty())
    }

    /// Fetches a document of a discovery. If another origin cannot be reached, its document counts as missing (404): a
    /// server may name several authorization servers.
    async fn fetch_document(
        &self,
        request: http::Request<Vec<u8>>,
        url: &Url,
    ) -> Result<http::Response<Vec<u8>>, HttpClientError> {
        let origin = url.origin().ascii_serialization();
        let not_found = || {
            let mut response = http::Response::new(Vec::new());
            *response.status_mut() = http::StatusCode::NOT_FOUND;
            response
        };
        if self.unreachable.lock().iter().any(|it| it.origin == origin) {
            return Ok(not_found());
        }
        match self.fetch(request).await {
            Ok(response) => {
                self.listed_issuers.lock().extend(lenient::listed_issuers(&response));
                let metadata = lenient::normalize_resource_metadata(response, url, &self.resource);
                let ResourceMetadata { response, broader_resource } =
                    metadata.map_err(HttpClientError::Failed)?;
                if broader_resource.is_some() {
                    *self.broader_resource.lock() = broader_resource;
                }
                Ok(response)
            }
            Err(error @ (HttpClientError::Failed(_) | HttpClientError::TimedOut))
                if url.origin() != self.resource.origin() =>
            {
                self.unreachable.lock().push(UnreachableOrigin { origin, reason: error.to_string() });
                Ok(not_found())
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a request if the URL policy allows it. The response to a token request has the form of RFC 6749.
    pub(crate) async fn fetch(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, HttpClientError> {
        let (parts, body) = request.into_parts();
        let url: Url = parts
            .uri
            .to_string()
            .parse()
            .map_err(|_| HttpClientError::Forbidden("its address cannot be read".to_owned()))?;
        check_url(&self.resource, &url).map_err(HttpClientError::Forbidden)?;
        let token_form = TokenForm::parse(&parts, &body);
        let sending = async {
            let Some(form) = token_form else {
                let send =
                    || self.send(url.clone(), parts.method.clone(), parts.headers.clone(), body.clone());
                let response = self.requested_waits.obey(&url, send).await?;
                return Ok(lenient::normalize_registration(response, &body));
            };
            let mut response = self.request_token(&url, parts.headers.clone(), body).await?;
            if lenient::refuses_resource(&response)
                && let Some(body) = form.without_resource
            {
                let second = self.request_token(&url, parts.headers, body).await?;
                if second.status().is_success() {
                    response = second;
                }
            }
            let response = lenient::normalize_token_response(response, form.is_refresh);
            Ok(lenient::hide_secrets(response, &form.secrets))
        };
        tokio::time::timeout(REQUEST_TIMEOUT, sending).await.map_err(|_| HttpClientError::TimedOut)?
    }

    /// Sends a token request.
    async fn request_token(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<http::Response<Vec<u8>>, HttpClientError> {
        let send = || self.send_token_request(url, headers.clone(), body.clone());
        self.requested_waits.obey(url, send).await
    }

    /// Sends a token request, with a proof if the login has one.
    async fn send_token_request(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<http::Response<Vec<u8>>, HttpClientError> {
        let proof = self.proof.lock().clone().filter(|it| it.token_endpoint == url.as_str());
        let Some(TokenProof { key, .. }) = proof else {
            return self.send(url.clone(), Method::POST, headers, body).await;
        };
        let response = self.send_proven(&key, None, url, headers.clone(), body.clone()).await?;
        let Some(nonce) = requested_nonce(&response) else { return Ok(response) };
        self.send_proven(&key, Some(&nonce), url, headers, body).await
    }

    /// Sends a token request with a proof by `key`. `nonce` is the one that the server requests for proofs, if it does.
    async fn send_proven(
        &self,
        key: &ProofKey,
        nonce: Option<&str>,
        url: &Url,
        mut headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<http::Response<Vec<u8>>, HttpClientError> {
        let request = ProvenRequest { method: "POST", url, token: None, body: None, nonce };
        let value = key.prove(&request, now()).and_then(|it| HeaderValue::try_from(it).ok());
        let value =
            value.ok_or_else(|| HttpClientError::Failed("the system provides no randomness".to_owned()))?;
        headers.insert("dpop", value);
        self.send(url.clone(), Method::POST, headers, body).await
    }

    /// Sends a request and reads its response.
    async fn send(
        &self,
        url: Url,
        method: Method,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<http::Response<Vec<u8>>, HttpClientError> {
        let failed = |error: reqwest::Error| HttpClientError::Failed(innermost_cause(&error));
        let mut request = Request::new(method, url);
        *request.headers_mut() = headers;
        *request.body_mut() = Some(body.into());
        let client = self.client().await.map_err(HttpClientError::Failed)?;
        let mut response = client.execute(request).await.map_err(failed)?;
        let mut received = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if received.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(HttpClientError::TooLarge);
            }
            received.extend_from_slice(&chunk);
        }
        let mut result = http::Response::new(received.to_vec());
        *result.status_mut() = response.status();
        *result.headers_mut() = response.headers().clone();
        Ok(result)
    }
}

impl OAuthHttpClient for HttpClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let request = request.request;
            let url = request.uri().to_string().parse::<Url>();
            let response = match url {
                // rmcp reads only the documents of a discovery by GET.
                Ok(url) if request.method() == Method::GET => self.fetch_document(request, &url).await,
                _ => self.fetch(request).await,
            };
            response.map_err(|it| Box::new(it) as OAuthHttpClientError)
        })
    }
}

/// The form of a token request.
struct TokenForm {
    is_refresh: bool,
    /// The form without the parameter `resource`, if it has that.
    without_resource: Option<Vec<u8>>,
    /// The secret values that are sent: a server may repeat them in its error.
    secrets: Vec<String>,
}

/// The parameters of token requests that are secret.
const SECRET_PARAMETERS: [&str; 8] = [
    "actor_token",
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "refresh_token",
    "subject_token",
];

impl TokenForm {
    /// Parses the body of a request; `None` if it is no token request.
    fn parse(parts: &http::request::Parts, body: &[u8]) -> Option<TokenForm> {
        let content_type = parts.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let is_form =
            parts.method == Method::POST && content_type.starts_with("application/x-www-form-urlencoded");
        let pairs: Vec<_> = form_urlencoded::parse(body).filter(|_| is_form).collect();
        let (_, grant_type) = pairs.iter().find(|(name, _)| name == "grant_type")?;
        let is_refresh = grant_type == "refresh_token";
        let kept: Vec<_> = pairs.iter().filter(|(name, _)| name != "resource").collect();
        let without_resource = (kept.len() < pairs.len()).then(|| {
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.extend_pairs(kept);
            form.finish().into_bytes()
        });
        let is_secret = |name: &str| SECRET_PARAMETERS.contains(&name);
        let secrets = pairs.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.to_string());
        let basic = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let basic = basic.and_then(|value| value.split_once(' ')).map(|(_, value)| value.to_owned());
        let secrets = secrets.chain(basic).collect();
        Some(TokenForm { is_refresh, without_resource, secrets })
    }
}

/// The nonce that a token endpoint requires in a proof, if it refused one without.
fn requested_nonce(response: &http::Response<Vec<u8>>) -> Option<String> {
    let error: serde_json::Value = serde_json::from_slice(response.body()).ok()?;
    let nonce = response.headers().get("dpop-nonce")?.to_str().ok()?;
    (error["error"] == "use_dpop_nonce").then(|| nonce.to_owned())
}

/// The server's own host in the form used for DNS lookups.
fn resolver_host(resource: &Url) -> Option<String> {
    match resource.host() {
        Some(Host::Domain(name)) => Some(name.to_owned()),
        Some(Host::Ipv4(it)) => Some(it.to_string()),
        Some(Host::Ipv6(it)) => Some(it.to_string()),
        None => None,
    }
}

/// A resolver that removes addresses that a login must not reach.
struct GuardedResolver {
    server_host: Option<String>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let server_host = self.server_host.clone();
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let addresses = resolve_host(&name).await?;
            let allowed: Vec<SocketAddr> = match server_host {
                Some(server_host) if server_host == name => addresses,
                Some(server_host) => {
                    let server_host = resolve_host(&server_host)
                        .await
                        .map(|it| host_scope(&it))
                        .unwrap_or(NetworkScope::Public);
                    let is_allowed = |it: &SocketAddr| may_reach(server_host, network_scope(it.ip()));
                    addresses.into_iter().filter(is_allowed).collect()
                }
                None => Vec::new(),
            };
            if allowed.is_empty() {
                return Err("its address is in a network that the server must not refer to".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

async fn resolve_host(name: &str) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, 0)]);
    }
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

/// The network scope of a server with these addresses. If they differ, the one that permits the least.
fn host_scope(addresses: &[SocketAddr]) -> NetworkScope {
    let mut all = addresses.iter().map(|it| network_scope(it.ip()));
    let Some(first) = all.next() else { return NetworkScope::Public };
    if all.all(|it| it == first) { first } else { NetworkScope::Public }
}

/// The innermost cause of an error. The outer ones may contain the URL.
fn innermost_cause(error: &reqwest::Error) -> String {
    if error.is_dns() {
        return "the host name cannot be resolved".to_owned();
    }
    match error.source() {
        Some(source) => tls::root_cause(source).to_string(),
        None => "the cause is unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FailingResolver;

    impl reqwest::dns::Resolve for FailingResolver {
        fn resolve(&self, _name: reqwest::dns::Name) -> reqwest::dns::Resolving {
            Box::pin(async { Err("what the resolver says".into()) })
        }
    }

    /// The error message for an unreachable URL.
    async fn error_message(url: &str) -> String {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        let client = builder.dns_resolver(std::sync::Arc::new(FailingResolver)).build().unwrap();
        innermost_cause(&client.get(url).send().await.unwrap_err())
    }

    #[tokio::test]
    async fn dns_and_tls_failures_have_different_messages() {
        assert_eq!(error_message("http://example.com/?key=secret").await, "the host name cannot be resolved");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/?key=secret", listener.local_addr().unwrap());
        let peer = async {
            use tokio::io::AsyncWriteExt;
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            socket
        };
        let (message, _socket) = tokio::join!(error_message(&url), peer);
        let want =
            "TLS failed: the server does not speak TLS (received corrupt message of type InvalidContentType)";
        assert_eq!(message, want);
    }
}
