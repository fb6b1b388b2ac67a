//! Things as the API shows them.

mod compute;
mod identity;
mod network;
mod place;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::cloud::Cloud;
use crate::model::identity::Account;
use crate::model::table::Key;

pub(crate) use compute::{Details, VmView};
pub(crate) use place::share;

/// Times on the wire.
pub(crate) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S+0000").to_string()
}

/// An object in the making: absent values leave no key behind, as in the server's replies.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Begins with an object.
    pub(crate) fn of(value: Value) -> Self {
        match value {
            Value::Object(map) => Self(map),
            _ => Self(Map::new()),
        }
    }

    pub(crate) fn put(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn maybe(&mut self, name: &str, value: Option<impl Into<Value>>) -> &mut Self {
        if let Some(value) = value {
            self.put(name, value);
        }
        self
    }

    /// Whose it is: an account's, or a project's.
    pub(crate) fn owner(&mut self, cloud: &Cloud, account: Key<Account>) -> &mut Self {
        let row = &cloud.accounts[account];
        match row.project {
            Some(project) => {
                let project = &cloud.projects[project];
                self.put("projectid", project.uuid.as_str()).put("project", project.name.as_str());
            }
            None => {
                self.put("account", row.name.as_str());
            }
        }
        let domain = &cloud.domains[row.domain];
        self.put("domainid", domain.uuid.as_str())
            .put("domain", domain.name.as_str())
            .put("domainpath", cloud.domain_path(row.domain))
    }

    /// The job that is under way about it.
    pub(crate) fn job(&mut self, cloud: &Cloud, uuid: &str) -> &mut Self {
        if let Some(job) = cloud.job_about(uuid) {
            self.put("jobid", job).put("jobstatus", 0);
        }
        self
    }

    /// Takes a field out again that one command leaves out.
    pub(crate) fn drop_field(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub(crate) fn done(self) -> Value {
        Value::Object(self.0)
    }
}

impl Cloud {
    /// Tags of something: only key and value.
    pub(crate) fn short_tags(&self, resource: &str) -> Value {
        self.tags
            .iter()
            .filter(|tag| tag.resource == resource)
            .map(|tag| serde_json::json!({"key": tag.key, "value": tag.value}))
            .collect()
    }

    /// Tags of something, each with what it is on.
    pub(crate) fn long_tags(&self, resource: &str) -> Value {
        let mut tags: Vec<_> = self.tags.iter().filter(|tag| tag.resource == resource).collect();
        tags.sort_by_key(|tag| &tag.key);
        tags.into_iter()
            .map(|tag| {
                let account = &self.accounts[tag.account];
                let domain = &self.domains[account.domain];
                serde_json::json!({
                    "key": tag.key,
                    "value": tag.value,
                    "resourcetype": tag.resource_type,
                    "resourceid": tag.resource,
                    "account": account.name,
                    "domainid": domain.uuid,
                    "domain": domain.name,
                })
            })
            .collect()
    }
}
