//! A page in the Prometheus text format.

use std::fmt::Write as _;

/// A page that is being written.
#[derive(Debug, Default)]
pub(crate) struct MetricsPage(String);

impl MetricsPage {
    /// Writes the head of a metric: its help and its type.
    pub(crate) fn start_metric(&mut self, name: &str, kind: &str, help: &str) -> &mut MetricsPage {
        self.write_line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        self
    }

    /// Writes one sample of the metric.
    pub(crate) fn write_sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escape_label_value(value))).collect();
        match labels.is_empty() {
            true => self.write_line(format_args!("{name} {value}")),
            false => self.write_line(format_args!("{name}{{{}}} {value}", labels.join(","))),
        }
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    fn write_line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a String cannot fail");
    }
}

/// Escapes the value of a label.
fn escape_label_value(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escape_label_value("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
