#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz.h"

void fuzz_failed(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}
