#include "launcher/output/streams.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

// "fcp" for to_file, to_console, prefixed; "-" where not: of each stream of each of two local ranks
// on the second of two nodes.
std::string chosen(const LaunchOptions& options) {
  Placement placement;
  placement.nproc = 2;
  placement.nnodes = 2;
  placement.node_rank = 1;
  std::string result;
  const auto show = [](const StreamChoice& choice) {
    return std::string(choice.to_file ? "f" : "-") + (choice.to_console ? "c" : "-") +
           (choice.prefixed ? "p" : "-");
  };
  for (const WorkerStreams& streams : choose_streams(options, placement)) {
    if (!result.empty()) result += " ";
    result += show(streams.standard_output) + "/" + show(streams.standard_error);
  }
  return result;
}

std::string streams_error(const LaunchOptions& options) {
  try {
    chosen(options);
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("without flags streams go to the console, with a log folder to files too") {
  CHECK(chosen({}) == "-c-/-c- -c-/-c-");
  CHECK(chosen({.log_dir = "logs"}) == "fc-/fc- fc-/fc-");
}

TEST_CASE("a redirected stream goes to its file only, a tee'd one to both with a prefix") {
  CHECK(chosen({.redirects = "1"}) == "f--/-c- f--/-c-");
  CHECK(chosen({.tee = "2"}) == "-c-/fcp -c-/fcp");
  CHECK(chosen({.redirects = "3", .tee = "1"}) == "fcp/f-- fcp/f--");
  CHECK(chosen({.redirects = "0:3", .tee = "1:1"}) == "f--/f-- fcp/-c-");
}

TEST_CASE("with /dev/null as the log folder there are no files") {
  CHECK(chosen({.log_dir = "/dev/null", .redirects = "1", .tee = "2"}) == "---/-cp ---/-cp");
}

TEST_CASE("the filters leave ranks out of the console, not out of files") {
  CHECK(chosen({.local_ranks_filter = "1"}) == "---/--- -c-/-c-");
  CHECK(chosen({.tee = "3", .ranks_filter = "2"}) == "fcp/fcp f-p/f-p");
  CHECK(chosen({.ranks_filter = "0,1"}) == "---/--- ---/---");
}

TEST_CASE("a local rank that this node does not have chooses nothing, as with torchrun") {
  CHECK(chosen({.tee = "1:1,7:1"}) == "-c-/-c- fcp/-c-");
  CHECK(chosen({.redirects = "0:3,2:3"}) == "f--/f-- -c-/-c-");
  CHECK(chosen({.local_ranks_filter = "1,9"}) == "---/--- -c-/-c-");
  CHECK(chosen({.local_ranks_filter = "9"}) == "---/--- ---/---");
  CHECK(chosen({.log_dir = "logs", .tee = "7:1"}) == "-c-/-c- -c-/-c-");
}

TEST_CASE("a choice that is none is refused") {
  CHECK(streams_error({.redirects = "4"}) ==
        "--redirects: \"4\" is not allowed\n  give a whole number from 0 to 3");
  CHECK(streams_error({.tee = "0:1,2"}) ==
        "--tee: \"0:1,2\" is not allowed\n"
        "  give 0, 1 (output), 2 (error) or 3 (both), or a list: 0:1,7:3");
  CHECK(streams_error({.tee = "x:1"}) ==
        "--tee: \"x\" is not allowed\n  give a whole number from 0 to 1000000");
  CHECK(streams_error({.tee = "7:4"}) ==
        "--tee: \"4\" is not allowed\n  give a whole number from 0 to 3");
  CHECK(streams_error({.local_ranks_filter = "a"}) ==
        "--local-ranks-filter: \"a\" is not allowed\n  give a whole number from 0 to 999999");
  CHECK(streams_error({.ranks_filter = "4"}) ==
        "--ranks-filter: \"4\" is not allowed\n  give a whole number from 0 to 3");
}

}  // namespace
}  // namespace scaletrain::launcher
