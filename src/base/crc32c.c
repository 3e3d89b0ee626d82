// crc32c.c - CRC-32C: 256 bytes a step with AVX-512, three lanes of the SSE4.2 instruction, or a table; CRC-32 from zlib.
#include "base/crc32c.h"

#include <stdbool.h>
#include <zlib.h>

#include "base/bytes.h"

static const uint32_t crc32c_table[256] = {
    0x00000000u, 0xf26b8303u, 0xe13b70f7u, 0x1350f3f4u, 0xc79a971fu, 0x35f1141cu, 0x26a1e7e8u, 0xd4ca64ebu, 0x8ad958cfu,
    0x78b2dbccu, 0x6be22838u, 0x9989ab3bu, 0x4d43cfd0u, 0xbf284cd3u, 0xac78bf27u, 0x5e133c24u, 0x105ec76fu, 0xe235446cu,
    0xf165b798u, 0x030e349bu, 0xd7c45070u, 0x25afd373u, 0x36ff2087u, 0xc494a384u, 0x9a879fa0u, 0x68ec1ca3u, 0x7bbcef57u,
    0x89d76c54u, 0x5d1d08bfu, 0xaf768bbcu, 0xbc267848u, 0x4e4dfb4bu, 0x20bd8edeu, 0xd2d60dddu, 0xc186fe29u, 0x33ed7d2au,
    0xe72719c1u, 0x154c9ac2u, 0x061c6936u, 0xf477ea35u, 0xaa64d611u, 0x580f5512u, 0x4b5fa6e6u, 0xb93425e5u, 0x6dfe410eu,
    0x9f95c20du, 0x8cc531f9u, 0x7eaeb2fau, 0x30e349b1u, 0xc288cab2u, 0xd1d83946u, 0x23b3ba45u, 0xf779deaeu, 0x05125dadu,
    0x1642ae59u, 0xe4292d5au, 0xba3a117eu, 0x4851927du, 0x5b016189u, 0xa96ae28au, 0x7da08661u, 0x8fcb0562u, 0x9c9bf696u,
    0x6ef07595u, 0x417b1dbcu, 0xb3109ebfu, 0xa0406d4bu, 0x522bee48u, 0x86e18aa3u, 0x748a09a0u, 0x67dafa54u, 0x95b17957u,
    0xcba24573u, 0x39c9c670u, 0x2a993584u, 0xd8f2b687u, 0x0c38d26cu, 0xfe53516fu, 0xed03a29bu, 0x1f682198u, 0x5125dad3u,
    0xa34e59d0u, 0xb01eaa24u, 0x42752927u, 0x96bf4dccu, 0x64d4cecfu, 0x77843d3bu, 0x85efbe38u, 0xdbfc821cu, 0x2997011fu,
    0x3ac7f2ebu, 0xc8ac71e8u, 0x1c661503u, 0xee0d9600u, 0xfd5d65f4u, 0x0f36e6f7u, 0x61c69362u, 0x93ad1061u, 0x80fde395u,
    0x72966096u, 0xa65c047du, 0x5437877eu, 0x4767748au, 0xb50cf789u, 0xeb1fcbadu, 0x197448aeu, 0x0a24bb5au, 0xf84f3859u,
    0x2c855cb2u, 0xdeeedfb1u, 0xcdbe2c45u, 0x3fd5af46u, 0x7198540du, 0x83f3d70eu, 0x90a324fau, 0x62c8a7f9u, 0xb602c312u,
    0x44694011u, 0x5739b3e5u, 0xa55230e6u, 0xfb410cc2u, 0x092a8fc1u, 0x1a7a7c35u, 0xe811ff36u, 0x3cdb9bddu, 0xceb018deu,
    0xdde0eb2au, 0x2f8b6829u, 0x82f63b78u, 0x709db87bu, 0x63cd4b8fu, 0x91a6c88cu, 0x456cac67u, 0xb7072f64u, 0xa457dc90u,
    0x563c5f93u, 0x082f63b7u, 0xfa44e0b4u, 0xe9141340u, 0x1b7f9043u, 0xcfb5f4a8u, 0x3dde77abu, 0x2e8e845fu, 0xdce5075cu,
    0x92a8fc17u, 0x60c37f14u, 0x73938ce0u, 0x81f80fe3u, 0x55326b08u, 0xa759e80bu, 0xb4091bffu, 0x466298fcu, 0x1871a4d8u,
    0xea1a27dbu, 0xf94ad42fu, 0x0b21572cu, 0xdfeb33c7u, 0x2d80b0c4u, 0x3ed04330u, 0xccbbc033u, 0xa24bb5a6u, 0x502036a5u,
    0x4370c551u, 0xb11b4652u, 0x65d122b9u, 0x97baa1bau, 0x84ea524eu, 0x7681d14du, 0x2892ed69u, 0xdaf96e6au, 0xc9a99d9eu,
    0x3bc21e9du, 0xef087a76u, 0x1d63f975u, 0x0e330a81u, 0xfc588982u, 0xb21572c9u, 0x407ef1cau, 0x532e023eu, 0xa145813du,
    0x758fe5d6u, 0x87e466d5u, 0x94b49521u, 0x66df1622u, 0x38cc2a06u, 0xcaa7a905u, 0xd9f75af1u, 0x2b9cd9f2u, 0xff56bd19u,
    0x0d3d3e1au, 0x1e6dcdeeu, 0xec064eedu, 0xc38d26c4u, 0x31e6a5c7u, 0x22b65633u, 0xd0ddd530u, 0x0417b1dbu, 0xf67c32d8u,
    0xe52cc12cu, 0x1747422fu, 0x49547e0bu, 0xbb3ffd08u, 0xa86f0efcu, 0x5a048dffu, 0x8ecee914u, 0x7ca56a17u, 0x6ff599e3u,
    0x9d9e1ae0u, 0xd3d3e1abu, 0x21b862a8u, 0x32e8915cu, 0xc083125fu, 0x144976b4u, 0xe622f5b7u, 0xf5720643u, 0x07198540u,
    0x590ab964u, 0xab613a67u, 0xb831c993u, 0x4a5a4a90u, 0x9e902e7bu, 0x6cfbad78u, 0x7fab5e8cu, 0x8dc0dd8fu, 0xe330a81au,
    0x115b2b19u, 0x020bd8edu, 0xf0605beeu, 0x24aa3f05u, 0xd6c1bc06u, 0xc5914ff2u, 0x37faccf1u, 0x69e9f0d5u, 0x9b8273d6u,
    0x88d28022u, 0x7ab90321u, 0xae7367cau, 0x5c18e4c9u, 0x4f48173du, 0xbd23943eu, 0xf36e6f75u, 0x0105ec76u, 0x12551f82u,
    0xe03e9c81u, 0x34f4f86au, 0xc69f7b69u, 0xd5cf889du, 0x27a40b9eu, 0x79b737bau, 0x8bdcb4b9u, 0x988c474du, 0x6ae7c44eu,
    0xbe2da0a5u, 0x4c4623a6u, 0x5f16d052u, 0xad7d5351u,
};

