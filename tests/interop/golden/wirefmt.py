"""Canonical text of the bytes that a Pulsar broker keeps for a topic.

A protobuf message is written as `name:value name{...}` in the order of its fields on the wire, with everything that is
present and nothing that is not, so that equal text means equal bytes up to the masks. Masked are the numbers that no
script can fix: ledger ids become D0, D1, ... (data) and C0, C1, ... (cursors) in the order in which a topic shows them,
and times after the year 2020 become T. Unknown fields are shown by number.
"""
import struct
import sys

TIME_MIN = 1_600_000_000_000

POSITION = {1: ("ledgerId", "data"), 2: ("entryId", "int")}
RANGE = {1: ("lower", POSITION), 2: ("upper", POSITION)}
KEY_VALUE = {1: ("key", "text"), 2: ("value", "text")}
LONG_PROPERTY = {1: ("name", "text"), 2: ("value", "int")}
STRING_PROPERTY = {1: ("name", "text"), 2: ("value", "text")}
BATCH_INDEX = {1: ("position", POSITION), 2: ("deleteSet", "int")}
LONG_LIST = {1: ("key", "data"), 2: ("values", "int")}
LEDGER_INFO = {1: ("ledgerId", "data"), 2: ("entries", "int"), 3: ("size", "int"), 4: ("timestamp", "time"),
               5: ("offloadContext", "bytes"), 6: ("properties", KEY_VALUE)}
TOPIC_NODE = {1: ("ledgerInfo", LEDGER_INFO), 2: ("terminatedPosition", POSITION), 3: ("properties", KEY_VALUE)}
CURSOR_NODE = {1: ("cursorsLedgerId", "cursor"), 2: ("markDeleteLedgerId", "data"), 3: ("markDeleteEntryId", "int"),
               4: ("individualDeletedMessages", RANGE), 5: ("properties", LONG_PROPERTY), 6: ("lastActive", "time"),
               7: ("batchedEntryDeletionIndexInfo", BATCH_INDEX), 8: ("cursorProperties", STRING_PROPERTY)}
CURSOR_ENTRY = {1: ("ledgerId", "data"), 2: ("entryId", "int"), 3: ("individualDeletedMessages", RANGE),
                4: ("properties", LONG_PROPERTY), 5: ("batchedEntryDeletionIndexInfo", BATCH_INDEX),
                6: ("individualDeletedMessageRanges", LONG_LIST)}
BROKER_METADATA = {1: ("broker_timestamp", "time"), 2: ("index", "int")}
MESSAGE_METADATA = {
    1: ("producer_name", "text"), 2: ("sequence_id", "int"), 3: ("publish_time", "time"), 4: ("properties", KEY_VALUE),
    5: ("replicated_from", "text"), 6: ("partition_key", "text"), 7: ("replicate_to", "text"), 8: ("compression", "int"),
    9: ("uncompressed_size", "int"), 11: ("num_messages_in_batch", "int"), 12: ("event_time", "int"),
    16: ("schema_version", "bytes"), 17: ("partition_key_b64_encoded", "int"), 18: ("ordering_key", "bytes"),
    19: ("deliver_at_time", "int"), 24: ("highest_sequence_id", "int"), 25: ("null_value", "int"), 26: ("uuid", "text"),
    27: ("num_chunks_from_msg", "int"), 28: ("total_chunk_msg_size", "int"), 29: ("chunk_id", "int")}

MAGIC_CHECKSUM, MAGIC_BROKER = 0x0E01, 0x0E02


class Malformed(Exception):
    """The bytes are not what the format says."""


class Masks:
    """The names that one topic's ledgers have got so far."""

    def __init__(self):
        self.names, self.counts = {}, {}

    def ledger(self, ident, kind):
        """The name of ledger `ident`; kind is "data" or "cursor". Negative ids mean "none" and stay as they are."""
        if ident < 0:
            return str(ident)
        if ident not in self.names:
            letter = kind[0].upper()
            self.names[ident] = letter + str(self.counts.get(letter, 0))
            self.counts[letter] = self.counts.get(letter, 0) + 1
        return self.names[ident]


def time(value):
    return "T" if value > TIME_MIN else str(value)


