//! A program that prints a secret, such as those of 1Password, pass or Vault.
//!
//! It is started without a shell. Its output is bounded, and neither it nor its standard error is logged or repeated.

use std::process::Command;
use std::time::Duration;

use mcp_host_config::SecretSource;
use mcp_host_model::Secret;

use crate::state::program_output::{OutputLimits, ProgramOutputError, program_output};
use crate::state::secrets::{MAX_SECRET_BYTES, SecretError, check_secret};

/// The text that is replaced by the name of the secret.
const PLACEHOLDER: &str = "{name}";

/// How long the program may take, a question to the user included.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The program that prints a secret, with its arguments. Invariant: an argument has the placeholder `{name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretCommand {
    program: String,
    arguments: Vec<String>,
}

impl SecretCommand {
    /// Parses a JSON array: the program and its arguments, with `{name}` in one of these.
    ///
    /// ```
    /// use mcp_host_runtime::SecretCommand;
    ///
    /// SecretCommand::parse(r#"["pass", "show", "mcp/{name}"]"#)?;
    /// assert!(SecretCommand::parse("pass show mcp/{name}").is_err());
    /// # Ok::<(), mcp_host_runtime::SecretError>(())
    /// ```
    pub fn parse(text: &str) -> Result<SecretCommand, SecretError> {
        let invalid = "it must be a JSON array of texts, such as [\"pass\", \"show\", \"mcp/{name}\"]";
        let words: Vec<String> = serde_json::from_str(text).map_err(|_| SecretError::new(invalid))?;
        let mut words = words.into_iter();
        let program = words.next().filter(|it| !it.is_empty() && !it.contains(PLACEHOLDER));
        let program = program.ok_or_else(|| SecretError::new(invalid))?;
        let arguments: Vec<String> = words.collect();
        if !arguments.iter().any(|it| it.contains(PLACEHOLDER)) {
            return Err(SecretError::new("one of its arguments must contain {name}"));
        }
        Ok(SecretCommand { program, arguments })
    }

    /// Runs the program. Its output without the line end is the secret.
    fn run(&self, name: &str, timeout: Duration) -> Result<Secret, SecretError> {
        let failed = |why: String| SecretError::new(format!("the secret command `{}` {why}", self.program));
        let mut command = Command::new(&self.program);
        command.args(self.arguments.iter().map(|it| it.replace(PLACEHOLDER, name)));
        // A secret may have a line end behind it.
        let limits = OutputLimits { bytes: MAX_SECRET_BYTES + 2, time: timeout };
        let bytes = program_output(command, "", limits).map_err(|error| match error {
            ProgramOutputError::TooLong(_) => failed(format!("printed more than {MAX_SECRET_BYTES} bytes")),
            ProgramOutputError::Failed(status) => {
                failed(format!("has failed for `{name}` ({status}); run it in a terminal"))
            }
            error => failed(error.to_string()),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| failed("printed no text".to_owned()))?;
        let text = text.strip_suffix('\n').map_or(text.as_str(), |it| it.strip_suffix('\r').unwrap_or(it));
        check_secret(text).map_err(|error| failed(format!("printed no secret: {error}")))?;
        Ok(Secret::new(text))
    }
}

impl SecretSource for SecretCommand {
    fn secret(&self, name: &str) -> Result<Option<Secret>, String> {
        self.run(name, TIMEOUT).map(Some).map_err(|it| it.message)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Runs `sh` with a script, and returns the secret or the error.
    fn run(script: &str, timeout: Duration) -> Result<String, String> {
        let words = serde_json::to_string(&["sh", "-c", script, "{name}"]).expect("texts serialize");
        let command = SecretCommand::parse(&words).expect("the words are a command");
        command.run("KEY", timeout).map(|it| it.expose().to_owned()).map_err(|it| it.message)
    }

    // RPT-303
    #[test]
    fn output_of_the_secret_command_is_the_secret() {
        let check = |script: &str, want: Result<&str, &str>| {
            assert_eq!(run(script, TIMEOUT), want.map(String::from).map_err(String::from), "{script}");
        };
        check("echo \"of $0\"", Ok("of KEY"));
        check("printf 'a\\nb\\r\\n'", Ok("a\nb"));
        check("printf x", Ok("x"));
        check("true", Err("the secret command `sh` printed no secret: the secret is empty"));
        check(
            "echo planted; echo planted >&2; exit 3",
            Err("the secret command `sh` has failed for `KEY` (exit status: 3); run it in a terminal"),
        );
        check("printf '\\377'", Err("the secret command `sh` printed no text"));
        check("yes", Err("the secret command `sh` printed more than 65536 bytes"));
    }

    #[test]
    fn secret_command_that_does_not_end_is_killed() {
        let want = "the secret command `sh` did not end within 0 s";
        assert_eq!(run("exec sleep 600", Duration::from_millis(50)), Err(want.to_owned()));
    }

    #[test]
    fn secret_command_is_an_array_with_a_placeholder() {
        for text in
            ["pass {name}", "[]", "{}", r#"["pass"]"#, r#"["{name}"]"#, r#"["", "{name}"]"#, r#"["a", 1]"#]
        {
            assert!(SecretCommand::parse(text).is_err(), "{text}");
        }
        assert!(SecretCommand::parse(r#"["op", "read", "op://Private/{name}/credential"]"#).is_ok());
    }
}
