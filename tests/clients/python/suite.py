"""The Python client of PyPI as its users use it. One line per claim; the first broken one ends the run.

usage: suite.py KUBECONFIG
Prints RESTART when the server may be restarted, and goes on when a line arrives on standard input.
"""
import base64
import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

NAMESPACE = "python"
CLAIMS = []


def claim(function):
    CLAIMS.append(function)
    return function


def status_of(call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except ApiException as error:
        return error.status
    return 200


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"suite": "python"}), data=data)


@claim
def a_namespace_gets_its_service_account_and_root_certificate():
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    found = {"serviceaccounts": False, "configmaps": False}
    for event in watch.Watch().stream(core.list_namespaced_service_account, NAMESPACE, timeout_seconds=30):
        if event["object"].metadata.name == "default":
            found["serviceaccounts"] = True
            break
    for event in watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, timeout_seconds=30):
        if event["object"].metadata.name == "kube-root-ca.crt":
            found["configmaps"] = "BEGIN CERTIFICATE" in event["object"].data["ca.crt"]
            break
    assert all(found.values()), found


@claim
def typed_objects_are_created_read_replaced_patched_listed_and_deleted():
    made = core.create_namespaced_config_map(NAMESPACE, config_map("typed", a="1"))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo
    read = core.read_namespaced_config_map("typed", NAMESPACE)
    read.data["b"] = "2"
    replaced = core.replace_namespaced_config_map("typed", NAMESPACE, read)
    assert replaced.data == {"a": "1", "b": "2"}
    assert status_of(core.replace_namespaced_config_map, "typed", NAMESPACE, read) == 409
    patched = core.patch_namespaced_config_map("typed", NAMESPACE, {"data": {"a": None, "c": "3"}})
    assert patched.data == {"b": "2", "c": "3"}
    patched = core.patch_namespaced_config_map("typed", NAMESPACE, [{"op": "remove", "path": "/data/b"}])
    assert patched.data == {"c": "3"}
    names = [item.metadata.name for item in core.list_namespaced_config_map(NAMESPACE, label_selector="suite=python").items]
    assert names == ["typed"], names
    core.delete_namespaced_config_map("typed", NAMESPACE)
    assert status_of(core.read_namespaced_config_map, "typed", NAMESPACE) == 404
    assert status_of(core.create_namespaced_config_map, NAMESPACE, config_map("Not_A_Name")) == 422


@claim
def secrets_keep_their_bytes():
    secret = client.V1Secret(metadata=client.V1ObjectMeta(name="bytes"), string_data={"plain": "text"}, data={"raw": base64.b64encode(bytes(range(256))).decode()})
    core.create_namespaced_secret(NAMESPACE, secret)
    read = core.read_namespaced_secret("bytes", NAMESPACE)
    assert base64.b64decode(read.data["raw"]) == bytes(range(256))
    assert base64.b64decode(read.data["plain"]) == b"text"
    assert read.type == "Opaque"


@claim
def long_lists_come_in_chunks():
    for number in range(25):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"chunk-{number:02}"))
    seen, token = [], None
    while True:
        page = core.list_namespaced_config_map(NAMESPACE, label_selector="suite=python", limit=10, _continue=token)
        assert len(page.items) <= 10
        seen += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert seen == [f"chunk-{number:02}" for number in range(25)], seen
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="suite=python")
    assert not core.list_namespaced_config_map(NAMESPACE, label_selector="suite=python").items


GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.python.example.com"},
    "spec": {
        "group": "python.example.com", "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    "size": {"type": "integer", "default": 3},
                    "parts": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
                        "name": {"type": "string"}, "weight": {"type": "integer"}}},
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}}},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}},
        }],
    },
}


def wait_for_gadgets():
    extensions = client.ApiextensionsV1Api()
    for event in watch.Watch().stream(extensions.list_custom_resource_definition, field_selector="metadata.name=gadgets.python.example.com", timeout_seconds=30):
        conditions = (event["object"].status and event["object"].status.conditions) or []
        if any(c.type == "Established" and c.status == "True" for c in conditions):
            return
    raise AssertionError("the definition was never established")


@claim
def custom_objects_are_defaulted_and_have_a_status_of_their_own():
    client.ApiextensionsV1Api().create_custom_resource_definition(GADGETS)
    wait_for_gadgets()
    custom = client.CustomObjectsApi()
    where = dict(group="python.example.com", version="v1", namespace=NAMESPACE, plural="gadgets")
    body = {"apiVersion": "python.example.com/v1", "kind": "Gadget", "metadata": {"name": "one"}, "spec": {"unknown": 1}, "status": {"phase": "Lost"}}
    made = custom.create_namespaced_custom_object(body=body, **where)
    assert made["spec"] == {"size": 3} and "status" not in made, made
    made["status"] = {"phase": "Ready"}
    made["spec"]["size"] = 9
    updated = custom.replace_namespaced_custom_object_status(name="one", body=made, **where)
    assert updated["status"] == {"phase": "Ready"} and updated["spec"]["size"] == 3, updated
    assert len(custom.list_namespaced_custom_object(**where)["items"]) == 1
    assert status_of(custom.patch_namespaced_custom_object, name="one", body={"spec": {"size": "big"}}, **where) == 422


