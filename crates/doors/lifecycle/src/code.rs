//! Error codes.

capstan_controller::codes! {
    INVALID = "E-LC-INVALID", User,
        "a cluster of the lifecycle API cannot be generated from its manifests",
        "correct the field that the message names";
    MISSING = "E-LC-MISSING", User,
        "a manifest refers to an object that does not exist",
        "create the CloudStackDatacenterConfig or CloudStackMachineConfig, or correct the reference";
    DATACENTER = "E-LC-DATACENTER", User,
        "CloudStack does not have what a CloudStackDatacenterConfig names",
        "correct the CloudStackDatacenterConfig or its Secret; the message names the field";
    MACHINE_CONFIG = "E-LC-MACHINE-CONFIG", User,
        "CloudStack does not have what a CloudStackMachineConfig names",
        "correct the CloudStackMachineConfig; the message names the field";
    ADDRESS_IN_USE = "E-LC-ADDRESS", User,
        "the address of a cluster's API server is in use",
        "choose a free address in controlPlaneConfiguration.endpoint.host";
    CNI = "E-LC-CNI", User,
        "the manifests of a cluster's CNI cannot be rendered",
        "correct cniConfig.cilium, or the chart of --lifecycle-cni; the message has the error of helm";
    REGISTRY = "E-LC-REGISTRY", User,
        "the credentials of a registry mirror are missing or incomplete",
        "create Secret registry-credentials in namespace eksa-system with the fields username and password";
    RELEASES = "E-LC-RELEASES", User,
        "the file of --lifecycle-releases cannot be used",
        "correct the file; the message names the field";
}
