//! How things of a cloud are named: by id, or by what they are looked up by.

use capstan_capi_types::wire::record;

use super::ImageFilter;
use crate::schema::rule;

record! {
    /// Reference to an object in the same namespace.
    pub struct ResourceReference {
        required {
            /// Name of the object.
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
            #[schemars(schema_with = "crate::schema::integer")]
            pub ip_version: i64,
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

    /// Reference to the credentials of a cloud.
    #[schemars(extend("x-kubernetes-validations" = [rule("(!has(self.region) && !has(oldSelf.region)) || self.region == oldSelf.region", "region is immutable")]))]
    pub struct OpenStackIdentityReference {
        required {
            /// Kind of the object: `Secret`, or `ClusterIdentity` for an OpenStackClusterIdentity.
            #[serde(rename = "type")]
            #[schemars(extend("enum" = ["Secret", "ClusterIdentity"], "x-default" = "Secret"))]
            pub kind: String,
            /// Name of the Secret or the OpenStackClusterIdentity.
            #[schemars(extend("minLength" = 1))]
            pub name: String,
            /// Name of the entry in `clouds.yaml`.
            #[schemars(extend("minLength" = 1))]
            pub cloud_name: String,
        }
        optional {
            /// Region. Defaults to that of the entry. Immutable.
            pub region: String,
        }
    }
}
