//! Rules of `OpenStackCluster`: most of it never changes, and the exceptions are listed here one by one.

use std::collections::BTreeSet;

use capstan_capi_types::admission::{Admission, Features, FieldError, SecretUse};

use super::secret;
use crate::v1beta2::{
    APIServer, Bastion, OpenStackCluster, OpenStackClusterSpec, OpenStackIdentityReference,
    SecurityGroupRuleSpec, SubnetSpec,
};

impl Admission for OpenStackCluster {
    fn validate(&self, old: Option<&Self>, _: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(old) = old {
            validate_update(self, old, &mut errors);
        } else {
            validate_rules(&self.spec, &mut errors);
        }
        errors
    }

    fn secrets(&self) -> Vec<SecretUse> {
        let namespace = &self.metadata.namespace;
        let bastion = self.spec.bastion.as_ref().and_then(|bastion| bastion.spec.as_ref());
        let of_bastion = bastion.and_then(|spec| spec.identity_ref.as_ref());
        let of_bastion = of_bastion.and_then(|it| secret(namespace, it, "spec.bastion.spec.identityRef"));
        secret(namespace, &self.spec.identity_ref, "spec.identityRef").into_iter().chain(of_bastion).collect()
    }
}

/// A rule says in one way at most whom it is about.
fn validate_rules(spec: &OpenStackClusterSpec, errors: &mut Vec<FieldError>) {
    let Some(groups) = &spec.managed_security_groups else { return };
    let lists = [
        ("clusterNodesSecurityGroupRules", &groups.cluster_nodes_security_group_rules),
        ("controlPlaneNodesSecurityGroupRules", &groups.control_plane_nodes_security_group_rules),
        ("workerNodesSecurityGroupRules", &groups.worker_nodes_security_group_rules),
    ];
    for (list, rules) in lists {
        for (at, _) in rules.iter().enumerate().filter(|(_, rule)| remotes(rule) > 1) {
            errors.push(FieldError::forbidden(
                format!("spec.managedSecurityGroups.{list}[{at}]"),
                "only one of remoteManagedGroups, remoteGroupID, or remoteIPPrefix can be set",
            ));
        }
    }
}

fn remotes(rule: &SecurityGroupRuleSpec) -> usize {
    usize::from(!rule.remote_managed_groups.is_empty())
        + usize::from(rule.remote_group_id.is_some())
        + usize::from(rule.remote_ip_prefix.is_some())
}

fn validate_update(new: &OpenStackCluster, old: &OpenStackCluster, errors: &mut Vec<FieldError>) {
    let is_enabled = |bastion: &Bastion| bastion.enabled != Some(false);
    if new.spec.bastion.is_none() && old.spec.bastion.as_ref().is_some_and(is_enabled) {
        errors.push(FieldError::forbidden("spec.bastion", "cannot be removed before disabling it"));
    }
    validate_rules(&new.spec, errors);
    validate_subnets(&new.spec.managed_subnets, &old.spec.managed_subnets, errors);
    let (mut after, mut before) = (new.spec.clone(), old.spec.clone());
    for spec in [&mut after, &mut before] {
        forget_changeable(spec);
    }
    forget_endpoint(&mut after, &mut before);
    forget_api_server(&mut after, &mut before, old);
    forget_pinned_network(&mut after, &mut before, old);
    forget_unresolved(&mut after, &mut before, old);
    // Groups may be added later, which is no change of what is there.
    if after.managed_security_groups.is_some() && before.managed_security_groups.is_none() {
        before.managed_security_groups = Some(Default::default());
    }
    if after != before {
        errors.push(FieldError::forbidden("spec", "cannot be modified"));
    }
}

/// A subnet is identified by its range; their name servers may change.
fn validate_subnets(new: &[SubnetSpec], old: &[SubnetSpec], errors: &mut Vec<FieldError>) {
    if new.is_empty() || old.is_empty() {
        return;
    }
    let path = "spec.managedSubnets";
    if new.len() != old.len() {
        errors.push(FieldError::forbidden(path, "cannot add or remove subnets"));
        return;
    }
    let known: BTreeSet<&str> = old.iter().map(|subnet| subnet.cidr.as_str()).collect();
    for subnet in new.iter().filter(|subnet| !known.contains(subnet.cidr.as_str())) {
        let what = format!("cannot change subnet CIDR from existing value to {}", subnet.cidr);
        errors.push(FieldError::forbidden(path, what));
    }
}

