//! What an entry is reached by: the words for it, a command or a URL, and what follows where nobody says (DIA-03, DIA-04,
//! DIA-08).

use mcp_model::{ConfigValue, SseFallback, TransportKind};

use super::fields::Values;
use super::lower::Context;
use super::roots::Host;
use super::wire::Kind;
use crate::de::{At, Got, MaybeNull, Pass};
use crate::diagnostic::Code;
use crate::diagnostic::{Problem, quoted};
use crate::dialect::checks;
use crate::dialect::lowering;
use crate::resolve::template;

/// What an entry says it is reached by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Kind(TransportKind),
    /// opencode's word for whatever has a URL.
    Remote,
    /// Something that could not be read, and is reported.
    Bad,
}

/// the spellings of editors, and no others.
const WORDS: &[(&str, Said)] = &[
    ("stdio", Said::Kind(TransportKind::Stdio)),
    ("local", Said::Kind(TransportKind::Stdio)),
    ("http", Said::Kind(TransportKind::Http)),
    ("streamable-http", Said::Kind(TransportKind::Http)),
    ("streamable_http", Said::Kind(TransportKind::Http)),
    ("streamableHttp", Said::Kind(TransportKind::Http)),
    ("streamableHTTP", Said::Kind(TransportKind::Http)),
    ("sse", Said::Kind(TransportKind::Sse)),
    ("ws", Said::Kind(TransportKind::WebSocket)),
    ("websocket", Said::Kind(TransportKind::WebSocket)),
    ("remote", Said::Remote),
];

/// `type`, `transport` and `transportType` say the same thing; where they do not, nobody knows which is meant.
pub(super) fn said(slots: [MaybeNull<Kind>; 3], pass: &Pass) -> Said {
    let mut res: Option<(Said, At)> = None;
    for slot in slots {
        if let Got::Bad = slot.got {
            return Said::Bad;
        }
        let Some(kind) = slot.value() else { continue };
        let (word, at) = match kind {
            Kind::Word(word) => (word.as_str(), slot.at),
            Kind::Mapping(mapping) => match mapping.kind.value() {
                Some(word) => (word.as_str(), mapping.kind.at),
                None => return Said::Bad,
            },
        };
        let Some(found) = WORDS.iter().find(|it| it.0 == word) else {
            unknown_word(word, &at, pass);
            return Said::Bad;
        };
        match &res {
            Some((before, first)) if *before != found.1 => {
                let problem = Problem::new(
                    Code::Exclusive,
                    "the entry names two different transports",
                    at.pointer(pass),
                    at.span(),
                );
                pass.report(problem.label(first.span(), "the other is here").help("remove one of the two"));
                return Said::Bad;
            }
            Some(_) => {}
            None => res = Some((found.1, at)),
        }
    }
    res.map_or(Said::Nothing, |it| it.0)
}

fn unknown_word(word: &str, at: &At, pass: &Pass) {
    let message = format!("there is no transport '{}'", quoted(word));
    let help = match pass.nearest(word, WORDS.iter().map(|it| it.0)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write one of `stdio`, `http`, `sse`, `ws`".to_owned(),
    };
    pass.error(Code::UnknownWord, at, message, help);
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Start,
    Connect(TransportKind, SseFallback),
}

impl Way {
    pub(super) fn kind(self) -> TransportKind {
        match self {
            Way::Start => TransportKind::Stdio,
            Way::Connect(kind, _) => kind,
        }
    }
}

