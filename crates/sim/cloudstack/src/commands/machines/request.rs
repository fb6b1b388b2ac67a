//! What a caller wants of a new machine, checked.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::call::Call;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::model::compute::AffinityGroup;
use crate::model::identity::{Account, Resource};
use crate::model::network::Network;
use crate::model::place::{DiskOffering, GuestType, OfferedSize, ServiceOffering, Size, Template, Zone};
use crate::model::table::Key;

/// Characters of base64 that fit into a GET.
const MOST_BY_GET: usize = 4096;

/// Base64 as Java reads it: padding or not.
pub(crate) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A machine that somebody wants.
pub(super) struct Request {
    pub(super) owner: Key<Account>,
    pub(super) zone: Key<Zone>,
    pub(super) template: Key<Template>,
    pub(super) offering: Key<ServiceOffering>,
    pub(super) size: Size,
    pub(super) name: Option<String>,
    pub(super) display_name: Option<String>,
    pub(super) networks: Vec<(Key<Network>, Option<Ipv4Addr>)>,
    pub(super) user_data: Option<String>,
    pub(super) details: BTreeMap<String, String>,
    pub(super) key_pairs: Vec<String>,
    pub(super) affinity: Vec<Key<AffinityGroup>>,
    pub(super) root_bytes: u64,
    pub(super) data_disk: Option<(Key<DiskOffering>, u64)>,
    pub(super) group: Option<String>,
    pub(super) start: bool,
}

impl Request {
    pub(super) fn read(cloud: &mut Cloud, call: &Call) -> Result<Self> {
        let (zone, offering) =
            (call.the(&cloud.zones, "zoneid")?, call.the(&cloud.service_offerings, "serviceofferingid")?);
        let name = call.text("name").map(str::to_owned);
        if let Some(name) = &name {
            check_name(call, name)?;
        }
        if call.text("hostid").is_some() && !call.caller.is_root() {
            return Err(ApiError::denied(
                "Parameter hostid can only be specified by a Root Admin, permission denied",
            ));
        }
        let user_data = read_user_data(cloud, call)?;
        let template = call.key(&cloud.templates, "templateid").ok_or_else(|| ApiError::internal(4250))?;
        let owner = cloud.owner(call)?;
        if !cloud.zones[zone].enabled && !call.caller.is_root() {
            return Err(ApiError::denied(format!(
                "Cannot perform this operation, Zone is currently disabled: {}",
                cloud.zones[zone].name
            )));
        }
        let row = &cloud.templates[template];
        if row.removed || !row.zones.contains(&zone) {
            return Err(ApiError::invalid(format!(
                "The template {} is not available for use",
                template.number()
            )));
        }
        if !cloud.may_launch(call, template) {
            return Err(ApiError::not_yours());
        }
        let mut details: BTreeMap<_, _> = call.params.maps("details").into_iter().flatten().collect();
        let size = size_of(&cloud.service_offerings[offering], &details)?;
        let root_bytes = match call.number("rootdisksize") {
            Some(gib) if gib <= 0 => {
                return Err(ApiError::invalid("Root disk size should be a positive number."));
            }
            Some(gib) => {
                details.insert("rootdisksize".to_owned(), gib.to_string());
                u64::try_from(gib).unwrap_or(0) << 30
            }
            None => cloud.templates[template].size,
        };
        let data_disk = match call.key(&cloud.disk_offerings, "diskofferingid") {
            Some(disk) => Some((disk, cloud.disk_bytes(call, disk)?)),
            None => None,
        };
        cloud.fits_limits(owner, size, root_bytes, data_disk.map(|(_, bytes)| bytes))?;
        let networks = read_networks(cloud, call, owner, zone)?;
        if let Some(name) = &name {
            for (network, _) in &networks {
                cloud.name_is_free(name, *network)?;
            }
        }
        let key_pairs = read_key_pairs(cloud, call, owner)?;
        let affinity = cloud.affinity_of(call, owner)?;
        Ok(Self {
            owner,
            zone,
            template,
            offering,
            size,
            name,
            display_name: call.filled("displayname").map(str::to_owned),
            networks,
            user_data,
            details,
            key_pairs,
            affinity,
            root_bytes,
            data_disk,
            group: call.filled("group").map(str::to_owned),
            start: call.flag("startvm").unwrap_or(true),
        })
    }
}

