//! Merging of several files into one configuration. Earlier files take precedence.

use std::collections::HashMap;

use super::event::ShadowedServer;
use crate::config::desired::DesiredServers;

/// The usable content of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct UsableConfig {
    /// The names of all entries. Invalid and disabled entries are included, because they too hide the entries of
    /// the same name in later files.
    pub(crate) names: Vec<String>,
    /// Its servers.
    pub(crate) desired: DesiredServers,
}

/// Merges files. Returns the servers and the hidden entries.
pub(crate) fn merge<'a>(
    files: impl Iterator<Item = (&'a str, &'a UsableConfig)>,
) -> (DesiredServers, Vec<ShadowedServer>) {
    let mut merged = DesiredServers::default();
    let mut shadowed = Vec::new();
    let mut owners: HashMap<String, &str> = HashMap::new();
    for (path, config) in files {
        let mut is_first = |server: &str| match owners.get(server) {
            None => true,
            Some(by) => {
                let (server, file, by) = (server.to_owned(), path.to_owned(), (*by).to_owned());
                shadowed.push(ShadowedServer { server, file, by });
                false
            }
        };
        let DesiredServers { servers, failed } = &config.desired;
        merged.servers.extend(servers.iter().filter(|it| is_first(it.spec.id.as_str())).cloned());
        merged.failed.extend(failed.iter().filter(|it| is_first(&it.id)).cloned());
        // Added after the servers of the file: duplicates within a file are reported elsewhere.
        for name in &config.names {
            owners.entry(name.clone()).or_insert(path);
        }
    }
    (merged, shadowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::desired::FailedServer;
    use crate::error::HostError;
    use crate::supervisor::machine::tests::fixture::server;
    use mcp_host_model::ErrorKind;

    /// Files as `a b! c-`: a server, an invalid entry, a disabled one.
    #[track_caller]
    fn check(files: &[&str], want: &str) {
        let good = |text: &str| {
            let mut res = UsableConfig::default();
            for word in text.split_whitespace() {
                let id = word.trim_end_matches(['!', '-']);
                res.names.push(id.to_owned());
                if word.ends_with('!') {
                    let failure = HostError::new(ErrorKind::Config, "bad entry");
                    res.desired.failed.push(FailedServer { id: id.into(), error: failure });
                } else if !word.ends_with('-') {
                    res.desired.servers.push(server(&format!("{id}=1.1")));
                }
            }
            res
        };
        let goods: Vec<(String, UsableConfig)> =
            files.iter().enumerate().map(|(at, it)| (format!("f{at}"), good(it))).collect();
        let (wanted, shadowed) = merge(goods.iter().map(|(path, good)| (path.as_str(), good)));
        let words = wanted.servers.iter().map(|it| it.spec.id.to_string());
        let words = words.chain(wanted.failed.iter().map(|it| format!("{}!", it.id)));
        let words = words.chain(shadowed.iter().map(|it| format!("{}:{}<{}", it.server, it.file, it.by)));
        assert_eq!(words.collect::<Vec<_>>().join(" "), want);
    }

    #[test]
    fn earlier_file_takes_precedence() {
        check(&[], "");
        check(&["a b"], "a b");
        check(&["b", "a"], "b a");
        check(&["a b", "c b a"], "a b c b:f1<f0 a:f1<f0");
        check(&["a", "b", "b a"], "a b b:f2<f1 a:f2<f0");
        check(&["a a"], "a a");
    }

    #[test]
    fn inactive_entry_keeps_its_name() {
        check(&["a!", "a"], "a! a:f1<f0");
        check(&["a-", "a b"], "b a:f1<f0");
        check(&["a", "a!"], "a a:f1<f0");
        check(&["a", "a-"], "a");
    }
}
