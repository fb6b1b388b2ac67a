//! Runs the commands of a scenario with kubectl on the path, against one server.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::normalise::Side;
use super::scenario::{Scenario, Step};
use crate::api::Api;
use crate::bed::{Server, kubeconfig, wait};

/// Timeout of a command.
const LIMIT: Duration = Duration::from_secs(60);

/// Shell functions for the commands.
const PRELUDE: &str = r#"
# await FILE TEXT: waits until the file contains the text.
await() { i=0; while ! grep -q -- "$2" "$1" 2>/dev/null; do i=$((i+1)); [ $i -gt 200 ] && { echo "no $2 in $1"; return 1; }; sleep 0.05; done; }
"#;

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// One scenario on one server.
#[derive(Debug)]
pub struct Shell {
    pub side: Side,
    api: Api,
    folder: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Shell {
    /// Creates the namespace and the working folder.
    pub async fn open(server: &Server, scenario: &Scenario, root: &Path, bin: &Path) -> Result<Self> {
        let api = server.api()?;
        let folder = root.join(&scenario.name);
        std::fs::create_dir_all(&folder)?;
        for (name, text) in &scenario.files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            std::fs::write(&path, text)?;
            if name.ends_with(".sh") {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
            }
        }
        let namespace = scenario.namespace();
        api.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await?.success()?;
        for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let path = format!("/api/v1/namespaces/{namespace}/{path}");
            wait::until(&path, Duration::from_secs(30), || async {
                Ok(api.get(&path).await?.status.is_success().then_some(()))
            })
            .await?;
        }
        let config = folder.join("kubeconfig");
        std::fs::write(&config, with_namespace(&server.kubeconfig, &namespace)?)?;
        let path = std::env::var("PATH").unwrap_or_default();
        let environment = BTreeMap::from([
            ("PATH".to_owned(), format!("{}:{path}", bin.display())),
            ("KUBECONFIG".to_owned(), config.display().to_string()),
            ("HOME".to_owned(), root.display().to_string()),
            ("NAMESPACE".to_owned(), namespace),
            // Colours and terminal widths are not compared.
            ("TERM".to_owned(), "dumb".to_owned()),
            ("LC_ALL".to_owned(), "C".to_owned()),
        ]);
        let side =
            Side { url: kubeconfig::read(&server.kubeconfig)?.url, folder: folder.display().to_string() };
        Ok(Self { side, api, folder, environment })
    }

    /// Runs a step. Repeats it until it shows the text it waits for, if any.
    pub async fn run(&self, step: &Step) -> Result<Output> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let output = self.line(&step.run).await?;
            if step.quiet && output.code != 0 {
                bail!("{}: exit code {}: {}{}", step.run, output.code, output.stdout, output.stderr);
            }
            let seen = step.until.as_ref().is_none_or(|text| output.stdout.contains(text));
            if seen || Instant::now() > deadline {
                return Ok(output);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn line(&self, line: &str) -> Result<Output> {
        let child = tokio::process::Command::new("sh")
            .arg("-c")
            .arg(format!("{PRELUDE}\n{line}"))
            .current_dir(&self.folder)
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("start sh")?;
        match tokio::time::timeout(LIMIT, child.wait_with_output()).await {
            Ok(output) => {
                let output = output?;
                Ok(Output {
                    code: output.status.code().unwrap_or(-1),
                    stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
                    stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
                })
            }
            Err(_) => {
                Ok(Output { code: -1, stdout: String::new(), stderr: format!("no end within {LIMIT:?}") })
            }
        }
    }

    /// The stored objects of a collection.
    pub async fn stored(&self, path: &str) -> Result<Value> {
        let reply = self.api.get(path).await?;
        if reply.status == 404 { Ok(json!({"items": []})) } else { reply.success() }
    }
}

fn with_namespace(kubeconfig: &Path, namespace: &str) -> Result<String> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let mut config: Value = serde_saphyr::from_str(&text)?;
    for context in config["contexts"].as_array_mut().into_iter().flatten() {
        context["context"]["namespace"] = namespace.into();
    }
    // Names in the kubeconfig must not differ between the sides.
    Ok(config.to_string())
}
