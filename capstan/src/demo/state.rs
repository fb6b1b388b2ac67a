//! What a second run has to know, and whose directory it is.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// The file in the data directory.
const FILE: &str = "demo.json";
/// Port of clusters where nobody says another.
const PORT: u16 = 16443;

/// What is kept between runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct State {
    /// Port of the clusters' API servers: it is in their certificates' names, kubeconfigs and boot data.
    pub endpoint_port: u16,
    /// The sample cluster was applied; whatever became of it since is the user's doing.
    pub applied: bool,
}

impl State {
    /// The state of a directory, or of a new one. Refuses directories of anybody else.
    pub fn open(dir: &Path, port: Option<u16>) -> Result<Self> {
        let file = dir.join(FILE);
        let shown = dir.display();
        let state = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<Self>(&bytes)
                .with_context(|| format!("{} was not written by `capstan demo`", file.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut entries = std::fs::read_dir(dir).into_iter().flatten();
                if entries.next().is_some() {
                    bail!(
                        "{shown} holds something else than a demonstration: choose another directory with --data-dir"
                    );
                }
                let fresh = Self { endpoint_port: port.unwrap_or(PORT), applied: false };
                std::fs::create_dir_all(dir).with_context(|| format!("{shown} cannot be made"))?;
                fresh.write(dir)?;
                fresh
            }
            Err(error) => return Err(error).with_context(|| format!("{} cannot be read", file.display())),
        };
        if port.is_some_and(|port| port != state.endpoint_port) {
            bail!(
                "--endpoint-port: the clusters in {shown} are on port {}; choose another directory with --data-dir",
                state.endpoint_port
            );
        }
        Ok(state)
    }

    /// Writes it.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let file = dir.join(FILE);
        let fresh = dir.join("demo.json.new");
        let written = std::fs::write(&fresh, serde_json::to_vec(self)?);
        written
            .and_then(|()| std::fs::rename(&fresh, &file))
            .with_context(|| format!("{} cannot be written", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_continued_and_nobody_else_s_is_touched() {
        let dir = tempfile::tempdir().expect("a directory");
        let own = dir.path().join("own");
        let mut state = State::open(&own, Some(7000)).expect("a new one");
        assert_eq!(state, State { endpoint_port: 7000, applied: false });
        state.applied = true;
        state.write(&own).expect("written");
        assert_eq!(State::open(&own, None).expect("continued"), state);
        assert!(State::open(&own, Some(7001)).is_err_and(|error| error.to_string().contains("7000")));
        let foreign = dir.path().join("foreign");
        std::fs::create_dir_all(foreign.join("store")).expect("made");
        assert!(State::open(&foreign, None).is_err_and(|error| error.to_string().contains("--data-dir")));
    }
}
