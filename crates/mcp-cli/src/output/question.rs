//! Questions at the terminal.

use std::io::{self, BufRead, IsTerminal};

/// The maximum size of an answer.
const MAX_ANSWER_BYTES: u64 = 4 << 10;

/// Whether a question can be asked and answered.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether the next line is `y` or `yes`.
pub(crate) fn is_confirmed(input: impl BufRead) -> bool {
    let mut line = String::new();
    let read = input.take(MAX_ANSWER_BYTES).read_line(&mut line);
    read.is_ok() && ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_a_confirmation() {
        for (line, want) in [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("yep\n", false)] {
            assert_eq!(is_confirmed(line.as_bytes()), want, "{line}");
        }
    }
}