/// What an entry means, by what it says and by what it has (DIA-04, DIA-08).
pub(super) fn way(said: Said, has_command: bool, url: &Url, at: &At, context: &Context<'_>) -> Option<Way> {
    let has_url = url.slot.is_given();
    match said {
        Said::Bad => None,
        Said::Kind(TransportKind::Stdio) => Some(Way::Start),
        // VS Code tries server-sent events where it is told `http`; others take the word for what it is.
        Said::Kind(kind @ TransportKind::Http) if context.host == Host::VsCode => {
            Some(Way::Connect(kind, SseFallback::Allowed))
        }
        Said::Kind(kind @ (TransportKind::Http | TransportKind::Sse | TransportKind::WebSocket)) => {
            Some(Way::Connect(kind, SseFallback::Never))
        }
        Said::Remote => Some(url.way(context.host)),
        Said::Nothing if has_command && has_url => {
            let message = format!("'command' and '{}' are both given: what is meant cannot be told", url.key);
            let url_at = &url.slot.at;
            let problem =
                Problem::new(Code::ForeignField, message, url_at.pointer(context.pass), url_at.key());
            context.pass.report(problem.help("remove one of the two, or add `type`"));
            None
        }
        Said::Nothing if has_command => Some(Way::Start),
        Said::Nothing if has_url => Some(url.way(context.host)),
        Said::Nothing => {
            let message = "a server needs a 'command' to start, or a 'url' to connect to";
            context.pass.error(
                Code::MissingCommand,
                &at.missing("command", context.pass),
                message,
                "add one of the two",
            );
            None
        }
    }
}

/// The URL of an entry, and the key it stands under.
pub(super) struct Url {
    pub(super) key: &'static str,
    pub(super) slot: MaybeNull<String>,
}

/// DIA-03. Some write the same URL under several keys, for several programs.
pub(super) fn one_url(
    url: MaybeNull<String>,
    server_url: MaybeNull<String>,
    http_url: MaybeNull<String>,
    pass: &Pass,
) -> Url {
    let all = [("httpUrl", http_url), ("serverUrl", server_url), ("url", url)];
    let mut res: Option<Url> = None;
    for (key, slot) in all {
        match &res {
            Some(first) if slot.is_given() && first.slot.is_given() => {
                if slot.value() != first.slot.value() {
                    let problem = Problem::new(
                        Code::Exclusive,
                        format!("'{key}' and '{}' say different things", first.key),
                        slot.at.pointer(pass),
                        slot.at.key(),
                    );
                    let problem = problem.label(first.slot.at.key(), "the other is here");
                    pass.report(problem.help("remove one of the two"));
                }
            }
            Some(first) if first.slot.is_given() => {}
            Some(_) | None => res = Some(Url { key, slot }),
        }
    }
    res.expect("there are three to choose from")
}

impl Url {
    /// How a URL is connected to where nobody says.
    fn way(&self, host: Host) -> Way {
        let text = self.slot.value().map_or("", String::as_str);
        if ["ws://", "wss://"].iter().any(|it| text.starts_with(it)) {
            return Way::Connect(TransportKind::WebSocket, SseFallback::Never);
        }
        match (self.key, host) {
            ("httpUrl", _) => Way::Connect(TransportKind::Http, SseFallback::Never),
            ("url", Host::Gemini) => Way::Connect(TransportKind::Sse, SseFallback::Never),
            (_, Host::Gemini | Host::VsCode | Host::Other) => {
                Way::Connect(TransportKind::Http, SseFallback::Allowed)
            }
        }
    }

    pub(super) fn address(&self, kind: TransportKind, values: &Values<'_>) -> Option<ConfigValue> {
        let Url { key, slot } = self;
        let pass = values.pass;
        let text = match &slot.got {
            Got::Value(text) => text,
            Got::Bad => return None,
            Got::Absent | Got::Null => {
                let message = format!("'url' is required for {} transport", kind.as_str());
                pass.error(Code::MissingUrl, &slot.at, message, "add `url`, or remove the transport");
                return None;
            }
        };
        let value = values.expanded(text.clone(), &slot.at, |_| Ok(()));
        if template::refers(text, values.rule) {
            return Some(value);
        }
        match checks::parse_url(text, lowering::url_rule(kind, pass.policy.urls)) {
            Ok(parsed) => {
                if parsed.scheme() == "ws" && !checks::is_loopback(&parsed) {
                    let message =
                        format!("'{key}' is not encrypted: anybody on the way can read what is sent");
                    pass.warning(Code::PlainWebSocket, &slot.at, message, "write a wss:// URL");
                }
                Some(value)
            }
            Err(complaint) => {
                let message = complaint.message.replacen("'url'", &format!("'{key}'"), 1);
                pass.error(complaint.code, &slot.at, message, complaint.help);
                None
            }
        }
    }
}
