//! Clouds and machines: clients of CloudStack, recorded replies, CAPC, OpenStack's services, EKS Anywhere, real nodes.

pub mod capc_adopted;
pub mod capc_moved;
pub mod capc_on_sim;
pub mod cloudstack_clients;
pub mod cloudstack_golden;
pub mod cloudstack_replay;
pub mod eksa_goldens;
pub mod openstack_capo;
pub mod openstack_occm;
pub mod openstack_real;
pub mod openstack_replay;
pub mod real_cluster;
