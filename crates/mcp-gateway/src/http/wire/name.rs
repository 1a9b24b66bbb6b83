//! The names of the fields that are looked for, known from each other at a glance.

macro_rules! names {
    ($($name:ident = $text:literal,)+) => {
        /// The name of a field that is looked for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(in crate::http) enum Name {
            $($name,)+
        }

        /// All of them.
        const ALL: [Name; NAMES] = [$(Name::$name,)+];
        /// How they are written, in small letters.
        const TEXTS: [&str; NAMES] = [$($text,)+];
        /// How many there are.
        pub(super) const NAMES: usize = [$($text,)+].len();
    };
}

names! {
    Accept = "accept",
    Authorization = "authorization",
    Connection = "connection",
    ContentLength = "content-length",
    ContentType = "content-type",
    Dialog = "mcp-host-dialog",
    Expect = "expect",
    Host = "host",
    LastEventId = "last-event-id",
    Method = "mcp-method",
    Origin = "origin",
    RequestHeaders = "access-control-request-headers",
    RequestMethod = "access-control-request-method",
    Prompts = "mcp-host-prompts",
    Resources = "mcp-host-resources",
    Servers = "mcp-host-servers",
    Session = "mcp-session-id",
    Target = "mcp-name",
    Tools = "mcp-host-tools",
    TransferEncoding = "transfer-encoding",
    Version = "mcp-protocol-version",
}

const LIKENESSES: [u32; NAMES] = {
    let mut res = [0; NAMES];
    let mut at = 0;
    while at < NAMES {
        res[at] = likeness(TEXTS[at].as_bytes());
        at += 1;
    }
    res
};

/// Names that are the same have the same, however they are written; most others have another one.
const fn likeness(name: &[u8]) -> u32 {
    if name.is_empty() {
        return 0;
    }
    let (first, last) = (name[0].to_ascii_lowercase(), name[name.len() - 1].to_ascii_lowercase());
    (name.len() as u32) << 16 | (first as u32) << 8 | last as u32
}

impl Name {
    /// The one that is written so.
    pub(super) fn of(name: &[u8]) -> Option<Name> {
        let wanted = likeness(name);
        let mut alike = LIKENESSES.iter().zip(ALL).filter(|(it, _)| **it == wanted);
        alike.find(|(_, it)| is_same(name, it.text().as_bytes())).map(|(_, it)| it)
    }

    /// How it is written, in small letters.
    pub(in crate::http) fn text(self) -> &'static str {
        TEXTS[self as usize]
    }
}

/// Are they the same, however they are written?
pub(super) fn is_same(name: &[u8], other: &[u8]) -> bool {
    // Most write them in small letters.
    name == other || name.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_however_it_is_written() {
        for name in ALL {
            assert_eq!(Name::of(name.text().as_bytes()), Some(name));
            assert_eq!(Name::of(name.text().to_uppercase().as_bytes()), Some(name));
            assert_eq!(Name::of(&name.text().as_bytes()[1..]), None);
        }
        for other in ["", "h", "hoost", "hast", "mcp-host-pr0mpts"] {
            assert_eq!(Name::of(other.as_bytes()), None, "{other}");
        }
    }
}
