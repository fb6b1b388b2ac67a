//! Fault injection.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The faults as they are typed on a command line.
pub(crate) const USAGE: &str = "  error command=NAME code=NUMBER text=TEXT [times=N]
  lostReply | lostRequest | stuckJob command=NAME [times=N]
  slow command=NAME milliseconds=N [times=N]
  hostsFail command=start|stop [times=N]
  noCapacity
  expiredKeys account=NAME
  powerOff vm=UUID
where command=* means all commands";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "fault", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// Calls of a command are refused.
    Error {
        /// Name of the command, `*` for all.
        command: String,
        /// CloudStack's code, which is also the HTTP status.
        code: u16,
        /// What is said.
        text: String,
        /// How often; for ever if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// Calls of a command are executed, and the reply is lost.
    LostReply {
        /// Name of the command, `*` for all.
        command: String,
        /// How often; for ever if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// Calls of a command never arrive.
    LostRequest {
        /// Name of the command, `*` for all.
        command: String,
        /// How often; for ever if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// Replies to a command take longer.
    Slow {
        /// Name of the command, `*` for all.
        command: String,
        /// How much longer.
        milliseconds: u64,
        /// How often; for ever if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// Jobs of a command stay pending without effect.
    StuckJob {
        /// Name of the command, `*` for all.
        command: String,
        /// How often; for ever if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// No host has capacity for another machine.
    NoCapacity,
    /// Hosts fail to start or stop machines.
    HostsFail {
        /// What they fail at.
        command: HostCommand,
        /// How often; for ever if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// Keys of an account's users are revoked.
    ExpiredKeys {
        /// Name of the account.
        account: String,
    },
    /// A machine is powered off outside of the cloud, which detects it after a while.
    PowerOff {
        /// UUID of the machine.
        vm: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostCommand {
    Start,
    Stop,
}

impl HostCommand {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Start => "StartCommand",
            Self::Stop => "StopCommand",
        }
    }
}

impl Fault {
    /// The affected command, and the remaining number of times.
    fn target(&mut self) -> Option<(&str, &mut Option<u32>)> {
        match self {
            Self::Error { command, times, .. }
            | Self::LostReply { command, times }
            | Self::LostRequest { command, times }
            | Self::Slow { command, times, .. }
            | Self::StuckJob { command, times } => Some((command, times)),
            Self::NoCapacity | Self::HostsFail { .. } | Self::ExpiredKeys { .. } | Self::PowerOff { .. } => {
                None
            }
        }
    }
}

/// Faults that apply to one call.
#[derive(Debug, Default)]
pub(crate) struct CallFaults {
    pub(crate) refused: Option<(u16, String)>,
    pub(crate) never_arrives: bool,
    pub(crate) reply_is_lost: bool,
    pub(crate) delay: Duration,
    pub(crate) job_is_stuck: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn all(&self) -> Vec<Fault> {
        self.0.clone()
    }

    /// Faults of the next call of a command. Counts down those with a limited number of times.
    pub(crate) fn take(&mut self, name: &str) -> CallFaults {
        let mut faults = CallFaults::default();
        for fault in &mut self.0 {
            let Some((command, times)) = fault.target() else { continue };
            if (command != "*" && command != name) || *times == Some(0) {
                continue;
            }
            if let Some(times) = times {
                *times -= 1;
            }
            match fault {
                Fault::Error { code, text, .. } => faults.refused = Some((*code, text.clone())),
                Fault::LostReply { .. } => faults.reply_is_lost = true,
                Fault::LostRequest { .. } => faults.never_arrives = true,
                Fault::Slow { milliseconds, .. } => faults.delay += Duration::from_millis(*milliseconds),
                Fault::StuckJob { .. } => faults.job_is_stuck = true,
                Fault::NoCapacity
                | Fault::HostsFail { .. }
                | Fault::ExpiredKeys { .. }
                | Fault::PowerOff { .. } => {}
            }
        }
        self.0.retain_mut(|fault| fault.target().is_none_or(|(_, times)| *times != Some(0)));
        faults
    }
}