/// Clears the mutable fields.
fn forget_changeable(spec: &mut OpenStackClusterSpec) {
    spec.identity_ref = OpenStackIdentityReference::default();
    spec.bastion = None;
    spec.primary_subnet = None;
    spec.control_plane_availability_zones.clear();
    spec.control_plane_omit_availability_zone = None;
    if let Some(groups) = &mut spec.managed_security_groups {
        groups.cluster_nodes_security_group_rules.clear();
        groups.control_plane_nodes_security_group_rules.clear();
        groups.worker_nodes_security_group_rules.clear();
        groups.allow_all_in_cluster_traffic = false;
    }
    for subnet in &mut spec.managed_subnets {
        subnet.dns_nameservers.clear();
    }
}

/// Whoever chooses the endpoint writes it once.
fn forget_endpoint(new: &mut OpenStackClusterSpec, old: &mut OpenStackClusterSpec) {
    if old.control_plane_endpoint.as_ref().is_none_or(|endpoint| endpoint.host.is_empty()) {
        new.control_plane_endpoint = None;
        old.control_plane_endpoint = None;
    }
}

fn forget_api_server(
    new: &mut OpenStackClusterSpec,
    old: &mut OpenStackClusterSpec,
    stored: &OpenStackCluster,
) {
    if let (Some(after), Some(before)) = (&mut new.api_server, &mut old.api_server) {
        // Without a floating IP, address and port can be chosen later, once.
        if before.enable_floating_ip == Some(false) {
            if before.fixed_ip.as_deref().unwrap_or_default().is_empty() {
                after.fixed_ip = None;
                before.fixed_ip = None;
            }
            if before.port.is_none() {
                after.port = None;
            }
        }
        if let (Some(after), Some(before)) =
            (&mut after.managed_load_balancer, &mut before.managed_load_balancer)
        {
            for balancer in [after, before] {
                balancer.allowed_cidrs.clear();
                balancer.monitor = None;
            }
        }
    }
    // The address in use can be written down.
    let in_use = stored.status.api_server_managed_load_balancer.as_ref().map(|balancer| balancer.ip.as_str());
    let written =
        new.api_server.as_ref().and_then(|server| server.floating_ip.as_deref()).unwrap_or_default();
    if in_use == Some(written) {
        for spec in [new, old] {
            if let Some(server) = &mut spec.api_server {
                server.floating_ip = None;
            }
            if spec.api_server == Some(APIServer::default()) {
                spec.api_server = None;
            }
        }
    }
}

/// A network and subnets that were found by a filter can be pinned to the ids that were found.
fn forget_pinned_network(
    new: &mut OpenStackClusterSpec,
    old: &mut OpenStackClusterSpec,
    stored: &OpenStackCluster,
) {
    let (Some(after), Some(_), Some(found)) = (&new.network, &old.network, &stored.status.network) else {
        return;
    };
    let is_same_network = after.id.as_deref().unwrap_or_default() == found.id;
    if subnets_are_pinned(new, old, stored) {
        new.subnets.clear();
        old.subnets.clear();
    }
    if is_same_network {
        new.network = None;
        old.network = None;
    }
}

/// References to what was not found yet can be corrected until the cluster is provisioned. CAPO refuses that, which leaves
/// only deletion. Nothing was created for them: the status has what was found from the first reconcile that finds it.
fn forget_unresolved(
    new: &mut OpenStackClusterSpec,
    old: &mut OpenStackClusterSpec,
    stored: &OpenStackCluster,
) {
    let status = &stored.status;
    if status.initialization.as_ref().is_some_and(|done| done.provisioned) {
        return;
    }
    let has_network = status.network.is_some();
    // A managed network may exist before it is in the status.
    let is_managed = !(new.managed_subnets.is_empty() && old.managed_subnets.is_empty());
    let was_router_given = old.router.is_some();
    for spec in [new, old] {
        if !has_network && !is_managed {
            spec.network = None;
            spec.subnets.clear();
        }
        if status.router.is_none() && was_router_given {
            spec.router = None;
        }
        if status.external_network.is_none() && status.router.is_none() {
            spec.external_network = None;
        }
    }
}

fn subnets_are_pinned(
    new: &OpenStackClusterSpec,
    old: &OpenStackClusterSpec,
    stored: &OpenStackCluster,
) -> bool {
    let found = stored.status.network.as_ref().map(|network| network.subnets.as_slice()).unwrap_or_default();
    if new.subnets.len() != old.subnets.len() || found.is_empty() {
        return false;
    }
    new.subnets.iter().zip(&old.subnets).all(|(after, before)| {
        match (&before.filter, &before.id, &after.filter, &after.id) {
            (Some(filter), _, None, Some(id)) => {
                found.iter().any(|subnet| subnet.name == filter.name && subnet.id == *id)
            }
            (_, Some(_), Some(_), _) => false,
            // CAPO compares names only here, so other changes slip through.
            (Some(before), _, Some(after), _) => before == after,
            (_, Some(before), _, Some(after)) => before == after,
            _ => true,
        }
    })
}
