//! The names of the fields that are looked for.

/// How long the longest of them is, in bytes.
const LONGEST: usize = 32;

macro_rules! names {
    ($($name:ident = $text:literal,)+) => {
        /// The name of a field that is looked for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(in crate::http) enum Name {
            $($name,)+
        }

        #[cfg(test)]
        const ALL: [Name; NAMES] = [$(Name::$name,)+];
        /// How they are written, in small letters.
        const TEXTS: [&str; NAMES] = [$($text,)+];
        /// How many there are.
        pub(super) const NAMES: usize = [$($text,)+].len();

        fn of_small(name: &str) -> Option<Name> {
            match name {
                $($text => Some(Name::$name),)+
                _ => None,
            }
        }
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

impl Name {
    /// The one that is written so.
    pub(super) fn of(name: &str) -> Option<Name> {
        // Most write them in small letters.
        let has_capitals = || name.bytes().any(|it| it.is_ascii_uppercase());
        of_small(name).or_else(|| has_capitals().then(|| of_any(name))?)
    }

    /// How it is written, in small letters.
    pub(in crate::http) fn text(self) -> &'static str {
        TEXTS[self as usize]
    }
}

fn of_any(name: &str) -> Option<Name> {
    let mut room = [0; LONGEST];
    let small = room.get_mut(..name.len())?;
    small.copy_from_slice(name.as_bytes());
    small.make_ascii_lowercase();
    of_small(str::from_utf8(small).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_however_it_is_written() {
        for name in ALL {
            assert!(name.text().len() <= LONGEST);
            assert_eq!(Name::of(name.text()), Some(name));
            assert_eq!(Name::of(&name.text().to_uppercase()), Some(name));
            assert_eq!(Name::of(&name.text()[1..]), None);
        }
        for other in ["", "h", "hoost", "hast", "mcp-host-pr0mpts"] {
            assert_eq!(Name::of(other), None, "{other}");
        }
    }
}
