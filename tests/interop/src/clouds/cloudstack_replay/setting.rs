//! The initial state of the recorded server, and the steps between its cases that were not recorded.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;
use capstan_sim_cloudstack::{
    AccountLayout, DomainLayout, Layout, OfferedSize, RoleType, Settings, Size, TemplateLayout, ZoneLayout,
};

/// Two zones of small hosts, one domain, four accounts.
pub fn layout() -> Result<Layout> {
    let zone = |name: &str, hosts, start: Ipv4Addr, count, guest: &str| -> Result<ZoneLayout> {
        let mut zone = ZoneLayout::new(name, hosts, start, count);
        zone.host_size = Size { cores: 4, mhz: 8000, memory_mib: 8192 };
        zone.guest_cidr = guest.parse()?;
        Ok(zone)
    };
    let fixed = |cores, mhz, memory_mib| OfferedSize::Fixed(Size { cores, mhz, memory_mib });
    Ok(Layout {
        zones: vec![
            zone("zone-a", 4, Ipv4Addr::new(192, 168, 2, 2), 199, "10.1.1.0/24")?,
            zone("zone-b", 2, Ipv4Addr::new(192, 168, 3, 2), 6, "10.2.1.0/24")?,
        ],
        domains: vec![DomainLayout {
            name: "dom1".to_owned(),
            network_domain: Some("dom1.example".to_owned()),
            accounts: [
                ("alice", RoleType::User),
                ("bob", RoleType::User),
                ("lim", RoleType::User),
                ("dadmin", RoleType::DomainAdmin),
            ]
            .map(|(name, role)| AccountLayout::new(name, role))
            .to_vec(),
        }],
        service_offerings: vec![
            ("Small Instance".to_owned(), fixed(1, 500, 512)),
            ("Medium Instance".to_owned(), fixed(1, 1000, 1024)),
        ],
        disk_offerings: vec![
            ("Small".to_owned(), "Small Disk, 5 GB".to_owned(), Some(5)),
            ("Custom".to_owned(), "Custom Disk".to_owned(), None),
        ],
        templates: vec![TemplateLayout {
            name: "CentOS 5.6 (64-bit) no GUI (Simulator)".to_owned(),
            kubernetes: None,
            gib: 2,
        }],
    })
}

/// Settings of the recorded server that differ from the defaults.
pub fn settings() -> Settings {
    Settings {
        expunge_delay: Duration::from_secs(60),
        expunge_interval: Duration::from_secs(30),
        network_gc_wait: Duration::from_secs(60),
        network_gc_interval: Duration::from_secs(60),
        ..Settings::default()
    }
}

