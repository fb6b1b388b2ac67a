#!/usr/bin/env bash
# A real OpenStack on one machine: the control planes of Keystone, Placement, Glance, Nova, Neutron, Cinder and Octavia,
# with no hypervisor, no network wiring and no storage behind them. Everything listens on 127.0.0.1.
#
#   bed.sh deps      install MariaDB, RabbitMQ and memcached (root, Debian)
#   bed.sh install   build the Python environment
#   bed.sh up        start everything; writes $BED_DIR/clouds.yaml (clouds: admin, capstan)
#   bed.sh down      stop everything that `up` started
#   bed.sh status    processes and their memory
#   bed.sh wipe      down, then forget all data (keeps environment and seed)
#
# The first `up` on an empty data directory migrates every schema and leaves a seed ($BED_DIR/seed), from which later
# ones start much faster. docs/dev/openstack.md says what is real and what is a stand-in.
#
# Passwords are weak and MariaDB has none for root: for tests on loopback only.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BED=${BED_DIR:?set BED_DIR to a folder outside of the work tree}
VENV=${BED_VENV:-$BED/venv}
PYTHON=${BED_PYTHON:-python3}
PASS=${BED_PASSWORD:-bed}
REGION=${BED_REGION:-RegionOne}
BASE=${BED_PORT_BASE:-20000}       # every port is BASE + a fixed number
COMPUTES=${BED_COMPUTES:-2}        # fake hypervisors; each is an availability zone: az1, az2, ...
EXTERNAL=${BED_EXTERNAL_CIDR:-127.203.0.0/24}   # floating IPs; loopback, so that something can answer on them
IMAGES=${BED_IMAGES:-ubuntu-2404-kube-v1.35.0 ubuntu-2404-kube-v1.36.0}

RUN=$BED/run ETC=$BED/run/etc LOG=$BED/run/log PIDS=$BED/run/pids CALLS=$BED/run/calls
H=127.0.0.1
P_SQL=$((BASE+306)) P_MQ=$((BASE+672)) P_EPMD=$((BASE+369)) P_DIST=$((BASE+673))
P_KEYSTONE=$((BASE+500)) P_PLACEMENT=$((BASE+778)) P_GLANCE=$((BASE+292))
P_NOVA=$((BASE+774)) P_NEUTRON=$((BASE+696)) P_CINDER=$((BASE+776))
P_OCTAVIA=$((BASE+876)) P_HM=$((BASE+555)) P_MEMCACHE=$((BASE+211))
AUTH_URL=http://$H:$P_KEYSTONE/v3
MQ_URL=rabbit://bed:$PASS@$H:$P_MQ/

T0=$(date +%s.%N)
seconds() { awk -v a="$T0" -v b="$(date +%s.%N)" 'BEGIN { print b - a }'; }
say() { printf '%6.1fs  %s\n' "$(seconds)" "$*"; }
db() { echo "mysql+pymysql://root@$H:$P_SQL/$1?charset=utf8mb4"; }

# --- processes ---------------------------------------------------------------
alive() { [[ -f $PIDS/$1 ]] && kill -0 "$(cat "$PIDS/$1")" 2>/dev/null; }

all_alive() {  # since an `up` that went through
  local n
  [[ -e $PIDS/.complete ]] || return 1
  for n in $(ls "$PIDS"); do alive "$n" || return 1; done
}

start() {  # name command...
  local name=$1; shift
  alive "$name" && return 0
  setsid "$@" >>"$LOG/$name.log" 2>&1 </dev/null &
  echo $! >"$PIDS/$name"
}

stop() {   # name...: TERM to each one's process group; after 10 s KILL what is left
  local n p i left
  for n in "$@"; do alive "$n" && kill -TERM -- "-$(cat "$PIDS/$n")" 2>/dev/null; done
  for i in $(seq 100); do
    left=
    for n in "$@"; do
      [[ -f $PIDS/$n ]] && kill -0 -- "-$(cat "$PIDS/$n")" 2>/dev/null && left=1
    done
    [[ -n $left ]] || break
    sleep 0.1
  done
  for n in "$@"; do
    [[ -f $PIDS/$n ]] || continue
    kill -KILL -- "-$(cat "$PIDS/$n")" 2>/dev/null || true
    rm -f "$PIDS/$n"
  done
}

