#include "lib/exchange/import_flags.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

TEST_CASE("every flag of import is read, and --set takes one value") {
  CLI::App app;
  exchange::ImportRequest request;
  exchange::add_import_flags(app, request);
  std::vector<std::string> words{"out",    "source", "b=2",   "--set",   "a=1",  "--set",
                                 "theirs", "--part", "model", "--model", "mine", "--worker"};
  app.parse(words);  // from the last to the first
  CHECK(request.source == "source");
  CHECK(request.out == "out");
  CHECK(request.part == "theirs");
  CHECK(request.model == "model");
  CHECK(request.worker == "mine");
  CHECK(request.settings == std::vector<std::string>{"a=1", "b=2"});
}
