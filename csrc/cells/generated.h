// Written by `make cells` from src/slimrnn/cells. Do not edit.
#pragma once
#include "noise.h"

namespace slimrnn {
namespace SLIMRNN_ISA {

// h = tanh(U x + W h + b)
template <class T> struct Cell_81e66ac6755b840d {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, w, 0, 1);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + r * w;
                auto *const p1 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v7 = n.get(p0 + k);
                    const Vec<T> v8 = hyperbolic_tangent<T>(v7);
                    n.put(p1 + k, v8);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.after[0] + r * w;
                auto *const p2 = s.d_gates + r * s.ldd;
                auto *const p3 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v9 = n.get(p0 + k);
                    const Vec<T> v8 = n.get(p1 + k);
                    const Vec<T> v10 = v8 * v8;
                    const Vec<T> v12 = T(1.0) - v10;
                    const Vec<T> v13 = v9 * v12;
                    n.put(p2 + k, v13);
                    n.put(p3 + k, fill<T>(T(0.0)));
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 1);
    }
};

// h = relu(U x + W h + b)
template <class T> struct Cell_b96d139283199ad6 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, w, 0, 1);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + r * w;
                auto *const p1 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v7 = n.get(p0 + k);
                    const Vec<T> v8 = relu<T>(v7);
                    n.put(p1 + k, v8);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.after[0] + r * w;
                auto *const p1 = s.d_after[0] + r * w;
                auto *const p2 = s.d_gates + r * s.ldd;
                auto *const p3 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v8 = n.get(p0 + k);
                    const auto v10 = v8 > T(0.0);
                    const Vec<T> v9 = n.get(p1 + k);
                    const Vec<T> v11 = v10 ? v9 : fill<T>(T(0.0));
                    n.put(p2 + k, v11);
                    n.put(p3 + k, fill<T>(T(0.0)));
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 1);
    }
};

// h = U x + W h + b
template <class T> struct Cell_1297847f33fb4c8c {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, w, 0, 1);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + r * w;
                auto *const p1 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v6 = n.get(p0 + k);
                    n.put(p1 + k, v6);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.d_gates + r * s.ldd;
                auto *const p2 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v7 = n.get(p0 + k);
                    n.put(p1 + k, v7);
                    n.put(p2 + k, fill<T>(T(0.0)));
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 1);
    }
};

// LSTM
template <class T> struct Cell_d27dc8d3fd9e1eda {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, 4 * w, 0, 4);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + 3 * w + r * 4 * w;
                auto *const p1 = s.slots + w + r * 4 * w;
                auto *const p2 = s.before[1] + r * w;
                auto *const p3 = s.slots + r * 4 * w;
                auto *const p4 = s.slots + 2 * w + r * 4 * w;
                auto *const p5 = s.after[0] + r * w;
                auto *const p6 = s.after[1] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v28 = n.get(p0 + k);
                    const Vec<T> v29 = sigmoid<T>(v28);
                    const Vec<T> v30 = n.get(p1 + k);
                    const Vec<T> v31 = sigmoid<T>(v30);
                    const Vec<T> v5 = n.get(p2 + k);
                    const Vec<T> v32 = v31 * v5;
                    const Vec<T> v33 = n.get(p3 + k);
                    const Vec<T> v34 = sigmoid<T>(v33);
                    const Vec<T> v35 = n.get(p4 + k);
                    const Vec<T> v36 = hyperbolic_tangent<T>(v35);
                    const Vec<T> v37 = v34 * v36;
                    const Vec<T> v38 = v32 + v37;
                    const Vec<T> v39 = hyperbolic_tangent<T>(v38);
                    const Vec<T> v40 = v29 * v39;
                    n.put(p5 + k, v40);
                    n.put(p6 + k, v38);
                    n.put(p0 + k, v29);
                    n.put(p1 + k, v31);
                    n.put(p3 + k, v34);
                    n.put(p4 + k, v36);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[1] + r * w;
                auto *const p1 = s.d_after[0] + r * w;
                auto *const p2 = s.slots + 3 * w + r * 4 * w;
                auto *const p3 = s.after[1] + r * w;
                auto *const p4 = s.slots + 2 * w + r * 4 * w;
                auto *const p5 = s.slots + r * 4 * w;
                auto *const p6 = s.before[1] + r * w;
                auto *const p7 = s.slots + w + r * 4 * w;
                auto *const p8 = s.d_gates + r * s.ldd;
                auto *const p9 = s.d_gates + w + r * s.ldd;
                auto *const p10 = s.d_gates + 2 * w + r * s.ldd;
                auto *const p11 = s.d_gates + 3 * w + r * s.ldd;
                auto *const p12 = s.d_before[1] + r * w;
                auto *const p13 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v42 = n.get(p0 + k);
                    const Vec<T> v41 = n.get(p1 + k);
                    const Vec<T> v29 = n.get(p2 + k);
                    const Vec<T> v44 = v41 * v29;
                    const Vec<T> v38 = n.get(p3 + k);
                    const Vec<T> v39 = hyperbolic_tangent<T>(v38);
                    const Vec<T> v45 = v39 * v39;
                    const Vec<T> v47 = T(1.0) - v45;
                    const Vec<T> v48 = v44 * v47;
                    const Vec<T> v49 = v42 + v48;
                    const Vec<T> v36 = n.get(p4 + k);
                    const Vec<T> v50 = v49 * v36;
                    const Vec<T> v34 = n.get(p5 + k);
                    const Vec<T> v55 = T(1.0) - v34;
                    const Vec<T> v56 = v34 * v55;
                    const Vec<T> v57 = v50 * v56;
                    const Vec<T> v5 = n.get(p6 + k);
                    const Vec<T> v58 = v49 * v5;
                    const Vec<T> v31 = n.get(p7 + k);
                    const Vec<T> v60 = T(1.0) - v31;
                    const Vec<T> v61 = v31 * v60;
                    const Vec<T> v62 = v58 * v61;
                    const Vec<T> v51 = v49 * v34;
                    const Vec<T> v52 = v36 * v36;
                    const Vec<T> v53 = T(1.0) - v52;
                    const Vec<T> v54 = v51 * v53;
                    const Vec<T> v43 = v41 * v39;
                    const Vec<T> v63 = T(1.0) - v29;
                    const Vec<T> v64 = v29 * v63;
                    const Vec<T> v65 = v43 * v64;
                    const Vec<T> v59 = v49 * v31;
                    n.put(p8 + k, v57);
                    n.put(p9 + k, v62);
                    n.put(p10 + k, v54);
                    n.put(p11 + k, v65);
                    n.put(p12 + k, v59);
                    n.put(p13 + k, fill<T>(T(0.0)));
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 4);
    }
};

