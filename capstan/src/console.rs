//! `capstan console`: what a machine has printed since it was switched on.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use capstan_capi_types::core::Machine;
use capstan_object::Key;
use http::Request;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::exit::Exit;
use crate::get;
use crate::output::say;
use crate::reach::{Management, Reach};

/// More than any console keeps.
const MOST: usize = 16 << 20;

/// Arguments of `capstan console`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the machine
    machine: String,
    #[command(flatten)]
    reach: Reach,
    /// Address of the `capstan sim site` that keeps the machine, if it is a simulated one
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7480")]
    simulator_url: String,
}

/// Prints the console of a machine.
pub fn run(args: &Args) -> Result<Exit> {
    args.reach.run(async |management| {
        let machine: Machine = management.find(&args.machine).await?;
        let reference = &machine.spec.infrastructure_ref;
        let object = infrastructure(&management, &reference.kind, &reference.name).await?;
        let text = match reference.kind.as_str() {
            "KVMMachine" => of_file(&args.machine, &object["status"]["console"])?,
            "SimMachine" => of_site(&args.machine, &args.simulator_url, &object["spec"]["providerID"]).await?,
            other => bail!(
                "{other} keeps no console that can be read: look at machine {} ({}) in the cloud's own interface",
                args.machine,
                object["spec"]["providerID"].as_str().unwrap_or("no provider id yet")
            ),
        };
        say(text.trim_end())?;
        Ok(Exit::Done)
    })
}

async fn infrastructure(management: &Management, kind: &str, name: &str) -> Result<Value> {
    let kind = get::kind(management, kind).await?;
    let found = management.client.get_raw(&kind, &Key::new(&management.namespace, name)).await?;
    Ok(found.with_context(|| format!("there is no {} {name} yet", kind.kind))?.parse()?)
}

fn of_file(machine: &str, file: &Value) -> Result<String> {
    let Some(file) = file.as_str().filter(|file| !file.is_empty()) else {
        bail!("machine {machine} has printed nothing yet: it was not switched on");
    };
    let bytes = std::fs::read(file)
        .with_context(|| format!("{file} cannot be read: run this on the host of the machine, as root"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn of_site(machine: &str, url: &str, provider_id: &Value) -> Result<String> {
    let id =
        provider_id.as_str().and_then(|id| id.split_once("://")).map(|(_, id)| id.trim_start_matches('/'));
    let Some(id) = id else { bail!("machine {machine} has printed nothing yet: it was not switched on") };
    let path = format!("{}/v1/machines/{}/console", url.trim_end_matches('/'), id.replace('/', "%2F"));
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let request =
        Request::get(&path).body(Full::default()).with_context(|| format!("--simulator-url {url}"))?;
    let answer = client.request(request).await.with_context(|| {
        format!(
            "no `capstan sim site` answers at {url}: give its address with --simulator-url. Machines of a server that runs \
             with --simulator are in its memory alone; their last line is in `capstan why`"
        )
    })?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MOST).collect().await;
    let bytes =
        body.map_err(|_| anyhow::anyhow!("the console is cut off or larger than {MOST} bytes"))?.to_bytes();
    if !status.is_success() {
        bail!("the site at {url} does not know machine {id} ({status})");
    }
    let told: Value = serde_json::from_slice(&bytes).context("the site's answer is no JSON")?;
    Ok(told.as_str().map_or_else(|| told.to_string(), str::to_owned))
}
