#include "launcher/flags/rdzv_conf.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("parse_rdzv_conf takes pairs of known names") {
  CHECK(parse_rdzv_conf("").empty());
  const auto conf = parse_rdzv_conf("join_timeout=60,is_host=1");
  CHECK(conf.at("join_timeout") == "60");
  CHECK(conf.at("is_host") == "1");
  for (const char* text : {"join_timeout", "=1", "join_timeout="}) {
    CHECK_THROWS_WITH(parse_rdzv_conf(text), ("--rdzv-conf: \"" + std::string(text) +
                                              "\" is not allowed\n  give KEY=VALUE,KEY=VALUE: "
                                              "join_timeout=600,last_call_timeout=30")
                                                 .c_str());
  }
  try {
    parse_rdzv_conf("join_timeot=60");
    FAIL("an unknown key was taken");
  } catch (const core::UsageError& error) {
    CHECK(error.found() == "\"join_timeot\" is not a key");
    CHECK(error.remedy().ends_with("did you mean \"join_timeout\"?"));
  }
}

TEST_CASE("torchrun's seconds count where no flag of ours was given") {
  AgentOptions options;
  apply_rdzv_conf(parse_rdzv_conf("join_timeout=60,last_call_timeout=5,heartbeat_timeout=7"),
                  options);
  CHECK(options.join_timeout == "60s");
  CHECK(options.last_call == "5s");
  CHECK(options.heartbeat_timeout == "7s");

  options = {};
  options.last_call = "2s";
  apply_rdzv_conf(parse_rdzv_conf("timeout=61,last_call_timeout=5"), options);
  CHECK(options.join_timeout == "61s");
  CHECK(options.last_call == "2s");
}

}  // namespace
}  // namespace scaletrain::launcher