// LSTM with peepholes
template <class T> struct Cell_f42f168378cd14e5 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, 4 * w, 0, 4);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + 3 * w + r * 4 * w;
                auto *const p1 = s.own + 2 * w;
                auto *const p2 = s.slots + w + r * 4 * w;
                auto *const p3 = s.own;
                auto *const p4 = s.before[1] + r * w;
                auto *const p5 = s.slots + r * 4 * w;
                auto *const p6 = s.own + w;
                auto *const p7 = s.slots + 2 * w + r * 4 * w;
                auto *const p8 = s.after[0] + r * w;
                auto *const p9 = s.after[1] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v37 = n.get(p0 + k);
                    const Vec<T> v56 = n.get(p1 + k);
                    const Vec<T> v38 = n.get(p2 + k);
                    const Vec<T> v54 = n.get(p3 + k);
                    const Vec<T> v5 = n.get(p4 + k);
                    const Vec<T> v57 = v54 * v5;
                    const Vec<T> v58 = v38 + v57;
                    const Vec<T> v59 = sigmoid<T>(v58);
                    const Vec<T> v60 = v59 * v5;
                    const Vec<T> v42 = n.get(p5 + k);
                    const Vec<T> v55 = n.get(p6 + k);
                    const Vec<T> v61 = v55 * v5;
                    const Vec<T> v62 = v42 + v61;
                    const Vec<T> v63 = sigmoid<T>(v62);
                    const Vec<T> v45 = n.get(p7 + k);
                    const Vec<T> v46 = hyperbolic_tangent<T>(v45);
                    const Vec<T> v64 = v63 * v46;
                    const Vec<T> v65 = v60 + v64;
                    const Vec<T> v66 = v56 * v65;
                    const Vec<T> v67 = v37 + v66;
                    const Vec<T> v68 = sigmoid<T>(v67);
                    const Vec<T> v69 = hyperbolic_tangent<T>(v65);
                    const Vec<T> v70 = v68 * v69;
                    n.put(p8 + k, v70);
                    n.put(p9 + k, v65);
                    n.put(p7 + k, v46);
                    n.put(p5 + k, v59);
                    n.put(p2 + k, v63);
                    n.put(p0 + k, v68);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[1] + r * w;
                auto *const p1 = s.d_after[0] + r * w;
                auto *const p2 = s.slots + 3 * w + r * 4 * w;
                auto *const p3 = s.after[1] + r * w;
                auto *const p4 = s.own + 2 * w;
                auto *const p5 = s.slots + 2 * w + r * 4 * w;
                auto *const p6 = s.slots + w + r * 4 * w;
                auto *const p7 = s.before[1] + r * w;
                auto *const p8 = s.slots + r * 4 * w;
                auto *const p9 = s.own + w;
                auto *const p10 = s.own;
                auto *const p11 = s.d_gates + r * s.ldd;
                auto *const p12 = s.d_gates + w + r * s.ldd;
                auto *const p13 = s.d_gates + 2 * w + r * s.ldd;
                auto *const p14 = s.d_gates + 3 * w + r * s.ldd;
                auto *const p15 = s.d_before[1] + r * w;
                auto *const p16 = s.d_before[0] + r * w;
                auto *const p17 = s.d_own;
                auto *const p18 = s.d_own + w;
                auto *const p19 = s.d_own + 2 * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v72 = n.get(p0 + k);
                    const Vec<T> v71 = n.get(p1 + k);
                    const Vec<T> v68 = n.get(p2 + k);
                    const Vec<T> v74 = v71 * v68;
                    const Vec<T> v65 = n.get(p3 + k);
                    const Vec<T> v69 = hyperbolic_tangent<T>(v65);
                    const Vec<T> v75 = v69 * v69;
                    const Vec<T> v77 = T(1.0) - v75;
                    const Vec<T> v78 = v74 * v77;
                    const Vec<T> v79 = v72 + v78;
                    const Vec<T> v73 = v71 * v69;
                    const Vec<T> v80 = T(1.0) - v68;
                    const Vec<T> v81 = v68 * v80;
                    const Vec<T> v82 = v73 * v81;
                    const Vec<T> v56 = n.get(p4 + k);
                    const Vec<T> v84 = v82 * v56;
                    const Vec<T> v85 = v79 + v84;
                    const Vec<T> v46 = n.get(p5 + k);
                    const Vec<T> v86 = v85 * v46;
                    const Vec<T> v63 = n.get(p6 + k);
                    const Vec<T> v91 = T(1.0) - v63;
                    const Vec<T> v92 = v63 * v91;
                    const Vec<T> v93 = v86 * v92;
                    const Vec<T> v5 = n.get(p7 + k);
                    const Vec<T> v96 = v85 * v5;
                    const Vec<T> v59 = n.get(p8 + k);
                    const Vec<T> v99 = T(1.0) - v59;
                    const Vec<T> v100 = v59 * v99;
                    const Vec<T> v101 = v96 * v100;
                    const Vec<T> v87 = v85 * v63;
                    const Vec<T> v88 = v46 * v46;
                    const Vec<T> v89 = T(1.0) - v88;
                    const Vec<T> v90 = v87 * v89;
                    const Vec<T> v55 = n.get(p9 + k);
                    const Vec<T> v95 = v93 * v55;
                    const Vec<T> v97 = v85 * v59;
                    const Vec<T> v98 = v95 + v97;
                    const Vec<T> v54 = n.get(p10 + k);
                    const Vec<T> v103 = v101 * v54;
                    const Vec<T> v104 = v98 + v103;
                    const Vec<T> v102 = v101 * v5;
                    const Vec<T> v94 = v93 * v5;
                    const Vec<T> v83 = v82 * v65;
                    n.put(p11 + k, v93);
                    n.put(p12 + k, v101);
                    n.put(p13 + k, v90);
                    n.put(p14 + k, v82);
                    n.put(p15 + k, v104);
                    n.put(p16 + k, fill<T>(T(0.0)));
                    add_to<T>(p17 + k, n, v102);
                    add_to<T>(p18 + k, n, v94);
                    add_to<T>(p19 + k, n, v83);
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 4);
    }
};

// GRU, reset after the product
template <class T> struct Cell_10c200720980c963 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.own;
                auto *const p1 = s.spare + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v34 = n.get(p0 + k);
                    n.put(p1 + k, v34);
                });
            }
        }
        s.apply(s.before[0], s.slots, 3 * w, 0, 2);
        s.apply(s.before[0], s.spare, w, 2, 3);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + 2 * w + r * 3 * w;
                auto *const p1 = s.slots + r * 3 * w;
                auto *const p2 = s.spare + r * w;
                auto *const p3 = s.slots + w + r * 3 * w;
                auto *const p4 = s.before[0] + r * w;
                auto *const p5 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v2 = n.get(p0 + k);
                    const Vec<T> v23 = n.get(p1 + k);
                    const Vec<T> v24 = sigmoid<T>(v23);
                    const Vec<T> v35 = n.get(p2 + k);
                    const Vec<T> v36 = v24 * v35;
                    const Vec<T> v37 = v2 + v36;
                    const Vec<T> v38 = hyperbolic_tangent<T>(v37);
                    const Vec<T> v29 = n.get(p3 + k);
                    const Vec<T> v30 = sigmoid<T>(v29);
                    const Vec<T> v3 = n.get(p4 + k);
                    const Vec<T> v39 = v3 - v38;
                    const Vec<T> v40 = v30 * v39;
                    const Vec<T> v41 = v38 + v40;
                    n.put(p5 + k, v41);
                    n.put(p1 + k, v24);
                    n.put(p3 + k, v30);
                    n.put(p0 + k, v35);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + w + r * 3 * w;
                auto *const p2 = s.after[0] + r * w;
                auto *const p3 = s.before[0] + r * w;
                auto *const p4 = s.slots + 2 * w + r * 3 * w;
                auto *const p5 = s.slots + r * 3 * w;
                auto *const p6 = s.d_gates + r * s.ldd;
                auto *const p7 = s.d_gates + w + r * s.ldd;
                auto *const p8 = s.d_gates + 2 * w + r * s.ldd;
                auto *const p9 = s.products[1].y + r * w;
                auto *const p10 = s.d_before[0] + r * w;
                auto *const p11 = s.d_own;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v42 = n.get(p0 + k);
                    const Vec<T> v30 = n.get(p1 + k);
                    const Vec<T> v44 = v42 * v30;
                    const Vec<T> v46 = v42 - v44;
                    const Vec<T> v48 = T(1.0) - v30;
                    const auto v61 = v48 == T(0.0);
                    const Vec<T> v41 = n.get(p2 + k);
                    const Vec<T> v3 = n.get(p3 + k);
                    const Vec<T> v62 = v30 * v3;
                    const Vec<T> v63 = v41 - v62;
                    const Vec<T> v64 = v63 / v48;
                    const Vec<T> v65 = v61 ? fill<T>(T(0.0)) : v64;
                    const Vec<T> v66 = minimum<T>(v65, fill<T>(T(1.0)));
                    const Vec<T> v68 = maximum<T>(v66, fill<T>(T(-1.0)));
                    const Vec<T> v69 = v68 * v68;
                    const Vec<T> v70 = T(1.0) - v69;
                    const Vec<T> v71 = v46 * v70;
                    const Vec<T> v35 = n.get(p4 + k);
                    const Vec<T> v72 = v71 * v35;
                    const Vec<T> v24 = n.get(p5 + k);
                    const Vec<T> v56 = T(1.0) - v24;
                    const Vec<T> v57 = v24 * v56;
                    const Vec<T> v73 = v72 * v57;
                    const Vec<T> v74 = v3 - v68;
                    const Vec<T> v75 = v42 * v74;
                    const Vec<T> v49 = v30 * v48;
                    const Vec<T> v76 = v75 * v49;
                    const Vec<T> v77 = v71 * v24;
                    n.put(p6 + k, v73);
                    n.put(p7 + k, v76);
                    n.put(p8 + k, v71);
                    n.put(p9 + k, v77);
                    n.put(p10 + k, v44);
                    add_to<T>(p11 + k, n, v77);
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 2);
        s.adjoint(1, s.products[1].y, w, s.d_before[0], 2, 3);
    }
};

