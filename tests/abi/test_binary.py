"""The library as a file, and its headers as text: exports, imports, dependencies, languages, stored interface.

`python3 test_binary.py --store` rewrites public_interface.txt after a deliberate change of the header.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
STORED = pathlib.Path(__file__).resolve().with_name("public_interface.txt")
LIBRARY = os.environ.get("FMHC_TEST_LIBRARY", "")
WITH_CUDA = os.environ.get("FMHC_TEST_CUDA", "OFF") == "ON"

# What would print, end the process, throw, read the environment or allocate.
FORBIDDEN = re.compile(
    r"^(__)?v?f?printf(_chk)?$|^f?put[sc]|^putchar|^fwrite|^write$|^perror|^std(out|err)$|^_ZSt4c(out|err|log)|^_ZNSo"
    r"|^abort$|^_?_?exit$|^_Exit$|^quick_exit|^__assert_fail|^raise$|terminate"
    r"|^__cxa_(throw|rethrow|allocate_exception)|^_ZSt\d+__throw_|^(secure_)?getenv$|^setenv|^setlocale|^(m|c|re)alloc$|^free$|^aligned_alloc|^posix_memalign"
    r"|^_Zn[wa]|^_Zd[la]|^pthread_create|^GOMP|^omp_")
SYSTEM_LIBRARIES = re.compile(r"^(libstdc\+\+|libm|libc|libgcc_s|ld-linux.*|libpthread|libdl|librt)\.so")
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-pedantic-errors", "-Werror"]


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def symbols(*options):
    lines = run("nm", "-D", *options, LIBRARY).splitlines()
    return {line.split()[-1].split("@")[0]: line.split()[-2] for line in lines}


def public_interface():
    """One line a declaration of flashmhc.h, without comments and with single blanks."""
    text = (INCLUDE / "flashmhc" / "flashmhc.h").read_text()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    macros = re.findall(r"^#define (FMHC_(?:ABI|VERSION_\w+) \d+)$", text, flags=re.M)
    functions = re.findall(r"FMHC_API ([^;{}#]+);", text)
    types = re.findall(r"typedef ((?:enum|struct) \w+ \{[^{}]*\})", text)
    lines = (" ".join(entry.split()) for entry in [*macros, *types, *functions])
    return "\n".join(sorted(lines)) + "\n"


class Binary(unittest.TestCase):
    def test_exports_are_the_functions_of_the_header(self):
        exported = {name for name, kind in symbols("--defined-only").items() if kind != "A"}
        declared = set(re.findall(r"^(?:\w+ |const char\* )(fmhc_\w+)\(", public_interface(), flags=re.M))
        self.assertEqual(exported, declared)
        self.assertGreater(len(declared), 15)

    @unittest.skipIf(WITH_CUDA, "the CUDA runtime is linked in and has imports of its own")
    def test_nothing_prints_ends_throws_or_allocates(self):
        found = [name for name in symbols("--undefined-only") if FORBIDDEN.search(name)]
        self.assertEqual(found, [])

    def test_the_forbidden_list_recognises(self):
        for name in ("printf", "__printf_chk", "fprintf", "puts", "putchar", "abort", "exit", "_exit", "_ZSt4cout",
                     "_ZSt9terminatev", "__cxa_throw", "getenv", "malloc", "_Znwm", "_ZdlPvm", "GOMP_parallel"):
            self.assertRegex(name, FORBIDDEN)
        for name in ("snprintf", "vsnprintf", "memcpy", "exp"):
            self.assertNotRegex(name, FORBIDDEN)

    def test_only_system_libraries_are_needed(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", LIBRARY))
        self.assertEqual([name for name in needed if not SYSTEM_LIBRARIES.match(name)], [])
        self.assertTrue(needed)


class Headers(unittest.TestCase):
    def test_stored_interface(self):
        """A difference is a change for every user: store it on purpose, with --store."""
        self.maxDiff = None
        self.assertEqual(public_interface(), STORED.read_text())

    def test_each_header_compiles_alone(self):
        c_compilers = {os.environ.get("CC", "cc"), "clang"} - {"" if shutil.which("clang") else "clang"}
        cxx_compilers = {os.environ.get("CXX", "c++"), "clang++"} - {"" if shutil.which("clang++") else "clang++"}
        cxx = ["-std=c++20", "-fno-exceptions", "-fno-rtti", "-x", "c++"]
        compiled = 0
        for header, language, compilers in (("flashmhc.h", ["-std=c11", "-x", "c"], c_compilers),
                                            ("flashmhc.h", cxx, cxx_compilers), ("flashmhc.hpp", cxx, cxx_compilers)):
            for compiler in compilers:
                with self.subTest(header=header, compiler=compiler, language=language):
                    run(compiler, *language, *WARNINGS, "-fsyntax-only", "-I", INCLUDE,
                        "-include", INCLUDE / "flashmhc" / header, "/dev/null")
                    compiled += 1
        self.assertEqual(compiled, len(c_compilers) + 2 * len(cxx_compilers))
        print(f"{compiled} compilations, with {', '.join(sorted(c_compilers | cxx_compilers))}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--store"]:
        STORED.write_text(public_interface())
    else:
        unittest.main()
