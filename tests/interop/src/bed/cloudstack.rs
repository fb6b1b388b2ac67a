//! `capstan sim cloudstack` as a separate process. Planes reach it only through its API.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use capstan_cloudstack_client::commands::{
    CreateFirewallRule, DeleteFirewallRule, DeleteSshKeyPair, ListFirewallRules, ListPublicIpAddresses,
    Owner, RegisterSshKeyPair,
};
use capstan_cloudstack_client::model::AddressState;
use capstan_cloudstack_client::{Client, Credentials, Endpoint, Https, HttpsOptions, Limits, Rotating};
use serde_json::{Value, json};

use super::managers::plain;
use super::ports::free_port;
use super::process::{Process, Program};
use super::tool::Tool;
use super::wait;

/// A running cloud. Its machines are gone when it is dropped.
#[derive(Debug)]
pub struct CloudStack {
    process: Process,
    port: u16,
    /// Port of the API servers of clusters.
    pub endpoint_port: u16,
    keys: (String, String),
    /// Addresses handed out before. The cloud may still report them as free.
    chosen: BTreeSet<IpAddr>,
}

impl CloudStack {
    /// Starts a cloud with an image of `version`, waits until it answers and reads the API keys of `account`.
    pub async fn start(folder: &Path, binary: &Path, version: &str, account: &str) -> Result<Self> {
        let (port, endpoint_port) = (free_port()?, free_port()?);
        let process = Program::new("cloudstack", binary)
            .args(["sim", "cloudstack"])
            .arg(format!("--listen=127.0.0.1:{port}"))
            .arg(format!("--endpoint-port={endpoint_port}"))
            .arg(format!("--kubernetes={version}"))
            .start(folder)?;
        let log = process.log().to_owned();
        let keys = wait::until("the simulated CloudStack prints keys", Duration::from_secs(60), || async {
            Ok(keys(&std::fs::read_to_string(&log)?, account))
        })
        .await?;
        let cloud = Self { process, port, endpoint_port, keys, chosen: BTreeSet::new() };
        wait::until("the simulated CloudStack answers", Duration::from_secs(60), || async {
            cloud.calls().await.map(Some)
        })
        .await?;
        Ok(cloud)
    }

