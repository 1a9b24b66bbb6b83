//! The command line that all clients share. What a client does not know it leaves alone.

use std::collections::BTreeMap;

/// What a client is asked to do.
#[derive(Debug, Clone, Default)]
pub struct Options {
    named: BTreeMap<String, String>,
    /// The command of the server, where the client starts it.
    pub server: Vec<String>,
}

impl Options {
    /// Those of this process.
    pub fn read() -> Options {
        Options::of(std::env::args().skip(1))
    }

    /// Those that stand here: `--name value` pairs, then `--` and the server's command.
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

    /// The text given under a name.
    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.named.get(name).map_or(default, String::as_str)
    }

    /// The number given under a name.
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

/// The runtime that `--rt` names: `ct` for one thread, else Tokio's default.
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
