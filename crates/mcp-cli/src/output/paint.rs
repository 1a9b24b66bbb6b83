//! Colours, where they are wanted.
//!
//! A colour never says anything that the words do not say too.

use anstyle::{AnsiColor, Style};
use mcp_config::Colour;
use mcp_model::Severity;

/// What is good.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What is bad.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What may be bad.
pub(crate) const DOUBTFUL: Style = AnsiColor::Yellow.on_default().bold();
/// What is worth knowing.
pub(crate) const NOTE: Style = AnsiColor::Cyan.on_default().bold();
/// What stands back.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// `text` in `style`, or as it is.
pub(crate) fn paint(colour: Colour, style: Style, text: &str) -> String {
    match colour {
        Colour::Always => format!("{style}{text}{style:#}"),
        Colour::Never => text.to_owned(),
    }
}

/// The word that a message begins with: `error`, `warning` or `info`.
pub(crate) fn severity(colour: Colour, severity: Severity) -> String {
    let style = match severity {
        Severity::Error => BAD,
        Severity::Warning => DOUBTFUL,
        Severity::Info => NOTE,
    };
    paint(colour, style, severity.as_str())
}

/// `error: <message>`, and what to do about it.
pub(crate) fn error(colour: Colour, message: &str, help: Option<&str>) -> String {
    let mut res = format!("{}: {message}\n", severity(colour, Severity::Error));
    if let Some(help) = help {
        res.push_str(&self::help(colour, help));
    }
    res
}

/// An indented `help: <text>`.
pub(crate) fn help(colour: Colour, text: &str) -> String {
    format!("  {}: {text}\n", paint(colour, NOTE, "help"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_there_are_only_words() {
        assert_eq!(error(Colour::Never, "it broke", Some("mend it")), "error: it broke\n  help: mend it\n");
        let painted = error(Colour::Always, "it broke", None);
        assert!(painted.starts_with("\u{1b}["), "{painted:?}");
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), "error: it broke\n");
    }
}
