//! Machines as a cloud sees them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A machine to create.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VmSpec {
    /// The cloud's id; never reused.
    pub id: String,
    /// Host name.
    pub name: String,
    /// Cloud-config or Ignition, as text or gzip.
    #[serde(serialize_with = "encode", deserialize_with = "decode")]
    pub user_data: Vec<u8>,
    pub image: Image,
    /// Address in the cloud's network; `None` lets the site choose.
    pub address: Option<Ipv4Addr>,
    /// Provider id that the kubelet reports, such as `sim://1234`; templates in the user data may use it too.
    pub provider_id: Option<String>,
    pub cpus: u32,
    pub memory_mib: u64,
    /// Tags set by the user of the cloud, such as an ownership mark.
    pub tags: BTreeMap<String, String>,
    #[serde(default)]
    pub faults: Vec<GuestFault>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Kubernetes version on it, such as `v1.36.0`; `None` if the image has no kubeadm.
    pub kubernetes: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GuestFault {
    /// It boots this much slower.
    SlowBoot(Duration),
    /// It never gets past its firmware.
    NeverBoots,
    /// Its disk is full when files are written.
    DiskFull,
    /// It boots but cannot reach the network.
    NoNetwork,
    /// Its kubelet stops this long after joining.
    KubeletDies(Duration),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// Booting or executing its user data.
    Booting,
    /// Its user data succeeded; the machine runs.
    Booted,
    /// Its user data failed; the machine runs but is not a node. Contains the console line with the failure.
    Failed(String),
    Off,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vm {
    pub id: String,
    pub name: String,
    pub address: Ipv4Addr,
    pub phase: Phase,
    /// Name of its Node once it has joined.
    pub node: Option<String>,
    /// Tags set when it was created.
    pub tags: BTreeMap<String, String>,
}

fn encode<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}

fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64.decode(text).map_err(|_| serde::de::Error::custom("not base64"))
}
