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
  for (const char* const plain : {"", "a", "/~/x", "./~", "a~", "~two words", "~$x.docx"}) {
    CHECK(expand_home(plain) == plain);
    CHECK(home_fault(plain).empty());
  }
  CHECK(home_fault("~").empty());
  CHECK(home_fault("~root/x").empty());
  CHECK(expand_home("~nobody-has-this-name/x") == "~nobody-has-this-name/x");
  CHECK(home_fault("~nobody-has-this-name/x") ==
        "there is no user \"nobody-has-this-name\" on this machine");
  unsetenv("HOME");
  CHECK(expand_home("~/x").starts_with('/'));
  if (variable != nullptr) setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace scaletrain::core
