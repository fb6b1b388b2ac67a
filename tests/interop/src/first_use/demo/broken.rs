//! Clusters that are broken on purpose, and the output of `capstan why` and `capstan describe` for them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::plane::Demo;
use super::sample;
use crate::bed::tool::Tool;
use crate::bed::{Workdir, wait};

/// A disruption budget.
const BUDGET: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
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
  minAvailable: 3
  selector: {matchLabels: {app: web}}
";

/// Breaks five clusters, checks the explanations, and repairs or deletes them.
pub async fn explained(demo: &Demo, kubectl: &Tool, workdir: &Workdir) -> Result<()> {
    let made = [
        ("image", manifest(demo, workdir, "image", "ubuntu-2404-kube-v1.35.0", "no-such-image")?),
        ("keys", manifest(demo, workdir, "keys", "cloudstack-credentials", "wrong-keys")?),
        ("silent", manifest(demo, workdir, "silent", JOIN, &format!("{JOIN}{WRONG_HASH}"))?),
    ];
    let secret = format!(
        r#"{{"apiVersion": "v1", "kind": "Secret", "metadata": {{"name": "wrong-keys"}},
            "stringData": {{"api-url": "{}", "api-key": "nobody", "secret-key": "nothing"}}}}"#,
        demo.cloud_url()?
    );
    let keys = workdir.path().join("keys.json");
    std::fs::write(&keys, secret)?;
    demo.succeed(&["up", "-f", keys.to_str().context("path")?, "--no-plan", "--no-wait"])?;
    // The plan reports what the cloud would reject, before anything is applied.
    for ((name, file), predicted) in made.iter().zip([Some("E-CS-NOTFOUND"), Some("E-CS-CREDENTIALS"), None])
    {
        let output = demo.run(&["up", "-f", file, "--no-wait"])?;
        ensure!(
            output.code == 0 && predicted.is_none_or(|code| output.err.contains(code)),
            "up of {name} ended with {} and without {predicted:?}:\n{}",
            output.code,
            output.err
        );
    }

    why(demo, "image", &["E-CS-NOTFOUND", "no-such-image", "fixed by: user", "fix: ", "next retry: "])
        .await?;
    opened(demo, "image", &["CloudStackMachine/image-", "Failing"])?;
    let blocked = demo.run(&["up", "-f", &made[0].1, "--no-plan", "--lines", "--patience", "2s"])?;
    ensure!(
        blocked.code == 4 && blocked.err.contains("E-CS-NOTFOUND blocks cluster image"),
        "up ended with {}: {}",
        blocked.code,
        blocked.err
    );
    why(demo, "keys", &["E-CS-CREDENTIALS", "default/wrong-keys", "fixed by: user", "fix: "]).await?;
    opened(demo, "keys", &["CloudStackFailureDomain/", "Failing"])?;
    why(
        demo,
        "silent",
        &["because Machine/silent-workers-", "Waiting for a Node with spec.providerID", "fix: "],
    )
    .await?;

    let config = demo.data.join("demo.kubeconfig");
    let budget = workdir.path().join("budget.yaml");
    std::fs::write(&budget, BUDGET)?;
    kubectl.run(&config, &["apply", "-f", budget.to_str().context("path")?]).await?;
    kubectl.run(&config, &["rollout", "status", "deployment/web", "--timeout=60s"]).await?;
    demo.succeed(&["scale", "demo", "--workers", "workers=0"])?;
    let answer = why(
        demo,
        "demo",
        &["The disruption budget web needs 3 healthy pods", "fixed by: user", "is being deleted", "fix: "],
    )
    .await?;
    ensure!(
        answer.starts_with("Cluster/demo is not ready: Machine/demo-workers-"),
        "the cause is a Machine:\n{answer}"
    );
    kubectl.run(&config, &["delete", "-f", budget.to_str().context("path")?, "--timeout=60s"]).await?;
    demo.succeed(&["wait", "demo", "--timeout", "3m"])?;

    demo.succeed(&["scale", "demo", "--workers", "workers=24"])?;
    why(demo, "demo", &["E-CS-QUOTA", "leaves 0", "fixed by: cloud", "raise the limit"]).await?;
    let tree = opened(demo, "demo", &["× Machine", "same problem: "])?;
    ensure!(tree.lines().count() < 40, "twenty machines with the same problem are not collapsed:\n{tree}");
    demo.succeed(&["scale", "demo", "--workers", "workers=1", "--wait", "--timeout", "3m"])?;

    for (cluster, _) in &made {
        demo.succeed(&["delete", cluster, "--wait", "--timeout", "3m"])?;
    }
    Ok(())
}

/// Location of a worker's join configuration, and a wrong CA hash.
const JOIN: &str = "    spec:\n      joinConfiguration:\n";
const WRONG_HASH: &str = "        discovery:\n          bootstrapToken:\n            caCertHashes: \
    [\"sha256:0000000000000000000000000000000000000000000000000000000000000000\"]\n";

/// Writes the sample with one change to a file.
fn manifest(demo: &Demo, workdir: &Workdir, name: &str, from: &str, to: &str) -> Result<String> {
    let text = sample(name, demo.endpoint_port)?;
    ensure!(text.contains(from), "the example has no {from:?}");
    let file = workdir.path().join(format!("{name}.yaml"));
    std::fs::write(&file, text.replace(from, to))?;
    Ok(file.to_str().context("path")?.to_owned())
}

/// Runs `why` until the output contains everything expected.
async fn why(demo: &Demo, cluster: &str, expected: &[&str]) -> Result<String> {
    wait::until(&format!("why {cluster}"), Duration::from_secs(90), || async {
        let answer = demo.succeed(&["why", cluster])?;
        let missing = expected.iter().find(|words| !answer.contains(**words));
        ensure!(missing.is_none(), "{missing:?} is not in:\n{answer}");
        Ok(Some(answer))
    })
    .await
}

/// Checks that unhealthy parts are expanded in the tree.
fn opened(demo: &Demo, cluster: &str, expected: &[&str]) -> Result<String> {
    let tree = demo.succeed(&["describe", cluster])?;
    let missing = expected.iter().find(|words| !tree.contains(**words));
    ensure!(missing.is_none(), "{missing:?} is not in:\n{tree}");
    Ok(tree)
}
