//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capstan_controller::Metrics;
use http::StatusCode;
use tokio::net::TcpListener;

use super::web;

/// State of probes and metrics.
#[derive(Clone)]
pub struct Health {
    ready: Arc<AtomicBool>,
    leads: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
    providers: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Health {
    /// Neither ready nor leading. `providers` renders the metrics of infrastructure providers, and any others.
    pub fn new(metrics: Arc<Metrics>, providers: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { ready: Arc::default(), leads: Arc::default(), metrics, providers: Arc::new(providers) }
    }

    /// Called when webhooks are served and, on the leader, definitions are installed.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Called when the controllers run in this process.
    pub fn leads(&self) {
        self.leads.store(true, Ordering::Relaxed);
    }

    pub async fn serve(self, listener: TcpListener) {
        let handle = move |request: http::Request<hyper::body::Incoming>| {
            std::future::ready(self.respond(request.uri().path()))
        };
        web::serve(listener, None, handle).await;
    }

    fn respond(&self, path: &str) -> web::WebResponse {
        match path {
            "/healthz" | "/livez" => web::text(StatusCode::OK, "ok"),
            "/readyz" if self.ready.load(Ordering::Relaxed) => web::text(StatusCode::OK, "ok"),
            "/readyz" => web::text(StatusCode::SERVICE_UNAVAILABLE, "not ready yet"),
            "/metrics" => {
                let leads = u8::from(self.leads.load(Ordering::Relaxed));
                let own = format!(
                    "# HELP capstan_leader Whether the controllers run in this process.\n\
                     # TYPE capstan_leader gauge\ncapstan_leader {leads}\n"
                );
                web::text(StatusCode::OK, own + &self.metrics.render() + &(self.providers)())
            }
            _ => web::text(StatusCode::NOT_FOUND, "not found: use /healthz, /readyz or /metrics"),
        }
    }
}
