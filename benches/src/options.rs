//! The common command line of all clients. Unknown options are ignored.

use std::collections::BTreeMap;

/// The options of a client.
#[derive(Debug, Clone, Default)]
pub struct Options {
    named: BTreeMap<String, String>,
    /// The command of the server, if the client starts it.
    pub server: Vec<String>,
}

impl Options {
    /// Parses the arguments of this process.
    pub fn read() -> Options {
        Options::of(std::env::args().skip(1))
    }

    /// Parses `--name value` pairs, then `--` and the server's command.
    pub fn of(arguments: impl Iterator<Item = String>) -> Options {
        let mut arguments = arguments;
        let mut named = BTreeMap::new();
        while let Some(name) = arguments.next() {
            if name == "--" {
                break;
            }
            named.insert(name, arguments.next().unwrap_or_default());
        }
        Options { named, server: arguments.collect() }
    }

    /// The value of an option.
    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.named.get(name).map_or(default, String::as_str)
    }

    /// The number of an option.
    pub fn number(&self, name: &str, default: usize) -> usize {
        self.named.get(name).and_then(|it| it.parse().ok()).unwrap_or(default)
    }

    /// `--scenario`.
    pub fn scenario(&self) -> &str {
        self.text("--scenario", "seq")
    }

    /// `--transport`: `stdio`, `http`, `sse` or `ws`.
    pub fn transport(&self) -> &str {
        self.text("--transport", "stdio")
    }

    /// `--url`.
    pub fn url(&self) -> &str {
        self.text("--url", "")
    }

    /// `--n`.
    pub fn count(&self) -> usize {
        self.number("--n", 1000)
    }
}

/// The runtime of `--rt`: `ct` for one thread, else Tokio's default.
pub fn runtime(options: &Options) -> std::io::Result<tokio::runtime::Runtime> {
    match options.text("--rt", "mt") {
        "ct" => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        _ => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_left_alone() {
        let words = ["--n", "7", "--odd", "x", "--", "server", "--n", "8"].map(str::to_owned);
        let options = Options::of(words.into_iter());
        assert_eq!((options.count(), options.transport()), (7, "stdio"));
        assert_eq!(options.server, ["server", "--n", "8"]);
    }
}
