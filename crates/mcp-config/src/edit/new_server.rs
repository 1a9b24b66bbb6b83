//! Makes the spec of a new server from a few values. All others are the defaults of the dialect.

use mcp_host_model::{
    Dialect, EnvInheritance, Exposure, NameClass, NamePolicy, Profile, ServerId, ServerSpec, Sharing,
    SpecOrigin, StdioSpec, TransportKind, TransportSpec, UrlSpec,
};

use crate::diagnostic::redact::{NamesOnly, redact_url};
use crate::syntax::template::{ReferenceRule, parse_value};

/// A server to add to a file.
///
/// `${NAME}` in a value is an environment variable, in any dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewServer {
    /// Its name.
    pub id: ServerId,
    /// What it is for.
    pub description: Option<String>,
    /// Its transport.
    pub transport: NewTransport,
}

impl NewServer {
    /// A server without a description.
    pub fn new(id: ServerId, transport: NewTransport) -> NewServer {
        NewServer { id, description: None, transport }
    }
}

/// The transport of a new server. `Debug` hides values that may be secret.
#[derive(derive_more::Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NewTransport {
    /// A program to start.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        #[debug("{}", args.len())]
        args: Vec<String>,
        /// Its environment variables.
        #[debug("{:?}", NamesOnly(env.iter().map(|(name, _)| name)))]
        env: Vec<(String, String)>,
    },
    /// A URL to connect to.
    Url {
        /// The transport.
        kind: UrlTransportKind,
        /// The URL.
        #[debug("{:?}", redact_url(url))]
        url: String,
        /// Headers of every request.
        #[debug("{:?}", NamesOnly(headers.iter().map(|(name, _)| name)))]
        headers: Vec<(String, String)>,
    },
}

/// The transports with a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlTransportKind {
    /// Streamable HTTP.
    Http,
    /// HTTP with server-sent events, 2024-11-05.
    Sse,
    /// WebSocket.
    WebSocket,
}

impl UrlTransportKind {
    /// The usual transport of a URL.
    pub fn guess(url: &str) -> UrlTransportKind {
        match url.split_once("://") {
            Some((scheme, _)) if ["ws", "wss"].iter().any(|it| it.eq_ignore_ascii_case(scheme)) => {
                UrlTransportKind::WebSocket
            }
            Some(_) | None => UrlTransportKind::Http,
        }
    }
}

impl NewServer {
    /// Replaces these variables by `${input:id}`, for a file whose editor prompts for inputs
    /// ([`prompts_for_inputs`](crate::prompts_for_inputs())). The id of `API_KEY` is `api-key`.
    #[must_use]
    pub fn with_inputs_for(mut self, variables: &[String]) -> NewServer {
        let replace_variables = |text: &mut String| {
            for name in variables {
                let id = name.to_ascii_lowercase().replace('_', "-");
                *text = text.replace(&format!("${{{name}}}"), &format!("${{input:{id}}}"));
            }
        };
        let (texts, pairs) = match &mut self.transport {
            NewTransport::Stdio { command: _, args, env } => (args.iter_mut().collect::<Vec<_>>(), env),
            NewTransport::Url { kind: _, url, headers } => (vec![url], headers),
        };
        texts.into_iter().chain(pairs.iter_mut().map(|it| &mut it.1)).for_each(replace_variables);
        self
    }

    /// The spec that a file of `profile` expresses without loss.
    pub fn into_spec(self, profile: Profile) -> ServerSpec {
        let NewServer { id, description, transport } = self;
        let dialect = profile.dialect();
        // `${input:id}` is a reference in editor files only.
        let rule = match dialect {
            Dialect::McpJson => ReferenceRule::Editor,
            Dialect::HoloDeck | Dialect::Dominds | Dialect::Acp => ReferenceRule::ExpandWithFolder,
        };
        let values = |entries: Vec<(String, String)>| {
            entries.into_iter().map(|(name, text)| (name, parse_value(&text, rule))).collect::<Vec<_>>()
        };
        let (inherit, naming, sharing) = match dialect {
            Dialect::HoloDeck => {
                (EnvInheritance::Safe, NamePolicy::Qualify { class: NameClass::Strict }, Sharing::Auto)
            }
            Dialect::Dominds => (EnvInheritance::All, NamePolicy::Reject, Sharing::PerOwner),
            Dialect::Acp => {
                (EnvInheritance::All, NamePolicy::Qualify { class: NameClass::Strict }, Sharing::PerOwner)
            }
            Dialect::McpJson => {
                (EnvInheritance::All, NamePolicy::Qualify { class: NameClass::Strict }, Sharing::Auto)
            }
        };
        let transport = match transport {
            NewTransport::Stdio { command, args, env } => {
                let mut spec = StdioSpec::new(command);
                spec.args = args.iter().map(|it| parse_value(it, rule)).collect();
                spec.env = values(env);
                spec.inherit = inherit;
                TransportSpec::Stdio(spec)
            }
            NewTransport::Url { kind, url, headers } => {
                let mut spec = UrlSpec::new(parse_value(&url, rule));
                spec.headers = values(headers);
                match kind {
                    UrlTransportKind::Http => TransportSpec::Http(spec),
                    UrlTransportKind::Sse => TransportSpec::Sse(spec),
                    UrlTransportKind::WebSocket => TransportSpec::WebSocket(spec),
                }
            }
        };
        let origin = SpecOrigin::new(profile, "");
        let mut spec = ServerSpec::new(id, origin, transport);
        (spec.description, spec.sharing) = (description, sharing);
        if spec.transport.kind() == TransportKind::Sse && dialect == Dialect::HoloDeck {
            spec.limits.connect = crate::dialect::lowering::SSE_CONNECT_TIMEOUT;
        }
        spec.exposure = Exposure::all(naming);
        if dialect == Dialect::Dominds {
            let Exposure { tools: _, prompts, resources, .. } = &mut spec.exposure;
            (prompts.naming, resources.naming) = (NamePolicy::Slug, NamePolicy::Slug);
        }
        spec
    }
}