def varint(data, at):
    """The unsigned varint at `at` and the offset behind it; a longer form than needed is refused."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("broken varint")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            if byte == 0 and shift > 7:
                raise Malformed("varint longer than needed")
            return value & (1 << 64) - 1, at


def fields(data):
    """(number, wire type, value) of each field in order; value is an int or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = int.from_bytes(data[at:at + size], "little"), at + size
        else:
            raise Malformed(f"wire type {wire}")
        if at > len(data):
            raise Malformed("field runs over the end")
        yield number, wire, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def scalar(kind, value, masks):
    if kind in ("data", "cursor"):
        return masks.ledger(signed(value), kind)
    if kind == "time":
        return time(signed(value))
    if kind == "int":
        return str(signed(value))
    if kind == "text":
        return '"' + value.decode("utf-8", "backslashreplace").replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "0x" + value.hex()


def message(data, shape, masks):
    """Canonical text of the protobuf message `data`, whose fields `shape` names."""
    parts = []
    for number, wire, value in fields(data):
        name, kind = shape.get(number, (str(number), "bytes" if wire == 2 else "int"))
        if isinstance(kind, dict):
            parts.append(f"{name}{{{message(value, kind, masks)}}}")
        else:
            parts.append(f"{name}:{scalar(kind, value, masks)}")
    return " ".join(parts)


def topic_node(data, masks):
    return message(data, TOPIC_NODE, masks)


def cursor_node(data, masks):
    return message(data, CURSOR_NODE, masks)


def cursor_entry(data, masks):
    return message(data, CURSOR_ENTRY, masks)


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC32C = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC32C[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def u32(data, at):
    return struct.unpack_from(">I", data, at)[0]


def data_entry(data, masks):
    """Text of a stored message entry: each of its parts in order, the payload in hex, the checksum checked, not shown."""
    parts, at = [], 0
    if data[:2] == MAGIC_BROKER.to_bytes(2, "big"):
        size = u32(data, 2)
        parts.append(f"broker{{{message(data[6:6 + size], BROKER_METADATA, masks)}}}")
        at = 6 + size
    if data[at:at + 2] == MAGIC_CHECKSUM.to_bytes(2, "big"):
        if u32(data, at + 2) != crc32c(data[at + 6:]):
            raise Malformed("checksum of a data entry")
        parts.append("crc32c")
        at += 6
    size = u32(data, at)
    parts.append(f"metadata{{{message(data[at + 4:at + 4 + size], MESSAGE_METADATA, masks)}}}")
    parts.append("payload:0x" + data[at + 4 + size:].hex())
    return " ".join(parts)


WRITERS = {"topic": topic_node, "cursor": cursor_node, "ack": cursor_entry, "message": data_entry}


class Record:
    """One thing seen at a snapshot: kind is topic, cursor, ack (cursor-ledger entry), message (data entry) or ledger."""

    COLUMNS = ("label", "topic", "kind", "name", "version", "text", "hex")

    def __init__(self, label, topic, kind, name, version, text, raw):
        self.label, self.topic, self.kind, self.name, self.version, self.text, self.hex = (
            label, topic, kind, name, version, text, raw)

    def line(self):
        return "\t".join(str(getattr(self, column)) for column in self.COLUMNS)


def read(path):
    """The records of a golden file."""
    with open(path, encoding="utf-8") as lines:
        return [Record(*line.rstrip("\n").split("\t")) for line in lines if line.strip() and not line.startswith("#")]


def write(path, records, remarks=()):
    with open(path, "w", encoding="utf-8") as out:
        for remark in remarks:
            out.write(f"# {remark}\n")
        out.write("# " + "\t".join(Record.COLUMNS) + "\n")
        label = None
        for record in records:
            if record.label != label:
                out.write("\n")
                label = record.label
            out.write(record.line() + "\n")


def differences(want, got, kinds=("topic", "cursor", "ack", "message")):
    """Lines that tell where the records of two runs differ; node versions and raw bytes are not compared."""
    def table(records):
        return {(r.label, r.topic, r.kind, r.name): r.text for r in records if r.kind in kinds}
    left, right, out = table(want), table(got), []
    order = list(left) + [key for key in right if key not in left]
    for key in order:
        if left.get(key) != right.get(key):
            out.append(f"{' | '.join(key)}\n  want {left.get(key, '(nothing)')}\n  got  {right.get(key, '(nothing)')}")
    return out


def main():
    found = differences(read(sys.argv[1]), read(sys.argv[2]))
    print("\n".join(found) if found else "the same")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
