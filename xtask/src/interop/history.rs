//! When each suite last passed, and what has changed since.
//!
//! There are two records: the table in docs/dev/interop.md, which `cargo xtask interop --all` writes and a commit
//! carries, and a file in the peers' cache, to which every run appends. The more recent pass counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::peers::Cache;

pub const PAGE: &str = "docs/dev/interop.md";
const CACHED: &str = "interop-passed.tsv";

/// One pass of a suite, or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    pub commit: String,
    pub took: Duration,
}

/// Passes by the name of a suite, or of a part (`name 3/16`).
#[derive(Debug, Default)]
pub struct Passes(BTreeMap<String, Vec<Pass>>);

impl Passes {
    /// Reads both records.
    pub fn load(root: &Path) -> Result<Self> {
        let mut passes = Self::default();
        if let Ok(page) = std::fs::read_to_string(root.join(PAGE)) {
            passes.read_page(&page);
        }
        if let Ok(text) = std::fs::read_to_string(cached()?) {
            passes.read_cached(&text);
        }
        Ok(passes)
    }

    /// Reads rows of the page: `| suite | compared with | result | duration | commit |`.
    fn read_page(&mut self, page: &str) {
        for line in page.lines().filter(|line| line.starts_with('|')) {
            let cells: Vec<_> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let [name, _, "passed", took, commit] = cells.as_slice() else { continue };
            let Some(took) = seconds(took) else { continue };
            self.add(name, commit, took);
        }
    }

    #[cfg(test)]
    pub fn parsed(cached: &str) -> Self {
        let mut passes = Self::default();
        passes.read_cached(cached);
        passes
    }

    /// Reads lines of the cache: name, commit and seconds, separated by tabs.
    fn read_cached(&mut self, text: &str) {
        for line in text.lines() {
            let cells: Vec<_> = line.split('\t').collect();
            let [name, commit, took] = cells.as_slice() else { continue };
            let Ok(took) = took.parse() else { continue };
            self.add(name, commit, Duration::from_secs(took));
        }
    }

    fn add(&mut self, name: &str, commit: &str, took: Duration) {
        self.0.entry(name.to_owned()).or_default().push(Pass { commit: commit.to_owned(), took });
    }

    /// Passes of a part. A pass of the whole suite counts for each of its parts.
    pub fn of<'a>(&'a self, suite: &'a str, part: &'a str) -> impl Iterator<Item = &'a Pass> {
        let names = if suite == part { vec![suite] } else { vec![suite, part] };
        names.into_iter().filter_map(|name| self.0.get(name)).flatten()
    }
}

/// Appends a pass to the record in the cache.
pub fn remember(name: &str, commit: &str, took: Duration) -> Result<()> {
    use std::io::Write as _;
    let path = cached()?;
    let file = std::fs::File::options().create(true).append(true).open(&path);
    let mut file = file.with_context(|| path.display().to_string())?;
    // In one piece: suites may end at the same time.
    let line = format!("{name}\t{commit}\t{}\n", took.as_secs().max(1));
    file.write_all(line.as_bytes()).with_context(|| path.display().to_string())
}

fn cached() -> Result<PathBuf> {
    Ok(Cache::locate()?.root()?.join(CACHED))
}

/// Parses `45 s` and `2 m 05 s`.
fn seconds(text: &str) -> Option<Duration> {
    let words: Vec<_> = text.split(' ').collect();
    match words.as_slice() {
        [seconds, "s"] => Some(Duration::from_secs(seconds.parse().ok()?)),
        [minutes, "m", seconds, "s"] => {
            Some(Duration::from_secs(minutes.parse::<u64>().ok()? * 60 + seconds.parse::<u64>().ok()?))
        }
        _ => None,
    }
}

/// Formats a duration as the page shows it.
pub fn shown(took: Duration) -> String {
    match took.as_secs().max(1) {
        seconds @ ..60 => format!("{seconds} s"),
        seconds => format!("{} m {:02} s", seconds / 60, seconds % 60),
    }
}

#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
}

/// What differs from an earlier commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// Commits between the earlier one and HEAD.
    pub commits: u64,
    /// Paths that differ, including uncommitted ones.
    pub paths: Vec<String>,
}

impl Repository {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The checked-out commit.
    pub fn head(&self) -> Result<String> {
        Ok(self.git(&["rev-parse", "HEAD"])?.trim().to_owned())
    }

    /// Whether the work tree has no uncommitted changes.
    pub fn is_clean(&self) -> Result<bool> {
        Ok(self.git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty())
    }

    /// Changes since a commit; `None` if it is not an ancestor of HEAD in this clone.
    pub fn since(&self, commit: &str) -> Result<Option<Since>> {
        if !commit.chars().all(|c| c.is_ascii_hexdigit()) || commit.len() < 7 {
            return Ok(None);
        }
        if self.git(&["merge-base", "--is-ancestor", commit, "HEAD"]).is_err() {
            return Ok(None);
        }
        let commits = self.git(&["rev-list", "--count", &format!("{commit}..HEAD")])?.trim().parse()?;
        let paths = self.git(&["diff", "--name-only", "--no-renames", commit])?;
        Ok(Some(Since { commits, paths: paths.lines().map(String::from).collect() }))
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let output =
            Command::new("git").args(arguments).current_dir(&self.root).output().context("run git")?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            bail!("git {}: {}", arguments.join(" "), text.trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_rows_of_the_page_are_not_passes() {
        let mut passes = Passes::default();
        passes.read_page(
            "| suite | compared with | result | duration | commit |\n|---|---|---|---|---|\n\
             | `crash` | Capstan itself | passed | 2 m 05 s | `0123abc` |\n\
             | `e2e` | Kubernetes 1.36.3 | FAILED | 9 s | `0123abc` |\n",
        );
        let all: Vec<_> = passes.of("crash", "crash").collect();
        assert_eq!(all, [&Pass { commit: "0123abc".into(), took: Duration::from_secs(125) }]);
        assert_eq!(passes.of("e2e", "e2e").count(), 0);
    }

    #[test]
    fn a_pass_of_the_whole_counts_for_every_part() {
        let passes = Passes::parsed("long\taaaaaaa\t900\nlong 2/4\tbbbbbbb\t10\nbroken line\n");
        assert_eq!(passes.of("long", "long 2/4").count(), 2);
        assert_eq!(passes.of("long", "long 1/4").count(), 1);
        assert_eq!(passes.of("long", "long").count(), 1);
    }

    #[test]
    fn durations_parse_as_they_are_formatted() {
        for count in [1, 59, 60, 3605] {
            let took = Duration::from_secs(count);
            assert_eq!(seconds(&shown(took)), Some(took));
        }
    }
}