static uint32_t crc32c_plain(uint32_t crc, const uint8_t *p, size_t len)
{
    while (len--)
        crc = crc >> 8 ^ crc32c_table[(crc ^ *p++) & 0xff];
    return crc;
}

// The product of two polynomials, bit-reversed, modulo the polynomial.
static uint32_t crc32c_product(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a; a <<= 1) {
        product ^= a & 0x80000000u ? b : 0;
        b = b >> 1 ^ (b & 1 ? 0x82f63b78u : 0);
    }
    return product;
}

static uint32_t crc32c_move_plain(uint32_t crc, size_t len)
{
    uint32_t power = 0x00800000u; // x^8, one byte
    for (; len; len >>= 1, power = crc32c_product(power, power))
        crc = len & 1 ? crc32c_product(crc, power) : crc;
    return crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

// Bytes of one lane; three lanes run side by side because one instruction takes three cycles to give its result.
#define CRC32C_LANE 256
// x^(8 n - 33) modulo the polynomial, bit-reversed: multiplying by it moves a checksum over n zero bytes.
#define CRC32C_OVER_1_LANE 0xb9e02b86u
#define CRC32C_OVER_2_LANES 0xdd7e3b0cu

__attribute__((target("sse4.2,pclmul"))) static uint64_t crc32c_over(uint64_t crc, uint32_t factor)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi32_si128((int)factor), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

// x^(8 * 2^k - 33) likewise: a checksum moves over any length in a step for each bit of the length.
static const uint32_t crc32c_over_power[32] = {
    0xbf818109u, 0x780d5a4du, 0x05ec76f1u, 0x00000001u, 0x493c7d27u, 0xba4fc28eu, 0x9e4addf8u, 0x0d3b6092u,
    0xb9e02b86u, 0xdd7e3b0cu, 0x170076fau, 0xa51b6135u, 0x82f89c77u, 0x54a86326u, 0x1dc403ccu, 0x5ae703abu,
    0xc5013a36u, 0xac2ac6ddu, 0x9b4615a9u, 0x688d1c61u, 0xf6af14e6u, 0xb6ffe386u, 0xb717425bu, 0x478b0d30u,
    0x54cc62e5u, 0x7b2102eeu, 0x8a99adefu, 0xa7568c8fu, 0xd610d67eu, 0x6b086b3fu, 0xd94f3c0bu, 0xbf818109u,
};

// x^(8 n - 33) likewise for each n below 256 (of 0 nothing is used): the low byte of a length is one step.
static const uint32_t crc32c_over_bytes[256] = {
    0x00000000u, 0xbf818109u, 0x780d5a4du, 0xfe2b5c35u, 0x05ec76f1u, 0x01000000u, 0x00010000u, 0x00000100u, 0x00000001u,
    0xf26b8303u, 0x13a29877u, 0xa541927eu, 0xdd45aab8u, 0x38116facu, 0xef306b19u, 0x68032cc8u, 0x493c7d27u, 0xf43ed648u,
    0xcb567ba5u, 0x9771f7c1u, 0x3171d430u, 0x30d23865u, 0x54075546u, 0x678efd01u, 0xf20c0dfeu, 0x5fe4dc5fu, 0x0f69022bu,
    0xb93b4ce7u, 0x3743f7bdu, 0x0d0a7dedu, 0x5c15eeb4u, 0x75d3f038u, 0xba4fc28eu, 0x2e34cb9du, 0x2dae840fu, 0x5e3e92a0u,
    0xa2158b34u, 0xf7dbcb25u, 0x15bb4109u, 0x78a7608du, 0x3da6d0cbu, 0x5a392b2fu, 0x7ef48bd1u, 0x21c69623u, 0x33ccbbbcu,
    0xff6571a2u, 0x438fa020u, 0x20fe017eu, 0xddc0152bu, 0xb9e9e5f0u, 0xf3d78690u, 0x925b2b91u, 0x6051243fu, 0x6e9024b1u,
    0x401061eeu, 0x4f08075cu, 0x1c291d04u, 0xc786be02u, 0xe1fcf649u, 0x39283a86u, 0xa46ef4aau, 0xc90df36au, 0x0aedb6a9u,
    0xdaf383dcu, 0x9e4addf8u, 0x79297d67u, 0xb575def4u, 0x34418db4u, 0x75bba45bu, 0xc8d9ca4cu, 0x0cf00ba6u, 0x84e6a245u,
    0x740eef02u, 0xe14f7e18u, 0x9a66d0deu, 0x7f31385cu, 0x1c19243bu, 0xa976fbaeu, 0x0e9a7c7au, 0x1a74e649u, 0x39d3b296u,
    0xb430c84du, 0xfee761a7u, 0x767f362cu, 0x6d883e38u, 0xba579940u, 0x41c14a25u, 0x150d5b88u, 0x083a6eecu, 0xae7b5da4u,
    0x657f59e4u, 0x24cf405cu, 0x1c42da43u, 0x5237ac92u, 0x73c1bb4cu, 0x0c4b13d7u, 0x0715ce53u, 0x42723ce9u, 0x9bc001eau,
    0x88494023u, 0x3365346au, 0x0a17de6eu, 0xcdb43b9bu, 0x0bece317u, 0xc49f4f67u, 0xb5c868c6u, 0xe5990944u, 0x860413aau,
    0xc92f998du, 0x3d175832u, 0xd1e52e1eu, 0xbcf79d66u, 0x47db8317u, 0xc4d37807u, 0xd40eb793u, 0x812c0154u, 0x963e61cdu,
    0x7c335476u, 0x574580b1u, 0x4029b44au, 0x2ad91c30u, 0x30c990adu, 0x1d5330e5u, 0xd6dcef36u, 0x169472b6u, 0x94a20153u,
    0x42e18b26u, 0x065e88bdu, 0x0d3b6092u, 0x739eb780u, 0x8285a5cfu, 0x9d1c9f45u, 0x7417153fu, 0x6e846280u, 0x8298bf1au,
    0x7b3e77e8u, 0x6992cea2u, 0x4319579fu, 0xccf8d964u, 0xa690fca4u, 0x6577b245u, 0x74ef7e12u, 0xf11158e6u, 0xc5605eaau,
    0xc96cfdc0u, 0xc3444a39u, 0x4892d637u, 0xe461bf8cu, 0xcf519517u, 0xc45bf211u, 0xe2f11f9eu, 0x3e32b22fu, 0x7e908048u,
    0xcbdcd5f3u, 0xe0f54054u, 0x965fb88cu, 0xcf23ab10u, 0x1091e4c4u, 0x0407203fu, 0x6ef472b5u, 0x878a92a7u, 0x76065bdfu,
    0x8db6dbd4u, 0x14c4c06fu, 0x3fc16b86u, 0xa4681dfbu, 0x6a43ac53u, 0x421f6a8bu, 0x1b3d8f29u, 0x5814689du, 0x2dd8a4acu,
    0xef25a2d2u, 0x3207b4feu, 0x5f24d7e6u, 0xc5ce6b25u, 0x158954a9u, 0xdaece73eu, 0x9c411a71u, 0x836f9614u, 0xd7473fe6u,
    0xc54608cdu, 0x7c602c1fu, 0x4e319b67u, 0xb542c612u, 0xf1d0f55eu, 0xfdacb501u, 0xf2962fb6u, 0x9446030eu, 0xacecf924u,
    0xe78bf538u, 0xbadd9a8bu, 0x1bc54dd9u, 0xab7aff2au, 0x4bf4dc19u, 0x68a7e87fu, 0x2fe3cfc1u, 0x31c94608u, 0x8ae89189u,
    0xface0825u, 0x15b654cau, 0xa87ab8a8u, 0x283a97d1u, 0x2190583fu, 0x6ed1e5cdu, 0x7ccbbbf2u, 0x1229d439u, 0x4843bba9u,
    0xdab12dd1u, 0x2162d385u, 0xb7264db7u, 0x6668306fu, 0x3fb3c776u, 0x57060022u, 0xc1d1f829u, 0x58ce84eau, 0x888a4ea6u,
    0x8462d800u, 0x008462d8u, 0x590a3d06u, 0x26f8edd5u, 0xe6040d5au, 0x3a21f6e6u, 0xc5ab6e04u, 0xc75f3c71u, 0x83348832u,
    0xd15b0dceu, 0x6f24c2eeu, 0x4f2733ffu, 0xad327462u, 0x8050d1e1u, 0x11db7bc8u, 0x4945a570u, 0x71d111a8u, 0x28e33c78u,
    0xfb69effeu, 0x5fedb9bdu, 0x0d62d3a3u, 0xb1162481u, 0x702cae5fu, 0x0f46ca59u, 0x299847d5u, 0xe60b6df0u, 0xf3886418u,
    0x9a7417c4u, 0x048dc5ccu, 0x8eca64d1u, 0x2136a8ccu, 0x8eefdfbcu, 0xffd852c6u, 0xe5d3197eu, 0xdd053833u, 0x236ebf7du,
    0xce937661u, 0x93638317u, 0xc407c007u, 0xd40e632bu,
};

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc32c_move(uint32_t crc, size_t len)
{
    uint64_t moved = crc;
    if (len & 0xff)
        moved = crc32c_over(moved, crc32c_over_bytes[len & 0xff]);
    for (size_t rest = len & ~(size_t)0xff; rest; rest &= rest - 1)
        moved = crc32c_over(moved, crc32c_over_power[__builtin_ctzll(rest)]);
    return (uint32_t)moved;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t crc32c_lanes(uint64_t crc, const uint8_t *p)
{
    uint64_t b = 0, c = 0;
    for (size_t i = 0; i < CRC32C_LANE; i += 8) {
        crc = _mm_crc32_u64(crc, ox_get_le64(p + i));
        b = _mm_crc32_u64(b, ox_get_le64(p + CRC32C_LANE + i));
        c = _mm_crc32_u64(c, ox_get_le64(p + 2 * CRC32C_LANE + i));
    }
    return crc32c_over(crc, CRC32C_OVER_2_LANES) ^ crc32c_over(b, CRC32C_OVER_1_LANE) ^ c;
}

__attribute__((target("sse4.2"))) static uint32_t crc32c_rest(uint64_t crc, const uint8_t *p, size_t len)
{
    for (; len >= 8; p += 8, len -= 8)
        crc = _mm_crc32_u64(crc, ox_get_le64(p));
    if (len & 4) {
        crc = _mm_crc32_u32((uint32_t)crc, ox_get_le32(p));
        p += 4;
    }
    for (len &= 3; len; p++, len--)
        crc = _mm_crc32_u8((uint32_t)crc, *p);
    return (uint32_t)crc;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc32c_fast(uint32_t start, const uint8_t *p, size_t len)
{
    uint64_t crc = start;
    for (; len >= 3 * CRC32C_LANE; p += 3 * CRC32C_LANE, len -= 3 * CRC32C_LANE)
        crc = crc32c_lanes(crc, p);
    return crc32c_rest(crc, p, len);
}

// With AVX-512: a carry-less product moves 16 bytes over D bytes of message; four such blocks fit in a register, and four registers hide its latency.
// The constants are x^(8 D + 63) for a block's first half and x^(8 D - 1) for its second, bit-reversed, in the upper half of 64 bits.
#define CRC32C_WIDE_TARGET __attribute__((target("avx512f,avx512dq,vpclmulqdq,pclmul,sse4.2")))
#define CRC32C_WIDE_BYTES 256u // a step

CRC32C_WIDE_TARGET static inline __m512i wide_over(__m512i x, __m512i factors)
{
    return _mm512_xor_si512(_mm512_clmulepi64_epi128(x, factors, 0x00), _mm512_clmulepi64_epi128(x, factors, 0x11));
}

CRC32C_WIDE_TARGET static inline __m512i wide_load(const uint8_t *p)
{
    return _mm512_loadu_si512((const void *)p);
}

CRC32C_WIDE_TARGET static inline __m512i wide_factors(uint64_t first, uint64_t second)
{
    return _mm512_broadcast_i32x4(_mm_set_epi64x((long long)second, (long long)first));
}

// The checksum of 64 bytes whose four blocks stand for themselves.
CRC32C_WIDE_TARGET static uint64_t wide_fold(__m512i x)
{
    const __m512i factors = _mm512_set_epi64(0, 0, 0x3171d43000000000, 0x3743f7bd00000000, (long long)0xa2158b3400000000u,
                                             0x33ccbbbc00000000, 0x6051243f00000000, (long long)0xa46ef4aa00000000u);
    __m512i moved = wide_over(x, factors); // over 48, 32 and 16 bytes; the last block stays where it is
    __m128i block = _mm_xor_si128(_mm512_castsi512_si128(moved), _mm512_extracti32x4_epi32(moved, 1));
    block = _mm_xor_si128(block, _mm512_extracti32x4_epi32(moved, 2));
    block = _mm_xor_si128(block, _mm512_extracti32x4_epi32(x, 3));
    uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(block));
    return _mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(block, 1));
}

CRC32C_WIDE_TARGET static uint32_t crc32c_wide(uint32_t start, const uint8_t *p, size_t len)
{
    const __m512i over_256 = wide_factors(0xe9a5d8be00000000u, 0x1426a81500000000u);
    const __m512i over_64 = wide_factors(0x1c19243b00000000u, 0x75bba45b00000000u);
    __m512i a = _mm512_xor_si512(wide_load(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)start)));
    __m512i b = wide_load(p + 64), c = wide_load(p + 128), d = wide_load(p + 192);
    for (p += CRC32C_WIDE_BYTES, len -= CRC32C_WIDE_BYTES; len >= CRC32C_WIDE_BYTES; len -= CRC32C_WIDE_BYTES) {
        a = _mm512_xor_si512(wide_over(a, over_256), wide_load(p));
        b = _mm512_xor_si512(wide_over(b, over_256), wide_load(p + 64));
        c = _mm512_xor_si512(wide_over(c, over_256), wide_load(p + 128));
        d = _mm512_xor_si512(wide_over(d, over_256), wide_load(p + 192));
        p += CRC32C_WIDE_BYTES;
    }
    b = _mm512_xor_si512(b, wide_over(a, over_64));
    c = _mm512_xor_si512(c, wide_over(b, over_64));
    d = _mm512_xor_si512(d, wide_over(c, over_64));
    for (; len >= 64; p += 64, len -= 64)
        d = _mm512_xor_si512(wide_over(d, over_64), wide_load(p));
    return crc32c_rest(wide_fold(d), p, len);
}

