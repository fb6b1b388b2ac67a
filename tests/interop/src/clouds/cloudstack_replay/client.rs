//! A client of the simulator that signs requests, correctly or incorrectly, as the recorded ones were.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context, Result};
use bytes::Bytes;
use capstan_env::Env;
use capstan_sim_cloudstack::{Credentials, Layout, Settings, Simulator, encode, sign};
use http::{Request, Response};
use serde_json::Value;

/// A simulator with a manual clock.
pub struct Client {
    pub simulator: Simulator,
    millis: Arc<AtomicI64>,
    session: Option<(String, String)>,
}

/// What is wrong with a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    BadSignature,
    NoSignature,
    WrongSecret,
    SortedWithoutCase,
}

impl Client {
    pub fn new(layout: &Layout, settings: Settings, start: jiff::Timestamp) -> Self {
        let millis = Arc::new(AtomicI64::new(start.as_millisecond()));
        let read = millis.clone();
        let clock =
            move || jiff::Timestamp::from_millisecond(read.load(Ordering::Relaxed)).unwrap_or_default();
        let simulator = Simulator::new(Env::simulated(clock, 1), layout, settings, None);
        Self { simulator, millis, session: None }
    }

    /// Advances the clock. Never moves it back.
    pub fn reach(&self, at: jiff::Timestamp) {
        self.millis.fetch_max(at.as_millisecond(), Ordering::Relaxed);
    }

    pub fn pass(&self, millis: i64) {
        self.millis.fetch_add(millis, Ordering::Relaxed);
    }

    /// A query string with its signature, or an incorrect one.
    pub fn signed(&self, keys: &Credentials, parameters: &[(String, String)], flaw: Flaw) -> String {
        let mut all = parameters.to_vec();
        all.push(("apiKey".to_owned(), keys.api_key.clone()));
        let secret = if flaw == Flaw::WrongSecret { "wrong" } else { &keys.secret_key };
        let signature = match flaw {
            Flaw::BadSignature => Some("AAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned()),
            Flaw::NoSignature => None,
            Flaw::SortedWithoutCase => {
                let lower: Vec<_> =
                    all.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
                Some(sign(&lower, secret))
            }
            Flaw::None | Flaw::WrongSecret => Some(sign(&all, secret)),
        };
        all.extend(signature.map(|signature| ("signature".to_owned(), signature)));
        form(&all)
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        form: Option<&str>,
        cookies: Option<&str>,
    ) -> Result<Response<Bytes>> {
        let mut request = Request::builder().method(method).uri(path);
        if form.is_some() {
            request = request.header("content-type", "application/x-www-form-urlencoded");
        }
        if let Some(cookies) = cookies {
            request = request.header("cookie", cookies);
        }
        let request = request.body(Bytes::copy_from_slice(form.unwrap_or_default().as_bytes()))?;
        Ok(self.simulator.call(request).await?)
    }

    /// Sends a call by GET or POST.
    pub async fn call(&self, method: &str, query: &str) -> Result<Response<Bytes>> {
        match method {
            "POST" => self.send("POST", "/client/api", Some(query), None).await,
            _ => self.send("GET", &format!("/client/api?{query}"), None, None).await,
        }
    }

    /// The response to a valid call of an account, without its wrapper.
    pub async fn body(&self, account: &str, parameters: &[(String, String)]) -> Result<Value> {
        let keys = self.simulator.credentials(account)?;
        let mut all = parameters.to_vec();
        all.push(("response".to_owned(), "json".to_owned()));
        let response = self.call("POST", &self.signed(&keys, &all, Flaw::None)).await?;
        let value: Value = serde_json::from_slice(response.body())?;
        value.as_object().and_then(|map| map.values().next().cloned()).context("the reply is not an object")
    }

    /// Waits for the result of a job.
    pub async fn job(&self, account: &str, job: &str) -> Result<Value> {
        let query =
            [("command".to_owned(), "queryAsyncJobResult".to_owned()), ("jobid".to_owned(), job.to_owned())];
        for _ in 0..600 {
            let body = self.body(account, &query).await?;
            if body["jobstatus"] != 0 {
                return Ok(body);
            }
            self.pass(100);
        }
        anyhow::bail!("job {job} does not end")
    }

    /// Stores the cookies of a login.
    pub fn keep_session(&mut self, response: &Response<Bytes>) {
        let cookie = |name: &str| {
            response
                .headers()
                .get_all("set-cookie")
                .iter()
                .filter_map(|value| value.to_str().ok()?.split(';').next()?.split_once('='))
                .find(|(held, value)| *held == name && !value.is_empty())
                .map(|(_, value)| value.to_owned())
        };
        if let (Some(session), Some(key)) = (cookie("JSESSIONID"), cookie("sessionkey")) {
            self.session = Some((session, key));
        }
    }

    /// Session id and session key of the last login.
    pub fn session(&self) -> Option<(&str, &str)> {
        self.session.as_ref().map(|(session, key)| (session.as_str(), key.as_str()))
    }
}

/// Encodes parameters as a query string.
pub fn form(parameters: &[(String, String)]) -> String {
    let pairs: Vec<_> =
        parameters.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.join("&")
}
