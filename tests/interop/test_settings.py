"""test_settings.py - the daemon's manners: settings from everywhere and while it runs, what a service manager is told, what a crash leaves behind."""
import json
import os
import re
import signal
import socket
import subprocess
import time

import pulsar
import pytest

from conftest import new_client
from oxbowd import BUILD, SMALL, Broker, wait_for

OXBOWD = str(BUILD / "oxbowd")
SANITIZED = b"__asan_init" in (BUILD / "oxbowd").read_bytes() if (BUILD / "oxbowd").exists() else False
CONFIGURATION = "brokers/configuration"


def set_key(broker, name, value):
    answer = broker.rest("POST", f"{CONFIGURATION}/{name}/{value}")
    assert answer.status == 200, answer.text
    return answer


def unset_key(broker, name):
    assert broker.rest("DELETE", f"{CONFIGURATION}/{name}").status == 200


def in_force(broker, name):
    return broker.rest("GET", f"{CONFIGURATION}/runtime").json()[name]


def hang_up(broker, event):
    """SIGHUP, and the first new line of that event."""
    before = len(broker.events(event))
    broker.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(broker.events(event)) > before, event)
    return broker.events(event)[before:]


# ---- file, environment, flags

def check(folder, text, *options):
    file = folder / "broker.conf"
    file.write_text(text)
    return subprocess.run([OXBOWD, "--config", str(file), "--check-config", *options], capture_output=True, text=True)


def test_check_config_says_everything_at_once(tmp_path):
    done = check(tmp_path, "webServicePort=x\nbrokerServicePrt=1\nzookeeperServers=a:2181\nnumIOThreads=\n", "--set", "maxMessageSize=67108864")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 4, lines
    assert ":1: webServicePort:" in lines[0] and "did you mean brokerServicePort?" in lines[1]
    assert "2 keys of Pulsar's that Oxbow does not have: zookeeperServers, numIOThreads" in lines[2]
    assert "storeSegmentSizeMB=64: too small for messages" in lines[3]


def test_a_broker_conf_of_pulsars_is_taken_leniently(tmp_path):
    text = "zookeeperServers=\nbrokerServicePort=6650\nclusterName=\nnumIOThreads=\nmaxMessagePublishBufferSizeInMB=\nauthenticationEnabled=false\n"
    assert check(tmp_path, text).returncode == 2
    done = check(tmp_path, text, "--lenient")
    assert done.returncode == 0 and "warning:" in done.stderr and "3 keys of Pulsar's do nothing here" in done.stderr, done.stderr
    done = check(tmp_path, text + "authenticationEnabled=true\n", "--lenient")
    assert done.returncode == 2 and "neither TLS nor authentication" in done.stderr
    done = check(tmp_path, text + "maxTopicPerNamespace=1\n", "--lenient")
    assert done.returncode == 2 and "did you mean maxTopicsPerNamespace?" in done.stderr


def test_the_annotated_file_is_a_good_one(tmp_path):
    text = (BUILD / "oxbowd.conf").read_text()
    assert check(tmp_path, text).stderr == ""
    taken = re.sub(r"(?m)^#(\w+(\.\w+)?=)", r"\1", text)
    assert taken.count("\nmaxConsumersPerTopic=0\n") == 1
    done = check(tmp_path, taken)
    assert done.returncode == 0 and done.stderr == "", done.stderr


# ---- SIGHUP

@pytest.fixture
def configured(new_broker):
    """A broker with a file of settings; `write` replaces what is in it."""
    file = new_broker.folder / "oxbowd.conf"
    new_broker.folder.mkdir(exist_ok=True)
    new_broker.write = lambda text: file.write_text(text)
    new_broker.write("maxConsumersPerTopic=1\n")
    plain = new_broker.command
    new_broker.command = lambda *settings: [*plain(*settings), "--config", str(file)]
    return new_broker.start("storeSegmentSizeMB=16", "maxProducersPerTopic=5")


def test_hangup_takes_what_may_change_and_names_the_rest(configured):
    client = new_client(configured)
    first = client.subscribe("t", "a")
    with pytest.raises(Exception):
        client.subscribe("t", "b")
    configured.write("maxConsumersPerTopic=2\nmaxProducersPerTopic=9\nclusterName=other\n")
    assert "clusterName in_force=\"standalone\" given=\"other\"" in hang_up(configured, "settings.needs_restart")[0]
    wait_for(lambda: configured.events("settings.reloaded"), "the end of it")
    second = client.subscribe("t", "b")
    assert in_force(configured, "maxProducersPerTopic") == "5"  # --set is stronger than the file
    assert in_force(configured, "clusterName") == "standalone"
    for consumer in (first, second):
        consumer.close()
    client.close()


