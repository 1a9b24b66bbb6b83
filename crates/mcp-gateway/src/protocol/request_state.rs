//! Seals the `requestState` of servers while clients hold it.
//!
//! The gateway is a server's only client, so the server cannot tell to which of the gateway's clients it gave a state.
//! The gateway therefore binds each state to its client, server and request, and accepts only states that it sealed.
//! The key belongs to this process, so a state is void after a restart.

use mcp_host_model::ServerId;

use crate::access::principal::Principal;
use crate::access::secret_id::{HASH_DIGITS, keyed_hash, new_secret_id};

/// The prefix of a sealed state.
const SEALED_PREFIX: &str = "mcp-host-sealed:";

/// Seals and opens states with this key.
pub(crate) struct StateSealer([u8; 32]);

/// The client, server and request that a state is bound to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateBinding<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) server: &'a ServerId,
    pub(crate) method: &'a str,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(crate) name: &'a str,
}

impl StateSealer {
    /// A sealer with a random key.
    pub(crate) fn new() -> StateSealer {
        let secret = new_secret_id();
        StateSealer(blake3::derive_key("mcp-gateway 2026 requestState of servers", secret.as_bytes()))
    }

    /// Seals a server's state for a client.
    pub(crate) fn seal(&self, binding: &StateBinding<'_>, state: &str) -> String {
        format!("{SEALED_PREFIX}{}{state}", self.hash(binding, state).to_hex())
    }

    /// Returns the server's state; `None` if it was not sealed for this binding.
    pub(crate) fn open<'a>(&self, binding: &StateBinding<'_>, sealed: &'a str) -> Option<&'a str> {
        let (hash, state) = sealed.strip_prefix(SEALED_PREFIX)?.split_at_checked(HASH_DIGITS)?;
        let hash = blake3::Hash::from_hex(hash).ok()?;
        (hash == self.hash(binding, state)).then_some(state)
    }

    fn hash(&self, binding: &StateBinding<'_>, state: &str) -> blake3::Hash {
        let StateBinding { principal, server, method, name } = binding;
        keyed_hash(&self.0, &[&principal.to_string(), server.as_str(), method, name, state])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_opens_only_unchanged_and_for_its_binding() {
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let (server, other) = (ServerId::parse("server").unwrap(), ServerId::parse("other").unwrap());
        let binding = StateBinding { principal: &ann, server: &server, method: "tools/call", name: "ask" };
        let (sealer, other_sealer) = (StateSealer::new(), StateSealer::new());
        let sealed = sealer.seal(&binding, "é{}");
        assert_eq!(sealer.open(&binding, &sealed), Some("é{}"));
        assert_eq!(other_sealer.open(&binding, &sealed), None);
        for wrong in [
            StateBinding { principal: &bob, ..binding },
            StateBinding { server: &other, ..binding },
            StateBinding { method: "prompts/get", ..binding },
            StateBinding { name: "as", ..binding },
        ] {
            assert_eq!(sealer.open(&wrong, &sealed), None, "{wrong:?}");
        }
        for changed in
            [format!("{sealed}x"), sealed.replace("é", "e"), "é{}".to_owned(), SEALED_PREFIX.to_owned()]
        {
            assert_eq!(sealer.open(&binding, &changed), None, "{changed}");
        }
        assert_eq!(sealer.open(&binding, &sealer.seal(&binding, "")), Some(""));
    }
}
