//! Names of configuration entries.

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

use crate::server::id::ServerId;

/// The name of an entry as it is written: the id of its server, or a text that is no id. Such an entry is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a text is an id, or it is none")]
pub enum ServerName {
    /// The id of a server.
    Id(ServerId),
    /// A text that is not the id of any server.
    Invalid(String),
}

impl ServerName {
    /// Returns the id. `None` if the name is invalid.
    pub fn id(&self) -> Option<&ServerId> {
        match self {
            ServerName::Id(id) => Some(id),
            ServerName::Invalid(_) => None,
        }
    }

    /// Returns the name as written.
    pub fn as_str(&self) -> &str {
        match self {
            ServerName::Id(id) => id.as_str(),
            ServerName::Invalid(name) => name,
        }
    }
}

impl From<ServerId> for ServerName {
    fn from(id: ServerId) -> ServerName {
        ServerName::Id(id)
    }
}

impl From<&str> for ServerName {
    fn from(name: &str) -> ServerName {
        ServerId::parse(name).map_or_else(|_| ServerName::Invalid(name.to_owned()), ServerName::Id)
    }
}

impl PartialEq<ServerId> for ServerName {
    fn eq(&self, other: &ServerId) -> bool {
        self.id() == Some(other)
    }
}

impl PartialEq<str> for ServerName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for ServerName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Deref for ServerName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for ServerName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}