// GRU, reset after the product, without biases
template <class T> struct Cell_01a6b74566779d1e {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.spare + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) { n.put(p0 + k, fill<T>(T(0.0))); });
            }
        }
        s.apply(s.before[0], s.slots, 3 * w, 0, 2);
        s.apply(s.before[0], s.spare, w, 2, 3);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + 2 * w + r * 3 * w;
                auto *const p1 = s.slots + r * 3 * w;
                auto *const p2 = s.spare + r * w;
                auto *const p3 = s.slots + w + r * 3 * w;
                auto *const p4 = s.before[0] + r * w;
                auto *const p5 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v2 = n.get(p0 + k);
                    const Vec<T> v18 = n.get(p1 + k);
                    const Vec<T> v19 = sigmoid<T>(v18);
                    const Vec<T> v7 = n.get(p2 + k);
                    const Vec<T> v20 = v19 * v7;
                    const Vec<T> v21 = v2 + v20;
                    const Vec<T> v22 = hyperbolic_tangent<T>(v21);
                    const Vec<T> v23 = n.get(p3 + k);
                    const Vec<T> v24 = sigmoid<T>(v23);
                    const Vec<T> v3 = n.get(p4 + k);
                    const Vec<T> v25 = v3 - v22;
                    const Vec<T> v26 = v24 * v25;
                    const Vec<T> v27 = v22 + v26;
                    n.put(p5 + k, v27);
                    n.put(p1 + k, v7);
                    n.put(p3 + k, v19);
                    n.put(p0 + k, v24);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + 2 * w + r * 3 * w;
                auto *const p2 = s.after[0] + r * w;
                auto *const p3 = s.before[0] + r * w;
                auto *const p4 = s.slots + r * 3 * w;
                auto *const p5 = s.slots + w + r * 3 * w;
                auto *const p6 = s.d_gates + r * s.ldd;
                auto *const p7 = s.d_gates + w + r * s.ldd;
                auto *const p8 = s.d_gates + 2 * w + r * s.ldd;
                auto *const p9 = s.products[1].y + r * w;
                auto *const p10 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v28 = n.get(p0 + k);
                    const Vec<T> v24 = n.get(p1 + k);
                    const Vec<T> v30 = v28 * v24;
                    const Vec<T> v32 = v28 - v30;
                    const Vec<T> v34 = T(1.0) - v24;
                    const auto v47 = v34 == T(0.0);
                    const Vec<T> v27 = n.get(p2 + k);
                    const Vec<T> v3 = n.get(p3 + k);
                    const Vec<T> v48 = v24 * v3;
                    const Vec<T> v49 = v27 - v48;
                    const Vec<T> v50 = v49 / v34;
                    const Vec<T> v51 = v47 ? fill<T>(T(0.0)) : v50;
                    const Vec<T> v52 = minimum<T>(v51, fill<T>(T(1.0)));
                    const Vec<T> v54 = maximum<T>(v52, fill<T>(T(-1.0)));
                    const Vec<T> v55 = v54 * v54;
                    const Vec<T> v56 = T(1.0) - v55;
                    const Vec<T> v57 = v32 * v56;
                    const Vec<T> v7 = n.get(p4 + k);
                    const Vec<T> v58 = v57 * v7;
                    const Vec<T> v19 = n.get(p5 + k);
                    const Vec<T> v42 = T(1.0) - v19;
                    const Vec<T> v43 = v19 * v42;
                    const Vec<T> v59 = v58 * v43;
                    const Vec<T> v60 = v3 - v54;
                    const Vec<T> v61 = v28 * v60;
                    const Vec<T> v35 = v24 * v34;
                    const Vec<T> v62 = v61 * v35;
                    const Vec<T> v63 = v57 * v19;
                    n.put(p6 + k, v59);
                    n.put(p7 + k, v62);
                    n.put(p8 + k, v57);
                    n.put(p9 + k, v63);
                    n.put(p10 + k, v30);
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 2);
        s.adjoint(1, s.products[1].y, w, s.d_before[0], 2, 3);
    }
};

// GRU, reset before the product
template <class T> struct Cell_faed35892f75b1c4 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, 3 * w, 0, 2);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + r * 3 * w;
                auto *const p1 = s.before[0] + r * w;
                auto *const p2 = s.spare + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v21 = n.get(p0 + k);
                    const Vec<T> v22 = sigmoid<T>(v21);
                    const Vec<T> v3 = n.get(p1 + k);
                    const Vec<T> v23 = v22 * v3;
                    n.put(p0 + k, v22);
                    n.put(p2 + k, v23);
                });
            }
        }
        s.apply(s.spare, s.slots + 2 * w, 3 * w, 2, 3);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + 2 * w + r * 3 * w;
                auto *const p1 = s.slots + w + r * 3 * w;
                auto *const p2 = s.before[0] + r * w;
                auto *const p3 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v26 = n.get(p0 + k);
                    const Vec<T> v27 = hyperbolic_tangent<T>(v26);
                    const Vec<T> v28 = n.get(p1 + k);
                    const Vec<T> v29 = sigmoid<T>(v28);
                    const Vec<T> v3 = n.get(p2 + k);
                    const Vec<T> v30 = v3 - v27;
                    const Vec<T> v31 = v29 * v30;
                    const Vec<T> v32 = v27 + v31;
                    n.put(p3 + k, v32);
                    n.put(p0 + k, v27);
                    n.put(p1 + k, v29);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + w + r * 3 * w;
                auto *const p2 = s.slots + 2 * w + r * 3 * w;
                auto *const p3 = s.slots + r * 3 * w;
                auto *const p4 = s.before[0] + r * w;
                auto *const p5 = s.d_gates + 2 * w + r * s.ldd;
                auto *const p6 = s.products[0].x + r * s.ldx;
                auto *const p7 = s.spare + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v33 = n.get(p0 + k);
                    const Vec<T> v29 = n.get(p1 + k);
                    const Vec<T> v35 = v33 * v29;
                    const Vec<T> v37 = v33 - v35;
                    const Vec<T> v27 = n.get(p2 + k);
                    const Vec<T> v42 = v27 * v27;
                    const Vec<T> v43 = T(1.0) - v42;
                    const Vec<T> v44 = v37 * v43;
                    const Vec<T> v22 = n.get(p3 + k);
                    const Vec<T> v3 = n.get(p4 + k);
                    const Vec<T> v23 = v22 * v3;
                    n.put(p5 + k, v44);
                    n.put(p6 + k, v23);
                    n.put(p7 + k, fill<T>(T(0.0)));
                });
            }
        }
        s.adjoint(0, s.d_gates + 2 * w, s.ldd, s.spare, 2, 3);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.spare + r * w;
                auto *const p1 = s.before[0] + r * w;
                auto *const p2 = s.slots + r * 3 * w;
                auto *const p3 = s.d_after[0] + r * w;
                auto *const p4 = s.slots + 2 * w + r * 3 * w;
                auto *const p5 = s.slots + w + r * 3 * w;
                auto *const p6 = s.d_gates + r * s.ldd;
                auto *const p7 = s.d_gates + w + r * s.ldd;
                auto *const p8 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v45 = n.get(p0 + k);
                    const Vec<T> v3 = n.get(p1 + k);
                    const Vec<T> v46 = v45 * v3;
                    const Vec<T> v22 = n.get(p2 + k);
                    const Vec<T> v49 = T(1.0) - v22;
                    const Vec<T> v50 = v22 * v49;
                    const Vec<T> v51 = v46 * v50;
                    const Vec<T> v33 = n.get(p3 + k);
                    const Vec<T> v27 = n.get(p4 + k);
                    const Vec<T> v30 = v3 - v27;
                    const Vec<T> v34 = v33 * v30;
                    const Vec<T> v29 = n.get(p5 + k);
                    const Vec<T> v39 = T(1.0) - v29;
                    const Vec<T> v40 = v29 * v39;
                    const Vec<T> v41 = v34 * v40;
                    const Vec<T> v35 = v33 * v29;
                    const Vec<T> v47 = v45 * v22;
                    const Vec<T> v48 = v35 + v47;
                    n.put(p6 + k, v51);
                    n.put(p7 + k, v41);
                    n.put(p8 + k, v48);
                });
            }
        }
        s.adjoint(1, s.d_gates, s.ldd, s.d_before[0], 0, 2);
    }
};

