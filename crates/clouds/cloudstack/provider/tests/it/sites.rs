//! Networks that are there before a cluster comes, and manifests that name them.

use capstan_cloudstack_client::NetworkId;
use capstan_cloudstack_client::commands::{
    AssociateIpAddress, CreateNetwork, CreateVpc, ListNetworkAclLists, ListNetworkOfferings,
    ListVpcOfferings, ListZones, Owner,
};
use capstan_cloudstack_client::model::Vpc;
use capstan_harness::{Violation, World};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::NAME;
use crate::story::{CheckResult, failed};

/// The VPC that manifests name.
pub const VPC: &str = "clouds";
/// A network of the tenant's beside that of the cluster.
pub const STORAGE: &str = "storage";
/// An address of the shared network that no machine gets.
pub const SHARED_ADDRESS: &str = "10.99.0.250";

fn missing() -> Violation {
    Violation::new("site", "the cloud lacks a zone or an offering")
}

/// The range of a network, and the VPC with an access list that it is a tier of.
#[derive(Default)]
pub struct Range<'a> {
    pub gateway: Option<&'a str>,
    pub tier_of: Option<&'a Vpc>,
}

/// Somebody makes a network of an offering.
pub async fn network(
    cloud: &Cloud,
    account: &str,
    (name, offering): (&str, &str),
    range: Range<'_>,
) -> Result<NetworkId, Violation> {
    let client = cloud.client(account);
    let zones = client.list(&ListZones::default()).await.map_err(failed)?;
    let zone = zones.into_iter().find(|zone| zone.name == "zone-1").ok_or_else(missing)?;
    let question = ListNetworkOfferings { name: Some(offering.to_owned()), ..Default::default() };
    let offerings = client.list(&question).await.map_err(failed)?;
    let offering = offerings.into_iter().find(|known| known.name == offering).ok_or_else(missing)?;
    let aclid = match range.tier_of {
        Some(_) => {
            let question =
                ListNetworkAclLists { name: Some("default_allow".to_owned()), ..Default::default() };
            client.list(&question).await.map_err(failed)?.first().map(|acl| acl.id.clone())
        }
        None => None,
    };
    let request = CreateNetwork {
        name: name.to_owned(),
        displaytext: None,
        networkofferingid: offering.id,
        zoneid: zone.id,
        gateway: range.gateway.and_then(|gateway| gateway.parse().ok()),
        netmask: range.gateway.map(|_| "255.255.255.0".to_owned()),
        cidrsize: None,
        vpcid: range.tier_of.map(|vpc| vpc.id.clone()),
        aclid,
        owner: Owner::default(),
    };
    Ok(client.call(&request).await.map_err(failed)?.id)
}

/// Somebody's isolated network with the name that the manifest gives.
pub async fn isolated_network(cloud: &Cloud) -> Result<NetworkId, Violation> {
    let kind = (NAME, "DefaultIsolatedNetworkOfferingWithSourceNatService");
    network(cloud, "capstan", kind, Range::default()).await
}

/// An isolated network with an address that the tenant had before, which becomes the endpoint.
pub fn a_network_with_an_address<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let networkid = Some(isolated_network(cloud).await?);
        // The first is the one that machines are seen with.
        for _ in 0..2 {
            let request = AssociateIpAddress { networkid: networkid.clone(), ..Default::default() };
            let address = cloud.client("capstan").run(&request).await.map_err(failed)?;
            cloud.set_endpoint(address.ipaddress);
        }
        cloud.simulator.forgive();
        Ok(())
    })
}

/// Only some may come in, and machines are kept apart, have a disk and are reached by SSH.
pub fn with_all_features(body: &mut Value) {
    match body["kind"].as_str() {
        Some("CloudStackCluster") => {
            body["metadata"]["annotations"] = json!({
                "capstan.dev/ssh-port-forwarding": "true", "capstan.dev/api-server-cidrs": "0.0.0.0/1,128.0.0.0/1",
            });
        }
        Some("CloudStackMachineTemplate") => {
            body["spec"]["template"]["spec"]["affinity"] = "anti".into();
            body["spec"]["template"]["spec"]["diskOffering"] = json!({
                "name": "Custom", "customSizeInGB": 7,
                "mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data",
            });
        }
        _ => {}
    }
}

