//! Security groups: what a port lets through.

use http::Method;

use super::TagFilter;
use crate::client::{Body, Call, Client};
use crate::error::Error;
use crate::id::Id;
use crate::loose::{model, request};
use crate::resource::{resources, verbs, with_body};
use crate::service::Service;

model! {
    /// A security group.
    pub struct SecurityGroup {
        /// Id of the security group.
        pub id: Id<SecurityGroup>,
        /// Its name, which other groups may have too.
        pub name: String,
        /// Description of the security group.
        pub description: String,
        /// Project that owns the security group.
        pub project_id: String,
        /// What it lets through. A new group lets everything out.
        pub security_group_rules: Vec<SecurityGroupRule>,
        /// Answers to what was let out are let in.
        pub stateful: Option<bool>,
        /// Words of its owner.
        pub tags: Vec<String>,
        /// Grows with every change.
        pub revision_number: u64,
    }

    /// What a group lets through.
    pub struct SecurityGroupRule {
        /// Id of the security group rule.
        pub id: Id<SecurityGroupRule>,
        /// Security group of the rule.
        pub security_group_id: Id<SecurityGroup>,
        /// `ingress` or `egress`.
        pub direction: String,
        /// `IPv4` or `IPv6`.
        pub ethertype: String,
        /// A name or a number as text; all if left out.
        pub protocol: Option<String>,
        /// The first port.
        pub port_range_min: Option<i32>,
        /// The last port.
        pub port_range_max: Option<i32>,
        /// Of ports of this group.
        pub remote_group_id: Option<Id<SecurityGroup>>,
        /// Of these addresses, as they were written.
        pub remote_ip_prefix: Option<String>,
        /// For people. Two rules cannot differ in it alone.
        pub description: Option<String>,
    }
}

request! {
    /// A new group.
    pub struct NewSecurityGroup {
        /// Name of the security group.
        pub name: String,
        /// Description of the security group.
        pub description: Option<String>,
    }

    /// What can be changed of a group.
    pub struct SecurityGroupChange {
        /// Name of the security group.
        pub name: Option<String>,
        /// Description of the security group.
        pub description: Option<String>,
    }

    /// A new rule.
    pub struct NewSecurityGroupRule {
        /// Security group of the rule.
        pub security_group_id: Id<SecurityGroup>,
        /// `ingress` or `egress`.
        pub direction: String,
        /// `IPv4` or `IPv6`.
        pub ethertype: Option<String>,
        /// A name or a number as text.
        pub protocol: Option<String>,
        /// The first port.
        pub port_range_min: Option<i32>,
        /// The last port.
        pub port_range_max: Option<i32>,
        /// Of ports of this group.
        pub remote_group_id: Option<Id<SecurityGroup>>,
        /// Of these addresses.
        pub remote_ip_prefix: Option<String>,
        /// Description of the security group rule.
        pub description: Option<String>,
    }

    /// What groups can be narrowed by.
    pub struct SecurityGroupFilter {
        /// Id of the security group.
        pub id: Option<String>,
        /// Its name, whatever the case.
        pub name: Option<String>,
        /// Description of the security group.
        pub description: Option<String>,
        /// Project that owns the security group.
        pub project_id: Option<String>,
        /// Words it has or has not.
        #[serde(flatten)]
        pub tags: TagFilter,
    }

    /// What rules can be narrowed by.
    pub struct SecurityGroupRuleFilter {
        /// Security group of the rule.
        pub security_group_id: Option<Id<SecurityGroup>>,
        /// Of ports of this group.
        pub remote_group_id: Option<Id<SecurityGroup>>,
    }
}

resources! {
    SecurityGroup: Network "security-groups" Some("security_group"), "security_groups" by SecurityGroupFilter;
    SecurityGroupRule: Network "security-group-rules" Some("security_group_rule"), "security_group_rules" by SecurityGroupRuleFilter;
}

verbs! {
    SecurityGroup: new NewSecurityGroup, change SecurityGroupChange, delete;
    SecurityGroupRule: new NewSecurityGroupRule, delete;
}

impl Client {
    /// Makes several rules in one request: all of them or none.
    pub async fn create_security_group_rules(
        &self,
        rules: &[NewSecurityGroupRule],
    ) -> Result<Vec<SecurityGroupRule>, Error> {
        let call = Call::change(Service::Network, Method::POST, "security-group-rules", Body::None);
        self.read(&with_body(call, Some("security_group_rules"), &rules)?, Some("security_group_rules")).await
    }
}
