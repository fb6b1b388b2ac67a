//! Servers inside the client's own process: a tower service, no socket, no TLS.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use capstan_apiserver::{Config, Server};
use capstan_env::Env;
use capstan_pki::Pki;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};

use crate::config_map;

async fn a_server_of_its_own() -> Result<Api<ConfigMap>> {
    let env = Env::system();
    let pki = Arc::new(Pki::ephemeral(env.clone()));
    let server = Server::start(Config::in_memory().with_env(env).trusting_everybody(), pki).await?;
    Ok(Api::default_namespaced(Client::new(server, "default")))
}

pub async fn many_servers_live_in_one_process_each_a_client_away(_: &Client) -> Result<()> {
    let mut servers = Vec::new();
    for _ in 0..10 {
        servers.push(a_server_of_its_own().await?);
    }
    let (first, others) = servers.split_first().context("no servers")?;
    let events = first.watch(&WatchParams::default(), "0").await?;
    first.create(&PostParams::default(), &config_map("here", "1")?).await?;
    let seen = events.try_filter_map(|event| async move {
        Ok(if let WatchEvent::Added(map) = event { Some(map.name_any()) } else { None })
    });
    let mut seen = Box::pin(seen.try_filter(|name| std::future::ready(name == "here")));
    ensure!(seen.next().await.transpose()?.as_deref() == Some("here"), "the watch ended");
    for other in others {
        ensure!(other.get_opt("here").await?.is_none(), "two servers share an object");
    }
    Ok(())
}
