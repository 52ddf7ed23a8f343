"""Rounding to int8 and products in int8 in C, with the bits of `slimrnn.exporting.int8.rows`.

@ stands for the prefix of the file.
"""

from __future__ import annotations

from slimrnn.exporting.int8 import exact, rows

# As `slimrnn.exporting.int8.rows` has it: numbers up to 127, rounded to the nearest and half to even by the addition
# of 1.5 * 2^23, where floats are whole numbers; the scale is NaN where v is not finite.
ROUND = """\
static float @round(const float *v, size_t count, int8_t *numbers)
{
    float most = 0.0f, inverse = 0.0f, scale = 0.0f;
    for (size_t k = 0; k < count; k++) {
        const float size = @magnitude(v[k]);
        most = size > most || !(size == size) ? size : most;
        if (!(most == most)) {
            break;
        }
    }
    if (!(most < @from_bits(0x7f800000u))) {
        scale = @from_bits(0x7fc00000u);
    } else if (most >= $LEAST) {
        inverse = 127.0f / most;
        scale = most / 127.0f;
    }
    for (size_t k = 0; k < count; k++) {
        numbers[k] = 0;
        if (inverse > 0.0f) {
            const float shifted = v[k] * inverse + $MAGIC;
            numbers[k] = (int8_t)(shifted - $MAGIC);
        }
    }
    return scale;
}
"""

# y + float(sum) * (scale of the row * scale of x), whose sum fits: see rows.MOST_COLUMNS.
INT8_DENSE = """\
static void @int8_dense(const int8_t *w, const float *scales, size_t rows, size_t columns, const int8_t *x, float scale,
                        float *y)
{
    for (; rows >= 4; rows -= 4, scales += 4, y += 4, w += 4 * columns) {
        const int8_t *const b = w + columns, *const c = b + columns, *const d = c + columns;
        int32_t p = 0, q = 0, r = 0, s = 0;
        for (size_t j = 0; j < columns; j++) {
            const int32_t v = x[j];
            p += w[j] * v;
            q += b[j] * v;
            r += c[j] * v;
            s += d[j] * v;
        }
        y[0] = y[0] + (float)p * (scales[0] * scale);
        y[1] = y[1] + (float)q * (scales[1] * scale);
        y[2] = y[2] + (float)r * (scales[2] * scale);
        y[3] = y[3] + (float)s * (scales[3] * scale);
    }
    for (; rows > 0; rows--, scales++, y++, w += columns) {
        int32_t p = 0;
        for (size_t j = 0; j < columns; j++) {
            p += w[j] * (int32_t)x[j];
        }
        y[0] = y[0] + (float)p * (scales[0] * scale);
    }
}
"""

# One column, for a one-hot vector: its one becomes 127, and its scale 1/127.
INT8_COLUMN = """\
static void @int8_column(const int8_t *w, const float *scales, size_t rows, size_t columns, size_t column, float *y)
{
    for (size_t i = 0; i < rows; i++) {
        y[i] = y[i] + (float)(127 * (int32_t)w[i * columns + column]) * (scales[i] * (1.0f / 127.0f));
    }
}
"""

# The vector that a row of int8 stands for.
INT8_VECTOR = """\
static void @int8_vector(const int8_t *numbers, size_t count, float scale, float *to)
{
    for (size_t k = 0; k < count; k++) {
        to[k] = (float)numbers[k] * scale;
    }
}
"""

CONSTANTS = {"$LEAST": exact.hexadecimal(rows.LEAST), "$MAGIC": exact.hexadecimal(exact.MAGIC)}


def _with_constants(template: str) -> str:
    for name, value in CONSTANTS.items():
        template = template.replace(name, value)
    return template


INT8_KERNELS = {
    "round": _with_constants(ROUND),
    "int8_dense": INT8_DENSE,
    "int8_column": INT8_COLUMN,
    "int8_vector": INT8_VECTOR,
}
