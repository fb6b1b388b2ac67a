"""CloudStack's clients of PyPI as their users use them. One line per claim; the first broken one ends the run.

usage: suite.py HOST:PORT API-KEY SECRET-KEY
"""
import base64
import sys
import time

from cs import CloudStack, CloudStackApiException
from libcloud.common.types import InvalidCredsError
from libcloud.compute.providers import get_driver
from libcloud.compute.types import NodeState, Provider

ADDRESS, KEY, SECRET = sys.argv[1:4]
HOST, PORT = ADDRESS.split(":")
CLAIMS = []


def claim(function):
    CLAIMS.append(function)
    return function


def connect(secret=SECRET, **more):
    return CloudStack(endpoint=f"http://{ADDRESS}/client/api", key=KEY, secret=secret, **more)


api = connect(fetch_result=True, poll_interval=0.1)
driver = get_driver(Provider.CLOUDSTACK)(KEY, SECRET, secure=False, host=HOST, port=int(PORT), path="/client/api")
made = {}


def refusal(call, **parameters):
    try:
        call(**parameters)
    except CloudStackApiException as refused:
        return refused.error["errorcode"]
    return 0


@claim
def cs_signs_what_the_server_verifies():
    zones = api.listZones()
    assert zones["count"] == 1 and zones["zone"][0]["name"] == "zone-1", zones
    made["zone"] = zones["zone"][0]["id"]
    # Characters that clients escape in different ways; a tilde would fail here as it fails on the server.
    assert api.listZones(name="no such: zone*+/ü", fetch_list=True) == []


@claim
def cs_learns_that_a_wrong_secret_is_wrong():
    assert refusal(connect(secret="wrong").listZones) == 401


@claim
def cs_pages_through_lists():
    all_types = api.listOsTypes(fetch_list=True, page_size=3)
    assert len(all_types) == api.listOsTypes()["count"], len(all_types)


@claim
def cs_makes_a_network_at_once_and_a_machine_by_a_job():
    offering = api.listNetworkOfferings(name="DefaultIsolatedNetworkOfferingWithSourceNatService")
    network = api.createNetwork(
        zoneid=made["zone"], networkofferingid=offering["networkoffering"][0]["id"], name="cs-net", displaytext="cs"
    )["network"]
    assert network["state"] == "Allocated", network
    made["network"] = network["id"]
    made["template"] = api.listTemplates(templatefilter="executable")["template"][0]["id"]
    made["offering"] = api.listServiceOfferings(name="Small Instance")["serviceoffering"][0]["id"]
    machine = api.deployVirtualMachine(
        zoneid=made["zone"],
        templateid=made["template"],
        serviceofferingid=made["offering"],
        networkids=network["id"],
        name="cs-vm",
        userdata=base64.b64encode(b"#cloud-config\n").decode(),
    )["virtualmachine"]
    assert machine["state"] == "Running" and machine["nic"][0]["networkid"] == network["id"], machine
    made["machine"] = machine["id"]
    assert api.listNetworks(id=network["id"])["network"][0]["state"] == "Implemented"


@claim
def cs_is_refused_with_the_servers_codes():
    assert refusal(api.listHosts) == 432
    assert refusal(api.deployVirtualMachine, zoneid=made["zone"]) == 431
    assert refusal(api.listVirtualMachines, id="00000000-0000-0000-0000-000000000000") == 431


@claim
def cs_balances_load():
    ip = api.associateIpAddress(networkid=made["network"])["ipaddress"]
    rule = api.createLoadBalancerRule(
        publicipid=ip["id"], name="api", algorithm="roundrobin", publicport=6443, privateport=6443, protocol="tcp"
    )["loadbalancer"]
    assert rule["publicport"] == "6443", rule
    api.assignToLoadBalancerRule(id=rule["id"], virtualmachineids=made["machine"])
    members = api.listLoadBalancerRuleInstances(id=rule["id"])["loadbalancerruleinstance"]
    assert [member["id"] for member in members] == [made["machine"]], members
    api.deleteLoadBalancerRule(id=rule["id"])
    api.disassociateIpAddress(id=ip["id"])


@claim
def libcloud_sees_the_same_cloud():
    assert [location.name for location in driver.list_locations()] == ["zone-1"]
    assert any(size.name == "Small Instance" and size.ram == 2048 for size in driver.list_sizes())
    assert [image.id for image in driver.list_images()] == [made["template"]]
    assert [network.name for network in driver.ex_list_networks()] == ["cs-net"]
    node = [node for node in driver.list_nodes() if node.id == made["machine"]][0]
    assert node.state == NodeState.RUNNING and node.private_ips, node


@claim
def libcloud_learns_that_a_wrong_secret_is_wrong():
    wrong = get_driver(Provider.CLOUDSTACK)(KEY, "wrong", secure=False, host=HOST, port=int(PORT), path="/client/api")
    try:
        wrong.list_locations()
    except InvalidCredsError:
        return
    except Exception as error:
        assert "verify" in str(error) or "401" in str(error), error
        return
    raise AssertionError("it was let in")


@claim
def libcloud_makes_stops_starts_and_destroys_a_machine():
    location = driver.list_locations()[0]
    size = [size for size in driver.list_sizes() if size.name == "Small Instance"][0]
    node = driver.create_node(
        name="lc-vm",
        size=size,
        image=driver.list_images()[0],
        location=location,
        networks=driver.ex_list_networks(),
        ex_start_vm=True,
    )
    assert node.state == NodeState.RUNNING, node
    assert driver.ex_stop(node).lower() == "stopped"
    assert driver.ex_start(node).lower() == "running"
    assert driver.reboot_node(node)
    driver.ex_create_tags([node.id], "UserVm", {"owner": "libcloud"})
    assert [found.id for found in driver.list_nodes() if found.extra["tags"].get("owner") == "libcloud"] == [node.id]
    assert driver.destroy_node(node)
    assert node.id not in [found.id for found in driver.list_nodes()]


@claim
def cs_cannot_delete_a_network_before_its_machines_are_expunged():
    api.destroyVirtualMachine(id=made["machine"])
    assert refusal(api.deleteNetwork, id=made["network"]) == 530
    for _ in range(100):
        if refusal(api.deleteNetwork, id=made["network"]) == 0:
            return
        time.sleep(0.1)
    raise AssertionError("the machine is never expunged")


for number, function in enumerate(CLAIMS, 1):
    function()
    print(f"{number}. {function.__name__.replace('_', ' ')}", flush=True)
print("DONE", flush=True)