static bool crc32c_has_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("vpclmulqdq");
}

static int crc32c_has_fast(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
#else
#define CRC32C_WIDE_BYTES SIZE_MAX

static uint32_t crc32c_fast(uint32_t start, const uint8_t *p, size_t len)
{
    return crc32c_plain(start, p, len);
}

static uint32_t crc32c_wide(uint32_t start, const uint8_t *p, size_t len)
{
    return crc32c_plain(start, p, len);
}

static bool crc32c_has_wide(void)
{
    return false;
}

static uint32_t crc32c_move(uint32_t crc, size_t len)
{
    return crc32c_move_plain(crc, len);
}

static int crc32c_has_fast(void)
{
    return 0;
}
#endif

uint32_t ox_crc32c(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *p = (const uint8_t *)data;
    if (!crc32c_has_fast())
        return ~crc32c_plain(~crc, p, len);
    return ~(len >= CRC32C_WIDE_BYTES && crc32c_has_wide() ? crc32c_wide(~crc, p, len) : crc32c_fast(~crc, p, len));
}

uint32_t ox_crc32c_join(uint32_t a, uint32_t b, size_t b_len)
{
    bool fast = crc32c_has_fast() && b_len <= UINT32_MAX;
    return (fast ? crc32c_move(a, b_len) : crc32c_move_plain(a, b_len)) ^ b;
}

uint32_t ox_crc32c_join_portable(uint32_t a, uint32_t b, size_t b_len)
{
    return crc32c_move_plain(a, b_len) ^ b;
}

uint32_t ox_crc32c_portable(uint32_t crc, const void *data, size_t len)
{
    return ~crc32c_plain(~crc, (const uint8_t *)data, len);
}

uint32_t ox_crc32(uint32_t crc, const void *data, size_t len)
{
    return (uint32_t)crc32_z(crc, (const Bytef *)data, len);
}
