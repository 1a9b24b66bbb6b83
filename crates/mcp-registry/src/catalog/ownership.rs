//! Who owns which names: the host its own, each server the toolset of its id and what its lists show under its rules.
//!
//! For a host that takes servers' lists in as they come, from tasks that know nothing of each other. Each change needs
//! the token of the change before it: who comes with an older one has been overtaken, and changes nothing. So a start
//! that took too long cannot bring back what a later one has replaced, and nobody takes away what is not his.
//!
//! A value, without a lock: clone it, make all of a reload's changes, put the clone in its place. Which of two owners
//! has a name that both want is not kept here; the catalog that is built of it says so, by their order.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use mcp_model::ServerId;

use crate::catalog::catalog::Catalog;
use crate::catalog::lists::{Builtins, ServerEntry};

/// Who has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// The host itself: nothing here ever takes it away.
    Host,
    /// A server.
    Server(&'a ServerId),
}

/// What its holder may change: one owner's names, once. Tokens are equal only to their clones; none can be made up.
#[derive(Clone)]
pub struct Token(Arc<Mark>);

/// Something that takes up room, so that each has an address of its own.
struct Mark(#[expect(dead_code, reason = "its address is what counts")] u8);

impl Token {
    fn fresh() -> Token {
        Token(Arc::new(Mark(0)))
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why a change was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnershipError {
    /// The id is the name of a toolset that somebody has (DM-033).
    #[error("server `{server}` cannot be added: {}; give it another id", match .by_host {
        true => "the host itself has a toolset of this name",
        false => "another server has this name",
    })]
    Taken {
        /// The server that wanted it.
        server: ServerId,
        /// Is it the host that has it?
        by_host: bool,
    },
    /// The server has been changed since this token was given; the change with the newer one stands.
    #[error("server `{server}` was changed meanwhile: this change is out of date, and was not made")]
    Stale {
        /// The server.
        server: ServerId,
    },
    /// The server owns nothing here, any more or yet.
    #[error("server `{server}` is not here: it was removed, or never added")]
    Absent {
        /// The server.
        server: ServerId,
    },
}

/// The owners of names, in the configuration's order, each with the token of its last change.
#[derive(Debug, Clone, Default)]
pub struct Ownership {
    builtins: Builtins,
    entries: Vec<ServerEntry>,
    /// That of the entry at the same place.
    tokens: Vec<Token>,
}

impl Ownership {
    /// The host's own names, and no server.
    pub fn new(builtins: Builtins) -> Ownership {
        Ownership { builtins, entries: Vec::new(), tokens: Vec::new() }
    }

    /// Adds a server behind the others. Fails where its id is the name of somebody's toolset.
    pub fn claim(&mut self, entry: ServerEntry) -> Result<Token, OwnershipError> {
        let by_host = self.builtins.toolsets.iter().any(|it| it == entry.id.as_str());
        if by_host || self.place(&entry.id).is_some() {
            return Err(OwnershipError::Taken { server: entry.id, by_host });
        }
        let token = Token::fresh();
        self.entries.push(entry);
        self.tokens.push(token.clone());
        Ok(token)
    }

    /// Puts other rules and lists in the place of a server's. Fails where `token` is not that of its last change.
    pub fn update(&mut self, token: &Token, entry: ServerEntry) -> Result<Token, OwnershipError> {
        let at = self.held(token, &entry.id)?;
        let token = Token::fresh();
        self.entries[at] = entry;
        self.tokens[at] = token.clone();
        Ok(token)
    }

    /// Removes a server and all its names. Fails where `token` is not that of its last change.
    pub fn release(&mut self, token: &Token, server: &ServerId) -> Result<ServerEntry, OwnershipError> {
        let at = self.held(token, server)?;
        self.tokens.remove(at);
        Ok(self.entries.remove(at))
    }

    /// Puts the servers into the order of the configuration: those that `order` names first, the others behind them
    /// as they were. The order decides who has a name that two want, and changes nobody's token.
    pub fn arrange(&mut self, order: &[ServerId]) {
        let places: HashMap<&ServerId, usize> = order.iter().enumerate().map(|(at, id)| (id, at)).collect();
        let rank = |it: &ServerEntry| places.get(&it.id).copied().unwrap_or(order.len());
        let mut both: Vec<_> = self.entries.drain(..).zip(self.tokens.drain(..)).collect();
        both.sort_by_key(|(entry, _)| rank(entry));
        (self.entries, self.tokens) = both.into_iter().unzip();
    }

    /// The servers, in order.
    pub fn entries(&self) -> &[ServerEntry] {
        &self.entries
    }

    /// The token of a server's last change, for whoever may speak for all of them.
    pub fn token(&self, server: &ServerId) -> Option<&Token> {
        self.place(server).map(|at| &self.tokens[at])
    }

    /// What they show.
    pub fn catalog(&self) -> Catalog {
        Catalog::build(&self.builtins, &self.entries)
    }

    fn place(&self, server: &ServerId) -> Option<usize> {
        self.entries.iter().position(|it| it.id == *server)
    }

