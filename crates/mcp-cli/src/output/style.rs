//! Colours of the output.
//!
//! No information is conveyed by colour alone.

use anstyle::{AnsiColor, Style};
use mcp_host_config::Colour;
use mcp_host_model::Severity;

/// Success.
pub(crate) const SUCCESS: Style = AnsiColor::Green.on_default().bold();
/// Failure.
pub(crate) const FAILURE: Style = AnsiColor::Red.on_default().bold();
/// A warning.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// A note.
pub(crate) const NOTE: Style = AnsiColor::Cyan.on_default().bold();
/// A heading.
pub(crate) const BOLD: Style = Style::new().bold();
/// Less important text.
pub(crate) const DIM: Style = Style::new().dimmed();

/// `text` in `style`, or unchanged without colours.
pub(crate) fn paint(colour: Colour, style: Style, text: &str) -> String {
    match colour {
        Colour::Always => format!("{style}{text}{style:#}"),
        Colour::Never => text.to_owned(),
    }
}

/// The first word of a message: `error`, `warning` or `info`.
pub(crate) fn severity(colour: Colour, severity: Severity) -> String {
    let style = match severity {
        Severity::Error => FAILURE,
        Severity::Warning => WARNING,
        Severity::Info => NOTE,
    };
    paint(colour, style, severity.as_str())
}

/// `error: <message>` and an optional help line.
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
    fn no_escape_sequences_without_colours() {
        assert_eq!(error(Colour::Never, "it broke", Some("fix it")), "error: it broke\n  help: fix it\n");
        let painted = error(Colour::Always, "it broke", None);
        assert!(painted.starts_with("\u{1b}["), "{painted:?}");
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), "error: it broke\n");
    }
}