/// A network of the tenant's beside that of the cluster.
pub fn a_second_network_is_there<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let kind = (STORAGE, "DefaultIsolatedNetworkOfferingWithSourceNatService");
        let range = Range { gateway: Some("10.50.0.1"), ..Range::default() };
        let networkid = Some(network(cloud, "capstan", kind, range).await?);
        // The one that it would get with its first machine.
        let request = AssociateIpAddress { networkid, ..AssociateIpAddress::default() };
        cloud.client("capstan").run(&request).await.map_err(failed)?;
        cloud.simulator.forgive();
        Ok(())
    })
}

/// A network that the operator made for all tenants.
pub async fn shared_network(cloud: &Cloud) -> Result<(), Violation> {
    let range = Range { gateway: Some("10.99.0.1"), ..Range::default() };
    network(cloud, "admin", ("for-all", "DefaultSharedNetworkOffering"), range).await?;
    cloud.simulator.forgive();
    Ok(())
}

pub fn a_shared_network_is_there<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(shared_network(cloud))
}

/// The endpoint is an address of the shared network that kube-vip answers on.
pub fn with_kube_vip(body: &mut Value) {
    kube_vip(body, SHARED_ADDRESS);
    if body["kind"] == "CloudStackCluster" {
        body["spec"]["failureDomains"][0]["zone"]["network"]["name"] = "for-all".into();
    }
}

/// The endpoint is an address that kube-vip answers on.
pub fn kube_vip(body: &mut Value, address: &str) {
    match body["kind"].as_str() {
        Some("CloudStackCluster") => body["spec"]["controlPlaneEndpoint"]["host"] = address.into(),
        Some("KubeadmControlPlane") => {
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "kube-vip", "namespace": "kube-system"},
                "spec": {"hostNetwork": true, "containers": [{
                    "name": "kube-vip", "image": "kube-vip", "args": ["manager"],
                    "env": [{"name": "address", "value": address}, {"name": "port", "value": "6443"}],
                }]},
            });
            body["spec"]["kubeadmConfigSpec"]["files"] = json!([{
                "path": "/etc/kubernetes/manifests/kube-vip.yaml", "owner": "root:root",
                "permissions": "0644", "content": pod.to_string(),
            }]);
        }
        _ => {}
    }
}

/// The network of the first failure domain is a tier of a VPC that does not exist yet.
pub fn in_a_vpc(body: &mut Value) {
    if body["kind"] == "CloudStackCluster" {
        let network = &mut body["spec"]["failureDomains"][0]["zone"]["network"];
        network["vpc"] = json!({"name": VPC, "cidr": "10.20.0.0/16"});
    }
}

/// Somebody's VPC with a tier of the name that the manifest gives, and a spare address.
pub fn a_tier_is_there<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let tenant = cloud.client("capstan");
        let zones = tenant.list(&ListZones::default()).await.map_err(failed)?;
        let zone = zones.into_iter().find(|zone| zone.name == "zone-1").ok_or_else(missing)?;
        let question =
            ListVpcOfferings { name: Some("Default VPC offering".to_owned()), ..Default::default() };
        let offerings = tenant.list(&question).await.map_err(failed)?;
        let request = CreateVpc {
            name: VPC.to_owned(),
            displaytext: "somebody's".to_owned(),
            cidr: Some("10.30.0.0/16".to_owned()),
            cidrsize: None,
            vpcofferingid: offerings.first().ok_or_else(missing)?.id.clone(),
            zoneid: zone.id,
            start: None,
            owner: Owner::default(),
        };
        let vpc = tenant.run(&request).await.map_err(failed)?;
        let range = Range { gateway: Some("10.30.7.1"), tier_of: Some(&vpc) };
        let kind = (NAME, "DefaultIsolatedNetworkOfferingForVpcNetworks");
        network(cloud, "capstan", kind, range).await?;
        let request = AssociateIpAddress { vpcid: Some(vpc.id), ..Default::default() };
        tenant.run(&request).await.map_err(failed)?;
        cloud.simulator.forgive();
        Ok(())
    })
}