wait_port() {  # name port
  for _ in $(seq 600); do
    (exec 3<>"/dev/tcp/$H/$2") 2>/dev/null && return 0
    alive "$1" || { echo "$1 ended; see $LOG/$1.log" >&2; tail -20 "$LOG/$1.log" >&2; return 1; }
    sleep 0.1
  done
  echo "$1 does not listen on $2" >&2; return 1
}

wait_http() {  # name port: an HTTP answer below 500
  local code
  for _ in $(seq 600); do
    code=$(curl -s -o /dev/null -m 10 -w '%{http_code}' "http://$H:$2/" || true)
    [[ $code != 000 && $code -lt 500 ]] && return 0
    alive "$1" || { echo "$1 ended; see $LOG/$1.log" >&2; tail -20 "$LOG/$1.log" >&2; return 1; }
    sleep 0.2
  done
  echo "$1 does not answer on $2" >&2; return 1
}

api() {  # name port module [pyargv...]: each request is a line in $CALLS/name
  local name=$1 port=$2 module=$3; shift 3
  start "$name" "$VENV/bin/uwsgi" --http-socket "$H:$port" --module "$module" \
    --virtualenv "$VENV" --master --processes "${BED_API_PROCS:-1}" --threads 8 \
    --enable-threads --lazy-apps --need-app --die-on-term --thunder-lock \
    --buffer-size 65535 --http-chunked-input --add-header 'Connection: close' \
    --req-logger "file:$CALLS/$name" --logformat '%(status) %(method) %(uri) %(msecs) %(uagent)' \
    --hook-master-start "unix_signal:15 gracefully_kill_them_all" \
    ${1:+--pyargv "$*"}
}

# --- configuration -----------------------------------------------------------
auth() {  # section user: a keystoneauth section
  cat <<X
[$1]
auth_type = password
auth_url = $AUTH_URL
www_authenticate_uri = $AUTH_URL
username = $2
password = $PASS
user_domain_name = Default
project_name = service
project_domain_name = Default
region_name = $REGION
service_token_roles_required = true
memcached_servers = $H:$P_MEMCACHE
X
}

conf() { mkdir -p "$ETC/$1"; cat >"$ETC/$1/$2"; }