/// Host names: letters, digits and hyphens, a letter first, no hyphen last.
pub(super) fn check_name(call: &Call, name: &str) -> Result<()> {
    let good = name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !name.ends_with('-')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if good {
        return Ok(());
    }
    Err(call.invalid_value(
        ". Invalid value provided for API arg: name - it can contain ASCII letters 'a' through 'z', the digits '0' \
         through '9', and the hyphen ('-'), must be between 1 and 63 characters long, and can't start or end with \"-\" \
         and can't start with digit",
    ))
}

/// User data as it came, if it is base64 and not too long.
pub(super) fn read_user_data(cloud: &Cloud, call: &Call) -> Result<Option<String>> {
    let Some(text) = call.filled("userdata") else { return Ok(None) };
    if !call.post && text.len() > MOST_BY_GET {
        return Err(ApiError::invalid("User data is too long for http GET request"));
    }
    if text.len() > cloud.settings.user_data_max_length {
        return Err(ApiError::invalid(format!(
            "User data has exceeded configurable max length: {}",
            cloud.settings.user_data_max_length
        )));
    }
    if LENIENT.decode(text).is_err() {
        return Err(ApiError::invalid("User data is not base64 encoded."));
    }
    Ok(Some(text.to_owned()))
}

fn size_of(offering: &ServiceOffering, details: &BTreeMap<String, String>) -> Result<Size> {
    let of = |name: &str| {
        let found = details.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let missing = || {
        ApiError::invalid(
            "Need to specify custom parameter values cpu, cpu speed and memory when using custom offering",
        )
    };
    match offering.size {
        OfferedSize::Fixed(size) => Ok(size),
        OfferedSize::Custom => match (of("cpuNumber"), of("cpuSpeed"), of("memory")) {
            (Some(cores), Some(mhz), Some(memory_mib)) => Ok(Size { cores, mhz, memory_mib }),
            _ => Err(missing()),
        },
        OfferedSize::Constrained { cores, memory_mib, mhz } => {
            let (wanted, memory) = (of("cpuNumber").ok_or_else(missing)?, of("memory").ok_or_else(missing)?);
            if !(cores.0..=cores.1).contains(&wanted) {
                return Err(ApiError::invalid(format!(
                    "Invalid CPU cores value, specify a value between {} and {}",
                    cores.0, cores.1
                )));
            }
            if !(memory_mib.0..=memory_mib.1).contains(&memory) {
                return Err(ApiError::invalid(format!(
                    "Invalid memory value, specify a value between {} and {}",
                    memory_mib.0, memory_mib.1
                )));
            }
            Ok(Size { cores: wanted, mhz, memory_mib: memory })
        }
    }
}

type Wanted = (Key<Network>, Option<Ipv4Addr>);

fn read_networks(
    cloud: &mut Cloud,
    call: &Call,
    owner: Key<Account>,
    zone: Key<Zone>,
) -> Result<Vec<Wanted>> {
    let address = |text: &str| text.parse::<Ipv4Addr>().map_err(|_| ApiError::internal(0));
    let mut wanted: Vec<Wanted> =
        call.keys(&cloud.networks, "networkids").into_iter().map(|network| (network, None)).collect();
    for entry in call.params.maps("iptonetworklist") {
        let of = |name: &str| {
            entry.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
        };
        let Some(network) = of("networkid").and_then(|id| cloud.networks.find(id)) else {
            return Err(ApiError::invalid("Unable to translate and find entity with networkId"));
        };
        wanted.push((network, of("ip").map(address).transpose()?));
    }
    if let (Some(first), Some(text)) = (wanted.first_mut(), call.filled("ipaddress")) {
        first.1 = Some(address(text)?);
    }
    if wanted.is_empty() {
        let isolated: Vec<_> = cloud
            .networks
            .iter()
            .filter(|row| {
                row.account == owner
                    && row.zone == zone
                    && cloud.network_offerings[row.offering].guest_type == GuestType::Isolated
            })
            .map(|row| row.key)
            .collect();
        let chosen = match isolated.as_slice() {
            [] => cloud.default_network(owner, zone).ok_or_else(|| ApiError::internal(4250))?,
            [one] => *one,
            _ => {
                return Err(ApiError::invalid(format!(
                    "More than 1 default Isolated networks are found for Account {}; please specify networkIds",
                    cloud.accounts[owner].name
                )));
            }
        };
        wanted.push((chosen, None));
    }
    for (network, _) in &wanted {
        let row = &cloud.networks[*network];
        if row.removed {
            return Err(ApiError::invalid(format!("Unable to find network {}", row.uuid)));
        }
        if row.zone != zone {
            return Err(ApiError::invalid(format!(
                "Network {} doesn't belong to zone {}",
                row.name, cloud.zones[zone].name
            )));
        }
        let shared = cloud.network_offerings[row.offering].guest_type == GuestType::Shared;
        let in_project = cloud.accounts[owner].project.is_some();
        let usable =
            shared || row.account == owner || (!in_project && cloud.may_operate(call.caller, row.account));
        if !usable {
            return Err(ApiError::denied(format!(
                "Unable to use network with id= {}, permission denied",
                row.uuid
            )));
        }
    }
    Ok(wanted)
}

fn read_key_pairs(cloud: &Cloud, call: &Call, owner: Key<Account>) -> Result<Vec<String>> {
    let names: Vec<String> = [call.filled("keypair"), call.filled("keypairs")]
        .into_iter()
        .flatten()
        .flat_map(|list| list.split(','))
        .map(str::to_owned)
        .collect();
    let known = |name: &String| cloud.ssh_keys.iter().any(|key| key.account == owner && key.name == *name);
    if names.iter().all(known) {
        Ok(names)
    } else {
        Err(ApiError::invalid("Not all specified keypairs exist"))
    }
}

impl Cloud {
    /// Refuses a name that another machine of the network has, or of a tier of its VPC, whatever its state.
    pub(super) fn name_is_free(&self, name: &str, network: Key<Network>) -> Result<()> {
        let vpc = self.networks[network].vpc;
        let reaches = |other: Key<Network>| {
            other == network || vpc.is_some_and(|vpc| self.networks[other].vpc == Some(vpc))
        };
        let mut namesakes = self.vms.iter().filter(|vm| vm.name == name).flat_map(|vm| &vm.nics);
        let Some(taken) = namesakes.find(|nic| reaches(nic.network)) else { return Ok(()) };
        let row = &self.networks[taken.network];
        Err(ApiError::invalid(format!(
            "The vm with hostName {name} already exists in the network domain: {}; network={}",
            self.network_domain(row.account),
            row.name
        )))
    }

    fn fits_limits(&self, owner: Key<Account>, size: Size, root: u64, data: Option<u64>) -> Result<()> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let disks = [Some(root), data];
        let disks = || disks.iter().flatten();
        let wanted = [
            (Resource::UserVm, 1),
            (Resource::Cpu, number(size.cores)),
            (Resource::Memory, number(size.memory_mib)),
            (Resource::Volume, number(disks().map(|_| 1).sum())),
            (Resource::PrimaryStorage, number(disks().map(|bytes| bytes >> 30).sum())),
        ];
        wanted
            .into_iter()
            .try_for_each(|(resource, more)| self.within_limit(owner, resource, more))
            .map_err(ApiError::wrapped)
    }

    /// The affinity groups that a call names.
    pub(crate) fn affinity_of(&self, call: &Call, owner: Key<Account>) -> Result<Vec<Key<AffinityGroup>>> {
        let mut groups = call.keys(&self.affinity_groups, "affinitygroupids");
        for name in call.filled("affinitygroupnames").into_iter().flat_map(|list| list.split(',')) {
            let found = self
                .affinity_groups
                .iter()
                .find(|group| group.account == owner && group.name.eq_ignore_ascii_case(name));
            let found =
                found.ok_or_else(|| ApiError::invalid(format!("Unable to find group by name {name}")))?;
            groups.push(found.key);
        }
        if groups.iter().any(|group| !self.may_operate(call.caller, self.affinity_groups[*group].account)) {
            return Err(ApiError::not_yours());
        }
        Ok(groups)
    }
}