// MGU
template <class T> struct Cell_b706f000ae850661 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, 2 * w, 0, 1);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + r * 2 * w;
                auto *const p1 = s.before[0] + r * w;
                auto *const p2 = s.spare + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v16 = n.get(p0 + k);
                    const Vec<T> v17 = sigmoid<T>(v16);
                    const Vec<T> v2 = n.get(p1 + k);
                    const Vec<T> v18 = v17 * v2;
                    n.put(p0 + k, v17);
                    n.put(p2 + k, v18);
                });
            }
        }
        s.apply(s.spare, s.slots + w, 2 * w, 1, 2);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.before[0] + r * w;
                auto *const p1 = s.slots + r * 2 * w;
                auto *const p2 = s.slots + w + r * 2 * w;
                auto *const p3 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v2 = n.get(p0 + k);
                    const Vec<T> v17 = n.get(p1 + k);
                    const Vec<T> v21 = n.get(p2 + k);
                    const Vec<T> v22 = hyperbolic_tangent<T>(v21);
                    const Vec<T> v23 = v22 - v2;
                    const Vec<T> v24 = v17 * v23;
                    const Vec<T> v25 = v2 + v24;
                    n.put(p3 + k, v25);
                    n.put(p2 + k, v22);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + r * 2 * w;
                auto *const p2 = s.slots + w + r * 2 * w;
                auto *const p3 = s.before[0] + r * w;
                auto *const p4 = s.d_gates + w + r * s.ldd;
                auto *const p5 = s.products[0].x + r * s.ldx;
                auto *const p6 = s.spare + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v26 = n.get(p0 + k);
                    const Vec<T> v17 = n.get(p1 + k);
                    const Vec<T> v28 = v26 * v17;
                    const Vec<T> v22 = n.get(p2 + k);
                    const Vec<T> v31 = v22 * v22;
                    const Vec<T> v33 = T(1.0) - v31;
                    const Vec<T> v34 = v28 * v33;
                    const Vec<T> v2 = n.get(p3 + k);
                    const Vec<T> v18 = v17 * v2;
                    n.put(p4 + k, v34);
                    n.put(p5 + k, v18);
                    n.put(p6 + k, fill<T>(T(0.0)));
                });
            }
        }
        s.adjoint(0, s.d_gates + w, s.ldd, s.spare, 1, 2);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + w + r * 2 * w;
                auto *const p2 = s.before[0] + r * w;
                auto *const p3 = s.spare + r * w;
                auto *const p4 = s.slots + r * 2 * w;
                auto *const p5 = s.d_gates + r * s.ldd;
                auto *const p6 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v26 = n.get(p0 + k);
                    const Vec<T> v22 = n.get(p1 + k);
                    const Vec<T> v2 = n.get(p2 + k);
                    const Vec<T> v23 = v22 - v2;
                    const Vec<T> v27 = v26 * v23;
                    const Vec<T> v35 = n.get(p3 + k);
                    const Vec<T> v36 = v35 * v2;
                    const Vec<T> v38 = v27 + v36;
                    const Vec<T> v17 = n.get(p4 + k);
                    const Vec<T> v40 = T(1.0) - v17;
                    const Vec<T> v41 = v17 * v40;
                    const Vec<T> v42 = v38 * v41;
                    const Vec<T> v28 = v26 * v17;
                    const Vec<T> v30 = v26 - v28;
                    const Vec<T> v37 = v35 * v17;
                    const Vec<T> v39 = v30 + v37;
                    n.put(p5 + k, v42);
                    n.put(p6 + k, v39);
                });
            }
        }
        s.adjoint(1, s.d_gates, s.ldd, s.d_before[0], 0, 1);
    }
};

// LEM
template <class T> struct Cell_471e8739bdda19e0 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, 4 * w, 0, 3);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.before[1] + r * w;
                auto *const p1 = s.slots + r * 4 * w;
                auto *const p2 = s.slots + 2 * w + r * 4 * w;
                auto *const p3 = s.after[1] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v5 = n.get(p0 + k);
                    const Vec<T> v32 = n.get(p1 + k);
                    const Vec<T> v33 = sigmoid<T>(v32);
                    const Vec<T> v34 = n.get(p2 + k);
                    const Vec<T> v35 = hyperbolic_tangent<T>(v34);
                    const Vec<T> v36 = v35 - v5;
                    const Vec<T> v37 = v33 * v36;
                    const Vec<T> v38 = v5 + v37;
                    n.put(p3 + k, v38);
                    n.put(p1 + k, v33);
                    n.put(p2 + k, v35);
                });
            }
        }
        s.apply(s.after[1], s.slots + 3 * w, 4 * w, 3, 4);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.before[0] + r * w;
                auto *const p1 = s.slots + w + r * 4 * w;
                auto *const p2 = s.slots + 3 * w + r * 4 * w;
                auto *const p3 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v4 = n.get(p0 + k);
                    const Vec<T> v30 = n.get(p1 + k);
                    const Vec<T> v31 = sigmoid<T>(v30);
                    const Vec<T> v41 = n.get(p2 + k);
                    const Vec<T> v42 = hyperbolic_tangent<T>(v41);
                    const Vec<T> v43 = v42 - v4;
                    const Vec<T> v44 = v31 * v43;
                    const Vec<T> v45 = v4 + v44;
                    n.put(p3 + k, v45);
                    n.put(p1 + k, v31);
                    n.put(p2 + k, v42);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + w + r * 4 * w;
                auto *const p2 = s.slots + 3 * w + r * 4 * w;
                auto *const p3 = s.d_after[1] + r * w;
                auto *const p4 = s.d_gates + 3 * w + r * s.ldd;
                auto *const p5 = s.spare + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v46 = n.get(p0 + k);
                    const Vec<T> v31 = n.get(p1 + k);
                    const Vec<T> v49 = v46 * v31;
                    const Vec<T> v42 = n.get(p2 + k);
                    const Vec<T> v52 = v42 * v42;
                    const Vec<T> v53 = T(1.0) - v52;
                    const Vec<T> v54 = v49 * v53;
                    const Vec<T> v47 = n.get(p3 + k);
                    n.put(p4 + k, v54);
                    n.put(p5 + k, v47);
                });
            }
        }
        s.adjoint(0, s.d_gates + 3 * w, s.ldd, s.spare, 3, 4);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.spare + r * w;
                auto *const p1 = s.slots + 2 * w + r * 4 * w;
                auto *const p2 = s.before[1] + r * w;
                auto *const p3 = s.slots + r * 4 * w;
                auto *const p4 = s.d_after[0] + r * w;
                auto *const p5 = s.slots + 3 * w + r * 4 * w;
                auto *const p6 = s.before[0] + r * w;
                auto *const p7 = s.slots + w + r * 4 * w;
                auto *const p8 = s.d_gates + r * s.ldd;
                auto *const p9 = s.d_gates + w + r * s.ldd;
                auto *const p10 = s.d_gates + 2 * w + r * s.ldd;
                auto *const p11 = s.d_before[1] + r * w;
                auto *const p12 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v55 = n.get(p0 + k);
                    const Vec<T> v35 = n.get(p1 + k);
                    const Vec<T> v5 = n.get(p2 + k);
                    const Vec<T> v36 = v35 - v5;
                    const Vec<T> v56 = v55 * v36;
                    const Vec<T> v33 = n.get(p3 + k);
                    const Vec<T> v63 = T(1.0) - v33;
                    const Vec<T> v64 = v33 * v63;
                    const Vec<T> v65 = v56 * v64;
                    const Vec<T> v46 = n.get(p4 + k);
                    const Vec<T> v42 = n.get(p5 + k);
                    const Vec<T> v4 = n.get(p6 + k);
                    const Vec<T> v43 = v42 - v4;
                    const Vec<T> v48 = v46 * v43;
                    const Vec<T> v31 = n.get(p7 + k);
                    const Vec<T> v66 = T(1.0) - v31;
                    const Vec<T> v67 = v31 * v66;
                    const Vec<T> v68 = v48 * v67;
                    const Vec<T> v57 = v55 * v33;
                    const Vec<T> v60 = v35 * v35;
                    const Vec<T> v61 = T(1.0) - v60;
                    const Vec<T> v62 = v57 * v61;
                    const Vec<T> v59 = v55 - v57;
                    const Vec<T> v49 = v46 * v31;
                    const Vec<T> v51 = v46 - v49;
                    n.put(p8 + k, v65);
                    n.put(p9 + k, v68);
                    n.put(p10 + k, v62);
                    n.put(p11 + k, v59);
                    n.put(p12 + k, v51);
                });
            }
        }
        s.adjoint(1, s.d_gates, s.ldd, s.d_before[0], 0, 3);
    }
};

