//! The program under test, and a server it runs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use capstan_controller::{Access, Env, Remote, TcpDial, Transport as _};
use http::{Method, Request, header};
use serde_json::Value;

/// Runs `capstan` with arguments to its end.
pub fn capstan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_capstan")).args(arguments).output().unwrap()
}

/// Runs `capstan` with environment variables.
pub fn capstan_in(environment: &[(&str, &Path)], arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.envs(environment.iter().copied()).args(arguments).output().unwrap()
}

/// Stdout of a run, which must have succeeded.
pub fn succeeded(output: Output) -> String {
    let printed = [&output.stdout, &output.stderr].map(|part| String::from_utf8_lossy(part).into_owned());
    assert!(output.status.success(), "{}", printed.concat());
    String::from_utf8(output.stdout).unwrap()
}

/// Stderr of a run, which must have failed.
pub fn failed(output: Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A running `capstan server`; killed when dropped.
pub struct Server {
    process: Child,
    /// Kept open: the server prints more than the test reads.
    _stdout: BufReader<ChildStdout>,
    pub address: String,
    pub dir: PathBuf,
}

impl Server {
    /// Starts on any free port and waits until it serves.
    pub fn start(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_in(&[], dir, arguments)
    }

    /// Starts it with environment variables too.
    pub fn start_in(environment: &[(&str, &Path)], dir: &Path, arguments: &[&str]) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_capstan"))
            .envs(environment.iter().copied())
            .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self::read_start(process, dir)
    }

    /// Waits for the line that says where it serves.
    fn read_start(mut process: Child, dir: &Path) -> Self {
        let mut first = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut first).unwrap();
        let address = first.split_whitespace().find(|word| word.starts_with("https://")).unwrap().to_owned();
        Self { process, _stdout: stdout, address, dir: dir.to_owned() }
    }

    /// Starts it in memory with a socket that is passed to it, as systemd does, and other arguments.
    pub fn start_on(listener: std::net::TcpListener, dir: &Path, notify: &Path) -> Self {
        // The protocol wants the process's own number, and the socket as its fourth file.
        let script = r#"exec 3<&0 < /dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@""#;
        let process = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_capstan"), "server", "--in-memory", "--api-only"])
            .arg("--data-dir")
            .arg(dir)
            .env("NOTIFY_SOCKET", notify)
            .stdin(std::os::fd::OwnedFd::from(listener))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self::read_start(process, dir)
    }

    /// A client with the server's own administrator's kubeconfig.
    pub fn admin(&self) -> Remote {
        self.client(&self.dir.join("admin.kubeconfig"))
    }

    /// A client with a kubeconfig from elsewhere, sent to this server.
    pub fn client(&self, kubeconfig: &Path) -> Remote {
        let access = Access::from_file(kubeconfig).unwrap().at(&self.address).unwrap();
        Remote::new(access, Arc::new(TcpDial), &Env::system()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Status code and body of a request.
pub async fn ask(client: &Remote, method: Method, path: &str, body: &Value) -> (u16, Value) {
    send(client, method, path, "application/json", body).await
}

/// Status code of a merge patch.
pub async fn patch(client: &Remote, path: &str, body: &Value) -> u16 {
    send(client, Method::PATCH, path, "application/merge-patch+json", body).await.0
}

async fn send(client: &Remote, method: Method, path: &str, kind: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, kind);
    let answer = client.send(request.body(Bytes::from(body)).unwrap()).await.unwrap();
    let (code, mut body) = (answer.status().as_u16(), answer.into_body());
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}
