//! What etcd answered.

/// A member of etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtcdMember {
    /// Its id, which etcd gives once.
    pub id: u64,
    /// Its name, which is its node's; empty while it starts.
    pub name: String,
    /// It does not vote yet.
    pub learner: bool,
    /// Alarms it raised.
    pub alarms: Vec<String>,
}

/// What is known of etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EtcdSeen {
    /// It runs elsewhere, or there is no machine yet to ask.
    #[default]
    NotAsked,
    /// Nobody answered, and why.
    Failed(String),
    /// It answered.
    Members {
        /// Its members, in the order of their names.
        members: Vec<EtcdMember>,
        /// Name of the leader.
        leader: String,
    },
}

impl EtcdSeen {
    /// The members, if they can be told.
    pub fn members(&self) -> &[EtcdMember] {
        match self {
            Self::Members { members, .. } => members,
            _ => &[],
        }
    }
}
