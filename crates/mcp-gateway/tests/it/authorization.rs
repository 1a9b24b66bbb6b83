//! Access tokens of an authorization server: which are accepted, what they show, and what refusals say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use mcp_host_gateway::{GatewayOptions, HttpOptions, ResourceServer, ScopeMap, Tokens};
use mcp_host_model::Secret;
use mcp_testkit::wait::wait_until;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Reply, TestGateway, initialize, modern};

const RESOURCE: &str = "https://tools.example/mcp";
const SCOPES: &str = "read servers=demo tools=demo__echo\nwrite tools=*__add\nother servers=own\n";

/// An authorization server with two keys, of which it publishes one at first.
struct Issuer {
    url: String,
    keys: [EcdsaKeyPair; 2],
    publishes_both: Arc<AtomicBool>,
    key_requests: Arc<AtomicUsize>,
}

impl Issuer {
    async fn start() -> Issuer {
        let random = ring::rand::SystemRandom::new();
        let keys = [(); 2].map(|()| {
            let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap()
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string();
        let published = keys.iter().enumerate().map(|(number, key)| {
            let (x, y) = key.public_key().as_ref()[1..].split_at(32);
            json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": format!("key{number}"),
                "x": encode(x), "y": encode(y)})
        });
        let published: Vec<Value> = published.collect();
        let (publishes_both, key_requests) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (both, count) = (Arc::clone(&publishes_both), Arc::clone(&key_requests));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let head = read_head(&mut stream).await;
                let (status, body) = if head.starts_with("GET /keys ") {
                    count.fetch_add(1, Ordering::SeqCst);
                    let number = if both.load(Ordering::SeqCst) { 2 } else { 1 };
                    ("200 OK", json!({"keys": published[..number]}).to_string())
                } else if head.starts_with("GET /.well-known/openid-configuration ") {
                    ("200 OK", metadata.clone())
                } else {
                    ("404 Not Found", String::new())
                };
                let reply = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(reply.as_bytes()).await;
            }
        });
        Issuer { url, keys, publishes_both, key_requests }
    }

    /// The claims of a token that is accepted.
    fn claims(&self) -> Value {
        json!({"iss": self.url, "aud": RESOURCE, "sub": "ann", "scope": "read", "exp": now() + 60})
    }

    /// A signed token with other claims.
    fn token(&self, more: Value) -> String {
        self.sign_token(json!({"alg": "ES256", "typ": "at+jwt", "kid": "key0"}), more, 0)
    }

    fn sign_token(&self, header: Value, more: Value, key: usize) -> String {
        let mut claims = self.claims();
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let text = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let random = ring::rand::SystemRandom::new();
        let signature = self.keys[key].sign(&random, text.as_bytes()).unwrap();
        format!("{text}.{}", encode(signature))
    }

    /// A token that is signed with the public key as a secret.
    fn hmac_token(&self) -> String {
        let header = json!({"alg": "HS256", "kid": "key0"}).to_string();
        let text = format!("{}.{}", encode(header), encode(self.claims().to_string()));
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, self.keys[0].public_key().as_ref());
        format!("{text}.{}", encode(ring::hmac::sign(&key, text.as_bytes())))
    }

    /// A gateway that accepts its tokens, and has fetched its keys.
    async fn gateway(&self, scopes: &str, tokens: &str) -> TestGateway {
        let mut resource_server = ResourceServer::new(&self.url, Some(RESOURCE)).unwrap();
        resource_server.scopes = ScopeMap::read(scopes).unwrap();
        let tokens = Tokens::read(&Secret::new(tokens.to_owned())).unwrap();
        let resource_server = Some(resource_server);
        let mut options = HttpOptions::default();
        options.tokens = tokens;
        options.resource_server = resource_server;
        let fixture = TestGateway::with(GatewayOptions::default(), options).await;
        wait_until(|| self.key_requests.load(Ordering::SeqCst) > 0).await;
        fixture
    }
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { break };
        head.push(byte);
    }
    String::from_utf8(head).unwrap()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Sends a modern request of this method, and for a call the name of the tool, with a token.