def test_hangup_with_a_bad_file_changes_nothing(configured):
    configured.write("maxConsumersPerTopic=2\nnoSuchKey=1\nttlDurationDefaultInSeconds=x\n")
    hang_up(configured, "settings.reload.bad")
    wait_for(lambda: len(configured.events("settings.reload.bad")) == 2, "both mistakes")
    assert "oxbowd.conf:2: unknown key" in configured.events("settings.reload.bad")[0]
    assert in_force(configured, "maxConsumersPerTopic") == "1"
    configured.write("maxConsumersPerTopic=3\n")
    hang_up(configured, "settings.reloaded")
    assert in_force(configured, "maxConsumersPerTopic") == "3"


def test_hangups_in_a_row_end_with_the_last_file(configured):
    for i in range(20):
        configured.write(f"maxConsumersPerTopic={i + 10}\n")
        configured.process.send_signal(signal.SIGHUP)
    wait_for(lambda: in_force(configured, "maxConsumersPerTopic") == "29", "the last one")


def test_hangup_and_end_together(configured):
    for _ in range(3):
        configured.process.send_signal(signal.SIGHUP)
    configured.process.send_signal(signal.SIGTERM)
    assert configured.process.wait(timeout=30) == 0


def test_hangup_while_it_starts_counts_when_it_is_ready(configured):
    configured.stop()
    configured.launch()
    wait_for(lambda: configured.events("store.open"), "the start")
    configured.write("maxConsumersPerTopic=8\n")
    configured.process.send_signal(signal.SIGHUP)
    assert configured.wait_ready()
    wait_for(lambda: in_force(configured, "maxConsumersPerTopic") == "8", "the new value")


# ---- over REST

def test_dynamic_settings_as_pulsar_answers(broker):
    names = broker.rest("GET", CONFIGURATION).json()
    assert "maxConsumersPerTopic" in names and "logLevel" in names and "clusterName" not in names
    assert broker.rest("GET", f"{CONFIGURATION}/values").json() == {}
    runtime = broker.rest("GET", f"{CONFIGURATION}/runtime").json()
    assert set(names) < set(runtime) and runtime["clusterName"] == "standalone" and runtime["storeSegmentSizeMB"] == "16"
    for path, reason in (("nosuch/1", "Can't update non-dynamic configuration: there is no key nosuch"),
                         ("clusterName/x", "Can't update non-dynamic configuration: clusterName changes with a restart only"),
                         ("maxConsumersPerTopic/abc", "Invalid dynamic-config value: maxConsumersPerTopic: \"abc\" is not a whole number from 0 to 2147483647"),
                         ("logLevel/loud", "Invalid dynamic-config value: logLevel: \"loud\" is not one of debug, info, warn, error")):
        answer = broker.rest("POST", f"{CONFIGURATION}/{path}")
        assert answer.status == 412 and reason in answer.reason(), answer.text
    for path in ("nosuch", "clusterName"):
        answer = broker.rest("DELETE", f"{CONFIGURATION}/{path}")
        assert answer.status == 412 and "Can't delete non-dynamic configuration" in answer.reason(), answer.text
    unset_key(broker, "maxConsumersPerTopic")  # nothing was set: fine there too
    assert broker.rest("GET", f"{CONFIGURATION}/values").json() == {}


def test_dynamic_values_are_decoded_once(broker):
    value = '{"key/123":"https://example.com/"}'  # as Pulsar, any word but true turns a switch off
    set_key(broker, "allowAutoSubscriptionCreation", "%7B%22key%2F123%22%3A%22https%3A%2F%2Fexample.com%2F%22%7D")
    assert broker.rest("GET", f"{CONFIGURATION}/values").json() == {"allowAutoSubscriptionCreation": value}
    assert in_force(broker, "allowAutoSubscriptionCreation") == "false"
    set_key(broker, "allowAutoSubscriptionCreation", "a%252Fb")
    assert broker.rest("GET", f"{CONFIGURATION}/values").json() == {"allowAutoSubscriptionCreation": "a%2Fb"}
    set_key(broker, "allowAutoSubscriptionCreation", "TRUE")
    assert in_force(broker, "allowAutoSubscriptionCreation") == "true"


