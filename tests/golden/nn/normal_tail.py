#!/usr/bin/env python3
"""Prints the coefficients of src/eckart/nn/activations_simd.cpp, highest power first.

With Phi the normal distribution, G(x) = Phi(-x) exp(x^2 / 2) (1 + 2x) goes smoothly from 1/2 at 0
to 2 / sqrt(2 pi) at infinity. The polynomial in t = (x - 5) / (x + 5) interpolates it at Chebyshev's
points for x from 0 to 40, beyond which Phi(-x) is 0 in double.

Needs the PyPI package mpmath (made with 1.3.0):
    python3 normal_tail.py
"""
from mpmath import chebyfit, erfc, exp, mp, mpf, nstr, sqrt

mp.dps = 50
MIDDLE = mpf(5)
LAST = mpf(40)


def scaled_tail(t):
    x = MIDDLE * (1 + t) / (1 - t)
    return erfc(x / sqrt(2)) / 2 * exp(x * x / 2) * (1 + 2 * x)


coefficients, error = chebyfit(scaled_tail, [-1, (LAST - MIDDLE) / (LAST + MIDDLE)], 23, error=True)
for coefficient in coefficients:
    print(nstr(coefficient, 17))
print("# largest error", nstr(error, 3), "of a function from 0.5 to 0.86")
