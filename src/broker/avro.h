// avro.h - Avro's binary encoding of JSON values, by tables that describe types. Format: Apache Avro 1.11 specification, "Binary Encoding".
#ifndef BROKER_AVRO_H
#define BROKER_AVRO_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

enum avro_kind {
    AVRO_BOOL,
    AVRO_INT,
    AVRO_LONG,
    AVRO_DOUBLE,
    AVRO_STRING,
    AVRO_ENUM,
    AVRO_ARRAY,
    AVRO_MAP,
    AVRO_RECORD
};

struct avro_field;

struct avro_type {
    enum avro_kind kind;
    const struct avro_type *items;   // of an array's or a map's values
    const struct avro_field *fields; // of a record, in the order of the schema
    const char *const *symbols;      // of an enum
    size_t count;                    // of fields or symbols
};

struct avro_field {
    const char *name;
    const struct avro_type *type;
    bool nullable; // a union of null and the type, in this order
};

extern const struct avro_type avro_bool, avro_int, avro_long, avro_double, avro_string;

// Appends a value. In records: members that the table does not have are left out; ones that are missing or null are null, or 0, false, "" and nothing where
// null is not allowed. Errors: INVALID (a value of another type, a number out of range, a symbol that is not known).
enum ox_err avro_encode(const struct avro_type *type, const json_t *value, struct ox_str *out) OX_CHECKED;
// Reads a value; *ret is the caller's reference. Null members of records are left out. Bytes behind it are not looked at. Errors: MALFORMED.
enum ox_err avro_decode(const struct avro_type *type, const void *data, size_t len, json_t **ret) OX_CHECKED;

#endif