    /// URL of the API.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/client/api", self.port)
    }

    /// The credentials Secret that failure domains refer to.
    pub fn secret(&self, name: &str) -> Value {
        let (api_key, secret_key) = &self.keys;
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {
                "api-url": self.url(), "api-key": api_key, "secret-key": secret_key, "verify-ssl": "true",
            },
        })
    }

    /// Fails if the process has exited.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Warnings and errors in its log.
    pub fn logged_warnings(&self) -> Result<Vec<String>> {
        self.process.logged_warnings()
    }

    /// Number of requests so far, by command.
    pub async fn calls(&self) -> Result<BTreeMap<String, u64>> {
        Ok(serde_json::from_value(self.get("/sim/calls").await?)?)
    }

    /// Resources that were not there at the start.
    pub async fn leaks(&self) -> Result<Vec<Value>> {
        Ok(serde_json::from_value(self.get("/sim/leaks").await?)?)
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let answer = plain(self.port, path).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("a response without a body")?;
        ensure!(head.split_whitespace().nth(1) == Some("200"), "{path}: {head}");
        Ok(serde_json::from_str(body)?)
    }

    fn client(&self) -> Result<Client> {
        let (api_key, secret_key) = &self.keys;
        let keys = Arc::new(Rotating::new(Credentials::new(api_key.as_str(), secret_key.as_str())));
        let transport = Arc::new(Https::new(&HttpsOptions::default())?);
        Ok(Client::new(Arc::new(Endpoint::new(&self.url(), transport, Limits::default())?), keys))
    }

    /// Replaces the firewall rules of a port by one that lets in fewer, as an operator does.
    pub async fn narrow_firewall(&self, port: u16, cidr: &str) -> Result<()> {
        let client = self.client()?;
        let rules = client.list(&ListFirewallRules::default()).await?;
        for rule in rules.into_iter().filter(|rule| rule.startport == Some(port)) {
            let address = rule.ipaddressid.clone().context("a firewall rule without an address")?;
            client.run(&DeleteFirewallRule { id: rule.id }).await?;
            let request = CreateFirewallRule {
                ipaddressid: address,
                protocol: "tcp".to_owned(),
                startport: Some(port),
                endport: Some(port),
                cidrlist: vec![cidr.to_owned()],
                icmptype: None,
                icmpcode: None,
            };
            client.run(&request).await?;
        }
        Ok(())
    }

    /// Registers an SSH public key.
    pub async fn register_ssh_key(&self, name: &str, publickey: &str) -> Result<()> {
        let (name, publickey) = (name.to_owned(), publickey.to_owned());
        let request = RegisterSshKeyPair { name, publickey, owner: Owner::default() };
        self.client()?.call(&request).await?;
        Ok(())
    }

    /// Deletes an SSH public key.
    pub async fn delete_ssh_key(&self, name: &str) -> Result<()> {
        self.client()?.call(&DeleteSshKeyPair { name: name.to_owned(), owner: Owner::default() }).await?;
        Ok(())
    }

    /// Makes a network for all tenants, as the operator of the cloud does with the simulator's own tool.
    pub async fn share_network(&self, binary: &Path, name: &str) -> Result<()> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let tool = Tool::new(binary.to_owned(), std::env::temp_dir());
        let find = async |command: &str, list: &str, name: &str| -> Result<String> {
            let arguments = ["sim", "cloudstack", "ctl", "--url", &url, "call", command];
            let answer: Value = serde_json::from_str(&tool.plain(&arguments).await?)?;
            let mut all = answer[list].as_array().into_iter().flatten();
            let found = all.find(|one| one["name"] == name).and_then(|one| one["id"].as_str());
            Ok(found.with_context(|| format!("{command} has no {name}"))?.to_owned())
        };
        let zone = find("listZones", "zone", "zone-1").await?;
        let offering = "DefaultSharedNetworkOffering";
        let offering = find("listNetworkOfferings", "networkoffering", offering).await?;
        let (zone, offering) = (format!("zoneid={zone}"), format!("networkofferingid={offering}"));
        let (name, text) = (format!("name={name}"), format!("displaytext={name}"));
        let range = ["gateway=10.99.0.1", "netmask=255.255.255.0", "startip=10.99.0.2", "endip=10.99.0.249"];
        let own = [name.as_str(), &text, &zone, &offering];
        let begin = ["sim", "cloudstack", "ctl", "--url", &url, "call", "createNetwork"];
        tool.plain(&[&begin[..], &own[..], &range[..]].concat()).await?;
        Ok(())
    }

    /// A free public address. Never returns the same one twice.
    pub async fn free_address(&mut self) -> Result<IpAddr> {
        let question = ListPublicIpAddresses {
            state: Some(AddressState::Free),
            allocatedonly: Some(false),
            ..ListPublicIpAddresses::default()
        };
        let free = self.client()?.list(&question).await?;
        let mut free = free.iter().map(|address| address.ipaddress);
        free.find(|address| self.chosen.insert(*address)).context("no free public address")
    }
}

/// API key and secret key of an account, from the log.
fn keys(log: &str, account: &str) -> Option<(String, String)> {
    let mut lines = log.lines().skip_while(|line| *line != format!("account:    {account}")).skip(1);
    let mut value = |name: &str| Some(lines.next()?.strip_prefix(name)?.trim().to_owned());
    Some((value("api-key:")?, value("secret-key:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_only_when_the_line_is_complete() {
        let log =
            "listening\n\naccount:    a\napi-key:    k\nsecret-key: s\n\naccount:    b\napi-key:    l\n";
        assert_eq!(keys(log, "a"), Some(("k".to_owned(), "s".to_owned())));
        assert_eq!(keys(log, "b"), None);
    }
}
