//! Machines as a cloud sees them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a cloud says about a machine that it wants.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VmSpec {
    /// The cloud's id; unique for ever.
    pub id: String,
    /// Host name.
    pub name: String,
    /// Cloud-config or Ignition, as text or gzip.
    #[serde(serialize_with = "encode", deserialize_with = "decode")]
    pub user_data: Vec<u8>,
    /// What it boots from.
    pub image: Image,
    /// Address in the cloud's network; chosen by the site if none is given.
    pub address: Option<Ipv4Addr>,
    /// Identity that the kubelet reports, such as `sim://1234`; templates in the user data may say the same.
    pub provider_id: Option<String>,
    /// Cores.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// What the cloud's user wrote on it, such as whose machine it is.
    pub tags: BTreeMap<String, String>,
    /// What goes wrong with it.
    #[serde(default)]
    pub faults: Vec<GuestFault>,
}

/// A disk image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Kubernetes on it, such as `v1.36.0`; none if the image has no kubeadm.
    pub kubernetes: Option<String>,
}

/// What goes wrong in a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GuestFault {
    /// It takes this much longer to boot.
    SlowBoot(Duration),
    /// It never gets past its firmware.
    NeverBoots,
    /// Its disk is full when files are written.
    DiskFull,
    /// It boots but cannot reach the network.
    NoNetwork,
    /// Its kubelet stops this long after it joined.
    KubeletDies(Duration),
}

/// How far a machine is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// It boots and executes its user data.
    Booting,
    /// Its user data is done, and the machine runs.
    Booted,
    /// Its user data failed; the machine runs without being a node. The line of the console that says why.
    Failed(String),
    /// It is switched off.
    Off,
}

/// A machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vm {
    /// The cloud's id.
    pub id: String,
    /// Host name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// How far it is.
    pub phase: Phase,
    /// Name of its Node once it has joined.
    pub node: Option<String>,
    /// What the cloud's user wrote on it when it was made.
    pub tags: BTreeMap<String, String>,
}

fn encode<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}

fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64.decode(text).map_err(|_| serde::de::Error::custom("not base64"))
}
