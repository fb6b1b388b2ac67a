//! Security groups.

use capstan_capi_types::wire::record;

use crate::common::ManagedSecurityGroupName;

record! {
    /// Security groups to create. An empty object stands for the default rules.
    pub struct ManagedSecurityGroups {
        required {
            /// Whether nodes accept all traffic from each other.
            #[schemars(extend("x-default" = false))]
            pub allow_all_in_cluster_traffic: bool,
        }
        optional {
            /// Additional rules of all nodes.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub all_nodes_security_group_rules: Vec<SecurityGroupRuleSpec>,
            /// Additional rules of control plane nodes.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub control_plane_nodes_security_group_rules: Vec<SecurityGroupRuleSpec>,
            /// Additional rules of worker nodes.
            #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
            pub worker_nodes_security_group_rules: Vec<SecurityGroupRuleSpec>,
        }
    }

    /// A rule of a managed security group.
    pub struct SecurityGroupRuleSpec {
        required {
            /// Name of the rule in this list. Not sent to OpenStack.
            pub name: String,
            /// Direction of the traffic: `ingress` or `egress`.
            #[schemars(extend("enum" = ["ingress", "egress"]))]
            pub direction: String,
        }
        optional {
            /// Description of the rule.
            pub description: Option<String>,
            /// Address family: `IPv4` or `IPv6`.
            #[schemars(extend("enum" = ["IPv4", "IPv6"]))]
            pub ether_type: Option<String>,
            /// First port of the range.
            #[schemars(schema_with = "crate::schema::integer")]
            pub port_range_min: Option<i64>,
            /// Last port of the range.
            #[schemars(schema_with = "crate::schema::integer")]
            pub port_range_max: Option<i64>,
            /// Protocol by name or number.
            pub protocol: Option<String>,
            /// Id of the security group whose members are matched.
            #[serde(rename = "remoteGroupID")]
            pub remote_group_id: Option<String>,
            /// CIDR that is matched.
            #[serde(rename = "remoteIPPrefix")]
            pub remote_ip_prefix: Option<String>,
            /// Managed security groups whose members are matched.
            pub remote_managed_groups: Vec<ManagedSecurityGroupName>,
        }
    }

    /// Observed state of a security group.
    pub struct SecurityGroupStatus {
        required {
            /// Name of the security group.
            pub name: String,
            /// Id of the security group.
            pub id: String,
        }
    }
}