    fn held(&self, token: &Token, server: &ServerId) -> Result<usize, OwnershipError> {
        let at = self.place(server).ok_or_else(|| OwnershipError::Absent { server: server.clone() })?;
        if self.tokens[at] == *token {
            return Ok(at);
        }
        Err(OwnershipError::Stale { server: server.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::catalog::tests::dominds;
    use crate::catalog::lists::ListKind;

    fn id(text: &str) -> ServerId {
        ServerId::parse(text).unwrap()
    }

    fn entry(text: &str) -> ServerEntry {
        dominds(text).remove(0)
    }

    fn owners() -> Ownership {
        Ownership::new(Builtins { tools: vec!["read_file".to_owned()], toolsets: vec!["os".to_owned()] })
    }

    #[track_caller]
    fn check(ownership: &Ownership, want: &str) {
        let catalog = ownership.catalog();
        let tools = catalog.tools().iter().map(|it| format!("{}@{}", it.name, it.server));
        assert_eq!(tools.collect::<Vec<_>>().join(" "), want);
    }

    #[test]
    fn dm_097_who_was_overtaken_changes_nothing() {
        let mut owners = owners();
        let first = owners.claim(entry("a: x y")).unwrap();
        let second = owners.update(&first, entry("a: z")).unwrap();
        check(&owners, "z@a");

        let stale = OwnershipError::Stale { server: id("a") };
        assert_eq!(owners.update(&first, entry("a: late")).unwrap_err(), stale);
        assert_eq!(owners.release(&first, &id("a")).unwrap_err(), stale);
        check(&owners, "z@a");

        owners.release(&second, &id("a")).unwrap();
        check(&owners, "");
        let absent = OwnershipError::Absent { server: id("a") };
        assert_eq!(owners.update(&second, entry("a: again")).unwrap_err(), absent);
        // Whoever comes under the same name later is somebody else.
        owners.claim(entry("a: new")).unwrap();
        assert_eq!(owners.release(&second, &id("a")).unwrap_err(), stale);
        check(&owners, "new@a");
    }

    #[test]
    fn dm_055_dm_097_nobody_takes_what_is_anothers() {
        let mut owners = owners();
        let a = owners.claim(entry("a: x read_file")).unwrap();
        let b = owners.claim(entry("b: x z")).unwrap();
        check(&owners, "x@a z@b");
        assert_eq!(owners.release(&a, &id("b")).unwrap_err(), OwnershipError::Stale { server: id("b") });
        let catalog = owners.catalog();
        assert_eq!(catalog.owner(ListKind::Tool, "read_file"), Some(Owner::Host));
        assert_eq!(catalog.owner(ListKind::Tool, "x"), Some(Owner::Server(&id("a"))));
        assert_eq!(catalog.owner(ListKind::Tool, "y"), None);
        assert_eq!(catalog.toolset_owner("os"), Some(Owner::Host));
        assert_eq!(catalog.toolset_owner("b"), Some(Owner::Server(&id("b"))));
        // A name that one leaves is free for the next (DM-109).
        owners.update(&a, entry("a: y")).unwrap();
        check(&owners, "y@a x@b z@b");
        owners.release(&b, &id("b")).unwrap();
        check(&owners, "y@a");
    }

    #[test]
    fn dm_033_a_toolsets_name_is_claimed_once() {
        let mut owners = owners();
        owners.claim(entry("a: x")).unwrap();
        let refused = |owners: &mut Ownership, text| owners.claim(entry(text)).unwrap_err().to_string();
        assert_eq!(
            refused(&mut owners, "a: y"),
            "server `a` cannot be added: another server has this name; give it another id"
        );
        assert_eq!(
            refused(&mut owners, "os: y"),
            "server `os` cannot be added: the host itself has a toolset of this name; give it another id"
        );
        check(&owners, "x@a");
    }

    #[test]
    fn a_clone_is_changed_as_a_whole_or_not_at_all() {
        let mut owners = owners();
        let a = owners.claim(entry("a: x")).unwrap();
        let mut next = owners.clone();
        next.update(&a, entry("a: y")).unwrap();
        next.claim(entry("b: x")).unwrap();
        check(&owners, "x@a");
        check(&next, "y@a x@b");
        // The clone has gone on: the token of its past is good for the past only.
        assert!(next.update(&a, entry("a: z")).is_err());
        assert!(owners.update(&a, entry("a: z")).is_ok());
    }

    #[test]
    fn the_configurations_order_decides_and_moves_no_token() {
        let mut owners = owners();
        let a = owners.claim(entry("a: dup x")).unwrap();
        owners.claim(entry("b: dup y")).unwrap();
        owners.claim(entry("c: dup z")).unwrap();
        owners.arrange(&[id("c"), id("nobody"), id("a")]);
        check(&owners, "dup@c z@c x@a y@b");
        assert_eq!(owners.token(&id("a")), Some(&a));
        assert_eq!(owners.entries().len(), 3);
        assert_eq!(format!("{a:?}"), "Token(…)");
    }
}
