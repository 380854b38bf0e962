"""The struct table of flashmhc_ctypes.py against the header, through the C compiler."""
import ctypes
import os
import pathlib
import subprocess
import tempfile
import unittest

from flashmhc_ctypes import DTYPES, NORMS, OPS, STRUCTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODES = {**{f"FMHC_{header}": DTYPES[name] for header, name in zip(("BF16", "FP16", "FP32", "FP64"), DTYPES)},
         **{f"FMHC_{name.upper()}": code for name, code in OPS.items()},
         **{f"FMHC_NORM_{name.upper()}": code for name, code in NORMS.items()}}


class Layout(unittest.TestCase):
    def test_sizes_offsets_and_codes(self):
        wanted, prints = {}, []
        for name, struct in STRUCTS.items():
            wanted[f"sizeof({name})"] = ctypes.sizeof(struct)
            for field, _ in struct._fields_:
                wanted[f"offsetof({name}, {field})"] = getattr(struct, field).offset
        wanted.update(CODES)
        prints = "".join(f'printf("%s=%zu\\n", "{text}", (size_t){text});' for text in wanted)
        source = f"#include <flashmhc/flashmhc.h>\n#include <stdio.h>\nint main(void) {{ {prints} return 0; }}\n"
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "layout")
            program.with_suffix(".c").write_text(source)
            command = [os.environ.get("CC", "cc"), "-std=c11", "-I", ROOT / "include", "-o", program,
                       program.with_suffix(".c")]
            subprocess.run(command, check=True)
            lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")
        got = {text: int(value) for text, value in (line.rsplit("=", 1) for line in lines if line)}
        self.assertEqual(got, wanted)
        self.assertGreater(len(got), 100)


if __name__ == "__main__":
    unittest.main()
