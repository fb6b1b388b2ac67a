//! `--otlp-endpoint`: traces of reconciles, sent to an OpenTelemetry collector.

use std::sync::Arc;

use anyhow::{Context, Result};
use capstan_cloud_http::{Https, HttpsOptions, Trust};
use capstan_env::Env;
use capstan_traces::{Counts, Endpoint, Exporter, Resource, SpanLayer};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Headers for the collector: credentials do not belong on a command line.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

#[derive(clap::Args, Clone, Default)]
pub struct TraceArgs {
    /// Send traces of reconciles to an OpenTelemetry collector by OTLP over HTTP: its base URL, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    // Not parsed by clap, whose errors repeat the value: it may have a password in it.
    otlp_endpoint: Option<String>,
}

impl TraceArgs {
    /// Starts logging and, with an endpoint, the recording of spans.
    pub fn start_logging(&self) -> Result<Option<Exporter>> {
        let (layer, exporter) = self.exporting()?.unzip();
        crate::logging::start(layer)?;
        Ok(exporter)
    }

    fn exporting(&self) -> Result<Option<(SpanLayer, Exporter)>> {
        let Some(endpoint) = &self.otlp_endpoint else { return Ok(None) };
        let endpoint: Endpoint = endpoint.parse().context("--otlp-endpoint")?;
        let headers = std::env::var(HEADERS).unwrap_or_default();
        let endpoint = endpoint.with_headers(&headers).context(HEADERS)?;
        // An image without certificates can still reach a collector beside it.
        let trust = if endpoint.is_plain() { Trust::Anyone } else { Trust::System };
        let transport = Https::new(&HttpsOptions { trust, ..HttpsOptions::default() })?;
        let env = Env::system();
        let resource = Resource {
            service_name: "capstan",
            service_version: env!("CARGO_PKG_VERSION"),
            instance: env.uuid(),
        };
        Ok(Some(capstan_traces::exporting(endpoint, Arc::new(transport), resource, env)))
    }
}

/// The task that sends spans, if there is one.
pub struct Sending(Option<(oneshot::Sender<()>, JoinHandle<()>)>);

impl Sending {
    /// Returns its metrics too.
    pub fn start(exporter: Option<Exporter>) -> (Self, Option<Arc<Counts>>) {
        let counts = exporter.as_ref().map(Exporter::counts);
        let task = exporter.map(|exporter| {
            let (stop, stopped) = oneshot::channel();
            (stop, tokio::spawn(exporter.run(async move { drop(stopped.await) })))
        });
        (Self(task), counts)
    }

    /// Sends what is left.
    pub async fn stop(self) {
        if let Some((stop, task)) = self.0 {
            let _ = stop.send(());
            let _ = task.await;
        }
    }
}
