//! Ports of servers.

use capstan_capi_types::wire::record;

use super::{NetworkParam, SecurityGroupParam, SubnetParam};

record! {
    /// A port to create.
    pub struct PortOpts {
        optional {
            /// Network of the port.
            pub network: Option<NetworkParam>,
            /// Description of the port.
            pub description: Option<String>,
            /// Suffix of the port's name. Defaults to the index of the port.
            pub name_suffix: Option<String>,
            /// Fixed IP addresses of the port.
            #[serde(rename = "fixedIPs")]
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub fixed_ips: Vec<FixedIP>,
            /// Security groups of the port.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub security_groups: Vec<SecurityGroupParam>,
            /// Tags of the port.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Whether the port is a trunk.
            pub trunk: Option<bool>,
            /// Administrative state of the port.
            pub admin_state_up: Option<bool>,
            /// MAC address of the port.
            pub mac_address: Option<String>,
            /// Addresses that the port may use in addition to its own. Mutable.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub allowed_address_pairs: Vec<AddressPair>,
            /// Host that the port is bound to. Requires administrator rights.
            #[serde(rename = "hostID")]
            pub host_id: Option<String>,
            /// VNIC type of the port.
            pub vnic_type: Option<String>,
            /// Binding profile of the port.
            pub profile: Option<BindingProfile>,
            /// Whether port security is enabled. Defaults to that of the network.
            pub enable_port_security: Option<bool>,
            /// Whether the uplink status is propagated.
            pub propagate_uplink_status: Option<bool>,
            /// Settings that extensions of Neutron read.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub value_specs: Vec<ValueSpec>,
        }
    }

    /// A port to create, with resolved references.
    pub struct ResolvedPortSpec {
        required {
            /// Name of the port.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Id of the port's network.
            #[serde(rename = "networkID")]
            #[schemars(extend("minLength" = 1))]
            pub network_id: String,
        }
        optional {
            /// Description of the port.
            pub description: String,
            /// Tags of the port.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Whether the port is a trunk.
            pub trunk: Option<bool>,
            /// Fixed IP addresses of the port.
            #[serde(rename = "fixedIPs")]
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub fixed_ips: Vec<ResolvedFixedIP>,
            /// Ids of the security groups of the port.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub security_groups: Vec<String>,
            /// Administrative state of the port.
            pub admin_state_up: Option<bool>,
            /// MAC address of the port.
            pub mac_address: Option<String>,
            /// Addresses that the port may use in addition to its own. Mutable.
            #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
            pub allowed_address_pairs: Vec<AddressPair>,
            /// Host that the port is bound to. Requires administrator rights.
            #[serde(rename = "hostID")]
            pub host_id: Option<String>,
            /// VNIC type of the port.
            pub vnic_type: Option<String>,
            /// Binding profile of the port.
            pub profile: Option<BindingProfile>,
            /// Whether port security is enabled. Defaults to that of the network.
            pub enable_port_security: Option<bool>,
            /// Whether the uplink status is propagated.
            pub propagate_uplink_status: Option<bool>,
            /// Settings that extensions of Neutron read.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub value_specs: Vec<ValueSpec>,
        }
    }

    /// Observed state of a port.
    pub struct PortStatus {
        required {
            /// Id of the port.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
        }
    }

    /// Binding profile of a port.
    pub struct BindingProfile {
        optional {
            /// Whether Open vSwitch hardware offload is enabled.
            #[serde(rename = "ovsHWOffload")]
            pub ovs_hw_offload: Option<bool>,
            /// Whether the virtual function is trusted.
            #[serde(rename = "trustedVF")]
            pub trusted_vf: Option<bool>,
        }
    }

    /// A fixed IP address of a port.
    pub struct FixedIP {
        optional {
            /// Subnet of the IP address.
            pub subnet: Option<SubnetParam>,
            /// IP address to use.
            pub ip_address: Option<String>,
        }
    }

    /// A fixed IP address of a port, with resolved references.
    pub struct ResolvedFixedIP {
        optional {
            /// Id of the subnet of the IP address.
            pub subnet: Option<String>,
            /// IP address to use.
            pub ip_address: Option<String>,
        }
    }

    /// An address that a port may use in addition to its own.
    pub struct AddressPair {
        required {
            /// IP address or CIDR.
            #[schemars(extend("minLength" = 1))]
            pub ip_address: String,
        }
        optional {
            /// MAC address. Defaults to that of the port.
            pub mac_address: Option<String>,
        }
    }

    /// A setting of a port that an extension of Neutron reads.
    pub struct ValueSpec {
        required {
            /// Name of the setting.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Key of the setting.
            #[schemars(extend("minLength" = 1))]
            pub key: String,
            /// Value of the setting.
            #[schemars(extend("minLength" = 1))]
            pub value: String,
        }
    }
}
