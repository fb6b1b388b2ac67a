//! Commands that fix failures.

use capstan_provider_kit::Failure;

use crate::code;

const FLAVOR: &str = "flavor.id= flavor.filter.name=FLAVOR";
const IMAGE: &str = "image.id= image.filter.name=IMAGE";

/// The field that a message names, and the fields that are set instead. The first that fits counts.
const MACHINE_FIELDS: [(&str, &str); 6] = [
    ("spec.image", IMAGE),
    ("spec.flavor", FLAVOR),
    ("spec.serverGroup", "serverGroup="),
    ("spec.securityGroups", "securityGroups="),
    // The cluster's network is the default.
    ("spec.ports", "ports="),
    // Nova's name of the field.
    ("key_name", "sshKeyName=KEY_PAIR"),
];

/// The same for the OpenStackCluster.
const CLUSTER_FIELDS: [(&str, &str); 4] = [
    ("spec.externalNetwork", "externalNetwork.id= externalNetwork.filter.name=NETWORK"),
    ("spec.network", "network.id= network.filter.name=NETWORK"),
    ("spec.subnets", "subnets="),
    ("spec.router", "router="),
];

/// Commands for a failure with one of our codes; empty if only the cloud's operator can act, or it is retried.
pub(crate) fn commands(failure: &Failure<'_>) -> Vec<String> {
    let is = |code: capstan_controller::Code| failure.code == code.id();
    if is(code::SECRET) || is(code::CREDENTIALS) || is(code::PERMISSION) {
        return secret(failure).into_iter().collect();
    }
    if is(code::UNREACHABLE) {
        return address(failure).into_iter().collect();
    }
    if is(code::APPLICATION_CREDENTIAL) {
        return made_again(failure).into_iter().collect();
    }
    if is(code::QUOTA) {
        return failure.scale();
    }
    if is(code::CAPACITY) {
        return failure.set_machines(FLAVOR);
    }
    if is(code::IMAGE) {
        return failure.set_machines(IMAGE);
    }
    if is(code::SERVER) {
        return failure.replace_machine();
    }
    if is(code::BOOT_DATA) {
        return failure.set_bootstrap("files=");
    }
    let named = |table: &'static [(&str, &str)]| {
        table.iter().find(|(field, _)| failure.message.contains(field)).map(|(_, fields)| *fields)
    };
    match (named(&MACHINE_FIELDS), named(&CLUSTER_FIELDS)) {
        (Some(fields), _) if failure.group.is_some() => failure.set_machines(fields),
        (_, Some(fields)) => failure.set_infrastructure(fields),
        _ => Vec::new(),
    }
}

/// Writes the Secret anew from a file: arguments of commands are in the shell's history.
fn secret(failure: &Failure<'_>) -> Option<String> {
    let (namespace, name) = secret_name(failure)?;
    Some(format!(
        "kubectl create secret generic {name} -n {namespace} --from-file=clouds.yaml=CLOUDS_YAML --dry-run=client -o yaml \
         | kubectl apply -f -"
    ))
}

/// Shows the URL that does not answer. A Secret that was right before an outage is not written.
fn address(failure: &Failure<'_>) -> Option<String> {
    let (namespace, name) = secret_name(failure)?;
    Some(format!(
        "kubectl get secret {name} -n {namespace} -o jsonpath='{{.data.clouds\\.yaml}}' | base64 -d | grep auth_url"
    ))
}

/// Namespace and name of the Secret that a message names.
fn secret_name<'a>(failure: &Failure<'a>) -> Option<(&'a str, &'a str)> {
    failure.after("Secret ")?.trim_end_matches(')').split_once('/')
}

/// Another application credential is made once the Secret of a deleted one is gone.
fn made_again(failure: &Failure<'_>) -> Option<String> {
    let name = failure.after("application credential in Secret ")?;
    let was_deleted = failure.message.contains("was deleted");
    was_deleted.then(|| format!("kubectl delete secret {name} -n {}", failure.namespace))
}