async fn send_modern(
    fixture: &TestGateway,
    path: &str,
    token: Option<&str>,
    request: (&str, Option<&str>),
) -> Reply {
    let (method, name) = request;
    let params = name.map(|name| format!(r#""name":"{name}","arguments":{{"text":"x","a":1,"b":2}}"#));
    let (mut headers, body) = modern(method, name, &params.unwrap_or_default());
    headers.extend(token.map(|token| ("authorization", format!("Bearer {token}"))));
    headers.push(("content-type", "application/json".to_owned()));
    headers.push(("accept", "application/json, text/event-stream".to_owned()));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fixture.http("POST", path, &headers, &body).await
}

fn tool_names(reply: &Reply) -> Vec<String> {
    let tools = reply.json()["result"]["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn only_valid_access_tokens_are_accepted() {
    let issuer = Issuer::start().await;
    let fixture = issuer.gateway(SCOPES, "").await;
    let es256 = |more: Value| {
        let mut header = json!({"alg": "ES256", "kid": "key0"});
        header.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        issuer.sign_token(header, json!({}), 0)
    };
    let unsigned = |algorithm: &str| {
        let header = encode(json!({"alg": algorithm}).to_string());
        format!("{header}.{}.", encode(issuer.claims().to_string()))
    };
    let padded = format!("{}=", issuer.token(json!({})));
    let expired = "the access token has expired";
    let no_jwt = "the access token is not a jwt, or its algorithm is unknown";
    let no_subject = "the access token names no subject";
    let foreign = "the access token is for another resource";
    let unknown_key = "the access token is signed with an unknown key";
    let incomplete = "the access token has no expiry, issuer or audience";
    for (token, status, reason) in [
        (issuer.token(json!({})), 200, ""),
        (issuer.token(json!({"aud": ["x", RESOURCE]})), 200, ""),
        (issuer.token(json!({"scope": null, "scp": ["read"]})), 200, ""),
        (issuer.token(json!({"exp": now() - 10, "nbf": now() + 10})), 200, ""),
        (issuer.token(json!({"sub": null, "client_id": "service"})), 200, ""),
        (issuer.token(json!({"iss": "https://id.example"})), 401, "the access token is of another issuer"),
        (issuer.token(json!({"iss": null})), 401, incomplete),
        (issuer.token(json!({"iss": [issuer.url]})), 401, "the access token is not a valid jwt"),
        (issuer.token(json!({"exp": now() as f64 + 60.5})), 200, ""),
        (issuer.token(json!({"exp": now() as f64 - 60.5})), 401, expired),
        (
            issuer.token(json!({"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}})),
            401,
            "the access token is bound to a key, and the gateway takes no proofs of possession",
        ),
        (issuer.token(json!({"aud": "https://tools.example/mcpx"})), 401, foreign),
        (issuer.token(json!({"aud": "https://tools.example"})), 401, foreign),
        (issuer.token(json!({"aud": "https://tools.example/mcp/demo"})), 401, foreign),
        (issuer.token(json!({"aud": null})), 401, "the access token is not a valid jwt"),
        (issuer.token(json!({"exp": now() - 60})), 401, expired),
        (issuer.token(json!({"exp": null})), 401, "the access token is not a valid jwt"),
        (issuer.token(json!({"exp": "never"})), 401, "the access token is not a valid jwt"),
        (issuer.token(json!({"nbf": now() + 60})), 401, "the access token is not yet valid"),
        (issuer.token(json!({"sub": ""})), 401, no_subject),
        (issuer.token(json!({"sub": "a\nb"})), 401, no_subject),
        (unsigned("none"), 401, no_jwt),
        (unsigned("ES256"), 401, "the signature of the access token is wrong"),
        (issuer.hmac_token(), 401, "the access token is not signed with an accepted algorithm"),
        (issuer.sign_token(json!({"alg": "ES256", "kid": "x"}), json!({}), 0), 401, unknown_key),
        (issuer.sign_token(json!({"alg": "ES384", "kid": "key0"}), json!({}), 0), 401, unknown_key),
        (issuer.sign_token(json!({"alg": "RS256", "kid": "key0"}), json!({}), 0), 401, unknown_key),
        (
            issuer.sign_token(json!({"alg": "ES256", "kid": "key0"}), json!({}), 1),
            401,
            "the signature of the access token is wrong",
        ),
        (es256(json!({"typ": "oauth-id-jag+jwt"})), 401, "the jwt is not an access token"),
        (
            es256(json!({"crit": ["b64"]})),
            401,
            "the access token has critical extensions that are not supported",
        ),
        (padded, 401, "the access token is not a valid jwt"),
        ("x".to_owned(), 401, no_jwt),
        ("a.b.c".to_owned(), 401, no_jwt),
        (issuer.token(json!({"more": "x".repeat(20_000)})), 401, "the access token is too long"),
        (
            issuer.token(json!({"scope": "unknown"})),
            403,
            "the access token has no scope that shows anything here",
        ),
        (issuer.token(json!({"scope": null})), 403, "the access token has no scope that shows anything here"),
    ] {
        let reply = send_modern(&fixture, "/mcp", Some(&token), ("tools/list", None)).await;
        let challenge = reply.header("www-authenticate").unwrap_or_default();
        assert_eq!(reply.status, status, "{challenge} {}", reply.body);
        let error = match status {
            200 => {
                assert_eq!(tool_names(&reply), ["demo__echo"]);
                continue;
            }
            401 => "invalid_token",
            _ => "insufficient_scope",
        };
        let metadata = "https://tools.example/.well-known/oauth-protected-resource/mcp";
        let expected = format!(
            "bearer error=\"{error}\", error_description=\"{reason}\", scope=\"read\", resource_metadata=\"{metadata}\""
        );
        assert_eq!(challenge, expected);
        assert!(reply.body.to_ascii_lowercase().contains(reason), "{}", reply.body);
    }
    // Forged key ids have caused at most one fetch.
    assert!(issuer.key_requests.load(Ordering::SeqCst) <= 2);
    // Without a token there is no error code.
    let reply = send_modern(&fixture, "/mcp/demo", None, ("tools/list", None)).await;
    let metadata = "https://tools.example/.well-known/oauth-protected-resource/mcp/demo";
    let expected = format!("bearer scope=\"read\", resource_metadata=\"{metadata}\"");
    assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some(expected)));
    for path in ["/mcp", "/metrics"] {
        assert_eq!(fixture.http("GET", path, &[], "").await.status, 401);
    }
    assert_eq!(fixture.http("GET", "/healthz", &[], "").await.status, 200);
    fixture.end().await;
}

#[tokio::test]
async fn metadata_names_resource_issuer_and_first_scope() {
    let issuer = Issuer::start().await;
    let fixture = issuer.gateway(SCOPES, "").await;
    let get = async |path: &str| {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let reply = fixture.http("GET", &path, &[], "").await;
        if reply.status == 200 { reply.json() } else { json!(reply.status) }
    };
    let whole = get("/mcp").await;
    assert_eq!(
        whole,
        json!({"resource": RESOURCE, "authorization_servers": [issuer.url], "scopes_supported": ["read"],
            "bearer_methods_supported": ["header"], "resource_name": "mcp-host"})
    );
    assert_eq!(get("").await, whole);
    assert_eq!(get("/mcp/demo").await["resource"], "https://tools.example/mcp/demo");
    assert_eq!(get("/mcp/").await, whole);
    for path in ["/other", "/mcp/a/b", "/mcpx"] {
        assert_eq!(get(path).await, 404, "{path}");
    }
    // A server is a resource of its own, and its tokens are for it only.
    let token = issuer.token(json!({"aud": "https://tools.example/mcp/demo"}));
    assert_eq!(
        tool_names(&send_modern(&fixture, "/mcp/demo", Some(&token), ("tools/list", None)).await),
        ["demo__echo"]
    );
    for path in ["/mcp", "/mcp/own"] {
        assert_eq!(send_modern(&fixture, path, Some(&token), ("tools/list", None)).await.status, 401);
    }
    fixture.end().await;
    // Without an authorization server there is no metadata.
    let fixture = TestGateway::new().await;
    let path = "/.well-known/oauth-protected-resource/mcp";
    assert_eq!(fixture.http("GET", path, &[], "").await.status, 404);
    fixture.end().await;
}

#[tokio::test]
async fn missing_scope_of_a_call_is_named() {
    let issuer = Issuer::start().await;
    let fixture = issuer.gateway(SCOPES, "").await;
    let (read, both) = (issuer.token(json!({})), issuer.token(json!({"scope": "write read"})));
    let call = async |token: &str, tool: &str| {
        send_modern(&fixture, "/mcp", Some(token), ("tools/call", Some(tool))).await
    };
    assert_eq!(call(&read, "demo__echo").await.status, 200);
    let refused = call(&read, "demo__add").await;
    assert_eq!((refused.status, &refused.json()["id"]), (403, &json!(1)));
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"write\""),
        "{challenge}"
    );
    assert_eq!(call(&both, "demo__add").await.status, 200);
    // No scope shows it, so that none is named.
    assert!(call(&read, "demo__nothing").await.header("www-authenticate").is_none());
    let hidden = send_modern(
        &fixture,
        "/mcp/own",
        Some(&issuer.token(json!({"aud": RESOURCE}))),
        ("tools/list", None),
    )
    .await;
    assert!(
        hidden.status == 403 && hidden.header("www-authenticate").unwrap().contains("scope=\"write\""),
        "{hidden:?}"
    );

    // A session accepts the next token of its user, with more scopes or fewer, but not that of another user.
    let bearer = |token: &str| format!("Bearer {token}");
    let session = fixture.initialize(&[("authorization", &bearer(&read))]).await;
    let add = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__add","arguments":{"a":1,"b":2}}}"#;
    let add = async |token: &str| {
        let token = bearer(token);
        fixture.post(&[("authorization", &*token), ("mcp-session-id", &*session)], add).await.status
    };
    assert_eq!((add(&read).await, add(&both).await, add(&read).await), (403, 200, 403));
    assert_eq!(add(&issuer.token(json!({"sub": "bob", "scope": "write"}))).await, 404);
    assert_eq!(add(&issuer.token(json!({"exp": now() - 60}))).await, 401);
    fixture.end().await;
}

// RPT-253
#[tokio::test]
async fn stream_of_a_session_needs_the_scope_of_the_session() {
    let issuer = Issuer::start().await;
    let fixture = issuer.gateway("read tools=demo__echo\nall\n", "").await;
    let bearer = |scope: &str| format!("Bearer {}", issuer.token(json!({"scope": scope})));
    let (read, all) = (bearer("read"), bearer("all"));
    let session = fixture.initialize(&[("authorization", &all)]).await;
    let status = async |token: &str| {
        let headers =
            [("authorization", token), ("mcp-session-id", &session), ("accept", "application/json")];
        fixture.http("GET", "/mcp", &headers, "").await.status
    };
    // With this `Accept`, a stream that could be opened is refused with 406.
    assert_eq!((status(&read).await, status(&all).await), (404, 406));
    fixture.end().await;
}

#[tokio::test]
async fn listed_tokens_are_accepted_besides_access_tokens() {
    let issuer = Issuer::start().await;
    let fixture = issuer.gateway("", "ann-0123456789abcdef name=ann").await;
    let begun = async |token: &str| {
        let bearer = format!("Bearer {token}");
        fixture.post(&[("authorization", &*bearer)], &initialize("2025-11-25")).await.status
    };
    assert_eq!(begun("ann-0123456789abcdef").await, 200);
    assert_eq!(begun(&issuer.token(json!({"scope": null}))).await, 200);
    assert_eq!(begun("ann-0123456789abcdeX").await, 401);
    fixture.end().await;
}

#[tokio::test(start_paused = true)]
async fn new_keys_are_fetched_for_an_unknown_key_id() {
    let issuer = Issuer::start().await;
    let fixture = issuer.gateway("", "").await;
    let old = issuer.token(json!({}));
    let new = issuer.sign_token(json!({"alg": "ES256", "kid": "key1"}), json!({}), 1);
    let status =
        async |token: &str| send_modern(&fixture, "/mcp", Some(token), ("tools/list", None)).await.status;
    assert_eq!((status(&old).await, status(&new).await), (200, 401));
    issuer.publishes_both.store(true, Ordering::SeqCst);
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert_eq!((status(&new).await, status(&old).await), (200, 200));
    fixture.end().await;
}