write_configs() {
  mkdir -p "$ETC" "$LOG" "$PIDS" "$CALLS" "$RUN"/{glance,nova,neutron,cinder,octavia,locks}

  conf keystone keystone.conf <<X
[DEFAULT]
use_stderr = true
[database]
connection = $(db keystone)
[token]
provider = fernet
expiration = 86400
[fernet_tokens]
key_repository = $ETC/keystone/fernet
[credential]
key_repository = $ETC/keystone/credential
[fernet_receipts]
key_repository = $ETC/keystone/fernet
[cache]
enabled = true
backend = dogpile.cache.memcached
memcache_servers = $H:$P_MEMCACHE
[identity]
password_hash_rounds = 4
X

  conf placement placement.conf <<X
[api]
auth_strategy = keystone
[placement_database]
connection = $(db placement)
$(auth keystone_authtoken placement)
X

  conf glance glance-api.conf <<X
[DEFAULT]
use_stderr = true
enabled_backends = file:file
enabled_import_methods = [glance-direct]
[glance_store]
default_backend = file
[file]
filesystem_store_datadir = $RUN/glance/images
[os_glance_staging_store]
filesystem_store_datadir = $RUN/glance/staging
[os_glance_tasks_store]
filesystem_store_datadir = $RUN/glance/tasks
[database]
connection = $(db glance)
[paste_deploy]
flavor = keystone
[oslo_concurrency]
lock_path = $RUN/locks
$(auth keystone_authtoken glance)
X
  cp "$VENV/etc/glance/glance-api-paste.ini" "$ETC/glance/"
  [[ -f $VENV/etc/glance/schema-image.json ]] && cp "$VENV/etc/glance/schema-image.json" "$ETC/glance/"

  local i
  for i in $(seq "$COMPUTES"); do
    conf "nova" "compute$i.conf" <<X
[DEFAULT]
host = compute$i
state_path = $RUN/nova/compute$i
X
    mkdir -p "$RUN/nova/compute$i"
  done
  conf nova nova.conf <<X
[DEFAULT]
use_stderr = true
my_ip = $H
host = control
state_path = $RUN/nova
transport_url = $MQ_URL
# unlike plain FakeDriver, this one keeps its node id over a restart
compute_driver = fake.FakeDriverWithoutFakeNodes
# no hypervisor plugs a port, so do not wait for one
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
# quick turnaround for tests
update_resources_interval = 30
service_down_time = 120
[api]
auth_strategy = keystone
[api_database]
connection = $(db nova_api)
[database]
connection = $(db nova_cell1)
[oslo_concurrency]
lock_path = $RUN/locks
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 30
[quota]
instances = -1
cores = -1
ram = -1
key_pairs = 1000
server_groups = -1
server_group_members = -1
[vnc]
enabled = false
[wsgi]
api_paste_config = $ETC/nova/api-paste.ini
$(auth keystone_authtoken nova)
$(auth placement nova)
$(auth glance nova)
$(auth cinder nova)
$(auth neutron nova)
$(auth service_user nova)
send_service_user_token = true
X
  cp "$VENV/etc/nova/api-paste.ini" "$ETC/nova/"

  conf neutron neutron.conf <<X
[DEFAULT]
use_stderr = true
state_path = $RUN/neutron
core_plugin = ml2
service_plugins = router,trunk,qos
transport_url = $MQ_URL
auth_strategy = keystone
api_paste_config = $ETC/neutron/api-paste.ini
dhcp_agent_notification = false
notify_nova_on_port_status_changes = true
notify_nova_on_port_data_changes = true
rpc_workers = 0
[database]
connection = $(db neutron)
[oslo_concurrency]
lock_path = $RUN/locks
[quotas]
default_quota = -1
quota_network = -1
quota_subnet = -1
quota_port = -1
quota_router = -1
quota_floatingip = -1
quota_security_group = -1
quota_security_group_rule = -1
[ml2]
type_drivers = flat,vlan,vxlan
tenant_network_types = vxlan
mechanism_drivers = bed
extension_drivers = port_security,qos
[ml2_type_flat]
flat_networks = *
[ml2_type_vxlan]
vni_ranges = 1:100000
$(auth keystone_authtoken neutron)
$(auth nova neutron)
$(auth placement neutron)
X
  cp "$VENV/etc/neutron/api-paste.ini" "$ETC/neutron/"

  conf cinder cinder.conf <<X
[DEFAULT]
use_stderr = true
my_ip = $H
host = bed
state_path = $RUN/cinder
transport_url = $MQ_URL
auth_strategy = keystone
api_paste_config = $ETC/cinder/api-paste.ini
enabled_backends = bed
default_volume_type = __DEFAULT__
resource_query_filters_file = $ETC/cinder/resource_filters.json
glance_api_servers = http://$H:$P_GLANCE
quota_volumes = -1
quota_gigabytes = -1
quota_snapshots = -1
[bed]
volume_driver = bedplugin.cinder_driver.BedVolumeDriver
volume_backend_name = bed
[database]
connection = $(db cinder)
[oslo_concurrency]
lock_path = $RUN/locks
[coordination]
backend_url = file://$RUN/cinder
$(auth keystone_authtoken cinder)
$(auth nova cinder)
$(auth service_user cinder)
send_service_user_token = true
X
  cp "$VENV/etc/cinder/"*.ini "$VENV/etc/cinder/"*.json "$ETC/cinder/" 2>/dev/null || true

  mkdir -p "$BED"
  { echo clouds:; cloud admin; cloud capstan; } >"$BED/clouds.yaml"
}

cloud() {  # user, which is called as its project
  cat <<X
  $1:
    auth:
      auth_url: $AUTH_URL
      username: $1
      password: $PASS
      project_name: $1
      user_domain_name: Default
      project_domain_name: Default
    region_name: $REGION
X
}

