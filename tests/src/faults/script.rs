//! What a faulty server is told to do, in one word of a URL or of a command line: `call=half+reset`.
//!
//! Invariant: a script says one moment and what is done at it; at every other moment the server is as it should be. The
//! table writes scripts as text, so that what a row shows is what the server reads.

use std::fmt;

/// When the fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// As soon as it is started, or connected to: before it has read anything.
    Start,
    /// At the first request, which begins the session.
    Open,
    /// When its tools are listed.
    List,
    /// When the tool `first` is called.
    Call,
    /// On the stream that it may say something on by itself.
    Hear,
    /// When it is to end.
    Close,
}

/// One thing that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Answers as it should.
    Well,
    /// Says nothing more about this.
    Hush,
    /// Sends the first half of the answer.
    Half,
    /// Closes the connection in order; a process ends with 0.
    End,
    /// Breaks the connection off (RST); a process kills itself.
    Reset,
    /// A process ends with this.
    Exit(i32),
    /// Answers a byte at a time, so many milliseconds apart.
    Drip(u64),
    /// Sends messages that nobody has asked for, without end and as fast as it can.
    Flood,
    /// Sends one message that does not end.
    Endless,
    /// Sends what keeps a connection alive, and no message, every ten milliseconds and without end.
    Alive,
    /// Answers in the framing of another protocol.
    Misframed,
    /// Greets as a server of another protocol does, and waits.
    Banner,
    /// Answers with a byte that is no UTF-8.
    Latin1,
    /// Answers in UTF-16.
    Utf16,
    /// Answers with a byte order mark before it.
    Bom,
    /// Answers under an id that nobody has given.
    WrongId,
    /// Answers under the right id as a text.
    TextId,
    /// Answers two times.
    Twice,
    /// Sends answers to what was never asked, and only then the answer.
    Unasked,
    /// Answers with an array in an array, so deep.
    Deep(usize),
    /// Answers with a text of so many bytes.
    Huge(usize),
    /// Answers with an error.
    Error,
    /// Answers with a page and a cursor, again and again; each cursor is new.
    Pages,
    /// The same with one and the same cursor.
    SamePage,
    /// Redirects to itself.
    Round,
    /// Redirects to another host.
    Away,
    /// Refuses with this status and an empty body.
    Status(u16),
    /// Refuses with this status and words.
    Spoken(u16),
    /// Is gone, and another MCP server listens where it was.
    Replaced,
    /// Is gone, and a web server that knows nothing of MCP listens where it was.
    Website,
    /// Reads no more.
    Deaf,
    /// Goes on when it is asked to end: its input is over, it gets SIGTERM.
    Stubborn,
    /// Starts a process of its own that holds its output, and ends.
    Orphan,
    /// The same, where that process leaves its process group and its session.
    Escape,
    /// Closes its standard output, and lives.
    CloseOutput,
    /// Writes to its standard error without end.
    FillErrors,
    /// Takes all memory that it can get.
    Allocate,
    /// Speaks TLS with a certificate that it has issued itself.
    SelfSigned,
    /// Speaks TLS with a certificate for another name.
    WrongName,
    /// Speaks TLS with a certificate of a past year.
    Expired,
    /// Is where nobody is.
    Nobody,
}

/// What a faulty server does, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// When.
    pub at: At,
    /// What, in order.
    pub steps: Vec<Step>,
}

/// A text that is no script.
#[derive(Debug, PartialEq, Eq)]
pub struct ScriptError(String);

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no script", self.0)
    }
}

impl std::error::Error for ScriptError {}

impl Script {
    /// Reads `<moment>=<step>+<step>...`; a step may have a number behind a colon.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let read = || {
            let (at, steps) = text.split_once('=')?;
            let steps = steps.split('+').map(Step::parse).collect::<Option<Vec<Step>>>()?;
            Some(Script { at: At::parse(at)?, steps })
        };
        read().ok_or_else(|| ScriptError(text.to_owned()))
    }

    /// Does it do this at any time?
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
            "nobody" => Step::Nobody,
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