@claim
def the_dynamic_client_discovers_kinds():
    api = dynamic.DynamicClient(client.ApiClient())
    gadgets = api.resources.get(api_version="python.example.com/v1", kind="Gadget")
    assert gadgets.get(name="one", namespace=NAMESPACE).status.phase == "Ready"
    gadgets.patch(name="one", namespace=NAMESPACE, body={"spec": {"size": 4}}, content_type="application/merge-patch+json")
    assert gadgets.get(name="one", namespace=NAMESPACE).spec.size == 4
    gadgets.delete(name="one", namespace=NAMESPACE)
    try:
        gadgets.get(name="one", namespace=NAMESPACE)
        raise AssertionError("still there")
    except NotFoundError:
        pass


@claim
def server_side_apply_finds_conflicts_and_can_be_forced():
    api = dynamic.DynamicClient(client.ApiClient())
    gadgets = api.resources.get(api_version="python.example.com/v1", kind="Gadget")

    def apply(manager, spec, **keywords):
        body = {"apiVersion": "python.example.com/v1", "kind": "Gadget", "metadata": {"name": "applied"}, "spec": spec}
        return gadgets.server_side_apply(body=body, name="applied", namespace=NAMESPACE, field_manager=manager, **keywords)

    apply("first", {"size": 5, "parts": [{"name": "wheel", "weight": 1}]})
    apply("second", {"parts": [{"name": "axle", "weight": 2}]})
    try:
        apply("second", {"size": 6})
        raise AssertionError("no conflict")
    except ConflictError as error:
        assert 'conflict with \\"first\\"' in str(error.body), error.body
    forced = apply("second", {"size": 6}, force_conflicts=True)
    assert forced.spec.size == 6
    assert [part.name for part in forced.spec.parts] == ["wheel"], forced.spec.parts
    managers = {entry.manager for entry in forced.metadata.managedFields if entry.operation == "Apply"}
    assert managers == {"first", "second"}, managers


@claim
def a_watch_resumes_across_a_restart_without_missing_or_repeating():
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    expected = []

    def change(name):
        expected.append(core.create_namespaced_config_map(NAMESPACE, config_map(name, a="1")).metadata.resource_version)
        expected.append(core.patch_namespaced_config_map(name, NAMESPACE, {"data": {"a": "2"}}).metadata.resource_version)

    change("before")
    seen = []

    def follow(until, resource_version):
        for event in watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version=resource_version, timeout_seconds=30):
            seen.append(event["object"].metadata.resource_version)
            if len(seen) == until:
                return
        raise AssertionError(f"saw {seen}, expected {expected}")

    follow(2, version)
    change("unseen")
    print("RESTART", flush=True)
    sys.stdin.readline()
    for attempt in range(100):
        try:
            core.read_namespace(NAMESPACE)
            break
        except Exception:
            threading.Event().wait(0.1)
    change("after")
    follow(6, seen[-1])
    assert seen == expected, (seen, expected)


@claim
def of_two_candidates_one_leads_and_the_other_waits():
    led = []

    def candidate(name):
        def lead():
            led.append(name)
            threading.Event().wait(60)

        lock = LeaseLock("leader", NAMESPACE, name)
        settings = electionconfig.Config(lock, lease_duration=4, renew_deadline=3, retry_period=1, onstarted_leading=lead, onstopped_leading=lambda: None)
        threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True).start()

    leases = client.CoordinationV1Api()
    candidate("one")
    candidate("two")
    wait_for(lambda: len(led) == 1, 20)
    taken = leases.read_namespaced_lease("leader", NAMESPACE).spec
    assert taken.holder_identity == led[0], taken
    wait_for(lambda: leases.read_namespaced_lease("leader", NAMESPACE).spec.renew_time > taken.renew_time, 20)
    assert len(led) == 1, led


def wait_for(condition, seconds):
    for _ in range(seconds * 10):
        if condition():
            return
        threading.Event().wait(0.1)
    raise AssertionError("it did not come to pass")


@claim
def the_server_says_who_asks_and_what_they_may_do():
    review = client.AuthorizationV1Api().create_self_subject_access_review(client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=client.V1ResourceAttributes(verb="delete", resource="nodes"))))
    assert review.status.allowed
    token = core.create_namespaced_service_account_token("default", NAMESPACE, client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600)))
    verdict = client.AuthenticationV1Api().create_token_review(client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token.status.token)))
    assert verdict.status.authenticated and verdict.status.user.username == f"system:serviceaccount:{NAMESPACE}:default", verdict.status
    limited = client.Configuration.get_default_copy()
    limited.cert_file = limited.key_file = None
    limited.api_key = {"authorization": "Bearer " + token.status.token}
    as_robot = client.CoreV1Api(client.ApiClient(limited))
    assert status_of(as_robot.list_namespaced_secret, NAMESPACE) == 403


@claim
def a_deleted_namespace_takes_everything_with_it():
    core.delete_namespace(NAMESPACE)
    wait_for(lambda: status_of(core.read_namespace, NAMESPACE) == 404, 60)
    client.ApiextensionsV1Api().delete_custom_resource_definition("gadgets.python.example.com")


if __name__ == "__main__":
    config.load_kube_config(sys.argv[1])
    core = client.CoreV1Api()
    for check in CLAIMS:
        check()
        print("ok", check.__name__.replace("_", " "), flush=True)
    print("DONE", flush=True)
