//! One connection to one member.

use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::answer::{Alarm, Member, Status};
use crate::channel::Channel;
use crate::error::Error;
use crate::tls::Stream;
use crate::{tls, wire};

/// Default request timeout.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// One connection to one member.
///
/// When the connection breaks, every further request fails with [`Error::Unavailable`]; the owner decides whether to
/// reconnect. Dropping the client closes the connection.
#[derive(Debug)]
pub struct Client {
    channel: Channel,
}

impl Client {
    /// Connects over a stream: TLS, if configured, and HTTP/2.
    pub async fn connect(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        tls: Option<(Arc<rustls::ClientConfig>, ServerName<'static>)>,
    ) -> Result<Self, Error> {
        let agreeing = async {
            match tls {
                None => Self::over(stream, "http://etcd".to_owned()).await,
                Some((config, name)) => {
                    let origin = format!("https://{}", authority(&name));
                    Self::over(tls::connect(stream, config, name).await.map_err(Error::Tls)?, origin).await
                }
            }
        };
        tokio::time::timeout(DEADLINE, agreeing)
            .await
            .unwrap_or(Err(Error::DeadlineExceeded { call: "connect", after: DEADLINE }))
    }

    async fn over(stream: impl Stream + 'static, origin: String) -> Result<Self, Error> {
        Ok(Self { channel: Channel::over(stream, origin).await? })
    }

    /// Sets the request timeout.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.channel.deadline = deadline;
        self
    }

    /// Status of the connected member.
    pub async fn status(&mut self) -> Result<Status, Error> {
        let response: wire::StatusResponse =
            self.channel.ask("status", wire::path::STATUS, &wire::StatusRequest {}).await?;
        Ok(response.into())
    }

    /// The members of its cluster, by a linearizable read: fails without a leader.
    pub async fn members(&mut self) -> Result<Vec<Member>, Error> {
        let question = wire::MemberListRequest { linearizable: true };
        let response: wire::MembersResponse =
            self.channel.ask("list members", wire::path::MEMBER_LIST, &question).await?;
        Ok(response.members.into_iter().map(Member::from).collect())
    }

    /// Alarms of all members.
    pub async fn alarms(&mut self) -> Result<Vec<Alarm>, Error> {
        let question = wire::AlarmRequest { action: wire::ALARM_GET, ..Default::default() };
        let response: wire::AlarmResponse =
            self.channel.ask("list alarms", wire::path::ALARM, &question).await?;
        Ok(response.alarms.into_iter().map(Alarm::from).collect())
    }

    /// Removes a member from the cluster.
    pub async fn remove_member(&mut self, id: u64) -> Result<(), Error> {
        let question = wire::MemberRemoveRequest { id };
        let _: wire::MembersResponse =
            self.channel.ask("remove a member", wire::path::MEMBER_REMOVE, &question).await?;
        Ok(())
    }

    /// Moves leadership to another member; only the current leader can do that.
    pub async fn move_leader(&mut self, to: u64) -> Result<(), Error> {
        let question = wire::MoveLeaderRequest { target: to };
        let _: wire::MoveLeaderResponse =
            self.channel.ask("move the leader", wire::path::MOVE_LEADER, &question).await?;
        Ok(())
    }
}

fn authority(name: &ServerName<'_>) -> String {
    match name {
        ServerName::IpAddress(rustls_pki_types::IpAddr::V6(address)) => {
            format!("[{}]", std::net::Ipv6Addr::from(*address))
        }
        name => name.to_str().into_owned(),
    }
}
