"""Fills the cloud: `identity`, then `resources`, then `zones`.

Talks to the cloud that the OS_* environment names. Safe to run twice.
"""
import ipaddress
import os
import sys

import openstack

PASSWORD = os.environ['BED_PASSWORD']
REGION = os.environ['OS_REGION_NAME']
TENANT = 'capstan'
# name=type=url, separated by blanks
SERVICES = [s.split('=', 2) for s in os.environ['BED_CATALOG'].split()]


def one(found, make):
    return found if found is not None else make()


def identity(c):
    i = c.identity
    default = i.find_domain('Default')
    service = one(i.find_project('service', domain_id=default.id),
                  lambda: i.create_project(name='service',
                                           domain_id=default.id))
    roles = {}
    for name in ('admin', 'member', 'reader', 'service',
                 'load-balancer_admin', 'load-balancer_member',
                 'load-balancer_observer', 'load-balancer_quota_admin'):
        roles[name] = one(i.find_role(name),
                          lambda: i.create_role(name=name))
    for name in {s[0] for s in SERVICES}:
        user = one(i.find_user(name, domain_id=default.id),
                   lambda: i.create_user(name=name, password=PASSWORD,
                                         domain_id=default.id,
                                         default_project_id=service.id))
        for role in ('admin', 'service'):
            i.assign_project_role_to_user(service, user, roles[role])
    for name, kind, url in SERVICES:
        svc = one(i.find_service(name),
                  lambda: i.create_service(name=name, type=kind))
        have = {e.interface for e in i.endpoints(service_id=svc.id)}
        for interface in {'public', 'internal'} - have:
            i.create_endpoint(service_id=svc.id, interface=interface,
                              region_id=REGION, url=url)
    # The tenant of the tests.
    tenant = one(i.find_project(TENANT, domain_id=default.id),
                 lambda: i.create_project(name=TENANT, domain_id=default.id))
    user = one(i.find_user(TENANT, domain_id=default.id),
               lambda: i.create_user(name=TENANT, password=PASSWORD,
                                     domain_id=default.id,
                                     default_project_id=tenant.id))
    for role in ('member', 'load-balancer_member'):
        i.assign_project_role_to_user(tenant, user, roles[role])


def resources(c):
    for name, vcpus, ram, disk in (('m1.tiny', 1, 512, 1),
                                   ('m1.small', 1, 2048, 10),
                                   ('m1.medium', 2, 4096, 20),
                                   ('m1.large', 4, 8192, 40),
                                   ('amphora', 1, 1024, 3)):
        if c.compute.find_flavor(name) is None:
            c.compute.create_flavor(name=name, vcpus=vcpus, ram=ram,
                                    disk=disk, id=name,
                                    is_public=name != 'amphora')
    n = c.network
    net = n.find_network('public')
    if net is None:
        net = n.create_network(name='public', is_router_external=True,
                               is_default=True,
                               provider_network_type='flat',
                               provider_physical_network='public')
        cidr = ipaddress.ip_network(os.environ['BED_EXTERNAL_CIDR'])
        # Neutron allows loopback addresses in a subnet without DHCP.
        n.create_subnet(network_id=net.id, name='public-subnet',
                        ip_version=4, cidr=str(cidr),
                        gateway_ip=str(cidr[1]), is_dhcp_enabled=False)
    # Octavia boots its appliances as the service project, which must own these
    service = c.identity.find_project('service').id
    mgmt = n.find_network('lb-mgmt')
    if mgmt is None:
        mgmt = n.create_network(name='lb-mgmt', project_id=service)
        n.create_subnet(network_id=mgmt.id, name='lb-mgmt-subnet',
                        ip_version=4, cidr='192.168.0.0/16',
                        gateway_ip=None, project_id=service)
    group = n.find_security_group('lb-mgmt', project_id=service)
    if group is None:
        group = n.create_security_group(name='lb-mgmt', project_id=service)
    images = [(name, []) for name in os.environ['BED_IMAGES'].split()]
    for name, tags in [('amphora', ['amphora']), *images]:
        if c.image.find_image(name) is None:
            c.create_image(name, data=b'not a disk image\n' * 64,
                           disk_format='raw', container_format='bare',
                           visibility='public', tags=tags, wait=True,
                           allow_duplicates=True)
    print(f'MGMT_NET={mgmt.id}')
    print(f'MGMT_GROUP={group.id}')


def zones(c):
    """Makes every hypervisor an availability zone of its own."""
    hosts = sorted(s.host for s in c.compute.services(binary='nova-compute'))
    have = {a.name for a in c.compute.aggregates()}
    for number, host in enumerate(hosts, start=1):
        name = f'az{number}'
        if name not in have:
            made = c.compute.create_aggregate(name=name,
                                              availability_zone=name)
            c.compute.add_host_to_aggregate(made.id, host)


STAGES = {'identity': identity, 'resources': resources, 'zones': zones}
STAGES[sys.argv[1]](openstack.connect())
