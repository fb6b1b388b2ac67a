//! A git repository and a server for it. Flux clones over HTTP or SSH only, so git's own upload-pack runs behind a small
//! HTTP server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A repository with a work tree, served until it is dropped.
pub struct Repository {
    folder: PathBuf,
    port: u16,
    server: JoinHandle<()>,
}

pub const BRANCH: &str = "main";

impl Repository {
    pub async fn serve(folder: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let served = folder.clone();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let folder = served.clone();
                let service = service_fn(move |request| {
                    let folder = folder.clone();
                    async move { answer(&folder, request).await }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        let repository = Self { folder, port, server };
        repository.git(&["init", "--quiet", "--initial-branch", BRANCH])?;
        Ok(repository)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/fleet", self.port)
    }

    pub fn write(&self, file: &str, objects: &[Value]) -> Result<()> {
        let path = self.folder.join(file);
        std::fs::create_dir_all(path.parent().context("a path without a folder")?)?;
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        std::fs::write(&path, documents.join("\n---\n")).with_context(|| path.display().to_string())
    }

    pub fn remove(&self, file: &str) -> Result<()> {
        self.git(&["rm", "--quiet", file]).map(drop)
    }

    /// Commits everything and returns the revision as Flux reports it.
    pub fn commit(&self, message: &str) -> Result<String> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", message])?;
        let hash = self.git(&["rev-parse", "HEAD"])?;
        Ok(format!("{BRANCH}@sha1:{}", hash.trim()))
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let output = git(&self.folder).args(arguments).output().context("run git")?;
        if !output.status.success() {
            bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// git without the configuration of whoever runs the suite.
fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "operator")))
        .envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "operator@example.org")))
        .stdin(Stdio::null());
    command
}

/// Length-prefixed line that begins the advertisement of references over HTTP, and the packet that ends it.
const BEGIN: &[u8] = b"001e# service=git-upload-pack\n0000";

async fn answer(folder: &Path, request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
    let advertises = request.method() == Method::GET
        && request.uri().path().ends_with("/info/refs")
        && request.uri().query() == Some("service=git-upload-pack");
    let uploads = request.method() == Method::POST && request.uri().path().ends_with("/git-upload-pack");
    let (kind, body) = if advertises {
        let output = upload_pack(folder, &["--http-backend-info-refs"], &[]).await?;
        ("advertisement", [BEGIN, &output].concat())
    } else if uploads {
        let input = request.into_body().collect().await?.to_bytes();
        ("result", upload_pack(folder, &[], &input).await?)
    } else {
        return Ok(Response::builder().status(StatusCode::NOT_FOUND).body(Full::default())?);
    };
    Ok(Response::builder()
        .header("content-type", format!("application/x-git-upload-pack-{kind}"))
        .header("cache-control", "no-cache")
        .body(Full::new(body.into()))?)
}

async fn upload_pack(folder: &Path, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>> {
    let mut command = tokio::process::Command::from(git(folder));
    command.args(["upload-pack", "--stateless-rpc"]).args(arguments).arg(".");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().context("run git upload-pack")?;
    let mut stdin = child.stdin.take().context("no input")?;
    stdin.write_all(input).await?;
    drop(stdin);
    Ok(child.wait_with_output().await?.stdout)
}
