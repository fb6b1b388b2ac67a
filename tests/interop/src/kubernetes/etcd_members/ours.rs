//! etcdctl with three members of our own server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use capstan_etcd::{Alarm, AlarmKind, Answer, Header, Member, Refusal, Service, Status, serve};
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use tokio::net::TcpListener;

use super::{Etcdctl, tls};
use crate::bed::pki::Pki;

const CLUSTER: u64 = 0xc1;

struct ClusterState {
    members: Vec<Member>,
    leader: u64,
    term: u64,
}

/// One member.
struct Ours {
    id: u64,
    shared: Arc<Mutex<ClusterState>>,
}

impl Ours {
    fn shared(&self) -> MutexGuard<'_, ClusterState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer<T>(&self, content: T) -> Answer<T> {
        let header = Header { cluster_id: CLUSTER, member_id: self.id, raft_term: self.shared().term };
        Answer { header, content }
    }
}

impl Service for Ours {
    fn status(&self) -> BoxFuture<'_, Result<Status, Refusal>> {
        let shared = self.shared();
        let status = Status {
            member_id: self.id,
            cluster_id: CLUSTER,
            leader: shared.leader,
            version: "3.6.5".to_owned(),
            db_size: 20_480,
            raft_index: 12,
            raft_term: shared.term,
            raft_applied_index: 11,
            is_learner: false,
            errors: Vec::new(),
        };
        ready(Ok(status)).boxed()
    }

    fn members(&self, _: bool) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>> {
        let members = self.shared().members.clone();
        ready(Ok(self.answer(members))).boxed()
    }

    fn alarms(&self) -> BoxFuture<'_, Result<Answer<Vec<Alarm>>, Refusal>> {
        ready(Ok(self.answer(vec![Alarm { member_id: 2, kind: AlarmKind::NoSpace }]))).boxed()
    }

    fn remove_member(&self, id: u64) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>> {
        let mut shared = self.shared();
        let before = shared.members.len();
        shared.members.retain(|member| member.id != id);
        let left = shared.members.clone();
        drop(shared);
        let removed =
            if left.len() < before { Ok(self.answer(left)) } else { Err(Refusal::MEMBER_NOT_FOUND) };
        ready(removed).boxed()
    }

    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<Answer<()>, Refusal>> {
        let mut shared = self.shared();
        let moved = match () {
            () if shared.leader != self.id => Err(Refusal::NOT_LEADER),
            () if shared.members.iter().all(|member| member.id != to) => Err(Refusal::BAD_LEADER_TRANSFEREE),
            () => {
                shared.leader = to;
                shared.term += 1;
                Ok(())
            }
        };
        drop(shared);
        ready(moved.map(|()| self.answer(()))).boxed()
    }
}

/// Members of one cluster, with the endpoints of each. The first is the leader.
pub fn cluster(endpoints: &[String]) -> Vec<Arc<dyn Service>> {
    let members = (1..).zip(endpoints).map(|(id, endpoint)| Member {
        id,
        name: format!("m{id}"),
        peer_urls: vec![format!("https://10.0.0.{id}:2380")],
        client_urls: vec![endpoint.clone()],
        is_learner: false,
    });
    let shared = Arc::new(Mutex::new(ClusterState { members: members.collect(), leader: 1, term: 4 }));
    let member = |id| Arc::new(Ours { id, shared: shared.clone() }) as Arc<dyn Service>;
    (1..=endpoints.len() as u64).map(member).collect()
}

/// Starts three members and returns their endpoints.
async fn start(pki: &Pki) -> Result<Vec<String>> {
    let mut listeners = Vec::new();
    for _ in 0..3 {
        listeners.push(TcpListener::bind("127.0.0.1:0").await?);
    }
    let endpoints: Result<Vec<_>> =
        listeners.iter().map(|listener| Ok(format!("https://{}", listener.local_addr()?))).collect();
    let endpoints = endpoints?;
    let tls = tls::server(pki)?;
    for (service, listener) in cluster(&endpoints).into_iter().zip(listeners) {
        let tls = tls.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Some(tls.clone()), service.clone()));
            }
        });
    }
    Ok(endpoints)
}

pub async fn run(etcdctl: &Etcdctl, pki: &Pki) -> Result<()> {
    let endpoints = start(pki).await?;
    let listed = etcdctl.json(&endpoints[..1], &["member", "list"]).await?;
    let names: Vec<_> = (0..3).map(|at| listed["members"][at]["name"].as_str().unwrap_or_default()).collect();
    ensure!(names == ["m1", "m2", "m3"], "etcdctl lists {listed}");
    ensure!(listed["header"]["cluster_id"] == CLUSTER && listed["header"]["raft_term"] == 4, "{listed}");

    let reported = etcdctl.json(&endpoints, &["endpoint", "status"]).await?;
    for (at, endpoint) in endpoints.iter().enumerate() {
        let status = &reported[at]["Status"];
        ensure!(reported[at]["Endpoint"] == endpoint.as_str(), "{reported}");
        ensure!(status["header"]["member_id"] == at + 1 && status["leader"] == 1, "{status}");
        ensure!(status["dbSize"] == 20_480 && status["raftIndex"] == 12, "{status}");
        ensure!(status["raftAppliedIndex"] == 11 && status["version"] == "3.6.5", "{status}");
    }
    let alarms = etcdctl.run(&endpoints[..1], &["alarm", "list"]).await?;
    ensure!(alarms.contains("memberID:2 alarm:NOSPACE"), "etcdctl prints {alarms}");
    println!("etcdctl: member list, endpoint status, alarm list");

    let printed = etcdctl.run(&endpoints, &["move-leader", "2"]).await?;
    ensure!(printed.contains("Leadership transferred from 1 to 2"), "etcdctl prints {printed}");
    let complaint = etcdctl.complaint(&endpoints, &["move-leader", "9"]).await?;
    ensure!(complaint.contains("bad leader transferee"), "etcdctl complains of {complaint}");
    println!("etcdctl: move-leader");

    let printed = etcdctl.run(&endpoints[..1], &["member", "remove", "3"]).await?;
    ensure!(printed.contains("Member                3 removed from cluster"), "etcdctl prints {printed}");
    let complaint = etcdctl.complaint(&endpoints[..1], &["member", "remove", "3"]).await?;
    ensure!(complaint.contains("etcdserver: member not found"), "etcdctl complains of {complaint}");
    let listed = etcdctl.json(&endpoints[..1], &["member", "list"]).await?;
    ensure!(listed["members"].as_array().is_some_and(|members| members.len() == 2), "etcdctl lists {listed}");
    let complaint = etcdctl.complaint(&endpoints[..1], &["put", "a", "b"]).await?;
    ensure!(complaint.contains("unknown method"), "etcdctl complains of {complaint}");
    println!("etcdctl: member remove, and nothing else");
    Ok(())
}
