//! Configurations that real and simulated kubeadm must validate alike.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::bed::Workdir;

/// Base documents and the changes to them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    plain: BTreeMap<String, Value>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    cluster: Option<Value>,
    init: Option<Value>,
    join: Option<Value>,
    /// A part of kubeadm's error message; empty if it accepts.
    #[serde(default)]
    error: String,
}

impl Case {
    /// Its documents, as one file.
    fn configuration(&self, plain: &BTreeMap<String, Value>) -> Result<String> {
        let documents = match &self.join {
            Some(join) => vec![("join", Some(join))],
            None => vec![("cluster", self.cluster.as_ref()), ("init", self.init.as_ref())],
        };
        let mut text = String::new();
        for (name, over) in documents {
            let mut document = plain.get(name).with_context(|| format!("no base document {name}"))?.clone();
            super::overlay(&mut document, over.unwrap_or(&Value::Null));
            text.push_str(&format!("---\n{document}\n"));
        }
        Ok(text)
    }
}

/// Returns the number of cases that pass, and the failures.
pub fn ask(workdir: &mut Workdir, kubeadm: &Path, only: &str) -> Result<(usize, Vec<String>)> {
    let table: Table = super::table("verdicts.yaml")?;
    let file = workdir.folder("verdicts")?.join("kubeadm.yaml");
    let (mut judged, mut failures) = (0, Vec::new());
    for case in table.cases.iter().filter(|case| case.name.contains(only)) {
        std::fs::write(&file, case.configuration(&table.plain)?)?;
        match verdict(kubeadm, &file, &case.error) {
            Ok(()) => judged += 1,
            Err(error) => failures.push(format!("{}: {error:#}", case.name)),
        }
    }
    Ok((judged, failures))
}

fn verdict(kubeadm: &Path, file: &Path, error: &str) -> Result<()> {
    let output = Command::new(kubeadm).args(["config", "validate", "--config"]).arg(file).output()?;
    let output_text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success() == error.is_empty(), "kubeadm printed: {output_text}");
    ensure!(output_text.contains(error), "{error:?} is not in kubeadm's output: {output_text}");
    Ok(())
}
