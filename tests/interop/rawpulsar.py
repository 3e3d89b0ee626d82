"""A bare client of Pulsar's binary protocol: it sends what it is told, right or wrong, and shows what comes back.

    with Connection("127.0.0.1", 6650) as broker:
        broker.connect()
        broker.send("producer", topic="persistent://public/default/t", producer_id=1, request_id=1)
        print(broker.receive())                 # producer_success(request_id=1, producer_name='...', ...)
        broker.send_message(1, 0, b"hello")
        print(broker.expect("send_receipt"))

A frame is `u32 length of the rest | u32 length of the command | command`, and for messages then
`u16 0x0e01 | u32 CRC32C of what follows | u32 length of the metadata | metadata | payload`, all big-endian. A message from
the broker may begin with `u16 0x0e02 | u32 length | broker entry metadata`. Nothing is checked on the way out, so that tests
can send broken frames: `send_bytes` sends any bytes, `frame` and `message_part` make parts to break.
"""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden"))
from wirefmt import crc32c, fields, signed  # noqa: E402

# Kinds of fields: int (any varint; negative numbers as 64-bit two's complement), text, raw (bytes), real (double), or the
# table of a nested message. A list around the kind means that the field may be repeated.
KEY_VALUE = {1: ("key", "text"), 2: ("value", "text")}
KEY_LONG = {1: ("key", "text"), 2: ("value", "int")}
AUTH_DATA = {1: ("auth_method_name", "text"), 2: ("auth_data", "raw")}
FEATURES = {1: ("supports_auth_refresh", "int"), 2: ("supports_broker_entry_metadata", "int"),
            3: ("supports_partial_producer", "int"), 4: ("supports_topic_watchers", "int"),
            5: ("supports_get_partitioned_metadata_without_auto_creation", "int"),
            6: ("supports_repl_dedup_by_lid_and_eid", "int")}
SCHEMA = {1: ("name", "text"), 3: ("schema_data", "raw"), 4: ("type", "int"), 5: ("properties", [KEY_VALUE])}
MESSAGE_ID = {1: ("ledger_id", "int"), 2: ("entry_id", "int"), 3: ("partition", "int"), 4: ("batch_index", "int"),
              5: ("ack_set", ["int"]), 6: ("batch_size", "int")}
MESSAGE_ID[7] = ("first_chunk_message_id", MESSAGE_ID)
KEY_SHARED = {1: ("key_shared_mode", "int"), 3: ("hash_ranges", [{1: ("start", "int"), 2: ("end", "int")}]),
              4: ("allow_out_of_order_delivery", "int")}
REQUEST = {1: ("request_id", "int")}
TXN_ANSWER = {1: ("request_id", "int"), 2: ("txnid_least_bits", "int"), 3: ("txnid_most_bits", "int"),
              4: ("error", "int"), 5: ("message", "text")}