def test_dynamic_settings_outlive_a_kill_and_are_stronger_than_the_file(configured):
    set_key(configured, "maxConsumersPerTopic", "7")
    configured.restart("kill")
    assert in_force(configured, "maxConsumersPerTopic") == "7"
    configured.write("maxConsumersPerTopic=4\n")
    hang_up(configured, "settings.reloaded")
    assert in_force(configured, "maxConsumersPerTopic") == "7"
    unset_key(configured, "maxConsumersPerTopic")
    assert in_force(configured, "maxConsumersPerTopic") == "4"


# ---- what clients and operators see of it

@pytest.fixture(scope="module")
def running(tmp_path_factory):
    from conftest import end
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        broker.start(*SMALL)
        yield broker
        end(broker)


@pytest.fixture
def changed(running):
    """Sets keys for one test."""
    names = []

    def change(name, value):
        names.append(name)
        set_key(running, name, value)
    yield change
    for name in names:
        unset_key(running, name)


@pytest.fixture
def user(running):
    c = new_client(running)
    yield c
    c.close()


def refused(action):
    with pytest.raises(Exception) as error:
        action()
    return str(error.value)


def test_effect_log_level(running, changed, topic):
    changed("logLevel", "debug")
    client = new_client(running)
    client.create_producer(topic).close()
    client.close()
    wait_for(lambda: running.events("session.connected"), "a line below the usual level")


def test_effect_limits(running, changed, user, topic):
    kept = [user.create_producer(topic), user.subscribe(topic, "a")]
    changed("maxProducersPerTopic", "1")
    changed("maxConsumersPerTopic", "1")
    assert "ProducerBusy" in refused(lambda: user.create_producer(topic))
    assert "ConsumerBusy" in refused(lambda: user.subscribe(topic, "b"))
    changed("maxConsumersPerTopic", "2")
    changed("maxSubscriptionsPerTopic", "2")  # the one that was refused a consumer is there
    assert refused(lambda: user.subscribe(topic, "c"))
    changed("maxSubscriptionsPerTopic", "0")
    kept.append(user.subscribe(topic, "b"))


def test_effect_creation_switches(running, changed, user, topic):
    changed("allowAutoTopicCreation", "false")
    assert "TopicNotFound" in refused(lambda: user.create_producer(topic))
    changed("allowAutoTopicCreation", "true")
    user.create_producer(topic)
    changed("allowAutoSubscriptionCreation", "false")
    assert refused(lambda: user.subscribe(topic, "a"))
    changed("allowAutoTopicCreationType", "partitioned")
    changed("defaultNumPartitions", "3")
    user.create_producer(topic + "-parts")
    assert len(user.get_topic_partitions(topic + "-parts")) == 3
    changed("subscriptionTypesEnabled", "Shared")
    changed("allowAutoSubscriptionCreation", "true")
    assert refused(lambda: user.subscribe(topic, "b", consumer_type=pulsar.ConsumerType.Exclusive))
    user.subscribe(topic, "b", consumer_type=pulsar.ConsumerType.Shared)


def test_effect_topics_of_a_namespace(running, changed, user, topic):
    changed("maxTopicsPerNamespace", "1")
    assert refused(lambda: user.create_producer(topic))


def test_effect_policies_of_loaded_topics(running, changed, user, topic):
    producer, name = user.create_producer(topic), f"persistent/public/default/{topic}"
    applied = lambda policy: running.rest("GET", f"{name}/{policy}?applied=true").json()
    changed("ttlDurationDefaultInSeconds", "77")
    changed("defaultRetentionTimeInMinutes", "5")
    changed("defaultRetentionSizeInMB", "6")
    changed("backlogQuotaDefaultLimitBytes", "12345")
    changed("brokerDeduplicationEnabled", "true")
    assert applied("messageTTL") == 77
    assert applied("retention") == {"retentionTimeInMinutes": 5, "retentionSizeInMB": 6}
    assert applied("backlogQuotaMap")["destination_storage"]["limitSize"] == 12345
    assert applied("deduplicationEnabled") is True
    wait_for(lambda: running.rest("GET", f"{name}/stats").json()["deduplicationStatus"] == "Enabled", "it looks for duplicates")
    producer.close()


def test_effect_publish_rates(running, changed, user, topic):
    producer = user.create_producer(topic, batching_enabled=False)
    producer.send(b"x")

    def seconds(count):
        begun = time.monotonic()
        for _ in range(count):
            producer.send_async(b"x", lambda *_: None)
        producer.flush()
        return time.monotonic() - begun
    assert seconds(60) < 1
    changed("maxPublishRatePerTopicInMessages", "20")
    assert seconds(60) > 1
    changed("maxPublishRatePerTopicInMessages", "0")
    changed("brokerPublisherThrottlingMaxMessageRate", "20")
    assert seconds(60) > 1
    changed("brokerPublisherThrottlingMaxMessageRate", "0")
    assert seconds(60) < 1


