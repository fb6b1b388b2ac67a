//! The measurements of one server, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::load::{self, Rate};
use crate::api::{Api, Http, content};
use crate::bed::kubeconfig::Access;
use crate::bed::{Server, kubeconfig};
use crate::text::{human_bytes, human_duration};

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    time: Duration,
    listed: usize,
    stored: usize,
    watchers: usize,
    fanned: usize,
}

impl Sizes {
    pub fn full() -> Self {
        Self { time: Duration::from_secs(8), listed: 10_000, stored: 50_000, watchers: 200, fanned: 500 }
    }

    pub fn quick() -> Self {
        Self { time: Duration::from_secs(1), listed: 1_000, stored: 5_000, watchers: 50, fanned: 50 }
    }

    /// How long each of two servers has its turn, and how many turns there are.
    pub fn turn(self) -> Duration {
        self.time / 8
    }

    pub fn turns(self) -> usize {
        if self.time > Duration::from_secs(1) { 15 } else { 3 }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Better {
    Higher,
    Lower,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    PerSecond,
    Seconds,
    Bytes,
}

/// One measured value of one server.
#[derive(Clone, Debug)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub better: Better,
    pub target: &'static str,
    unit: Unit,
    note: String,
}

impl Figure {
    fn new(name: impl Into<String>, value: f64, unit: Unit, target: &'static str, note: String) -> Self {
        let better = if matches!(unit, Unit::PerSecond) { Better::Higher } else { Better::Lower };
        let figure = Self { name: name.into(), value, better, target, unit, note };
        println!("  {}: {}", figure.name, figure.shown());
        figure
    }

    pub fn start(took: Duration) -> Self {
        Self::new("start to ready", took.as_secs_f64(), Unit::Seconds, "≤ 0.3 s", String::new())
    }

    fn rate(name: impl Into<String>, rate: &Rate, target: &'static str) -> Self {
        let note = format!(
            "median {}, p99 {}",
            human_duration_fine(rate.median),
            human_duration_fine(rate.worst_hundredth)
        );
        Self::new(name, rate.per_second, Unit::PerSecond, target, note)
    }

    pub fn shown(&self) -> String {
        let value = match self.unit {
            Unit::PerSecond => format!("{:.0}/s", self.value),
            Unit::Seconds => human_duration_fine(Duration::from_secs_f64(self.value)),
            Unit::Bytes => human_bytes(self.value as u64),
        };
        if self.note.is_empty() { value } else { format!("{value} ({})", self.note) }
    }
}

fn human_duration_fine(duration: Duration) -> String {
    if duration < Duration::from_millis(100) {
        format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
    } else {
        human_duration(duration)
    }
}

/// Everything except the start time and the memory of a full server.
pub async fn all(server: &Server, sizes: Sizes, figures: &mut Vec<Figure>) -> Result<()> {
    let access = kubeconfig::read(&server.kubeconfig)?;
    let api = server.api()?;
    figures.push(memory(server, "memory, no objects", "≤ 1/4").await?);
    for name in ["writes", "list", "fan", "lag"] {
        api.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?.success()?;
    }
    for clients in [1, 16, 256] {
        let rate = load::closed_loop(&access, clients, sizes.time, move |api, client, number| async move {
            let name = format!("w-{clients}-{client}-{number}");
            api.post(&collection("writes"), &load::object(&name, 1024)).await?.success()?;
            Ok(())
        })
        .await?;
        figures.push(Figure::rate(format!("durable creates, {clients} clients"), &rate, "≥ 3 ×"));
    }
    let rate = load::closed_loop(&access, 16, sizes.time, |api, client, _| async move {
        api.get(&format!("{}/w-16-{client}-0", collection("writes"))).await?.success()?;
        Ok(())
    })
    .await?;
    figures.push(Figure::rate("gets, 16 clients", &rate, ""));

    load::fill(&access, &collection("list"), sizes.listed, 3 * 1024).await?;
    let name = format!("list of {} × 3 KiB", sizes.listed);
    figures.push(Figure::new(
        name,
        list(&api, sizes).await?.as_secs_f64(),
        Unit::Seconds,
        "≤ 1/3",
        String::new(),
    ));
    figures.push(fan_out(&access, sizes).await?);
    figures.extend(lag(&access, sizes).await?);
    Ok(())
}

/// Memory of a server that holds a given number of objects and nothing else. Needs a fresh server: in the timed
/// phases the faster one has stored more objects.
pub async fn filled(server: &Server, sizes: Sizes) -> Result<Figure> {
    let access = kubeconfig::read(&server.kubeconfig)?;
    server.api()?.post("/api/v1/namespaces", &json!({"metadata": {"name": "many"}})).await?.success()?;
    load::fill(&access, &collection("many"), sizes.stored, 1024).await?;
    memory(server, format!("memory, {} objects of 1 KiB", sizes.stored), "≤ 1/4").await
}

fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Resident memory of all processes of the server, shortly after the last request.
async fn memory(server: &Server, name: impl Into<String>, target: &'static str) -> Result<Figure> {
    tokio::time::sleep(Duration::from_secs(3)).await;
    let usage = server.usage()?;
    let total: u64 = usage.iter().map(|(_, usage)| usage.resident).sum();
    Ok(Figure::new(name, total as f64, Unit::Bytes, target, String::new()))
}

/// Median latency of full lists.
async fn list(api: &Api, sizes: Sizes) -> Result<Duration> {
    let path = format!("{}?limit=10000", collection("list"));
    let mut took = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let reply = api.get(&path).await?;
        took.push(begin.elapsed());
        let count = reply.json()?["items"].as_array().map_or(0, Vec::len);
        if count < sizes.listed {
            bail!("listed {count} of {} objects", sizes.listed);
        }
    }
    took.sort_unstable();
    Ok(took[2])
}

