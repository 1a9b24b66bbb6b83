//! The options of the JSON parser, and a diagnostic that both passes over a text report.

use jsonc_parser::{ParseOptions, ScannerOptions};

use crate::diagnostic::{Code, RawDiagnostic};
use crate::syntax::Syntax;

/// The tokens of JSON, without the extensions of JSON5.
pub(super) const SCANNER: ScannerOptions = ScannerOptions {
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The options of jsonc-parser's parser for a syntax.
pub(super) fn parse_options(syntax: Syntax) -> ParseOptions {
    let lenient = syntax == Syntax::JsonWithComments;
    ParseOptions {
        allow_comments: lenient,
        allow_trailing_commas: lenient,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The diagnostic for a string with a control character that starts at `start`.
pub(super) fn control_character_diagnostic(pointer: String, start: usize) -> RawDiagnostic {
    let message = "invalid JSON: a string contains a line break or another control character";
    let help = "write `\\n` for a line break, `\\t` for a tab; or close the quote";
    RawDiagnostic::new(Code::Syntax, message, pointer, start..start + 1).help(help)
}
