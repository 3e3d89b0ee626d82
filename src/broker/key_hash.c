// key_hash.c - murmur3 over the parts of a key, without a copy of it.
#include "broker/key_hash.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

struct murmur {
    uint32_t hash;
    uint8_t tail[4]; // bytes that do not fill a block yet
    size_t tail_len;
    size_t len; // in all
};

static uint32_t rotate_left(uint32_t v, int bits)
{
    return v << bits | v >> (32 - bits);
}

static uint32_t murmur_scramble(uint32_t block)
{
    return rotate_left(block * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static void murmur_block(struct murmur *m, uint32_t block)
{
    m->hash = rotate_left(m->hash ^ murmur_scramble(block), 13) * 5 + 0xe6546b64u;
}

static void murmur_add(struct murmur *m, const void *data, size_t len)
{
    const uint8_t *p = (const uint8_t *)data;
    m->len += len;
    while (len) {
        if (m->tail_len == 0 && len >= 4) {
            murmur_block(m, ox_get_le32(p));
            p += 4;
            len -= 4;
            continue;
        }
        m->tail[m->tail_len++] = *p++;
        len--;
        if (m->tail_len == 4) {
            murmur_block(m, ox_get_le32(m->tail));
            m->tail_len = 0;
        }
    }
}

static uint32_t murmur_end(struct murmur *m)
{
    memset(m->tail + m->tail_len, 0, sizeof m->tail - m->tail_len);
    uint32_t h = m->hash ^ murmur_scramble(ox_get_le32(m->tail)) ^ (uint32_t)m->len;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

uint32_t ox_murmur3(const void *data, size_t len, uint32_t seed)
{
    struct murmur m = {.hash = seed};
    murmur_add(&m, data, len);
    return murmur_end(&m);
}

// ---- base64 (RFC 4648, padding optional)

static int base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// The length without padding; SIZE_MAX if it is wrong.
static size_t base64_trim(const struct ox_span *s)
{
    size_t len = s->len;
    while (len && s->len - len < 2 && s->data[len - 1] == '=')
        len--;
    bool is_wrong = len % 4 == 1 || (len != s->len && s->len % 4 != 0);
    return is_wrong ? SIZE_MAX : len;
}

// Adds the bytes that the text stands for; false if it is not base64.
static bool murmur_add_base64(struct murmur *m, const struct ox_span *s)
{
    size_t len = base64_trim(s);
    uint32_t bits = 0;
    int count = 0;
    if (len == SIZE_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        int digit = base64_digit(s->data[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            murmur_add(m, &(uint8_t){(uint8_t)(bits >> count)}, 1);
        }
    }
    return true;
}

// ---- the key

static uint32_t sticky(uint32_t hash)
{
    hash = (hash & 0x7fffffffu) % OX_KEY_HASHES;
    return hash ? hash : 1;
}

static uint32_t partition_key_hash(const struct ox_message_meta *meta)
{
    struct murmur m = {0};
    if (!meta->is_key_base64)
        murmur_add(&m, meta->partition_key.data, meta->partition_key.len);
    else if (!murmur_add_base64(&m, &meta->partition_key))
        return sticky(ox_murmur3("NONE_KEY", 8, 0));
    return sticky(murmur_end(&m));
}

uint32_t ox_key_hash(const struct ox_message_meta *meta)
{
    struct murmur m = {0};
    char number[24];
    if (meta->ordering_key.data)
        return sticky(ox_murmur3(meta->ordering_key.data, meta->ordering_key.len, 0));
    if (meta->partition_key.data)
        return partition_key_hash(meta);
    int len = snprintf(number, sizeof number, "-%lld", (long long)meta->sequence_id);
    murmur_add(&m, meta->producer_name.data, meta->producer_name.len);
    murmur_add(&m, number, (size_t)len);
    return sticky(murmur_end(&m));
}
