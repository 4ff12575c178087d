#include "lib/track/feed/feed.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"

namespace scaletrain::track {
namespace {

using Shortfalls = std::vector<Shortfall>;
using Made = std::function<std::unique_ptr<Sink<int>>()>;

std::unique_ptr<Feed> feed_of(const test::TemporaryFolder& folder, const Made& make) {
  auto delivery =
      std::make_unique<SinkDelivery<Sink<int>>>(DeliveryOptions{.what = "export to test",
                                                                .consequence = "training goes on",
                                                                .warn = [](const std::string&) {}},
                                                make);
  const auto parse = [](const nlohmann::ordered_json& line) {
    return std::vector<int>{line.at("n").get<int>()};
  };
  delivery->follow<int>({.file = folder.path / "a.jsonl"}, parse, &Sink<int>::write);
  return std::make_unique<Feed>(std::move(delivery));
}

core::SteadyTime in_a_minute() { return core::now() + std::chrono::minutes(1); }

}  // namespace

TEST_CASE("a feed that is ended passes on all that is in the file") {
  const test::TemporaryFolder folder;
  folder.write("a.jsonl", "{\"n\":1}\n{\"n\":2}\n");
  class Quiet : public Sink<int> {
    void write(std::span<const int>) override {}
  };
  const auto feed = feed_of(folder, [] { return std::make_unique<Quiet>(); });
  feed->end();
  CHECK(feed->wait_until(in_a_minute()));
  CHECK(feed->delivery().missing().empty());
}

TEST_CASE("a sink that is stuck delays its own feed only, and what it did not take is counted") {
  const test::TemporaryFolder folder;
  folder.write("a.jsonl", "{\"n\":1}\n{\"n\":2}\n");
  std::promise<void> release;
  class Stuck : public Sink<int> {
   public:
    explicit Stuck(std::shared_future<void> released) : released_(std::move(released)) {}
    void write(std::span<const int>) override { released_.wait(); }

   private:
    std::shared_future<void> released_;
  };
  const std::shared_future<void> released = release.get_future().share();
  const auto stuck = feed_of(folder, [&] { return std::make_unique<Stuck>(released); });
  stuck->end();
  CHECK_FALSE(stuck->wait_until(core::now()));
  CHECK(stuck->delivery().missing() == Shortfalls{{"record", 2, true}});
  CHECK(stuck->delivery().count() == 2);
  release.set_value();
  CHECK(stuck->wait_until(in_a_minute()));
  CHECK(stuck->delivery().missing().empty());
}

}  // namespace scaletrain::track
