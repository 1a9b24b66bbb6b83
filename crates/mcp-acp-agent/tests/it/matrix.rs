//! A table of requests over the wire, by version, declared capabilities, method and transport
//! (ACP-033, ACP-035, ACP-039).

use agent_client_protocol::{Agent, Client, ConnectTo, Error, on_receive_request, v1, v2};
use mcp_host_acp::{Capabilities, Policy};
use mcp_host_acp_agent::{
    ForkSession, ForkSessionV2, LoadSession, NewSession, NewSessionV2, ResumeSession, ResumeSessionV2,
    SessionServers, TypedSessionRequest,
};
use serde_json::{Value, json};

use crate::raw_client::RawClient;
use crate::sessions::{options, summary};

/// Connects the servers of a request, as an agent does. Returns their states, which become the session id.
async fn connect_servers(
    request: impl TypedSessionRequest,
    capabilities: Capabilities,
) -> Result<String, Error> {
    let validated = request.validate(&capabilities, Policy::default()).await?;
    let session = SessionServers::connect(validated, options()).await?;
    Ok(summary(&session))
}

/// Adds a handler of each request type to the builder. `$response` makes a response of the states of the servers.
macro_rules! with_session_handlers {
    ($builder:expr, $version:ident, $capabilities:expr, $($request:ident => $response:expr),+ $(,)?) => {{
        let builder = $builder;
        $(let builder = {
            let capabilities = $capabilities.clone();
            builder.on_receive_request(
                async move |request: $request,
                            responder: $version::Responder<_>,
                            connection: $version::ConnectionTo<Client>| {
                    let (capabilities, cancelled) = (capabilities.clone(), responder.cancellation());
                    connection.spawn(async move {
                        let done = cancelled.run_until_cancelled(connect_servers(request, capabilities)).await;
                        responder.respond_with_result(done.map($response))
                    })
                },
                on_receive_request!(),
            )
        };)+
        builder
    }};
}

fn agent_v1(capabilities: &Capabilities) -> impl ConnectTo<Client> + 'static {
    use agent_client_protocol::v1::schema::{
        ForkSessionResponse, InitializeRequest, InitializeResponse, LoadSessionResponse, NewSessionResponse,
        ResumeSessionResponse,
    };
    let builder = Agent.v1().on_receive_request(
        async |it: InitializeRequest,
               responder: v1::Responder<InitializeResponse>,
               _: v1::ConnectionTo<Client>| {
            responder.respond(InitializeResponse::new(it.protocol_version))
        },
        on_receive_request!(),
    );
    with_session_handlers!(
        builder, v1, capabilities,
        NewSession => NewSessionResponse::new,
        LoadSession => |_| LoadSessionResponse::new(),
        ResumeSession => |_| ResumeSessionResponse::new(),
        ForkSession => ForkSessionResponse::new,
    )
}

fn agent_v2(capabilities: &Capabilities) -> impl ConnectTo<Client> + 'static {
    use agent_client_protocol::v2::schema::{
        ForkSessionResponse, Implementation, InitializeRequest, InitializeResponse, NewSessionResponse,
        ResumeSessionResponse,
    };
    let builder = Agent.v2().on_receive_request(
        async |it: InitializeRequest,
               responder: v2::Responder<InitializeResponse>,
               _: v2::ConnectionTo<Client>| {
            responder.respond(InitializeResponse::new(it.protocol_version, Implementation::new("agent", "1")))
        },
        on_receive_request!(),
    );
    with_session_handlers!(
        builder, v2, capabilities,
        NewSessionV2 => NewSessionResponse::new,
        ResumeSessionV2 => |_| ResumeSessionResponse::new(),
        ForkSessionV2 => ForkSessionResponse::new,
    )
}

/// A server of this transport in the form of the version.
fn entry(version: u8, transport: &str) -> Value {
    match (version, transport) {
        (1, "stdio") => json!({"name": "a", "command": "/opt/a", "args": [], "env": []}),
        (_, "stdio") => json!({"type": "stdio", "name": "a", "command": "/opt/a"}),
        (_, "acp") => json!({"type": "acp", "name": "a", "serverId": "server-1"}),
        (_, "_own") => json!({"type": "_own", "name": "a"}),
        (_, url) => json!({"type": url, "name": "a", "url": "https://a.example/mcp", "headers": []}),
    }
}

const TRANSPORTS: [&str; 5] = ["stdio", "http", "sse", "acp", "_own"];

/// A line of the table: the outcome of a request with one server, for each transport.
async fn table_row(version: u8, declared: &str, method: &str) -> String {
    let has = |it: &str| declared.split('+').any(|declared| declared == it);
    let mut capabilities = Capabilities::STDIO;
    capabilities.stdio = has("stdio");
    capabilities.http = has("http");
    capabilities.sse = has("sse");
    capabilities.acp = has("acp");
    let mut client = match version {
        1 => RawClient::connect(agent_v1(&capabilities)),
        _ => RawClient::connect(agent_v2(&capabilities)),
    };
    let initialize_params = match version {
        1 => json!({"protocolVersion": 1}),
        _ => json!({"protocolVersion": 2, "info": {"name": "client", "version": "1"}, "capabilities": {}}),
    };
    client.request("initialize", initialize_params).await;
    let mut cells = Vec::new();
    for transport in TRANSPORTS {
        let servers = json!([entry(version, transport)]);
        let params = json!({"cwd": std::env::temp_dir(), "sessionId": "s", "mcpServers": servers});
        let answer = client.request(method, params).await;
        let cell = match (answer.get("result"), &answer["error"]) {
            (Some(_), _) => "ok".to_owned(),
            (None, error) => {
                let (code, data) = (&error["code"], &error["data"]);
                match &data["requestedTransport"] {
                    Value::String(requested) => {
                        assert_eq!(
                            (requested.as_str(), &data["declaredCapability"]),
                            (transport, &json!(false))
                        );
                        format!("{code}*")
                    }
                    _ => code.to_string(),
                }
            }
        };
        cells.push(cell);
    }
    format!("{version} {declared:<18} {method:<14} {}", cells.join(" "))
}

/// A `*` follows the code of an error that names the transport and says that it was not declared.
#[tokio::test(start_paused = true)]
async fn acp_002_acp_003_acp_016_acp_033_acpx_11_undeclared_transports_are_refused_and_others_connected() {
    let mut rows = vec![format!("v {:<18} {:<14} {}", "declared", "method", TRANSPORTS.join(" "))];
    for version in [1, 2] {
        for declared in ["none", "stdio", "stdio+http", "stdio+sse", "stdio+http+sse+acp"] {
            for method in ["session/new", "session/load", "session/resume", "session/fork"] {
                rows.push(table_row(version, declared, method).await);
            }
        }
    }
    insta::assert_snapshot!(rows.join("\n"));
}
