//! An MCP server that wants authorization, and the authorization server that gives it, on one loopback port.
//!
//! It is as strict as one that people log in to: clients register, codes are used once and proven with PKCE, refresh
//! tokens are used once too, and a token is valid for its scopes until it is revoked. Its user agrees at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Response, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oauth2::{PkceCodeChallenge, PkceCodeVerifier};
use serde_json::{Value, json};

/// What everybody may do who has logged in.
pub(crate) const BASIC: &str = "basic";
/// What the tool `admin` wants besides.
pub(crate) const ADMIN: &str = "admin";

/// The running server. Its tasks end with the test's runtime.
pub(crate) struct Authority {
    /// Where the MCP server is.
    pub(crate) url: String,
    books: Arc<Mutex<Books>>,
}

/// What it knows, and what it has seen.
#[derive(Default)]
pub(crate) struct Books {
    origin: String,
    next: usize,
    clients: BTreeMap<String, Vec<String>>,
    codes: BTreeMap<String, Code>,
    /// Tokens that are good, with their scopes.
    pub(crate) tokens: BTreeMap<String, BTreeSet<String>>,
    refresh: BTreeMap<String, BTreeSet<String>>,
    /// How often each thing was done: `authorize`, `code`, `refresh`, `register`.
    pub(crate) done: BTreeMap<&'static str, usize>,
    /// What was asked for at each login.
    pub(crate) asked: Vec<String>,
    /// How long new tokens are said to last.
    pub(crate) lasting: u64,
    /// Tool calls are answered with an error that repeats the token.
    pub(crate) blabs: bool,
    /// It says where tokens are given back.
    pub(crate) revokes: bool,
    /// A client that was registered by hand, and its secret: it has no redirect of its own.
    pub(crate) by_hand: Option<(String, String)>,
    /// Every secret that it was shown or has made.
    pub(crate) secrets: Vec<String>,
    /// It names a document of this path as its authorization server. The document claims to be of this issuer.
    pub(crate) poses_as: Option<String>,
    /// A renewal token that was used up ends the whole login of who shows it again.
    pub(crate) strict: bool,
    /// It binds tokens to keys, and the MCP server requests that.
    pub(crate) binds: bool,
    /// The proofs of possession: path, header and claims of each.
    pub(crate) proofs: Vec<(String, Value, Value)>,
    /// Renewal tokens that were used up.
    used: BTreeSet<String>,
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
        let books = Books { origin: origin.clone(), lasting: 3600, ..Books::default() };
        let books = Arc::new(Mutex::new(books));
        let shared = Arc::clone(&books);
        let app = axum::Router::new().fallback(move |request: Request| {
            let books = Arc::clone(&shared);
            async move {
                let (head, body) = request.into_parts();
                let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
                let bearer = head.headers.get("authorization").and_then(|it| it.to_str().ok());
                let scheme = if books.lock().unwrap().binds { "DPoP " } else { "Bearer " };
                let bearer = bearer.and_then(|value| value.strip_prefix(scheme)).map(str::to_owned);
                let basic = head.headers.get("authorization").and_then(|it| it.to_str().ok());
                let basic = basic.and_then(|value| value.strip_prefix("Basic ")).map(str::to_owned);
                let mut books = books.lock().unwrap();
                let path = head.uri.path();
                if path == "/mcp" && head.method != "POST" {
                    return plain(405, &Value::Null);
                }
                if matches!(path, "/token" | "/revoke") && !books.is_known(basic) {
                    return plain(401, &json!({"error": "invalid_client"}));
                }
                if books.binds && (path == "/token" || bearer.is_some()) {
                    let proof = head.headers.get("dpop").and_then(|it| it.to_str().ok()).unwrap_or_default();
                    let mut parts = proof.split('.').map(|part| {
                        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap_or_default()
                    });
                    let (Some(header), Some(claims)) = (parts.next(), parts.next()) else {
                        return plain(400, &json!({"error": "invalid_dpop_proof"}));
                    };
                    books.proofs.push((path.to_owned(), header, claims));
                }
                books.answer(path, pairs(head.uri.query().unwrap_or_default()), &body, bearer)
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Authority { url: format!("{origin}/mcp"), books }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// How often something was done.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.books().done.get(what).copied().unwrap_or_default()
    }

    /// All tokens for requests are worth nothing from now on.
    pub(crate) fn end_tokens(&self) {
        self.books().tokens.clear();
    }

    /// Those for new tokens, too.
    pub(crate) fn end_logins(&self) {
        self.end_tokens();
        self.books().refresh.clear();
    }
}

impl Books {
    fn answer(&mut self, path: &str, query: Pairs, body: &[u8], bearer: Option<String>) -> Response<Body> {
        let origin = self.origin.clone();
        match path {
            "/mcp" => self.resource(body, bearer),
            "/.well-known/oauth-protected-resource/mcp" => {
                let document = self.poses_as.as_ref().map_or("", |_| "/.well-known/other");
                let authority = format!("{origin}{document}");
                plain(
                    200,
                    &json!({"resource": format!("{origin}/mcp"), "authorization_servers": [authority], "scopes_supported": [BASIC]}),
                )
            }
            "/.well-known/oauth-authorization-server" | "/.well-known/other" => {
                let mut metadata = json!({
                    "issuer": self.poses_as.as_ref().unwrap_or(&origin),
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": true,
                });
                if self.binds {
                    metadata["dpop_signing_alg_values_supported"] = json!(["RS256", "ES256"]);
                }
                if self.revokes {
                    metadata["revocation_endpoint"] = json!(format!("{origin}/revoke"));
                }
                if self.by_hand.is_some() {
                    metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic"]);
                }
                plain(200, &metadata)
            }
            "/revoke" => {
                self.did("revoke");
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

    fn name(&mut self, what: &str) -> String {
        self.next += 1;
        let res = format!("{what}-{:08}-secret", self.next);
        if what != "client" {
            self.secrets.push(res.clone());
        }
        res
    }

    /// Says a client that was registered by hand who it is? The others have nothing to say.
    fn is_known(&self, basic: Option<String>) -> bool {
        let Some((id, secret)) = &self.by_hand else { return true };
        // As in a form (RFC 6749, 2.3.1).
        let escaped = |it: &str| url::form_urlencoded::byte_serialize(it.as_bytes()).collect::<String>();
        let both = format!("{}:{}", escaped(id), escaped(secret));
        let both = base64::engine::general_purpose::STANDARD.encode(both);
        basic.as_deref() == Some(both.as_str())
    }

    fn did(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    fn register(&mut self, body: &[u8]) -> Response<Body> {
        self.did("register");
        let wish: Value = serde_json::from_slice(body).unwrap_or_default();
        let redirects: Vec<String> =
            serde_json::from_value(wish["redirect_uris"].clone()).unwrap_or_default();
        let id = self.name("client");
        self.clients.insert(id.clone(), redirects.clone());
        plain(
            201,
            &json!({"client_id": id, "redirect_uris": redirects, "token_endpoint_auth_method": "none"}),
        )
    }

    fn authorize(&mut self, query: &Pairs) -> Response<Body> {
        self.did("authorize");
        let of = |key: &str| query.get(key).cloned().unwrap_or_default();
        let (client, redirect) = (of("client_id"), of("redirect_uri"));
        let known = self.clients.get(&client).is_some_and(|redirects| redirects.contains(&redirect))
            || self.by_hand.as_ref().is_some_and(|(id, _)| *id == client);
        let sound = of("response_type") == "code"
            && of("code_challenge_method") == "S256"
            && of("resource") == format!("{}/mcp", self.origin)
            && !of("state").is_empty();
        if !known || !sound {
            return plain(400, &json!({"error": "invalid_request"}));
        }
        self.asked.push(of("scope"));
        let scopes = of("scope").split_whitespace().map(str::to_owned).collect();
        let code = self.name("code");
        self.codes.insert(
            code.clone(),
            Code { client, redirect: redirect.clone(), challenge: of("code_challenge"), scopes },
        );
        let mut back: url::Url = redirect.parse().unwrap();
        back.query_pairs_mut().append_pair("code", &code).append_pair("state", &of("state"));
        back.query_pairs_mut().append_pair("iss", &self.origin);
        let response = Response::builder().status(StatusCode::FOUND).header("location", back.as_str());
        response.body(Body::empty()).unwrap()
    }

    fn token(&mut self, form: &Pairs) -> Response<Body> {
        let of = |key: &str| form.get(key).cloned().unwrap_or_default();
        let refused = || plain(400, &json!({"error": "invalid_grant"}));
        if of("resource") != format!("{}/mcp", self.origin) {
            return plain(400, &json!({"error": "invalid_target"}));
        }
        let scopes = match of("grant_type").as_str() {
            "authorization_code" => {
                self.did("code");
                let Some(code) = self.codes.remove(&of("code")) else { return refused() };
                self.secrets.push(of("code_verifier"));
                let proof = PkceCodeVerifier::new(of("code_verifier"));
                let proof = PkceCodeChallenge::from_code_verifier_sha256(&proof);
                let client = self.by_hand.as_ref().map_or_else(|| of("client_id"), |(id, _)| id.clone());
                let sound = code.client == client
                    && code.redirect == of("redirect_uri")
                    && proof.as_str() == code.challenge;
                if !sound {
                    return refused();
                }
                code.scopes
            }
            "client_credentials"
            | "urn:ietf:params:oauth:grant-type:jwt-bearer"
            | "urn:ietf:params:oauth:grant-type:token-exchange" => {
                self.did("unattended");
                let sound = match of("grant_type").rsplit(':').next() {
                    Some("jwt-bearer") => of("assertion") == "workload",
                    Some("token-exchange") => {
                        of("subject_token") == "caller" && of("subject_token_type").ends_with(":access_token")
                    }
                    _ => true,
                };
                if !sound {
                    return refused();
                }
                of("scope").split_whitespace().map(str::to_owned).collect()
            }
            "refresh_token" => {
                self.did("refresh");
                let shown = of("refresh_token");
                if self.strict && self.used.contains(&shown) {
                    self.tokens.clear();
                    self.refresh.clear();
                }
                match self.refresh.remove(&shown) {
                    Some(scopes) => {
                        self.used.insert(shown);
                        scopes
                    }
                    None => return refused(),
                }
            }
            _ => return plain(400, &json!({"error": "unsupported_grant_type"})),
        };
        let (access, refresh) = (self.name("access"), self.name("refresh"));
        self.tokens.insert(access.clone(), scopes.clone());
        self.refresh.insert(refresh.clone(), scopes.clone());
        let scope = scopes.into_iter().collect::<Vec<_>>().join(" ");
        let kind = if self.binds { "DPoP" } else { "Bearer" };
        plain(
            200,
            &json!({"access_token": access, "token_type": kind, "expires_in": self.lasting, "refresh_token": refresh, "scope": scope}),
        )
    }

    /// The MCP server, of the legacy era.
    fn resource(&mut self, body: &[u8], bearer: Option<String>) -> Response<Body> {
        let metadata =
            format!("resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"", self.origin);
        let scopes = bearer.as_ref().and_then(|it| self.tokens.get(it));
        let Some(scopes) = scopes.filter(|granted| granted.contains(BASIC)) else {
            let scheme = if self.binds { "DPoP" } else { "Bearer" };
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
                let said = format!("Bearer error=\"insufficient_scope\", scope=\"{ADMIN}\", {metadata}");
                return challenge(403, &said);
            }
            "tools/call" if self.blabs => {
                let said = format!("you are {}", bearer.unwrap_or_default());
                return plain(
                    500,
                    &json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": said}}),
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

fn challenge(status: u16, said: &str) -> Response<Body> {
    Response::builder().status(status).header("www-authenticate", said).body(Body::empty()).unwrap()
}

fn pairs(text: &str) -> Pairs {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}
