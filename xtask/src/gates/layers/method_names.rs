//! The names of MCP's methods are written in one file.
//!
//! Names in hand-written JSON count. Tests, the demo server, the testkit and the conformance tests of transports may
//! write names: they are peers of the crates, and check them.

use std::collections::BTreeSet;

use crate::error::Violation;
use crate::tree::crate_of;
use crate::tree::rust::RustFile;

/// The file with the names.
const NAMES_FILE: &str = "crates/mcp-model/src/protocol/method.rs";

/// Folders that may write names.
const EXEMPT: [&str; 4] =
    ["crates/mcp-demo/", "crates/mcp-testkit/", "crates/mcp-transport/src/dial/testing/", "xtask/"];

/// Checks every Rust file of the crates.
pub(super) fn check(files: &[RustFile]) -> Vec<Violation> {
    let names = files.iter().find(|file| file.path == NAMES_FILE).map(method_names).unwrap_or_default();
    let mut res = Vec::new();
    for file in files {
        let is_exempt = EXEMPT.iter().any(|folder| file.path.starts_with(folder));
        if file.path == NAMES_FILE || is_exempt || crate_of(&file.path).is_none() {
            continue;
        }
        // The parts between two quotation marks, whether these begin a literal or are inside one.
        let mut start = 0;
        for part in file.code_and_literals.split('"') {
            if names.contains(part.trim_end_matches('\\')) && !file.is_test(start) {
                let message = format!("`{part}` has a name in `Method` of mcp-model: use it");
                res.push(Violation::new(&file.path, file.line(start), message));
            }
            start += part.len() + 1;
        }
    }
    res
}

/// The names of the methods, which are attributes of the variants.
fn method_names(file: &RustFile) -> BTreeSet<&str> {
    let attributes = file.code_and_literals.split("serialize = \"").skip(1);
    attributes.filter_map(|rest| rest.split('"').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    const METHODS: &str =
        "#[strum(serialize = \"tools/call\")] CallTool, #[strum(serialize = \"ping\")] Ping,";

    #[track_caller]
    fn check_source(path: &str, source: &str, expected: &[&str]) {
        let methods = format!("enum Method {{ {METHODS} }}");
        let tree = Tree::of(&[(NAMES_FILE, &methods), (path, source)]);
        let found: Vec<String> = check(&tree.rust_files).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn name_of_a_method_outside_its_file_is_found() {
        const PATH: &str = "crates/mcp-host/src/a.rs";
        let message = "crates/mcp-host/src/a.rs:1: `ping` has a name in `Method` of mcp-model: use it";
        check_source(PATH, r#"const A: &str = "ping";"#, &[message]);
        check_source(PATH, r##"const A: &str = r#"{"method":"ping"}"#;"##, &[message]);
        check_source(PATH, r#"const A: &str = "pinged"; // "ping""#, &[]);
        check_source(PATH, r#"#[cfg(test)] mod tests { const A: &str = "ping"; }"#, &[]);
        check_source("crates/mcp-host/tests/it/a.rs", r#"const A: &str = "ping";"#, &[]);
        check_source("crates/mcp-demo/src/a.rs", r#"const A: &str = "ping";"#, &[]);
    }
}
