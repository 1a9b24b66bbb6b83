//! Public fields: none has a `#[cfg]`, because a feature that another crate enables would change the struct.

use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Field, Visibility};

use crate::error::Violation;
use crate::tree::rust::RustFile;

pub(super) fn check(file: &RustFile) -> Vec<Violation> {
    let mut visitor = Visitor { path: &file.path, violations: Vec::new() };
    // A file that does not parse is a violation already.
    if let Ok(syntax) = syn::parse_file(&file.text) {
        visitor.visit_file(&syntax);
    }
    visitor.violations
}

struct Visitor<'a> {
    path: &'a str,
    violations: Vec<Violation>,
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_field(&mut self, field: &'ast Field) {
        let has_condition = field.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"));
        if has_condition && matches!(field.vis, Visibility::Public(_)) {
            let message = "a public field has a `#[cfg]`: make it private, with a setter";
            self.violations.push(Violation::new(self.path, field.span().start().line, message));
        }
    }
}
