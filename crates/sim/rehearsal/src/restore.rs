//! Guests for existing clusters: the recorded machines and control planes run in the copy.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_kubeadm::certificates::Purpose;
use capstan_capi_types::core::machine::condition;
use capstan_capi_types::core::{Cluster, Machine, MachineAddressType, label};
use capstan_controller::KindName;
use capstan_guest::vm::{Image, VmSpec};
use capstan_guest::{RecordedCluster, RecordedMachine, Site};
use capstan_object::{Conditions as _, Key, Object};
use serde_json::{Value, json};

use crate::fork::Records;

/// Tag of machines: uid of the infrastructure object.
pub(crate) const OBJECT_TAG: &str = "object";

/// Default machine size.
pub(crate) const CPUS: u32 = 2;
pub(crate) const MEMORY_MIB: u64 = 4096;

/// Name of the load balancer of a cluster.
pub(crate) fn balancer(cluster: &Key) -> String {
    format!("{}/{}", cluster.namespace, cluster.name)
}

/// Gives a cluster its recorded endpoint; a host name that is not an address gets one.
pub(crate) fn keep_endpoint(site: &Site, cluster: &Key, host: &str, port: i32) -> SocketAddrV4 {
    let name = balancer(cluster);
    let port = u16::try_from(port).ok().filter(|port| *port > 0).unwrap_or(6443);
    let address = match host.parse::<Ipv4Addr>() {
        Ok(address) => address,
        Err(_) => {
            let address = *site.endpoint(&format!("{name} {host}")).ip();
            site.name_host(host, address);
            address
        }
    };
    let endpoint = SocketAddrV4::new(address, port);
    site.keep_endpoint(&name, endpoint);
    endpoint
}

/// Restores every recorded cluster with an initialized control plane.
pub(crate) async fn restore(site: &Site, records: &Records) -> Result<(), String> {
    for cluster in records.of::<Cluster>() {
        if cluster.status.initialization.control_plane_initialized != Some(true) {
            continue;
        }
        let (machines, network) = machines(&cluster, records);
        if !machines.iter().any(|machine| machine.control_plane) {
            continue;
        }
        let name = cluster.key();
        let endpoint = &cluster.spec.control_plane_endpoint;
        keep_endpoint(site, &name, &endpoint.host, endpoint.port);
        let recorded = RecordedCluster {
            pki: pki(&name, records)?,
            configuration: configuration(&cluster, records),
            machines,
            network,
        };
        site.restore(recorded).await.map_err(|error| format!("cluster {name} cannot be copied: {error}"))?;
    }
    Ok(())
}

/// The CAs of a cluster, from its Secrets.
fn pki(cluster: &Key, records: &Records) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    for (purpose, path, public) in [
        (Purpose::ClusterCa, "ca", "crt"),
        (Purpose::EtcdCa, "etcd/ca", "crt"),
        (Purpose::FrontProxyCa, "front-proxy-ca", "crt"),
        (Purpose::ServiceAccount, "sa", "pub"),
    ] {
        let name = purpose.secret_name(&cluster.name);
        let secret = records.get("", "Secret", &Key::new(&cluster.namespace, &name));
        for (key, end) in [("tls.crt", public), ("tls.key", "key")] {
            let text = secret.and_then(|secret| secret["data"][key].as_str());
            let bytes = text.and_then(|text| STANDARD.decode(text).ok()).filter(|bytes| !bytes.is_empty());
            let bytes = bytes.ok_or_else(|| {
                format!("cluster {cluster} cannot be copied: Secret {name} has no {key}, or may not be read")
            })?;
            files.insert(format!("{path}.{end}"), bytes);
        }
    }
    Ok(files)
}

