#include "lib/track/events/event_command.h"

#include <doctest/doctest.h>

#include <array>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::track {
namespace {

Event failure() {
  return {.name = "failure", .payload = {{"event", "failure"}, {"run", "digits"}}};
}

}  // namespace

TEST_CASE("a command gets the event on standard input and in its environment") {
  const test::TemporaryFolder folder;
  const std::string out = folder.file("out");
  make_event_command("cat > '" + out + "'; echo $SCALETRAIN_EVENT $SCALETRAIN_RUN >> '" + out + "'")
      ->write(std::array{failure()});
  CHECK(folder.read("out") == "{\"event\":\"failure\",\"run\":\"digits\"}\nfailure digits\n");
}

TEST_CASE("a command that fails or takes too long is an error") {
  CHECK_THROWS_WITH_AS(make_event_command("exit 3")->write(std::array{failure()}),
                       "log.on_event: ended with exit code 3 for the event failure",
                       core::StorageError);
  const auto slow = make_event_command("sleep 600", std::chrono::milliseconds(500));
  CHECK_THROWS_WITH_AS(slow->write(std::array{failure()}),
                       "log.on_event: took more than 0.5 s for the event failure and was killed",
                       core::StorageError);
}

}  // namespace scaletrain::track
