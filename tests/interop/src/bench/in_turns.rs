//! Two of our binaries under the same load in turns, a second each: what a shared host does to one it does to the other.
//!
//! Throughput still varies with the neighbours of the host. Processor time per request varies less, and the median of
//! many rounds least.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::load;
use super::measures::Sizes;
use crate::api::{Api, content};
use crate::bed::kubeconfig::Access;
use crate::bed::{Server, Workdir, kubeconfig, ports::free_port};
use crate::text::table;

const NAMESPACE: &str = "turns";
const CLIENTS: usize = 8;

/// A server and how to reach it.
struct Side {
    server: Server,
    access: Access,
}

impl Side {
    async fn start(folder: &Path, binary: &Path) -> Result<Self> {
        let server = Server::capstan(folder, binary, free_port()?).await?;
        let access = kubeconfig::read(&server.kubeconfig)?;
        server
            .api()?
            .post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}))
            .await?
            .success()?;
        load::fill(&access, &collection(), CLIENTS, 1024).await?;
        Ok(Self { server, access })
    }

    fn processor_time(&self) -> Result<Duration> {
        Ok(self.server.usage()?.iter().map(|(_, usage)| usage.cpu).sum())
    }

    /// One round: requests per second, and processor time per request.
    async fn round<F, Fut>(&self, sizes: Sizes, ask: F) -> Result<(f64, f64)>
    where
        F: Fn(Api, usize, usize) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<()>> + Send,
    {
        let before = self.processor_time()?;
        let rate = load::closed_loop(&self.access, CLIENTS, sizes.turn(), ask).await?;
        let took = self.processor_time()?.saturating_sub(before);
        Ok((rate.per_second, took.as_secs_f64() / rate.requests as f64))
    }
}

/// Prints by how much the second binary differs from the first.
pub async fn compare(workdir: &mut Workdir, before: &Path, now: &Path, sizes: Sizes) -> Result<()> {
    let before = Side::start(&workdir.folder("turns-baseline")?, before).await?;
    let now = Side::start(&workdir.folder("turns-capstan")?, now).await?;
    let mut rows =
        vec![["in turns", "processor time per request", "requests per second"].map(String::from).to_vec()];
    for what in ["create", "get", "list of 8", "merge patch"] {
        let (mut cost, mut speed) = (Vec::new(), Vec::new());
        for turn in 0..sizes.turns() {
            let ask = move |api: Api, client: usize, number: usize| async move {
                let one = format!("{}/o-{client:06}", collection());
                match what {
                    "create" => {
                        let object = load::object(&format!("c-{turn}-{client}-{number}"), 1024);
                        api.post("/api/v1/namespaces/default/configmaps", &object).await?
                    }
                    "get" => api.get(&one).await?,
                    "list of 8" => api.get(&collection()).await?,
                    _ => {
                        let patch = json!({"data": {"n": format!("{turn}-{number}")}});
                        api.patch(&one, content::MERGE_PATCH, &patch).await?
                    }
                }
                .success()?;
                Ok(())
            };
            // Who begins changes, so that neither always follows the other.
            let (first, second) = if turn % 2 == 0 { (&before, &now) } else { (&now, &before) };
            let (one, other) = (first.round(sizes, ask).await?, second.round(sizes, ask).await?);
            let (old, new) = if turn % 2 == 0 { (one, other) } else { (other, one) };
            speed.push(new.0 / old.0);
            cost.push((new.1 / old.1, old.1, new.1));
        }
        cost.sort_by(|a, b| a.0.total_cmp(&b.0));
        speed.sort_by(f64::total_cmp);
        let (ratio, old, new) = cost[cost.len() / 2];
        rows.push(vec![
            what.to_owned(),
            format!(
                "{:.0} → {:.0} µs, {ratio:.2} × ({:.2} to {:.2})",
                old * 1e6,
                new * 1e6,
                cost[0].0,
                cost[cost.len() - 1].0
            ),
            format!("{:.2} × ({:.2} to {:.2})", speed[speed.len() / 2], speed[0], speed[speed.len() - 1]),
        ]);
        println!("  {}", rows[rows.len() - 1].join(": "));
    }
    println!("\nmedian of {} turns of {CLIENTS} clients, least to most\n{}", sizes.turns(), table(&rows));
    Ok(())
}

fn collection() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}
