//! Calls to extension servers over HTTPS, with the client of webhooks: pooled connections, certificates as Go verifies
//! them, no redirects, bounded responses.

use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::auth::{ObjectSource, StoredEntry};
use capstan_apiserver::webhook_client::{self, CallError, IdentityFiles, WebhookClient};
use capstan_capi_runtime::{Extensions, Post, PostError};
use capstan_capi_types::runtime::ClientConfig;
use capstan_controller::Env;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// Memory that a decoded response may take.
const MOST_MEMORY: usize = 64 * 1024 * 1024;

/// Calls extension servers over HTTPS, with a client certificate if there is one.
pub fn over_https(env: Env, identity: Option<IdentityFiles>) -> Arc<Extensions> {
    let client = WebhookClient::new(Arc::new(NoServices), env);
    let client = match identity {
        Some(identity) => client.presenting(identity),
        None => client,
    };
    Arc::new(Extensions::new(Arc::new(HttpsPost { client })))
}

struct HttpsPost {
    client: WebhookClient,
}

impl Post for HttpsPost {
    fn post<'a>(
        &'a self,
        server: &'a ClientConfig,
        path: &'a str,
        request: &'a Value,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Value, PostError>> {
        Box::pin(async move {
            let target = json!({"url": url(server, path), "caBundle": server.ca_bundle});
            let config =
                webhook_client::ClientConfig::from_json(&target).map_err(PostError::Misconfigured)?;
            let response = self.client.post_within(&config, request, timeout, MOST_MEMORY).await;
            response.map_err(|error| match error {
                CallError::Unusable(why) => PostError::Misconfigured(why),
                CallError::Failed(why) => PostError::Failed(why),
            })
        })
    }
}

/// Where a call goes. A Service is found by the DNS of the management cluster.
fn url(server: &ClientConfig, path: &str) -> String {
    let service = &server.service;
    let base = match service.is_defined() {
        true => {
            let port = service.port.unwrap_or(443);
            format!("https://{}.{}.svc:{port}{}", service.name, service.namespace, service.path)
        }
        false => server.url.clone(),
    };
    format!("{}{path}", base.trim_end_matches('/'))
}

/// Services are not looked up here: the same code runs where they are in another process.
struct NoServices;

impl ObjectSource for NoServices {
    fn get(&self, _: &str, _: &str) -> Option<Arc<Value>> {
        None
    }

    fn list(&self, _: &str) -> Vec<Arc<Value>> {
        Vec::new()
    }

    fn visit(&self, _: &str, _: &mut dyn FnMut(StoredEntry<'_>)) {}

    fn bucket_revision(&self, _: &str) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_hooks_follow_the_path_of_the_server() {
        for (server, expected) in [
            (json!({"url": "https://a:1/"}), "https://a:1/hook"),
            (json!({"url": "https://a/base"}), "https://a/base/hook"),
            (json!({"service": {"namespace": "n", "name": "s"}}), "https://s.n.svc:443/hook"),
            (
                json!({"service": {"namespace": "n", "name": "s", "port": 8443, "path": "/p"}}),
                "https://s.n.svc:8443/p/hook",
            ),
        ] {
            let server: ClientConfig = serde_json::from_value(server).expect("a client");
            assert_eq!(url(&server, "/hook"), expected);
        }
    }
}
