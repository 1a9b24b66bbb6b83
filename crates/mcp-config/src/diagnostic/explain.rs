//! The explanation of each code: its meaning, an example, and what to do.

use crate::diagnostic::Code;

/// A section for each code, under a heading of its printed form.
const EXPLANATIONS: &str = include_str!("explanations.md");

impl Code {
    /// The meaning of the code, with an example, as Markdown.
    pub fn explain(self) -> &'static str {
        let mut sections = EXPLANATIONS.split("# MCP").skip(1).map(|it| it.split_once("\n\n"));
        let section = sections.find_map(|it| it.filter(|(number, _)| self.as_str().ends_with(number)));
        section.expect("each code has a section").1.trim_end()
    }
}
