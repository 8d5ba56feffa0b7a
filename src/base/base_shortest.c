/* base_shortest.c - the shortest decimal that reads back as the same float, in integer arithmetic only. It uses the
 * method of R. Giulietti, "The Schubfach way to render doubles" (2021), in the variant for 32 bits. */
#include "base/base.h"

enum { POWER_MIN = -31, POWER_MAX = 45, BIAS = 150, HIDDEN = 1 << 23 };

/* 10^k for k from POWER_MIN on, as 64-bit significands rounded up. */
static const uint64_t powers[POWER_MAX - POWER_MIN + 1] = {
    /* clang-format off: a table */
    0x81ceb32c4b43fcf5, 0xa2425ff75e14fc32, 0xcad2f7f5359a3b3f, 0xfd87b5f28300ca0e, 0x9e74d1b791e07e49,
    0xc612062576589ddb, 0xf79687aed3eec552, 0x9abe14cd44753b53, 0xc16d9a0095928a28, 0xf1c90080baf72cb2,
    0x971da05074da7bef, 0xbce5086492111aeb, 0xec1e4a7db69561a6, 0x9392ee8e921d5d08, 0xb877aa3236a4b44a,
    0xe69594bec44de15c, 0x901d7cf73ab0acda, 0xb424dc35095cd810, 0xe12e13424bb40e14, 0x8cbccc096f5088cc,
    0xafebff0bcb24aaff, 0xdbe6fecebdedd5bf, 0x89705f4136b4a598, 0xabcc77118461cefd, 0xd6bf94d5e57a42bd,
    0x8637bd05af6c69b6, 0xa7c5ac471b478424, 0xd1b71758e219652c, 0x83126e978d4fdf3c, 0xa3d70a3d70a3d70b,
    0xcccccccccccccccd, 0x8000000000000000, 0xa000000000000000, 0xc800000000000000, 0xfa00000000000000,
    0x9c40000000000000, 0xc350000000000000, 0xf424000000000000, 0x9896800000000000, 0xbebc200000000000,
    0xee6b280000000000, 0x9502f90000000000, 0xba43b74000000000, 0xe8d4a51000000000, 0x9184e72a00000000,
    0xb5e620f480000000, 0xe35fa931a0000000, 0x8e1bc9bf04000000, 0xb1a2bc2ec5000000, 0xde0b6b3a76400000,
    0x8ac7230489e80000, 0xad78ebc5ac620000, 0xd8d726b7177a8000, 0x878678326eac9000, 0xa968163f0a57b400,
    0xd3c21bcecceda100, 0x84595161401484a0, 0xa56fa5b99019a5c8, 0xcecb8f27f4200f3a, 0x813f3978f8940985,
    0xa18f07d736b90be6, 0xc9f2c9cd04674edf, 0xfc6f7c4045812297, 0x9dc5ada82b70b59e, 0xc5371912364ce306,
    0xf684df56c3e01bc7, 0x9a130b963a6c115d, 0xc097ce7bc90715b4, 0xf0bdc21abb48db21, 0x96769950b50d88f5,
    0xbc143fa4e250eb32, 0xeb194f8e1ae525fe, 0x92efd1b8d0cf37bf, 0xb7abc627050305ae, 0xe596b7b0c643c71a,
    0x8f7e32ce7bea5c70, 0xb35dbf821ae4f38c,
    /* clang-format on */
};

/* The high part of the product; its last bit is set if bits were cut off. */
static uint32_t product(uint64_t power, uint32_t factor)
{
    uint64_t low = (power & 0xffffffffu) * factor, high = (power >> 32) * factor + (low >> 32);
    return (uint32_t)(high >> 32) | ((uint32_t)high > 1);
}

/* floor(log2(10^e)) */
static int log2_of_power(int e)
{
    return (e * 1741647) >> 19;
}

uint32_t onxi_shortest_f32(uint32_t bits, int *exponent)
{
    uint32_t fraction = bits & (HIDDEN - 1), biased = bits >> 23 & 0xffu;
    uint32_t c = biased ? HIDDEN | fraction : fraction;
    int q = (int)(biased ? biased : 1) - BIAS;
    if (q <= 0 && q > -24 && (c & ((1u << -q) - 1)) == 0) { /* an integer */
        *exponent = 0;
        return c >> -q;
    }
    /* Four times the value and the midpoints to its neighbours, scaled by a power of ten to a few digits more than
     * needed. */
    uint32_t odd = c & 1, closer = fraction == 0 && biased > 1;
    int k = (q * 1262611 - (closer ? 524031 : 0)) >> 22;
    int h = q + log2_of_power(-k) + 1;
    uint64_t power = powers[-k - POWER_MIN];
    uint32_t lower = product(power, (4 * c - 2 + closer) << h) + odd;
    uint32_t value = product(power, (4 * c) << h);
    uint32_t upper = product(power, (4 * c + 2) << h) - odd;
    uint32_t s = value / 4;
    if (s >= 10) {
        uint32_t tens = s / 10;
        bool below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
        if (below != above) {
            *exponent = k + 1;
            return tens + above;
        }
    }
    *exponent = k;
    bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    if (below != above)
        return s + above;
    uint32_t middle = 4 * s + 2;
    return s + (value > middle || (value == middle && (s & 1)));
}
