//! cgroups of a machine: one in every hierarchy of the host, v1 and v2.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::run::at;
use crate::backend::BackendError;

/// Parent cgroup of all machines.
const PARENT: &str = "capstan-kvm";
/// The cgroup of a machine's first processes on v2. A cgroup with processes cannot delegate controllers to children,
/// which a kubelet creates.
const INIT: &str = "init";
/// v1 controllers that a kubelet needs.
const NEEDED: [&str; 8] = ["cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"];
/// v2 controllers that a kubelet needs.
const NEEDED_V2: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    /// Mount options: `cpu`, `cpu,cpuacct`, `name=systemd`, or `unified` for v2.
    pub(super) controllers: String,
    /// Directory for the cgroups of machines.
    folder: PathBuf,
}

/// The host's cgroup setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CgroupVersion {
    /// v1 controllers, possibly with a v2 hierarchy.
    V1,
    V2,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchies {
    pub(super) all: Vec<Hierarchy>,
    pub(super) arrangement: CgroupVersion,
}

impl Hierarchies {
    /// As this process sees them.
    pub(super) fn of_host() -> Result<Self, BackendError> {
        let read = |path: &str| std::fs::read_to_string(path).map_err(at(Path::new(path)));
        Ok(Self::parse(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?))
    }

    fn parse(mounts: &str, groups: &str) -> Self {
        let mut all = Vec::new();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(own)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let Some((root, point)) = mount_of(mounts, controllers) else { continue };
            let below = own.strip_prefix(root.trim_end_matches('/')).unwrap_or("/");
            let folder = Path::new(point).join(below.trim_start_matches('/'));
            let controllers = if controllers.is_empty() { "unified" } else { controllers };
            all.push(Hierarchy { controllers: controllers.to_owned(), folder });
        }
        let only_v2 = all.len() == 1 && all[0].controllers == "unified";
        if only_v2 && let Some((_, point)) = mount_of(mounts, "") {
            // On v2 a cgroup with processes cannot have children with controllers: ours are at the top.
            all[0].folder = point.into();
        }
        Self { all, arrangement: if only_v2 { CgroupVersion::V2 } else { CgroupVersion::V1 } }
    }

    /// Unmet requirements of the host.
    pub(super) fn needs(&self) -> Vec<String> {
        let there: Vec<String> = match self.arrangement {
            CgroupVersion::V2 => {
                let path = self.all[0].folder.join("cgroup.controllers");
                let text = std::fs::read_to_string(path).unwrap_or_default();
                text.split_whitespace().map(str::to_owned).collect()
            }
            CgroupVersion::V1 => {
                self.all.iter().flat_map(|h| h.controllers.split(',').map(str::to_owned)).collect()
            }
        };
        let needed: &[&str] = match self.arrangement {
            CgroupVersion::V1 => &NEEDED,
            CgroupVersion::V2 => &NEEDED_V2,
        };
        let missing: Vec<&str> =
            needed.iter().copied().filter(|name| !there.iter().any(|it| it == name)).collect();
        let mut needs = Vec::new();
        if !missing.is_empty() {
            needs.push(format!(
                "the cgroups {} are not mounted: mount them below /sys/fs/cgroup, or boot with cgroup v2",
                missing.join(", ")
            ));
        }
        let is_locked = |hierarchy: &&Hierarchy| {
            let can = rustix::fs::access(&hierarchy.folder, rustix::fs::Access::WRITE_OK);
            can.is_err_and(|error| error == rustix::io::Errno::ROFS)
        };
        if let Some(locked) = self.all.iter().find(is_locked) {
            let folder = locked.folder.display();
            needs.push(format!("{folder} is mounted read-only: machines need cgroups of their own"));
        }
        needs
    }

    /// Creates the cgroups of a machine with its limits. Returns their directories, in the order of the hierarchies.
    pub(super) fn make(
        &self,
        name: &str,
        cpus: Option<u32>,
        memory_mib: Option<u64>,
    ) -> Result<Vec<PathBuf>, BackendError> {
        let mut made = Vec::new();
        for hierarchy in &self.all {
            let mut folder = hierarchy.folder.clone();
            for part in [PARENT, name] {
                if self.arrangement == CgroupVersion::V2 {
                    let all = NEEDED_V2.map(|name| format!("+{name}")).join(" ");
                    put(&folder.join("cgroup.subtree_control"), &all)?;
                }
                let above = folder.clone();
                folder.push(part);
                match std::fs::create_dir(&folder) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(at(&folder)(error));
                    }
                    _ => {}
                }
                if hierarchy.controllers.split(',').any(|it| it == "cpuset") {
                    for file in ["cpuset.cpus", "cpuset.mems"] {
                        let path = above.join(file);
                        put(&folder.join(file), &std::fs::read_to_string(&path).map_err(at(&path))?)?;
                    }
                }
            }
            self.limit(hierarchy, &folder, cpus, memory_mib)?;
            if let Some(init) = self.first_group(&folder) {
                std::fs::create_dir_all(&init).map_err(at(&init))?;
            }
            made.push(folder);
        }
        Ok(made)
    }

    /// The child cgroup for a machine's processes, if they cannot be in the cgroup itself.
    pub(super) fn first_group(&self, group: &Path) -> Option<PathBuf> {
        (self.arrangement == CgroupVersion::V2).then(|| group.join(INIT))
    }

    fn limit(
        &self,
        hierarchy: &Hierarchy,
        folder: &Path,
        cpus: Option<u32>,
        memory_mib: Option<u64>,
    ) -> Result<(), BackendError> {
        const PERIOD: u64 = 100_000;
        let has = |name: &str| hierarchy.controllers.split(',').any(|it| it == name);
        let v2 = self.arrangement == CgroupVersion::V2;
        if let Some(cpus) = cpus.map(u64::from) {
            match (has("cpu"), v2) {
                (true, _) => put(&folder.join("cpu.cfs_quota_us"), &(cpus * PERIOD).to_string())?,
                (_, true) => put(&folder.join("cpu.max"), &format!("{} {PERIOD}", cpus * PERIOD))?,
                _ => {}
            }
        }
        if let Some(bytes) = memory_mib.map(|memory| memory << 20) {
            match (has("memory"), v2) {
                (true, _) => put(&folder.join("memory.limit_in_bytes"), &bytes.to_string())?,
                (_, true) => put(&folder.join("memory.max"), &bytes.to_string())?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Removes cgroups with their children. They are busy for a moment after their last process.
pub(super) fn remove(folders: &[PathBuf], timeout: Duration) -> Result<(), BackendError> {
    let until = Instant::now() + timeout;
    for folder in folders {
        loop {
            match remove_deep(folder) {
                Ok(()) => break,
                Err(error) if Instant::now() > until => return Err(at(folder)(error)),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        // The parent is removed with its last machine.
        if let Some(parent) = folder.parent().filter(|parent| parent.ends_with(PARENT)) {
            let _ = std::fs::remove_dir(parent);
        }
    }
    Ok(())
}

fn remove_deep(folder: &Path) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_deep(&entry.path())?;
        }
    }
    match std::fs::remove_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn put(path: &Path, text: &str) -> Result<(), BackendError> {
    std::fs::write(path, text.trim()).map_err(at(path))
}

/// Root and mount point of a hierarchy: `cpu,cpuacct` of v1, or empty for v2.
fn mount_of<'a>(mounts: &'a str, controllers: &str) -> Option<(&'a str, &'a str)> {
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split_whitespace().skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut system = system.split_whitespace();
        let (kind, options) = (system.next()?, system.nth(1)?);
        let fits = match (kind, controllers) {
            ("cgroup2", "") => true,
            ("cgroup", controllers) if !controllers.is_empty() => {
                let has = |name: &str| options.split(',').any(|option| option == name);
                controllers.split(',').all(has)
            }
            _ => false,
        };
        fits.then_some((root, point))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_below_this_process_on_v1_and_at_the_root_on_v2() {
        let mounts = "\
30 24 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
31 24 0:27 /box /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
32 24 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
33 24 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
        let groups = "4:memory:/a/b\n2:cpu,cpuacct:/box/c\n3:name=systemd:/\n9:hugetlb:/\n0::/d\n";
        let found = Hierarchies::parse(mounts, groups);
        let shown: Vec<String> =
            found.all.iter().map(|h| format!("{} {}", h.controllers, h.folder.display())).collect();
        assert_eq!(
            shown,
            [
                "memory /sys/fs/cgroup/memory/a/b",
                "cpu,cpuacct /sys/fs/cgroup/cpu,cpuacct/c",
                "name=systemd /sys/fs/cgroup/systemd/",
                "unified /sys/fs/cgroup/unified/d",
            ]
        );
        assert_eq!(found.arrangement, CgroupVersion::V1);
        let needs = found.needs();
        assert!(needs[0].contains("cpuset, devices, freezer, blkio, pids"), "{needs:?}");

        let v2 = Hierarchies::parse("33 24 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/user/x\n");
        assert_eq!(v2.arrangement, CgroupVersion::V2);
        assert_eq!(v2.all[0].folder, Path::new("/sys/fs/cgroup"));
    }

    #[test]
    fn on_v2_every_ancestor_of_a_machine_delegates_its_controllers() {
        let top = tempfile::tempdir().expect("a folder");
        let hierarchy = Hierarchy { controllers: "unified".to_owned(), folder: top.path().to_owned() };
        let v2 = Hierarchies { all: vec![hierarchy], arrangement: CgroupVersion::V2 };
        let read = |name: &str| std::fs::read_to_string(top.path().join(name)).expect(name);

        std::fs::write(top.path().join("cgroup.controllers"), "cpuset cpu io memory").expect("written");
        assert!(v2.needs()[0].contains("cgroups pids are"), "{:?}", v2.needs());
        std::fs::write(top.path().join("cgroup.controllers"), "cpuset cpu io memory pids").expect("written");
        assert_eq!(v2.needs(), Vec::<String>::new());

        let made = v2.make("one", Some(2), Some(512)).expect("made");
        assert_eq!(made, [top.path().join("capstan-kvm/one")]);
        assert!(
            v2.first_group(&made[0]).is_some_and(|init| init.is_dir()),
            "processes have a group of their own"
        );
        for above in ["", "capstan-kvm/"] {
            assert_eq!(read(&format!("{above}cgroup.subtree_control")), "+cpu +cpuset +memory +pids");
        }
        assert_eq!(read("capstan-kvm/one/cpu.max"), "200000 100000");
        assert_eq!(read("capstan-kvm/one/memory.max"), (512 << 20).to_string());
    }
}
