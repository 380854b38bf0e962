"""An installed FlashMHC serves find_package, add_subdirectory and pkg-config users, in C and C++."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"
BUILD = pathlib.Path(os.environ.get("FMHC_BUILD_DIR", SOURCE / "build" / "ci"))


def run(*command, **more):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **more)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.prefix = cls.root / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def library_folder(self):
        return next(self.prefix.rglob("libflashmhc.so")).parent

    def build_and_run(self, name, *options):
        build = self.root / name
        run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", *options)
        run("cmake", "--build", build, "--target", "use_c", "use_cpp")
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.library_folder()))
        for program in ("use_c", "use_cpp"):
            self.assertIn("0.1.0", run(build / program, env=environment))

    def test_find_package(self):
        self.build_and_run("installed", f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_add_subdirectory(self):
        self.build_and_run("subdirectory", f"-DFLASHMHC_SOURCE={SOURCE}")

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_pkg_config(self):
        environment = dict(os.environ, PKG_CONFIG_PATH=str(self.library_folder() / "pkgconfig"),
                           LD_LIBRARY_PATH=str(self.library_folder()))
        # The prefix of the file is that of configuration time: the caller moves it, as packagers do.
        flags = run("pkg-config", f"--define-variable=prefix={self.prefix}", "--cflags", "--libs", "flashmhc",
                    env=environment).split()
        for source, compiler in (("use.c", "cc"), ("use.cpp", "c++")):
            program = self.root / f"pkgconfig_{compiler.replace('+', 'p')}"
            run(compiler, CONSUMER / source, "-o", program, *flags)
            self.assertIn("0.1.0", run(program, env=environment))

    def test_installed_files(self):
        names = {path.relative_to(self.prefix).as_posix() for path in self.prefix.rglob("*") if path.is_file()}
        headers = {name for name in names if name.startswith("include/")}
        self.assertIn("include/flashmhc/flashmhc.h", headers)
        self.assertTrue(all(name.startswith("include/flashmhc/") for name in headers), headers)


if __name__ == "__main__":
    unittest.main()