// coRNN
template <class T> struct Cell_9bd88bb7d871c6cf {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.spare + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) { n.put(p0 + k, fill<T>(T(0.0))); });
            }
        }
        s.apply(s.before[0], s.slots, w, 0, 1);
        s.apply(s.before[1], s.spare, w, 1, 2);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.before[0] + r * w;
                auto *const p1 = s.before[1] + r * w;
                auto *const p2 = s.slots + r * w;
                auto *const p3 = s.spare + r * w;
                auto *const p4 = s.after[0] + r * w;
                auto *const p5 = s.after[1] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v1 = n.get(p0 + k);
                    const Vec<T> v2 = n.get(p1 + k);
                    const Vec<T> v21 = n.get(p2 + k);
                    const Vec<T> v7 = n.get(p3 + k);
                    const Vec<T> v22 = v21 + v7;
                    const Vec<T> v23 = hyperbolic_tangent<T>(v22);
                    const Vec<T> v11 = T(2.7) * v1;
                    const Vec<T> v24 = v23 - v11;
                    const Vec<T> v14 = T(4.7) * v2;
                    const Vec<T> v25 = v24 - v14;
                    const Vec<T> v26 = T(0.042) * v25;
                    const Vec<T> v27 = v2 + v26;
                    const Vec<T> v28 = T(0.042) * v27;
                    const Vec<T> v29 = v1 + v28;
                    n.put(p4 + k, v29);
                    n.put(p5 + k, v27);
                    n.put(p2 + k, v23);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[1] + r * w;
                auto *const p1 = s.d_after[0] + r * w;
                auto *const p2 = s.slots + r * w;
                auto *const p3 = s.d_gates + r * s.ldd;
                auto *const p4 = s.products[0].y + r * w;
                auto *const p5 = s.d_before[0] + r * w;
                auto *const p6 = s.d_before[1] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v31 = n.get(p0 + k);
                    const Vec<T> v30 = n.get(p1 + k);
                    const Vec<T> v33 = v30 * T(0.042);
                    const Vec<T> v34 = v31 + v33;
                    const Vec<T> v36 = v34 * T(0.042);
                    const Vec<T> v23 = n.get(p2 + k);
                    const Vec<T> v48 = v23 * v23;
                    const Vec<T> v50 = T(1.0) - v48;
                    const Vec<T> v51 = v36 * v50;
                    const Vec<T> v45 = v36 * T(2.7);
                    const Vec<T> v47 = v30 - v45;
                    const Vec<T> v40 = v36 * T(4.7);
                    const Vec<T> v42 = v34 - v40;
                    n.put(p3 + k, v51);
                    n.put(p4 + k, v51);
                    n.put(p5 + k, v47);
                    n.put(p6 + k, v42);
                });
            }
        }
        s.adjoint(1, s.d_gates, s.ldd, s.d_before[0], 0, 1);
        s.adjoint(0, s.products[0].y, w, s.d_before[1], 1, 2);
    }
};

// UnICORNN
template <class T> struct Cell_35c7dcdc8a4b6931 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, w, 0, 1);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.before[0] + r * w;
                auto *const p1 = s.own;
                auto *const p2 = s.before[1] + r * w;
                auto *const p3 = s.slots + r * w;
                auto *const p4 = s.after[0] + r * w;
                auto *const p5 = s.after[1] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v1 = n.get(p0 + k);
                    const Vec<T> v25 = n.get(p1 + k);
                    const Vec<T> v2 = n.get(p2 + k);
                    const Vec<T> v18 = n.get(p3 + k);
                    const Vec<T> v19 = hyperbolic_tangent<T>(v18);
                    const Vec<T> v20 = v19 + v1;
                    const Vec<T> v26 = v25 * v20;
                    const Vec<T> v27 = v2 - v26;
                    const Vec<T> v28 = v25 * v27;
                    const Vec<T> v29 = v1 + v28;
                    n.put(p4 + k, v29);
                    n.put(p5 + k, v27);
                    n.put(p3 + k, v19);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[1] + r * w;
                auto *const p1 = s.d_after[0] + r * w;
                auto *const p2 = s.own;
                auto *const p3 = s.slots + r * w;
                auto *const p4 = s.after[1] + r * w;
                auto *const p5 = s.before[0] + r * w;
                auto *const p6 = s.d_gates + r * s.ldd;
                auto *const p7 = s.d_before[1] + r * w;
                auto *const p8 = s.d_before[0] + r * w;
                auto *const p9 = s.d_own;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v31 = n.get(p0 + k);
                    const Vec<T> v30 = n.get(p1 + k);
                    const Vec<T> v25 = n.get(p2 + k);
                    const Vec<T> v33 = v30 * v25;
                    const Vec<T> v34 = v31 + v33;
                    const Vec<T> v38 = v34 * v25;
                    const Vec<T> v19 = n.get(p3 + k);
                    const Vec<T> v42 = v19 * v19;
                    const Vec<T> v43 = T(1.0) - v42;
                    const Vec<T> v44 = v38 * v43;
                    const Vec<T> v45 = -v44;
                    const Vec<T> v41 = v30 - v38;
                    const Vec<T> v27 = n.get(p4 + k);
                    const Vec<T> v32 = v30 * v27;
                    const Vec<T> v1 = n.get(p5 + k);
                    const Vec<T> v20 = v19 + v1;
                    const Vec<T> v36 = v34 * v20;
                    const Vec<T> v40 = v32 - v36;
                    n.put(p6 + k, v45);
                    n.put(p7 + k, v34);
                    n.put(p8 + k, v41);
                    add_to<T>(p9 + k, n, v40);
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 1);
    }
};

