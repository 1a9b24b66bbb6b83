//! Fingerprints: hashes of a server's settings, for change detection.
//!
//! Each server has two: a change of the first requires a new connection, a change of the second only a new catalog.
//! Comments, layout, and the order of environment variables and headers affect neither.

use std::collections::BTreeMap;
use std::fmt;

use mcp_model::{
    Discovery, Endpoint, EnvInherit, Exposure, Filter, Limits, NameClass, NamePolicy, Rules, Secret, Sharing,
    SseFallback, StdioEndpoint, Transform, UrlEndpoint,
};

use crate::hash::Encoder;

/// The hash of settings. The settings include secrets, so `Debug` prints only a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Hashes what a running server depends on: a change requires a restart.
    pub fn of_runtime(endpoint: &Endpoint, config: Option<&Secret>, discovery: &Discovery) -> Fingerprint {
        let mut encoder = Encoder::new("mcp-registry runtime 1");
        encoder.text(endpoint.kind().as_str());
        match endpoint {
            Endpoint::Stdio(it) => stdio(&mut encoder, it),
            Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => url(&mut encoder, it),
        }
        encoder.optional(config.map(Secret::expose));
        let Discovery { tools, prompts } = *discovery;
        encoder.number(tools.into());
        encoder.number(prompts.into());
        Fingerprint(encoder.finish())
    }

    /// Hashes what affects only the exposure and use of a running server.
    pub fn of_exposure(exposure: &Exposure, limits: &Limits, sharing: Sharing) -> Fingerprint {
        let mut encoder = Encoder::new("mcp-registry exposure 2");
        let Exposure { tools, prompts, resources } = exposure;
        for it in [tools, prompts, resources] {
            rules(&mut encoder, it);
        }
        let Limits {
            request,
            idle,
            connect,
            startup,
            sse_read,
            message_bytes,
            result_bytes,
            list_items,
            list_pages,
        } = limits;
        for it in [*request, idle.unwrap_or_default(), *connect, *startup, *sse_read] {
            encoder.number(it.as_secs());
            encoder.number(it.subsec_nanos().into());
        }
        encoder.number(idle.is_some().into());
        for it in [*message_bytes, *result_bytes, *list_items, *list_pages] {
            encoder.number(it as u64);
        }
        encoder.number(match sharing {
            Sharing::Shared => 0,
            Sharing::PerOwner => 1,
        });
        Fingerprint(encoder.finish())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, ..] = self.0;
        write!(f, "Fingerprint({a:02x}{b:02x}…)")
    }
}

fn stdio(encoder: &mut Encoder, endpoint: &StdioEndpoint) {
    let StdioEndpoint { command, args, env, inherit, cwd, encoding } = endpoint;
    encoder.text(command);
    encoder.list(args.iter().map(Secret::expose));
    // Of variables with one name the last counts, as in the child.
    let env: BTreeMap<&str, &Secret> = env.iter().map(|(name, value)| (name.as_str(), value)).collect();
    encoder.number(env.len() as u64);
    for (name, value) in env {
        encoder.text(name);
        encoder.text(value.expose());
    }
    encoder.number(match inherit {
        EnvInherit::None => 0,
        EnvInherit::Safe => 1,
        EnvInherit::All => 2,
    });
    encoder.number(cwd.is_some().into());
    encoder.bytes(cwd.as_deref().map(|it| it.as_os_str().as_encoded_bytes()).unwrap_or_default());
    encoder.text(encoding);
}

fn url(encoder: &mut Encoder, endpoint: &UrlEndpoint) {
    let UrlEndpoint { url, headers, session_id, terminate_on_close, sse_fallback } = endpoint;
    encoder.text(url.as_str());
    // Header names are case-insensitive; the order of headers with one name counts.
    let mut headers: Vec<(String, &str)> =
        headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.expose())).collect();
    headers.sort_by(|left, right| left.0.cmp(&right.0));
    encoder.number(headers.len() as u64);
    for (name, value) in headers {
        encoder.text(&name);
        encoder.text(value);
    }
    encoder.optional(session_id.as_ref().map(Secret::expose));
    encoder.number((*terminate_on_close).into());
    encoder.number(match sse_fallback {
        SseFallback::Never => 0,
        SseFallback::Allowed => 1,
    });
}

fn rules(encoder: &mut Encoder, rules: &Rules) {
    let Rules { filter: Filter { whitelist, blacklist }, transforms, naming, limit } = rules;
    encoder.list(whitelist.iter().map(String::as_str));
    encoder.list(blacklist.iter().map(String::as_str));
    encoder.number(transforms.len() as u64);
    for it in transforms {
        match it {
            Transform::Prefix { remove, add } => {
                encoder.number(0);
                encoder.text(remove);
                encoder.text(add);
            }
            Transform::Suffix(suffix) => {
                encoder.number(1);
                encoder.text(suffix);
            }
        }
    }
    encoder.number(match naming {
        NamePolicy::Reject => 0,
        NamePolicy::Qualify { class: NameClass::Strict } => 1,
        NamePolicy::Qualify { class: NameClass::WithDot } => 2,
        NamePolicy::Pass => 3,
        NamePolicy::Normalise { class: NameClass::Strict } => 4,
        NamePolicy::Normalise { class: NameClass::WithDot } => 5,
        NamePolicy::Slug => 6,
    });
    encoder.number(limit.bytes() as u64);
}

#[cfg(test)]
mod tests;
