//! A server's `requestState`, on its way through a client and back.
//!
//! A server of the stateless era sees one client, the gateway, and cannot tell whose a state is that comes back to it. So
//! each goes out sealed, for the client, server and thing it was given for, and nothing comes back that was not given
//! out so. The key is of this process alone: a state does not outlive it.

use blake3::Hasher;
use mcp_model::ServerId;

use crate::access::principal::Principal;
use crate::access::secret_id::secret_id;

/// What every sealed state begins with.
const MARK: &str = "mcp-host-sealed:";
/// The digits of a seal.
const DIGITS: usize = 64;

/// The key.
pub(crate) struct Seal([u8; 32]);

/// What a state was given for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sealed<'a> {
    /// To whom.
    pub(crate) principal: &'a Principal,
    /// By whom.
    pub(crate) server: &'a ServerId,
    /// For a request of this method.
    pub(crate) method: &'a str,
    /// For this tool, prompt or resource.
    pub(crate) name: &'a str,
}

impl Seal {
    /// A key that nobody has.
    pub(crate) fn new() -> Seal {
        Seal(blake3::derive_key("mcp-gateway 2026 requestState of servers", secret_id().as_bytes()))
    }

    /// The state as the client gets it.
    pub(crate) fn seal(&self, of: &Sealed<'_>, state: &str) -> String {
        format!("{MARK}{}{state}", self.hash(of, state).to_hex())
    }

    /// The state as the server gave it; `None` where it was not given for this.
    pub(crate) fn open<'a>(&self, of: &Sealed<'_>, sealed: &'a str) -> Option<&'a str> {
        let (hash, state) = sealed.strip_prefix(MARK)?.split_at_checked(DIGITS)?;
        let hash = blake3::Hash::from_hex(hash).ok()?;
        // Compared in constant time.
        (hash == self.hash(of, state)).then_some(state)
    }

    fn hash(&self, of: &Sealed<'_>, state: &str) -> blake3::Hash {
        let Sealed { principal, server, method, name } = of;
        let mut hasher = Hasher::new_keyed(&self.0);
        for part in [&principal.to_string(), server.as_str(), method, name, state] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_opened_for_what_it_was_given_for_and_unchanged() {
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let (one, other) = (ServerId::parse("one").unwrap(), ServerId::parse("other").unwrap());
        let given = Sealed { principal: &ann, server: &one, method: "tools/call", name: "ask" };
        let (seal, another) = (Seal::new(), Seal::new());
        let sealed = seal.seal(&given, "é{}");
        assert_eq!(seal.open(&given, &sealed), Some("é{}"));
        assert_eq!(another.open(&given, &sealed), None);
        for wrong in [
            Sealed { principal: &bob, ..given },
            Sealed { server: &other, ..given },
            Sealed { method: "prompts/get", ..given },
            Sealed { name: "as", ..given },
        ] {
            assert_eq!(seal.open(&wrong, &sealed), None, "{wrong:?}");
        }
        for changed in [format!("{sealed}x"), sealed.replace("é", "e"), "é{}".to_owned(), MARK.to_owned()] {
            assert_eq!(seal.open(&given, &changed), None, "{changed}");
        }
        assert_eq!(seal.open(&given, &seal.seal(&given, "")), Some(""));
    }
}
