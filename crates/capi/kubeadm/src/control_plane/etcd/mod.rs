//! A client of the control plane's etcd, through port-forwarding to its Pods.
//!
//! Requests go to the first member that answers, with a client certificate signed by the cluster's etcd CA. The
//! server certificate must be signed by the same CA; its name is not checked, because the API server selects the
//! Pod by name.

mod credentials;
#[cfg(test)]
mod tests;
mod tls;

use std::time::Duration;

use capstan_controller::{Workloads, off_worker};
use capstan_etcd::{AlarmKind, Client};
use capstan_object::Key;
use rustls::pki_types::ServerName;

use super::installed::{NAMESPACE, pod_name};
use super::observed::{EtcdMember, EtcdState};

pub(super) use credentials::{ClientCertificates, etcd_credentials};
pub(super) use tls::Credentials;

const PORT: u16 = 2379;
/// Per request; a member that does not answer in time is skipped.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Etcd<'a> {
    pub workloads: &'a dyn Workloads,
    pub cluster: &'a Key,
    pub credentials: Credentials,
}

impl Etcd<'_> {
    async fn connect(&self, node: &str) -> Result<Client, String> {
        let pod = Key::new(NAMESPACE, pod_name("etcd", node));
        let forwarded = self.workloads.port_forward(self.cluster, &pod, PORT).await;
        let stream = forwarded.map_err(|error| error.to_string())?;
        // The server name that Cluster API's client uses: in-memory servers select the certificate by it.
        let name = ServerName::try_from(pod.name.clone()).or_else(|_| ServerName::try_from("localhost"));
        let name = name.map_err(|error| error.to_string())?;
        let client = Client::connect(stream, Some((self.credentials.tls.clone(), name))).await;
        Ok(client.map_err(|error| error_chain(&error))?.with_deadline(TIMEOUT))
    }

    /// Connects to the first member that answers; also returns the id of the leader.
    async fn first(&self, nodes: &[String]) -> Result<(Client, u64), String> {
        let mut last = "there is no node to ask".to_owned();
        for node in nodes {
            let tried = async {
                let mut client = self.connect(node).await?;
                let leader = client.status().await.map_err(|error| error_chain(&error))?.leader;
                if leader == 0 { Err("etcd has no leader".to_owned()) } else { Ok((client, leader)) }
            };
            match off_worker(tried).await {
                Ok(answered) => return Ok(answered),
                Err(why) => last = format!("etcd-{node}: {why}"),
            }
        }
        Err(last)
    }

    /// Reads members, leader and alarms.
    pub async fn look(&self, nodes: &[String]) -> Result<EtcdState, String> {
        let (mut client, leader) =
            self.first(nodes).await.map_err(|why| format!("Failed to connect to etcd: {why}"))?;
        let members = client.members().await;
        let members =
            members.map_err(|error| format!("Failed to get etcd members: {}", error_chain(&error)))?;
        let alarms = client.alarms().await;
        let alarms = alarms.map_err(|error| format!("Failed to get etcd alarms: {}", error_chain(&error)))?;
        let leads = members.iter().find(|member| member.id == leader);
        let Some(leader) = leads.map(|member| member.name.clone()) else {
            return Err("Failed to get etcd leader: it is none of the members".to_owned());
        };
        let mut members: Vec<EtcdMember> = members
            .into_iter()
            .map(|member| EtcdMember {
                id: member.id,
                name: member.name,
                learner: member.is_learner,
                alarms: alarms
                    .iter()
                    .filter(|alarm| alarm.member_id == member.id)
                    .map(|alarm| word(alarm.kind))
                    .collect(),
            })
            .collect();
        members.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Ok(EtcdState::Members { members, leader })
    }

    /// Removes a member; succeeds if it is already gone. The linearizable member list comes first, so nothing is removed
    /// without quorum.
    pub async fn remove(&self, id: u64, nodes: &[String]) -> Result<(), String> {
        let (mut client, _) = self.first(nodes).await?;
        let members = client.members().await.map_err(|error| error_chain(&error))?;
        if !members.iter().any(|member| member.id == id) {
            return Ok(());
        }
        if members.len() == 1 {
            return Err("the last member of etcd is not removed".to_owned());
        }
        match client.remove_member(id).await {
            Ok(()) | Err(capstan_etcd::Error::MemberNotFound) => Ok(()),
            Err(error) => Err(error_chain(&error)),
        }
    }

    /// Whether the member exists, by a linearizable read.
    pub async fn has(&self, id: u64, nodes: &[String]) -> Result<bool, String> {
        let (mut client, _) = self.first(nodes).await?;
        let members = client.members().await.map_err(|error| error_chain(&error))?;
        Ok(members.iter().any(|member| member.id == id))
    }

    /// Moves leadership; does nothing if `from` does not lead.
    pub async fn move_leader(&self, from: &str, to: &str) -> Result<(), String> {
        let (mut client, leader) = self.first(&[from.to_owned()]).await?;
        let members = client.members().await.map_err(|error| error_chain(&error))?;
        let id_of = |name: &str| members.iter().find(|member| member.name == name).map(|member| member.id);
        if id_of(from) != Some(leader) {
            return Ok(());
        }
        let to = id_of(to).ok_or_else(|| format!("etcd has no member {to}"))?;
        client.move_leader(to).await.map_err(|error| error_chain(&error))
    }
}

fn word(kind: AlarmKind) -> String {
    match kind {
        AlarmKind::NoSpace => "NOSPACE".to_owned(),
        AlarmKind::Corrupt => "CORRUPT".to_owned(),
        AlarmKind::Other(number) => format!("alarm {number}"),
    }
}

fn error_chain(error: &capstan_etcd::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
