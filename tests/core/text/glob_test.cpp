#include "lib/core/text/glob.h"

#include <doctest/doctest.h>

#include <string>

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

TEST_CASE("a pattern fits a whole name, and a star stands for anything") {
  struct Case {
    std::string pattern, name;
    bool fits;
  };
  for (const Case& one : {Case{"fc.weight", "fc.weight", true},
                          {"fc.weight", "fc.weights", false},
                          {"fc.weight", "afc.weight", false},
                          {"fc", "fc.weight", false},
                          {"", "", true},
                          {"", "a", false},
                          {"a", "", false},
                          {"*", "", true},
                          {"*", "layer1.0.bn1.weight", true},
                          {"layer1.*", "layer1.0.bn1.weight", true},
                          {"layer1.*", "layer10.0.weight", false},
                          {"layer1*", "layer10.0.weight", true},
                          {"*.bias", "fc.bias", true},
                          {"*.bias", "bias", false},
                          {"*.attn.bias", "h.0.attn.c_attn.bias", false},
                          {"*.attn.bias", "h.0.attn.attn.bias", true},
                          {"a*b*c", "aXbYbZc", true},
                          {"a*b*c", "aXbYbZ", false},
                          {"**a**", "bab", true},
                          {"a.b", "aXb", false},
                          {"a?", "ab", false},
                          {"[ab]", "a", false}}) {
    CAPTURE(one.pattern);
    CAPTURE(one.name);
    CHECK((core::matches(one.pattern, one.name)) == one.fits);
  }
}

TEST_CASE("many stars take no exponential time") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  CHECK_FALSE(core::matches(pattern + "b", std::string(5000, 'a')));
}

TEST_CASE("one of several patterns is enough") {
  CHECK(core::matches_any({"a", "b*"}, "bc"));
  CHECK_FALSE(core::matches_any({"a", "b*"}, "c"));
  CHECK_FALSE(core::matches_any({}, ""));
}
