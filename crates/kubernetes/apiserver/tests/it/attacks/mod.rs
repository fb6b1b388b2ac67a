//! Requests that try to exhaust the server. Each runs in a process of its own with a memory limit: if the server does
//! not bound a request, that process dies and the test fails.

mod bodies;
mod held;
mod lists;
mod roles;

use std::future::Future;
use std::process::Command;

use capstan_apiserver::Config;

use super::client::Client;

/// Address space of a confined test in KiB. The test binary itself takes about a fifth of it.
const ADDRESS_SPACE: u32 = 1024 * 1024;
/// Set to the name of the test in the confined process.
const CONFINED: &str = "CAPSTAN_CONFINED_TEST";

/// Runs the test `name` of `module` (`module_path!()`) on a server of its own, in a process with 1 GiB of address
/// space.
pub fn confined<F: Future<Output = ()>>(module: &str, name: &str, attack: impl FnOnce(Client) -> F) {
    confined_with(module, name, Config::in_memory, attack);
}

/// Like [`confined`], with a server as configured.
pub fn confined_with<F: Future<Output = ()>>(
    module: &str,
    name: &str,
    config: impl FnOnce() -> Config,
    attack: impl FnOnce(Client) -> F,
) {
    let (_, module) = module.split_once("::").expect("a module of this crate");
    let test = format!("{module}::{name}");
    if std::env::var(CONFINED).is_ok_and(|running| running == test) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async { attack(Client::with(config()).await).await });
        return;
    }
    let output = Command::new("sh")
        .args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &ADDRESS_SPACE.to_string()])
        .arg(std::env::current_exe().expect("this test has a path"))
        .args(["--exact", &test, "--nocapture", "--test-threads=1"])
        .env(CONFINED, &test)
        // Every arena reserves address space that it never uses.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .expect("the test runs again");
    let said = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
    let (out, err) = (said(&output.stdout), said(&output.stderr));
    assert!(output.status.success(), "{test}: {}\n{out}\n{err}", output.status);
    assert!(out.contains("1 passed"), "{test} did not run:\n{out}");
}