// FastGRNN
template <class T> struct Cell_28023e76a663c964 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, w, 0, 1);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.own + w;
                auto *const p1 = s.slots + r * w;
                auto *const p2 = s.own;
                auto *const p3 = s.own + 2 * w;
                auto *const p4 = s.own + 3 * w;
                auto *const p5 = s.before[0] + r * w;
                auto *const p6 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v34 = n.get(p0 + k);
                    const Vec<T> v22 = n.get(p1 + k);
                    const Vec<T> v33 = n.get(p2 + k);
                    const Vec<T> v37 = v22 + v33;
                    const Vec<T> v38 = sigmoid<T>(v37);
                    const Vec<T> v39 = T(1.0) - v38;
                    const Vec<T> v40 = v34 * v39;
                    const Vec<T> v35 = n.get(p3 + k);
                    const Vec<T> v41 = v40 + v35;
                    const Vec<T> v36 = n.get(p4 + k);
                    const Vec<T> v42 = v22 + v36;
                    const Vec<T> v43 = hyperbolic_tangent<T>(v42);
                    const Vec<T> v44 = v41 * v43;
                    const Vec<T> v1 = n.get(p5 + k);
                    const Vec<T> v45 = v38 * v1;
                    const Vec<T> v46 = v44 + v45;
                    n.put(p6 + k, v46);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.own + w;
                auto *const p2 = s.slots + r * w;
                auto *const p3 = s.own;
                auto *const p4 = s.own + 2 * w;
                auto *const p5 = s.own + 3 * w;
                auto *const p6 = s.before[0] + r * w;
                auto *const p7 = s.d_gates + r * s.ldd;
                auto *const p8 = s.d_before[0] + r * w;
                auto *const p9 = s.d_own;
                auto *const p10 = s.d_own + w;
                auto *const p11 = s.d_own + 2 * w;
                auto *const p12 = s.d_own + 3 * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v47 = n.get(p0 + k);
                    const Vec<T> v34 = n.get(p1 + k);
                    const Vec<T> v22 = n.get(p2 + k);
                    const Vec<T> v33 = n.get(p3 + k);
                    const Vec<T> v37 = v22 + v33;
                    const Vec<T> v38 = sigmoid<T>(v37);
                    const Vec<T> v39 = T(1.0) - v38;
                    const Vec<T> v40 = v34 * v39;
                    const Vec<T> v35 = n.get(p4 + k);
                    const Vec<T> v41 = v40 + v35;
                    const Vec<T> v51 = v47 * v41;
                    const Vec<T> v36 = n.get(p5 + k);
                    const Vec<T> v42 = v22 + v36;
                    const Vec<T> v43 = hyperbolic_tangent<T>(v42);
                    const Vec<T> v52 = v43 * v43;
                    const Vec<T> v53 = T(1.0) - v52;
                    const Vec<T> v54 = v51 * v53;
                    const Vec<T> v1 = n.get(p6 + k);
                    const Vec<T> v48 = v47 * v1;
                    const Vec<T> v50 = v47 * v43;
                    const Vec<T> v56 = v50 * v34;
                    const Vec<T> v58 = v48 - v56;
                    const Vec<T> v59 = v38 * v39;
                    const Vec<T> v60 = v58 * v59;
                    const Vec<T> v61 = v54 + v60;
                    const Vec<T> v49 = v47 * v38;
                    const Vec<T> v55 = v50 * v39;
                    n.put(p7 + k, v61);
                    n.put(p8 + k, v49);
                    add_to<T>(p9 + k, n, v60);
                    add_to<T>(p10 + k, n, v55);
                    add_to<T>(p11 + k, n, v50);
                    add_to<T>(p12 + k, n, v54);
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 1);
    }
};

// sLSTM
template <class T> struct Cell_15dc56fa34c7ac06 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, 4 * w, 0, 4);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + 3 * w + r * 4 * w;
                auto *const p1 = s.before[3] + r * w;
                auto *const p2 = s.slots + w + r * 4 * w;
                auto *const p3 = s.before[2] + r * w;
                auto *const p4 = s.slots + r * 4 * w;
                auto *const p5 = s.before[1] + r * w;
                auto *const p6 = s.slots + 2 * w + r * 4 * w;
                auto *const p7 = s.after[0] + r * w;
                auto *const p8 = s.after[1] + r * w;
                auto *const p9 = s.after[2] + r * w;
                auto *const p10 = s.after[3] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v43 = n.get(p0 + k);
                    const Vec<T> v44 = sigmoid<T>(v43);
                    const Vec<T> v7 = n.get(p1 + k);
                    const Vec<T> v45 = n.get(p2 + k);
                    const Vec<T> v46 = -v45;
                    const Vec<T> v47 = softplus<T>(v46);
                    const Vec<T> v48 = v7 - v47;
                    const Vec<T> v6 = n.get(p3 + k);
                    const auto v25 = v6 > T(0.0);
                    const Vec<T> v49 = n.get(p4 + k);
                    const Vec<T> v50 = maximum<T>(v48, v49);
                    const Vec<T> v51 = v25 ? v50 : v49;
                    const Vec<T> v52 = v48 - v51;
                    const auto v53 = v52 > T(0.0);
                    const Vec<T> v54 = v53 ? fill<T>(T(0.0)) : v52;
                    const Vec<T> v55 = exponential<T>(v54);
                    const Vec<T> v5 = n.get(p5 + k);
                    const Vec<T> v56 = v55 * v5;
                    const Vec<T> v57 = v49 - v51;
                    const Vec<T> v58 = exponential<T>(v57);
                    const Vec<T> v59 = n.get(p6 + k);
                    const Vec<T> v60 = hyperbolic_tangent<T>(v59);
                    const Vec<T> v61 = v58 * v60;
                    const Vec<T> v62 = v56 + v61;
                    const Vec<T> v63 = v44 * v62;
                    const Vec<T> v64 = v55 * v6;
                    const Vec<T> v65 = v64 + v58;
                    const Vec<T> v66 = v63 / v65;
                    n.put(p7 + k, v66);
                    n.put(p8 + k, v62);
                    n.put(p9 + k, v65);
                    n.put(p10 + k, v51);
                    n.put(p0 + k, v44);
                    n.put(p2 + k, v46);
                    n.put(p6 + k, v60);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[2] + r * w;
                auto *const p1 = s.d_after[0] + r * w;
                auto *const p2 = s.after[0] + r * w;
                auto *const p3 = s.after[2] + r * w;
                auto *const p4 = s.d_after[1] + r * w;
                auto *const p5 = s.slots + 3 * w + r * 4 * w;
                auto *const p6 = s.slots + 2 * w + r * 4 * w;
                auto *const p7 = s.slots + r * 4 * w;
                auto *const p8 = s.after[3] + r * w;
                auto *const p9 = s.before[2] + r * w;
                auto *const p10 = s.d_after[3] + r * w;
                auto *const p11 = s.before[3] + r * w;
                auto *const p12 = s.slots + w + r * 4 * w;
                auto *const p13 = s.before[1] + r * w;
                auto *const p14 = s.after[1] + r * w;
                auto *const p15 = s.d_gates + r * s.ldd;
                auto *const p16 = s.d_gates + w + r * s.ldd;
                auto *const p17 = s.d_gates + 2 * w + r * s.ldd;
                auto *const p18 = s.d_gates + 3 * w + r * s.ldd;
                auto *const p19 = s.d_before[1] + r * w;
                auto *const p20 = s.d_before[2] + r * w;
                auto *const p21 = s.d_before[3] + r * w;
                auto *const p22 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v69 = n.get(p0 + k);
                    const Vec<T> v67 = n.get(p1 + k);
                    const Vec<T> v66 = n.get(p2 + k);
                    const Vec<T> v72 = v67 * v66;
                    const Vec<T> v65 = n.get(p3 + k);
                    const Vec<T> v74 = v72 / v65;
                    const Vec<T> v76 = v69 - v74;
                    const Vec<T> v68 = n.get(p4 + k);
                    const Vec<T> v71 = v67 / v65;
                    const Vec<T> v44 = n.get(p5 + k);
                    const Vec<T> v80 = v71 * v44;
                    const Vec<T> v81 = v68 + v80;
                    const Vec<T> v60 = n.get(p6 + k);
                    const Vec<T> v82 = v81 * v60;
                    const Vec<T> v84 = v76 + v82;
                    const Vec<T> v49 = n.get(p7 + k);
                    const Vec<T> v51 = n.get(p8 + k);
                    const Vec<T> v57 = v49 - v51;
                    const Vec<T> v58 = exponential<T>(v57);
                    const Vec<T> v89 = v84 * v58;
                    const Vec<T> v6 = n.get(p9 + k);
                    const auto v25 = v6 > T(0.0);
                    const Vec<T> v70 = n.get(p10 + k);
                    const Vec<T> v91 = v70 - v89;
                    const Vec<T> v7 = n.get(p11 + k);
                    const Vec<T> v46 = n.get(p12 + k);
                    const Vec<T> v47 = softplus<T>(v46);
                    const Vec<T> v48 = v7 - v47;
                    const Vec<T> v52 = v48 - v51;
                    const auto v53 = v52 > T(0.0);
                    const Vec<T> v77 = v76 * v6;
                    const Vec<T> v5 = n.get(p13 + k);
                    const Vec<T> v92 = v81 * v5;
                    const Vec<T> v94 = v77 + v92;
                    const Vec<T> v54 = v53 ? fill<T>(T(0.0)) : v52;
                    const Vec<T> v55 = exponential<T>(v54);
                    const Vec<T> v95 = v94 * v55;
                    const Vec<T> v97 = v53 ? fill<T>(T(0.0)) : v95;
                    const Vec<T> v99 = v91 - v97;
                    const Vec<T> v101 = v25 ? fill<T>(T(0.0)) : v99;
                    const Vec<T> v102 = v89 + v101;
                    const auto v104 = v49 > v48;
                    const Vec<T> v100 = v25 ? v99 : fill<T>(T(0.0));
                    const auto v103 = v48 > v49;
                    const Vec<T> v106 = v100 * T(0.5);
                    const Vec<T> v109 = v103 ? fill<T>(T(0.0)) : v106;
                    const Vec<T> v110 = v104 ? v100 : v109;
                    const Vec<T> v112 = v102 + v110;
                    const Vec<T> v107 = v104 ? fill<T>(T(0.0)) : v106;
                    const Vec<T> v108 = v103 ? v100 : v107;
                    const Vec<T> v111 = v97 + v108;
                    const Vec<T> v114 = sigmoid<T>(v46);
                    const Vec<T> v115 = v111 * v114;
                    const Vec<T> v83 = v81 * v58;
                    const Vec<T> v85 = v60 * v60;
                    const Vec<T> v87 = T(1.0) - v85;
                    const Vec<T> v88 = v83 * v87;
                    const Vec<T> v62 = n.get(p14 + k);
                    const Vec<T> v79 = v71 * v62;
                    const Vec<T> v117 = T(1.0) - v44;
                    const Vec<T> v118 = v44 * v117;
                    const Vec<T> v119 = v79 * v118;
                    const Vec<T> v93 = v81 * v55;
                    const Vec<T> v78 = v76 * v55;
                    n.put(p15 + k, v112);
                    n.put(p16 + k, v115);
                    n.put(p17 + k, v88);
                    n.put(p18 + k, v119);
                    n.put(p19 + k, v93);
                    n.put(p20 + k, v78);
                    n.put(p21 + k, v111);
                    n.put(p22 + k, fill<T>(T(0.0)));
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 4);
    }
};

