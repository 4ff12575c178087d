#include "lib/core/text/home.h"

#include <doctest/doctest.h>
#include <pwd.h>

#include <cstdlib>
#include <string>

namespace scaletrain::core {
namespace {

TEST_CASE("a ~ at the start is a home, as in a shell") {
  const char* const variable = std::getenv("HOME");
  const std::string before = variable == nullptr ? "" : variable;
  setenv("HOME", "/users/me", 1);
  CHECK(expand_home("~") == "/users/me");
  CHECK(expand_home("~/runs/x") == "/users/me/runs/x");
  CHECK(expand_home("~root/x") == std::string(getpwnam("root")->pw_dir) + "/x");
  for (const char* const plain : {"", "a", "/~/x", "./~", "a~", "~nobody-has-this-name/x"}) {
    CHECK(expand_home(plain) == plain);
  }
  unsetenv("HOME");
  CHECK(expand_home("~/x").starts_with('/'));
  if (variable != nullptr) setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace scaletrain::core
