"""Elementary functions in C, from float arithmetic alone: no math.h, and nothing that is undefined for any input.

They are those of `slimrnn.exporting.int8.exact`, operation by operation, so that an int8 layer has the same bits in C.
@ stands for the prefix of the file, and $ for a constant of that module.
"""

from __future__ import annotations

import re

from slimrnn.exporting.int8 import exact

FROM_BITS = """\
static float @from_bits(uint32_t bits)
{
    union { uint32_t whole; float real; } both;
    both.whole = bits;
    return both.real;
}
"""

TO_BITS = """\
static uint32_t @to_bits(float x)
{
    union { uint32_t whole; float real; } both;
    both.real = x;
    return both.whole;
}
"""

WITHIN = """\
static float @within(float low, float x, float high)
{
    x = x > high ? high : x;
    return x < low ? low : x;
}
"""

POWER_OF_TWO = """\
/* 2^k of k + $MAGIC, by its bits */
static float @power_of_two(float shifted)
{
    return @from_bits((@to_bits(shifted) << 23) + 0x3f800000u);
}
"""

SPLIT_EXP = """\
/* e^x = 2^k (1 + p), with the power as @power_of_two takes it */
static float @split_exp(float x, float *power)
{
    const float t = x * $LOG2_E + $MAGIC;
    const float k = t - $MAGIC;
    const float r = x - k * $LN2_HIGH - k * $LN2_LOW;
    const float r2 = r * r;
    float q = r2 * $EXP_4 + (r * $EXP_3 + $EXP_2);
    q = r2 * q + (r * $EXP_1 + $EXP_0);
    *power = t;
    return r + r2 * q;
}
"""

SIGMOID = """\
static float @sigmoid(float x)
{
    float power;
    const float p = @split_exp(-@within($SIGMOID_LOW, x, $SIGMOID_HIGH), &power);
    return 1.0f / ((p + 1.0f) * @power_of_two(power) + 1.0f);
}
"""

TANH = """\
static float @tanh(float x)
{
    float power;
    const float p = @split_exp(2.0f * @within($TANH_LOW, x, $TANH_HIGH), &power);
    const float scale = @power_of_two(power);
    const float m = scale * p + (scale - 1.0f);
    return m / (m + 2.0f);
}
"""

EXP = """\
static float @exp(float x)
{
    float power;
    const float p = @split_exp(@within($EXP_BOTTOM, x, $EXP_TOP), &power);
    const float k = power - $MAGIC;
    const float half = k * 0.5f + $MAGIC;
    return (p + 1.0f) * @power_of_two(half) * @power_of_two(k - (half - $MAGIC) + $MAGIC);
}
"""

SPLIT_LOG = """\
/* x = 2^k (1 + f), for positive normal x */
static float @split_log(float x, float *f)
{
    const uint32_t bits = @to_bits(x);
    const uint32_t k = (bits + ($ONE_BITS - $ROOT_HALF_BITS)) >> 23;
    *f = @from_bits(bits - ((k - 127u) << 23)) - 1.0f;
    return (float)k - 127.0f;
}
"""

JOIN_LOG = """\
/* k ln 2 + log(1 + f) + more */
static float @join_log(float k, float f, float more)
{
    const float s = f / (f + 2.0f);
    const float z = s * s;
    const float half = 0.5f * f * f;
    float q = z * $LOG_3 + $LOG_2;
    float low;
    q = q * z + $LOG_1;
    q = q * z + $LOG_0;
    low = s * (half + q * z) + (k * $LOG_LN2_LOW + more);
    return k * $LOG_LN2_HIGH - ((half - low) - f);
}
"""

LOG = """\
static float @log(float x)
{
    const int is_small = x < $LEAST_NORMAL;
    float f;
    const float k = @split_log(is_small ? x * $FAR : x, &f) - (is_small ? $FAR_DIGITS : 0.0f);
    const float y = @join_log(k, f, 0.0f);
    if (x == 0.0f) {
        return @from_bits(0xff800000u);
    }
    if (x < 0.0f) {
        return @from_bits(0x7fc00000u);
    }
    return x < @from_bits(0x7f800000u) ? y : x;
}
"""

