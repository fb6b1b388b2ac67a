//! What an operator has in the cloud beside clusters, and does to theirs, with the simulator's own tool.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use crate::bed::cloudstack::CloudStack;
use crate::bed::tool::Tool;
use crate::clouds::capc_on_sim::manifest::VERSION;

/// An isolated network with a machine.
pub const OFFICE: &str = "office";
/// A VPC with a tier that has a machine.
pub const VPC: &str = "campus";
/// A network of all tenants, with a machine.
pub const SHARED: &str = "everybody";
/// The tier of the VPC.
const TIER: &str = "library";
/// An access list of the VPC.
const ACCESS: &str = "readers";
/// Whom the operator lets in, in place of everybody. The API servers of clusters are asked from there.
const NEARBY: &str = "127.0.0.0/8";

/// Commands that list resources, and the fields in their answers.
const LISTS: &[(&str, &str)] = &[
    ("listVPCs", "vpc"),
    ("listNetworks", "network"),
    ("listNetworkACLLists", "networkacllist"),
    ("listNetworkACLs", "networkacl"),
    ("listPublicIpAddresses", "publicipaddress"),
    ("listFirewallRules", "firewallrule"),
    ("listEgressFirewallRules", "firewallrule"),
    ("listPortForwardingRules", "portforwardingrule"),
    ("listLoadBalancerRules", "loadbalancerrule"),
    ("listVirtualMachines", "virtualmachine"),
    ("listVolumes", "volume"),
    ("listAffinityGroups", "affinitygroup"),
    ("listTags", "tag"),
];
/// Fields of a resource that show what somebody made of it. Others are about its use.
const FIELDS: &[&str] = &[
    "id",
    "name",
    "state",
    "ipaddress",
    "publicip",
    "protocol",
    "startport",
    "endport",
    "publicport",
    "privateport",
    "cidrlist",
    "aclid",
    "action",
    "traffictype",
    "number",
    "key",
    "value",
    "resourceid",
    "issourcenat",
];

/// Resources by command, each as one line.
pub type Inventory = BTreeMap<&'static str, BTreeSet<String>>;

pub struct Operator {
    tool: Tool,
    url: String,
}

impl Operator {
    pub fn new(tool: Tool, cloud: &CloudStack) -> Self {
        Self { tool, url: cloud.url() }
    }

    /// Makes the networks, a machine in each, and rules.
    pub async fn prepare(&self) -> Result<()> {
        let zone = self.id("listZones", "zone", "zone-1").await?;
        let offering = "DefaultIsolatedNetworkOfferingWithSourceNatService";
        let offering = self.id("listNetworkOfferings", "networkoffering", offering).await?;
        let made =
            [("name", OFFICE), ("displaytext", OFFICE), ("zoneid", &zone), ("networkofferingid", &offering)];
        let office = self.made("createNetwork", "network", &made).await?;
        let machine = self.machine(&zone, &office, "printer").await?;
        let opened =
            [("networkid", office.as_str()), ("protocol", "tcp"), ("startport", "443"), ("endport", "443")];
        self.call("createEgressFirewallRule", &opened).await?;
        let address = self.made("associateIpAddress", "ipaddress", &[("networkid", &office)]).await?;
        self.open(&address, "22", NEARBY).await?;
        let forwarded = [
            ("ipaddressid", address.as_str()),
            ("protocol", "tcp"),
            ("publicport", "22"),
            ("privateport", "22"),
            ("virtualmachineid", &machine),
            ("openfirewall", "false"),
        ];
        self.call("createPortForwardingRule", &forwarded).await?;

        let offering = self.id("listVPCOfferings", "vpcoffering", "Default VPC offering").await?;
        let made = [
            ("name", VPC),
            ("displaytext", VPC),
            ("zoneid", &zone),
            ("cidr", "10.1.0.0/16"),
            ("vpcofferingid", &offering),
        ];
        let vpc = self.made("createVPC", "vpc", &made).await?;
        let made = [("name", ACCESS), ("vpcid", &vpc)];
        let access = self.made("createNetworkACLList", "networkacllist", &made).await?;
        for (number, port) in [("10", "443"), ("20", "6443")] {
            let rule = [
                ("aclid", access.as_str()),
                ("protocol", "tcp"),
                ("startport", port),
                ("endport", port),
                ("cidrlist", NEARBY),
                ("traffictype", "Ingress"),
                ("action", "Allow"),
                ("number", number),
            ];
            self.call("createNetworkACL", &rule).await?;
        }
        let offering = "DefaultIsolatedNetworkOfferingForVpcNetworks";
        let offering = self.id("listNetworkOfferings", "networkoffering", offering).await?;
        let made = [
            ("name", TIER),
            ("displaytext", TIER),
            ("zoneid", &zone),
            ("networkofferingid", &offering),
            ("vpcid", &vpc),
            ("gateway", "10.1.200.1"),
            ("netmask", "255.255.255.0"),
            ("aclid", &access),
        ];
        let tier = self.made("createNetwork", "network", &made).await?;
        self.machine(&zone, &tier, "catalogue").await?;
        let shared = self.id("listNetworks", "network", SHARED).await?;
        self.machine(&zone, &shared, "clock").await?;
        Ok(())
    }

