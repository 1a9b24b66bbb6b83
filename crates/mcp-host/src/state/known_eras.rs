//! The cache of the protocol era of each server, so that the next start needs no probe.
//!
//! An entry may be outdated. The session then tries the other era, and the result replaces the entry.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use mcp_host_model::{Endpoint, Era, ServerId};
use parking_lot::Mutex;

/// The maximum number of entries. If it is reached, the cache is cleared.
const MAX_SERVERS: usize = 4096;

/// The eras by server id and endpoint, because another command or version may have another era.
#[derive(Debug, Default)]
pub(crate) struct KnownEras(Mutex<HashMap<(ServerId, EndpointHash), Era>>);

/// A hash of the command with its arguments, or of the URL.
type EndpointHash = u64;

impl KnownEras {
    /// Returns the last era of a server.
    pub(crate) fn get(&self, id: &ServerId, endpoint: &Endpoint) -> Option<Era> {
        self.0.lock().get(&(id.clone(), endpoint_hash(endpoint))).copied()
    }

    /// Stores the era of a server.
    pub(crate) fn insert(&self, id: &ServerId, endpoint: &Endpoint, era: Era) {
        let mut known = self.0.lock();
        if known.len() >= MAX_SERVERS {
            known.clear();
        }
        known.insert((id.clone(), endpoint_hash(endpoint)), era);
    }
}

fn endpoint_hash(endpoint: &Endpoint) -> EndpointHash {
    let mut hasher = DefaultHasher::new();
    match endpoint {
        Endpoint::Stdio(stdio) => {
            (&stdio.command, &stdio.cwd).hash(&mut hasher);
            stdio.args.iter().for_each(|argument| argument.expose().hash(&mut hasher));
        }
        Endpoint::Sse(url) | Endpoint::WebSocket(url) | Endpoint::Http(url) => url.url.hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use mcp_host_model::StdioEndpoint;

    use super::*;

    fn stdio(command: &str, arguments: &[&str]) -> Endpoint {
        let mut endpoint = StdioEndpoint::new(command);
        endpoint.args = arguments.iter().map(|it| (*it).into()).collect();
        Endpoint::Stdio(endpoint)
    }

    #[test]
    fn entries_are_keyed_by_id_and_endpoint() {
        let known = KnownEras::default();
        let id = |text: &str| ServerId::parse(text).unwrap();
        let npx = stdio("npx", &["server@1"]);
        known.insert(&id("a"), &npx, Era::Legacy);
        known.insert(&id("a"), &npx, Era::Modern);
        assert_eq!(known.get(&id("a"), &npx), Some(Era::Modern));
        assert_eq!(known.get(&id("b"), &npx), None);
        assert_eq!(known.get(&id("a"), &stdio("uvx", &["server@1"])), None);
        assert_eq!(known.get(&id("a"), &stdio("npx", &["server@2"])), None);
        for number in 0..MAX_SERVERS {
            known.insert(&id(&number.to_string()), &npx, Era::Legacy);
        }
        assert_eq!(known.0.lock().len(), 1);
    }
}
