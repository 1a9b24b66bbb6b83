//! Which file holds which module, by the paths of files.

/// The folder of the modules that this file declares.
pub(super) fn module_folder(path: &str) -> &str {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder,
        // The root of a test binary, such as `tests/it.rs`, has its modules next to it.
        _ if is_cargo_target(path) => folder,
        _ => path.trim_end_matches(".rs"),
    }
}

/// Whether Cargo finds the file without a `mod`.
pub(crate) fn is_cargo_target(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    if let Some(src) = parts.iter().position(|part| *part == "src") {
        return matches!(parts[src + 1..], ["lib.rs" | "main.rs"] | ["bin", _] | ["bin", _, "main.rs"]);
    }
    let [.., folder, _] = parts.as_slice() else { return true };
    let is_target_folder = |name: &str| ["tests", "benches", "examples", "fuzz_targets"].contains(&name);
    match parts.as_slice() {
        [.., "build.rs"] => true,
        [.., above, _, "main.rs"] if is_target_folder(above) => true,
        _ => is_target_folder(folder),
    }
}
