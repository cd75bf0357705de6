# Makes `expected.rs`, the expected values of the tests beside it: exact rational arithmetic,
# rounded once. `python3 expected.py > expected.rs && rustfmt expected.rs` (Python 3.11 or later)
import struct
from fractions import Fraction as F
from math import fsum
from statistics import _float_sqrt_of_frac as root


def bits(x):
    return "0x{:016x}".format(struct.unpack("<Q", struct.pack("<d", x))[0])


def fl(q):
    try:
        return float(q)
    except OverflowError:
        return float("inf") if q > 0 else float("-inf")


def sqrt(num, den):
    # statistics' correctly rounded square root of a fraction
    q = F(num, den)
    return root(q.numerator, q.denominator) if q else 0.0


def lcg(seed, n):
    out, s = [], seed
    for _ in range(n):
        s = (s * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(s >> 11)
    return out


# (name, x, y); the tests build the same columns.
N = 1000
u = [v / 2**53 for v in lcg(1, N)]
w = [v / 2**53 for v in lcg(2, N)]
sets = [
    ("UNIFORM", u, w),
    (
        "LARGE_MEAN",
        [1e9 + a for a in u],
        [3.0 - 2.0 * a + b / 8 for a, b in zip(u, w, strict=True)],
    ),
    (
        "SCALES",
        [(a - 0.5) * 2.0 ** ((i * 37) % 600 - 300) for i, a in enumerate(u)],
        [(b - 0.5) * 2.0 ** ((i * 53) % 600 - 300) for i, b in enumerate(w)],
    ),
    ("LINE", [float(i) for i in range(N)], [3.0 * i + 7.0 for i in range(N)]),
]
print("//! Expected bits of every statistic, made by `expected.py` with exact fractions.\n")
print("/// Statistic, in the order of the tests' query; the columns are made by the tests.")
names = (
    "sum avg var var_pop stddev stddev_pop covar_samp covar_pop corr regr_slope regr_intercept "
    "regr_r2 regr_avgx regr_avgy regr_sxx regr_syy regr_sxy"
).split()
print(f'pub(super) const NAMES: &str = "{" ".join(names)}";')
for name, x, y in sets:
    X, Y, n = [F(v) for v in x], [F(v) for v in y], N
    sx, sy = sum(X), sum(Y)
    cxx = sum(a * a for a in X) - sx * sx / n
    cyy = sum(a * a for a in Y) - sy * sy / n
    cxy = sum(a * b for a, b in zip(X, Y, strict=True)) - sx * sy / n
    r2 = cxy * cxy / (cxx * cyy)
    r = sqrt(r2.numerator, r2.denominator) * (1 if cxy > 0 else -1)
    v = dict(
        sum=sx,
        avg=sx / n,
        var=cxx / (n - 1),
        var_pop=cxx / n,
        covar_samp=cxy / (n - 1),
        covar_pop=cxy / n,
        regr_slope=cxy / cxx,
        regr_intercept=(sy - cxy / cxx * sx) / n,
        regr_r2=r2,
        regr_avgx=sx / n,
        regr_avgy=sy / n,
        regr_sxx=cxx,
        regr_syy=cyy,
        regr_sxy=cxy,
    )
    v = {k: fl(q) for k, q in v.items()}
    assert v["sum"] == fsum(x)
    v["stddev"] = sqrt((cxx / (n - 1)).numerator, (cxx / (n - 1)).denominator)
    v["stddev_pop"] = sqrt((cxx / n).numerator, (cxx / n).denominator)
    v["corr"] = r
    print(f"\npub(super) const {name}: [u64; {len(names)}] = [")
    for k in names:
        print(f"    {bits(v[k])}, // {k} = {v[k]!r}")
    print("];")

cases = [
    ("cancellation", [1e16, 1.0, -1e16]),
    ("cancellation_small", [1e100, 1.0, -1e100, 1e-100]),
    ("tenth", [0.1] * 10),
    ("big_pair", [1e308, 1e308, -1e308]),
    ("overflow", [1e308, 1e308]),
    ("max_pair", [1.7976931348623157e308, 1.7976931348623157e308, -1.7976931348623157e308, 1.0]),
    ("half_ulp_above_max", [1.7976931348623157e308, 2.0**969]),
    ("tie_above_max", [1.7976931348623157e308, 2.0**970]),
    ("denormals", [5e-324] * 3),
    ("denormal_cancel", [2.2250738585072014e-308, -5e-324]),
    ("denormal_mix", [1.0, 5e-324, -1.0]),
    ("tie_even", [1.0, 2.0**-53]),
    ("tie_odd", [1.0 + 2.0**-52, 2.0**-53]),
    ("tie_broken", [1.0, 2.0**-53, 5e-324]),
    ("tie_broken_down", [1.0, 2.0**-53, -5e-324]),
    ("negative", [-1e300, 1e284, -3.5, 2.0**-1000]),
    ("zeros", [0.0, -0.0]),
    ("empty", []),
    ("carry", [2.0**32 - 1, 1.0, 2.0**64, -(2.0**64), -(2.0**32), 2.0**-40]),
]
print("\n/// Terms and the bits of their correctly rounded sum.")
print("pub(super) const SUMS: &[(&str, &[f64], u64)] = &[")


def lit(x):
    return repr(x) if "e" in repr(x) or "." in repr(x) else repr(x) + ".0"


for name, xs in cases:
    s = fl(sum((F(v) for v in xs), F(0)))
    try:
        assert s == fsum(xs)
    except OverflowError:
        pass
    print('    ("{}", &[{}], {}), // {!r}'.format(name, ", ".join(map(lit, xs)), bits(s), s))
print("];")