# Name of the command -> (its type, which also is the number of its field in BaseCommand; its fields).
COMMANDS = {
    "connect": (2, {1: ("client_version", "text"), 2: ("auth_method", "int"), 3: ("auth_data", "raw"),
                    4: ("protocol_version", "int"), 5: ("auth_method_name", "text"), 6: ("proxy_to_broker_url", "text"),
                    7: ("original_principal", "text"), 8: ("original_auth_data", "text"), 9: ("original_auth_method", "text"),
                    10: ("feature_flags", FEATURES), 11: ("proxy_version", "text")}),
    "connected": (3, {1: ("server_version", "text"), 2: ("protocol_version", "int"), 3: ("max_message_size", "int"),
                      4: ("feature_flags", FEATURES)}),
    "subscribe": (4, {1: ("topic", "text"), 2: ("subscription", "text"), 3: ("sub_type", "int"), 4: ("consumer_id", "int"),
                      5: ("request_id", "int"), 6: ("consumer_name", "text"), 7: ("priority_level", "int"),
                      8: ("durable", "int"), 9: ("start_message_id", MESSAGE_ID), 10: ("metadata", [KEY_VALUE]),
                      11: ("read_compacted", "int"), 12: ("schema", SCHEMA), 13: ("initial_position", "int"),
                      14: ("replicate_subscription_state", "int"), 15: ("force_topic_creation", "int"),
                      16: ("start_message_rollback_duration_sec", "int"), 17: ("key_shared_meta", KEY_SHARED),
                      18: ("subscription_properties", [KEY_VALUE]), 19: ("consumer_epoch", "int")}),
    "producer": (5, {1: ("topic", "text"), 2: ("producer_id", "int"), 3: ("request_id", "int"), 4: ("producer_name", "text"),
                     5: ("encrypted", "int"), 6: ("metadata", [KEY_VALUE]), 7: ("schema", SCHEMA), 8: ("epoch", "int"),
                     9: ("user_provided_producer_name", "int"), 10: ("producer_access_mode", "int"),
                     11: ("topic_epoch", "int"), 12: ("txn_enabled", "int"), 13: ("initial_subscription_name", "text")}),
    "send": (6, {1: ("producer_id", "int"), 2: ("sequence_id", "int"), 3: ("num_messages", "int"),
                 4: ("txnid_least_bits", "int"), 5: ("txnid_most_bits", "int"), 6: ("highest_sequence_id", "int"),
                 7: ("is_chunk", "int"), 8: ("marker", "int"), 9: ("message_id", MESSAGE_ID)}),
    "send_receipt": (7, {1: ("producer_id", "int"), 2: ("sequence_id", "int"), 3: ("message_id", MESSAGE_ID),
                         4: ("highest_sequence_id", "int")}),
    "send_error": (8, {1: ("producer_id", "int"), 2: ("sequence_id", "int"), 3: ("error", "int"), 4: ("message", "text")}),
    "message": (9, {1: ("consumer_id", "int"), 2: ("message_id", MESSAGE_ID), 3: ("redelivery_count", "int"),
                    4: ("ack_set", ["int"]), 5: ("consumer_epoch", "int")}),
    "ack": (10, {1: ("consumer_id", "int"), 2: ("ack_type", "int"), 3: ("message_id", [MESSAGE_ID]),
                 4: ("validation_error", "int"), 5: ("properties", [KEY_LONG]), 6: ("txnid_least_bits", "int"),
                 7: ("txnid_most_bits", "int"), 8: ("request_id", "int")}),
    "flow": (11, {1: ("consumer_id", "int"), 2: ("message_permits", "int")}),
    "unsubscribe": (12, {1: ("consumer_id", "int"), 2: ("request_id", "int"), 3: ("force", "int")}),
    "success": (13, {1: ("request_id", "int"), 2: ("schema", SCHEMA)}),
    "error": (14, {1: ("request_id", "int"), 2: ("error", "int"), 3: ("message", "text")}),
    "close_producer": (15, {1: ("producer_id", "int"), 2: ("request_id", "int"), 3: ("assigned_broker_service_url", "text"),
                            4: ("assigned_broker_service_url_tls", "text")}),
    "close_consumer": (16, {1: ("consumer_id", "int"), 2: ("request_id", "int"), 3: ("assigned_broker_service_url", "text"),
                            4: ("assigned_broker_service_url_tls", "text")}),
    "producer_success": (17, {1: ("request_id", "int"), 2: ("producer_name", "text"), 3: ("last_sequence_id", "int"),
                              4: ("schema_version", "raw"), 5: ("topic_epoch", "int"), 6: ("producer_ready", "int")}),
    "ping": (18, {}),
    "pong": (19, {}),
    "redeliver": (20, {1: ("consumer_id", "int"), 2: ("message_ids", [MESSAGE_ID]), 3: ("consumer_epoch", "int")}),
    "partition_metadata": (21, {1: ("topic", "text"), 2: ("request_id", "int"), 3: ("original_principal", "text"),
                                4: ("original_auth_data", "text"), 5: ("original_auth_method", "text"),
                                6: ("metadata_auto_creation_enabled", "int")}),
    "partition_metadata_response": (22, {1: ("partitions", "int"), 2: ("request_id", "int"), 3: ("response", "int"),
                                         4: ("error", "int"), 5: ("message", "text")}),
    "lookup": (23, {1: ("topic", "text"), 2: ("request_id", "int"), 3: ("authoritative", "int"),
                    4: ("original_principal", "text"), 5: ("original_auth_data", "text"), 6: ("original_auth_method", "text"),
                    7: ("advertised_listener_name", "text"), 8: ("properties", [KEY_VALUE])}),
    "lookup_response": (24, {1: ("broker_service_url", "text"), 2: ("broker_service_url_tls", "text"), 3: ("response", "int"),
                             4: ("request_id", "int"), 5: ("authoritative", "int"), 6: ("error", "int"),
                             7: ("message", "text"), 8: ("proxy_through_service_url", "int")}),
    "consumer_stats": (25, {1: ("request_id", "int"), 4: ("consumer_id", "int")}),
    "consumer_stats_response": (26, {1: ("request_id", "int"), 2: ("error_code", "int"), 3: ("error_message", "text"),
                                     4: ("msg_rate_out", "real"), 5: ("msg_throughput_out", "real"),
                                     6: ("msg_rate_redeliver", "real"), 7: ("consumer_name", "text"),
                                     8: ("available_permits", "int"), 9: ("unacked_messages", "int"),
                                     10: ("blocked_consumer_on_unacked_msgs", "int"), 11: ("address", "text"),
                                     12: ("connected_since", "text"), 13: ("type", "text"), 14: ("msg_rate_expired", "real"),
                                     15: ("msg_backlog", "int"), 16: ("message_ack_rate", "real")}),
    "reached_end_of_topic": (27, {1: ("consumer_id", "int")}),
    "seek": (28, {1: ("consumer_id", "int"), 2: ("request_id", "int"), 3: ("message_id", MESSAGE_ID),
                  4: ("message_publish_time", "int")}),
    "get_last_message_id": (29, {1: ("consumer_id", "int"), 2: ("request_id", "int")}),
    "get_last_message_id_response": (30, {1: ("last_message_id", MESSAGE_ID), 2: ("request_id", "int"),
                                          3: ("consumer_mark_delete_position", MESSAGE_ID)}),
    "active_consumer_change": (31, {1: ("consumer_id", "int"), 2: ("is_active", "int")}),
    "get_topics": (32, {1: ("request_id", "int"), 2: ("namespace", "text"), 3: ("mode", "int"), 4: ("topics_pattern", "text"),
                        5: ("topics_hash", "text")}),
    "get_topics_response": (33, {1: ("request_id", "int"), 2: ("topics", ["text"]), 3: ("filtered", "int"),
                                 4: ("topics_hash", "text"), 5: ("changed", "int")}),
    "get_schema": (34, {1: ("request_id", "int"), 2: ("topic", "text"), 3: ("schema_version", "raw")}),
    "get_schema_response": (35, {1: ("request_id", "int"), 2: ("error_code", "int"), 3: ("error_message", "text"),
                                 4: ("schema", SCHEMA), 5: ("schema_version", "raw")}),
    "auth_challenge": (36, {1: ("server_version", "text"), 2: ("challenge", AUTH_DATA), 3: ("protocol_version", "int")}),
    "auth_response": (37, {1: ("client_version", "text"), 2: ("response", AUTH_DATA), 3: ("protocol_version", "int")}),
    "ack_response": (38, {1: ("consumer_id", "int"), 2: ("txnid_least_bits", "int"), 3: ("txnid_most_bits", "int"),
                          4: ("error", "int"), 5: ("message", "text"), 6: ("request_id", "int")}),
    "get_or_create_schema": (39, {1: ("request_id", "int"), 2: ("topic", "text"), 3: ("schema", SCHEMA)}),
    "get_or_create_schema_response": (40, {1: ("request_id", "int"), 2: ("error_code", "int"), 3: ("error_message", "text"),
                                           4: ("schema_version", "raw")}),
    "new_txn": (50, {1: ("request_id", "int"), 2: ("txn_ttl_seconds", "int"), 3: ("tc_id", "int")}),
    "new_txn_response": (51, TXN_ANSWER),
    "add_partition_to_txn": (52, {1: ("request_id", "int"), 2: ("txnid_least_bits", "int"), 3: ("txnid_most_bits", "int"),
                                  4: ("partitions", ["text"])}),
    "add_partition_to_txn_response": (53, TXN_ANSWER),
    "add_subscription_to_txn": (54, {1: ("request_id", "int"), 2: ("txnid_least_bits", "int"), 3: ("txnid_most_bits", "int"),
                                     4: ("subscription", [{1: ("topic", "text"), 2: ("subscription", "text")}])}),
    "add_subscription_to_txn_response": (55, TXN_ANSWER),
    "end_txn": (56, {1: ("request_id", "int"), 2: ("txnid_least_bits", "int"), 3: ("txnid_most_bits", "int"),
                     4: ("txn_action", "int")}),
    "end_txn_response": (57, TXN_ANSWER),
    "tc_connect": (62, {1: ("request_id", "int"), 2: ("tc_id", "int")}),
    "tc_connect_response": (63, {1: ("request_id", "int"), 2: ("error", "int"), 3: ("message", "text")}),
    "watch_topics": (64, {1: ("request_id", "int"), 2: ("watcher_id", "int"), 3: ("namespace", "text"),
                          4: ("topics_pattern", "text"), 5: ("topics_hash", "text")}),
    "watch_topics_success": (65, {1: ("request_id", "int"), 2: ("watcher_id", "int"), 3: ("topic", ["text"]),
                                  4: ("topics_hash", "text")}),
    "watch_topics_update": (66, {1: ("watcher_id", "int"), 2: ("new_topics", ["text"]), 3: ("deleted_topics", ["text"]),
                                 4: ("topics_hash", "text")}),
    "watch_topics_close": (67, REQUEST | {2: ("watcher_id", "int")}),
    "topic_migrated": (68, {1: ("resource_id", "int"), 2: ("resource_type", "int"), 3: ("broker_service_url", "text"),
                            4: ("broker_service_url_tls", "text")}),
}
NAMES = {number: name for name, (number, _) in COMMANDS.items()}

