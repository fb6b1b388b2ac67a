//! The commands, by what they are about.

mod acl_rules;
mod acls;
mod addresses;
mod affinity;
mod empty;
mod events;
mod firewall;
mod forwarding;
mod identity;
mod jobs;
mod keys;
mod kubernetes;
mod limits;
mod load_balancers;
mod machines;
mod network_offerings;
mod networks;
mod offerings;
mod projects;
mod routing;
mod server;
mod tags;
mod templates;
mod volumes;
mod vpcs;
mod zones;

pub(crate) use machines::LENIENT;

use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::Result;
use crate::model::identity::RoleType;

/// Every table of commands.
pub(crate) const ALL: &[&[Command]] = &[
    acl_rules::COMMANDS,
    acls::COMMANDS,
    addresses::COMMANDS,
    affinity::COMMANDS,
    empty::COMMANDS,
    events::COMMANDS,
    firewall::COMMANDS,
    forwarding::COMMANDS,
    identity::COMMANDS,
    jobs::COMMANDS,
    keys::COMMANDS,
    kubernetes::COMMANDS,
    limits::COMMANDS,
    load_balancers::COMMANDS,
    machines::COMMANDS,
    network_offerings::COMMANDS,
    networks::COMMANDS,
    offerings::COMMANDS,
    projects::COMMANDS,
    routing::COMMANDS,
    server::COMMANDS,
    tags::COMMANDS,
    templates::COMMANDS,
    volumes::COMMANDS,
    vpcs::COMMANDS,
    zones::COMMANDS,
];

type Run = fn(&mut Cloud, &Call) -> Result<Answer>;

/// A command of everybody that answers at once.
const fn sync(name: &'static str, reads: &'static str, run: Run) -> Command {
    Command { name, role: RoleType::User, reads, class: "", run }
}

/// A command of everybody that gives a job; the class is that of the server's Java code.
const fn job(name: &'static str, reads: &'static str, class: &'static str, run: Run) -> Command {
    Command { name, role: RoleType::User, reads, class, run }
}

/// The same command for admins of domains and up.
const fn domain_admin(mut command: Command) -> Command {
    command.role = RoleType::DomainAdmin;
    command
}

/// The same command for root alone.
const fn root_admin(mut command: Command) -> Command {
    command.role = RoleType::RootAdmin;
    command
}
