//! An administrator of the services: reads what they have, as JSON. Shares no code with the client under test.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Versions to ask for, by type of service: servers with their flavor, host name and user data; usages of a project.
const VERSIONS: &[(&str, &str)] = &[("compute", "2.79"), ("placement", "1.9")];

/// Credentials of a password.
pub struct Password<'a> {
    pub auth_url: &'a str,
    pub user: &'a str,
    pub password: &'a str,
}

/// A session. Clones share connections.
#[derive(Clone, Debug)]
pub struct Admin {
    http: Client<HttpConnector, Full<Bytes>>,
    token: String,
    /// Public URLs by type of service.
    catalog: BTreeMap<String, String>,
}

impl Admin {
    /// Signs in to the project that is called as the user.
    pub async fn sign_in(with: &Password<'_>) -> Result<Self> {
        let mut admin = Self {
            http: Client::builder(TokioExecutor::new()).build_http(),
            token: String::new(),
            catalog: BTreeMap::new(),
        };
        let domain = json!({"id": "default"});
        let user = json!({"name": with.user, "domain": domain, "password": with.password});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"name": with.user, "domain": domain}},
        }});
        let url = format!("{}/auth/tokens", with.auth_url);
        let (headers, body) = admin.ask(Method::POST, &url, "", Some(&body)).await?;
        let token = headers.get("x-subject-token").context("Keystone sent no token")?;
        token.to_str()?.clone_into(&mut admin.token);
        admin.catalog.insert("identity".to_owned(), with.auth_url.to_owned());
        for service in body["token"]["catalog"].as_array().into_iter().flatten() {
            let endpoints = service["endpoints"].as_array().into_iter().flatten();
            let public = endpoints.filter(|endpoint| endpoint["interface"] == "public");
            let url = public.filter_map(|endpoint| endpoint["url"].as_str()).next();
            if let (Some(kind), Some(url)) = (service["type"].as_str(), url) {
                admin.catalog.entry(kind.to_owned()).or_insert_with(|| url.to_owned());
            }
        }
        Ok(admin)
    }

    /// The response to a GET below the URL of a service.
    pub async fn get(&self, service: &str, path: &str) -> Result<Value> {
        let base = self.catalog.get(service).with_context(|| format!("there is no service {service}"))?;
        let url = format!("{base}{path}");
        let version = VERSIONS.iter().find(|(of, _)| *of == service);
        let version = version.map(|(of, version)| format!("{of} {version}")).unwrap_or_default();
        Ok(self.ask(Method::GET, &url, &version, None).await.with_context(|| url.clone())?.1)
    }

    /// The list in a response: its only field that is one, except for links.
    pub async fn list(&self, service: &str, path: &str) -> Result<Vec<Value>> {
        let answer = self.get(service, path).await?;
        let fields = answer.as_object().with_context(|| format!("{service}{path}: no object"))?;
        let mut lists = fields.iter().filter(|(name, _)| !name.ends_with("links"));
        let list = lists.find_map(|(_, value)| value.as_array());
        Ok(list.with_context(|| format!("{service}{path}: no list"))?.clone())
    }

    async fn ask(
        &self,
        method: Method,
        url: &str,
        version: &str,
        body: Option<&Value>,
    ) -> Result<(http::HeaderMap, Value)> {
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "interop");
        // Cinder refuses an empty version.
        let optional = [("OpenStack-API-Version", version), ("X-Auth-Token", self.token.as_str())];
        for (name, value) in optional.into_iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(body.map(Value::to_string).unwrap_or_default())))?;
        let response = tokio::time::timeout(TIMEOUT, self.http.request(request)).await??;
        let (head, body) = response.into_parts();
        let bytes = tokio::time::timeout(TIMEOUT, body.collect()).await??.to_bytes();
        ensure!(head.status.is_success(), "{}: {}", head.status, String::from_utf8_lossy(&bytes));
        Ok((head.headers, serde_json::from_slice(&bytes)?))
    }
}
