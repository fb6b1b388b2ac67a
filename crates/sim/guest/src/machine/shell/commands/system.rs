//! Programs for the system.

use super::{Call, Program};

pub(super) fn program(name: &str) -> Option<Program> {
    Some(match name {
        "hostname" => hostname,
        "hostnamectl" => hostnamectl,
        "modprobe" => modprobe,
        "sysctl" => sysctl,
        "swapoff" | "sync" | "logger" | "udevadm" | "timedatectl" | "setenforce" | "growpart"
        | "resize2fs" => nothing,
        "update-ca-certificates" | "update-ca-trust" => update_ca_certificates,
        "curl" | "wget" => fetch,
        "ip" => ip,
        "date" => date,
        "uname" => uname,
        "id" | "whoami" => whoami,
        "nproc" => nproc,
        "crictl" => crictl,
        "ctr" => ctr,
        "kubelet" => kubelet,
        "kubectl" => kubectl,
        "kubeadm" => |_| 0,
        "mount" | "umount" => mount,
        "reboot" | "shutdown" | "poweroff" => refuse_power,
        "useradd" | "groupadd" | "usermod" => useradd,
        _ => return None,
    })
}

/// Programs without a visible effect here.
fn nothing(_: &mut Call<'_, '_, '_>) -> i32 {
    0
}

fn hostname(call: &mut Call<'_, '_, '_>) -> i32 {
    let guest = &mut *call.shell.guest;
    let shown = match call.arguments.first().map(String::as_str) {
        None | Some("-f" | "--fqdn") => guest.hostname.clone(),
        Some("-s" | "--short") => guest.hostname.split('.').next().unwrap_or_default().to_owned(),
        Some("-i" | "-I" | "--all-ip-addresses" | "--ip-address") => guest.address.to_string(),
        Some(flag) if flag.starts_with('-') => return call.fail(&format!("invalid option {flag}")),
        Some(name) => {
            guest.hostname = name.to_owned();
            return 0;
        }
    };
    call.line(&shown);
    0
}

fn hostnamectl(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, _) = call.operands();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["set-hostname" | "hostname", name] => {
            call.shell.guest.hostname = (*name).to_owned();
            match call.shell.guest.files.write("/etc/hostname", format!("{name}\n").as_bytes()) {
                Ok(()) => 0,
                Err(error) => {
                    call.shell.guest.print(&call.io.err, &format!("Could not set static hostname: {error}"));
                    1
                }
            }
        }
        [] | ["status" | "hostname"] => {
            let shown = format!(" Static hostname: {}", call.shell.guest.hostname);
            call.line(&shown);
            0
        }
        _ => call.fail("unknown command"),
    }
}

fn modprobe(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, _) = call.operands();
    for module in words {
        if module == "br_netfilter" {
            let made = call.shell.guest.files.write_deep(
                "/proc/sys/net/bridge/bridge-nf-call-iptables",
                b"1\n",
                0o644,
            );
            if made.is_err() {
                return 1;
            }
        }
    }
    0
}

fn sysctl(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, flags) = call.operands();
    let path = |key: &str| format!("/proc/sys/{}", key.replace('.', "/"));
    let mut settings = Vec::new();
    let system = call.arguments.iter().any(|argument| argument == "--system");
    if system || flags.contains('p') {
        let mut paths: Vec<String> = words.clone();
        if system {
            let names = call.shell.guest.files.list("/etc/sysctl.d").unwrap_or_default();
            paths = names.iter().map(|name| format!("/etc/sysctl.d/{name}")).collect();
        }
        if paths.is_empty() {
            paths.push("/etc/sysctl.conf".to_owned());
        }
        for path in paths {
            let text = call.shell.guest.files.text(&path).unwrap_or_default();
            settings.extend(
                text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])).map(str::to_owned),
            );
        }
    } else {
        settings = words;
    }
    for setting in settings.iter().map(|setting| setting.trim()).filter(|setting| !setting.is_empty()) {
        let Some((key, value)) = setting.split_once('=') else {
            match call.shell.guest.files.text(&path(setting)) {
                Ok(value) => call.line(&format!("{setting} = {}", value.trim_end())),
                Err(_) => {
                    return call.fail(&format!("cannot stat {}: No such file or directory", path(setting)));
                }
            }
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if call.shell.guest.files.write_deep(&path(key), format!("{value}\n").as_bytes(), 0o644).is_err() {
            return call.fail(&format!("setting key \"{key}\" failed"));
        }
        call.line(&format!("{key} = {value}"));
    }
    0
}

fn update_ca_certificates(call: &mut Call<'_, '_, '_>) -> i32 {
    call.line("Updating certificates in /etc/ssl/certs...");
    let added = call.shell.guest.files.list("/usr/local/share/ca-certificates").unwrap_or_default();
    let added = added.iter().filter(|name| name.ends_with(".crt")).count();
    call.line(&format!("{added} added, 0 removed; done."));
    0
}