write_octavia() {  # needs MGMT_NET, MGMT_GROUP
  mkdir -p "$ETC/octavia"
  if [[ ! -f $ETC/octavia/ca.pem ]]; then
    openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=bed-ca \
      -keyout "$ETC/octavia/ca.key" -out "$ETC/octavia/ca.pem" 2>/dev/null
    openssl genrsa -out "$ETC/octavia/client.key" 2048 2>/dev/null
    openssl req -new -key "$ETC/octavia/client.key" -subj /CN=bed-client 2>/dev/null |
      openssl x509 -req -CA "$ETC/octavia/ca.pem" -CAkey "$ETC/octavia/ca.key" \
        -CAcreateserial -days 3650 -out "$ETC/octavia/client.crt" 2>/dev/null
    cat "$ETC/octavia/client.crt" "$ETC/octavia/client.key" >"$ETC/octavia/client.pem"
  fi
  conf octavia octavia.conf <<X
[DEFAULT]
use_stderr = true
host = bed
transport_url = $MQ_URL
[api_settings]
bind_host = $H
bind_port = $P_OCTAVIA
api_base_uri = http://$H:$P_OCTAVIA
enabled_provider_drivers = amphora:fake data plane,octavia:alias of amphora
default_provider_driver = amphora
healthcheck_enabled = false
[database]
connection = $(db octavia)
[oslo_messaging]
topic = octavia
[oslo_concurrency]
lock_path = $RUN/locks
[health_manager]
bind_ip = $H
bind_port = $P_HM
controller_ip_port_list = $H:$P_HM
heartbeat_key = bed
heartbeat_timeout = 86400
[certificates]
cert_generator = local_cert_generator
cert_manager = noop_cert_manager
ca_certificate = $ETC/octavia/ca.pem
ca_private_key = $ETC/octavia/ca.key
server_certs_key_passphrase = insecure-key-do-not-use-this-key
[haproxy_amphora]
server_ca = $ETC/octavia/ca.pem
client_cert = $ETC/octavia/client.pem
[controller_worker]
workers = 1
client_ca = $ETC/octavia/ca.pem
amp_image_tag = amphora
amp_image_owner_id =
amp_flavor_id = amphora
amp_boot_network_list = $MGMT_NET
amp_secgroup_list = $MGMT_GROUP
amp_active_retries = 30
amp_active_wait_sec = 1
amphora_driver = amphora_noop_driver
compute_driver = compute_nova_driver
network_driver = allowed_address_pairs_driver
image_driver = image_glance_driver
volume_driver = volume_noop_driver
loadbalancer_topology = SINGLE
[driver_agent]
status_socket_path = $RUN/octavia/status.sock
stats_socket_path = $RUN/octavia/stats.sock
get_socket_path = $RUN/octavia/get.sock
[quotas]
default_load_balancer_quota = -1
default_listener_quota = -1
default_member_quota = -1
default_pool_quota = -1
default_health_monitor_quota = -1
$(auth keystone_authtoken octavia)
$(auth service_auth octavia)
X
}

# --- verbs -------------------------------------------------------------------
do_deps() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    mariadb-server rabbitmq-server memcached curl openssl gcc libc6-dev python3-venv >/dev/null
}

do_install() {
  local files="requirements.txt constraints.txt plugin/pyproject.toml plugin/bedplugin/*.py" key
  key=$(cd "$HERE" && sha256sum $files | sha256sum)
  [[ $(cat "$VENV/.installed" 2>/dev/null) == "$key" ]] && return 0
  [[ -x $VENV/bin/python ]] || "$PYTHON" -m venv "$VENV"
  "$VENV/bin/pip" -q install uv
  "$VENV/bin/uv" pip install -q --python "$VENV/bin/python" -c "$HERE/constraints.txt" -r "$HERE/requirements.txt"
  # setuptools writes beside the sources.
  rm -rf "$BED/plugin"; cp -r "$HERE/plugin" "$BED/plugin"
  "$VENV/bin/uv" pip install -q --python "$VENV/bin/python" --no-deps --reinstall "$BED/plugin"
  echo "$key" >"$VENV/.installed"
}

