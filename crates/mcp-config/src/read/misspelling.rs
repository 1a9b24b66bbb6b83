//! Explains a missing key by a misspelt one in the same mapping.

use crate::diagnostic::{Code, FixIntent, RawDiagnostic, quoted};
#[cfg(feature = "files")]
use crate::dialect::editor;
#[cfg(not(feature = "files"))]
use crate::dialect::unsupported::editor;
use crate::syntax::{last_key, parent_pointer};

/// Moves each error about a missing key to the misspelt key that was probably meant, and names both (RPT-210).
pub(super) fn explain_missing_keys(diagnostics: &mut [RawDiagnostic]) {
    let misspelt: Vec<Misspelling> = diagnostics.iter().filter_map(Misspelling::find).collect();
    if misspelt.is_empty() {
        return;
    }
    for diagnostic in diagnostics.iter_mut().filter(|it| is_about_missing_key(it.code)) {
        let Some(found) = misspelt.iter().find(|it| it.explains(diagnostic)) else { continue };
        diagnostic.span = found.span.clone();
        diagnostic.help = Some(format!("write `{}` instead of '{}'", found.meant, quoted(&found.key)));
        diagnostic.fix = None;
    }
}

fn is_about_missing_key(code: Code) -> bool {
    matches!(code, Code::MissingCommand | Code::MissingUrl | Code::MissingKey)
}

/// A key with the name that was probably meant.
struct Misspelling {
    /// The pointer to the mapping that has the key.
    mapping: String,
    key: String,
    meant: String,
    /// The bytes of the key.
    span: std::ops::Range<usize>,
}

impl Misspelling {
    fn find(diagnostic: &RawDiagnostic) -> Option<Misspelling> {
        match &diagnostic.fix {
            Some(FixIntent::RenameKey(meant, _)) if diagnostic.code == Code::UnknownKey => {
                Some(Misspelling {
                    mapping: parent_pointer(&diagnostic.pointer)?.to_owned(),
                    key: last_key(&diagnostic.pointer),
                    meant: meant.clone(),
                    span: diagnostic.span.clone(),
                })
            }
            _ => None,
        }
    }

    /// Whether the error would not exist with the right spelling.
    fn explains(&self, missing: &RawDiagnostic) -> bool {
        let key = last_key(&missing.pointer);
        let is_here = |it: &str| parent_pointer(it) == Some(&self.mapping);
        match missing.code {
            Code::MissingCommand => {
                editor::is_source(&self.meant)
                    && (missing.pointer == self.mapping || is_here(&missing.pointer))
            }
            Code::MissingUrl => self.meant == "url" && is_here(&missing.pointer),
            _ => key == self.meant && is_here(&missing.pointer),
        }
    }
}