/// No network service is simulated except API servers, which scripts do not call.
fn fetch(call: &mut Call<'_, '_, '_>) -> i32 {
    let url = call.arguments.iter().find(|word| word.contains("://")).or(call.arguments.last());
    let Some(url) = url else { return call.fail("missing URL") };
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let host = rest.split(['/', ':', '?']).next().unwrap_or_default().to_owned();
    let quiet = call.arguments.iter().any(|word| word.starts_with("-s") || word.starts_with("-q"));
    let named = host.parse::<std::net::IpAddr>().is_err();
    let (what, status) = match (call.name, named) {
        ("curl", true) => (format!("(6) Could not resolve host: {host}"), 6),
        ("curl", false) => (format!("(7) Failed to connect to {host}: No route to host"), 7),
        (_, true) => (format!("unable to resolve host address '{host}'"), 4),
        (_, false) => (format!("failed: No route to host: {host}"), 4),
    };
    if !quiet || call.arguments.iter().any(|word| word.starts_with('-') && word.contains('S')) {
        call.fail(&what);
    }
    status
}

fn ip(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, _) = call.operands();
    let address = call.shell.guest.address;
    let octets = address.octets();
    let gateway = std::net::Ipv4Addr::new(octets[0], octets[1], 0, 1);
    match words.first().map(String::as_str) {
        Some("addr" | "address" | "a") => {
            call.line("1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 state UNKNOWN");
            call.line("    inet 127.0.0.1/8 scope host lo");
            call.line("2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 state UP");
            call.line(&format!("    inet {address}/12 scope global eth0"));
            0
        }
        Some("route" | "r") => {
            let get = words.get(1).is_some_and(|word| word == "get");
            let target = words.get(2).map_or("1.0.0.0", String::as_str);
            call.line(&if get {
                format!("{target} via {gateway} dev eth0 src {address} uid 0")
            } else {
                format!("default via {gateway} dev eth0 proto dhcp src {address}")
            });
            0
        }
        Some("link" | "l") => 0,
        _ => call.fail("Object is unknown, try \"ip help\"."),
    }
}

fn date(call: &mut Call<'_, '_, '_>) -> i32 {
    let now = call.shell.guest.env.now();
    let format = call.arguments.iter().find_map(|word| word.strip_prefix('+'));
    let format = format.unwrap_or("%a %b %e %H:%M:%S UTC %Y");
    match jiff::fmt::strtime::format(format, now) {
        Ok(shown) => {
            call.line(&shown);
            0
        }
        Err(_) => call.fail("invalid format"),
    }
}

fn uname(call: &mut Call<'_, '_, '_>) -> i32 {
    let name = call.shell.guest.hostname.clone();
    let shown = match call.arguments.first().map(String::as_str) {
        Some("-m" | "-p" | "-i") => "x86_64".to_owned(),
        Some("-r") => "6.8.0-sim".to_owned(),
        Some("-n") => name,
        Some("-a") => format!("Linux {name} 6.8.0-sim x86_64 GNU/Linux"),
        _ => "Linux".to_owned(),
    };
    call.line(&shown);
    0
}

fn whoami(call: &mut Call<'_, '_, '_>) -> i32 {
    let number = call.name == "id" && call.arguments.iter().any(|word| matches!(word.as_str(), "-u" | "-g"));
    let long = call.name == "id" && call.arguments.is_empty();
    call.line(if number {
        "0"
    } else if long {
        "uid=0(root) gid=0(root) groups=0(root)"
    } else {
        "root"
    });
    0
}

fn nproc(call: &mut Call<'_, '_, '_>) -> i32 {
    let cores = call.shell.guest.vm.cpus.to_string();
    call.line(&cores);
    0
}

/// Lists are empty before kubeadm has run, which is when boot scripts call it.
fn crictl(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, _) = call.operands();
    match words.first().map(String::as_str) {
        Some("ps") => call.line("CONTAINER  IMAGE  CREATED  STATE  NAME  ATTEMPT  POD ID  POD"),
        Some("pods") => call.line("POD ID  CREATED  STATE  NAME  NAMESPACE  ATTEMPT  RUNTIME"),
        Some("images" | "img") => call.line("IMAGE  TAG  IMAGE ID  SIZE"),
        Some("version" | "info" | "config") => {}
        _ => return call.fail("not simulated"),
    }
    0
}

fn ctr(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, _) = call.operands();
    if words.iter().any(|word| matches!(word.as_str(), "ls" | "list" | "version")) {
        return 0;
    }
    call.fail("not simulated")
}

fn kubelet(call: &mut Call<'_, '_, '_>) -> i32 {
    if call.arguments.iter().any(|word| word == "--version") {
        let version = call.shell.guest.kubernetes().unwrap_or_default();
        call.line(&format!("Kubernetes {version}"));
        return 0;
    }
    call.fail("the kubelet is started by systemd")
}

fn kubectl(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, _) = call.operands();
    if words.first().is_some_and(|word| word == "version") {
        let version = call.shell.guest.kubernetes().unwrap_or_default();
        call.line(&format!("Client Version: {version}"));
        return 0;
    }
    call.fail("not simulated")
}

fn mount(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, _) = call.operands();
    if let Some(point) = words.last().filter(|_| call.name == "mount" && words.len() > 1) {
        let path = call.shell.path(point);
        if !call.shell.guest.files.is_directory(&path) {
            let what = format!("{point}: mount point does not exist.");
            call.fail(&what);
            return 32;
        }
    }
    0
}

fn refuse_power(call: &mut Call<'_, '_, '_>) -> i32 {
    call.fail("not simulated")
}

fn useradd(call: &mut Call<'_, '_, '_>) -> i32 {
    let (words, _) = call.operands();
    if let Some(user) = words.last().filter(|_| call.name == "useradd") {
        call.shell.guest.users.insert(user.clone());
    }
    0
}
