//! Reading the Prometheus text format, as far as our own servers write it.

#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub name: String,
    labels: Vec<(String, String)>,
    pub value: f64,
}

impl Sample {
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// The samples of a page. Lines that are none are skipped.
pub fn samples(page: &str) -> Vec<Sample> {
    page.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect()
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => read_labels(inside)?,
        None => (Vec::new(), rest),
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// Labels up to the closing brace, and what follows it.
fn read_labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match letters.next()?.1 {
                    'n' => '\n',
                    letter => letter,
                }),
                (_, letter) => value.push(letter),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &quoted[end + 1..];
    }
}

/// The sum of the samples of a name whose label has a value.
pub fn sum(samples: &[Sample], name: &str, label: &str, value: &str) -> f64 {
    let fitting = samples.iter().filter(|sample| sample.name == name && sample.label(label) == value);
    // The sum of no floating-point numbers is -0.
    fitting.fold(0.0, |sum, sample| sum + sample.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_labels_and_values() {
        let page = "# HELP x y\nx{a=\"1\",b=\"a \\\"}\\\" \\\\ c\"} 3\nx{a=\"2\"} 4.5 1700000000\ny 1e3\nbroken\nz{a=\"1 2\n";
        let found = samples(page);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(
            (found[0].label("a"), found[0].label("b"), found[0].label("c")),
            ("1", "a \"}\" \\ c", "")
        );
        assert_eq!((sum(&found, "x", "a", "2"), sum(&found, "y", "", "")), (4.5, 1000.0));
    }
}
