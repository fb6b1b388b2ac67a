//! Flux: source-controller and kustomize-controller as processes, a repository as their source, and what they report.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::git::{BRANCH, Repository};
use crate::api::{Api, content};
use crate::bed::install::{create_definitions, documents_in};
use crate::bed::ports::free_port;
use crate::bed::process::{Process, Program};
use crate::peers::catalog::{FLUX, KUSTOMIZE_CONTROLLER_MODULE, SOURCE_CONTROLLER_MODULE};
use crate::peers::{Cache, module_dir};

/// Namespace of Flux's objects.
pub const NAMESPACE: &str = "flux-system";
const KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations";
const REPOSITORIES: &str = "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories";
/// Name of the repository in the API.
const SOURCE: &str = "fleet";
/// How long Flux waits for what it applied.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Flux {
    processes: Vec<Process>,
    api: Api,
}

impl Flux {
    /// Installs the kinds and starts both controllers.
    pub async fn start(folder: &Path, kubeconfig: &Path, api: &Api) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        api.post("/api/v1/namespaces", &namespace).await?.success()?;
        for module in [SOURCE_CONTROLLER_MODULE, KUSTOMIZE_CONTROLLER_MODULE] {
            let kinds = module_dir(module, &format!("v{FLUX}"))?.join("config/crd/bases");
            create_definitions(api, &documents_in(&kinds)?).await?;
        }
        let mut flux = Self { processes: Vec::new(), api: api.clone() };
        let storage = folder.join("storage");
        std::fs::create_dir_all(&storage)?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let storage = [
            format!("--storage-path={}", storage.display()),
            format!("--storage-addr={address}"),
            format!("--storage-adv-addr={address}"),
        ];
        flux.run("source-controller", folder, kubeconfig, &storage)?;
        flux.run("kustomize-controller", folder, kubeconfig, &[])?;
        Ok(flux)
    }

    fn run(&mut self, name: &str, folder: &Path, kubeconfig: &Path, own: &[String]) -> Result<()> {
        let home = folder.to_str().context("path")?;
        let program = Program::new(name, Cache::locate()?.built(name)?)
            .env("KUBECONFIG", kubeconfig.to_str().context("path")?)
            .env("RUNTIME_NAMESPACE", NAMESPACE)
            .env("HOME", home)
            .env("TMPDIR", home)
            .args(own)
            .arg(format!("--metrics-addr=127.0.0.1:{}", free_port()?))
            .arg(format!("--health-addr=127.0.0.1:{}", free_port()?))
            .args(["--requeue-dependency=2s", "--log-level=debug"]);
        self.processes.push(program.start(folder)?);
        Ok(())
    }

    pub async fn follow(&self, repository: &Repository) -> Result<()> {
        let body = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": SOURCE},
            "spec": {"interval": "2s", "url": repository.url(), "ref": {"branch": BRANCH}},
        });
        self.api.post(REPOSITORIES, &body).await?.success()?;
        Ok(())
    }

    /// Applies a folder of the repository, waits for all that it applied, and deletes what goes from it.
    pub async fn apply(&self, folder: &str) -> Result<()> {
        let body = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": folder},
            "spec": {
                "interval": "1h", "retryInterval": "5s", "timeout": format!("{}s", PATIENCE.as_secs()),
                "path": format!("./{folder}"), "prune": true, "wait": true,
                "sourceRef": {"kind": "GitRepository", "name": SOURCE},
            },
        });
        self.api.post(KUSTOMIZATIONS, &body).await?.success()?;
        Ok(())
    }

    /// Deletes a Kustomization with everything that it applied.
    pub async fn forget(&self, folder: &str) -> Result<()> {
        self.api.delete(&format!("{KUSTOMIZATIONS}/{folder}")).await?.success()?;
        Ok(())
    }

    /// Reconciles a Kustomization now, as `flux reconcile` does.
    pub async fn ask(&self, folder: &str, when: &str) -> Result<()> {
        let body = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": when}}});
        let path = format!("{KUSTOMIZATIONS}/{folder}");
        self.api.patch(&path, content::MERGE_PATCH, &body).await?.success()?;
        Ok(())
    }

    /// Waits until a Kustomization is Ready at a revision.
    pub async fn wait_ready(&mut self, folder: &str, revision: &str) -> Result<()> {
        let what = format!("Ready at {revision}");
        self.wait(folder, &what, |status, ready| {
            (ready["status"] == "True" && status["lastAppliedRevision"] == revision).then_some(())
        })
        .await
    }

    /// Waits until a Kustomization has failed at a revision and returns the message.
    pub async fn wait_failed(&mut self, folder: &str, revision: &str) -> Result<String> {
        let what = format!("failed at {revision}");
        self.wait(folder, &what, |status, ready| {
            let failed = ready["status"] == "False" && status["lastAttemptedRevision"] == revision;
            failed.then(|| ready["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    async fn wait<T>(
        &mut self,
        folder: &str,
        what: &str,
        found: impl Fn(&Value, &Value) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.check()?;
            let object = self.api.get(&format!("{KUSTOMIZATIONS}/{folder}")).await?.success()?;
            let status = &object["status"];
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
            let observed = status["observedGeneration"] == object["metadata"]["generation"];
            if let Some(result) = ready.filter(|_| observed).and_then(|ready| found(status, ready)) {
                return Ok(result);
            }
            if Instant::now() > deadline {
                bail!("Kustomization {folder} is not {what} within {PATIENCE:?}: {status:#}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn check(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)
    }
}
