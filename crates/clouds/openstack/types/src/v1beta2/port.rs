//! Ports of servers.

use capstan_capi_types::wire::record;

use super::{NetworkParam, SecurityGroupParam, SubnetParam};

record! {
    /// A port to create.
    pub struct PortOpts {
        optional {
            /// The network.
            pub network: Option<NetworkParam>,
            /// For people.
            pub description: Option<String>,
            /// What the port's name ends with; its position if empty.
            pub name_suffix: Option<String>,
            /// Its addresses.
            #[serde(rename = "fixedIPs")]
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub fixed_ips: Vec<FixedIP>,
            /// Its security groups.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub security_groups: Vec<SecurityGroupParam>,
            /// Tags; all of them in a filter.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Ports are trunks.
            pub trunk: Option<bool>,
            /// The port carries traffic.
            pub admin_state_up: Option<bool>,
            /// Its hardware address.
            pub mac_address: Option<String>,
            /// Addresses that it may use beside its own. Can be changed later.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub allowed_address_pairs: Vec<AddressPair>,
            /// The host it is bound to; for administrators.
            #[serde(rename = "hostID")]
            pub host_id: Option<String>,
            /// Its kind of hardware.
            pub vnic_type: Option<String>,
            /// Its hardware settings.
            pub profile: Option<BindingProfile>,
            /// The port is guarded; whatever the network says if not set.
            pub enable_port_security: Option<bool>,
            /// The state of the uplink is passed on.
            pub propagate_uplink_status: Option<bool>,
            /// Settings that extensions of Neutron read.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub value_specs: Vec<ValueSpec>,
        }
    }

    /// A port to create, with ids in place of filters.
    pub struct ResolvedPortSpec {
        required {
            /// Its name.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Id of its network.
            #[serde(rename = "networkID")]
            #[schemars(extend("minLength" = 1))]
            pub network_id: String,
        }
        optional {
            /// For people.
            pub description: String,
            /// Tags; all of them in a filter.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Ports are trunks.
            pub trunk: Option<bool>,
            /// Its addresses.
            #[serde(rename = "fixedIPs")]
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub fixed_ips: Vec<ResolvedFixedIP>,
            /// Its security groups.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub security_groups: Vec<String>,
            /// The port carries traffic.
            pub admin_state_up: Option<bool>,
            /// Its hardware address.
            pub mac_address: Option<String>,
            /// Addresses that it may use beside its own. Can be changed later.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub allowed_address_pairs: Vec<AddressPair>,
            /// The host it is bound to; for administrators.
            #[serde(rename = "hostID")]
            pub host_id: Option<String>,
            /// Its kind of hardware.
            pub vnic_type: Option<String>,
            /// Its hardware settings.
            pub profile: Option<BindingProfile>,
            /// The port is guarded; whatever the network says if not set.
            pub enable_port_security: Option<bool>,
            /// The state of the uplink is passed on.
            pub propagate_uplink_status: Option<bool>,
            /// Settings that extensions of Neutron read.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub value_specs: Vec<ValueSpec>,
        }
    }

    /// A port that was created.
    pub struct PortStatus {
        required {
            /// Its id.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
        }
    }

    /// Hardware settings of a port.
    pub struct BindingProfile {
        optional {
            /// Open vSwitch is offloaded to hardware.
            #[serde(rename = "ovsHWOffload")]
            pub ovs_hw_offload: Option<bool>,
            /// The virtual function is trusted.
            #[serde(rename = "trustedVF")]
            pub trusted_vf: Option<bool>,
        }
    }

    /// An address of a port.
    pub struct FixedIP {
        optional {
            /// The subnet.
            pub subnet: Option<SubnetParam>,
            /// The address.
            pub ip_address: Option<String>,
        }
    }

    /// An address of a port, with ids in place of filters.
    pub struct ResolvedFixedIP {
        optional {
            /// The subnet.
            pub subnet: Option<String>,
            /// The address.
            pub ip_address: Option<String>,
        }
    }

    /// An address that a port may use beside its own.
    pub struct AddressPair {
        required {
            /// The address.
            #[schemars(extend("minLength" = 1))]
            pub ip_address: String,
        }
        optional {
            /// Its hardware address.
            pub mac_address: Option<String>,
        }
    }

    /// A setting of a port that an extension of Neutron reads.
    pub struct ValueSpec {
        required {
            /// Its name.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// The key.
            #[schemars(extend("minLength" = 1))]
            pub key: String,
            /// The value.
            #[schemars(extend("minLength" = 1))]
            pub value: String,
        }
    }
}
