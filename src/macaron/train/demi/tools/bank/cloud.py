"""Servers, storage and deployments."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import default, enum, flag, made, number, record, several, switch, whole
from macaron.train.demi.tools.spec import Ask, Tool

_REGION = enum("Region of the data center.", "eu-west-1|us-east-2|ap-south-1|sa-east-1|eu-north-1|us-west-1")
_SERVICE = made("Name of the service.", values.slug)
_INSTANCE = made("Identifier of the virtual machine.", values.token)

TOOLS = (
    Tool(
        "launch_machine",
        "Creates a virtual machine of a given size in a region and starts it.",
        {
            "size": enum("Size of the machine.", "small|medium|large|xlarge"),
            "region": _REGION,
            "image": default(enum("Operating system.", "ubuntu-24.04|debian-13|alpine-3.22"), "debian-13"),
            "disk_gb": default(whole("Size of the disk in gigabytes.", 20, 500, 10), 20),
            "tags": several("Tags to find it by.", made("", values.slug), 1, 3),
        },
        (
            "Launch a {size} machine in {region}[ with {image}][ and a {disk_gb} GB disk].",
            "I need a {size} server in {region}[, tagged {tags}].",
            "Spin up one {size} VM, region {region}[, disk {disk_gb} GB].",
        ),
        asks=(Ask("Launch a {size} machine.", "In which region should the {size} machine run?"),),
    ),
    Tool(
        "stop_machine",
        "Stops a running virtual machine. Its disk is kept.",
        {"instance_id": _INSTANCE, "force": default(flag("Cut the power.", "by force"), False)},
        ("Stop machine {instance_id}[ {force}].", "Shut {instance_id} down[ {force}], nobody uses it any more."),
        asks=(Ask("Shut the machine down.", "Which machine? Please give me its identifier."),),
    ),
    Tool(
        "resize_machine",
        "Changes the size of a stopped virtual machine.",
        {"instance_id": _INSTANCE, "size": enum("New size.", "small|medium|large|xlarge")},
        ("Resize {instance_id} to {size}.", "{instance_id} is too slow, make it a {size} one."),
    ),
    Tool(
        "scale_service",
        "Sets how many copies of a service run.",
        {"service": _SERVICE, "replicas": whole("Number of copies.", 1, 40), "region": _REGION},
        (
            "Scale {service} to {replicas} replicas[ in {region}].",
            "Traffic is growing, run {replicas} copies of {service}[ in {region}].",
        ),
    ),
    Tool(
        "deploy_version",
        "Rolls out one version of a service to an environment.",
        {
            "service": _SERVICE,
            "version": made("Version to roll out, such as 2.4.1.", values.version),
            "environment": enum("Where it is rolled out.", "staging|production|canary"),
            "notify": made("E-mail address that is told when it is done.", values.email),
        },
        (
            "Deploy {service} {version} to {environment}[ and notify {notify}].",
            "Please roll out version {version} of {service} on {environment}[, mail {notify} when it's done].",
        ),
        asks=(Ask("Deploy {service} to {environment}.", "Which version of {service} should I deploy?"),),
    ),
    Tool(
        "revert_deployment",
        "Takes a service back to the version that ran before.",
        {"service": _SERVICE, "environment": enum("Where it is taken back.", "staging|production|canary")},
        ("Revert {service} on {environment}.", "The last rollout of {service} broke {environment}. Take it back."),
    ),
    Tool(
        "tail_service_logs",
        "Returns the last log lines of a service.",
        {
            "service": _SERVICE,
            "lines": default(whole("Number of lines.", 20, 500, 10), 100),
            "level": enum("Only lines of this level or above.", "debug|info|warning|error"),
            "contains": made("Only lines with this text.", values.commit),
        },
        (
            "Show the [last {lines} ]log lines of {service}[ at level {level}].",
            "What did {service} log[, only {level}][, lines containing '{contains}']?",
        ),
    ),
    Tool(
        "make_bucket",
        "Creates a bucket for files.",
        {
            "bucket": made("Name of the bucket.", values.slug),
            "region": _REGION,
            "versioned": default(switch("Keep old versions.", "with versioning", "without versioning"), False),
        },
        ("Create a bucket named {bucket} in {region}[ {versioned}].", "I want a bucket {bucket}, region {region}."),
    ),
    Tool(
        "copy_to_bucket",
        "Copies a file from a server to a bucket.",
        {"source": made("Path of the file.", values.path), "bucket": made("Name of the bucket.", values.slug)},
        ("Copy {source} to the bucket {bucket}.", "Back {source} up into {bucket}."),
    ),
    Tool(
        "add_firewall_rule",
        "Allows or denies traffic from an address to a port.",
        {
            "address": made("IPv4 address.", values.address_ip),
            "port": whole("Port number.", 22, 9999),
            "action": enum("What happens to the traffic.", "allow|deny"),
            "protocol": default(enum("Protocol.", "tcp|udp"), "tcp"),
        },
        (
            "{action} traffic from {address} to port {port}[ over {protocol}].",
            "Add a firewall rule: {action} {address} on port {port}[, {protocol}].",
        ),
    ),
    Tool(
        "set_dns_record",
        "Points a host name at an address.",
        {
            "host": made("Full host name.", values.host),
            "address": made("IPv4 address.", values.address_ip),
            "ttl": default(whole("Seconds that it may be cached.", 60, 7200, 60), 3600),
        },
        ("Point {host} at {address}[ with a TTL of {ttl} seconds].", "DNS: {host} -> {address}[, ttl {ttl}]"),
    ),
    Tool(
        "create_cost_alarm",
        "Sends a mail when the costs of a month pass a limit.",
        {
            "limit": number("Limit in dollars.", 50, 5000, 2),
            "email": made("Who is told.", values.email),
            "filter": record(
                "Which costs count.",
                {"service": made("Name of the service.", values.slug), "region": _REGION},
                "service {service} in {region}",
            ),
        },
        (
            "Tell {email} when we spend more than {limit} dollars a month[ on {filter}].",
            "Set a cost alarm at ${limit} for {email}[, counting {filter}].",
        ),
    ),
    Tool(
        "ping_host",
        "Measures how long packets take to a host.",
        {"host": made("Host name or address.", values.host), "count": default(whole("Packets to send.", 1, 20), 4)},
        ("Ping {host}[ {count} times].", "Is {host} reachable?", "测试一下{host}能不能连通[,发{count}个包]。"),
    ),
)
