//! Our client with three members of real etcd.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use capstan_etcd::{AlarmKind, Client, Error, Member, Status};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;

use super::{Etcdctl, tls};
use crate::bed::pki::Pki;
use crate::bed::ports::free_port;
use crate::bed::process::{Process, Program};
use crate::bed::wait::until;

/// Storage quota of a member in bytes: two values of a megabyte exceed it.
const QUOTA: usize = 1_500_000;
const TIMEOUT: Duration = Duration::from_secs(60);

struct Cluster {
    members: Vec<RealMember>,
    pki: Pki,
}

struct RealMember {
    name: String,
    port: u16,
    process: Process,
}

impl Cluster {
    fn start(etcd: &Path, pki: &Pki, folder: &Path) -> Result<Self> {
        let names = ["a", "b", "c"];
        let mut ports = Vec::new();
        for _ in names {
            ports.push((free_port()?, free_port()?));
        }
        let peer = |port: u16| format!("http://127.0.0.1:{port}");
        let all: Vec<_> =
            names.iter().zip(&ports).map(|(name, (_, port))| format!("{name}={}", peer(*port))).collect();
        let file = |name: &str| pki.path(name).display().to_string();
        let mut members = Vec::new();
        for (name, (client, peers)) in names.iter().zip(&ports) {
            let url = format!("https://127.0.0.1:{client}");
            let process = Program::new(&format!("etcd-{name}"), etcd)
                .arg(format!("--name={name}"))
                .arg(format!("--data-dir={}", folder.join(name).display()))
                .args(["listen-client", "advertise-client"].map(|flag| format!("--{flag}-urls={url}")))
                .args(
                    ["listen-peer", "initial-advertise-peer"]
                        .map(|flag| format!("--{flag}-urls={}", peer(*peers))),
                )
                .arg(format!("--initial-cluster={}", all.join(",")))
                .arg(format!("--cert-file={}", file("server.crt")))
                .arg(format!("--key-file={}", file("server.key")))
                .arg(format!("--trusted-ca-file={}", file("ca.crt")))
                .arg(format!("--quota-backend-bytes={QUOTA}"))
                .args(["--client-cert-auth", "--enable-grpc-gateway=false", "--log-level=warn"])
                .start(folder)?;
            members.push(RealMember { name: (*name).to_owned(), port: *client, process });
        }
        Ok(Self { members, pki: pki.clone() })
    }

    fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| format!("https://127.0.0.1:{}", member.port)).collect()
    }

    async fn client(&self, at: usize) -> Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", self.members[at].port)).await?;
        let name = ServerName::try_from("127.0.0.1")?;
        Ok(Client::connect(stream, Some((tls::client(&self.pki, true)?, name))).await?)
    }

    async fn status(&self, at: usize) -> Result<Status> {
        Ok(self.client(at).await?.status().await?)
    }

    /// Index of the member that the others report as leader.
    async fn leader(&self) -> Result<Option<usize>> {
        let mut statuses = Vec::new();
        for at in 0..self.members.len() {
            statuses.push(self.status(at).await?);
        }
        let leader = statuses[0].leader;
        let agreed = leader != 0 && statuses.iter().all(|status| status.leader == leader);
        Ok(statuses.iter().position(|status| agreed && status.member_id == leader))
    }
}