// MinGRU
template <class T> struct Cell_82f4e49908eb1679 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.before[0] + r * w;
                auto *const p1 = s.slots + r * 2 * w;
                auto *const p2 = s.slots + w + r * 2 * w;
                auto *const p3 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v2 = n.get(p0 + k);
                    const Vec<T> v0 = n.get(p1 + k);
                    const Vec<T> v5 = sigmoid<T>(v0);
                    const Vec<T> v1 = n.get(p2 + k);
                    const Vec<T> v6 = v1 - v2;
                    const Vec<T> v7 = v5 * v6;
                    const Vec<T> v8 = v2 + v7;
                    n.put(p3 + k, v8);
                    n.put(p1 + k, v5);
                    n.put(p2 + k, v6);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + w + r * 2 * w;
                auto *const p2 = s.slots + r * 2 * w;
                auto *const p3 = s.d_gates + r * s.ldd;
                auto *const p4 = s.d_gates + w + r * s.ldd;
                auto *const p5 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v9 = n.get(p0 + k);
                    const Vec<T> v6 = n.get(p1 + k);
                    const Vec<T> v10 = v9 * v6;
                    const Vec<T> v5 = n.get(p2 + k);
                    const Vec<T> v15 = T(1.0) - v5;
                    const Vec<T> v16 = v5 * v15;
                    const Vec<T> v17 = v10 * v16;
                    const Vec<T> v11 = v9 * v5;
                    const Vec<T> v13 = v9 - v11;
                    n.put(p3 + k, v17);
                    n.put(p4 + k, v11);
                    n.put(p5 + k, v13);
                });
            }
        }
    }
};

// MinLSTM
template <class T> struct Cell_0952ea4bf4d884b2 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.slots + 2 * w + r * 3 * w;
                auto *const p1 = s.slots + w + r * 3 * w;
                auto *const p2 = s.slots + r * 3 * w;
                auto *const p3 = s.before[0] + r * w;
                auto *const p4 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v2 = n.get(p0 + k);
                    const Vec<T> v1 = n.get(p1 + k);
                    const Vec<T> v10 = -v1;
                    const Vec<T> v11 = softplus<T>(v10);
                    const Vec<T> v0 = n.get(p2 + k);
                    const Vec<T> v7 = -v0;
                    const Vec<T> v8 = softplus<T>(v7);
                    const Vec<T> v13 = v11 - v8;
                    const Vec<T> v14 = sigmoid<T>(v13);
                    const Vec<T> v3 = n.get(p3 + k);
                    const Vec<T> v15 = v3 - v2;
                    const Vec<T> v16 = v14 * v15;
                    const Vec<T> v17 = v2 + v16;
                    n.put(p4 + k, v17);
                    n.put(p2 + k, v7);
                    n.put(p1 + k, v10);
                    n.put(p0 + k, v15);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + 2 * w + r * 3 * w;
                auto *const p2 = s.slots + w + r * 3 * w;
                auto *const p3 = s.slots + r * 3 * w;
                auto *const p4 = s.d_gates + r * s.ldd;
                auto *const p5 = s.d_gates + w + r * s.ldd;
                auto *const p6 = s.d_gates + 2 * w + r * s.ldd;
                auto *const p7 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v18 = n.get(p0 + k);
                    const Vec<T> v15 = n.get(p1 + k);
                    const Vec<T> v19 = v18 * v15;
                    const Vec<T> v10 = n.get(p2 + k);
                    const Vec<T> v11 = softplus<T>(v10);
                    const Vec<T> v7 = n.get(p3 + k);
                    const Vec<T> v8 = softplus<T>(v7);
                    const Vec<T> v13 = v11 - v8;
                    const Vec<T> v14 = sigmoid<T>(v13);
                    const Vec<T> v24 = T(1.0) - v14;
                    const Vec<T> v25 = v14 * v24;
                    const Vec<T> v26 = v19 * v25;
                    const Vec<T> v28 = sigmoid<T>(v7);
                    const Vec<T> v29 = v26 * v28;
                    const Vec<T> v31 = sigmoid<T>(v10);
                    const Vec<T> v32 = v26 * v31;
                    const Vec<T> v33 = -v32;
                    const Vec<T> v20 = v18 * v14;
                    const Vec<T> v22 = v18 - v20;
                    n.put(p4 + k, v29);
                    n.put(p5 + k, v33);
                    n.put(p6 + k, v22);
                    n.put(p7 + k, v20);
                });
            }
        }
    }
};

// AntisymmetricRNN
template <class T> struct Cell_a0075f6ad13617b8 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        s.apply(s.before[0], s.slots, w, 0, 1);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.before[0] + r * w;
                auto *const p1 = s.slots + r * w;
                auto *const p2 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v1 = n.get(p0 + k);
                    const Vec<T> v12 = n.get(p1 + k);
                    const Vec<T> v7 = T(0.01) * v1;
                    const Vec<T> v13 = v12 - v7;
                    const Vec<T> v14 = hyperbolic_tangent<T>(v13);
                    const Vec<T> v15 = T(0.01) * v14;
                    const Vec<T> v16 = v1 + v15;
                    n.put(p2 + k, v16);
                    n.put(p1 + k, v14);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + r * w;
                auto *const p2 = s.d_gates + r * s.ldd;
                auto *const p3 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v17 = n.get(p0 + k);
                    const Vec<T> v19 = v17 * T(0.01);
                    const Vec<T> v14 = n.get(p1 + k);
                    const Vec<T> v20 = v14 * v14;
                    const Vec<T> v22 = T(1.0) - v20;
                    const Vec<T> v23 = v19 * v22;
                    const Vec<T> v27 = v23 * T(0.01);
                    const Vec<T> v29 = v17 - v27;
                    n.put(p2 + k, v23);
                    n.put(p3 + k, v29);
                });
            }
        }
        s.adjoint(0, s.d_gates, s.ldd, s.d_before[0], 0, 1);
    }
};

