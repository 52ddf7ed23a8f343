"""Products with matrices of every structure in C. Each adds to y: y += W x.

@ stands for the prefix of the file. A complex number is a pair of floats, one after the other.
"""

from __future__ import annotations

COPY = """\
static void @copy(const float *from, size_t count, float *to)
{
    for (size_t k = 0; k < count; k++) {
        to[k] = from[k];
    }
}
"""

CLEAR = """\
static void @clear(size_t count, float *to)
{
    for (size_t k = 0; k < count; k++) {
        to[k] = 0.0f;
    }
}
"""

# Four rows at once: x is read a quarter as often.
DENSE = """\
static void @dense(const float *w, size_t rows, size_t columns, const float *x, float *y)
{
    for (; rows >= 4; rows -= 4, y += 4, w += 4 * columns) {
        const float *const b = w + columns, *const c = b + columns, *const d = c + columns;
        float p = 0.0f, q = 0.0f, r = 0.0f, s = 0.0f;
        for (size_t j = 0; j < columns; j++) {
            p += w[j] * x[j];
            q += b[j] * x[j];
            r += c[j] * x[j];
            s += d[j] * x[j];
        }
        y[0] += p;
        y[1] += q;
        y[2] += r;
        y[3] += s;
    }
    for (; rows > 0; rows--, y++, w += columns) {
        float p = 0.0f;
        for (size_t j = 0; j < columns; j++) {
            p += w[j] * x[j];
        }
        y[0] += p;
    }
}
"""

DENSE_PAIRS = """\
static void @dense_pairs(const float *w, size_t rows, size_t columns, const float *x, float *y)
{
    for (size_t i = 0; i < rows; i++) {
        const float *const a = w + 2 * i * columns;
        float re = 0.0f, im = 0.0f;
        for (size_t j = 0; j < columns; j++) {
            re += a[2 * j] * x[2 * j] - a[2 * j + 1] * x[2 * j + 1];
            im += a[2 * j] * x[2 * j + 1] + a[2 * j + 1] * x[2 * j];
        }
        y[2 * i] += re;
        y[2 * i + 1] += im;
    }
}
"""

DIAGONAL = """\
static void @diagonal(const float *d, size_t count, const float *x, float *y)
{
    for (size_t k = 0; k < count; k++) {
        y[k] += d[k] * x[k];
    }
}
"""

DIAGONAL_PAIRS = """\
static void @diagonal_pairs(const float *d, size_t count, const float *x, float *y)
{
    for (size_t k = 0; k < 2 * count; k += 2) {
        y[k] += d[k] * x[k] - d[k + 1] * x[k + 1];
        y[k + 1] += d[k] * x[k + 1] + d[k + 1] * x[k];
    }
}
"""

# One factor on the fastest digit of x, which becomes the slowest one of y: after all factors the order is as before.
KRONECKER = """\
static void @kronecker(const float *w, size_t rows, size_t columns, size_t rest, const float *x, float *y)
{
    for (size_t k = 0; k < rest; k++) {
        for (size_t i = 0; i < rows; i++) {
            float sum = 0.0f;
            for (size_t j = 0; j < columns; j++) {
                sum += w[i * columns + j] * x[k * columns + j];
            }
            y[i * rest + k] += sum;
        }
    }
}
"""

KRONECKER_PAIRS = """\
static void @kronecker_pairs(const float *w, size_t rows, size_t columns, size_t rest, const float *x, float *y)
{
    for (size_t k = 0; k < rest; k++) {
        for (size_t i = 0; i < rows; i++) {
            float re = 0.0f, im = 0.0f;
            for (size_t j = 0; j < columns; j++) {
                const float *const a = w + 2 * (i * columns + j), *const b = x + 2 * (k * columns + j);
                re += a[0] * b[0] - a[1] * b[1];
                im += a[0] * b[1] + a[1] * b[0];
            }
            y[2 * (i * rest + k)] += re;
            y[2 * (i * rest + k) + 1] += im;
        }
    }
}
"""