METADATA = {1: ("producer_name", "text"), 2: ("sequence_id", "int"), 3: ("publish_time", "int"), 4: ("properties", [KEY_VALUE]),
            5: ("replicated_from", "text"), 6: ("partition_key", "text"), 8: ("compression", "int"), 9: ("uncompressed_size", "int"),
            11: ("num_messages_in_batch", "int"), 12: ("event_time", "int"), 13: ("encryption_keys", [KEY_VALUE]), 16: ("schema_version", "raw"),
            18: ("ordering_key", "raw"), 19: ("deliver_at_time", "int"), 24: ("highest_sequence_id", "int"),
            25: ("null_value", "int"), 26: ("uuid", "text"), 27: ("num_chunks_from_msg", "int"),
            28: ("total_chunk_msg_size", "int"), 29: ("chunk_id", "int")}
BROKER_METADATA = {1: ("broker_timestamp", "int"), 2: ("index", "int")}

ERRORS = ["UnknownError", "MetadataError", "PersistenceError", "AuthenticationError", "AuthorizationError", "ConsumerBusy",
          "ServiceNotReady", "ProducerBlockedQuotaExceededError", "ProducerBlockedQuotaExceededException", "ChecksumError",
          "UnsupportedVersionError", "TopicNotFound", "SubscriptionNotFound", "ConsumerNotFound", "TooManyRequests",
          "TopicTerminatedError", "ProducerBusy", "InvalidTopicName", "IncompatibleSchema", "ConsumerAssignError",
          "TransactionCoordinatorNotFound", "InvalidTxnStatus", "NotAllowedError", "TransactionConflict",
          "TransactionNotFound", "ProducerFenced"]


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def encode_value(number, kind, value):
    if kind == "int":
        return varint(number << 3) + varint(int(value))
    if kind == "real":
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(kind, dict):
        value = encode(kind, value)
    elif kind == "text" and isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def encode(table, values):
    """The protobuf message with `values` (name -> value, in the order in which they are to be written)."""
    numbers = {name: (number, kind) for number, (name, kind) in table.items()}
    out = b""
    for name, value in values.items():
        number, kind = numbers[name]
        if isinstance(kind, list):
            out += b"".join(encode_value(number, kind[0], one) for one in value)
        elif value is not None:
            out += encode_value(number, kind, value)
    return out