start_sql() {
  if [[ ! -d $RUN/mysql/mysql ]]; then
    mkdir -p "$RUN/mysql"
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$RUN/mysql" \
      --auth-root-authentication-method=normal --skip-test-db >"$LOG/mysql-init.log" 2>&1
  fi
  start mariadb /usr/sbin/mariadbd --no-defaults --user="$(id -un)" --datadir="$RUN/mysql" \
    --socket="$RUN/mysql.sock" --pid-file="$RUN/mysql.pid" --bind-address=$H --port=$P_SQL \
    --skip-name-resolve --performance-schema=off --max-connections=1000 \
    --innodb-buffer-pool-size=256M --innodb-flush-log-at-trx-commit=0 --sync-binlog=0 \
    --innodb-doublewrite=0 --character-set-server=utf8mb3
  wait_port mariadb $P_SQL
}

start_mq() {
  mkdir -p "$RUN/rabbit" "$ETC/rabbit"
  cat >"$ETC/rabbit/rabbitmq.conf" <<X
listeners.tcp.1 = $H:$P_MQ
distribution.listener.interface = $H
distribution.listener.port_range.min = $P_DIST
distribution.listener.port_range.max = $P_DIST
default_user = bed
default_pass = $PASS
loopback_users = none
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.absolute = 1GB
X
  echo '[].' >"$ETC/rabbit/enabled_plugins"
  start rabbitmq env HOME="$RUN/rabbit" ERL_EPMD_ADDRESS=$H ERL_EPMD_PORT=$P_EPMD \
    RABBITMQ_NODENAME=bed@localhost RABBITMQ_CONFIG_FILE="$ETC/rabbit/rabbitmq.conf" \
    RABBITMQ_ENABLED_PLUGINS_FILE="$ETC/rabbit/enabled_plugins" \
    RABBITMQ_MNESIA_BASE="$RUN/rabbit/mnesia" RABBITMQ_LOG_BASE="$LOG" RABBITMQ_LOGS=- \
    RABBITMQ_PID_FILE="$RUN/rabbit/pid" RABBITMQ_DIST_PORT=$P_DIST \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 1:1 +sbwt none" \
    /usr/lib/rabbitmq/bin/rabbitmq-server
}

sync_db() { # name command...: once per data directory
  local name=$1; shift
  [[ -f $RUN/.db-$name ]] && return 0
  "$@" >>"$LOG/db-$name.log" 2>&1 || { echo "schema of $name failed; see $LOG/db-$name.log" >&2; return 1; }
  touch "$RUN/.db-$name"
}

sync_nova() {
  local m="$VENV/bin/nova-manage --config-file $ETC/nova/nova.conf"
  $m api_db sync && $m cell_v2 map_cell0 --database_connection "$(db nova_cell0)" &&
    $m db sync && $m cell_v2 create_cell --name cell1
}

sync_all() {
  local B=$VENV/bin d
  for d in $DATABASES; do
    echo "CREATE DATABASE IF NOT EXISTS $d;"
  done | mariadb --no-defaults -h $H -P $P_SQL -u root
  local pids=() p rc=0
  (sync_db keystone "$B/keystone-manage" --config-file "$ETC/keystone/keystone.conf" db_sync
   sync_db neutron "$B/neutron-db-manage" --config-file "$ETC/neutron/neutron.conf" upgrade heads
   sync_db placement "$B/placement-manage" --config-file "$ETC/placement/placement.conf" db sync) & pids+=($!)
  (sync_db nova sync_nova
   sync_db glance "$B/glance-manage" --config-file "$ETC/glance/glance-api.conf" db_sync) & pids+=($!)
  (sync_db cinder "$B/cinder-manage" --config-file "$ETC/cinder/cinder.conf" db sync
   MGMT_NET= MGMT_GROUP= write_octavia
   sync_db octavia "$B/octavia-db-manage" --config-file "$ETC/octavia/octavia.conf" upgrade head) & pids+=($!)
  for p in "${pids[@]}"; do wait "$p" || rc=1; done
  return $rc
}

DATABASES="keystone placement glance nova_api nova_cell0 nova_cell1 neutron cinder octavia"
SEED=$BED/seed
seed_key() {
  { cat "$HERE/requirements.txt" "$HERE/constraints.txt" "$HERE/register.py"
    echo "$BASE $PASS $REGION $COMPUTES $EXTERNAL $IMAGES"; } | sha256sum | cut -c1-64
}

