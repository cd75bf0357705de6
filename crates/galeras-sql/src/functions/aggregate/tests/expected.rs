//! Expected bits of every statistic, made by `expected.py` with exact fractions.

/// Statistic, in the order of the tests' query; the columns are made by the tests.
pub(super) const NAMES: &str = "sum avg var var_pop stddev stddev_pop covar_samp covar_pop corr regr_slope regr_intercept regr_r2 regr_avgx regr_avgy regr_sxx regr_syy regr_sxy";

pub(super) const UNIFORM: [u64; 17] = [
    0x407fbf22806bfd69, // sum = 507.94592325385617
    0x3fe04117cf1060fb, // avg = 0.5079459232538562
    0x3fb57667e831d2ef, // var = 0.08383798044981082
    0x3fb570e956cf785b, // var_pop = 0.08375414246936101
    0x3fd287f3df4252b3, // stddev = 0.28954788973468765
    0x3fd285947e899c53, // stddev_pop = 0.28940307957822603
    0xbf46d053d31468ae, // covar_samp = -0.0006962212848151872
    0xbf46ca7cb36171cb, // covar_pop = -0.000695525063530372
    0xbf81960ede6a35d3, // corr = -0.008586994326175301
    0xbf8101e1275bcee0, // regr_slope = -0.008304366124753881
    0x3fe05ce85696fe8b, // regr_intercept = 0.5113412562568141
    0x3f13545eef79cb20, // regr_r2 = 7.373647155776682e-05
    0x3fe04117cf1060fb, // regr_avgx = 0.5079459232538562
    0x3fe03a5a32654c5f, // regr_avgy = 0.5071230873385381
    0x4054f043dec69b89, // regr_sxx = 83.75414246936101
    0x40539538b53ea342, // regr_syy = 78.33158618084875
    0xbfe641bdc72d2920, // regr_sxy = -0.695525063530372
];

pub(super) const LARGE_MEAN: [u64; 17] = [
    0x426d1a94a23f7e45, // sum = 1000000000507.9459
    0x41cdcd650041045f, // avg = 1000000000.5079459
    0x3fb57667ede81b53, // var = 0.08383798177974926
    0x3fb570e95c844a66, // var_pop = 0.0837541437979695
    0x3fd287f3e1b999fc, // stddev = 0.2895478920312653
    0x3fd28594810092c9, // stddev_pop = 0.2894030818736551
    0xbfc57941f599c36b, // covar_samp = -0.1677629899236551
    0xbfc573c2a952b295, // covar_pop = -0.16759522693373144
    0xbfeff117e3469c34, // corr = -0.9981803359013441
    0xc00002203a110680, // regr_slope = -2.0010380302854287
    0x41ddd15ab4565bb1, // regr_intercept = 2001038033.3493464
    0x3fefe236b839fb38, // regr_r2 = 0.9963639829801201
    0x41cdcd650041045f, // regr_avgx = 1000000000.5079459
    0x40006146ea0af9e6, // regr_avgy = 2.047498539409605
    0x4054f043e45930a8, // regr_sxx = 83.7541437979695
    0x4075096986eda576, // regr_syy = 336.588263443285
    0xc064f30c195ac266, // regr_sxy = -167.59522693373145
];

pub(super) const SCALES: [u64; 17] = [
    0xd28eb81485a54f83, // sum = -4.8887372483523366e+89
    0xd1ef74d16e3aafa0, // avg = -4.888737248352336e+86
    0x64954ec25cc45d8a, // var = 3.37281947450887e+176
    0x6495494df1aa91ab, // var_pop = 3.369446655034361e+176
    0x524276ce4df2e645, // stddev = 1.8365237473305022e+88
    0x524274711f3b8421, // stddev_pop = 1.835605255776514e+88
    0xe3f83f450cc7b16d, // covar_samp = -3.74816043322086e+173
    0xe3f8390ffd26b9b2, // covar_pop = -3.744412272787639e+173
    0xbf53fccf2d33c05e, // corr = -0.0012199423989010176
    0xbf523510256b60b8, // regr_slope = -0.001111284034484723
    0xd1f8a8b62107149c, // regr_intercept = -7.664692589328628e+86
    0x3eb8f80693e56925, // regr_r2 = 1.4882594566363694e-06
    0xd1ef74d16e3aafa0, // regr_avgx = -4.888737248352336e+86
    0xd1f8a43ca93d1061, // regr_avgy = -7.659259813675743e+86
    0x6534c9961e009241, // regr_sxx = 3.369446655034361e+179
    0x65313fd52f58291d, // regr_syy = 2.795954400775061e+179
    0xe497a7b99d37d158, // regr_sxy = -3.7444122727876393e+176
];

