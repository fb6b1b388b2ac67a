//! Maps recorded command names to the client's command types.

use capstan_cloudstack_client::commands::*;

use super::replay::{call, job, list};
use super::{Case, Tally};

/// Replays a case if the client has its command and the recording has a response.
pub async fn replay(case: &Case, tally: &mut Tally) {
    let Some(command) = case.command.as_deref().filter(|_| case.http_status.is_some()) else {
        return;
    };
    match command {
        "listZones" => list::<ListZones>(case, tally).await,
        "listServiceOfferings" => list::<ListServiceOfferings>(case, tally).await,
        "listDiskOfferings" => list::<ListDiskOfferings>(case, tally).await,
        "listNetworkOfferings" => list::<ListNetworkOfferings>(case, tally).await,
        "listVPCOfferings" => list::<ListVpcOfferings>(case, tally).await,
        "listTemplates" => list::<ListTemplates>(case, tally).await,
        "listVirtualMachines" | "listVirtualMachinesMetrics" => {
            list::<ListVirtualMachines>(case, tally).await
        }
        "listNetworks" => list::<ListNetworks>(case, tally).await,
        "listVPCs" => list::<ListVpcs>(case, tally).await,
        "listPublicIpAddresses" => list::<ListPublicIpAddresses>(case, tally).await,
        "listLoadBalancerRules" => list::<ListLoadBalancerRules>(case, tally).await,
        "listLoadBalancerRuleInstances" if case.params.contains_key("lbvmips") => {
            list::<ListLoadBalancerMembers>(case, tally).await;
        }
        "listLoadBalancerRuleInstances" => list::<ListLoadBalancerRuleInstances>(case, tally).await,
        "listFirewallRules" => list::<ListFirewallRules>(case, tally).await,
        "listEgressFirewallRules" => list::<ListEgressFirewallRules>(case, tally).await,
        "listPortForwardingRules" => list::<ListPortForwardingRules>(case, tally).await,
        "listTags" => list::<ListTags>(case, tally).await,
        "listAffinityGroups" => list::<ListAffinityGroups>(case, tally).await,
        "listVolumes" => list::<ListVolumes>(case, tally).await,
        "listSSHKeyPairs" => list::<ListSshKeyPairs>(case, tally).await,
        "listDomains" => list::<ListDomains>(case, tally).await,
        "listAccounts" => list::<ListAccounts>(case, tally).await,
        "listUsers" => list::<ListUsers>(case, tally).await,
        "listProjects" => list::<ListProjects>(case, tally).await,
        "listResourceLimits" => list::<ListResourceLimits>(case, tally).await,
        "listAsyncJobs" => list::<ListAsyncJobs>(case, tally).await,
        "listApis" => list::<ListApis>(case, tally).await,
        "listKubernetesClusters" => list::<ListKubernetesClusters>(case, tally).await,
        "listCapabilities" => call::<ListCapabilities>(case, tally).await,
        "getUser" => call::<GetUser>(case, tally).await,
        "getUserKeys" => call::<GetUserKeys>(case, tally).await,
        "getVirtualMachineUserData" => call::<GetVirtualMachineUserData>(case, tally).await,
        "queryAsyncJobResult" => call::<QueryAsyncJobResult>(case, tally).await,
        "recoverVirtualMachine" => call::<RecoverVirtualMachine>(case, tally).await,
        "updateVirtualMachine" => call::<UpdateVirtualMachine>(case, tally).await,
        "createNetwork" => call::<CreateNetwork>(case, tally).await,
        "deleteVolume" => call::<DeleteVolume>(case, tally).await,
        "registerSSHKeyPair" => call::<RegisterSshKeyPair>(case, tally).await,
        "createSSHKeyPair" => call::<CreateSshKeyPair>(case, tally).await,
        "deleteSSHKeyPair" => call::<DeleteSshKeyPair>(case, tally).await,
        "addVirtualMachinesToKubernetesCluster" => {
            call::<AddVirtualMachinesToKubernetesCluster>(case, tally).await;
        }
        "removeVirtualMachinesFromKubernetesCluster" => {
            call::<RemoveVirtualMachinesFromKubernetesCluster>(case, tally).await;
        }
        "createKubernetesCluster" => job::<CreateKubernetesCluster>(case, tally).await,
        "deleteKubernetesCluster" => job::<DeleteKubernetesCluster>(case, tally).await,
        "deployVirtualMachine" => job::<DeployVirtualMachine>(case, tally).await,
        "destroyVirtualMachine" => job::<DestroyVirtualMachine>(case, tally).await,
        "expungeVirtualMachine" => job::<ExpungeVirtualMachine>(case, tally).await,
        "startVirtualMachine" => job::<StartVirtualMachine>(case, tally).await,
        "stopVirtualMachine" => job::<StopVirtualMachine>(case, tally).await,
        "rebootVirtualMachine" => job::<RebootVirtualMachine>(case, tally).await,
        "deleteNetwork" => job::<DeleteNetwork>(case, tally).await,
        "restartNetwork" => job::<RestartNetwork>(case, tally).await,
        "createVPC" => job::<CreateVpc>(case, tally).await,
        "deleteVPC" => job::<DeleteVpc>(case, tally).await,
        "associateIpAddress" => job::<AssociateIpAddress>(case, tally).await,
        "disassociateIpAddress" => job::<DisassociateIpAddress>(case, tally).await,
        "createLoadBalancerRule" => job::<CreateLoadBalancerRule>(case, tally).await,
        "updateLoadBalancerRule" => job::<UpdateLoadBalancerRule>(case, tally).await,
        "deleteLoadBalancerRule" => job::<DeleteLoadBalancerRule>(case, tally).await,
        "assignToLoadBalancerRule" => job::<AssignToLoadBalancerRule>(case, tally).await,
        "removeFromLoadBalancerRule" => job::<RemoveFromLoadBalancerRule>(case, tally).await,
        "createFirewallRule" => job::<CreateFirewallRule>(case, tally).await,
        "deleteFirewallRule" => job::<DeleteFirewallRule>(case, tally).await,
        "createEgressFirewallRule" => job::<CreateEgressFirewallRule>(case, tally).await,
        "deleteEgressFirewallRule" => job::<DeleteEgressFirewallRule>(case, tally).await,
        "createPortForwardingRule" => job::<CreatePortForwardingRule>(case, tally).await,
        "deletePortForwardingRule" => job::<DeletePortForwardingRule>(case, tally).await,
        "createTags" => job::<CreateTags>(case, tally).await,
        "deleteTags" => job::<DeleteTags>(case, tally).await,
        "createAffinityGroup" => job::<CreateAffinityGroup>(case, tally).await,
        "deleteAffinityGroup" => job::<DeleteAffinityGroup>(case, tally).await,
        "updateVMAffinityGroup" => job::<UpdateVmAffinityGroup>(case, tally).await,
        "createVolume" => job::<CreateVolume>(case, tally).await,
        "attachVolume" => job::<AttachVolume>(case, tally).await,
        "detachVolume" => job::<DetachVolume>(case, tally).await,
        unsupported => *tally.unsupported.entry(unsupported.to_owned()).or_default() += 1,
    }
}
