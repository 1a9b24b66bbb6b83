//! The variables of configurations: those of the process environment, and those of an optional `.env` file.

use mcp_host_model::Secret;

/// Returns the value of a variable: that of the process environment, else the last one in the file. A value in the
/// process environment that is not Unicode counts as absent.
pub(super) fn variable(file: &[(String, Secret)], name: &str) -> Option<String> {
    let in_file = || file.iter().rev().find(|it| it.0 == name).map(|it| it.1.expose().to_owned());
    std::env::var(name).ok().or_else(in_file)
}

/// Returns the names of all variables, for suggestions.
pub(super) fn variable_names(file: &[(String, Secret)]) -> Vec<String> {
    let process = std::env::vars_os().filter_map(|it| it.0.into_string().ok());
    process.chain(file.iter().map(|it| it.0.clone())).collect()
}

#[cfg(test)]
mod tests {
    use mcp_host_config::parse_editor_env_file;

    use super::*;

    #[track_caller]
    fn check(file: &str, name: &str, want: Option<&str>) {
        assert_eq!(variable(&parse_editor_env_file(file), name).as_deref(), want);
    }

    #[test]
    fn process_variables_precede_those_of_the_file() {
        check("MCP_HOST_TEST_A=1\nMCP_HOST_TEST_A = 2 \n", "MCP_HOST_TEST_A", Some("2"));
        check("\u{feff}MCP_HOST_TEST_A=x=y\r\n", "MCP_HOST_TEST_A", Some("x=y"));
        // RPT-094
        check("export MCP_HOST_TEST_A=\"q v\" # c\n", "MCP_HOST_TEST_A", Some("q v"));
        check("# MCP_HOST_TEST_A=1\n=2\nMCP_HOST_TEST_A\n", "MCP_HOST_TEST_A", None);
        let path = std::env::var("PATH").unwrap();
        check("PATH=other", "PATH", Some(&path));
        assert_eq!(variable(&[], "MCP_HOST_TEST_A"), None);
    }
}
