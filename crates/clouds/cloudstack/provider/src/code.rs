//! What can go wrong, by code.

capstan_controller::codes! {
    SECRET = "E-CS-SECRET", User,
        "the Secret with the keys of the CloudStack API is missing or incomplete",
        "make the Secret that acsEndpoint names, with the keys api-url, api-key and secret-key";
    CREDENTIALS = "E-CS-CREDENTIALS", User,
        "CloudStack refuses the keys",
        "put the keys of an enabled user into api-key and secret-key of the Secret";
    UNREACHABLE = "E-CS-UNREACHABLE", Cloud,
        "the CloudStack API does not answer",
        "check api-url of the Secret, the management server and the way there";
    PERMISSION = "E-CS-PERMISSION", Cloud,
        "the account may not do what is needed",
        "use keys of an account with the stock role User or more, or name another account";
    QUOTA = "E-CS-QUOTA", Cloud,
        "the account, its domain or its project has as much as it may have",
        "raise the limit or delete what is not used";
    CAPACITY = "E-CS-CAPACITY", Cloud,
        "the cloud has no room",
        "wait, free capacity, or choose a smaller offering or another failure domain";
    NOT_FOUND = "E-CS-NOTFOUND", User,
        "something that the manifest names does not exist in CloudStack",
        "correct the name, or make it visible to the account";
    AMBIGUOUS = "E-CS-AMBIGUOUS", User,
        "several things in CloudStack have the name that the manifest gives",
        "give the id instead of the name";
    REFUSED = "E-CS-REFUSED", User,
        "CloudStack refuses what the manifest asks for",
        "read what it says";
    FAILED = "E-CS-FAILED", Cloud,
        "something failed inside CloudStack",
        "read what it says; the management server's log has more";
    BOOT_DATA = "E-CS-BOOT-DATA", Cluster,
        "the boot data of a machine cannot be read or is too long",
        "check the Secret that the Machine names; shorten files and commands of the bootstrap configuration";
    TEMPLATE = "E-CS-TEMPLATE", User,
        "the image of a machine does not fit its Kubernetes version or the way it shall boot",
        "name a template that holds the version, or correct the version or the details";
    DEPLOY = "E-CS-DEPLOY", Cloud,
        "a virtual machine was ordered and did not come up",
        "read what CloudStack says; it is removed and ordered again after a while";
    NOT_OURS = "E-CS-NOT-OURS", User,
        "something in CloudStack is in the way that was not made for this object",
        "rename or remove it, or correct the id in the manifest";
    UNSUPPORTED = "E-CS-UNSUPPORTED", User,
        "the manifest asks for something that is not supported yet",
        "use an isolated or shared network";
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
