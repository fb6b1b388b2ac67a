//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capstan_controller::Metrics;
use http::StatusCode;
use tokio::net::TcpListener;

use super::web;

/// What probes and metrics tell.
#[derive(Clone)]
pub struct Health {
    ready: Arc<AtomicBool>,
    leads: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
    providers: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Health {
    /// Neither ready nor leading yet. `providers` tells what providers of infrastructure count.
    pub fn new(metrics: Arc<Metrics>, providers: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { ready: Arc::default(), leads: Arc::default(), metrics, providers: Arc::new(providers) }
    }

    /// Webhooks are served; and if this process leads, definitions are there.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// The controllers run here.
    pub fn leads(&self) {
        self.leads.store(true, Ordering::Relaxed);
    }

    /// Answers until the task ends.
    pub async fn serve(self, listener: TcpListener) {
        let handle = move |request: http::Request<hyper::body::Incoming>| {
            std::future::ready(self.answer(request.uri().path()))
        };
        web::serve(listener, None, handle).await;
    }

    fn answer(&self, path: &str) -> web::Answer {
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
            _ => web::text(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics"),
        }
    }
}