def test_effect_dispatch_rate(running, changed, user, topic):
    consumer, producer = user.subscribe(topic, "s"), user.create_producer(topic)
    changed("dispatchThrottlingRatePerTopicInMsg", "10")
    for i in range(25):
        producer.send(b"%d" % i)
    begun = time.monotonic()
    for _ in range(25):
        consumer.receive(timeout_millis=10000)
    assert time.monotonic() - begun > 1


def test_effect_largest_message(running, changed, topic):
    changed("maxMessageSize", "2048")
    client = new_client(running)
    producer = client.create_producer(topic, batching_enabled=False)
    assert "MessageTooBig" in refused(lambda: producer.send(b"x" * 5000))
    client.close()


def test_effect_forced_deletion(running, changed, user):
    for path in ("tenants/gone", "namespaces/gone/ns"):
        body = json.dumps({"allowedClusters": ["standalone"]}) if path.startswith("tenants") else None
        assert running.rest("PUT", path, body).status == 204
    user.create_producer("persistent://gone/ns/t").close()
    assert running.rest("DELETE", "namespaces/gone/ns?force=true").status == 405
    changed("forceDeleteNamespaceAllowed", "true")
    assert running.rest("DELETE", "namespaces/gone/ns?force=true").status == 204


def test_effect_connections(running, changed):
    changed("brokerMaxConnections", "1")
    first = new_client(running)
    first.create_producer("connected").close()
    second = new_client(running, operation_timeout_seconds=2)
    assert refused(lambda: second.create_producer("connected"))
    second.close()
    first.close()


def test_settings_change_under_load_and_nothing_is_lost(running, changed, user, topic):
    producer, consumer = user.create_producer(topic), user.subscribe(topic, "s")
    for i in range(300):
        producer.send_async(b"%d" % i, lambda *_: None)
        if i % 20 == 0:
            changed("managedLedgerCacheSizeMB", str(1 + i % 60))
            changed("dispatcherMaxReadBatchSize", str(1 + i % 7))
            changed("storeReserveMB", str(i % 3))
    producer.flush()
    assert [int(consumer.receive(timeout_millis=10000).data()) for _ in range(300)] == list(range(300))


# ---- a service manager

