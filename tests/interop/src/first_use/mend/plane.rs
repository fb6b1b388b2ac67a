//! A demo with a shell in which users and the cloud's operator type commands.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::super::demo::Demo;
use crate::bed::Workdir;
use crate::bed::cluster::example;

/// Longest time of a script.
const LIMIT: Duration = Duration::from_secs(240);

/// `ctl` is the cloud's operator; `vm` prints the id of a machine of the control plane or of the workers.
const FUNCTIONS: &str = r#"
ctl() { capstan sim cloudstack ctl --url "$CLOUD" "$@"; }
vm() {
  role='!cluster.x-k8s.io/control-plane'
  if [ "$1" = control-plane ]; then role=cluster.x-k8s.io/control-plane; fi
  kubectl get cloudstackmachines -l "cluster.x-k8s.io/cluster-name=$CLUSTER,$role" \
    -o jsonpath='{.items[0].spec.instanceID}'
}
"#;

/// Files that cases refer to by variable.
const BUDGET: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: 'example.org/web:v1'}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
";

pub struct Shell {
    folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Shell {
    /// Programs are found as `capstan` and `kubectl`.
    pub async fn open(demo: &Demo, workdir: &Workdir, binary: &PathBuf, kubectl: &PathBuf) -> Result<Self> {
        let (programs, folder) = (workdir.folder("bin")?, workdir.folder("shell")?);
        std::os::unix::fs::symlink(binary, programs.join("capstan"))?;
        std::os::unix::fs::symlink(kubectl, programs.join("kubectl"))?;
        let text = |path: PathBuf| path.to_str().map(str::to_owned).context("path");
        let cni = std::fs::read_to_string(example("cni.yaml"))?;
        let (_, inner) = cni.split_once("cni.yaml: |\n").context("the example has no manifest of a CNI")?;
        let inner: Vec<&str> = inner.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
        std::fs::write(folder.join("cni.yaml"), inner.join("\n"))?;
        std::fs::write(folder.join("budget.yaml"), BUDGET)?;
        let url = demo.cloud_url()?;
        let secret: Value = serde_json::from_str(&demo.keys()?)?;
        let key = |name: &str| secret["stringData"][name].as_str().unwrap_or_default().to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let variables = [
            ("PATH", format!("{}:{path}", text(programs)?)),
            ("HOME", text(workdir.folder("home")?)?),
            ("KUBECONFIG", text(demo.data.join("admin.kubeconfig"))?),
            ("CLOUD", url.trim_end_matches("/client/api").to_owned()),
            ("CLOUDSTACK_API_URL", key("api-url")),
            ("CLOUDSTACK_API_KEY", key("api-key")),
            ("CLOUDSTACK_SECRET_KEY", key("secret-key")),
            ("CNI", text(folder.join("cni.yaml"))?),
            ("BUDGET", text(folder.join("budget.yaml"))?),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let mut shell = Self { folder, variables };
        let accounts = shell.run("", "ctl call listAccounts name=capstan listall=true", "").await?;
        let accounts: Value = serde_json::from_str(&accounts)?;
        let domain = accounts["account"][0]["domainid"].as_str().context("the account has no domain")?;
        shell.variables.push(("DOMAIN".to_owned(), domain.to_owned()));
        Ok(shell)
    }

    /// Writes a file into the folder of the shell.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        std::fs::write(self.folder.join(name), text).with_context(|| format!("write {name}"))
    }

    /// Runs a script to its end. It must succeed. `editor` is a sed script.
    pub async fn run(&self, cluster: &str, script: &str, editor: &str) -> Result<String> {
        let output = Command::new("sh")
            .args(["-ec", &format!("{FUNCTIONS}\n{script}")])
            .envs(self.variables.iter().cloned())
            .env("CLUSTER", cluster)
            .env("EDITOR", format!("sed -i '{editor}'"))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(LIMIT, output).await;
        let output = output.with_context(|| format!("{script}: timed out"))??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ensure!(
            output.status.success(),
            "{script}: {}\n{}{}",
            output.status,
            text(&output.stdout),
            text(&output.stderr)
        );
        Ok(text(&output.stdout))
    }
}
