//! An MCP server that requires authorization, and its authorization server, on one loopback port.
//!
//! Clients register, codes are used once and proven with PKCE, refresh tokens are used once, and a token is
//! valid for its scopes until it is revoked. The user agrees at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Response, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oauth2::{PkceCodeChallenge, PkceCodeVerifier};
use serde_json::{Value, json};

/// The scope of every login.
pub(crate) const BASIC: &str = "basic";
/// The additional scope that the tool `admin` requires.
pub(crate) const ADMIN: &str = "admin";

/// The running server. Its tasks end with the test's runtime.
pub(crate) struct Authority {
    /// The URL of the MCP server.
    pub(crate) url: String,
    state: Arc<Mutex<AuthorityState>>,
}

/// What the server knows, how it behaves, and what it received.
#[derive(Default)]
pub(crate) struct AuthorityState {
    origin: String,
    next: usize,
    clients: BTreeMap<String, Vec<String>>,
    codes: BTreeMap<String, Code>,
    /// Valid tokens, with their scopes.
    pub(crate) tokens: BTreeMap<String, BTreeSet<String>>,
    refresh: BTreeMap<String, BTreeSet<String>>,
    /// The number of requests of each kind: `authorize`, `code`, `refresh`, `register`.
    pub(crate) counts: BTreeMap<&'static str, usize>,
    /// What was requested_scopes for at each login.
    pub(crate) requested_scopes: Vec<String>,
    /// `expires_in` of new tokens, in seconds.
    pub(crate) token_lifetime: u64,
    /// Whether tool calls get an error that repeats the token.
    pub(crate) repeats_token: bool,
    /// Whether it has a revocation endpoint.
    pub(crate) has_revocation: bool,
    /// The id and secret of a client that was registered by hand. It has no redirect URI of its own.
    pub(crate) preregistered: Option<(String, String)>,
    /// Every secret that it was token or has made.
    pub(crate) secrets: Vec<String>,
    /// The issuer that its metadata names instead of itself.
    pub(crate) claimed_issuer: Option<String>,
    /// The authorization servers that the resource names instead of itself.
    pub(crate) named_authorities: Option<Value>,
    /// The identifier that the resource states instead of its URL.
    pub(crate) stated_resource: Option<String>,
    /// Members of tokens that replace the usual ones; null removes one.
    pub(crate) token_members: Value,
    /// Whether the token endpoint refuses the parameter `resource` as unknown.
    pub(crate) refuses_resource: bool,
    /// The issuer in redirects, instead of its own.
    pub(crate) redirect_issuer: Option<String>,
    /// The response to every refresh, instead of a token.
    pub(crate) refresh_response: Option<(u16, Value)>,
    /// Whether the reuse of a refresh token ends the login.
    pub(crate) detects_reuse: bool,
    /// It requires_proof tokens to keys, and the MCP server requests that.
    pub(crate) requires_proof: bool,
    /// The proofs of possession: path, header and claims of each.
    pub(crate) proofs: Vec<(String, Value, Value)>,
    /// Whether the resource has no metadata of its own.
    pub(crate) has_no_resource_metadata: bool,
    /// The identifier that metadata at the root states; `None`: there is no such metadata.
    pub(crate) root_resource: Option<String>,
    /// Whether it answers the first request to each path, other than that of the MCP server and the login page, with
    /// 503 and `Retry-After`.
    pub(crate) is_busy_at_first: bool,
    /// The paths that were requested while it was busy.
    busy_paths: BTreeSet<String>,
    /// Whether the response to a registration has the id of the client only.
    pub(crate) registers_tersely: bool,
    /// Whether it refuses the redirect URI of every registration.
    pub(crate) refuses_redirects: bool,
    /// Refresh tokens that were used.
    used_refresh_tokens: BTreeSet<String>,
}

struct Code {
    client: String,
    redirect: String,
    challenge: String,
    scopes: BTreeSet<String>,
}

type Pairs = BTreeMap<String, String>;

