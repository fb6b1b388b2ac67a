//! Tables of templates and what Go makes of them.

use serde_json::{Value, json};

use crate::{Limits, Template, render};

fn data() -> Value {
    json!({
        "builtin": {
            "cluster": {"name": "one", "namespace": "ns", "topology": {"version": "v1.35.2"}},
            "controlPlane": {"version": "v1.35.2", "replicas": 3},
        },
        "lbImageRepository": "registry.example/lb",
        "list": ["a", "b"],
        "numbers": [1, 2.5, 1_000_000],
        "map": {"z": 1, "a": {"b": "c"}},
        "empty": "",
        "yes": true,
        "nothing": null,
    })
}

#[test]
fn templates_render_as_in_go() {
    for (template, expected) in [
        ("plain", "plain"),
        ("a {{ .builtin.cluster.name }} b", "a one b"),
        ("a\n  {{- .builtin.cluster.name -}}  \n b", "aoneb"),
        ("{{/* a comment */}}x{{- /* another */ -}}  y", "xy"),
        ("{{ .missing }}|{{ .nothing }}", "<no value>|<no value>"),
        ("{{ .numbers }} {{ .builtin.controlPlane.replicas }}", "[1 2.5 1e+06] 3"),
        ("{{ .map }}", "map[a:map[b:c] z:1]"),
        ("{{ if .yes }}1{{ if .empty }}2{{ else }}3{{ end }}4{{ end }}", "134"),
        ("{{ if .empty }}a{{ else if .yes }}b{{ else }}c{{ end }}", "b"),
        ("{{ with .builtin.cluster }}{{ .name }}{{ $.yes }}{{ end }}", "onetrue"),
        ("{{ with .empty }}x{{ else }}y{{ end }}", "y"),
        ("{{ with .empty }}x{{ else with .yes }}{{ . }}{{ end }}", "true"),
        ("{{ range .list }}[{{ . }}]{{ end }}", "[a][b]"),
        ("{{ range $i, $e := .list }}{{ $i }}={{ $e }} {{ end }}", "0=a 1=b "),
        ("{{ range $k, $v := .map }}{{ $k }} {{ end }}", "a z "),
        ("{{ range .missing }}x{{ else }}none{{ end }}", "none"),
        ("{{ range .list }}{{ if eq . \"b\" }}{{ break }}{{ end }}{{ . }}{{ end }}", "a"),
        ("{{ range .list }}{{ if eq . \"a\" }}{{ continue }}{{ end }}{{ . }}{{ end }}", "b"),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        ("{{ $x := 1 }}{{ range .list }}{{ $x = add $x 1 }}{{ end }}{{ $x }}", "3"),
        (
            "{{ define \"t\" }}<{{ . }}>{{ end }}{{ template \"t\" .yes }}{{ template \"t\" }}",
            "<true><<no value>>",
        ),
        ("{{ block \"b\" .list }}{{ len . }}{{ end }}", "2"),
        ("{{ print \"a\" 1 2 \"b\" }}|{{ println 1 \"x\" }}", "a1 2b|1 x\n"),
        (
            "{{ printf \"%s-%d-%q-%05d-%-3s|%.2f %v %%\" \"a\" 1 \"q\" 42 \"x\" 1.5 .list }}",
            "a-1-\"q\"-00042-x  |1.50 [a b] %",
        ),
        ("{{ index .list 1 }}{{ index .map \"a\" \"b\" }}", "bc"),
        ("{{ (index .map \"a\").b }}", "c"),
        ("{{ len \"abc\" }}{{ slice \"abc\" 1 2 }}", "3b"),
        ("{{ not .yes }} {{ and 1 0 2 }} {{ or 0 \"\" 5 }}", "false 0 5"),
        ("{{ and .missing .missing.deeper }}", "<no value>"),
        ("{{ eq 1 2 1 }} {{ ne \"a\" \"b\" }} {{ lt 1 2 }} {{ ge \"b\" \"a\" }}", "true true true true"),
        ("{{ \"tab\\there\" }}{{ `raw\\n` }}{{ 'a' }}{{ 0x10 }}", "tab\thereraw\\n9716"),
    ] {
        assert_eq!(render(template, &data()).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn functions_of_sprig_do_what_they_do_there() {
    for (template, expected) in [
        ("{{ .list | join \",\" | upper | quote }}", "\"A,B\""),
        ("{{ default \"d\" .empty }} {{ .missing | default 5 }} {{ coalesce .empty .yes }}", "d 5 true"),
        ("{{ empty .empty }} {{ ternary \"a\" \"b\" .yes }}", "true a"),
        (
            "{{ trimPrefix \"v\" .builtin.controlPlane.version }} {{ trimSuffix \".2\" .builtin.controlPlane.version }}",
            "1.35.2 v1.35",
        ),
        ("{{ hasPrefix \"reg\" .lbImageRepository }} {{ contains \"/\" .lbImageRepository }}", "true true"),
        (
            "{{ replace \".\" \"-\" .builtin.controlPlane.version }} {{ trunc 3 \"abcdef\" }} {{ trunc -2 \"abcdef\" }}",
            "v1-35-2 abc ef",
        ),
        ("{{ substr 0 2 \"abc\" }}|{{ repeat 2 \"ab\" }}|{{ nindent 2 \"a\\nb\" }}", "ab|abab|\n  a\n  b"),
        ("{{ splitList \".\" \"a.b\" | last }} {{ (split \".\" \"a.b\")._0 }}", "b a"),
        (
            "{{ add 1 2 3 }} {{ sub 5 2 }} {{ mul 2 3 }} {{ div 7 2 }} {{ mod 7 2 }} {{ max 1 5 3 }} {{ int .builtin.controlPlane.replicas }}",
            "6 3 6 3 1 5 3",
        ),
        (
            "{{ round 1.256 2 }} {{ ceil 1.2 }} {{ floor 1.8 }} {{ until 3 }} {{ untilStep 1 6 2 }} {{ seq 3 }} {{ seq 0 2 4 }}",
            "1.26 2 1 [0 1 2] [1 3 5] 1 2 3 0 2 4",
        ),
        (
            "{{ list 1 2 | len }} {{ first .list }} {{ rest .list }} {{ append .list \"c\" }} {{ concat .list .list | uniq }} {{ reverse .list }} {{ has \"a\" .list }} {{ without .list \"a\" }}",
            "2 a [b] [a b c] [a b] [b a] true [b]",
        ),
        (
            "{{ $d := dict \"a\" 1 \"b\" 2 }}{{ $_ := set $d \"c\" 3 }}{{ $d }} {{ hasKey $d \"c\" }} {{ get $d \"x\" }}|{{ keys $d | sortAlpha }} {{ pick $d \"a\" }} {{ omit $d \"a\" }}",
            "map[a:1 b:2 c:3] true |[a b c] map[a:1] map[b:2 c:3]",
        ),
        (
            "{{ merge (dict \"a\" 1) (dict \"a\" 2 \"b\" 3) }} {{ mergeOverwrite (dict \"a\" 1) (dict \"a\" 2) }}",
            "map[a:1 b:3] map[a:2]",
        ),
        ("{{ dig \"a\" \"b\" \"d\" .map }} {{ dig \"a\" \"x\" \"d\" .map }}", "c d"),
        (
            "{{ toJson .map }} {{ (fromJson \"{\\\"x\\\": [1]}\").x }} {{ toJson \"<\" }}",
            "{\"a\":{\"b\":\"c\"},\"z\":1} [1] \"\\u003c\"",
        ),
        (
            "{{ b64enc \"hello\" }} {{ b64dec \"aGVsbG8=\" }} {{ b32enc \"hello\" }} {{ b32dec \"NBSWY3DP\" }}",
            "aGVsbG8= hello NBSWY3DP hello",
        ),
        ("{{ sha256sum \"a\" | trunc 8 }} {{ adler32sum \"Wikipedia\" }}", "ca978112 300286872"),
        (
            "{{ regexMatch \"^v1\\\\.\" .builtin.controlPlane.version }} {{ regexReplaceAll \"a(b)\" \"abab\" \"${1}x\" }} {{ regexFind \"[0-9]+\" \"a12\" }}",
            "true bxbx 12",
        ),
        (
            "{{ kindOf .list }} {{ kindIs \"map\" .map }} {{ typeOf 1.5 }} {{ toString 12 }}",
            "slice true float64 12",
        ),
        (
            "{{ camelcase \"http_server\" }} {{ snakecase \"FirstName\" }} {{ kebabcase \"FirstName\" }} {{ title \"a b\" }} {{ initials \"First Try\" }}",
            "HttpServer first_name first-name A B FT",
        ),
        (
            "{{ base \"/a/b.txt\" }} {{ dir \"/a/b.txt\" }} {{ ext \"b.txt\" }} {{ clean \"/a/../b/./c\" }}",
            "b.txt /a .txt /b/c",
        ),
        ("{{ (semver \"v1.35.2-rc.1\").Minor }} {{ squote 1 \"a\" }} {{ cat 1 \"a\" }}", "35 '1' 'a' 1 a"),
    ] {
        assert_eq!(render(template, &data()).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn versions_satisfy_constraints() {
    for (constraint, version, expected) in [
        (">= v1.24.0", "v1.35.2", true),
        ("<= v1.23", "v1.23.9", true),
        ("<= v1.23", "v1.24.0", false),
        (">1.23", "1.23.5", false),
        (">= 1.30.0, < 1.31.0", "v1.30.4", true),
        (">= 1.30.0 < 1.31.0", "v1.31.0", false),
        ("~1.30.1", "1.30.9", true),
        ("~1.30", "1.31.0", false),
        ("^1.2.3", "1.9.0", true),
        ("^0.2.3", "0.3.0", false),
        ("1.30.x", "1.30.7", true),
        ("*", "9.9.9", true),
        ("1.2 - 1.4.5", "1.4.5", true),
        ("< 1.0.0 || >= 2", "2.1.0", true),
        ("!= 1.30.x", "1.30.2", false),
        (">= 1.30.0", "v1.31.0-rc.1", false),
        (">= 1.30.0-0", "v1.31.0-rc.1", true),
        ("= 1.30.1", "1.30.1", true),
    ] {
        let template = format!("{{{{ semverCompare {constraint:?} {version:?} }}}}");
        assert_eq!(render(&template, &data()), Ok(expected.to_string()), "{constraint} {version}");
    }
}

#[test]
fn wrong_templates_are_errors_with_a_line() {
    for (template, message) in [
        ("{{ end }}", "line 1: unexpected {{end}}"),
        ("a\n{{ if .x }}", "line 2: if is not ended"),
        ("{{ .x", "line 1: unclosed action"),
        ("{{ }}", "line 1: missing value for command"),
        ("{{ now }}", "line 1: function \"now\" not defined"),
        ("{{ env \"HOME\" }}", "line 1: function \"env\" not defined"),
        ("{{ .empty.deeper }}", "line 1: can't evaluate field deeper in type string"),
        ("{{ $x }}", "line 1: undefined variable: $x"),
        (
            "{{ eq 3 .builtin.controlPlane.replicas }}",
            "line 1: error calling eq: incompatible types for comparison",
        ),
        ("{{ break }}", "line 1: {{break}} outside {{range}}"),
        ("{{ fail \"no\" }}", "line 1: error calling fail: no"),
        ("{{ 1 | 2 }}", "line 1: can't give argument to non-function"),
        ("{{ template \"x\" }}", "line 1: template \"x\" not defined"),
        ("{{ .a.b", "line 1: unclosed action"),
        ("{{ (1 }}", "line 1: unclosed left paren"),
        ("{{ \"a }}", "line 1: unterminated quoted string"),
        ("{{ index .list 5 }}", "line 1: error calling index: index out of range: 5"),
    ] {
        assert_eq!(render(template, &data()).expect_err(template).to_string(), message, "{template}");
    }
}

#[test]
fn fields_of_a_missing_key_are_missing_and_a_null_has_none() {
    let data = json!({"null": null});
    assert_eq!(render("{{ .missing.deeper.still }}", &data), Ok("<no value>".to_owned()));
    assert_eq!(render("{{ if .missing.deeper }}a{{ else }}b{{ end }}", &data), Ok("b".to_owned()));
    let error = render("{{ .null.deeper }}", &data).map_err(|error| error.to_string());
    assert_eq!(error, Err("line 1: nil pointer evaluating interface {}.deeper".to_owned()));
}

#[test]
fn a_missing_key_can_be_an_error() {
    let template = Template::parse("{{ .cluster.name }}-{{ .random }}").expect("a template");
    let strict = template.missing_key_is_error();
    assert_eq!(strict.render(&json!({"cluster": {"name": "a"}, "random": "x"})), Ok("a-x".to_owned()));
    let error = strict.render(&json!({"cluster": {}})).expect_err("no name");
    assert_eq!(error.message, "map has no entry for key \"name\"");
}

#[test]
fn time_and_space_are_bounded() {
    let limits = Limits::default();
    let deep = format!("{}1{}", "(".repeat(500), ")".repeat(500));
    let nested = format!("{}{}", "{{ if true }}".repeat(500), "{{ end }}".repeat(500));
    for (template, message) in [
        ("{{ range until 100000 }}{{ range until 100000 }}x{{ end }}{{ end }}", "steps"),
        ("{{ repeat 1000000000 \"abc\" }}", "longer than"),
        ("{{ until 1000000000 }}", "elements are more than"),
        ("{{ $x := \"abc\" }}{{ range until 100 }}{{ $x = print $x $x }}{{ end }}", "longer than"),
        ("{{ define \"t\" }}{{ template \"t\" }}{{ end }}{{ template \"t\" }}", "more than 50 deep"),
        ("{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ $d }}", "nested too deeply"),
        ("{{ printf \"%1000000000d\" 1 }}", "a width of"),
        (&format!("{{{{ {deep} }}}}"), "more than 100 deep"),
        (&nested, "more than 100 deep"),
        (&"x".repeat(limits.template + 1), "longer than"),
    ] {
        let error = render(template, &data()).expect_err("a bound");
        assert!(error.message.contains(message), "{}: {error}", &template[..template.len().min(60)]);
    }
}
