//! Kubernetes' own libraries.

use super::standard::intern;
use super::{FunctionTable, Implementation, param};
use crate::library::{
    authorization as access, lists, named_format, network, quantity, regex, semver, strings, url,
};
use crate::types::Type;

fn object(name: &str) -> Type {
    Type::library_object(name)
}

pub(super) fn declare_base(table: &mut FunctionTable) {
    declare_urls(table);
    let two = || [Type::STRING, Type::STRING];
    let strings = || Type::list(Type::STRING);
    table.member("find", "string_find_string", two(), Type::STRING, regex::find as Implementation);
    let find_all = regex::find_all as Implementation;
    table.member("findAll", "string_find_all_string", two(), strings(), find_all);
    table.member(
        "findAll",
        "string_find_all_string_int",
        [Type::STRING, Type::STRING, Type::INT],
        strings(),
        find_all,
    );
    declare_lists(table);
    declare_authorization(table);
}

fn declare_urls(table: &mut FunctionTable) {
    let t = || object("kubernetes.URL");
    table.global("url", "string_to_url", [Type::STRING], t(), url::parse as Implementation);
    table.global("isURL", "is_url_string", [Type::STRING], Type::BOOL, url::is_url as Implementation);
    let accessors: [(&'static str, &'static str, Implementation); 5] = [
        ("getScheme", "url_get_scheme", url::scheme),
        ("getHost", "url_get_host", url::host),
        ("getHostname", "url_get_hostname", url::hostname),
        ("getPort", "url_get_port", url::port),
        ("getEscapedPath", "url_get_escaped_path", url::escaped_path),
    ];
    for (name, id, run) in accessors {
        table.member(name, id, [t()], Type::STRING, run);
    }
    let query = Type::map(Type::STRING, Type::list(Type::STRING));
    table.member("getQuery", "url_get_query", [t()], query, url::query as Implementation);
}

fn declare_lists(table: &mut FunctionTable) {
    let summable =
        [(Type::INT, "int"), (Type::UINT, "uint"), (Type::DOUBLE, "double"), (Type::DURATION, "duration")];
    let comparable = [
        (Type::INT, "int"),
        (Type::UINT, "uint"),
        (Type::DOUBLE, "double"),
        (Type::BOOL, "bool"),
        (Type::DURATION, "duration"),
        (Type::TIMESTAMP, "timestamp"),
        (Type::STRING, "string"),
        (Type::BYTES, "bytes"),
    ];
    for (t, name) in &comparable {
        let list = || Type::list(t.clone());
        let id = intern(&format!("list_{name}_is_sorted_bool"));
        table.member("isSorted", id, [list()], Type::BOOL, lists::is_sorted as Implementation);
        let id = intern(&format!("list_{name}_max_{name}"));
        table.member("max", id, [list()], t.clone(), lists::max as Implementation);
        let id = intern(&format!("list_{name}_min_{name}"));
        table.member("min", id, [list()], t.clone(), lists::min as Implementation);
    }
    for (t, name) in summable {
        // The sum of no elements is the zero of the declared type, so each type has its own.
        let run: Implementation = match name {
            "int" => lists::sum_int,
            "uint" => lists::sum_uint,
            "double" => lists::sum_double,
            _ => lists::sum_duration,
        };
        let id = intern(&format!("list_{name}_sum_{name}"));
        table.member("sum", id, [Type::list(t.clone())], t, run);
    }
    let args = || [Type::list(param("A")), param("A")];
    table.member("indexOf", "list_a_index_of_int", args(), Type::INT, lists::index_of as Implementation);
    table.member(
        "lastIndexOf",
        "list_a_last_index_of_int",
        args(),
        Type::INT,
        lists::last_index_of as Implementation,
    );
}