#[cfg(test)]
mod tests {
    use capstan_openstack_types::definitions::definitions;
    use capstan_provider_kit::MachineGroup;
    use capstan_provider_kit::testing::unknown_fields;

    use super::*;

    #[test]
    fn messages_lead_to_the_field_that_is_wrong() {
        for (message, expected) in [
            (
                "E-OS-NOTFOUND: spec.image: no image matches {\"name\":\"x\"}; correct the filter, or create the image",
                "capstan set demo -n ns --control-plane image.id= image.filter.name=IMAGE",
            ),
            (
                "E-OS-NOTFOUND: spec.flavor: there is no flavor \"x\"; correct the name",
                "capstan set demo -n ns --control-plane flavor.id= flavor.filter.name=FLAVOR",
            ),
            (
                "E-OS-AMBIGUOUS: spec.ports[0].network: 2 networks match {}: a, b; use the id of one",
                "capstan set demo -n ns --control-plane ports=",
            ),
            (
                "E-OS-NOTFOUND: spec.externalNetwork: no external network matches {}",
                "capstan set demo -n ns --infrastructure externalNetwork.id= externalNetwork.filter.name=NETWORK",
            ),
            (
                "E-OS-SECRET: there is no Secret ns/cloud: create it with the key clouds.yaml",
                "kubectl create secret generic cloud -n ns --from-file=clouds.yaml=CLOUDS_YAML ",
            ),
            (
                "E-OS-CREDENTIALS: Keystone: 401; correct clouds.yaml (cloud one of Secret ns/cloud)",
                "kubectl create secret generic cloud -n ns ",
            ),
            (
                "E-OS-UNREACHABLE: no answer; check auth_url (cloud one of Secret ns/cloud)",
                "kubectl get secret cloud -n ns -o jsonpath='{.data.clouds\\.yaml}' | base64 -d | grep auth_url",
            ),
            (
                "E-OS-CAPACITY: no valid host",
                "capstan set demo -n ns --control-plane flavor.id= flavor.filter.name=FLAVOR",
            ),
            ("E-OS-QUOTA: Nova: quota exceeded", "capstan scale demo -n ns --control-plane N"),
            ("E-OS-SERVER: the server is in state ERROR", "capstan delete machine demo-1 -n ns --yes"),
            (
                "E-OS-APP-CREDENTIAL: the application credential in Secret demo-cloud was deleted in Keystone",
                "kubectl delete secret demo-cloud -n ns",
            ),
        ] {
            let failure = Failure {
                code: message.split(':').next().unwrap_or_default(),
                message,
                namespace: "ns",
                cluster: "demo",
                machine: Some("demo-1"),
                group: Some(MachineGroup::ControlPlane),
            };
            let found = commands(&failure);
            assert!(
                found.first().is_some_and(|command| command.starts_with(expected)),
                "{message}: {found:?}"
            );
        }
    }

    #[test]
    fn fields_are_those_of_the_stored_version() {
        let definitions = definitions();
        let machines = MACHINE_FIELDS.map(|(_, fields)| ("OpenStackMachine", fields));
        let cluster = CLUSTER_FIELDS.map(|(_, fields)| ("OpenStackCluster", fields));
        for (kind, fields) in machines.into_iter().chain(cluster) {
            assert_eq!(unknown_fields(&definitions, kind, fields), [""; 0], "{kind}: {fields}");
        }
    }

    #[test]
    fn what_only_the_operator_can_mend_has_no_command() {
        for code in [code::LOAD_BALANCER, code::BUSY, code::FAILED] {
            let failure = Failure {
                code: code.id(),
                message: "",
                namespace: "ns",
                cluster: "demo",
                machine: None,
                group: None,
            };
            assert!(commands(&failure).is_empty(), "{}", code.id());
        }
    }
}