pub(super) const LINE: [u64; 17] = [
    0x411e7cb000000000, // sum = 499500.0
    0x407f380000000000, // avg = 499.5
    0x40f45d8aaaaaaaab, // var = 83416.66666666667
    0x40f4585400000000, // var_pop = 83333.25
    0x40720d1c6906067d, // stddev = 288.8194360957494
    0x40720accc2957d56, // stddev_pop = 288.6749902572095
    0x410e8c5000000000, // covar_samp = 250250.0
    0x410e847e00000000, // covar_pop = 249999.75
    0x3ff0000000000000, // corr = 1.0
    0x4008000000000000, // regr_slope = 3.0
    0x401c000000000000, // regr_intercept = 7.0
    0x3ff0000000000000, // regr_r2 = 1.0
    0x407f380000000000, // regr_avgx = 499.5
    0x4097860000000000, // regr_avgy = 1505.5
    0x4193de4208000000, // regr_sxx = 83333250.0
    0x41c65a0a49000000, // regr_syy = 749999250.0
    0x41adcd630c000000, // regr_sxy = 249999750.0
];

/// Terms and the bits of their correctly rounded sum.
pub(super) const SUMS: &[(&str, &[f64], u64)] = &[
    ("cancellation", &[1e+16, 1.0, -1e+16], 0x3ff0000000000000), // 1.0
    ("cancellation_small", &[1e+100, 1.0, -1e+100, 1e-100], 0x3ff0000000000000), // 1.0
    ("tenth", &[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 0x3ff0000000000000), // 1.0
    ("big_pair", &[1e+308, 1e+308, -1e+308], 0x7fe1ccf385ebc8a0), // 1e+308
    ("overflow", &[1e+308, 1e+308], 0x7ff0000000000000),         // inf
    (
        "max_pair",
        &[1.7976931348623157e+308, 1.7976931348623157e+308, -1.7976931348623157e+308, 1.0],
        0x7fefffffffffffff,
    ), // 1.7976931348623157e+308
    ("half_ulp_above_max", &[1.7976931348623157e+308, 4.9896007738368e+291], 0x7fefffffffffffff), // 1.7976931348623157e+308
    ("tie_above_max", &[1.7976931348623157e+308, 9.9792015476736e+291], 0x7ff0000000000000), // inf
    ("denormals", &[5e-324, 5e-324, 5e-324], 0x0000000000000003), // 1.5e-323
    ("denormal_cancel", &[2.2250738585072014e-308, -5e-324], 0x000fffffffffffff), // 2.225073858507201e-308
    ("denormal_mix", &[1.0, 5e-324, -1.0], 0x0000000000000001),                   // 5e-324
    ("tie_even", &[1.0, 1.1102230246251565e-16], 0x3ff0000000000000),             // 1.0
    ("tie_odd", &[1.0000000000000002, 1.1102230246251565e-16], 0x3ff0000000000002), // 1.0000000000000004
    ("tie_broken", &[1.0, 1.1102230246251565e-16, 5e-324], 0x3ff0000000000001), // 1.0000000000000002
    ("tie_broken_down", &[1.0, 1.1102230246251565e-16, -5e-324], 0x3ff0000000000000), // 1.0
    ("negative", &[-1e+300, 1e+284, -3.5, 9.332636185032189e-302], 0xfe37e43c8800759b), // -9.999999999999999e+299
    ("zeros", &[0.0, -0.0], 0x0000000000000000),                                        // 0.0
    ("empty", &[], 0x0000000000000000),                                                 // 0.0
    (
        "carry",
        &[
            4294967295.0,
            1.0,
            1.8446744073709552e+19,
            -1.8446744073709552e+19,
            -4294967296.0,
            9.094947017729282e-13,
        ],
        0x3d70000000000000,
    ), // 9.094947017729282e-13
];