impl Authority {
    pub(crate) async fn start() -> Authority {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let state =
            AuthorityState { origin: origin.clone(), token_lifetime: 3600, ..AuthorityState::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let app = axum::Router::new().fallback(move |request: Request| {
            let state = Arc::clone(&shared);
            async move {
                let (head, body) = request.into_parts();
                let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
                let bearer = head.headers.get("authorization").and_then(|it| it.to_str().ok());
                let scheme = if state.lock().unwrap().requires_proof { "DPoP " } else { "Bearer " };
                let bearer = bearer.and_then(|value| value.strip_prefix(scheme)).map(str::to_owned);
                let basic = head.headers.get("authorization").and_then(|it| it.to_str().ok());
                let basic = basic.and_then(|value| value.strip_prefix("Basic ")).map(str::to_owned);
                let mut state = state.lock().unwrap();
                let path = head.uri.path();
                if path == "/mcp" && head.method != "POST" {
                    return plain(405, &Value::Null);
                }
                if matches!(path, "/token" | "/revoke") && !state.is_authenticated(basic) {
                    return plain(401, &json!({"error": "invalid_client"}));
                }
                if state.requires_proof && (path == "/token" || bearer.is_some()) {
                    let proof = head.headers.get("dpop").and_then(|it| it.to_str().ok()).unwrap_or_default();
                    let mut parts = proof.split('.').map(|part| {
                        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap_or_default()
                    });
                    let (Some(header), Some(claims)) = (parts.next(), parts.next()) else {
                        return plain(400, &json!({"error": "invalid_dpop_proof"}));
                    };
                    state.proofs.push((path.to_owned(), header, claims));
                }
                state.respond(path, pairs(head.uri.query().unwrap_or_default()), &body, bearer)
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Authority { url: format!("{origin}/mcp"), state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, AuthorityState> {
        self.state.lock().unwrap()
    }

    /// The number of requests of a kind.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.state().counts.get(kind).copied().unwrap_or_default()
    }

    /// Makes all access tokens invalid.
    pub(crate) fn expire_tokens(&self) {
        self.state().tokens.clear();
    }

    /// Makes all access and refresh tokens invalid.
    pub(crate) fn revoke_logins(&self) {
        self.expire_tokens();
        self.state().refresh.clear();
    }
}

impl AuthorityState {
    fn respond(&mut self, path: &str, query: Pairs, body: &[u8], bearer: Option<String>) -> Response<Body> {
        let origin = self.origin.clone();
        let is_page = matches!(path, "/mcp" | "/authorize");
        if self.is_busy_at_first && !is_page && self.busy_paths.insert(path.to_owned()) {
            let response = Response::builder().status(503).header("retry-after", "0");
            return response.body(Body::empty()).unwrap();
        }
        match path {
            "/.well-known/oauth-protected-resource" if self.root_resource.is_some() => {
                let document = json!({"resource": self.root_resource, "authorization_servers": [origin],
                    "scopes_supported": [BASIC]});
                plain(200, &document)
            }
            "/mcp" => self.resource(body, bearer),
            "/.well-known/oauth-protected-resource/mcp" if self.has_no_resource_metadata => {
                plain(404, &Value::Null)
            }
            "/.well-known/oauth-protected-resource/mcp" => {
                let authorities = self.named_authorities.clone().unwrap_or_else(|| json!([origin]));
                let resource = self.stated_resource.clone().unwrap_or_else(|| format!("{origin}/mcp"));
                plain(
                    200,
                    &json!({"resource": resource, "authorization_servers": authorities,
                        "scopes_supported": [BASIC]}),
                )
            }
            "/.well-known/oauth-authorization-server" | "/.well-known/other" => {
                let mut metadata = json!({
                    "issuer": self.claimed_issuer.as_ref().unwrap_or(&origin),
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": true,
                });
                if self.requires_proof {
                    metadata["dpop_signing_alg_values_supported"] = json!(["RS256", "ES256"]);
                }
                if self.has_revocation {
                    metadata["revocation_endpoint"] = json!(format!("{origin}/revoke"));
                }
                if self.preregistered.is_some() {
                    metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic"]);
                }
                plain(200, &metadata)
            }
            "/revoke" => {
                self.add_count("revoke");
                let form = pairs(&String::from_utf8_lossy(body));
                let token = form.get("token").cloned().unwrap_or_default();
                self.tokens.remove(&token);
                self.refresh.remove(&token);
                plain(200, &Value::Null)
            }
            "/register" => self.register(body),
            "/authorize" => self.authorize(&query),
            "/token" => self.token(&pairs(&String::from_utf8_lossy(body))),
            _ => plain(404, &json!({"error": "not_found"})),
        }
    }

    fn create_value(&mut self, kind: &str) -> String {
        self.next += 1;
        let res = format!("{kind}-{:08}-secret", self.next);
        if kind != "client" {
            self.secrets.push(res.clone());
        }
        res
    }

    /// Returns whether the preregistered client, if there is one, has authenticated itself.
    fn is_authenticated(&self, basic: Option<String>) -> bool {
        let Some((id, secret)) = &self.preregistered else { return true };
        // As in a form (RFC 6749, 2.3.1).
        let escaped = |it: &str| url::form_urlencoded::byte_serialize(it.as_bytes()).collect::<String>();
        let credentials = format!("{}:{}", escaped(id), escaped(secret));
        let credentials = base64::engine::general_purpose::STANDARD.encode(credentials);
        basic.as_deref() == Some(credentials.as_str())
    }

    fn add_count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    fn register(&mut self, body: &[u8]) -> Response<Body> {
        self.add_count("register");
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let redirects: Vec<String> =
            serde_json::from_value(request["redirect_uris"].clone()).unwrap_or_default();
        if self.refuses_redirects {
            return plain(400, &json!({"error": "invalid_redirect_uri"}));
        }
        let id = self.create_value("client");
        self.clients.insert(id.clone(), redirects.clone());
        if self.registers_tersely {
            return plain(201, &json!({"client_id": id}));
        }
        plain(
            201,
            &json!({"client_id": id, "redirect_uris": redirects, "token_endpoint_auth_method": "none"}),
        )
    }

    fn authorize(&mut self, query: &Pairs) -> Response<Body> {
        self.add_count("authorize");
        let of = |key: &str| query.get(key).cloned().unwrap_or_default();
        let (client, redirect) = (of("client_id"), of("redirect_uri"));
        let known = self.clients.get(&client).is_some_and(|redirects| redirects.contains(&redirect))
            || self.preregistered.as_ref().is_some_and(|(id, _)| *id == client);
        let is_valid = of("response_type") == "code"
            && of("code_challenge_method") == "S256"
            && of("resource") == format!("{}/mcp", self.origin)
            && !of("state").is_empty();
        if !known || !is_valid {
            return plain(400, &json!({"error": "invalid_request"}));
        }
        self.requested_scopes.push(of("scope"));
        let scopes = of("scope").split_whitespace().map(str::to_owned).collect();
        let code = self.create_value("code");
        self.codes.insert(
            code.clone(),
            Code { client, redirect: redirect.clone(), challenge: of("code_challenge"), scopes },
        );
        let mut back: url::Url = redirect.parse().unwrap();
        back.query_pairs_mut().append_pair("code", &code).append_pair("state", &of("state"));
        back.query_pairs_mut().append_pair("iss", self.redirect_issuer.as_ref().unwrap_or(&self.origin));
        let response = Response::builder().status(StatusCode::FOUND).header("location", back.as_str());
        response.body(Body::empty()).unwrap()
    }

    fn token(&mut self, form: &Pairs) -> Response<Body> {
        let of = |key: &str| form.get(key).cloned().unwrap_or_default();
        let refused = || plain(400, &json!({"error": "invalid_grant"}));
        if self.refuses_resource && form.contains_key("resource") {
            let text = "unknown parameter resource";
            return plain(400, &json!({"error": "invalid_request", "error_description": text}));
        }
        if !self.refuses_resource && of("resource") != format!("{}/mcp", self.origin) {
            return plain(400, &json!({"error": "invalid_target"}));
        }
        let scopes = match of("grant_type").as_str() {
            "authorization_code" => {
                self.add_count("code");
                let Some(code) = self.codes.remove(&of("code")) else { return refused() };
                self.secrets.push(of("code_verifier"));
                let proof = PkceCodeVerifier::new(of("code_verifier"));
                let proof = PkceCodeChallenge::from_code_verifier_sha256(&proof);
                let client =
                    self.preregistered.as_ref().map_or_else(|| of("client_id"), |(id, _)| id.clone());
                let is_valid = code.client == client
                    && code.redirect == of("redirect_uri")
                    && proof.as_str() == code.challenge;
                if !is_valid {
                    return refused();
                }
                code.scopes
            }
            "client_credentials"
            | "urn:ietf:params:oauth:grant-type:jwt-bearer"
            | "urn:ietf:params:oauth:grant-type:token-exchange" => {
                self.add_count("unattended");
                let is_valid = match of("grant_type").rsplit(':').next() {
                    Some("jwt-bearer") => of("assertion") == "workload",
                    Some("token-exchange") => {
                        of("subject_token") == "caller" && of("subject_token_type").ends_with(":access_token")
                    }
                    _ => true,
                };
                if !is_valid {
                    return refused();
                }
                of("scope").split_whitespace().map(str::to_owned).collect()
            }
            "refresh_token" => {
                self.add_count("refresh");
                if let Some((status, body)) = &self.refresh_response {
                    return plain(*status, body);
                }
                let token = of("refresh_token");
                if self.detects_reuse && self.used_refresh_tokens.contains(&token) {
                    self.tokens.clear();
                    self.refresh.clear();
                }
                match self.refresh.remove(&token) {
                    Some(scopes) => {
                        self.used_refresh_tokens.insert(token);
                        scopes
                    }
                    None => return refused(),
                }
            }
            _ => return plain(400, &json!({"error": "unsupported_grant_type"})),
        };
        let (access, refresh) = (self.create_value("access"), self.create_value("refresh"));
        self.tokens.insert(access.clone(), scopes.clone());
        self.refresh.insert(refresh.clone(), scopes.clone());
        let scope = scopes.into_iter().collect::<Vec<_>>().join(" ");
        let kind = if self.requires_proof { "DPoP" } else { "Bearer" };
        let mut token = json!({"access_token": access, "token_type": kind, "expires_in": self.token_lifetime,
            "refresh_token": refresh, "scope": scope});
        for (name, value) in self.token_members.as_object().into_iter().flatten() {
            token[name] = value.clone();
        }
        token.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        plain(200, &token)
    }

    /// The MCP server, of the legacy era.
    fn resource(&mut self, body: &[u8], bearer: Option<String>) -> Response<Body> {
        let metadata =
            format!("resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"", self.origin);
        let scopes = bearer.as_ref().and_then(|it| self.tokens.get(it));
        let Some(scopes) = scopes.filter(|granted| granted.contains(BASIC)) else {
            let scheme = if self.requires_proof { "DPoP" } else { "Bearer" };
            return challenge(401, &format!("{scheme} {metadata}"));
        };
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }),
            "tools/list" => json!({"tools": [
                {"name": "echo", "inputSchema": {"type": "object"}},
                {"name": "admin", "inputSchema": {"type": "object"}},
            ]}),
            "tools/call" if message["params"]["name"] == "admin" && !scopes.contains(ADMIN) => {
                let value = format!("Bearer error=\"insufficient_scope\", scope=\"{ADMIN}\", {metadata}");
                return challenge(403, &value);
            }
            "tools/call" if self.repeats_token => {
                let text = format!("you are {}", bearer.unwrap_or_default());
                return plain(
                    500,
                    &json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": text}}),
                );
            }
            "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
            _ if message["id"].is_null() => return plain(202, &Value::Null),
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                return plain(200, &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
            }
        };
        plain(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    }
}

fn plain(status: u16, body: &Value) -> Response<Body> {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    Response::builder().status(status).header("content-type", "application/json").body(body).unwrap()
}

fn challenge(status: u16, value: &str) -> Response<Body> {
    Response::builder().status(status).header("www-authenticate", value).body(Body::empty()).unwrap()
}

fn pairs(text: &str) -> Pairs {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}
