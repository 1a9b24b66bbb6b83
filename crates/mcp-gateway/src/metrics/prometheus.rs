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

/// The lines of a page whose labels are all accepted, by key and value, and its comments.
pub(crate) fn select_series(page: &str, accepts: impl Fn(&str, &str) -> bool) -> String {
    let is_shown = |line: &&str| {
        let labels = line.split_once('{').filter(|_| !line.starts_with('#')).map(|(_, labels)| labels);
        labels.is_none_or(|labels| {
            read_labels(labels).is_some_and(|labels| labels.iter().all(|(key, value)| accepts(key, value)))
        })
    };
    page.split_inclusive('\n').filter(is_shown).collect()
}

/// Reads the labels after `{`. `None` if they have no end.
fn read_labels(mut text: &str) -> Option<Vec<(&str, String)>> {
    let mut labels = Vec::new();
    while !text.starts_with('}') {
        let (key, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        loop {
            match characters.next()? {
                (_, '"') => break,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    escaped => value.push(escaped),
                },
                (_, character) => value.push(character),
            }
        }
        labels.push((key.trim_start_matches(','), value));
        text = characters.as_str();
    }
    Some(labels)
}

/// Escapes the value of a label.
fn escape_label_value(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    // RPT-253
    #[test]
    fn series_are_selected_by_their_labels() {
        let mut page = MetricsPage::default();
        page.start_metric("m", "gauge", "Has {a=\"1\"}.");
        page.write_sample("m", &[], 1.0);
        page.write_sample("m", &[("a", "x\"}\n\\"), ("b", "2")], 1.0);
        page.write_sample("m", &[("a", "y"), ("b", "{,")], 1.0);
        let text = page.into_text() + "m{a=\"broken\n";
        let select = |key, value| select_series(&text, |k, v| k != key || v == value).lines().skip(2).count();
        assert_eq!(select("none", ""), 3);
        assert_eq!(select("a", "x\"}\n\\"), 2);
        assert_eq!(select("b", "{,"), 2);
        assert_eq!(select("b", "other"), 1);
    }

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escape_label_value("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
