//! What to install if the program of a command is missing.

/// The help for a command that was not found.
pub(super) fn install_help(command: &str) -> String {
    let install = match command {
        "npx" | "npm" | "node" => "install Node.js, which includes it",
        "bunx" | "bun" => "install Bun, which includes it",
        "deno" => "install Deno",
        "uvx" | "uv" => "install uv, which includes it",
        "python" | "python3" | "pip" | "pipx" => "install Python 3",
        "docker" => "install Docker",
        "podman" => "install Podman",
        "cargo" => "install Rust",
        "dotnet" => "install .NET",
        "java" => "install Java",
        "go" => "install Go",
        _ if command.contains('/') => return "correct the path or build the program".to_owned(),
        _ => "install it",
    };
    format!("{install}, or write its full path; your shell may use another PATH than this program")
}

/// Whether a command downloads a package at its first start.
pub(super) fn downloads_packages(command: &str) -> bool {
    let name = command.rsplit('/').next().unwrap_or_default();
    ["npx", "bunx", "uvx", "pipx", "docker", "podman", "deno"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_what_to_install() {
        assert!(install_help("npx").starts_with("install Node.js"));
        assert!(install_help("my-server").starts_with("install it, or write"));
        assert_eq!(install_help("./target/x"), "correct the path or build the program");
        assert!(
            downloads_packages("/usr/bin/npx") && downloads_packages("uvx") && !downloads_packages("node")
        );
    }
}
