//! Scripts of the faulty server: the trigger and the steps, in one word of a URL or command line, such as
//! `call=half+reset`.
//!
//! Invariant: a script has one trigger; otherwise the server behaves correctly. The table contains scripts as text, so
//! that a row shows what the server reads.

use std::fmt;

/// The trigger of the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The start of the process or connection, before anything is read.
    Start,
    /// The first request, which starts the session.
    Open,
    /// The list of tools.
    List,
    /// A call of the tool `first`.
    Call,
    /// The stream for unsolicited messages.
    Hear,
    /// The shutdown.
    Close,
}

/// One step of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A correct response.
    Well,
    /// No response.
    Hush,
    /// The first half of the response.
    Half,
    /// A regular close of the connection; a process exits with 0.
    End,
    /// A connection reset (RST); a process kills itself.
    Reset,
    /// A process exits with this code.
    Exit(i32),
    /// The response byte by byte, with this many milliseconds in between.
    Drip(u64),
    /// Unsolicited messages without end, as fast as possible.
    Flood,
    /// One message without end.
    Endless,
    /// Keep-alive data every ten milliseconds, without a message.
    Alive,
    /// The response in the framing of another protocol.
    Misframed,
    /// The greeting of another protocol, then silence.
    Banner,
    /// A response with a byte that is not UTF-8.
    Latin1,
    /// The response in UTF-16.
    Utf16,
    /// The response after a byte order mark.
    Bom,
    /// The response with an unknown id.
    WrongId,
    /// The response with its id as a string.
    TextId,
    /// The response twice.
    Twice,
    /// Unsolicited responses and requests before the response.
    Unasked,
    /// A response with nested arrays of this depth.
    Deep(usize),
    /// A response with this many bytes.
    Huge(usize),
    /// An error response.
    Error,
    /// A list page with a new cursor, without end.
    Pages,
    /// A list page with the same cursor, without end.
    SamePage,
    /// A redirect to itself.
    Round,
    /// A redirect to another host.
    Away,
    /// This HTTP status with an empty body.
    Status(u16),
    /// This HTTP status with a text body.
    Spoken(u16),
    /// Another MCP server takes over the port.
    Replaced,
    /// A web server takes over the port.
    Website,
    /// No more data is read.
    Deaf,
    /// The end of input and SIGTERM are ignored.
    Stubborn,
    /// A child process inherits the output, and the server exits.
    Orphan,
    /// The same with a child that leaves the process group and session.
    Escape,
    /// Standard output is closed, and the process runs on.
    CloseOutput,
    /// Standard error is written without end.
    FillErrors,
    /// All available memory is allocated.
    Allocate,
    /// TLS with a self-signed certificate.
    SelfSigned,
    /// TLS with a certificate for another name.
    WrongName,
    /// TLS with an expired certificate.
    Expired,
    /// No server exists.
    NoServer,
}

/// The trigger and the steps of a faulty server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The trigger.
    pub at: At,
    /// The steps in order.
    pub steps: Vec<Step>,
}

/// An invalid script.
#[derive(Debug, PartialEq, Eq)]
pub struct ScriptError(String);

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no script", self.0)
    }
}

impl std::error::Error for ScriptError {}

impl Script {
    /// Parses `<trigger>=<step>+<step>...`; a step may have a number after a colon.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let read = || {
            let (at, steps) = text.split_once('=')?;
            let steps = steps.split('+').map(Step::parse).collect::<Option<Vec<Step>>>()?;
            Some(Script { at: At::parse(at)?, steps })
        };
        read().ok_or_else(|| ScriptError(text.to_owned()))
    }

    /// Whether the script contains this step.
    pub fn does(&self, step: Step) -> bool {
        self.steps.contains(&step)
    }
}

impl At {
    fn parse(word: &str) -> Option<At> {
        Some(match word {
            "start" => At::Start,
            "open" => At::Open,
            "list" => At::List,
            "call" => At::Call,
            "hear" => At::Hear,
            "close" => At::Close,
            _ => return None,
        })
    }
}

impl Step {
    fn parse(word: &str) -> Option<Step> {
        let Some((name, number)) = word.split_once(':') else { return Step::named(word) };
        let number: u32 = number.parse().ok()?;
        Some(match name {
            "exit" => Step::Exit(i32::try_from(number).ok()?),
            "drip" => Step::Drip(number.into()),
            "deep" => Step::Deep(number as usize),
            "huge" => Step::Huge(number as usize),
            "status" => Step::Status(u16::try_from(number).ok()?),
            "spoken" => Step::Spoken(u16::try_from(number).ok()?),
            _ => return None,
        })
    }

    fn named(word: &str) -> Option<Step> {
        Some(match word {
            "well" => Step::Well,
            "hush" => Step::Hush,
            "half" => Step::Half,
            "end" => Step::End,
            "reset" => Step::Reset,
            "flood" => Step::Flood,
            "endless" => Step::Endless,
            "alive" => Step::Alive,
            "misframed" => Step::Misframed,
            "banner" => Step::Banner,
            "latin1" => Step::Latin1,
            "utf16" => Step::Utf16,
            "bom" => Step::Bom,
            "wrong-id" => Step::WrongId,
            "text-id" => Step::TextId,
            "twice" => Step::Twice,
            "unasked" => Step::Unasked,
            "error" => Step::Error,
            "pages" => Step::Pages,
            "same-page" => Step::SamePage,
            "round" => Step::Round,
            "away" => Step::Away,
            "replaced" => Step::Replaced,
            "website" => Step::Website,
            "deaf" => Step::Deaf,
            "stubborn" => Step::Stubborn,
            "orphan" => Step::Orphan,
            "escape" => Step::Escape,
            "close-output" => Step::CloseOutput,
            "fill-errors" => Step::FillErrors,
            "allocate" => Step::Allocate,
            "self-signed" => Step::SelfSigned,
            "wrong-name" => Step::WrongName,
            "expired" => Step::Expired,
            "no-server" => Step::NoServer,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_a_trigger_and_steps() {
        let script = Script::parse("call=half+exit:3").unwrap();
        assert_eq!(script, Script { at: At::Call, steps: vec![Step::Half, Step::Exit(3)] });
        for wrong in [
            "",
            "call",
            "call=",
            "soon=half",
            "call=half+",
            "call=exit:x",
            "call=half:3",
            "call=status:70000",
        ] {
            assert_eq!(Script::parse(wrong), Err(ScriptError(wrong.to_owned())));
        }
    }
}
