//! Members of etcd as their clients see them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use capstan_etcd::{Alarm, AlarmKind, Answer, Header, Member, Refusal, Service, Status};
use futures::future::BoxFuture;

use super::GuestCluster;
use super::etcd::{EtcdAlarm, EtcdMember, Refused};
use super::release::Images;
use super::state::State;

/// How long a member waits for a quorum.
const CONSENSUS: Duration = Duration::from_secs(7);
/// Reported database size.
const DATABASE: i64 = 4 << 20;

/// The member on a machine.
pub(super) struct MemberService {
    cluster: Weak<GuestCluster>,
    vm: String,
}

impl MemberService {
    pub(super) fn new(cluster: Weak<GuestCluster>, vm: String) -> Self {
        Self { cluster, vm }
    }

    fn cluster(&self) -> Result<Arc<GuestCluster>, Refusal> {
        self.cluster.upgrade().ok_or(Refusal::STOPPED)
    }

    /// Executes a request that needs a quorum.
    async fn agree<T>(
        &self,
        ask: impl FnOnce(&mut State, &EtcdMember) -> Result<T, Refusal>,
    ) -> Result<Answer<T>, Refusal> {
        let cluster = self.cluster()?;
        let (own, agreed) = {
            let state = cluster.state.lock();
            (own(&state, &self.vm)?, state.has_quorum())
        };
        if own.learner {
            return Err(Refusal::LEARNER);
        }
        if !agreed {
            drop(cluster);
            tokio::time::sleep(CONSENSUS).await;
            return Err(Refusal::TIMED_OUT);
        }
        cluster.change(|state| {
            let content = ask(state, &own)?;
            Ok(Answer { header: header(state, &own), content })
        })
    }
}

fn own(state: &State, vm: &str) -> Result<EtcdMember, Refusal> {
    state.etcd.on(vm).filter(|_| state.runs(vm)).cloned().ok_or(Refusal::STOPPED)
}

fn header(state: &State, own: &EtcdMember) -> Header {
    Header { cluster_id: state.etcd.cluster_id, member_id: own.id, raft_term: state.etcd.term }
}

fn members(state: &State) -> Vec<Member> {
    let to_wire = |member: &EtcdMember| Member {
        id: member.id,
        name: member.name.clone(),
        peer_urls: vec![member.peer_url.clone()],
        client_urls: vec![member.client_url.clone()],
        is_learner: member.learner,
    };
    state.etcd.members().map(to_wire).collect()
}

impl Service for MemberService {
    fn status(&self) -> BoxFuture<'_, Result<Status, Refusal>> {
        Box::pin(async {
            let cluster = self.cluster()?;
            let revision = cluster.plane.store().revision();
            let state = cluster.state.lock();
            let own = own(&state, &self.vm)?;
            let leader = state.etcd.leader();
            let configuration = state.machines.get(&self.vm).and_then(|m| m.control_plane.as_ref());
            let version = configuration.map(|serving| Images::new(&serving.configuration).etcd_version());
            Ok(Status {
                member_id: own.id,
                cluster_id: state.etcd.cluster_id,
                leader: leader.unwrap_or(0),
                version: version.unwrap_or_default(),
                db_size: DATABASE,
                raft_index: revision,
                raft_term: state.etcd.term,
                raft_applied_index: revision,
                is_learner: own.learner,
                errors: leader
                    .is_none()
                    .then(|| Refusal::NO_LEADER.message.into_owned())
                    .into_iter()
                    .collect(),
            })
        })
    }

    fn members(&self, linearizable: bool) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>> {
        Box::pin(async move {
            if linearizable {
                return self.agree(|state, _| Ok(members(state))).await;
            }
            let cluster = self.cluster()?;
            let state = cluster.state.lock();
            let own = own(&state, &self.vm)?;
            Ok(Answer { header: header(&state, &own), content: members(&state) })
        })
    }

    fn alarms(&self) -> BoxFuture<'_, Result<Answer<Vec<Alarm>>, Refusal>> {
        Box::pin(self.agree(|state, _| {
            let to_wire = |(member_id, alarm)| {
                let kind = match alarm {
                    EtcdAlarm::NoSpace => AlarmKind::NoSpace,
                    EtcdAlarm::Corrupt => AlarmKind::Corrupt,
                };
                Alarm { member_id, kind }
            };
            Ok(state.etcd.alarms().map(to_wire).collect())
        }))
    }

    fn remove_member(&self, id: u64) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>> {
        Box::pin(self.agree(move |state, _| {
            let running: Vec<String> = state
                .machines
                .iter()
                .filter(|(_, member)| member.running)
                .map(|(vm, _)| vm.clone())
                .collect();
            let removed = state.etcd.remove(id, |vm| running.iter().any(|running| running == vm));
            removed.map_err(|refused| match refused {
                Refused::NoSuchMember => Refusal::MEMBER_NOT_FOUND,
                Refused::NotEnoughStarted => Refusal::NOT_ENOUGH_STARTED,
                Refused::Unhealthy => Refusal::UNHEALTHY_CLUSTER,
            })?;
            Ok(members(state))
        }))
    }

    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<Answer<()>, Refusal>> {
        Box::pin(self.agree(move |state, own| {
            if state.etcd.leader() != Some(own.id) {
                return Err(Refusal::NOT_LEADER);
            }
            let next = state.etcd.machine_of(to).filter(|vm| state.etcd.votes(vm));
            match next.map(|vm| state.runs(vm)) {
                None => Err(Refusal::BAD_LEADER_TRANSFEREE),
                Some(false) => Err(Refusal::TIMED_OUT),
                Some(true) => {
                    state.etcd.lead(to);
                    Ok(())
                }
            }
        }))
    }
}
