//! How things of a cloud are named: by id, or by what they are looked up by.

use capstan_capi_types::wire::record;

use super::ImageFilter;
use crate::schema::rule;

record! {
    /// Names an object in the same namespace.
    pub struct ResourceReference {
        required {
            /// Its name.
            pub name: String,
        }
    }

    /// An image: its id, a filter that finds exactly one, or an object of the OpenStack Resource Controller.
    #[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
    pub struct ImageParam {
        optional {
            /// Its id.
            #[schemars(extend("format" = "uuid"))]
            pub id: Option<String>,
            /// What it is looked up by.
            pub filter: Option<ImageFilter>,
            /// Object of the OpenStack Resource Controller that has the image.
            pub image_ref: Option<ResourceReference>,
        }
    }

    /// A subnet: its id, or a filter.
    #[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
    pub struct SubnetParam {
        optional {
            /// Its id.
            #[schemars(extend("format" = "uuid"))]
            pub id: Option<String>,
            /// What it is looked up by.
            pub filter: Option<SubnetFilter>,
        }
    }

    /// What subnets are looked up by.
    #[schemars(extend("minProperties" = 1))]
    pub struct SubnetFilter {
        optional {
            /// Its name.
            pub name: String,
            /// For people.
            pub description: String,
            /// Its project.
            #[serde(rename = "projectID")]
            pub project_id: String,
            /// 4 or 6.
            #[schemars(schema_with = "crate::schema::integer")]
            pub ip_version: i64,
            /// The router's address.
            #[serde(rename = "gatewayIP")]
            pub gateway_ip: String,
            /// Its range of addresses.
            pub cidr: String,
            /// How IPv6 addresses are assigned.
            pub ipv6_address_mode: String,
            /// How IPv6 routes are advertised.
            #[serde(rename = "ipv6RAMode")]
            pub ipv6_ra_mode: String,
            /// Tags; all of them in a filter.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags: Vec<String>,
            /// One of these tags.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub tags_any: Vec<String>,
            /// Not all of these tags.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags: Vec<String>,
            /// None of these tags.
            #[schemars(inner(length(min = 1), regex(pattern = "^[^,]+$")), extend("x-kubernetes-list-type" = "set"))]
            pub not_tags_any: Vec<String>,
        }
    }

    /// Where the credentials of a cloud are.
    #[schemars(extend("x-kubernetes-validations" = [rule("(!has(self.region) && !has(oldSelf.region)) || self.region == oldSelf.region", "region is immutable")]))]
    pub struct OpenStackIdentityReference {
        required {
            /// `Secret`, or `ClusterIdentity` for an OpenStackClusterIdentity.
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
            /// The region; that of the entry if empty. Cannot be changed.
            pub region: String,
        }
    }
}
