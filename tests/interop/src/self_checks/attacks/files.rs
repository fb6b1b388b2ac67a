//! Files that somebody else wrote: backups, kubeconfigs in Secrets.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Attempt, Target};

pub const ALL: &[Attempt] = &[
    Attempt {
        name: "damaged backup",
        expected: "a backup that was cut off, changed or exchanged is refused and nothing is created",
        run: |target| Box::pin(backups(target)),
    },
    Attempt {
        name: "program in a kubeconfig Secret",
        expected: "a kubeconfig that runs programs or names files is not merged",
        run: |target| Box::pin(programs(target)),
    },
];

async fn backups(target: &Target) -> Result<()> {
    let whole = target.api.get("/capstan/v1/backup").await?;
    ensure!(whole.status == 200, "no backup: {}", whole.status);
    let whole = whole.body.to_vec();
    let mut damaged = Vec::new();
    for at in [0, 1, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        damaged.push(whole[..at].to_vec());
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        damaged.push(flipped);
    }
    damaged.push([whole.as_slice(), &whole].concat());
    for (n, bytes) in damaged.iter().enumerate() {
        let (file, data) =
            (target.folder.join(format!("backup-{n}")), target.folder.join(format!("restored-{n}")));
        std::fs::write(&file, bytes)?;
        let output = Command::new(&target.binary)
            .arg("restore")
            .args(["--from".as_ref(), file.as_os_str(), "--data-dir".as_ref(), data.as_os_str()])
            .output()
            .await?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success(), "damaged backup {n} was restored: {said}");
        ensure!(!data.join("pki").exists(), "damaged backup {n} left a directory behind");
    }
    Ok(())
}

async fn programs(target: &Target) -> Result<()> {
    let marker = target.folder.join("executed");
    let user = |user: Value| {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        })
    };
    let touch =
        json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [marker]});
    let config = target.folder.join("admin.kubeconfig");
    crate::bed::kubeconfig::write_access(&config, &target.access)?;
    let evil = [
        ("exec", user(json!({"exec": touch}))),
        ("token-file", user(json!({"tokenFile": "/etc/passwd"}))),
        ("key-file", user(json!({"client-key": "/etc/passwd"}))),
        ("provider", user(json!({"auth-provider": {"name": "gcp", "config": {"cmd-path": "touch"}}}))),
    ];
    for (name, kubeconfig) in evil {
        let secret = json!({
            "metadata": {"name": format!("{name}-kubeconfig"), "labels": {"cluster.x-k8s.io/cluster-name": name}},
            "type": "cluster.x-k8s.io/secret", "data": {"value": BASE64.encode(kubeconfig.to_string())},
        });
        target.api.post("/api/v1/namespaces/default/secrets", &secret).await?.success()?;
        let file = target.folder.join(format!("{name}.merged"));
        let output = Command::new(&target.binary)
            .args(["kubeconfig", name, "--kubeconfig"])
            .arg(&config)
            .arg("--merge")
            .arg(&file)
            .output()
            .await
            .context("capstan kubeconfig")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success(), "{name} was merged: {said}");
        let merged = std::fs::read_to_string(&file).unwrap_or_default();
        ensure!(!merged.contains("touch") && !merged.contains("passwd"), "{name} is in the file: {merged}");
    }
    ensure!(!marker.exists(), "a program of the kubeconfig ran");
    Ok(())
}