// LipschitzRNN
template <class T> struct Cell_300894d35c81c034 {
    static void forward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.spare + r * 2 * w;
                auto *const p1 = s.spare + w + r * 2 * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    n.put(p0 + k, fill<T>(T(0.0)));
                    n.put(p1 + k, fill<T>(T(0.0)));
                });
            }
        }
        s.apply(s.before[0], s.spare, 2 * w, 0, 2);
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.before[0] + r * w;
                auto *const p1 = s.spare + r * 2 * w;
                auto *const p2 = s.slots + r * w;
                auto *const p3 = s.spare + w + r * 2 * w;
                auto *const p4 = s.after[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v1 = n.get(p0 + k);
                    const Vec<T> v4 = n.get(p1 + k);
                    const Vec<T> v7 = T(0.01) * v1;
                    const Vec<T> v8 = v4 - v7;
                    const Vec<T> v0 = n.get(p2 + k);
                    const Vec<T> v5 = n.get(p3 + k);
                    const Vec<T> v9 = v0 + v5;
                    const Vec<T> v10 = v9 - v7;
                    const Vec<T> v11 = hyperbolic_tangent<T>(v10);
                    const Vec<T> v12 = v8 + v11;
                    const Vec<T> v13 = T(0.01) * v12;
                    const Vec<T> v14 = v1 + v13;
                    n.put(p4 + k, v14);
                    n.put(p2 + k, v11);
                });
            }
        }
    }
    static void backward(Step<T> &s) {
        const int64_t w = s.width;
        for (int64_t r = 0; r < s.rows; r++) {
            {
                auto *const p0 = s.d_after[0] + r * w;
                auto *const p1 = s.slots + r * w;
                auto *const p2 = s.d_gates + r * s.ldd;
                auto *const p3 = s.products[0].y + r * 2 * w;
                auto *const p4 = s.products[0].y + w + r * 2 * w;
                auto *const p5 = s.d_before[0] + r * w;
                each_vector<T>(w, [&](int64_t k, auto n) {
                    const Vec<T> v15 = n.get(p0 + k);
                    const Vec<T> v17 = v15 * T(0.01);
                    const Vec<T> v11 = n.get(p1 + k);
                    const Vec<T> v18 = v11 * v11;
                    const Vec<T> v20 = T(1.0) - v18;
                    const Vec<T> v21 = v17 * v20;
                    const Vec<T> v24 = v21 + v17;
                    const Vec<T> v28 = v24 * T(0.01);
                    const Vec<T> v30 = v15 - v28;
                    n.put(p2 + k, v21);
                    n.put(p3 + k, v17);
                    n.put(p4 + k, v21);
                    n.put(p5 + k, v30);
                });
            }
        }
        s.adjoint(0, s.products[0].y, 2 * w, s.d_before[0], 0, 2);
    }
};

template <class T>
constexpr CellCode<T> generated[] = {
    {"81e66ac6755b840d",
     {1, 1, 1, 0, 1, 0, 0, 0, 1},
     Cell_81e66ac6755b840d<T>::forward,
     SLIMRNN_BACK(Cell_81e66ac6755b840d<T>::backward)},
    {"b96d139283199ad6",
     {1, 1, 1, 0, 1, 0, 0, 0, 1},
     Cell_b96d139283199ad6<T>::forward,
     SLIMRNN_BACK(Cell_b96d139283199ad6<T>::backward)},
    {"1297847f33fb4c8c",
     {1, 1, 1, 0, 1, 0, 0, 0, 1},
     Cell_1297847f33fb4c8c<T>::forward,
     SLIMRNN_BACK(Cell_1297847f33fb4c8c<T>::backward)},
    {"d27dc8d3fd9e1eda",
     {4, 4, 2, 0, 4, 4, 0, 0, 1},
     Cell_d27dc8d3fd9e1eda<T>::forward,
     SLIMRNN_BACK(Cell_d27dc8d3fd9e1eda<T>::backward)},
    {"f42f168378cd14e5",
     {4, 4, 2, 3, 4, 4, 0, 0, 1},
     Cell_f42f168378cd14e5<T>::forward,
     SLIMRNN_BACK(Cell_f42f168378cd14e5<T>::backward)},
    {"10c200720980c963",
     {3, 3, 1, 1, 3, 3, 1, 0, 2},
     Cell_10c200720980c963<T>::forward,
     SLIMRNN_BACK(Cell_10c200720980c963<T>::backward)},
    {"01a6b74566779d1e",
     {3, 3, 1, 0, 3, 3, 1, 0, 2},
     Cell_01a6b74566779d1e<T>::forward,
     SLIMRNN_BACK(Cell_01a6b74566779d1e<T>::backward)},
    {"faed35892f75b1c4",
     {3, 3, 1, 0, 3, 3, 1, 0, 2},
     Cell_faed35892f75b1c4<T>::forward,
     SLIMRNN_BACK(Cell_faed35892f75b1c4<T>::backward)},
    {"b706f000ae850661",
     {2, 2, 1, 0, 2, 2, 1, 0, 2},
     Cell_b706f000ae850661<T>::forward,
     SLIMRNN_BACK(Cell_b706f000ae850661<T>::backward)},
    {"471e8739bdda19e0",
     {4, 4, 2, 0, 4, 4, 1, 0, 2},
     Cell_471e8739bdda19e0<T>::forward,
     SLIMRNN_BACK(Cell_471e8739bdda19e0<T>::backward)},
    {"9bd88bb7d871c6cf",
     {1, 2, 2, 0, 1, 1, 1, 0, 2},
     Cell_9bd88bb7d871c6cf<T>::forward,
     SLIMRNN_BACK(Cell_9bd88bb7d871c6cf<T>::backward)},
    {"35c7dcdc8a4b6931",
     {1, 1, 2, 1, 1, 1, 0, 0, 1},
     Cell_35c7dcdc8a4b6931<T>::forward,
     SLIMRNN_BACK(Cell_35c7dcdc8a4b6931<T>::backward)},
    {"28023e76a663c964",
     {1, 1, 1, 4, 1, 1, 0, 0, 1},
     Cell_28023e76a663c964<T>::forward,
     SLIMRNN_BACK(Cell_28023e76a663c964<T>::backward)},
    {"15dc56fa34c7ac06",
     {4, 4, 4, 0, 4, 4, 0, 0, 1},
     Cell_15dc56fa34c7ac06<T>::forward,
     SLIMRNN_BACK(Cell_15dc56fa34c7ac06<T>::backward)},
    {"82f4e49908eb1679",
     {2, 0, 1, 0, 2, 2, 0, 0, 0},
     Cell_82f4e49908eb1679<T>::forward,
     SLIMRNN_BACK(Cell_82f4e49908eb1679<T>::backward)},
    {"0952ea4bf4d884b2",
     {3, 0, 1, 0, 3, 3, 0, 0, 0},
     Cell_0952ea4bf4d884b2<T>::forward,
     SLIMRNN_BACK(Cell_0952ea4bf4d884b2<T>::backward)},
    {"a0075f6ad13617b8",
     {1, 1, 1, 0, 1, 1, 0, 0, 1},
     Cell_a0075f6ad13617b8<T>::forward,
     SLIMRNN_BACK(Cell_a0075f6ad13617b8<T>::backward)},
    {"300894d35c81c034",
     {1, 2, 1, 0, 1, 1, 2, 0, 1},
     Cell_300894d35c81c034<T>::forward,
     SLIMRNN_BACK(Cell_300894d35c81c034<T>::backward)},
};
constexpr int generated_count = int(sizeof(generated<float>) / sizeof(generated<float>[0]));

}  // namespace SLIMRNN_ISA
}  // namespace slimrnn
