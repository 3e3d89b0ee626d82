// avro.c - encoding and decoding by tables.
#include "broker/avro.h"

#include <string.h>

#include "base/mem.h"
#include "base/varint.h"

const struct avro_type avro_bool = {.kind = AVRO_BOOL};
const struct avro_type avro_int = {.kind = AVRO_INT};
const struct avro_type avro_long = {.kind = AVRO_LONG};
const struct avro_type avro_double = {.kind = AVRO_DOUBLE};
const struct avro_type avro_string = {.kind = AVRO_STRING};

// ---- encoding

static void put_long(struct ox_str *out, int64_t v)
{
    uint8_t bytes[OX_VARINT_BYTES_MAX];
    uint64_t zigzag = ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
    ox_str_add(out, bytes, ox_varint_put(bytes, zigzag));
}

static void put_text(struct ox_str *out, const char *text, size_t len)
{
    put_long(out, (int64_t)len);
    ox_str_add(out, text, len);
}

static enum ox_err put_integer(const json_t *value, int64_t min, int64_t max, struct ox_str *out)
{
    int64_t v = json_integer_value(value);
    if ((value && !json_is_integer(value)) || v < min || v > max)
        return OX_E_INVALID;
    put_long(out, v);
    return OX_OK;
}

static enum ox_err put_bool(const json_t *value, struct ox_str *out)
{
    if (value && !json_is_boolean(value))
        return OX_E_INVALID;
    ox_str_add(out, json_is_true(value) ? "\1" : "\0", 1);
    return OX_OK;
}

static enum ox_err put_double(const json_t *value, struct ox_str *out)
{
    if (value && !json_is_number(value))
        return OX_E_INVALID;
    double v = json_number_value(value);
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &v, sizeof bits);
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> (8 * i));
    ox_str_add(out, bytes, sizeof bytes);
    return OX_OK;
}

static enum ox_err put_string(const json_t *value, struct ox_str *out)
{
    if (value && !json_is_string(value))
        return OX_E_INVALID;
    put_text(out, value ? json_string_value(value) : "", json_string_length(value));
    return OX_OK;
}

static enum ox_err put_enum(const struct avro_type *type, const json_t *value, struct ox_str *out)
{
    const char *name = json_string_value(value);
    for (size_t i = 0; name && i < type->count; i++) {
        if (strcmp(type->symbols[i], name) == 0) {
            put_long(out, (int64_t)i);
            return OX_OK;
        }
    }
    return OX_E_INVALID;
}

static enum ox_err put_array(const struct avro_type *type, const json_t *value, struct ox_str *out)
{
    if (value && !json_is_array(value))
        return OX_E_INVALID;
    enum ox_err err = OX_OK;
    if (json_array_size(value))
        put_long(out, (int64_t)json_array_size(value));
    for (size_t i = 0; i < json_array_size(value) && !err; i++)
        err = avro_encode(type->items, json_array_get(value, i), out);
    put_long(out, 0);
    return err;
}

static enum ox_err put_map(const struct avro_type *type, const json_t *value, struct ox_str *out)
{
    if (value && !json_is_object(value))
        return OX_E_INVALID;
    const char *key;
    json_t *item;
    enum ox_err err = OX_OK;
    if (json_object_size(value))
        put_long(out, (int64_t)json_object_size(value));
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        put_text(out, key, strlen(key));
        if (!err)
            err = avro_encode(type->items, item, out);
    }
    put_long(out, 0);
    return err;
}

static enum ox_err put_record(const struct avro_type *type, const json_t *value, struct ox_str *out)
{
    if (value && !json_is_object(value))
        return OX_E_INVALID;
    enum ox_err err = OX_OK;
    for (size_t i = 0; i < type->count && !err; i++) {
        const struct avro_field *f = &type->fields[i];
        const json_t *member = json_object_get(value, f->name);
        if (json_is_null(member))
            member = NULL;
        if (f->nullable)
            put_long(out, member != NULL);
        if (member || !f->nullable)
            err = avro_encode(f->type, member, out);
    }
    return err;
}

enum ox_err avro_encode(const struct avro_type *type, const json_t *value, struct ox_str *out)
{
    switch (type->kind) {
    case AVRO_BOOL: return put_bool(value, out);
    case AVRO_INT: return put_integer(value, INT32_MIN, INT32_MAX, out);
    case AVRO_LONG: return put_integer(value, INT64_MIN, INT64_MAX, out);
    case AVRO_DOUBLE: return put_double(value, out);
    case AVRO_STRING: return put_string(value, out);
    case AVRO_ENUM: return put_enum(type, value, out);
    case AVRO_ARRAY: return put_array(type, value, out);
    case AVRO_MAP: return put_map(type, value, out);
    case AVRO_RECORD: return put_record(type, value, out);
    }
    return OX_E_INVALID;
}