/// The `ClusterConfiguration` as kubeadm would have written it.
fn configuration(cluster: &Cluster, records: &Records) -> Value {
    let reference = &cluster.spec.control_plane_ref;
    let key = Key::new(&cluster.metadata.namespace, &reference.name);
    let control_plane = records.get(&reference.api_group, &reference.kind, &key).cloned().unwrap_or_default();
    let mut configuration = control_plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"].clone();
    if !configuration.is_object() {
        configuration = json!({});
    }
    let version = [&control_plane["status"]["version"], &control_plane["spec"]["version"]]
        .into_iter()
        .find_map(Value::as_str);
    let network = &cluster.spec.cluster_network;
    let endpoint = &cluster.spec.control_plane_endpoint;
    let domain = Some(network.service_domain.as_str()).filter(|domain| !domain.is_empty());
    configuration["apiVersion"] = "kubeadm.k8s.io/v1beta4".into();
    configuration["kind"] = "ClusterConfiguration".into();
    configuration["clusterName"] = cluster.metadata.name.as_str().into();
    configuration["controlPlaneEndpoint"] = format!("{}:{}", endpoint.host, endpoint.port).into();
    configuration["kubernetesVersion"] = version.unwrap_or_default().into();
    configuration["networking"] = json!({
        "dnsDomain": domain.unwrap_or("cluster.local"),
        "podSubnet": network.pods.cidr_blocks.join(","),
        "serviceSubnet": network.services.cidr_blocks.join(","),
    });
    configuration
}

/// The existing machines of a cluster as nodes, and whether any is ready: then the cluster has a CNI.
fn machines(cluster: &Cluster, records: &Records) -> (Vec<RecordedMachine>, bool) {
    let mine = |machine: &Machine| {
        machine.metadata.namespace == cluster.metadata.namespace
            && machine.spec.cluster_name == cluster.metadata.name
            && !machine.spec.provider_id.is_empty()
    };
    let all: Vec<Machine> = records.of::<Machine>().into_iter().filter(mine).collect();
    let ready = |machine: &Machine| machine.status.conditions.is_condition_true(condition::NODE_READY);
    let any_ready = all.iter().any(&ready);
    let mut machines: Vec<&Machine> = all.iter().collect();
    // The oldest machine has initialized the cluster.
    machines.sort_by_key(|machine| (machine.metadata.creation_timestamp, machine.metadata.name.clone()));
    let recorded = machines
        .into_iter()
        .filter_map(|machine| {
            let reference = &machine.spec.infrastructure_ref;
            let key = Key::new(&machine.metadata.namespace, &reference.name);
            let object = records.get(&reference.api_group, &reference.kind, &key)?;
            let joined = !machine.status.node_ref.name.is_empty();
            let node = if joined { &machine.status.node_ref.name } else { &machine.metadata.name };
            Some(RecordedMachine {
                vm: vm(machine, object),
                node: node.clone(),
                control_plane: machine.metadata.labels.contains_key(label::CONTROL_PLANE),
                // A machine that has not joined yet joins at once: a boot in progress is not repeated.
                ready: !joined || !any_ready || ready(machine),
            })
        })
        .collect();
    (recorded, any_ready)
}

fn vm(machine: &Machine, object: &Value) -> VmSpec {
    let of = |wanted| {
        let addresses = machine.status.addresses.iter();
        addresses.filter(move |one| one.kind == Some(wanted)).find_map(|one| one.address.parse().ok())
    };
    let version = machine.status.node_info.as_ref().map(|info| info.kubelet_version.clone());
    let version =
        version.filter(|version| !version.is_empty()).unwrap_or_else(|| machine.spec.version.clone());
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    VmSpec {
        id: uid.to_owned(),
        name: machine.metadata.name.clone(),
        user_data: Vec::new(),
        image: Image { kubernetes: Some(version) },
        address: of(MachineAddressType::InternalIP).or_else(|| of(MachineAddressType::ExternalIP)),
        provider_id: Some(machine.spec.provider_id.clone()),
        cpus: CPUS,
        memory_mib: MEMORY_MIB,
        tags: BTreeMap::from([(OBJECT_TAG.to_owned(), uid.to_owned())]),
        faults: Vec::new(),
    }
}

impl Records {
    fn of<T: Object>(&self) -> Vec<T> {
        let kind = KindName::of::<T>();
        let of_kind = self.0.iter().filter(|(held, _)| held.kind == kind.kind && held.group == kind.group);
        of_kind.filter_map(|(_, object)| serde_json::from_value(object.clone()).ok()).collect()
    }

    fn get(&self, group: &str, kind: &str, key: &Key) -> Option<&Value> {
        let found = self.0.iter().find(|(held, object)| {
            let meta = &object["metadata"];
            held.group == group
                && held.kind == kind
                && meta["name"] == key.name.as_str()
                && meta["namespace"] == key.namespace.as_str()
        });
        found.map(|(_, object)| object)
    }
}
