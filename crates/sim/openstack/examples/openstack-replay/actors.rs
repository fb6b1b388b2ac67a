//! Who sends the recorded requests: their tokens and secrets, which the recording leaves out.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bytes::Bytes;
use capstan_sim_openstack::Service;
use http::Request;
use regex::Regex;
use serde_json::{Value, json};

use crate::Answer;
use crate::case::Case;
use crate::names::Names;
use crate::setting::Cloud;

/// Everybody's password.
const PASSWORD: &str = "admin";

/// Cases whose token an actor uses from then on.
const LOGINS: &[(&str, &str)] = &[
    ("ks.auth.password.project_by_name", "admin"),
    ("ks.auth.alice", "alice"),
    ("ks.auth.rita", "rita"),
    ("ks.auth.mallory", "mallory"),
    ("ks.auth.explicit_unscoped", "alice-unscoped"),
    ("ks.revoke.issue", "tmp"),
    ("ks.ac.auth.restricted", "alice-ac"),
    ("ks.ac.auth.unrestricted", "alice-acu"),
    ("ks.ac.auth.short", "tmp2"),
    ("ks.ac.auth.access_rules", "alice-acrules"),
    ("ks.acrules.auth", "alice-acrules"),
    ("ks.auth.tmp", "tmp3"),
    ("ks.ac.auth.expiring_still_valid", "expired"),
    ("octavia.auth_again", "alice"),
    ("octavia.auth_mallory", "mallory"),
    ("ks.cache.issue", "tmpc"),
    ("ks.revoke.admin.issue", "admin2"),
];

#[derive(Default)]
pub struct Actors {
    tokens: BTreeMap<String, String>,
    /// Secrets of application credentials by our id and by name.
    secrets: BTreeMap<String, String>,
}

impl Actors {
    pub async fn log_in(&mut self, cloud: &Cloud, user: &str, project: &str) -> Result<()> {
        let domain = json!({"name": "Default"});
        let auth = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {"name": user, "domain": domain, "password": PASSWORD}}},
            "scope": {"project": {"name": project, "domain": domain}},
        }});
        let request = Request::builder()
            .method("POST")
            .uri("/v3/auth/tokens")
            .header("content-type", "application/json");
        let answer = cloud.call(Service::Identity, request.body(Bytes::from(auth.to_string()))?).await?;
        let token = answer.headers.get("x-subject-token").context("the simulator issues no token")?;
        self.tokens.insert(user.to_owned(), token.clone());
        Ok(())
    }

    pub fn knows(&self, actor: &str) -> bool {
        matches!(actor, "anon" | "badtok" | "badfernet") || self.tokens.contains_key(actor)
    }

    pub fn token(&self, actor: &str) -> Option<&str> {
        match actor {
            "anon" => None,
            "badtok" => Some("junk"),
            "badfernet" => Some("gAAAAABjunk"),
            _ => self.tokens.get(actor).map(String::as_str),
        }
    }

    /// The token that a request is about.
    pub fn subject(&self, case: &Case) -> Option<&str> {
        case.request_headers.keys().find(|name| name.eq_ignore_ascii_case("x-subject-token"))?;
        let actor = match case.case.as_str() {
            name if name.contains("junk") => return Some("junk"),
            name if name.starts_with("ks.revoke.admin") => "admin2",
            name if name.starts_with("ks.revoke") => "tmp",
            name if name.starts_with("ks.cache") => "tmpc",
            name if name.starts_with("ks.expired") => "expired",
            name if name.starts_with("ks.teardown") => "admin",
            name if name.contains("ac_token") => "alice-ac",
            _ => "alice",
        };
        self.token(actor)
    }

    /// The body to send: with our names and secrets.
    pub fn body(&self, case: &Case, names: &Names) -> Option<Vec<u8>> {
        let wrong = case.case.contains("wrong") || case.case.contains("bad_password");
        match &case.request_body {
            Value::Null => None,
            Value::String(text) => Some(names.translate(text).into_bytes()),
            body => {
                let mut body: Value = serde_json::from_str(&names.translate(&body.to_string())).ok()?;
                self.fill(case, &mut body, wrong);
                Some(body.to_string().into_bytes())
            }
        }
    }

    fn fill(&self, case: &Case, value: &mut Value, wrong: bool) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill(case, item, wrong)),
            Value::Object(fields) => {
                let credential =
                    fields.get("id").or(fields.get("name")).and_then(Value::as_str).map(str::to_owned);
                if fields.get("secret").and_then(Value::as_str) == Some("<SECRET>") {
                    let secret = credential.and_then(|it| self.secrets.get(&it)).filter(|_| !wrong);
                    if let Some(secret) = secret {
                        fields.insert("secret".to_owned(), json!(secret));
                    }
                }
                fields.values_mut().for_each(|field| self.fill(case, field, wrong));
            }
            Value::String(text) => {
                *text = match text.as_str() {
                    "<PASSWORD>" if wrong => "wrong".to_owned(),
                    "<PASSWORD>" => PASSWORD.to_owned(),
                    "<TOKEN>" => {
                        let actor = match case.case.as_str() {
                            name if name.contains("unrestricted") => "alice-acu",
                            name if name.contains("restricted") => "alice-ac",
                            _ => "alice-unscoped",
                        };
                        self.token(actor).unwrap_or_default().to_owned()
                    }
                    _ => grown(text),
                };
            }
            _ => {}
        }
    }

    /// Remembers tokens and secrets of a reply.
    pub fn learn(&mut self, case: &Case, answer: &Answer) {
        let credential = &answer.body["application_credential"];
        if let Some(secret) = credential["secret"].as_str() {
            for key in ["id", "name"] {
                if let Some(name) = credential[key].as_str() {
                    self.secrets.insert(name.to_owned(), secret.to_owned());
                }
            }
        }
        let login = LOGINS.iter().find(|(name, _)| *name == case.case);
        if let (Some((_, actor)), Some(token)) = (login, answer.headers.get("x-subject-token"))
            && let Some(old) = self.tokens.insert((*actor).to_owned(), token.clone())
        {
            self.tokens.insert(format!("{actor}-old"), old);
        }
    }
}

/// A text that the recording cut, as long as it was.
fn grown(text: &str) -> String {
    let Ok(pattern) = Regex::new(r"^(?s)(.*)<\.\.\.(\d+) chars in all>$") else { return text.to_owned() };
    let Some(found) = pattern.captures(text) else { return text.to_owned() };
    let length: usize = found[2].parse().unwrap_or_default();
    let last = found[1].chars().next_back().unwrap_or('A');
    let mut whole = found[1].to_owned();
    while whole.chars().count() < length {
        whole.push(last);
    }
    whole
}
