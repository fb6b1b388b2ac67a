//! State between runs.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::choice::{CHOICES, Choice, SAMPLE_PORT, find};

/// The file in the data directory.
const FILE: &str = "demo.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct State {
    /// The cloud; the first of the demo's where an earlier version wrote none.
    #[serde(default = "first_cloud")]
    pub cloud: String,
    /// Port of the clusters' API servers; it is in their kubeconfigs and boot data and cannot change.
    pub endpoint_port: u16,
    /// The sample cluster was applied; it is not applied again.
    pub applied: bool,
}

fn first_cloud() -> String {
    CHOICES[0].provider.to_owned()
}

impl State {
    /// Reads the state of a directory, or creates it. Refuses directories that the demo did not create.
    pub fn open(dir: &Path, cloud: Option<&str>, port: Option<u16>) -> Result<Self> {
        let file = dir.join(FILE);
        let shown = dir.display();
        let state = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<Self>(&bytes)
                .with_context(|| format!("{} was not written by `capstan demo`", file.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut entries = std::fs::read_dir(dir).into_iter().flatten();
                if entries.next().is_some() {
                    bail!(
                        "{shown} is not empty and was not created by `capstan demo`: use another directory with --data-dir"
                    );
                }
                let cloud = cloud.map_or_else(first_cloud, str::to_owned);
                let fresh = Self { cloud, endpoint_port: port.unwrap_or(SAMPLE_PORT), applied: false };
                std::fs::create_dir_all(dir).with_context(|| format!("cannot create {shown}"))?;
                fresh.write(dir)?;
                fresh
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        };
        if let Some(cloud) = cloud.filter(|cloud| *cloud != state.cloud) {
            bail!(
                "--cloud {cloud}: the demo in {shown} runs on {}; use another directory with --data-dir",
                state.cloud
            );
        }
        let Some(port) = port.filter(|port| *port != state.endpoint_port) else { return Ok(state) };
        // A first run that found the port in use left no cluster behind.
        if state.applied {
            bail!(
                "--endpoint-port: the clusters in {shown} are on port {}; use another directory with --data-dir",
                state.endpoint_port
            );
        }
        let state = Self { endpoint_port: port, ..state };
        state.write(dir)?;
        Ok(state)
    }

    pub fn choice(&self) -> Result<&'static Choice> {
        find(&self.cloud).with_context(|| format!("{FILE}: this program has no demo on {}", self.cloud))
    }

    pub fn write(&self, dir: &Path) -> Result<()> {
        let file = dir.join(FILE);
        let fresh = dir.join("demo.json.new");
        let written = std::fs::write(&fresh, serde_json::to_vec(self)?);
        written
            .and_then(|()| std::fs::rename(&fresh, &file))
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_continued_and_foreign_ones_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let own = dir.path().join("own");
        let mut state = State::open(&own, None, Some(7000)).expect("a new one");
        assert_eq!(state, State { cloud: first_cloud(), endpoint_port: 7000, applied: false });
        let elsewhere = State::open(&own, None, Some(6999)).expect("there is no cluster yet");
        assert_eq!(elsewhere.endpoint_port, 6999);
        assert_eq!(State::open(&own, None, None).expect("written"), elsewhere);
        state.applied = true;
        state.write(&own).expect("written");
        assert_eq!(State::open(&own, Some(&state.cloud), None).expect("continued"), state);
        assert!(State::open(&own, None, Some(7001)).is_err_and(|error| error.to_string().contains("7000")));
        let other = State::open(&own, Some(CHOICES[1].provider), None).expect_err("another cloud");
        assert!(other.to_string().contains("--data-dir"), "{other}");
        std::fs::write(own.join(FILE), br#"{"endpointPort": 7000, "applied": true}"#).expect("written");
        assert_eq!(State::open(&own, None, None).expect("of an earlier version"), state);
        let foreign = dir.path().join("foreign");
        std::fs::create_dir_all(foreign.join("store")).expect("made");
        assert!(
            State::open(&foreign, None, None).is_err_and(|error| error.to_string().contains("--data-dir"))
        );
    }
}