/// Steps before a case, one per line:
///
/// ```text
/// account command name=value … -> /pointer/into/reply => parameter | case:parameter | $variable ; …
/// & account command …     does not wait for the job
/// ? account command …     must fail
/// ! word …                 an action outside the API
/// ```
///
/// A value may contain `{case:parameter}` (as recorded), `{case#pointer}` (of the recorded response), `{$variable}`,
/// and `{Z}`, `{ZB}`, `{T}`, `{S}`, `{N}`, `{I}`, `{D}` for zones, template, service offering, first network, network
/// offering and disk offering.
pub const BEFORE: &[(&str, &str)] = &[
    (
        "createNetwork_ok",
        "alice listNetworkOfferings name=DefaultIsolatedNetworkOfferingWithSourceNatService -> /networkoffering/0/id => \
         networkofferingid\n! unlimited alice",
    ),
    (
        "createNetwork_l2_ok",
        "alice listNetworkOfferings name=DefaultL2NetworkOffering -> /networkoffering/0/id => networkofferingid",
    ),
    (
        "deployVirtualMachine_insufficient_capacity",
        "admin createServiceOffering name=huge displaytext=huge cpunumber=64 cpuspeed=4000 memory=1048576 -> \
         /serviceoffering/id => serviceofferingid",
    ),
    (
        "deployVirtualMachine_custom_offering_without_details",
        "admin createServiceOffering name=custom displaytext=custom customized=true -> /serviceoffering/id => \
         serviceofferingid",
    ),
    (
        "deployVirtualMachine_custom_constrained_out_of_range",
        "admin createServiceOffering name=constrained displaytext=constrained customized=true cpuspeed=500 mincpunumber=1 \
         maxcpunumber=4 minmemory=256 maxmemory=4096 -> /serviceoffering/id => serviceofferingid",
    ),
    ("deployVirtualMachine_hostid_as_user", "admin listHosts zoneid={Z} -> /host/0/id => hostid"),
    (
        "listVirtualMachines_user",
        "? alice {deploy} networkids={N} name=ip3 ipaddress=192.0.2.1 startvm=false",
    ),
    ("updateVirtualMachine_displayname", "alice startVirtualMachine id={stopVirtualMachine_ok:id}"),
    (
        "expungeVirtualMachine_user_allowed",
        "alice destroyVirtualMachine id={recoverVirtualMachine_user_allowed:id}",
    ),
    ("stopVirtualMachine_ok", "alice {deploy} networkids={N} name=life1 -> /id => id"),
    ("destroyVirtualMachine_admin_expunge_ok", "alice {deploy} networkids={N} name=life2 -> /id => id"),
    (
        "listVolumes_vm",
        "alice {deploy} networkids={N} name=life3 diskofferingid={D} -> /id => virtualmachineid",
    ),
    (
        "destroyVirtualMachine_user_expunge_true_allowed",
        "! may-expunge alice\nalice {deploy} networkids={N} name=life5 -> /id => id",
    ),
    (
        "listVirtualMachines_destroyed_user_allowed",
        "alice {deploy} networkids={N} name=life6 -> /id => id ; /id => $vm\nalice destroyVirtualMachine id={$vm}",
    ),
    ("createVolume_ok", "! may-not-expunge alice"),
    (
        "createVolume_custom_without_size",
        "alice listDiskOfferings name=Custom -> /diskoffering/0/id => diskofferingid",
    ),
    (
        "updateVMAffinityGroup_running",
        "alice createAffinityGroup name=aa2 type=host%20anti-affinity -> /id => affinitygroupids",
    ),
    (
        "createNetwork_vpc_tier_ok",
        "alice listNetworkACLLists name=default_allow -> /networkacllist/0/id => aclid",
    ),
    (
        "limit_networks_exceeded",
        "lim createNetwork zoneid={Z} networkofferingid={I} name=limnet -> /network/id => limit_vms_exceeded:networkids\n\
         ! limit lim 6 1",
    ),
    ("limit_vms_exceeded", "! limit lim 0 0"),
    ("limit_memory_exceeded", "! limit lim 0 -1\n! limit lim 8 -1\n! limit lim 9 100"),
    ("limit_volumes_exceeded_createVolume", "! limit lim 9 -1\n! limit lim 2 0"),
    ("limit_primary_storage_exceeded", "! limit lim 2 -1\n! limit lim 10 0"),
    ("limit_public_ip_exceeded", "! limit lim 10 -1\n! limit lim 1 0"),
    ("listResourceLimits_after_update", "! limit lim 1 -1\n! limit lim 5 -1"),
    (
        "associateIpAddress_exhaust_1",
        "alice createNetwork zoneid={ZB} networkofferingid={I} name=bnet -> /network/id => networkid",
    ),
    (
        "deployVirtualMachine_no_public_ip_for_sourcenat",
        "alice createNetwork zoneid={ZB} networkofferingid={I} name=bnet2 -> /network/id => networkids",
    ),
    (
        "queryAsyncJobResult_pending",
        "& alice {deploy} networkids={N} name=job1 -> /jobid => jobid ; /id => listVirtualMachines_while_deploying:id",
    ),
    ("queryAsyncJobResult_success", "! pass 10000"),
    (
        "queryAsyncJobResult_failure",
        "alice deployVirtualMachine zoneid={Z} templateid={T} \
         serviceofferingid={deployVirtualMachine_insufficient_capacity:serviceofferingid} networkids={N} name=job2 -> \
         /jobid => jobid ; /id => destroyVirtualMachine_error_state:id",
    ),
    (
        "addVirtualMachinesToKubernetesCluster_worker",
        "alice {deploy} networkids={N} name=k8svm -> /id => virtualmachineids",
    ),
    (
        "deleteNetwork_with_running_vm",
        "alice createNetwork zoneid={Z} networkofferingid={I} name=ndel displaytext=to%20delete -> /network/id => id ; \
         /network/id => $net\nalice {deploy} networkids={$net} name=nd1 -> /id => $ndvm",
    ),
    (
        "deployVirtualMachine_name_of_destroyed_vm",
        "alice {deploy} networkids={N} name=reuse1 -> /id => recoverVirtualMachine_name_taken:id ; /id => $vm\n\
         alice destroyVirtualMachine id={$vm}",
    ),
    (
        "listLoadBalancerRules_state_no_members",
        "alice associateIpAddress networkid={N} -> /id => $ip\n\
         alice createLoadBalancerRule publicipid={$ip} name=mem algorithm=roundrobin publicport=80 privateport=80 \
         protocol=tcp -> /id => id",
    ),
    ("deleteNetwork_with_stopped_vm", "alice stopVirtualMachine id={$ndvm}"),
    ("deleteNetwork_with_destroyed_vm", "alice destroyVirtualMachine id={$ndvm}"),
    (
        "listLoadBalancerRuleInstances_member_destroyed",
        "alice {deploy} networkids={N} name=member -> /id => assignToLoadBalancerRule_destroyed_vm:virtualmachineids ; \
         /id => $member\n\
         alice assignToLoadBalancerRule id={listLoadBalancerRules_state_no_members:id} virtualmachineids={$member}\n\
         alice destroyVirtualMachine id={$member}",
    ),
    ("assignToLoadBalancerRule_destroyed_vm", "admin expungeVirtualMachine id={$member}"),
    ("deleteNetwork_implemented_ok", "admin expungeVirtualMachine id={$ndvm}"),
    (
        "associateIpAddress_first_on_fresh_network",
        "alice createNetwork zoneid={Z} networkofferingid={I} name=norouter -> /network/id => networkid",
    ),
    (
        "deleteNetwork_forced_as_user",
        "alice createNetwork zoneid={Z} networkofferingid={I} name=nforce -> /network/id => id ; /network/id => $net\n\
         alice {deploy} networkids={$net} name=nf1 -> /id => listVirtualMachines_after_forced_network_delete:id",
    ),
    (
        "listVirtualMachines_after_out_of_band_stop",
        "alice {deploy} networkids={N} name=oob1 -> /id => id ; /id => $vm\n! pass 70000\n! power-off {$vm}\n! pass 30000",
    ),
    (
        "deployVirtualMachine_no_networkids_no_network",
        "admin createAccount accounttype=0 username=nonet password=x firstname=No lastname=Net email=n@e.t \
         domainid={createAccount_ok:domainid} -> /account/id => deleteAccount_with_resources:id ; \
         /account/user/0/id => $user\nadmin registerUserKeys id={$user}",
    ),
    ("updateHost_disable", "admin listHosts zoneid={ZB} -> /host/0/id => id"),
    ("prepareHostForMaintenance_again", "! pass 10000"),
    (
        "listNetworks_user_listall",
        "alice createNetwork zoneid={Z} networkofferingid={I} name=ngc -> /network/id => \
         listPublicIpAddresses_after_network_gc:associatednetworkid ; /network/id => $net\n\
         alice {deploy} networkids={$net} name=gc1 -> /id => $vm\nalice stopVirtualMachine id={$vm}",
    ),
    ("listPublicIpAddresses_after_network_gc", "! pass 130000"),
    (
        "capacity_fill_1",
        "admin createServiceOffering name=big6g displaytext=big6g cpunumber=1 cpuspeed=500 memory=6144 -> \
         /serviceoffering/id => serviceofferingid",
    ),
    (
        "deleteNetwork_after_expunge_admin",
        "alice createNetwork zoneid={Z} networkofferingid={I} name=nexp -> /network/id => id ; /network/id => $net\n\
         alice {deploy} networkids={$net} name=ne1 -> /id => $vm\n\
         admin destroyVirtualMachine id={$vm} expunge=true",
    ),
    (
        "queryAsyncJobResult_pending_starting",
        "& alice {deploy} networkids={N} name=slow1 -> /jobid => jobid ; /id => createTags_vm_starting:resourceids ; \
         /id => $slow\n! pass 300",
    ),
    (
        "listVirtualMachines_after_destroy_while_starting",
        "& alice {deploy} networkids={N} name=slow2 -> /id => id ; /id => $vm\n! pass 300\n\
         alice destroyVirtualMachine id={$vm}",
    ),
    ("deployVirtualMachine_start_fails_everywhere", "! hosts-fail start"),
    ("listVirtualMachines_start_failed", "! heal"),
    ("stopVirtualMachine_fails", "alice {deploy} networkids={N} name=sfail2 -> /id => id\n! hosts-fail stop"),
    ("deployVirtualMachine_start_fails_once", "! heal\n! hosts-fail start once"),
    (
        "createPortForwardingRule_openfirewall_default",
        "! heal\nalice associateIpAddress networkid={N} -> /id => ipaddressid",
    ),
    (
        "listFirewallRules_after_lb_delete",
        "alice deleteLoadBalancerRule id={createLoadBalancerRule_openfirewall_default#/id}",
    ),
    (
        "listPublicIpAddresses_admin_after_disassociate",
        "alice disassociateIpAddress id={createPortForwardingRule_openfirewall_default:ipaddressid}",
    ),
    (
        "listVolumes_datadisk_after_expunge",
        "alice {deploy} networkids={N} name=keepdisk diskofferingid={D} -> /id => $vm\n\
         alice listVolumes virtualmachineid={$vm} type=DATADISK -> /volume/0/id => id\n\
         alice destroyVirtualMachine id={$vm}\nadmin expungeVirtualMachine id={$vm}",
    ),
    ("enforce_post_get_list_no_expires", "! enforce"),
    ("listSSHKeyPairs_other_account", "! enforce-not"),
    ("listAsyncJobs_other_account", "! enforce-not"),
    ("listKubernetesSupportedVersions_unknown", "! enforce-not"),
];