save_seed() {
  rm -rf "$SEED"; mkdir -p "$SEED"
  mariadb-dump --no-defaults -h $H -P $P_SQL -u root --single-transaction \
    --databases $DATABASES >"$SEED/seed.sql"
  (cd "$RUN" && tar cf "$SEED/files.tar" .db-* .keystone-boot .registered resources.env glance \
     etc/keystone/fernet etc/keystone/credential nova)
  seed_key >"$SEED/key"
}

load_seed() {
  mariadb --no-defaults -h $H -P $P_SQL -u root <"$SEED/seed.sql"
  # nobody is up until they say so again
  mariadb --no-defaults -h $H -P $P_SQL -u root -e \
    "UPDATE nova_cell1.services SET updated_at = '2000-01-01', last_seen_up = NULL"
  tar xf "$SEED/files.tar" -C "$RUN"
}

boot_keystone() {
  local m="$VENV/bin/keystone-manage --config-file $ETC/keystone/keystone.conf"
  if [[ ! -f $RUN/.keystone-boot ]]; then
    $m fernet_setup --keystone-user "$(id -un)" --keystone-group "$(id -gn)"
    $m credential_setup --keystone-user "$(id -un)" --keystone-group "$(id -gn)"
    $m bootstrap --bootstrap-password "$PASS" --bootstrap-region-id "$REGION" \
      --bootstrap-public-url "$AUTH_URL" --bootstrap-internal-url "$AUTH_URL" \
      --bootstrap-admin-url "$AUTH_URL"
    touch "$RUN/.keystone-boot"
  fi >>"$LOG/keystone-boot.log" 2>&1
}

register() {
  OS_CLIENT_CONFIG_FILE=$BED/clouds.yaml OS_CLOUD=admin OS_REGION_NAME=$REGION BED_PASSWORD=$PASS \
  BED_CATALOG="placement=placement=http://$H:$P_PLACEMENT glance=image=http://$H:$P_GLANCE \
nova=compute=http://$H:$P_NOVA/v2.1 neutron=network=http://$H:$P_NEUTRON \
cinder=block-storage=http://$H:$P_CINDER/v3 octavia=load-balancer=http://$H:$P_OCTAVIA" \
  BED_EXTERNAL_CIDR=$EXTERNAL BED_IMAGES=$IMAGES \
    "$VENV/bin/python" "$HERE/register.py" "$1"
}

