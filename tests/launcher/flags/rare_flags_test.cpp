#include "launcher/flags/rare_flags.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using Texts = std::vector<std::string>;

template <class Function>
std::string refusal_of(Function function) {
  try {
    function();
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("parse_filters cuts at commas, and two commas are one of the text") {
  CHECK(parse_filters("") == Texts{});
  CHECK(parse_filters("apple") == Texts{"apple"});
  CHECK(parse_filters("apple,orange") == Texts{"apple", "orange"});
  CHECK(parse_filters("a,,b,c") == Texts{"a,b", "c"});
  CHECK(parse_filters("a,") == Texts{"a", ""});
}

TEST_CASE("flags without effect are taken with a note, wrong values and Python's are refused") {
  CHECK(check_rare_flags({}) == Texts{});
  CHECK(check_rare_flags({.use_env = true}) == Texts{});
  CHECK(check_rare_flags({.event_log = "dynamic_rendezvous"}) == Texts{});
  CHECK(check_rare_flags({.monitor_interval = "5"}) ==
        Texts{"--monitor-interval has no effect: a worker's end is seen at once"});
  CHECK(check_rare_flags({.start_method = "fork"}) ==
        Texts{"--start-method has no effect: workers are programs, not Python functions"});
  CHECK(refusal_of([] { check_rare_flags({.monitor_interval = "often"}); }) ==
        "--monitor-interval: \"often\" is not allowed\n  give seconds: 0.1");
  CHECK(refusal_of([] { check_rare_flags({.monitor_interval = "-1"}); }) ==
        "--monitor-interval: \"-1\" is not allowed\n  give seconds: 0.1");
  CHECK(refusal_of([] { check_rare_flags({.start_method = "spwan"}); }) ==
        "--start-method: \"spwan\" is not allowed\n  use one of: spawn, fork, forkserver; did you "
        "mean \"spawn\"?");
  CHECK(refusal_of([] { check_rare_flags({.event_log = "consol"}); }) ==
        "--event-log-handler: \"consol\" is not allowed\n  use one of: null, console, "
        "dynamic_rendezvous; did you mean \"console\"?");
  CHECK(refusal_of([] { check_rare_flags({.logs_specs = "mine"}); }) ==
        "--logs-specs: names a Python class, and no Python runs here\n  choose with --log-dir, "
        "--redirects, --tee and the filters");
}

TEST_CASE("given_flags names what differs from the defaults") {
  CHECK(given_flags({}) == Texts{});
  CHECK(given_flags({.event_log = "console",
                     .stdout_filters = "a",
                     .stderr_filters = "b",
                     .monitor_interval = "1",
                     .start_method = "fork",
                     .logs_specs = "c",
                     .use_env = true})
            .size() == 7);
}

}  // namespace
}  // namespace scaletrain::launcher
