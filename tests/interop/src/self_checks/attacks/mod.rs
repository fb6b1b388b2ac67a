//! `cargo xtask attacks`: what an attacker tried against a server, against the real binary with 1 GiB of memory.
//!
//! Every attempt has an expectation in one sentence and runs against one server, which must be alive and within its
//! memory after each. `docs/dev/attacks.md` is the table of them, written by `--write-docs`; attempts that need no
//! separate process are tests of the crates and are named there.

mod access;
mod bodies;
mod connections;
mod files;
mod privileges;
mod system_calls;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use futures::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::bed::kubeconfig::{self, Access};
use crate::bed::process::usage_of;
use crate::bed::{Server, Workdir, capstan, ports::free_port};
use crate::text::human_duration;

/// Address space of the server in KiB.
const ADDRESS_SPACE: u64 = 1024 * 1024;
/// Open files of the server: few enough to be exhausted.
const OPEN_FILES: u64 = 256;

#[derive(Debug, Args)]
pub struct Options {
    /// Only attempts whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
    /// Write what was found to docs/dev/attacks.md
    #[arg(long)]
    write_docs: bool,
}

pub struct Attempt {
    pub name: &'static str,
    /// What must happen instead.
    pub expected: &'static str,
    pub run: for<'a> fn(&'a Target) -> BoxFuture<'a, Result<()>>,
}

/// The server under attack.
pub struct Target {
    pub api: Api,
    pub anonymous: Api,
    pub access: Access,
    pub binary: PathBuf,
    pub folder: PathBuf,
    /// Its process.
    server: u32,
}

fn attempts() -> Vec<&'static Attempt> {
    let all = [bodies::ALL, access::ALL, connections::ALL, files::ALL, privileges::ALL, system_calls::ALL];
    all.into_iter().flatten().collect()
}

pub async fn run(options: Options) -> Result<()> {
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("attacks")?;
    let mut server = start(&workdir.folder("server")?, &binary).await?;
    let target = Target {
        api: server.api()?,
        anonymous: Api::anonymous(&kubeconfig::read(&server.kubeconfig)?)?,
        access: kubeconfig::read(&server.kubeconfig)?,
        binary,
        folder: workdir.folder("attempts")?,
        server: server.process_id()?,
    };
    let mut failed = 0;
    let mut found = table::Found::new();
    for attempt in attempts() {
        if options.only.as_ref().is_some_and(|only| !attempt.name.contains(only.as_str())) {
            continue;
        }
        let started = Instant::now();
        let held = match (attempt.run)(&target).await {
            Ok(()) => alive(&mut server, &target).await,
            Err(error) => Err(error),
        };
        let took = human_duration(started.elapsed());
        found.insert(table::row(attempt), if held.is_ok() { "held" } else { "**broke**" }.to_owned());
        match held {
            Ok(()) => println!("  {}: held, {took}", attempt.name),
            Err(error) => {
                failed += 1;
                println!(
                    "  {}: broke, {took}\n    expected: {}\n    {error:#}",
                    attempt.name, attempt.expected
                );
            }
        }
    }
    if options.write_docs {
        table::write(found)?;
    }
    ensure!(failed == 0, "{failed} attempts broke the server or its rules");
    workdir.passed();
    Ok(())
}

/// A server in a process with little memory and few files.
async fn start(folder: &Path, binary: &Path) -> Result<Server> {
    let script = folder.join("confined");
    // Every arena of malloc reserves address space that it never uses.
    let text = format!(
        "#!/bin/sh\nulimit -v {ADDRESS_SPACE}\nulimit -n {OPEN_FILES}\nexport MALLOC_ARENA_MAX=1\nexec {} \"$@\"\n",
        binary.display()
    );
    std::fs::write(&script, text)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode)?;
    Server::capstan(folder, &script, free_port()?).await
}

async fn alive(server: &mut Server, target: &Target) -> Result<()> {
    server.check()?;
    let reply = target.api.get("/readyz").await.context("after the attempt")?;
    ensure!(reply.status == 200, "the server is not ready after the attempt: {}", reply.status);
    Ok(())
}

impl Target {
    /// Bounds the CPU time of the server. Wall-clock time only ends an attempt that hangs: the machine may be busy.
    pub async fn within(&self, limit: Duration, attack: impl Future<Output = Result<()>>) -> Result<()> {
        let before = usage_of(self.server)?.cpu;
        match tokio::time::timeout(limit * 20, attack).await {
            Ok(outcome) => outcome?,
            Err(_) => bail!("no answer within {:?}", limit * 20),
        }
        let used = usage_of(self.server)?.cpu.saturating_sub(before);
        ensure!(used <= limit, "the server used {used:.1?} of CPU time, more than {limit:?}");
        Ok(())
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Reply> {
        self.api.send(Method::from_bytes(method.as_bytes())?, path, headers, body.into()).await
    }

    /// Sends a request as another user.
    pub async fn send_as(&self, user: &str, method: &str, path: &str, body: Option<Value>) -> Result<Reply> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let headers = [("impersonate-user", user), ("content-type", kind)];
        self.send(method, path, &headers, body.map(|body| body.to_string()).unwrap_or_default()).await
    }

    /// Creates a namespace with a user who has a ClusterRole there, and nowhere else.
    pub async fn namespace_of(&self, user: &str, namespace: &str, role: &str) -> Result<()> {
        self.api.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await?;
        let binding = json!({
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
        self.api.post(&path, &binding).await?.success()?;
        Ok(())
    }
}

/// Fails unless the response has one of the codes.
pub fn refused(what: &str, reply: &Reply, codes: &[u16]) -> Result<()> {
    let code = reply.status.as_u16();
    ensure!(codes.contains(&code), "{what}: {code} instead of {codes:?}: {}", shown(reply));
    Ok(())
}

fn shown(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body[..reply.body.len().min(300)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_up_to_date() {
        let written = std::fs::read_to_string(table::path()).unwrap_or_default();
        let found = table::written();
        assert!(written == table::page(&found), "run `cargo xtask attacks --write-docs`");
        for attempt in attempts() {
            let result = found.get(&table::row(attempt)).map_or("", String::as_str);
            assert!(matches!(result, "held" | table::NOT_RUN), "{}: {result}", attempt.name);
        }
    }

    #[test]
    fn every_named_test_exists() {
        for (name, file, test) in table::ELSEWHERE {
            let text = std::fs::read_to_string(crate::cargo::root().join(file)).unwrap_or_default();
            assert!(text.contains(&format!("fn {test}(")), "{name}: no {test} in {file}");
        }
    }
}