class Manager:
    """What systemd would be: a datagram socket, on a path or in the abstract space."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self.socket.settimeout(20)

    def next(self, *wanted):
        """The next message that has one of these variables."""
        while True:
            message = dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())
            if set(wanted) & set(message):
                return message


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_service_manager_is_told(new_broker, tmp_path, kind):
    manager = Manager(f"@oxbow-test-{os.getpid()}-{time.monotonic_ns()}" if kind == "abstract" else str(tmp_path / "notify"))
    new_broker.launch(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "600000"})
    message = manager.next("READY", "STOPPING")
    assert message["READY"] == "1" and message["STATUS"].startswith("serving pulsar://127.0.0.1:"), message
    assert new_broker.wait_ready() and new_broker.rest("GET", "brokers/ready").status == 200
    begun = time.monotonic()
    for _ in range(3):
        assert manager.next("WATCHDOG")["WATCHDOG"] == "1"
    assert time.monotonic() - begun < 1.5
    new_broker.process.send_signal(signal.SIGHUP)
    message = manager.next("RELOADING", "READY")
    assert message["RELOADING"] == "1" and abs(int(message["MONOTONIC_USEC"]) - time.monotonic_ns() // 1000) < 10_000_000, message
    assert manager.next("RELOADING", "READY").get("READY") == "1"
    new_broker.process.send_signal(signal.SIGTERM)
    assert manager.next("STOPPING", "READY").get("STOPPING") == "1"
    assert new_broker.process.wait(timeout=30) == 0


def test_an_end_while_it_starts_is_not_taken_back(new_broker, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    new_broker.launch(env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "600000"})
    manager.next("WATCHDOG")  # the loop turns
    new_broker.process.send_signal(signal.SIGTERM)
    while "STOPPING" not in manager.next("STOPPING", "READY"):
        pass
    assert new_broker.process.wait(timeout=30) == 0
    manager.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            assert "READY" not in manager.next("READY", "WATCHDOG"), "it says that it serves after it has said that it ends"


def test_a_service_manager_that_is_busy_is_told_later(new_broker, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                other.sendto(b"OTHER=1", manager.name)
    new_broker.start(*SMALL, env={"NOTIFY_SOCKET": manager.name})
    new_broker.rest("GET", "brokers/ready")  # the message was sent in vain by now
    assert manager.next("READY")["READY"] == "1"


def test_a_stopped_loop_gives_no_sign_of_life(new_broker, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    new_broker.start(*SMALL, env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "300000"})
    manager.next("WATCHDOG")
    new_broker.process.send_signal(signal.SIGSTOP)
    manager.socket.settimeout(1)
    with pytest.raises(TimeoutError):
        for _ in range(20):  # what was on its way
            manager.next("WATCHDOG")
    new_broker.process.send_signal(signal.SIGCONT)
    manager.socket.settimeout(20)
    manager.next("WATCHDOG")


def journal(file):
    """What systemd tells a service about its standard error, if that file were the journal."""
    about = file.stat()
    return {"JOURNAL_STREAM": f"{about.st_dev}:{about.st_ino}"}


def test_lines_to_the_journal_begin_with_their_priority(new_broker):
    new_broker.folder.mkdir(parents=True, exist_ok=True)
    new_broker.log_file.touch()
    new_broker.start(*SMALL, env=journal(new_broker.log_file))
    set_key(new_broker, "logLevel", "debug")
    client = new_client(new_broker)
    client.create_producer("t")
    client.close()
    lines = new_broker.log().splitlines()
    assert lines and all(re.match(r"<[3467]>2\S+Z (ERROR|WARN|INFO|DEBUG) ", line) for line in lines), lines
    for priority, level in ((6, "INFO"), (7, "DEBUG")):
        assert {line[:3] for line in lines if f"Z {level} " in line} == {f"<{priority}>"}
    second = Broker(new_broker.folder, new_broker.data)
    second.log_start = new_broker.log_file.stat().st_size
    second.launch("brokerServicePort=0", env=journal(new_broker.log_file))
    assert second.process.wait(timeout=20) == 1
    assert re.search(r"(?m)^<3>oxbowd: .*another oxbowd runs on this directory", second.log()), second.log()


def test_lines_elsewhere_have_no_priority(new_broker, tmp_path):
    other = tmp_path / "other"
    other.touch()
    new_broker.start(*SMALL, env=journal(other))
    assert re.match(r"2\S+Z INFO ", new_broker.log()), new_broker.log()


# ---- a crash

@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL])
def test_crash_leaves_a_report(new_broker, number):
    if SANITIZED and number != signal.SIGABRT:
        pytest.skip("these signals are the sanitizer's")
    broker = new_broker.start(*SMALL)
    client = new_client(broker)
    client.create_producer("t").send(b"x")
    client.close()
    pid = broker.process.pid
    broker.process.send_signal(number)
    assert broker.process.wait(timeout=20) == -number
    report, = broker.data.glob(f"crash-*Z-{pid}.txt")
    text = report.read_text()
    same, _, backtrace = text.partition("\nbacktrace ")
    assert same in broker.log() and backtrace.endswith("---- end of the crash report\n") and broker.log().count("\n---- end of") == 1, broker.log()
    for wanted in (f"signal {number.name}\nsent by process {os.getpid()} of user {os.getuid()}\n", "\nversion oxbowd ", "\nbacktrace ", "oxbowd(ox_posix_run+0x",
                   " DEBUG session.connected ", " INFO oxbowd.ready "):
        assert wanted in text, text
    assert re.search(r"\nbuild [0-9a-f]{40}\n", text) or "build unknown" in text
    broker.start()
    told, = broker.events("oxbowd.crash_reports")
    assert f"count=1 newest=\"{report}\"" in told


def test_crash_reports_do_not_fill_the_disk(new_broker):
    new_broker.data.mkdir(parents=True)
    for i in range(15):
        (new_broker.data / f"crash-202601{i + 10}T000000Z-1.txt").write_text("x")
    notes = [new_broker.data / name for name in ("crash-1.txt", "crash-analysis.txt", "crash-20260101T000000Z-old.txt")]
    for note in notes:
        note.write_text("an operator's own")
    new_broker.start(*SMALL)
    assert all(note.exists() for note in notes)
    left = sorted(path.name for path in new_broker.data.glob("crash-*Z-1.txt"))
    assert len(left) == 10 and left[0] == "crash-20260115T000000Z-1.txt"
    assert "count=15 newest=\"" + str(new_broker.data / "crash-20260124T000000Z-1.txt") + "\"" in new_broker.events("oxbowd.crash_reports")[0]
