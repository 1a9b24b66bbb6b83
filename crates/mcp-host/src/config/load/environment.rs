//! Variables for configurations: the process environment, then an optional `.env` file.

use std::collections::HashMap;

use mcp_config::parse_env_file;
use mcp_model::Secret;

/// Variables by name.
pub(super) struct Environment {
    file: HashMap<String, Secret>,
}

impl Environment {
    /// The process environment.
    pub(super) fn process() -> Environment {
        Environment { file: HashMap::new() }
    }

    /// The process environment, completed by a `.env` file.
    pub(super) fn with_file(text: &str) -> Environment {
        Environment { file: parse_env_file(text).into_iter().collect() }
    }

    /// The value of a variable. A value in the process environment that is not Unicode counts as absent.
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
    fn process_variables_precede_those_of_the_file() {
        check("MCP_HOST_TEST_A=1\nMCP_HOST_TEST_A = 2 \n", "MCP_HOST_TEST_A", Some("2"));
        check("\u{feff}MCP_HOST_TEST_A=x=y\r\n", "MCP_HOST_TEST_A", Some("x=y"));
        check("# MCP_HOST_TEST_A=1\n=2\nMCP_HOST_TEST_A\n", "MCP_HOST_TEST_A", None);
        let path = std::env::var("PATH").unwrap();
        check("PATH=other", "PATH", Some(&path));
        assert_eq!(Environment::process().variable("MCP_HOST_TEST_A"), None);
    }
}
