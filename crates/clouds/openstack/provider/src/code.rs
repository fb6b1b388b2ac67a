//! Error codes.

capstan_controller::codes! {
    SECRET = "E-OS-SECRET", User,
        "the Secret with the OpenStack credentials is missing or incomplete",
        "create the Secret that identityRef refers to, with the key clouds.yaml and the cloud that cloudName names";
    IDENTITY = "E-OS-IDENTITY", User,
        "the OpenStackClusterIdentity is missing or does not allow the namespace",
        "create it, or let its namespaceSelector match the namespace of the object";
    CREDENTIALS = "E-OS-CREDENTIALS", User,
        "Keystone rejected the credentials",
        "put credentials of an enabled user, or an application credential that was not revoked, into clouds.yaml of the Secret";
    UNREACHABLE = "E-OS-UNREACHABLE", Cloud,
        "an OpenStack API is unreachable",
        "check auth_url of clouds.yaml, the service in the message and the network to it";
    PERMISSION = "E-OS-PERMISSION", Cloud,
        "the user does not have a role that is needed",
        "give the user the roles member and, for load balancers, load-balancer_member in the project";
    QUOTA = "E-OS-QUOTA", Cloud,
        "a quota of the project is exceeded",
        "raise the quota, or delete unused resources";
    CAPACITY = "E-OS-CAPACITY", Cloud,
        "the cloud has no capacity",
        "free capacity, choose another flavor or availability zone; it is retried";
    NOT_FOUND = "E-OS-NOTFOUND", User,
        "the manifest refers to something that does not exist in OpenStack",
        "correct the name, filter or id in the manifest, or make it visible to the project";
    AMBIGUOUS = "E-OS-AMBIGUOUS", User,
        "a filter in the manifest matches several things in OpenStack",
        "use the id instead of the filter";
    REFUSED = "E-OS-REFUSED", User,
        "OpenStack rejected a value of the manifest",
        "read OpenStack's error in the message and correct the manifest";
    BUSY = "E-OS-BUSY", Cloud,
        "OpenStack refused a change because the resource is in use or being changed",
        "nothing: it is retried; if it repeats, find what uses the resource";
    FAILED = "E-OS-FAILED", Cloud,
        "OpenStack had an internal error",
        "read OpenStack's error in the message; its request id is in the logs of the service";
    SERVER = "E-OS-SERVER", Cloud,
        "a server is in state ERROR",
        "read Nova's fault in the message; delete the Machine, or let a MachineHealthCheck replace it";
    LOAD_BALANCER = "E-OS-LOADBALANCER", Cloud,
        "a load balancer is in state ERROR",
        "ask an administrator to fail it over, or delete it in Octavia: it is created again";
    BOOT_DATA = "E-OS-BOOT-DATA", Cluster,
        "the bootstrap data of a machine cannot be read or is too long",
        "check the Secret in spec.bootstrap.dataSecretName of the Machine; shorten files and commands of the bootstrap configuration";
    NOT_OURS = "E-OS-NOT-OURS", User,
        "a resource in OpenStack has a name that this cluster needs and belongs to another management cluster",
        "use another name or namespace for the cluster, or another project";
    APPLICATION_CREDENTIAL = "E-OS-APP-CREDENTIAL", User,
        "the application credential of a cluster cannot be created, was deleted or has expired",
        "if it was deleted, delete the Secret CLUSTER-workload-cloud-config and another is made; to make one, identityRef needs a password or an unrestricted application credential";
    IMAGE_IMPORT = "E-OS-IMAGE-IMPORT", User,
        "an image could not be downloaded, or cannot be used",
        "check the URL in the annotation capstan.dev/openstack-images and that Glance reaches it; it is retried";
    IMAGE = "E-OS-IMAGE", User,
        "the image of a machine does not match its Kubernetes version or flavor",
        "use an image with this Kubernetes version, a larger flavor, or correct the version";
    UNSUPPORTED = "E-OS-UNSUPPORTED", User,
        "the manifest or the cloud lacks a feature that is needed",
        "read the message: it names the field";
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
