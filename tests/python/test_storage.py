"""The rounding used by the numpy oracle, against hand-made cases and numpy's own casts."""
import unittest

import numpy as np

from storage import FORMATS, from_bits, round_to, to_bits


class Rounding(unittest.TestCase):
    def test_bf16_ties_go_to_even(self):
        # Spacing above 1 is 2^-7, so odd multiples of 2^-8 are ties.
        cases = {1 + 2.0**-8: 1.0, 1 + 3 * 2.0**-8: 1 + 2.0**-6, 1 + 2.0**-8 + 2.0**-40: 1 + 2.0**-7,
                 1 + 2.0**-8 - 2.0**-40: 1.0, 256.0 + 1: 256.0, 256.0 + 3: 260.0, 2 - 2.0**-8: 2.0}
        for value, wanted in cases.items():
            for sign in (1, -1):
                self.assertEqual(float(round_to(sign * value, "bf16")), sign * wanted, value)

    def test_subnormals_and_range(self):
        tiny = 2.0**-133  # smallest bf16 subnormal
        cases = {tiny: tiny, tiny / 2: 0.0, tiny * 0.5000001: tiny, tiny * 1.5: 2 * tiny, tiny * 2.5: 2 * tiny,
                 2.0**-126 - tiny / 4: 2.0**-126, FORMATS["bf16"][2]: FORMATS["bf16"][2],
                 2.0**128 - 2.0**119 - 2.0**90: FORMATS["bf16"][2], 2.0**128 - 2.0**119: np.inf, np.inf: np.inf}
        for value, wanted in cases.items():
            self.assertEqual(float(round_to(value, "bf16")), wanted, value)
            self.assertEqual(float(round_to(-value, "bf16")), -wanted, value)

    def test_nan_and_signed_zero(self):
        for storage in FORMATS:
            self.assertTrue(np.isnan(round_to(np.nan, storage)))
            self.assertTrue(np.signbit(round_to(-0.0, storage)))
            self.assertTrue(np.signbit(round_to(-1e-300, storage)))

    def test_f16_and_f32_match_numpy(self):
        rng = np.random.default_rng(1)
        bits = rng.integers(0, 2**64, 200_000, dtype=np.uint64).view(np.float64)
        near = np.ldexp(rng.standard_normal(200_000), rng.integers(-160, 140, 200_000))
        small = np.ldexp(rng.integers(-4096, 4096, 200_000) / 2.0, -24)  # every f16 subnormal and tie
        for storage, kind in (("f16", np.float16), ("f32", np.float32)):
            for x in (bits, near, small):
                with np.errstate(over="ignore", invalid="ignore"):
                    np.testing.assert_array_equal(round_to(x, storage), x.astype(kind).astype(np.float64))

    def test_every_bf16_value_is_kept(self):
        stored = np.arange(2**16, dtype=np.uint16)
        values = from_bits(stored, "bf16")
        np.testing.assert_array_equal(round_to(values, "bf16"), values)
        finite = np.isfinite(values)
        np.testing.assert_array_equal(to_bits(values[finite], "bf16"), stored[finite])


if __name__ == "__main__":
    unittest.main()
