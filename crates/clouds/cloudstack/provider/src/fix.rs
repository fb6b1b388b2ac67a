//! Commands that fix failures.

use capstan_provider_kit::Failure;

use crate::code;

/// What a message asks for, and the fields that do it. The first that fits counts.
const MACHINE_FIELDS: [(&str, &str); 13] = [
    ("set spec.diskOffering.customSizeInGB", "diskOffering.customSizeInGB=GIGABYTES"),
    ("remove spec.diskOffering.customSizeInGB", "diskOffering.customSizeInGB="),
    ("correct spec.diskOffering", "diskOffering.id= diskOffering.name=DISK_OFFERING"),
    ("give spec.diskOffering.id", "diskOffering.name= diskOffering.id=ID"),
    ("give spec.offering.id", "offering.name= offering.id=ID"),
    ("give spec.template.id", "template.name= template.id=ID"),
    ("correct spec.offering", "offering.id= offering.name=OFFERING"),
    ("correct spec.template", "template.id= template.name=TEMPLATE"),
    ("in spec.template", "template.id= template.name=TEMPLATE"),
    ("correct spec.sshKey", "sshKey=KEY_PAIR"),
    ("spec.details orders UEFI", "details.UEFI="),
    // The failure domain's network is the default.
    ("spec.networks", "networks="),
    ("spec.affinity", "affinity="),
];

/// The same for the CloudStackCluster; `{}` is the path of the failure domain.
const CLUSTER_FIELDS: [(&str, &str); 8] = [
    ("spec.controlPlaneEndpoint.host", "'controlPlaneEndpoint.host=\"\"'"),
    ("correct zone of failure domain", "{}zone.id= {}zone.name=ZONE"),
    ("network.offering of failure domain", "{}zone.network.offering="),
    ("correct network of failure domain", "{}zone.network.id= {}zone.network.name=NETWORK"),
    ("give the id in network of failure domain", "{}zone.network.id=ID"),
    ("network.vpc of failure domain", "{}zone.network.vpc="),
    ("correct project of the failure domain", "{}project="),
    ("correct account and domain of the failure domain", "{}account= {}domain="),
];

/// Commands for a failure with one of our codes; empty if only the cloud's operator can act, or it is retried.
pub(crate) fn commands(failure: &Failure<'_>) -> Vec<String> {
    let is = |code: capstan_controller::Code| failure.code == code.id();
    if is(code::SECRET) || is(code::CREDENTIALS) || is(code::PERMISSION) {
        return secret(failure).into_iter().collect();
    }
    if is(code::UNREACHABLE) {
        return url(failure).into_iter().collect();
    }
    if is(code::QUOTA) {
        return failure.scale();
    }
    if is(code::CAPACITY) && failure.group.is_some() {
        return failure.set_machines("offering.id= offering.name=OFFERING");
    }
    if is(code::BOOT_DATA) {
        return match failure.message.contains("shorten files") {
            true => failure.set_bootstrap("files="),
            false => failure.replace_machine(),
        };
    }
    let asked = |table: &'static [(&str, &str)]| {
        table.iter().find(|(words, _)| failure.message.contains(words)).map(|(_, fields)| *fields)
    };
    match (asked(&MACHINE_FIELDS), asked(&CLUSTER_FIELDS)) {
        (Some(fields), _) if failure.group.is_some() => failure.set_machines(fields),
        (_, Some(fields)) => {
            let domain = failure.after("of failure domain ").unwrap_or("0");
            failure.set_infrastructure(&fields.replace("{}", &format!("failureDomains.{domain}.")))
        }
        _ => Vec::new(),
    }
}

/// Writes the Secret anew. Values come from the environment: arguments of commands are in the shell's history. Without a
/// variable the shell prints an error and nothing is written.
fn secret(failure: &Failure<'_>) -> Option<String> {
    let (namespace, name) = secret_name(failure)?;
    let field =
        |field: &str, variable: &str| format!(" --from-literal={field}=\"${{CLOUDSTACK_{variable}:?}}\"");
    Some(format!(
        "kubectl create secret generic {name} -n {namespace}{}{}{} --dry-run=client -o yaml | kubectl apply -f -",
        field("api-url", "API_URL"),
        field("api-key", "API_KEY"),
        field("secret-key", "SECRET_KEY")
    ))
}

/// Shows the URL that does not answer. A Secret that was right before an outage is not written.
fn url(failure: &Failure<'_>) -> Option<String> {
    let (namespace, name) = secret_name(failure)?;
    Some(format!("kubectl get secret {name} -n {namespace} -o jsonpath='{{.data.api-url}}' | base64 -d"))
}

/// Namespace and name of the Secret that a message names.
fn secret_name<'a>(failure: &Failure<'a>) -> Option<(&'a str, &'a str)> {
    failure.after("Secret ")?.split_once('/')
}

#[cfg(test)]
mod tests {
    use capstan_cloudstack_types::definitions::definitions;
    use capstan_provider_kit::MachineGroup;
    use capstan_provider_kit::testing::unknown_fields;

    use super::*;

    #[test]
    fn fields_are_those_of_the_stored_version() {
        let definitions = definitions();
        let machines = MACHINE_FIELDS.map(|(_, fields)| ("CloudStackMachine", fields.to_owned()));
        let cluster = CLUSTER_FIELDS
            .map(|(_, fields)| ("CloudStackCluster", fields.replace("{}", "failureDomains.fd-1.")));
        for (kind, fields) in machines.into_iter().chain(cluster) {
            assert_eq!(unknown_fields(&definitions, kind, &fields), [""; 0], "{kind}: {fields}");
        }
    }

    #[test]
    fn messages_lead_to_the_field_that_is_wrong() {
        for (message, expected) in [
            (
                "E-CS-NOTFOUND: there is no template \"x\" that the account can use in the zone: correct spec.template",
                "capstan set demo -n default --control-plane template.id= template.name=TEMPLATE",
            ),
            (
                "E-CS-NOTFOUND: there is no zone named \"z\" that the account can use: correct zone of failure domain fd-1",
                "capstan set demo -n default --infrastructure failureDomains.fd-1.zone.id= failureDomains.fd-1.zone.name=ZONE",
            ),
            (
                "E-CS-SECRET: there is no Secret default/keys: make it with the fields api-url, api-key and secret-key",
                "kubectl create secret generic keys -n default --from-literal=api-url=\"${CLOUDSTACK_API_URL:?}\" ",
            ),
            (
                "E-CS-UNREACHABLE: no answer; check api-url of Secret default/keys and the management server behind it",
                "kubectl get secret keys -n default -o jsonpath='{.data.api-url}' | base64 -d",
            ),
            (
                "E-CS-CREDENTIALS: CloudStack refuses the keys in Secret ns/keys: put those of an enabled user",
                "kubectl create secret generic keys -n ns ",
            ),
            (
                "E-CS-AMBIGUOUS: more than one template is called \"x\": give spec.template.id",
                "capstan set demo -n default --control-plane template.name= template.id=ID",
            ),
        ] {
            let failure = Failure {
                code: message.split(':').next().unwrap_or_default(),
                message,
                namespace: "default",
                cluster: "demo",
                machine: None,
                group: Some(MachineGroup::ControlPlane),
            };
            let found = commands(&failure);
            assert!(
                found.first().is_some_and(|command| command.starts_with(expected)),
                "{message}: {found:?}"
            );
        }
    }
}
