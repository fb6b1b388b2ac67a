use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::console::Console;
use crate::machine::Boot;
use crate::request::{Control, InitRequest, JoinRequest, KubeadmError};
use crate::vm::{Image, VmSpec};

/// A cluster that must not be called.
struct NoCluster;

impl Control for NoCluster {
    fn init<'a>(&'a self, _: InitRequest) -> futures::future::BoxFuture<'a, Result<(), KubeadmError>> {
        Box::pin(async { Ok(()) })
    }

    fn join<'a>(&'a self, _: JoinRequest) -> futures::future::BoxFuture<'a, Result<(), KubeadmError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Output, error output and exit status of a script.
async fn run(script: &str) -> (String, String, i32) {
    let vm = VmSpec {
        id: "i-1".to_owned(),
        name: "node-1".to_owned(),
        user_data: Vec::new(),
        image: Image { kubernetes: Some("v1.34.1".to_owned()) },
        address: None,
        provider_id: None,
        cpus: 2,
        memory_mib: 4096,
        tags: BTreeMap::new(),
        faults: Vec::new(),
    };
    let env = capstan_env::Env::simulated(|| jiff::Timestamp::UNIX_EPOCH, 1);
    let console = Console::default();
    let mut guest = Guest::new(Boot {
        vm: &vm,
        address: std::net::Ipv4Addr::new(172, 16, 0, 7),
        console: &console,
        env: &env,
        control: &NoCluster,
        powered: tokio::time::Instant::now(),
    });
    let (out, err) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let io = Io { input: Input::default(), out: Sink::Buffer(out.clone()), err: Sink::Buffer(err.clone()) };
    let status = Shell::new(&mut guest, "script").run(script, &io).await;
    let text = |bytes: &Mutex<Vec<u8>>| String::from_utf8_lossy(&bytes.lock()).into_owned();
    (text(&out), text(&err), status)
}