// ---- decoding

struct reader {
    const uint8_t *at, *end;
    bool bad; // ran out of bytes, or what is there makes no sense
};

static json_t *take_value(struct reader *r, const struct avro_type *type);

static int64_t take_long(struct reader *r)
{
    uint64_t v = 0;
    size_t n = ox_varint_get(r->at, r->end, &v);
    r->bad |= n == 0;
    r->at += n;
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

// The start of that many bytes, or NULL.
static const uint8_t *take_bytes(struct reader *r, int64_t len)
{
    const uint8_t *at = r->at;
    r->bad |= len < 0 || len > r->end - at;
    if (r->bad)
        return NULL;
    r->at += len;
    return at;
}

// Blocks of items; a negative count is followed by the block's size. Nothing is allocated ahead of the bytes that are there.
static int64_t take_block(struct reader *r)
{
    int64_t count = take_long(r);
    if (count < 0) {
        (void)take_long(r);
        r->bad |= count == INT64_MIN;
        count = r->bad ? 0 : -count;
    }
    r->bad |= count > r->end - r->at;
    return r->bad ? 0 : count;
}

static json_t *take_text(struct reader *r)
{
    int64_t len = take_long(r);
    const uint8_t *bytes = take_bytes(r, len);
    json_t *text = bytes ? json_stringn((const char *)bytes, (size_t)len) : NULL;
    r->bad |= text == NULL;
    return text;
}

static json_t *take_double(struct reader *r)
{
    const uint8_t *bytes = take_bytes(r, 8);
    uint64_t bits = 0;
    double v;
    for (unsigned i = 0; bytes && i < 8; i++)
        bits |= (uint64_t)bytes[i] << (8 * i);
    memcpy(&v, &bits, sizeof v);
    json_t *number = json_real(v); // none for what JSON cannot say
    r->bad |= number == NULL;
    return number;
}

static json_t *take_enum(struct reader *r, const struct avro_type *type)
{
    int64_t i = take_long(r);
    r->bad |= i < 0 || i >= (int64_t)type->count;
    return r->bad ? NULL : json_string(type->symbols[i]);
}

static json_t *take_array(struct reader *r, const struct avro_type *type)
{
    json_t *array = json_array();
    for (int64_t n = take_block(r); n > 0 && !r->bad; n = take_block(r))
        for (; n > 0 && !r->bad; n--)
            json_array_append_new(array, take_value(r, type->items));
    return array;
}

static json_t *take_map(struct reader *r, const struct avro_type *type)
{
    json_t *map = json_object();
    for (int64_t n = take_block(r); n > 0 && !r->bad; n = take_block(r)) {
        for (; n > 0 && !r->bad; n--) {
            json_t *key = take_text(r);
            if (key)
                json_object_set_new(map, json_string_value(key), take_value(r, type->items));
            json_decref(key);
        }
    }
    return map;
}

static json_t *take_record(struct reader *r, const struct avro_type *type)
{
    json_t *record = json_object();
    for (size_t i = 0; i < type->count && !r->bad; i++) {
        const struct avro_field *f = &type->fields[i];
        int64_t branch = f->nullable ? take_long(r) : 1;
        r->bad |= branch != 0 && branch != 1;
        if (branch == 1 && !r->bad)
            json_object_set_new(record, f->name, take_value(r, f->type));
    }
    return record;
}

static json_t *take_value(struct reader *r, const struct avro_type *type)
{
    switch (type->kind) {
    case AVRO_BOOL: {
        const uint8_t *byte = take_bytes(r, 1);
        return json_boolean(byte && *byte);
    }
    case AVRO_INT:
    case AVRO_LONG: return json_integer(take_long(r));
    case AVRO_DOUBLE: return take_double(r);
    case AVRO_STRING: return take_text(r);
    case AVRO_ENUM: return take_enum(r, type);
    case AVRO_ARRAY: return take_array(r, type);
    case AVRO_MAP: return take_map(r, type);
    case AVRO_RECORD: return take_record(r, type);
    }
    return NULL;
}

enum ox_err avro_decode(const struct avro_type *type, const void *data, size_t len, json_t **ret)
{
    struct reader r = {.at = data, .end = (const uint8_t *)data + len};
    json_t *value = take_value(&r, type);
    if (r.bad || !value) {
        json_decref(value);
        return OX_E_MALFORMED;
    }
    *ret = value;
    return OX_OK;
}