/// Events delivered per second when one object changes and many clients watch.
async fn fan_out(access: &Access, sizes: Sizes) -> Result<Figure> {
    let api = Api::new(access, Http::One)?;
    let made = api.post(&collection("fan"), &load::object("one", 1024)).await?.success()?;
    let version = made["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?.to_owned();
    let path = format!("{}?watch=true&resourceVersion={version}", collection("fan"));
    let delivered = Arc::new(AtomicUsize::new(0));
    let mut watchers = Vec::new();
    for _ in 0..sizes.watchers {
        let mut events = Api::new(access, Http::One)?.watch(&path).await?;
        let delivered = delivered.clone();
        watchers.push(tokio::spawn(async move {
            for _ in 0..sizes.fanned {
                events.next_line().await?.context("the watch ended")?;
                delivered.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        }));
    }
    let begin = Instant::now();
    for number in 0..sizes.fanned {
        let patch = json!({"data": {"number": number.to_string()}});
        api.patch(&format!("{}/one", collection("fan")), content::MERGE_PATCH, &patch).await?.success()?;
    }
    for watcher in watchers {
        watcher.await??;
    }
    let per_second = delivered.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
    let name = format!("watch events delivered, 1 writer, {} watchers", sizes.watchers);
    Ok(Figure::new(name, per_second, Unit::PerSecond, "", String::new()))
}

/// Time from sending an update to its event, at 1,000 updates per second.
async fn lag(access: &Access, sizes: Sizes) -> Result<Vec<Figure>> {
    const PER_SECOND: u64 = 1_000;
    const WRITERS: u64 = 32;
    let api = Api::new(access, Http::One)?;
    for writer in 0..WRITERS {
        api.post(&collection("lag"), &load::object(&format!("l-{writer}"), 512)).await?.success()?;
    }
    let listed = api.get(&collection("lag")).await?.success()?;
    let version = listed["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?;
    let path = format!("{}?watch=true&resourceVersion={version}", collection("lag"));
    let mut events = api.watch(&path).await?;
    let begin = Instant::now();
    let total = PER_SECOND * sizes.time.as_secs();
    let watcher = tokio::spawn(async move {
        let mut lags = Vec::new();
        while lags.len() < total as usize {
            let event = events.next_line().await?.context("the watch ended")?;
            let now = begin.elapsed();
            let event: Value = serde_json::from_slice(&event)?;
            if let Some(sent) = event["object"]["data"]["sent"].as_str() {
                lags.push(now.saturating_sub(Duration::from_nanos(sent.parse()?)));
            }
        }
        anyhow::Ok(lags)
    });
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let api = Api::new(access, Http::One)?;
        writers.push(tokio::spawn(async move {
            for number in (writer..total).step_by(WRITERS as usize) {
                let due = Duration::from_nanos(number * 1_000_000_000 / PER_SECOND);
                tokio::time::sleep_until((begin + due).into()).await;
                let patch = json!({"data": {"sent": begin.elapsed().as_nanos().to_string()}});
                let path = format!("{}/l-{writer}", collection("lag"));
                api.patch(&path, content::MERGE_PATCH, &patch).await?.success()?;
            }
            anyhow::Ok(())
        }));
    }
    for writer in writers {
        writer.await??;
    }
    let wrote = begin.elapsed();
    let lags = watcher.await??;
    let rate = load::rate(lags, wrote)?;
    let note = format!("{:.0} updates/s reached", rate.per_second);
    Ok(vec![
        Figure::new(
            "watch lag at 1,000 updates/s, median",
            rate.median.as_secs_f64(),
            Unit::Seconds,
            "≤ 1/3",
            note,
        ),
        Figure::new(
            "watch lag at 1,000 updates/s, p99",
            rate.worst_hundredth.as_secs_f64(),
            Unit::Seconds,
            "",
            String::new(),
        ),
    ])
}
