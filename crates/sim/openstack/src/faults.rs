//! Fault injection.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::service::Service;

/// A fault. Calls are chosen by service, method and a part of the path; what is left out matches all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "fault", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// Calls are refused.
    Error {
        #[serde(default)]
        on: Target,
        status: u16,
        #[serde(default)]
        message: String,
    },
    /// Calls are carried out, and the reply is lost.
    LostReply {
        #[serde(default)]
        on: Target,
    },
    /// Calls never arrive.
    LostRequest {
        #[serde(default)]
        on: Target,
    },
    /// Replies take longer.
    Slow {
        #[serde(default)]
        on: Target,
        milliseconds: u64,
    },
    /// All tokens issued so far stop being valid, at once and in every service.
    ExpiredTokens,
    /// No host has room for another server.
    NoValidHost,
    /// So many servers fail to build.
    FailedBuilds { times: u32 },
    /// So many changes of load balancers end in ERROR.
    FailedLoadBalancers { times: u32 },
    /// So many downloads of images fail.
    FailedImports { times: u32 },
    /// Work of this kind never ends, such as `balancerReady`.
    Stuck { work: String },
    /// A server is powered off outside of the cloud.
    PowerOff { server: String },
}

/// The calls that a fault is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// A part of the path, such as `/servers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// So many calls pass before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after: u32,
    /// How often; for ever if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Target {
    /// Whether a call is one of these; counts it.
    fn takes(&mut self, service: Service, method: &str, path: &str) -> bool {
        let matches = self.service.is_none_or(|wanted| wanted == service)
            && self.method.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
            && self.path.as_deref().is_none_or(|part| path.contains(part));
        if !matches || self.times == Some(0) {
            return false;
        }
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        if let Some(times) = &mut self.times {
            *times -= 1;
        }
        true
    }
}

/// Faults that apply to one call.
#[derive(Debug, Default)]
pub(crate) struct CallFaults {
    pub(crate) refused: Option<(u16, String)>,
    pub(crate) never_arrives: bool,
    pub(crate) reply_is_lost: bool,
    pub(crate) delay: Duration,
}

/// Active faults of calls.
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

    /// Faults of the next call. Counts down those with a limited number of times.
    pub(crate) fn take(&mut self, service: Service, method: &str, path: &str) -> CallFaults {
        let mut faults = CallFaults::default();
        for fault in &mut self.0 {
            let (Fault::Error { on, .. }
            | Fault::LostReply { on }
            | Fault::LostRequest { on }
            | Fault::Slow { on, .. }) = fault
            else {
                continue;
            };
            if !on.takes(service, method, path) {
                continue;
            }
            match fault {
                Fault::Error { status, message, .. } => faults.refused = Some((*status, message.clone())),
                Fault::LostReply { .. } => faults.reply_is_lost = true,
                Fault::LostRequest { .. } => faults.never_arrives = true,
                Fault::Slow { milliseconds, .. } => faults.delay += Duration::from_millis(*milliseconds),
                _ => {}
            }
        }
        self.0.retain(|fault| match fault {
            Fault::Error { on, .. }
            | Fault::LostReply { on }
            | Fault::LostRequest { on }
            | Fault::Slow { on, .. } => on.times != Some(0),
            _ => true,
        });
        faults
    }
}
