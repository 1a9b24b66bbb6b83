//! Where the values of variables come from: our own environment, and below it a file that the user names.

use std::collections::HashMap;

use mcp_config::parse_env_file;
use mcp_model::Secret;

/// Variables by name.
pub(super) struct Environment {
    file: HashMap<String, Secret>,
}

impl Environment {
    /// Our own environment.
    pub(super) fn own() -> Environment {
        Environment { file: HashMap::new() }
    }

    /// Our own environment, and the variables of a `.env` file where it has none.
    pub(super) fn with_file(text: &str) -> Environment {
        Environment { file: parse_env_file(text).into_iter().collect() }
    }

    /// The variable's value. One of ours that is no Unicode counts as absent.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().or_else(|| self.file.get(name).map(|it| it.expose().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, name: &str, want: Option<&str>) {
        assert_eq!(Environment::with_file(file).variable(name).as_deref(), want);
    }

    #[test]
    fn the_files_variables_lie_below_our_own() {
        check("MCP_HOST_TEST_A=1\nMCP_HOST_TEST_A = 2 \n", "MCP_HOST_TEST_A", Some("2"));
        check("\u{feff}MCP_HOST_TEST_A=x=y\r\n", "MCP_HOST_TEST_A", Some("x=y"));
        check("# MCP_HOST_TEST_A=1\n=2\nMCP_HOST_TEST_A\n", "MCP_HOST_TEST_A", None);
        let path = std::env::var("PATH").unwrap();
        check("PATH=other", "PATH", Some(&path));
        assert_eq!(Environment::own().variable("MCP_HOST_TEST_A"), None);
    }
}
