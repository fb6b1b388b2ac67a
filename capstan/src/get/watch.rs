//! `capstan get --watch`: objects, then every row that changes.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::time::Duration;

use anyhow::Result;
use capstan_view::{Columns, Paint, table};
use jiff::Timestamp;
use serde_json::Value;

use super::Args;
use crate::connection::{Management, Reconnect};
use crate::exit::Exit;
use crate::output::paint;

/// Poll interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// Prints until it is interrupted or nobody reads any more.
pub(super) async fn run(
    management: &Management,
    args: &Args,
    requests: &[(String, Vec<String>)],
) -> Result<Exit> {
    let (namespaces, wide) = (args.all_namespaces, args.output.is_wide());
    let mut rows = Rows { since: Timestamp::now(), printed: BTreeMap::new() };
    let mut connection = Reconnect::default();
    // Names must exist at first, and may be deleted later.
    let mut items = super::all(management, args, requests).await?;
    let wanted = wanted(management, requests).await?;
    let words: BTreeMap<&str, &String> =
        wanted.iter().zip(requests).map(|(one, (word, _))| (one.kind.as_str(), word)).collect();
    let kinds: Vec<(String, Vec<String>)> =
        words.into_values().map(|word| (word.clone(), Vec::new())).collect();
    let mut clusters = super::users(management, &items).await?;
    loop {
        let columns = Columns { namespaces, wide, clusters: &clusters };
        let text = rows.update(&items, columns, Timestamp::now(), paint());
        let mut out = std::io::stdout();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Done),
            written => written?,
        }
        tokio::time::sleep(INTERVAL).await;
        let Some(found) = connection.retry(super::all(management, args, &kinds).await)? else { continue };
        let Some(users) = connection.retry(super::users(management, &found).await)? else { continue };
        (items, clusters) = (found, users);
        items.retain(|item| wanted.iter().any(|one| one.fits(item)));
    }
}

/// Objects of a kind, by their names or all.
struct Wanted<'a> {
    kind: String,
    names: &'a [String],
}

impl Wanted<'_> {
    fn fits(&self, item: &Value) -> bool {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        item["kind"] == self.kind.as_str()
            && (self.names.is_empty() || self.names.iter().any(|wanted| wanted == name))
    }
}

/// The requests by kind: words such as `md` name one in several ways.
async fn wanted<'a>(
    management: &Management,
    requests: &'a [(String, Vec<String>)],
) -> Result<Vec<Wanted<'a>>> {
    let mut wanted = Vec::new();
    for (word, names) in requests {
        wanted.push(Wanted { kind: super::kind(management, word).await?.kind.to_string(), names });
    }
    Ok(wanted)
}

/// What was printed of each object.
struct Rows {
    /// Ages are of this moment where rows are compared: they alone are no change.
    since: Timestamp,
    /// By kind, namespace and name.
    printed: BTreeMap<String, String>,
}

impl Rows {
    /// New and changed rows, and those of objects that are gone. Headings come with the first rows.
    fn update(&mut self, items: &[Value], columns: Columns<'_>, now: Timestamp, paint: Paint) -> String {
        let first = self.printed.is_empty();
        let mut text = String::new();
        let mut seen = BTreeMap::new();
        for (n, of_kind) in items.chunk_by(|a, b| a["kind"] == b["kind"]).enumerate() {
            let shown = table(of_kind, columns, now, paint);
            let compared = table(of_kind, columns, self.since, Paint::Plain);
            let mut lines = shown.lines();
            let heading = lines.next().unwrap_or_default();
            if first {
                text.push_str(&format!("{}{heading}\n", if n > 0 { "\n" } else { "" }));
            }
            for ((item, line), compared) in of_kind.iter().zip(lines).zip(compared.lines().skip(1)) {
                // Another row may have changed the widths.
                let compared = compared.split_whitespace().collect::<Vec<_>>().join(" ");
                let key = key(item);
                if self.printed.get(&key) != Some(&compared) {
                    text.push_str(&format!("{line}\n"));
                }
                seen.insert(key, compared);
            }
        }
        for gone in self.printed.keys().filter(|key| !seen.contains_key(*key)) {
            text.push_str(&format!("{gone} is deleted\n"));
        }
        self.printed = seen;
        text
    }
}

fn key(item: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &item["metadata"];
    format!("{} {}/{}", word(&item["kind"]), word(&metadata["namespace"]), word(&metadata["name"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(name: &str, ready: &str) -> Value {
        let created = "2026-01-01T00:00:00Z";
        json!({
            "kind": "Machine", "metadata": {"name": name, "namespace": "a", "creationTimestamp": created},
            "status": {"conditions": [
                {"type": "Ready", "status": ready, "reason": "A", "message": "", "lastTransitionTime": created},
            ]},
        })
    }

    #[test]
    fn only_rows_that_change_are_printed_again() {
        let at = |second: i64| Timestamp::from_second(1_767_225_600 + second).expect("a time");
        let columns = Columns { namespaces: false, wide: false, clusters: &[] };
        let mut rows = Rows { since: at(10), printed: BTreeMap::new() };
        let mut update = |items: &[Value], second| rows.update(items, columns, at(second), Paint::Plain);
        let all = update(&[machine("m1", "False"), machine("m2", "False")], 10);
        assert_eq!(all.lines().count(), 3, "{all}");
        assert_eq!(update(&[machine("m1", "False"), machine("m2", "False")], 500), "", "older is no change");
        let changed = update(&[machine("m1", "False"), machine("m2", "True")], 510);
        assert!(changed.starts_with("m2 ") && changed.lines().count() == 1, "{changed}");
        assert_eq!(update(&[machine("m2", "True")], 520), "Machine a/m1 is deleted\n");
        let new = update(&[machine("m2", "True"), machine("m3", "True")], 530);
        assert!(new.starts_with("m3 ") && new.lines().count() == 1, "{new}");
    }

    #[test]
    fn objects_are_selected_by_kind_and_name() {
        let item = machine("m1", "True");
        for (kind, names, expected) in [
            ("Machine", &[][..], true),
            ("Machine", &["m1"][..], true),
            ("Machine", &["m2"][..], false),
            ("Cluster", &["m1"][..], false),
            ("Cluster", &[][..], false),
        ] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let wanted = Wanted { kind: kind.to_owned(), names: &names };
            assert_eq!(wanted.fits(&item), expected, "{kind} {names:?}");
        }
    }
}