do_up() {
  [[ -x /usr/sbin/mariadbd && -x /usr/lib/rabbitmq/bin/rabbitmq-server ]] ||
    { echo "run as root: $0 deps" >&2; exit 1; }
  [[ -x $VENV/bin/uwsgi ]] || { echo "run: $0 install" >&2; exit 1; }
  mkdir -p "$RUN"
  if all_alive; then say "all services are running"; return 0; fi
  write_configs
  say "configuration written"
  local fresh=; [[ -d $RUN/mysql/mysql ]] || fresh=1
  start memcached memcached -l $H -p $P_MEMCACHE -m 64 -u "$(id -un)"
  start_mq; start_sql; say "MariaDB up"
  if [[ -n $fresh && $(cat "$SEED/key" 2>/dev/null) == "$(seed_key)" ]]; then
    load_seed; say "seed loaded"
  else
    sync_all; say "schemas in place"
  fi
  boot_keystone
  export OS_KEYSTONE_CONFIG_DIR=$ETC/keystone OS_PLACEMENT_CONFIG_DIR=$ETC/placement \
    OS_GLANCE_CONFIG_DIR=$ETC/glance OS_NOVA_CONFIG_DIR=$ETC/nova \
    OS_NEUTRON_CONFIG_DIR=$ETC/neutron OS_NEUTRON_CONFIG_FILES=neutron.conf
  api keystone $P_KEYSTONE keystone.wsgi.api:application --config-file "$ETC/keystone/keystone.conf"
  wait_port rabbitmq $P_MQ; wait_http keystone $P_KEYSTONE
  [[ -e $RUN/.registered ]] || register identity
  say "Keystone up, catalog filled"

  api placement $P_PLACEMENT placement.wsgi.api:application
  api glance $P_GLANCE glance.wsgi.api:application
  api neutron $P_NEUTRON neutron.wsgi.api:application
  api nova-api $P_NOVA nova.wsgi.osapi_compute:application
  start nova-conductor "$VENV/bin/nova-conductor" --config-file "$ETC/nova/nova.conf"
  start nova-scheduler "$VENV/bin/nova-scheduler" --config-file "$ETC/nova/nova.conf"
  wait_http placement $P_PLACEMENT; wait_http glance $P_GLANCE
  wait_http neutron $P_NEUTRON; wait_http nova-api $P_NOVA
  local i
  for i in $(seq "$COMPUTES"); do
    start "nova-compute$i" "$VENV/bin/nova-compute" --config-file "$ETC/nova/nova.conf" \
      --config-file "$ETC/nova/compute$i.conf"
  done
  say "Placement, Glance, Neutron, Nova APIs up"
  [[ -e $RUN/.registered ]] || register resources >"$RUN/resources.env"
  . "$RUN/resources.env"
  say "flavors, images, networks in place"

  api cinder-api $P_CINDER cinder.wsgi.api:application --config-file "$ETC/cinder/cinder.conf"
  start cinder-scheduler "$VENV/bin/cinder-scheduler" --config-file "$ETC/cinder/cinder.conf"
  start cinder-volume "$VENV/bin/cinder-volume" --config-file "$ETC/cinder/cinder.conf"
  write_octavia
  api octavia-api $P_OCTAVIA octavia.wsgi.api:application --config-file "$ETC/octavia/octavia.conf"
  start octavia-worker "$VENV/bin/octavia-worker" --config-file "$ETC/octavia/octavia.conf"
  wait_http cinder-api $P_CINDER; wait_http octavia-api $P_OCTAVIA

  local n=0
  for _ in $(seq 120); do
    n=$(OS_CLIENT_CONFIG_FILE=$BED/clouds.yaml OS_CLOUD=admin "$VENV/bin/python" - <<'Y'
import openstack
print(len([s for s in openstack.connect().compute.services(binary='nova-compute')
           if s.state == 'up']))
Y
    )
    [[ $n -ge $COMPUTES ]] && break
    sleep 1
  done
  if [[ ! -e $RUN/.registered ]]; then
    "$VENV/bin/nova-manage" --config-file "$ETC/nova/nova.conf" cell_v2 discover_hosts \
      >>"$LOG/discover.log" 2>&1
    register zones
    touch "$RUN/.registered"
    [[ -z $fresh ]] || save_seed
  fi
  touch "$PIDS/.complete"
  say "ready: $n compute host(s); export OS_CLIENT_CONFIG_FILE=$BED/clouds.yaml OS_CLOUD=admin (or capstan)"
}

do_down() {
  [[ -d $PIDS ]] || return 0
  rm -f "$PIDS/.complete"
  local n rest=()
  for n in $(ls "$PIDS"); do [[ $n == mariadb || $n == rabbitmq ]] || rest+=("$n"); done
  [[ ${#rest[@]} -gt 0 ]] && stop "${rest[@]}"
  stop rabbitmq mariadb
  ERL_EPMD_PORT=$P_EPMD epmd -kill >/dev/null 2>&1 || true
}

do_status() {
  local n p total=0 rss
  for n in $(ls "$PIDS" 2>/dev/null); do
    p=$(cat "$PIDS/$n")
    rss=$( (ps -o rss= -g "$p" 2>/dev/null || true) | awk '{s+=$1} END{print int(s/1024)}')
    alive "$n" && printf '%-18s pid %-7s %5s MiB\n' "$n" "$p" "$rss" || printf '%-18s DOWN\n' "$n"
    total=$((total+${rss:-0}))
  done
  echo "total RSS: $total MiB"
}

case ${1:-} in
  deps) do_deps ;;
  install) do_install ;;
  up) do_up ;;
  down) do_down ;;
  status) do_status ;;
  wipe) do_down; rm -rf "$RUN" ;;
  *) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
