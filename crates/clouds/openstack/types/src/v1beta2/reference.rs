//! How things of a cloud are named: by id, or by what they are looked up by.

use capstan_capi_types::wire::record;

use crate::schema::rule;

record! {
    /// Reference to an object in the same namespace.
    pub struct ResourceReference {
        required {
            /// Name of the object.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
        }
    }

    /// Reference to an image: id, filter that matches exactly one, or object of the OpenStack Resource Controller.
    #[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
    pub struct ImageParam {
        optional {
            /// Id of the image.
            #[schemars(extend("format" = "uuid"))]
            pub id: Option<String>,
            /// Filter that matches the image.
            pub filter: Option<ImageFilter>,
            /// Image object of the OpenStack Resource Controller.
            pub image_ref: Option<ResourceReference>,
        }
    }

    /// Properties of an image to match.
    #[schemars(extend("minProperties" = 1))]
    pub struct ImageFilter {
        optional {
            /// Name of the image to match.
            pub name: Option<String>,
            /// Tags that the image must all have.
            #[schemars(extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
        }
    }

    /// Reference to a flavor: id, or filter that matches exactly one.
    #[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
    pub struct FlavorParam {
        optional {
            /// Id of the flavor.
            pub id: Option<String>,
            /// Filter that matches the flavor.
            pub filter: Option<FlavorFilter>,
        }
    }

    /// Properties of a flavor to match.
    #[schemars(extend("minProperties" = 1))]
    pub struct FlavorFilter {
        optional {
            /// Name of the flavor to match.
            pub name: Option<String>,
        }
    }

    /// Reference to a security group: id or filter.
    #[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
    pub struct SecurityGroupParam {
        optional {
            /// Id of the security group.
            #[schemars(extend("format" = "uuid"))]
            pub id: Option<String>,
            /// Filter that matches the security group.
            pub filter: Option<SecurityGroupFilter>,
        }
    }

    /// Properties of a security group to match.
    #[schemars(extend("minProperties" = 1))]
    pub struct SecurityGroupFilter {
        optional {
            /// Name of the security group to match.
            pub name: String,
            /// Description of the security group to match.
            pub description: String,
            /// Id of the project of the security group to match.
            #[serde(rename = "projectID")]
            pub project_id: String,
            /// Tags that the security group must all have.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Tags of which one must be present.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags_any: Vec<String>,
            /// Tags of which one must be absent.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags: Vec<String>,
            /// Tags that must all be absent.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags_any: Vec<String>,
        }
    }

    /// Reference to a network: id or filter.
    #[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
    pub struct NetworkParam {
        optional {
            /// Id of the network.
            #[schemars(extend("format" = "uuid"))]
            pub id: Option<String>,
            /// Filter that matches the network.
            pub filter: Option<NetworkFilter>,
        }
    }

    /// Properties of a network to match.
    #[schemars(extend("minProperties" = 1))]
    pub struct NetworkFilter {
        optional {
            /// Name of the network to match.
            pub name: String,
            /// Description of the network to match.
            pub description: String,
            /// Id of the project of the network to match.
            #[serde(rename = "projectID")]
            pub project_id: String,
            /// Tags that the network must all have.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Tags of which one must be present.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags_any: Vec<String>,
            /// Tags of which one must be absent.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags: Vec<String>,
            /// Tags that must all be absent.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags_any: Vec<String>,
        }
    }

    /// Reference to a subnet: id or filter.
    #[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
    pub struct SubnetParam {
        optional {
            /// Id of the subnet.
            #[schemars(extend("format" = "uuid"))]
            pub id: Option<String>,
            /// Filter that matches the subnet.
            pub filter: Option<SubnetFilter>,
        }
    }

    /// Properties of a subnet to match.
    #[schemars(extend("minProperties" = 1))]
    pub struct SubnetFilter {
        optional {
            /// Name of the subnet to match.
            pub name: String,
            /// Description of the subnet to match.
            pub description: String,
            /// Id of the project of the subnet to match.
            #[serde(rename = "projectID")]
            pub project_id: String,
            /// IP version of the subnet: 4 or 6.
            pub ip_version: i32,
            /// IP address of the gateway.
            #[serde(rename = "gatewayIP")]
            pub gateway_ip: String,
            /// CIDR of the subnet.
            pub cidr: String,
            /// IPv6 address mode of the subnet.
            pub ipv6_address_mode: String,
            /// IPv6 router advertisement mode of the subnet.
            #[serde(rename = "ipv6RAMode")]
            pub ipv6_ra_mode: String,
            /// Tags that the subnet must all have.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Tags of which one must be present.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags_any: Vec<String>,
            /// Tags of which one must be absent.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags: Vec<String>,
            /// Tags that must all be absent.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags_any: Vec<String>,
        }
    }

    /// Reference to a router: id or filter.
    #[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
    pub struct RouterParam {
        optional {
            /// Id of the router.
            #[schemars(extend("format" = "uuid"))]
            pub id: Option<String>,
            /// Filter that matches the router.
            pub filter: Option<RouterFilter>,
        }
    }

    /// Properties of a router to match.
    #[schemars(extend("minProperties" = 1))]
    pub struct RouterFilter {
        optional {
            /// Name of the router to match.
            pub name: String,
            /// Description of the router to match.
            pub description: String,
            /// Id of the project of the router to match.
            #[serde(rename = "projectID")]
            pub project_id: String,
            /// Tags that the router must all have.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// Tags of which one must be present.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags_any: Vec<String>,
            /// Tags of which one must be absent.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags: Vec<String>,
            /// Tags that must all be absent.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags_any: Vec<String>,
        }
    }

    /// Reference to a server group: id or filter.
    #[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
    pub struct ServerGroupParam {
        optional {
            /// Id of the server group.
            #[schemars(extend("format" = "uuid"))]
            pub id: Option<String>,
            /// Filter that matches the server group.
            pub filter: Option<ServerGroupFilter>,
        }
    }

    /// Properties of a server group to match.
    #[schemars(extend("minProperties" = 1))]
    pub struct ServerGroupFilter {
        optional {
            /// Name of the server group to match.
            pub name: Option<String>,
        }
    }

    /// Reference to the credentials of a cloud.
    #[schemars(extend("x-kubernetes-validations" = [rule("(!has(self.region) && !has(oldSelf.region)) || self.region == oldSelf.region", "region is immutable")]))]
    pub struct OpenStackIdentityReference {
        required {
            /// Name of the Secret or the OpenStackClusterIdentity.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Name of the entry in `clouds.yaml`.
            #[schemars(extend("minLength" = 1))]
            pub cloud_name: String,
        }
        optional {
            /// Kind of the object: `Secret`, or `ClusterIdentity` for an OpenStackClusterIdentity.
            #[serde(rename = "type")]
            #[schemars(extend("enum" = ["Secret", "ClusterIdentity"], "x-default" = "Secret"))]
            pub kind: String,
            /// Region. Defaults to that of the entry. Immutable.
            pub region: String,
        }
    }
}