/// Abbreviations in [`BEFORE`].
pub const SHORT: &[(&str, &str)] = &[
    ("{deploy}", "deployVirtualMachine zoneid={Z} templateid={T} serviceofferingid={S}"),
    ("{Z}", "{createNetwork_ok:zoneid}"),
    ("{ZB}", "{updateZone_disable:id}"),
    ("{T}", "{deployVirtualMachine_ok_first_in_network:templateid}"),
    ("{S}", "{deployVirtualMachine_ok_first_in_network:serviceofferingid}"),
    ("{N}", "{deployVirtualMachine_ok_first_in_network:networkids}"),
    ("{I}", "{createNetwork_ok:networkofferingid}"),
    ("{D}", "{deployVirtualMachine_datadisk:diskofferingid}"),
];

/// Prefixes of cases that are not replayed, with the reason.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("auth_integration_port_no_auth", "the unauthenticated integration port is not simulated"),
    ("listApis_", "a server's descriptions of its 816 commands; the simulator lists its own"),
    ("listConfigurations_all", "pages of 918 settings; the simulator lists those it has"),
    ("listConfigurations_k8s", "group and category of a setting are the server's own texts"),
    (
        "listEvents_",
        "the log has orders that begin jobs, and neither logins nor orders that are answered at once",
    ),
    ("listSystemVms_", "system machines take their share of hosts and addresses but are not shown"),
    ("quotaBalance", "the quota plug-in is off there and absent here: the same 401"),
    ("fmt_", "XML is compared as text; the order of elements differs"),
];
