/* Preloaded into a program that uses the mutant build: chooses the fault named by FMHC_TEST_MUTANT before
 * main, so that neither the library nor the command line tool has to know of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void select_mutant(void) {
  const char* number = getenv("FMHC_TEST_MUTANT");
  if (number == NULL) return;
  void (*set)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "fmhc_test_set_mutant");
  if (set == NULL) {
    fputs("FMHC_TEST_MUTANT is set, but this program does not use the mutant build\n", stderr);
    _Exit(99);
  }
  set(atoi(number));
}