pub async fn run(etcd: &Path, etcdctl: &Etcdctl, pki: &Pki, folder: &Path) -> Result<()> {
    let mut cluster = Cluster::start(etcd, pki, folder)?;
    let leader = until("a leader of etcd", TIMEOUT, || cluster.leader()).await?;
    for member in &mut cluster.members {
        member.process.check()?;
    }
    let endpoints = cluster.endpoints();

    let members = cluster.client(0).await?.members().await?;
    let listed = etcdctl.json(&endpoints[..1], &["member", "list"]).await?;
    same_members(&members, &listed["members"])?;
    let names: Vec<_> = cluster.members.iter().map(|member| member.name.as_str()).collect();
    let mut found: Vec<_> = members.iter().map(|member| member.name.as_str()).collect();
    found.sort_unstable();
    ensure!(found == names, "members are {found:?}");
    println!("members: the same three as etcdctl lists");

    let reported = etcdctl.json(&endpoints, &["endpoint", "status"]).await?;
    for (at, member) in cluster.members.iter().enumerate() {
        let reported = reported[at]["Status"].clone();
        let ours = cluster.status(at).await?;
        same_status(&ours, &reported).with_context(|| format!("status of {}", member.name))?;
    }
    println!("status: the same for each as etcdctl reports");

    anonymous_client_is_refused(&cluster).await?;
    alarms(&cluster, etcdctl, &endpoints).await?;
    let leader = move_leader(&cluster, &members, leader).await?;
    remove(&mut cluster, etcdctl, leader).await
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn same_members(ours: &[Member], theirs: &Value) -> Result<()> {
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().filter_map(Value::as_str).map(String::from).collect()
    };
    let theirs: Vec<Member> = theirs
        .as_array()
        .context("no members")?
        .iter()
        .map(|member| Member {
            id: number(&member["ID"]),
            name: member["name"].as_str().unwrap_or_default().to_owned(),
            peer_urls: texts(&member["peerURLs"]),
            client_urls: texts(&member["clientURLs"]),
            is_learner: member["isLearner"] == true,
        })
        .collect();
    ensure!(ours == theirs, "we read {ours:?}, etcdctl {theirs:?}");
    Ok(())
}

fn same_status(ours: &Status, theirs: &Value) -> Result<()> {
    let header = &theirs["header"];
    let expected = Status {
        member_id: number(&header["member_id"]),
        cluster_id: number(&header["cluster_id"]),
        leader: number(&theirs["leader"]),
        version: theirs["version"].as_str().unwrap_or_default().to_owned(),
        db_size: theirs["dbSize"].as_i64().unwrap_or(0),
        raft_index: number(&theirs["raftIndex"]),
        raft_term: number(&theirs["raftTerm"]),
        raft_applied_index: number(&theirs["raftAppliedIndex"]),
        is_learner: theirs["isLearner"] == true,
        errors: Vec::new(),
    };
    // etcd also writes on its own between the two requests.
    let settled = Status {
        db_size: expected.db_size,
        raft_index: ours.raft_index.min(expected.raft_index),
        raft_applied_index: ours.raft_applied_index.min(expected.raft_applied_index),
        ..ours.clone()
    };
    ensure!(settled == expected, "we read {ours:?}, etcdctl {expected:?}");
    ensure!(ours.db_size > 0 && ours.raft_index > 0, "nothing is stored: {ours:?}");
    Ok(())
}

/// A client without a certificate is rejected.
async fn anonymous_client_is_refused(cluster: &Cluster) -> Result<()> {
    let stream = TcpStream::connect(("127.0.0.1", cluster.members[0].port)).await?;
    let name = ServerName::try_from("127.0.0.1")?;
    let asked = async {
        let mut client = Client::connect(stream, Some((tls::client(&cluster.pki, false)?, name))).await?;
        anyhow::Ok(client.status().await?)
    };
    match asked.await {
        Ok(status) => bail!("a client without a certificate got {status:?}"),
        Err(error) => println!("nobody: {error:#}"),
    }
    Ok(())
}