def decode_value(kind, wire, value):
    if isinstance(kind, dict):
        return decode(kind, value)
    if kind == "int":
        return signed(value)
    if kind == "real":
        return struct.unpack("<d", struct.pack("<Q", value))[0]
    return value.decode() if kind == "text" else value


def decode(table, data):
    """name -> value of the fields that are present, in wire order; unknown ones under their number."""
    out = {}
    for number, wire, value in fields(data):
        name, kind = table.get(number, (str(number), "raw" if wire == 2 else "int"))
        if isinstance(kind, list):
            out.setdefault(name, []).append(decode_value(kind[0], wire, value))
        else:
            out[name] = decode_value(kind, wire, value)
    return out


def command(name, /, **values):
    """The bytes of the BaseCommand `name`; a field's value None leaves it out."""
    number, table = COMMANDS[name]
    body = encode(table, values)
    return varint(1 << 3) + varint(number) + varint(number << 3 | 2) + varint(len(body)) + body


def frame(command_bytes, rest=b""):
    """A whole frame around a command and, for a send, its message part."""
    return struct.pack(">II", 4 + len(command_bytes) + len(rest), len(command_bytes)) + command_bytes + rest


def message_part(payload, checksum=True, crc=None, **metadata):
    """What follows a send command: the checksum (`crc` instead of the right one), the metadata, the payload."""
    values = {"producer_name": "raw", "sequence_id": 0, "publish_time": int(time.time() * 1000)} | metadata
    head = encode(METADATA, values)
    body = struct.pack(">I", len(head)) + head + payload
    if not checksum:
        return body
    return struct.pack(">HI", 0x0E01, crc32c(body) if crc is None else crc) + body