CIRCULANT = """\
static void @circulant(const float *c, size_t count, const float *x, float *y)
{
    for (size_t i = 0; i < count; i++) {
        float sum = 0.0f;
        for (size_t j = 0; j < count; j++) {
            sum += c[i >= j ? i - j : count + i - j] * x[j];
        }
        y[i] += sum;
    }
}
"""

CIRCULANT_PAIRS = """\
static void @circulant_pairs(const float *c, size_t count, const float *x, float *y)
{
    for (size_t i = 0; i < count; i++) {
        float re = 0.0f, im = 0.0f;
        for (size_t j = 0; j < count; j++) {
            const float *const a = c + 2 * (i >= j ? i - j : count + i - j), *const b = x + 2 * j;
            re += a[0] * b[0] - a[1] * b[1];
            im += a[0] * b[1] + a[1] * b[0];
        }
        y[2 * i] += re;
        y[2 * i + 1] += im;
    }
}
"""

# The discrete Fourier transform over sqrt(n), by a table of the n-th roots of one; sign -1 there, +1 back.
FOURIER = """\
static void @fourier(const float *roots, size_t count, float sign, float scale, const float *x, float *y)
{
    for (size_t i = 0; i < count; i++) {
        float re = 0.0f, im = 0.0f;
        size_t turn = 0;
        for (size_t j = 0; j < count; j++) {
            const float c = roots[2 * turn], s = sign * roots[2 * turn + 1];
            re += c * x[2 * j] - s * x[2 * j + 1];
            im += c * x[2 * j + 1] + s * x[2 * j];
            turn += i;
            turn = turn >= count ? turn - count : turn;
        }
        y[2 * i] = scale * re;
        y[2 * i + 1] = scale * im;
    }
}
"""

REFLECT = """\
static void @reflect(const float *v, size_t count, float *x)
{
    float re = 0.0f, im = 0.0f;
    for (size_t k = 0; k < 2 * count; k += 2) {
        re += v[k] * x[k] + v[k + 1] * x[k + 1];
        im += v[k] * x[k + 1] - v[k + 1] * x[k];
    }
    re = 2.0f * re;
    im = 2.0f * im;
    for (size_t k = 0; k < 2 * count; k += 2) {
        x[k] -= v[k] * re - v[k + 1] * im;
        x[k + 1] -= v[k] * im + v[k + 1] * re;
    }
}
"""

SOFTMAX = """\
static void @softmax(size_t count, float *x)
{
    float largest = x[0], sum = 0.0f;
    for (size_t k = 1; k < count; k++) {
        largest = x[k] > largest ? x[k] : largest;
    }
    for (size_t k = 0; k < count; k++) {
        x[k] = @exp(x[k] - largest);
        sum += x[k];
    }
    for (size_t k = 0; k < count; k++) {
        x[k] = x[k] / sum;
    }
}
"""

LOG_SOFTMAX = """\
static void @log_softmax(size_t count, float *x)
{
    float largest = x[0], sum = 0.0f;
    for (size_t k = 1; k < count; k++) {
        largest = x[k] > largest ? x[k] : largest;
    }
    for (size_t k = 0; k < count; k++) {
        sum += @exp(x[k] - largest);
    }
    largest += @log(sum);
    for (size_t k = 0; k < count; k++) {
        x[k] = x[k] - largest;
    }
}
"""

KERNELS = {
    "copy": COPY,
    "clear": CLEAR,
    "dense": DENSE,
    "dense_pairs": DENSE_PAIRS,
    "diagonal": DIAGONAL,
    "diagonal_pairs": DIAGONAL_PAIRS,
    "kronecker": KRONECKER,
    "kronecker_pairs": KRONECKER_PAIRS,
    "circulant": CIRCULANT,
    "circulant_pairs": CIRCULANT_PAIRS,
    "fourier": FOURIER,
    "reflect": REFLECT,
    "softmax": SOFTMAX,
    "log_softmax": LOG_SOFTMAX,
}
