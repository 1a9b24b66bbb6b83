//! A page in the Prometheus text format.

use std::fmt::Write as _;

/// A page in construction.
#[derive(Debug, Default)]
pub(crate) struct MetricsPage(String);

impl MetricsPage {
    /// Starts a metric of this type.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) -> &mut MetricsPage {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        self
    }

    /// Writes one value.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        match labels.is_empty() {
            true => self.line(format_args!("{name} {value}")),
            false => self.line(format_args!("{name}{{{}}} {value}", labels.join(","))),
        }
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a String cannot fail");
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
