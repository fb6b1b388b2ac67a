//! Rendering charts: once per chart and values, a few at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{Chart, Manifests};

/// Charts that are rendered at a time.
const AT_A_TIME: usize = 2;
/// Rendered charts that are kept, the least recently used one goes.
const KEPT: usize = 32;
/// How long a failure counts.
const RETRY: SignedDuration = SignedDuration::from_secs(30);
/// How long rendering may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Chart and values to render.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub chart: Chart,
    pub release: &'static str,
    pub namespace: &'static str,
    pub values: Value,
    /// Minor version of the cluster.
    pub kube_version: String,
    /// An object to put before what the chart renders.
    pub extra: Option<Value>,
}

impl Order {
    /// The same for orders with the same result, but for what the chart generates.
    pub fn identity(&self) -> String {
        serde_json::json!([
            self.chart.reference,
            self.chart.version,
            self.chart.content,
            self.release,
            self.values,
            self.kube_version,
            self.extra,
        ])
        .to_string()
    }
}

pub trait Render: Send + Sync {
    /// YAML documents, or one line that says what is wrong.
    fn render<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<String, String>>;
}

type Rendered = Result<Arc<Manifests>, String>;

struct Kept {
    identity: String,
    rendered: Rendered,
    at: Timestamp,
}

/// Renders charts and keeps the results. Cheap to clone.
#[derive(Clone)]
pub struct Renderer {
    render: Arc<dyn Render>,
    seats: Arc<Semaphore>,
    kept: Arc<Mutex<VecDeque<Kept>>>,
}

impl Default for Renderer {
    /// For servers without charts.
    fn default() -> Self {
        Self::new(Arc::new(Nothing))
    }
}

struct Nothing;

impl Render for Nothing {
    fn render<'a>(&'a self, _: &'a Order) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(std::future::ready(Err("this server renders no charts".to_owned())))
    }
}

impl Renderer {
    pub fn new(render: Arc<dyn Render>) -> Self {
        Self { render, seats: Arc::new(Semaphore::new(AT_A_TIME)), kept: Arc::default() }
    }

    pub async fn render(&self, order: &Order, now: Timestamp) -> Rendered {
        let identity = order.identity();
        if let Some(kept) = self.kept(&identity, now) {
            return kept;
        }
        // An error says that the semaphore is closed, which nobody does.
        let _seat = self.seats.acquire().await;
        // Somebody else may have rendered it meanwhile.
        if let Some(kept) = self.kept(&identity, now) {
            return kept;
        }
        let text = match tokio::time::timeout(PATIENCE, self.render.render(order)).await {
            Ok(text) => text,
            Err(_) => Err(format!("rendering takes longer than {} s", PATIENCE.as_secs())),
        };
        let extra = order.extra.as_ref().map(|extra| format!("---\n{extra}\n---\n")).unwrap_or_default();
        let parsed = text.and_then(|text| Manifests::parse(&format!("{extra}{text}")));
        let rendered = parsed.map(Arc::new);
        let mut kept = self.kept.lock();
        kept.retain(|other| other.identity != identity);
        kept.push_back(Kept { identity, rendered: rendered.clone(), at: now });
        if kept.len() > KEPT {
            kept.pop_front();
        }
        rendered
    }

    fn kept(&self, identity: &str, now: Timestamp) -> Option<Rendered> {
        let mut all = self.kept.lock();
        let at = all.iter().position(|kept| kept.identity == *identity)?;
        let kept = all.remove(at)?;
        if kept.rendered.is_err() && now.duration_since(kept.at) >= RETRY {
            return None;
        }
        let rendered = kept.rendered.clone();
        all.push_back(kept);
        Some(rendered)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Fails for a version of its own.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Render for Counted {
        fn render<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<String, String>> {
            let nth = self.0.fetch_add(1, Ordering::Relaxed);
            let text = match order.kube_version.as_str() {
                "1.0" => Err("no such version".to_owned()),
                _ => Ok(format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: n-{nth}}}\n")),
            };
            Box::pin(std::future::ready(text))
        }
    }

    fn order(kube_version: &str) -> Order {
        Order {
            chart: Chart { reference: "c".to_owned(), version: None, content: None },
            release: "cilium",
            namespace: "kube-system",
            values: Value::Null,
            kube_version: kube_version.to_owned(),
            extra: None,
        }
    }

    #[tokio::test]
    async fn a_chart_is_rendered_once_and_a_failure_counts_for_a_while() {
        let counted = Arc::new(Counted::default());
        let renderer = Renderer::new(counted.clone());
        let start = Timestamp::UNIX_EPOCH;
        let rendered = renderer.render(&order("1.33"), start).await;
        assert_eq!(rendered, renderer.render(&order("1.33"), start + RETRY).await);
        assert_eq!(counted.0.load(Ordering::Relaxed), 1);
        for (seconds, times) in [(0, 2), (29, 2), (30, 3)] {
            let now = start + SignedDuration::from_secs(seconds);
            assert_eq!(renderer.render(&order("1.0"), now).await, Err("no such version".to_owned()));
            assert_eq!(counted.0.load(Ordering::Relaxed), times, "{seconds}");
        }
    }

    #[tokio::test]
    async fn an_object_may_come_before_those_of_the_chart() {
        let extra =
            Some(serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}));
        let renderer = Renderer::new(Arc::new(Counted::default()));
        let rendered = renderer.render(&Order { extra, ..order("1.33") }, Timestamp::UNIX_EPOCH).await;
        assert_eq!(rendered.expect("manifests").objects()[0]["metadata"]["name"], "x");
    }
}
