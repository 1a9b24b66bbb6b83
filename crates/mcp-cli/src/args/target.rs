//! Arguments that describe a server on the command line, in place of a configuration.

use std::path::Path;

use clap::Args;

use crate::args::choice::choice_parser;
use crate::args::files::{AddArgs, TRANSPORTS, TransportName};

/// A server to start or connect to, in place of those of a configuration. Its URL, if it has one, is the word FILE.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of a server without a configuration")]
pub(crate) struct TargetArgs {
    /// Header of every request to the URL; `${NAME}` in the value is replaced by a variable; may be given several times
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Environment variable of the program; may be given several times
    #[arg(short, long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Transport of the URL [default: by its scheme]
    #[arg(short, long, value_parser = choice_parser(TRANSPORTS))]
    transport: Option<TransportName>,
    /// Program to start, with its arguments, in place of the servers of a configuration
    #[arg(last = true, value_name = "COMMAND")]
    program: Vec<String>,
}

impl TargetArgs {
    /// Whether the command line names a program, so that no other word names a configuration.
    pub(super) fn has_program(&self) -> bool {
        !self.program.is_empty()
    }

    /// The server, as arguments of `add`. `file` is the word FILE. `None`: the servers of a configuration. The error is
    /// a message for the user.
    pub(crate) fn to_server(&self, file: Option<&Path>) -> Result<Option<AddArgs>, String> {
        let TargetArgs { header, env, transport, program } = self.clone();
        let word = file.map(|it| it.to_string_lossy().into_owned()).filter(|word| !word.is_empty());
        let has_options = !header.is_empty() || !env.is_empty() || transport.is_some();
        let words = match (word, program.is_empty()) {
            (Some(word), true) if is_url(&word) => vec![word],
            (None, false) => Vec::new(),
            (Some(word), false) => {
                return Err(format!(
                    "both `{word}` and a program after `--` are given; leave out one of them"
                ));
            }
            (_, true) if has_options => {
                return Err("`--header`, `--env` and `--transport` belong to a server of the command line: a URL, or \
                            a program after `--`"
                    .to_owned());
            }
            (_, true) => return Ok(None),
        };
        Ok(Some(AddArgs { words, program, header, env, transport, ..AddArgs::default() }))
    }
}

/// Whether a word is the URL of a server.
pub(super) fn is_url(word: &str) -> bool {
    word.contains("://")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        file: Option<std::path::PathBuf>,
        #[command(flatten)]
        target: TargetArgs,
    }

    #[track_caller]
    fn check(line: &str, want: &str) {
        let Line { file, target } = Line::try_parse_from(format!("x {line}").split_whitespace()).unwrap();
        let got = match target.to_server(file.as_deref()) {
            Ok(None) => "configuration".to_owned(),
            Ok(Some(args)) => format!("{:?} {:?} {:?} {:?}", args.words, args.program, args.header, args.env),
            Err(message) => message,
        };
        assert_eq!(got, want);
    }

    /// RPT-360
    #[test]
    fn rpt_360_words_name_a_url_a_program_or_a_configuration() {
        check("", "configuration");
        check("a.json", "configuration");
        check("https://a.example/mcp -H A=b", r#"["https://a.example/mcp"] [] ["A=b"] []"#);
        check("-e A=b -- npx -y pkg --help", r#"[] ["npx", "-y", "pkg", "--help"] [] ["A=b"]"#);
        check("a.json -- npx", "both `a.json` and a program after `--` are given; leave out one of them");
        let options = "`--header`, `--env` and `--transport` belong to a server of the command line: a URL, or a \
                       program after `--`";
        check("a.json -H A=b", options);
        check("-t sse", options);
    }
}
