//! State of etcd.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtcdMember {
    /// Never reused by etcd.
    pub id: u64,
    /// Equals the node's name; empty until the member has started.
    pub name: String,
    pub learner: bool,
    pub alarms: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EtcdState {
    /// External etcd, or no machine to ask yet.
    #[default]
    NotAsked,
    /// No member answered.
    Failed(String),
    Members {
        /// Sorted by name.
        members: Vec<EtcdMember>,
        leader: String,
    },
}

impl EtcdState {
    /// Empty if unknown.
    pub fn members(&self) -> &[EtcdMember] {
        match self {
            Self::Members { members, .. } => members,
            _ => &[],
        }
    }
}