async fn alarms(cluster: &Cluster, etcdctl: &Etcdctl, endpoints: &[String]) -> Result<()> {
    let mut client = cluster.client(0).await?;
    ensure!(client.alarms().await?.is_empty(), "an alarm right after the start");
    let value = "x".repeat(1_000_000 / 8);
    let mut full = None;
    for round in 0..64 {
        // A single argument may have 128 KiB.
        if let Err(error) = etcdctl.run(&endpoints[..1], &["put", &format!("key-{round}"), &value]).await {
            full = Some(error.to_string());
            break;
        }
    }
    let full = full.context("etcd never ran out of space")?;
    ensure!(full.contains("database space exceeded"), "etcdctl complained of {full}");
    let alarms = until("an alarm", TIMEOUT, || async {
        let alarms = cluster.client(0).await?.alarms().await?;
        Ok(Some(alarms).filter(|alarms| !alarms.is_empty()))
    })
    .await?;
    ensure!(alarms.iter().all(|alarm| alarm.kind == AlarmKind::NoSpace), "{alarms:?}");
    let printed = etcdctl.run(&endpoints[..1], &["alarm", "list"]).await?;
    for alarm in &alarms {
        let line = format!("memberID:{} alarm:NOSPACE", alarm.member_id);
        ensure!(printed.contains(&line), "{line} is not in {printed}");
    }
    let status = cluster.status(0).await?;
    ensure!(status.errors.iter().any(|error| error.contains("NOSPACE")), "{:?}", status.errors);
    etcdctl.run(&endpoints[..1], &["alarm", "disarm"]).await?;
    ensure!(client.alarms().await?.is_empty(), "alarms are left");
    println!("alarms: {} reported and disarmed", alarms.len());
    Ok(())
}

async fn move_leader(cluster: &Cluster, members: &[Member], leader: usize) -> Result<usize> {
    let next = (leader + 1) % cluster.members.len();
    let id = |at: usize| members.iter().find(|m| m.name == cluster.members[at].name).map_or(0, |m| m.id);
    let refused = cluster.client(next).await?.move_leader(id(next)).await;
    ensure!(matches!(refused, Err(Error::NotLeader)), "a follower answered {refused:?}");
    let refused = cluster.client(leader).await?.move_leader(12_345).await;
    ensure!(
        matches!(refused, Err(Error::BadLeaderTransferee)),
        "an unknown member became leader: {refused:?}"
    );
    cluster.client(leader).await?.move_leader(id(next)).await?;
    let leads = until("another leader", TIMEOUT, || cluster.leader()).await?;
    ensure!(leads == next, "{} leads", cluster.members[leads].name);
    println!("move-leader: from {} to {}", cluster.members[leader].name, cluster.members[next].name);
    Ok(next)
}

async fn remove(cluster: &mut Cluster, etcdctl: &Etcdctl, leader: usize) -> Result<()> {
    let mut client = cluster.client(leader).await?;
    let refused = client.remove_member(12_345).await;
    ensure!(matches!(refused, Err(Error::MemberNotFound)), "an unknown member was removed: {refused:?}");
    let follower = (leader + 1) % cluster.members.len();
    let id = cluster.status(follower).await?.member_id;
    // etcd rejects the removal of members for some seconds until all of them are connected.
    until("the removal of a member", TIMEOUT, || async {
        match cluster.client(leader).await?.remove_member(id).await {
            Ok(()) | Err(Error::MemberNotFound) => Ok(Some(())),
            Err(error) => Err(error.into()),
        }
    })
    .await?;
    let left = client.members().await?;
    let endpoints = cluster.endpoints();
    let listed = etcdctl.json(&endpoints[leader..=leader], &["member", "list"]).await?;
    same_members(&left, &listed["members"])?;
    ensure!(left.len() == 2 && left.iter().all(|member| member.id != id), "left are {left:?}");
    println!("remove: {} is out, etcdctl agrees", cluster.members[follower].name);

    let last = (leader + 2) % cluster.members.len();
    let id = cluster.status(last).await?.member_id;
    cluster.members[last].process.kill()?;
    let mut client = client.with_deadline(Duration::from_secs(20));
    // One of two members is dead: there is no quorum.
    let refused = client.remove_member(id).await;
    ensure!(refused.is_err(), "a cluster without a quorum lost a member");
    let silent = client.members().await;
    ensure!(silent.is_err(), "a cluster without a quorum agreed on {silent:?}");
    println!("no quorum: {:?}, {:?}", refused.err(), silent.err());
    Ok(())
}
