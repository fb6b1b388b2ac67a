//! Clients that send requests as fast as possible or at a fixed rate, and record latencies.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::api::{Api, Http};
use crate::bed::kubeconfig::Access;

/// Throughput and latencies.
#[derive(Clone, Debug)]
pub struct Rate {
    pub requests: usize,
    pub per_second: f64,
    pub median: Duration,
    pub worst_hundredth: Duration,
}

/// Runs `clients` connections for a time. Each sends its next request when the last was answered.
pub async fn closed_loop<F, Fut>(access: &Access, clients: usize, time: Duration, ask: F) -> Result<Rate>
where
    F: Fn(Api, usize, usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let mut tasks = Vec::new();
    let begin = Instant::now();
    for client in 0..clients {
        // Each has its own connection, as separate programs would.
        let api = Api::new(access, Http::One)?;
        let ask = ask.clone();
        tasks.push(tokio::spawn(async move {
            let mut took = Vec::new();
            for number in 0.. {
                let sent = Instant::now();
                if sent.duration_since(begin) > time {
                    break;
                }
                ask(api.clone(), client, number).await?;
                took.push(sent.elapsed());
            }
            anyhow::Ok(took)
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await??);
    }
    rate(all, begin.elapsed())
}

pub fn rate(mut all: Vec<Duration>, time: Duration) -> Result<Rate> {
    all.sort_unstable();
    let at = |part: f64| all.get(((all.len() - 1) as f64 * part) as usize).copied().unwrap_or_default();
    anyhow::ensure!(!all.is_empty(), "no request was answered");
    Ok(Rate {
        requests: all.len(),
        per_second: all.len() as f64 / time.as_secs_f64(),
        median: at(0.5),
        worst_hundredth: at(0.99),
    })
}

/// A ConfigMap of about `bytes` bytes.
pub fn object(name: &str, bytes: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"bench": "yes"}},
           "data": {"payload": "x".repeat(bytes.saturating_sub(400))}})
}

/// Creates `count` objects with many clients.
pub async fn fill(access: &Access, collection: &str, count: usize, bytes: usize) -> Result<()> {
    const CLIENTS: usize = 32;
    let mut tasks = Vec::new();
    for client in 0..CLIENTS {
        let api = Api::new(access, Http::One)?;
        let collection = collection.to_owned();
        tasks.push(tokio::spawn(async move {
            for number in (client..count).step_by(CLIENTS) {
                let reply = api.post(&collection, &object(&format!("o-{number:06}"), bytes)).await?;
                reply.success().context("fill")?;
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}