class Frame:
    """A frame from the broker: name, values and, of a message, metadata, payload, broker (entry metadata), checksum_ok."""

    def __init__(self, data):
        size = struct.unpack_from(">I", data)[0]
        self.raw, values = data, {number: value for number, _, value in fields(data[4:4 + size])}
        self.name = NAMES[values[1]]
        self.values = decode(COMMANDS[self.name][1], values[values[1]])
        self.metadata = self.payload = self.broker = self.checksum_ok = None
        if len(data) > 4 + size:
            self.parse_message(data[4 + size:])

    def parse_message(self, rest):
        if rest[:2] == b"\x0e\x02":
            size = struct.unpack_from(">I", rest, 2)[0]
            self.broker, rest = decode(BROKER_METADATA, rest[6:6 + size]), rest[6 + size:]
        if rest[:2] == b"\x0e\x01":
            self.checksum_ok = struct.unpack_from(">I", rest, 2)[0] == crc32c(rest[6:])
            rest = rest[6:]
        size = struct.unpack_from(">I", rest)[0]
        self.metadata, self.payload = decode(METADATA, rest[4:4 + size]), rest[4 + size:]

    def __getitem__(self, name):
        return self.values[name]

    def get(self, name, default=None):
        return self.values.get(name, default)

    def error(self):
        """The name of the ServerError in an answer, or None."""
        code = self.values.get("error", self.values.get("error_code"))
        return None if code is None else ERRORS[code]

    def __repr__(self):
        parts = [f"{name}={value!r}" for name, value in self.values.items()]
        if self.error():
            parts.append(f"[{self.error()}]")
        if self.metadata is not None:
            parts.append(f"| metadata={self.metadata!r} payload={self.payload[:40]!r} checksum_ok={self.checksum_ok}")
        if self.broker is not None:
            parts.append(f"broker={self.broker!r}")
        return f"{self.name}({', '.join(parts)})"


class Closed(Exception):
    """The broker has closed the connection."""


class Connection:
    """One TCP connection; answers pings by itself while it waits, unless `pongs` is set to False."""

    def __init__(self, host, port, timeout=10):
        self.socket, self.timeout, self.buffer, self.pongs = socket.create_connection((host, port), timeout), timeout, b"", True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send_bytes(self, data):
        self.socket.settimeout(self.timeout)
        try:
            self.socket.sendall(data)
        except (ConnectionError, BrokenPipeError) as error:
            raise Closed(str(error)) from error

    def send(self, name, /, **values):
        self.send_bytes(frame(command(name, **values)))

    def send_message(self, producer_id, sequence_id, payload, checksum=True, crc=None, metadata=None, **values):
        """A send command with one message, or with a batch if `metadata` has num_messages_in_batch."""
        part = message_part(payload, checksum, crc, **({"sequence_id": sequence_id} | (metadata or {})))
        self.send_bytes(frame(command("send", producer_id=producer_id, sequence_id=sequence_id, **values), part))

    def fill(self, count, deadline):
        """Reads until the buffer holds `count` bytes."""
        while len(self.buffer) < count:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                more = self.socket.recv(1 << 16)
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not more:
                raise Closed("end of stream")
            self.buffer += more

    def receive(self, timeout=None):
        """The next frame. Raises Closed if the broker closed, TimeoutError if nothing came."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            self.fill(4, deadline)
            size = 4 + struct.unpack_from(">I", self.buffer)[0]
            self.fill(size, deadline)
            data, self.buffer = self.buffer[4:size], self.buffer[size:]
            got = Frame(data)
            if got.name != "ping" or not self.pongs:
                return got
            self.send("pong")

    def expect(self, name, timeout=None):
        """The next frame, which must be of this name."""
        got = self.receive(timeout)
        if got.name != name:
            raise AssertionError(f"wanted {name}, got {got}")
        return got

    def quiet(self, timeout=0.5):
        """True if nothing comes for this long (seconds)."""
        try:
            self.receive(timeout)
            return False
        except TimeoutError:
            return True

    def closed(self, timeout=5):
        """True if the broker closes within this time; frames that come before are dropped."""
        try:
            while True:
                self.receive(timeout)
        except Closed:
            return True
        except TimeoutError:
            return False

    def connect(self, protocol_version=21, client_version="raw", **values):
        self.send("connect", client_version=client_version, protocol_version=protocol_version, **values)
        return self.receive()

    def ask(self, name, /, **values):
        """Sends a command and gives the next frame."""
        self.send(name, **values)
        return self.receive()
