// One test case that runs and one that does not, for suites_test.py.
#include <doctest/doctest.h>

TEST_CASE("a test that runs") { CHECK(true); }

TEST_CASE("a test that needs what is not there" * doctest::skip(true)) { CHECK(false); }
