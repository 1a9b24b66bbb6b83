//! A finding: a place of a definition, what it tries, and how certain that is.

use std::collections::HashSet;
use std::ops::Range;

use mcp_host_model::is_invisible;

use crate::lock::ItemKind;
use crate::name::display::{escape_name, truncate};

/// How certain a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a finding needs a decision, or it does not")]
pub enum FindingSeverity {
    /// The place has hardly another purpose. It needs a decision of the user.
    Hard,
    /// Harmless servers have such places too. Worth a look.
    Soft,
}

/// What a place tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum FindingKind {
    /// An order to the model that is not about the use of the tool itself.
    Order,
    /// Markup that poses as a message of the system or the user, or that is not displayed.
    Markup,
    /// Something is to be concealed from the user.
    Secrecy,
    /// Files or values with secrets are read.
    SecretAccess,
    /// The conversation, the system prompt, or data of other tools are to be sent elsewhere.
    Exfiltration,
    /// Text about a tool of another server.
    OtherTool,
    /// Invisible or reordering characters.
    HiddenCharacters,
    /// Escape sequences or other control characters of a terminal.
    ControlCharacters,
    /// White space that moves text out of sight.
    Padding,
    /// Letters of another script that look like Latin ones.
    LookAlike,
    /// Encoded text, such as Base64.
    EncodedText,
}

/// The text that contains a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "JSON has no other texts")]
pub enum FindingText {
    /// The value at the pointer.
    Value,
    /// The name of the member at the pointer.
    Name,
}

/// A place of a definition that tries something.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What it tries.
    pub kind: FindingKind,
    /// How certain it is.
    pub severity: FindingSeverity,
    /// The JSON pointer of the value. Empty for instructions.
    pub pointer: String,
    /// Whether the value or its name is the text.
    pub text: FindingText,
    /// The range in the decoded text, in bytes.
    pub span: Range<usize>,
    /// The place with invisible characters made visible, of limited length. Text of the server.
    pub evidence: String,
}

/// A finding and the item that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemFinding {
    /// The kind and the key of the item; `None` for the instructions.
    pub item: Option<(ItemKind, String)>,
    /// The finding.
    pub finding: Finding,
}

/// The names of the tools of other servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtherTools(HashSet<String>);

impl OtherTools {
    /// Takes the names of the tools of other servers. Names that the server has itself and plain words do not count:
    /// they do not show which tool a text is about.
    pub fn new<'a>(
        others: impl IntoIterator<Item = &'a str>,
        own: impl IntoIterator<Item = &'a str>,
    ) -> OtherTools {
        let own: HashSet<&str> = own.into_iter().collect();
        let names = others.into_iter().filter(|it| !own.contains(it) && is_distinctive(it));
        OtherTools(names.map(str::to_owned).collect())
    }

    /// Returns whether another server has a tool of this name.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// Whether a name is no plain word, so that a text that contains it is about the tool.
fn is_distinctive(name: &str) -> bool {
    let has_inner_capital = name.chars().skip(1).any(char::is_uppercase) && name.contains(char::is_lowercase);
    name.len() >= 6 && (name.contains(['_', '-', '.']) || has_inner_capital)
}

/// The maximum length of a pointer, in bytes. Names of members are text of the server.
const MAX_POINTER_BYTES: usize = 512;

/// Where a text is in its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPlace {
    /// The names and indexes of the pointer.
    pub(super) path: Vec<String>,
    /// Whether the text is a value or a name.
    pub(super) text: FindingText,
}

impl TextPlace {
    /// The place of instructions, which are a text alone.
    pub(super) fn instructions() -> TextPlace {
        TextPlace { path: Vec::new(), text: FindingText::Value }
    }

    pub(super) fn pointer(&self) -> String {
        let mut res = String::new();
        for name in &self.path {
            res.push('/');
            res.push_str(&name.replace('~', "~0").replace('/', "~1"));
            if res.len() > MAX_POINTER_BYTES {
                break;
            }
        }
        truncate(visible(&res, MAX_POINTER_BYTES), MAX_POINTER_BYTES)
    }
}

/// A place that a rule found in a text.
pub(super) struct Match {
    pub(super) kind: FindingKind,
    pub(super) severity: FindingSeverity,
    pub(super) span: Range<usize>,
    /// The evidence; `None` if it is the text itself.
    pub(super) evidence: Option<String>,
}

impl FindingSeverity {
    /// Returns `hard` or `soft`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl FindingText {
    /// Returns `value` or `name`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl FindingKind {
    /// Returns the name in JSON, such as `other-tool`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns what the place tries, for messages: `an order to the model`.
    pub fn description(self) -> &'static str {
        match self {
            FindingKind::Order => "an order to the model",
            FindingKind::Markup => "markup that poses as a message or is not displayed",
            FindingKind::Secrecy => "something is to be concealed from the user",
            FindingKind::SecretAccess => "a file or value with secrets",
            FindingKind::Exfiltration => "data is to be sent elsewhere",
            FindingKind::OtherTool => "text about a tool of another server",
            FindingKind::HiddenCharacters => "hidden characters",
            FindingKind::ControlCharacters => "control characters",
            FindingKind::Padding => "white space that moves text out of sight",
            FindingKind::LookAlike => "letters that look like others",
            FindingKind::EncodedText => "encoded text",
        }
    }
}

impl ItemFinding {
    /// Returns the place, for messages: `tool `x` /description`, or `its instructions`.
    pub fn place(&self) -> String {
        match &self.item {
            Some((kind, key)) => format!("{} `{}` {}", kind.as_str(), escape_name(key), self.finding.pointer),
            None => "its instructions".to_owned(),
        }
    }
}

/// The text with control characters and invisible ones as `\u{…}`, and cut to a length in characters.
pub(super) fn visible(text: &str, limit: usize) -> String {
    let mut res = String::new();
    let mut count = 0;
    for character in text.chars() {
        if count >= limit {
            res.push('…');
            break;
        }
        if character == '\n' || character == '\t' {
            res.push(' ');
            count += 1;
        } else if character.is_control() || is_invisible(character) {
            res.extend(character.escape_unicode());
            count += 8;
        } else {
            res.push(character);
            count += 1;
        }
    }
    res
}