/// The functions of the `authorizer` variable, which only admission expressions have.
fn declare_authorization(table: &mut FunctionTable) {
    let t = |name: &str| object(&format!("kubernetes.authorization.{name}"));
    let (authorizer, path, group) = (|| t("Authorizer"), || t("PathCheck"), || t("GroupCheck"));
    let (resource, decision) = (|| t("ResourceCheck"), || t("Decision"));
    let s = || Type::STRING;
    let mut member = |name, id, args: Vec<Type>, result, run: Implementation| {
        table.member(name, id, args, result, run);
    };
    member("path", "authorizer_path", vec![authorizer(), s()], path(), access::path);
    member("group", "authorizer_group", vec![authorizer(), s()], group(), access::group);
    let account = "authorizer_serviceaccount";
    member("serviceAccount", account, vec![authorizer(), s(), s()], authorizer(), access::service_account);
    member("resource", "groupcheck_resource", vec![group(), s()], resource(), access::resource);
    let subresource = "resourcecheck_subresource";
    member("subresource", subresource, vec![resource(), s()], resource(), access::subresource);
    member("namespace", "resourcecheck_namespace", vec![resource(), s()], resource(), access::namespace);
    member("name", "resourcecheck_name", vec![resource(), s()], resource(), access::name);
    member("check", "pathcheck_check", vec![path(), s()], decision(), access::check);
    member("check", "resourcecheck_check", vec![resource(), s()], decision(), access::check);
    member("errored", "decision_errored", vec![decision()], Type::BOOL, access::errored);
    member("error", "decision_error", vec![decision()], s(), access::error);
    member("allowed", "decision_allowed", vec![decision()], Type::BOOL, access::allowed);
    member("reason", "decision_reason", vec![decision()], s(), access::reason);
}

pub(super) fn declare_selectors(table: &mut FunctionTable) {
    let resource = || object("kubernetes.authorization.ResourceCheck");
    for (name, id) in
        [("fieldSelector", "authorizer_fieldselector"), ("labelSelector", "authorizer_labelselector")]
    {
        table.member(name, id, [resource(), Type::STRING], resource(), access::selector as Implementation);
    }
}

/// The functions of mutating expressions.
pub(super) fn declare_patches(table: &mut FunctionTable) {
    table.global(
        "jsonpatch.escapeKey",
        "string_jsonpatch_escapeKey_string",
        [Type::STRING],
        Type::STRING,
        strings::escape_json_pointer as Implementation,
    );
}

pub(super) fn declare_quantity(table: &mut FunctionTable) {
    let t = || object("kubernetes.Quantity");
    let s = || Type::STRING;
    table.global("quantity", "string_to_quantity", [s()], t(), quantity::parse as Implementation);
    table.global(
        "isQuantity",
        "is_quantity_string",
        [s()],
        Type::BOOL,
        quantity::is_quantity as Implementation,
    );
    table.global("sign", "quantity_sign", [t()], Type::INT, quantity::sign as Implementation);
    let mut member = |name, id, args: Vec<Type>, result, run: Implementation| {
        table.member(name, id, args, result, run);
    };
    member(
        "isGreaterThan",
        "quantity_is_greater_than",
        vec![t(), t()],
        Type::BOOL,
        quantity::is_greater_than,
    );
    member("isLessThan", "quantity_is_less_than", vec![t(), t()], Type::BOOL, quantity::is_less_than);
    member("compareTo", "quantity_compare_to", vec![t(), t()], Type::INT, quantity::compare_to);
    member("asApproximateFloat", "quantity_get_float", vec![t()], Type::DOUBLE, quantity::as_float);
    member("asInteger", "quantity_get_int", vec![t()], Type::INT, quantity::as_integer);
    member("isInteger", "quantity_is_integer", vec![t()], Type::BOOL, quantity::is_integer);
    member("add", "quantity_add", vec![t(), t()], t(), quantity::add);
    member("add", "quantity_add_int", vec![t(), Type::INT], t(), quantity::add);
    member("sub", "quantity_sub", vec![t(), t()], t(), quantity::sub);
    member("sub", "quantity_sub_int", vec![t(), Type::INT], t(), quantity::sub);
}

