//! Clouds and machines: clients of CloudStack, recorded replies, CAPC, real nodes.

pub mod capc_adopted;
pub mod capc_on_sim;
pub mod cloudstack_clients;
pub mod cloudstack_golden;
pub mod cloudstack_replay;
pub mod openstack_capo;
pub mod openstack_replay;
pub mod real_cluster;