#[tokio::test(start_paused = true)]
async fn scripts_write_what_bash_writes() {
    for (script, expected) in [
        ("echo a  b 'c  d' \"e $((1+2))\"", "a b c  d e 3\n"),
        ("x='1 2'; echo $x \"$x\" '$x' ${x:-no} ${y:-yes} ${#x}", "1 2 1 2 $x 1 2 yes 3\n"),
        (
            "f=/a/b.tar.gz; echo ${f##*/} ${f%.*} ${f%%.*} ${f#/} ${f/b/c}",
            "b.tar.gz /a/b.tar /a/b a/b.tar.gz /a/c.tar.gz\n",
        ),
        ("echo \"$(echo inner; echo two)\" `echo back`", "inner\ntwo back\n"),
        ("false || echo or; true && echo and; ! false && echo not", "or\nand\nnot\n"),
        ("if false; then echo 1; elif true; then echo 2; else echo 3; fi", "2\n"),
        ("for i in a b 'c d'; do echo \"<$i>\"; done", "<a>\n<b>\n<c d>\n"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); [ $i = 2 ] && continue; echo $i; done", "1\n3\n"),
        ("i=0; until [ $i -ge 2 ]; do i=$((i + 1)); done; echo $i", "2\n"),
        ("case /etc/foo.yaml in *.json) echo j;; /etc/*|x) echo y;; *) echo other;; esac", "y\n"),
        ("f() { echo \"$1 of $#\"; return 3; }; f x y; echo $?", "x of 2\n3\n"),
        ("(x=inner; cd /etc; echo $x $PWD); echo [$x] $PWD", "inner /etc\n[] /\n"),
        ("{ echo one; echo two; } | tr a-z A-Z | sort -r", "TWO\nONE\n"),
        ("echo one > /tmp/f; echo two >> /tmp/f; cat < /tmp/f; wc -l < /tmp/f", "one\ntwo\n2\n"),
        ("cat <<EOF\nhome $HOME\n$(echo sub)\nEOF\ncat <<'EOF'\n$HOME\nEOF", "home /root\nsub\n$HOME\n"),
        ("cat <<-EOF\n\tindented\n\tEOF\necho after", "indented\nafter\n"),
        ("cat <<< \"here $((2*3))\"", "here 6\n"),
        ("printf '%s-%d\\n' a 1 b 2; printf 'no newline'", "a-1\nb-2\nno newline"),
        ("A=1 sh -c 'echo $A'; echo [$A]; export B=2; bash -c 'echo $B'", "1\n[]\n2\n"),
        (
            "touch /tmp/a.yaml /tmp/b.yaml /tmp/c.txt; echo /tmp/*.yaml '/tmp/*' /nope/*",
            "/tmp/a.yaml /tmp/b.yaml /tmp/* /nope/*\n",
        ),
        ("printf 'a b\\nc d\\n' | while read x y; do echo $y-$x; done", "b-a\nd-c\n"),
        ("[ -d /etc ] && [ ! -e /nope ] && test -n x -a 1 -lt 2 && echo yes", "yes\n"),
        ("[[ node-1 == node-* && -z \"\" ]] && echo match", "match\n"),
        ("echo 'a=1,b=2' | cut -d, -f2 | cut -d= -f2", "2\n"),
        ("echo error >&2; echo hidden >/dev/null; echo shown 2>&1", "shown\n"),
        ("# comment\necho a # b\necho '#c'", "a\n#c\n"),
        ("echo a \\\n  b", "a b\n"),
        ("set -- x y; echo $# \"$@\"; shift; echo $1", "2 x y\ny\n"),
        ("hostname; hostname -I; uname -m; nproc", "node-1\n172.16.0.7\nx86_64\n2\n"),
        ("printf '#!/bin/sh\\necho script $1\\n' > /tmp/s; chmod +x /tmp/s; /tmp/s arg", "script arg\n"),
        ("echo 'k: v' | grep -q '^k' && echo found; echo x | grep y || echo none", "found\nnone\n"),
        ("command -v kubeadm; which nothing || echo absent", "/usr/bin/kubeadm\nabsent\n"),
        ("kubeadm version -o short; kubelet --version", "v1.34.1\nKubernetes v1.34.1\n"),
        ("V=x envsubst < /dev/null; export V=1; echo '$V ${V} $W' | envsubst", "1 1 \n"),
        ("echo aGk= | base64 -d; echo -n hi | base64", "hiaGk=\n"),
        ("date +%Y-%m-%d", "1970-01-01\n"),
        (
            "printf 'a\\nb\\nc\\n' | head -n 2; printf 'abc' | head -c 2; echo; seq 9 | tail -n1",
            "a\nb\nab\n9\n",
        ),
        ("x=$(tr -dc A-Za-z0-9 < /dev/urandom | head -c 10); echo ${#x}", "10\n"),
        (
            "if [ ! -L /var/log/k ]; then mkdir -p /d && ln -s /d /var/log/k; fi; [ -L /var/log/k ] && readlink /var/log/k",
            "/d\n",
        ),
    ] {
        let (out, err, _) = run(script).await;
        assert_eq!(out, expected, "{script}\n{err}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_have_bashs_messages_and_status() {
    for (script, message, code) in [
        ("nothing", "script: line 1: nothing: command not found\n", 127),
        ("\n/no/such", "script: line 2: /no/such: No such file or directory\n", 127),
        ("echo a > /no/file", "script: line 1: /no/file: No such file or directory\n", 1),
        ("cat /nope", "cat: /nope: No such file or directory\n", 1),
        ("touch /tmp/x; /tmp/x", "script: line 1: /tmp/x: Permission denied\n", 126),
        ("echo ok; if", "script: line 1: syntax error: unexpected end of file\n", 2),
        ("echo 'open", "script: line 1: unexpected EOF while looking for matching `''\n", 2),
        ("fi", "script: line 1: syntax error near unexpected token `fi'\n", 2),
        ("set -u; echo $unset", "script: line 1: unset: unbound variable\n", 1),
        ("set -e; false; echo never", "", 1),
        (
            "set -e; if false; then :; fi; false || true; ! true; echo $((1/0))",
            "script: line 1: 1/0: division by 0\n",
            1,
        ),
        ("set -o pipefail; false | true", "", 1),
        ("exit 3; echo never", "", 3),
        ("rm /nope", "rm: cannot remove '/nope': No such file or directory\n", 1),
        ("mkdir /a/b", "mkdir: cannot create directory '/a/b': No such file or directory\n", 1),
        ("curl -s http://169.254.169.254/", "", 7),
        ("curl https://example.invalid", "curl: (6) Could not resolve host: example.invalid\n", 6),
        ("systemctl is-active --quiet kubelet", "", 3),
        ("timeout 5 sleep 100", "", 124),
        ("while true; do :; done", "script: line 1: Killed\n", 137),
        ("f() { f; }; f", "script: line 1: maximum nesting level exceeded\n", 1),
    ] {
        let (out, err, status) = run(script).await;
        assert_eq!((err.as_str(), status), (message, code), "{script}");
        assert!(!out.contains("never"));
    }
}

#[tokio::test(start_paused = true)]
async fn sleeping_takes_simulated_time() {
    let before = tokio::time::Instant::now();
    run("sleep 90; sleep 1m; sleep 0.5").await;
    assert_eq!(before.elapsed().as_millis(), 150_500);
}

#[tokio::test(start_paused = true)]
async fn no_input_panics_the_shell() {
    let pieces = [
        "$(", "`", "${", "}", "((", "))", "<<E\n", "if ", "then ", "fi", "case ", "esac", ";;", "|", "&&",
        "&", "'", "\"", "\\", "\n", "x=", "$x", "for ", "do ", "done", "{ ", "(", ")", ">", "<", "echo ",
        "#", "*", "[", "!", "é", "\0",
    ];
    let mut seed = 1u64;
    for _ in 0..2_000 {
        let mut script = String::new();
        for _ in 0..12 {
            // A linear congruential generator: the same scripts in every run.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            script.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
        }
        run(&script).await;
    }
    for deep in [
        "$(".repeat(5_000),
        "(".repeat(5_000),
        "if ".repeat(5_000),
        "${a:-".repeat(5_000),
        "{ ".repeat(5_000),
    ] {
        run(&deep).await;
    }
}