SOFTPLUS = """\
static float @softplus(float x)
{
    const float most = x < 0.0f ? 0.0f : x;
    const float small = @exp(-@magnitude(x));
    const float u = small + 1.0f;
    const float lost = small - (u - 1.0f);
    float f;
    const float k = @split_log(u, &f);
    return most + @join_log(k, f, lost / u);
}
"""

# An even exponent is taken off, and what is left, m from 2^46 to 2^48, has a root of 24 binary digits, whose square is
# compared with it. So the result is the nearest float, as IEEE 754 asks of a square root.
SQRT = """\
static float @sqrt(float x)
{
    uint32_t bits, root;
    uint64_t m;
    int32_t e = 0;
    if (!(x > 0.0f)) {
        return x == 0.0f ? x : @from_bits(0x7fc00000u);
    }
    if (x > 3.402823466e+38f) {
        return x;
    }
    if (x < $LEAST_NORMAL) {
        x = x * 16777216.0f;
        e = -24;
    }
    bits = @to_bits(x);
    e += (int32_t)(bits >> 23) - 127;
    m = (uint64_t)((bits & 0x007fffffu) | 0x00800000u) << 23;
    if (e & 1) {
        m = m << 1;
        e = e - 1;
    }
    root = 0;
    for (uint32_t digit = 0x00800000u; digit != 0; digit >>= 1) {
        const uint64_t more = root | digit;
        if (more * more <= m) {
            root |= digit;
        }
    }
    root += m - (uint64_t)root * root > root;
    return @from_bits(((uint32_t)(e / 2 + 126) << 23) + root);
}
"""

MODULUS = """\
static float @modulus(float re, float im)
{
    const float a = @magnitude(re), b = @magnitude(im);
    const float larger = a > b ? a : b, smaller = a > b ? b : a;
    const float ratio = larger > 0.0f ? smaller / larger : 0.0f;
    if (!(re == re) || !(im == im)) {
        return re + im;
    }
    if (larger > 3.402823466e+38f) {
        return larger;
    }
    return larger * @sqrt(1.0f + ratio * ratio);
}
"""

MAGNITUDE = """\
static float @magnitude(float x)
{
    return @from_bits(@to_bits(x) & 0x7fffffffu);
}
"""

RELU = """\
static float @relu(float x)
{
    return x < 0.0f ? 0.0f : x;
}
"""

SIGN = """\
static float @sign(float x)
{
    return x < 0.0f ? -1.0f : x > 0.0f ? 1.0f : 0.0f;
}
"""

MAXIMUM = """\
static float @maximum(float a, float b)
{
    return a > b || !(a == a) ? a : b;
}
"""

MINIMUM = """\
static float @minimum(float a, float b)
{
    return a < b || !(a == a) ? a : b;
}
"""


def _with_constants(template: str) -> str:
    def constant(found: re.Match[str]) -> str:
        value = getattr(exact, found[1])
        return f"0x{value:08x}u" if isinstance(value, int) else exact.hexadecimal(value)

    return re.sub(r"\$([A-Z][A-Z0-9_]*)", constant, template)


FUNCTIONS = {  # each after those that it calls
    name: _with_constants(template)
    for name, template in {
        "from_bits": FROM_BITS,
        "to_bits": TO_BITS,
        "magnitude": MAGNITUDE,
        "within": WITHIN,
        "power_of_two": POWER_OF_TWO,
        "split_exp": SPLIT_EXP,
        "sigmoid": SIGMOID,
        "tanh": TANH,
        "exp": EXP,
        "split_log": SPLIT_LOG,
        "join_log": JOIN_LOG,
        "log": LOG,
        "softplus": SOFTPLUS,
        "sqrt": SQRT,
        "modulus": MODULUS,
        "relu": RELU,
        "sign": SIGN,
        "maximum": MAXIMUM,
        "minimum": MINIMUM,
    }.items()
}
