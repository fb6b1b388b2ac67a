//! Security groups.

use capstan_capi_types::wire::record;

use crate::common::ManagedSecurityGroupName;

record! {
    /// Security groups that are created for the cluster. An empty object means the default rules.
    pub struct ManagedSecurityGroups {
        optional {
            /// Rules of all nodes.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub cluster_nodes_security_group_rules: Vec<SecurityGroupRuleSpec>,
            /// Rules of control plane nodes.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub control_plane_nodes_security_group_rules: Vec<SecurityGroupRuleSpec>,
            /// Rules of workers.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub worker_nodes_security_group_rules: Vec<SecurityGroupRuleSpec>,
            /// Nodes accept everything from each other.
            #[schemars(extend("x-default" = false))]
            pub allow_all_in_cluster_traffic: bool,
        }
    }

    /// A rule of a managed security group.
    pub struct SecurityGroupRuleSpec {
        required {
            /// Names the rule here; OpenStack does not see it.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// `ingress` or `egress`.
            #[schemars(extend("enum" = ["ingress", "egress"]))]
            pub direction: String,
        }
        optional {
            /// For people.
            pub description: Option<String>,
            /// `IPv4` or `IPv6`.
            #[schemars(extend("enum" = ["IPv4", "IPv6"]))]
            pub ether_type: Option<String>,
            /// The first port.
            pub port_range_min: Option<i32>,
            /// The last port.
            pub port_range_max: Option<i32>,
            /// A protocol by name or number.
            pub protocol: Option<String>,
            /// Members of this security group.
            #[serde(rename = "remoteGroupID")]
            pub remote_group_id: Option<String>,
            /// This range of addresses.
            #[serde(rename = "remoteIPPrefix")]
            pub remote_ip_prefix: Option<String>,
            /// Members of these managed groups.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub remote_managed_groups: Vec<ManagedSecurityGroupName>,
        }
    }

    /// A security group that is in use.
    pub struct SecurityGroupStatus {
        required {
            /// Its name.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Its id.
            #[schemars(extend("minLength" = 1))]
            pub id: String,
        }
    }
}
