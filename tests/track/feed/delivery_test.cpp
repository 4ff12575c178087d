#include "lib/track/feed/delivery.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/temporary_folder.h"

namespace scaletrain::track {
namespace {

using Shortfalls = std::vector<Shortfall>;
using Numbers = std::vector<int>;

// A sink that fails as the test says, and the delivery of two files to it.
struct Delivered : test::TemporaryFolder {
  enum class Mood { kFine, kFull, kAway };

  class ListSink : public Sink<int> {
   public:
    explicit ListSink(Delivered& test) : test_(test) {}
    void write(std::span<const int> items) override {
      if (test_.mood == Mood::kFull) throw core::StorageError("the disk", "is full");
      if (test_.mood == Mood::kAway) throw TryAgain("the server", "does not answer");
      test_.taken.insert(test_.taken.end(), items.begin(), items.end());
    }
    void write_others(std::span<const int> items) {
      test_.others.insert(test_.others.end(), items.begin(), items.end());
    }
    void finish() override { ++test_.finished; }

   private:
    Delivered& test_;
  };

  explicit Delivered(bool keeps = false)
      : delivery({.what = "export to list",
                  .keeps = keeps,
                  .consequence = "training goes on",
                  .warn = [this](const std::string& line) { warnings.push_back(line); }},
                 [this] {
                   ++made;
                   return std::make_unique<ListSink>(*this);
                 }) {
    const auto parse = [](const nlohmann::ordered_json& line) {
      return line.contains("n") ? Numbers{line.at("n").get<int>()} : Numbers{};
    };
    delivery.follow<int>({.file = path / "a.jsonl", .batch = 2}, parse, &ListSink::write);
    delivery.follow<int>({.file = path / "b.jsonl", .batch = 1, .noun = "picture"}, parse,
                         &ListSink::write_others);
  }

  void write_numbers(const Numbers& numbers, const std::string& name = "a.jsonl") const {
    std::string text;
    for (const int number : numbers) text += "{\"n\":" + std::to_string(number) + "}\n";
    write(name, text);
  }

  // Pumps as at the end of a run until the delivery has finished.
  void drain() {
    do {
      delivery.pump(true);
      std::this_thread::yield();
    } while (!delivery.finish());
  }

  Mood mood = Mood::kFine;
  Numbers taken, others;
  std::vector<std::string> warnings;
  int made = 0, finished = 0;
  SinkDelivery<ListSink> delivery;
};

}  // namespace

TEST_CASE("items are written in the order of the file, and counted") {
  Delivered run;
  run.write("a.jsonl", "{\"n\":1}\n{\"other\":5}\n{\"n\":2}\n{\"n\":3}\n");
  run.delivery.pump(false);
  CHECK(run.taken == Numbers{1, 2, 3});
  CHECK(run.delivery.count() == 3);
  CHECK(run.delivery.missing().empty());
  CHECK(run.delivery.finish());
  CHECK(run.finished == 1);
  CHECK(run.warnings.empty());
}

TEST_CASE("items that a sink refuses are lost, with one warning, and later ones are written") {
  Delivered run;
  run.mood = Delivered::Mood::kFull;
  run.write_numbers({1, 2, 3});
  run.delivery.pump(false);
  run.mood = Delivered::Mood::kFine;
  run.write_numbers({1, 2, 3, 4});
  run.delivery.pump(false);
  CHECK(run.taken == Numbers{4});
  CHECK(run.delivery.missing() == Shortfalls{{"record", 3, true}});
  CHECK(run.delivery.count() == 4);
  CHECK(run.made == 1);
  CHECK(run.warnings ==
        std::vector<std::string>{"export to list: the disk: is full; training goes on"});
}

TEST_CASE("a sink that asks to try again gets the same items later, and nothing is lost") {
  Delivered run;
  run.mood = Delivered::Mood::kAway;
  run.write_numbers({1, 2, 3});
  run.delivery.pump(false);
  run.delivery.pump(false);  // within the pause: it is not asked
  CHECK(run.delivery.missing() == Shortfalls{{"record", 3, true}});
  CHECK_FALSE(run.delivery.finish());
  CHECK(run.delivery.count() == 3);  // one of them is not read yet
  run.mood = Delivered::Mood::kFine;
  run.drain();
  CHECK(run.taken == Numbers{1, 2, 3});
  CHECK(run.delivery.missing().empty());
  CHECK(run.warnings ==
        std::vector<std::string>{"export to list: the server: does not answer; it is tried again"});
}

TEST_CASE("a delivery that keeps its items loses none by an error") {
  Delivered run(/*keeps=*/true);
  run.mood = Delivered::Mood::kFull;
  run.write_numbers({1});
  run.delivery.pump(false);
  run.mood = Delivered::Mood::kFine;
  run.drain();
  CHECK(run.taken == Numbers{1});
  CHECK(run.delivery.missing().empty());
}

TEST_CASE("a second file has a write of its own, and its items are counted separately") {
  Delivered run;
  run.write_numbers({1, 2, 3});
  run.write_numbers({4, 5}, "b.jsonl");
  run.mood = Delivered::Mood::kFull;
  run.delivery.pump(false);
  CHECK(run.taken.empty());
  CHECK(run.others == Numbers{4, 5});
  CHECK(run.delivery.count() == 3);
  CHECK(run.delivery.missing() == Shortfalls{{"record", 3, true}});
}

TEST_CASE("if the first file became shorter, all are delivered again to a new sink") {
  Delivered run;
  run.write_numbers({1, 2});
  run.write_numbers({4}, "b.jsonl");
  run.delivery.pump(false);
  run.write_numbers({7});
  run.delivery.pump(false);
  CHECK(run.taken == Numbers{1, 2, 7});
  CHECK(run.others == Numbers{4, 4});
  CHECK(run.made == 2);
  CHECK(run.delivery.count() == 1);
  CHECK(run.delivery.missing().empty());
}

TEST_CASE("if another file became shorter, it alone is read again") {
  Delivered run;
  run.write_numbers({1, 2});
  run.write_numbers({4, 5}, "b.jsonl");
  run.delivery.pump(false);
  run.write_numbers({6}, "b.jsonl");
  run.delivery.pump(false);
  CHECK(run.taken == Numbers{1, 2});
  CHECK(run.others == Numbers{4, 5, 6});
  CHECK(run.made == 1);
}

}  // namespace scaletrain::track