pub(super) fn declare_network(table: &mut FunctionTable) {
    let ip = || Type::opaque("net.IP", Vec::new());
    let cidr = || Type::opaque("net.CIDR", Vec::new());
    let s = || Type::STRING;
    let mut global = |name, id, arg: Type, result, run: Implementation| {
        table.global(name, id, [arg], result, run);
    };
    global("ip", "string_to_ip", s(), ip(), network::to_ip);
    global("ip.isCanonical", "ip_is_canonical", s(), Type::BOOL, network::is_canonical);
    global("isIP", "is_ip", s(), Type::BOOL, network::is_ip);
    global("string", "ip_to_string", ip(), s(), network::to_text);
    global("cidr", "string_to_cidr", s(), cidr(), network::to_cidr);
    global("isCIDR", "is_cidr", s(), Type::BOOL, network::is_cidr);
    global("string", "cidr_to_string", cidr(), s(), network::to_text);
    let mut member = |name, id, args: Vec<Type>, result, run: Implementation| {
        table.member(name, id, args, result, run);
    };
    member("family", "ip_family", vec![ip()], Type::INT, network::family);
    member("isUnspecified", "ip_is_unspecified", vec![ip()], Type::BOOL, network::is_unspecified);
    member("isLoopback", "ip_is_loopback", vec![ip()], Type::BOOL, network::is_loopback);
    member(
        "isLinkLocalMulticast",
        "ip_is_link_local_multicast",
        vec![ip()],
        Type::BOOL,
        network::is_link_local_multicast,
    );
    member(
        "isLinkLocalUnicast",
        "ip_is_link_local_unicast",
        vec![ip()],
        Type::BOOL,
        network::is_link_local_unicast,
    );
    member("isGlobalUnicast", "ip_is_global_unicast", vec![ip()], Type::BOOL, network::is_global_unicast);
    member("containsIP", "cidr_contains_ip_string", vec![cidr(), s()], Type::BOOL, network::contains_ip);
    member("containsIP", "cidr_contains_ip_ip", vec![cidr(), ip()], Type::BOOL, network::contains_ip);
    member(
        "containsCIDR",
        "cidr_contains_cidr_string",
        vec![cidr(), s()],
        Type::BOOL,
        network::contains_cidr,
    );
    member("containsCIDR", "cidr_contains_cidr", vec![cidr(), cidr()], Type::BOOL, network::contains_cidr);
    member("ip", "cidr_ip", vec![cidr()], ip(), network::cidr_ip);
    member("prefixLength", "cidr_prefix_length", vec![cidr()], Type::INT, network::prefix_length);
    member("masked", "cidr_masked", vec![cidr()], cidr(), network::masked);
}

pub(super) fn declare_format(table: &mut FunctionTable) {
    let t = || object("kubernetes.NamedFormat");
    let failures = Type::optional(Type::list(Type::STRING));
    let validate = named_format::validate as Implementation;
    table.member("validate", "format-validate", [t(), Type::STRING], failures, validate);
    table.global(
        "format.named",
        "format-named",
        [Type::STRING],
        Type::optional(t()),
        named_format::named as Implementation,
    );
    for (name, run) in named_format::constants() {
        table.global(name, name, [], t(), run);
    }
}

pub(super) fn declare_semver(table: &mut FunctionTable) {
    let t = || object("kubernetes.Semver");
    let s = || Type::STRING;
    let parse = semver::parse as Implementation;
    table.global("semver", "string_to_semver", [s()], t(), parse);
    table.global("semver", "string_bool_to_semver", [s(), Type::BOOL], t(), parse);
    let is_semver = semver::is_semver as Implementation;
    table.global("isSemver", "is_semver_string", [s()], Type::BOOL, is_semver);
    table.global("isSemver", "is_semver_string_bool", [s(), Type::BOOL], Type::BOOL, is_semver);
    let mut member = |name, id, args: Vec<Type>, result, run: Implementation| {
        table.member(name, id, args, result, run);
    };
    member("isGreaterThan", "semver_is_greater_than", vec![t(), t()], Type::BOOL, semver::is_greater_than);
    member("isLessThan", "semver_is_less_than", vec![t(), t()], Type::BOOL, semver::is_less_than);
    member("compareTo", "semver_compare_to", vec![t(), t()], Type::INT, semver::compare_to);
    member("major", "semver_major", vec![t()], Type::INT, semver::major);
    member("minor", "semver_minor", vec![t()], Type::INT, semver::minor);
    member("patch", "semver_patch", vec![t()], Type::INT, semver::patch);
}