    /// Changes the rules of the clusters by hand: fewer may reach one, a neighbour of it is let in at another port, and the
    /// tier of another gets the operator's access list.
    pub async fn meddle(&self, cloud: &CloudStack) -> Result<()> {
        cloud.narrow_firewall(cloud.endpoint_port, NEARBY).await?;
        let office = self.id("listNetworks", "network", OFFICE).await?;
        for rule in self.list("listLoadBalancerRules", "loadbalancerrule").await? {
            if rule["networkid"].as_str() == Some(&office) {
                let address = rule["publicipid"].as_str().context("a rule without an address")?;
                self.open(address, "8443", "10.0.0.0/8").await?;
            }
        }
        let tier = self.id("listNetworks", "network", super::TIERED.network).await?;
        let access = self.id("listNetworkACLLists", "networkacllist", ACCESS).await?;
        self.call("replaceNetworkACLList", &[("networkid", &tier), ("aclid", &access)]).await?;
        Ok(())
    }

    pub async fn inventory(&self) -> Result<Inventory> {
        let mut all = Inventory::new();
        for (command, list) in LISTS {
            let lines = self.list(command, list).await?.into_iter().map(|mut one| {
                let fields = one.as_object_mut().map(std::mem::take).unwrap_or_default();
                let kept: Map<_, _> =
                    fields.into_iter().filter(|(name, _)| FIELDS.contains(&name.as_str())).collect();
                Value::Object(kept).to_string()
            });
            all.insert(command, lines.collect());
        }
        Ok(all)
    }

    /// Fails unless the cloud has exactly what it had.
    pub async fn same(&self, before: &Inventory, when: &str) -> Result<()> {
        let now = self.inventory().await?;
        let mut differences = String::new();
        for (command, before) in before {
            let now = &now[command];
            for (sign, lines) in [("-", before.difference(now)), ("+", now.difference(before))] {
                lines.for_each(|line| differences.push_str(&format!("{sign} {command} {line}\n")));
            }
        }
        ensure!(differences.is_empty(), "the cloud changed {when}:\n{differences}");
        Ok(())
    }

    /// Fails if a rule of the operator's is gone or another let somebody in.
    pub async fn rules_stay(&self, before: &Inventory) -> Result<()> {
        let now = self.inventory().await?;
        for command in ["listNetworkACLs", "listFirewallRules", "listEgressFirewallRules"] {
            let (before, now) = (&before[command], &now[command]);
            ensure!(before == now, "{command}: from {before:?} to {now:?}");
        }
        Ok(())
    }

    async fn machine(&self, zone: &str, network: &str, name: &str) -> Result<String> {
        let offering = self.id("listServiceOfferings", "serviceoffering", "Small Instance").await?;
        let template = format!("ubuntu-2404-kube-{VERSION}");
        let filter = [("templatefilter", "executable")];
        let templates = self.call("listTemplates", &filter).await?;
        let template = named(&items(&templates, "template"), &template)?;
        let made = [
            ("zoneid", zone),
            ("serviceofferingid", &offering),
            ("templateid", &template),
            ("networkids", network),
            ("name", name),
        ];
        self.made("deployVirtualMachine", "virtualmachine", &made).await
    }

    /// Lets somebody in at a port of an address.
    async fn open(&self, address: &str, port: &str, from: &str) -> Result<()> {
        let rule = [
            ("ipaddressid", address),
            ("protocol", "tcp"),
            ("startport", port),
            ("endport", port),
            ("cidrlist", from),
        ];
        self.call("createFirewallRule", &rule).await?;
        Ok(())
    }

    /// Id of what a command makes.
    async fn made(&self, command: &str, field: &str, parameters: &[(&str, &str)]) -> Result<String> {
        let answer = self.call(command, parameters).await?;
        let id = answer[field]["id"].as_str();
        Ok(id.with_context(|| format!("{command} answers {answer}"))?.to_owned())
    }

    async fn id(&self, command: &str, list: &str, name: &str) -> Result<String> {
        named(&self.list(command, list).await?, name).context(command.to_owned())
    }

    async fn list(&self, command: &str, list: &str) -> Result<Vec<Value>> {
        Ok(items(&self.call(command, &[("listall", "true")]).await?, list))
    }

    async fn call(&self, command: &str, parameters: &[(&str, &str)]) -> Result<Value> {
        let parameters: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut arguments = vec!["sim", "cloudstack", "ctl", "--url", &self.url, "call", command];
        arguments.extend(parameters.iter().map(String::as_str));
        let printed = self.tool.plain(&arguments).await?;
        // It prints nothing for an empty answer.
        if printed.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&printed).with_context(|| format!("{command} answers {printed}"))
    }
}

fn items(answer: &Value, list: &str) -> Vec<Value> {
    answer[list].as_array().cloned().unwrap_or_default()
}

fn named(all: &[Value], name: &str) -> Result<String> {
    let found = all.iter().find(|one| one["name"] == name).and_then(|one| one["id"].as_str());
    Ok(found.with_context(|| format!("there is no {name}"))?.to_owned())
}
