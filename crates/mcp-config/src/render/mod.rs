//! Renders diagnostics for people: the message, the position, the line with a caret, and the help.
//!
//! File text is masked first (`mask.rs`), control characters are escaped, and spans are clamped. So no secret and no
//! terminal escape is printed, and no span causes a panic.

mod checked_file;
mod diff;
mod github;
mod mask;
mod safe_values;
mod sarif;
mod secret_fields;

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Message, Origin, Patch, Renderer, Snippet,
};
use mcp_host_model::Severity;

use crate::diagnostic::{Diagnostic, LineIndex, TextEdit};
use checked_file::printable;
pub use checked_file::{CheckOutcome, CheckedFile, Colour};
pub use diff::render_diff;
pub use github::render_github;
pub(crate) use mask::{MaskedText, ShownValues};
pub use sarif::{SarifTool, render_sarif};
pub use secret_fields::{secret_fields, split_scheme};

/// The largest distance of a label from its diagnostic, in bytes. Farther labels become notes.
const MAX_LABEL_DISTANCE: usize = 4 << 10;

/// The maximum number of bytes drawn for a file. Without it, a long line with thousands of mistakes would be drawn
/// thousands of times.
const MAX_DRAWN_BYTES: usize = 4 << 20;

/// Diagnostics as text, one block each, in the given order. `text` is the text they were read from.
///
/// Of the values, only those are shown that cannot be secrets in a configuration of MCP servers.
/// [`reader::Configuration::render`](crate::reader::Configuration::render) is for other configurations.
pub fn render(name: &str, text: &str, diagnostics: &[Diagnostic], colour: Colour) -> String {
    render_masked(name, text, MaskedText::new(&printable(name), text), diagnostics, colour)
}

/// Renders diagnostics with the lines of a masked text.
pub(crate) fn render_masked(
    name: &str,
    text: &str,
    masked: MaskedText,
    diagnostics: &[Diagnostic],
    colour: Colour,
) -> String {
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(120);
    let lines = LineIndex::new(text);
    let mut file = FileRenderer { name: printable(name), lines, masked, bytes_left: MAX_DRAWN_BYTES };
    let mut res = String::new();
    for diagnostic in diagnostics {
        res.push_str(&file.render_diagnostic(diagnostic, &renderer));
        res.push_str("\n\n");
    }
    res
}

/// Renders the diagnostics of one file.
struct FileRenderer<'a> {
    name: String,
    lines: LineIndex<'a>,
    masked: MaskedText,
    /// The bytes that may still be drawn.
    bytes_left: usize,
}

impl FileRenderer<'_> {
    fn render_diagnostic(&mut self, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Info => Level::INFO,
        };
        let title = level.primary_title(printable(&diagnostic.to_string())).id(diagnostic.code.as_str());
        let drawn = self.build_snippet(diagnostic);
        let patch = diagnostic.fix.as_ref().filter(|_| drawn.is_some()).and_then(|fix| {
            let title = printable(diagnostic.help.as_deref().unwrap_or(fix.title()));
            self.build_patch(title, fix.edits())
        });
        let group = match drawn {
            Some((snippet, notes)) => Group::with_title(title).element(snippet).elements(notes),
            None => Group::with_title(title).element(
                Origin::path(self.name.clone()).line(diagnostic.line).char_column(diagnostic.column),
            ),
        };
        match (&diagnostic.help, patch) {
            (_, Some(patch)) => renderer.render(&[group, patch]),
            (Some(help), None) => renderer.render(&[group.element(Level::HELP.message(printable(help)))]),
            (None, None) => renderer.render(&[group]),
        }
    }

    /// The source lines of a diagnostic with its labels, and notes for distant labels. `None` if nothing can be drawn,
    /// or the limit is reached.
    fn build_snippet<'b>(
        &mut self,
        diagnostic: &Diagnostic,
    ) -> Option<(Snippet<'b, Annotation<'b>>, Vec<Message<'b>>)> {
        if self.masked.is_empty() {
            return None;
        }
        let FileRenderer { name, lines, masked, .. } = self;
        let first = |span: &Range<usize>| masked.first_line(lines.clamp(span.clone()));
        let primary = first(&diagnostic.span);
        let all = diagnostic.labels.iter().map(|it| (first(&it.span), it));
        let (near, far): (Vec<_>, Vec<_>) =
            all.partition(|it| it.0.start.abs_diff(primary.start) <= MAX_LABEL_DISTANCE);
        // Only the lines between the first and the last label, because the renderer's cost grows with each line.
        let start = near.iter().map(|it| it.0.start).fold(primary.start, usize::min);
        let end = near.iter().map(|it| it.0.end).fold(primary.end, usize::max);
        let window = masked.window(start..end);
        self.bytes_left = self.bytes_left.checked_sub(window.text.len())?;
        let inside = |span: &Range<usize>| span.start - window.bytes.start..span.end - window.bytes.start;
        let snippet = Snippet::source(window.text.to_owned())
            .path(name.clone())
            .line_start(window.line)
            .annotation(AnnotationKind::Primary.span(inside(&primary)))
            .annotations(
                near.iter()
                    .map(|it| AnnotationKind::Context.span(inside(&it.0)).label(printable(&it.1.text))),
            );
        let notes = far.into_iter().map(|(_, label)| {
            let (line, column) = lines.position(label.span.start);
            Level::NOTE.message(format!("{} ({name}:{line}:{column})", printable(&label.text)))
        });
        Some((snippet, notes.collect()))
    }

    /// The changed lines of a fix; `None` if it replaces a masked value, or if the limit is reached.
    fn build_patch<'b>(&mut self, title: String, edits: &[TextEdit]) -> Option<Group<'b>> {
        let masked = &self.masked;
        if edits.iter().any(|it| !it.text.is_empty() && masked.hides(&it.span)) {
            return None;
        }
        let patches: Vec<_> = edits.iter().map(|it| masked_edit(masked, it)).collect();
        let start = patches.iter().map(|it| it.0.start).min().unwrap_or_default();
        let end = patches.iter().map(|it| it.0.end).max().unwrap_or_default();
        let window = masked.window(start..end);
        self.bytes_left = self.bytes_left.checked_sub(window.text.len())?;
        let patches = patches.into_iter().map(|(span, text)| {
            Patch::new(span.start - window.bytes.start..span.end - window.bytes.start, text)
        });
        let patches: Vec<_> = patches.collect();
        let snippet = Snippet::source(window.text.to_owned()).path(self.name.clone()).line_start(window.line);
        Some(Group::with_title(Level::HELP.secondary_title(title)).element(snippet.patches(patches)))
    }
}

/// An edit of the masked text. Inserted whole lines are attached to the end of the line before, because the renderer
/// needs one.
fn masked_edit(masked: &MaskedText, edit: &TextEdit) -> (Range<usize>, String) {
    let span = masked.map_span(&edit.span);
    let text = edit.text.replace('\r', "");
    match text.strip_suffix('\n') {
        Some(lines) if span.is_empty() && masked.begins_line(span.start) => {
            (span.start - 1..span.start - 1, format!("\n{lines}"))
        }
        Some(_) | None => (span, text),
    }
}
