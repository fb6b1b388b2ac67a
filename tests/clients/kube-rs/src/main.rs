//! kube-rs as its users use it, against a real server over TLS and servers in its own process: one line per claim;
//! the first broken one ends the run.
//!
//! usage: kube-rs-suite KUBECONFIG
//!
//! Prints RESTART when the server may be restarted, and goes on when a line arrives on standard input.

mod applying;
mod in_process;
mod leading;
mod objects;
mod watching;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// Where everything happens.
pub const NAMESPACE: &str = "kube-rs";
/// How long anything may take that a controller of the server does.
pub const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1) {
        Some(kubeconfig) => run(Path::new(&kubeconfig)).await,
        None => Err(anyhow::anyhow!("usage: kube-rs-suite KUBECONFIG")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kube-rs-suite: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(kubeconfig: &Path) -> Result<()> {
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    namespaces.create(&PostParams::default(), &namespace).await?;

    macro_rules! claims {
        ($($module:ident::$claim:ident),* $(,)?) => {
            $($module::$claim(&client).await.with_context(|| words(stringify!($claim)))?;
            println!("ok {}", words(stringify!($claim)));)*
        };
    }
    claims!(
        objects::the_server_says_which_kubernetes_it_serves_and_which_kinds,
        objects::typed_objects_are_created_read_replaced_patched_listed_and_deleted,
        objects::mistakes_are_statuses_with_reason_and_code,
        objects::long_lists_come_in_chunks,
        objects::metadata_alone_can_be_read_and_listed,
        objects::dynamic_objects_of_a_fresh_definition_have_a_status_of_their_own,
        applying::an_apply_that_touches_anothers_field_conflicts_until_forced,
        applying::a_field_nobody_applies_any_more_is_gone,
        watching::a_watch_resumes_across_a_restart_without_missing_or_repeating,
        watching::a_watcher_goes_on_after_a_restart_without_listing_again,
        watching::a_streaming_list_ends_with_a_bookmark,
        in_process::many_servers_live_in_one_process_each_a_client_away,
        leading::of_two_candidates_one_leads_and_the_other_follows_when_it_stops,
    );
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await?;
    eventually("the namespace is gone", || async { Ok(namespaces.get_opt(NAMESPACE).await?.is_none()) })
        .await?;
    println!("ok a deleted namespace takes everything with it");
    println!("DONE");
    Ok(())
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Asks for a restart of the server and waits until it is back.
pub async fn restart(client: &Client) -> Result<()> {
    println!("RESTART");
    let mut answer = String::new();
    ensure!(
        BufReader::new(tokio::io::stdin()).read_line(&mut answer).await? > 0,
        "nobody restarted the server"
    );
    let maps = config_maps(client);
    // The first request may still find the connection that went with the old server.
    eventually("the server is back", || async { Ok(maps.get("kube-root-ca.crt").await.is_ok()) }).await
}

/// ConfigMaps of the suite's namespace.
pub fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), NAMESPACE)
}

/// A ConfigMap with one value.
pub fn config_map(name: &str, value: &str) -> Result<ConfigMap> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"suite": "kube-rs"}}, "data": {"a": value}
    }))?)
}

/// Asks until the answer is yes.
pub async fn eventually<F>(what: &str, mut ask: impl FnMut() -> F) -> Result<()>
where
    F: Future<Output = Result<bool>>,
{
    let asking = async {
        while !ask().await? {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    match tokio::time::timeout(TIMEOUT, asking).await {
        Ok(outcome) => outcome,
        Err(_) => bail!("{what}: not within {TIMEOUT:?}"),
    }
}
