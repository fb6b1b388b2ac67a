//! Error codes.

capstan_controller::codes! {
    SECRET = "E-CS-SECRET", User,
        "the Secret with the CloudStack credentials is missing or incomplete",
        "create the Secret that acsEndpoint refers to, with the keys api-url, api-key and secret-key";
    CREDENTIALS = "E-CS-CREDENTIALS", User,
        "CloudStack rejected the credentials",
        "set api-key and secret-key of the Secret to the keys of an enabled user";
    UNREACHABLE = "E-CS-UNREACHABLE", Cloud,
        "the CloudStack API is unreachable",
        "check api-url of the Secret, the CloudStack management server and the network to it";
    PERMISSION = "E-CS-PERMISSION", Cloud,
        "the account does not have a permission that is needed",
        "use the keys of an account with at least the stock role User, or another account";
    QUOTA = "E-CS-QUOTA", Cloud,
        "a quota of the account, its domain or its project is exceeded",
        "raise the limit, or delete unused resources";
    CAPACITY = "E-CS-CAPACITY", Cloud,
        "the cloud has no capacity for the machine",
        "delete or stop virtual machines of the failure domain, add hosts, or use a machine template with a smaller offering; it is retried";
    NOT_FOUND = "E-CS-NOTFOUND", User,
        "the manifest refers to something that does not exist in CloudStack",
        "correct the name or id in the manifest, or make it visible to the account";
    AMBIGUOUS = "E-CS-AMBIGUOUS", User,
        "a name in the manifest matches several things in CloudStack",
        "use the id instead of the name";
    REFUSED = "E-CS-REFUSED", User,
        "CloudStack rejected a value of the manifest",
        "read CloudStack's error in the message and correct the manifest";
    FAILED = "E-CS-FAILED", Cloud,
        "CloudStack had an internal error",
        "read CloudStack's error in the message and the log of its management server";
    BOOT_DATA = "E-CS-BOOT-DATA", Cluster,
        "the bootstrap data of a machine cannot be read or is too long",
        "check the Secret in spec.bootstrap.dataSecretName of the Machine; shorten files and commands of the bootstrap configuration";
    TEMPLATE = "E-CS-TEMPLATE", User,
        "the template of a machine does not match its Kubernetes version or boot settings",
        "use a template for this Kubernetes version, or correct the version or the details";
    DEPLOY = "E-CS-DEPLOY", Cloud,
        "a virtual machine was created but did not start",
        "read CloudStack's error in the message; the machine is removed and created again after a while";
    DELETE = "E-CS-DELETE", User,
        "CloudStack refuses to delete a resource of a cluster",
        "read CloudStack's error in the message: turn delete protection of the resource off, or remove what holds it; it is retried";
    EXPUNGE = "E-CS-EXPUNGE", Cloud,
        "a network cannot be deleted until CloudStack has expunged the virtual machines that were in it",
        "wait for expunge.delay and expunge.interval, or ask an administrator to expunge them";
    NOT_OURS = "E-CS-NOT-OURS", User,
        "a resource in CloudStack conflicts with this object and is not owned by it",
        "rename or delete that resource, or correct the id in the manifest";
    ACL = "E-CS-ACL", User,
        "the access list of a VPC tier blocks traffic that a cluster needs",
        "add rules that allow what the message names to the access list, or replace the list of the tier";
    KUBERNETES_SERVICE = "E-CS-CKS", User,
        "syncWithACS is set and the Kubernetes service of CloudStack is off",
        "remove syncWithACS from the CloudStackCluster, or ask an administrator to set cloud.kubernetes.service.enabled and restart the management server";
    ENDPOINT = "E-CS-ENDPOINT", User,
        "the endpoint of the cluster does not fit its network",
        "set spec.controlPlaneEndpoint.host of the CloudStackCluster as described in the message";
    ENDPOINT_IN_USE = "E-CS-ENDPOINT-IN-USE", User,
        "a failure domain is to be removed whose network has the endpoint of the cluster",
        "put the failure domain back into spec.failureDomains of the CloudStackCluster; to leave it, create another cluster and move the workloads";
    UNSUPPORTED = "E-CS-UNSUPPORTED", User,
        "the network offering in the manifest cannot serve a cluster",
        "set network.offering of the failure domain to an offering that has what the message names, or leave it empty for the default";
}

#[cfg(test)]
mod tests {
    #[test]
    fn codes_are_unique() {
        let mut ids: Vec<_> = super::CATALOGUE.iter().map(|code| code.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), super::CATALOGUE.len());
    }
}
