#include "lib/mirror/mirror.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <limits>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"

namespace scaletrain::mirror {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

using Doubles = std::chrono::duration<double>;

constexpr Doubles kEver{std::numeric_limits<double>::infinity()};

// A place that does what the test says, and notes what it got.
class FakePlace : public Place {
 public:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::string log;         // "put 3; keep 3; "
    int failures = 0;        // of the next puts
    bool is_closed = false;  // a put waits until it is open, or cancelled
    bool is_cancelled = false;
    bool is_at_it = false;  // in a put

    void set(bool Shared::*flag, bool value) {
      const std::lock_guard lock(mutex);
      this->*flag = value;
      changed.notify_all();
    }
    void wait_for(bool Shared::*flag) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return this->*flag; });
    }
    std::string said() {
      const std::lock_guard lock(mutex);
      return log;
    }
  };

  explicit FakePlace(Shared& shared) : shared_(shared) {}

  std::int64_t put(const OpenCheckpoint& checkpoint, const std::function<void()>& moved) override {
    std::unique_lock lock(shared_.mutex);
    shared_.is_at_it = true;
    shared_.changed.notify_all();
    shared_.changed.wait(lock, [&] { return !shared_.is_closed || shared_.is_cancelled; });
    shared_.is_at_it = false;
    if (shared_.is_cancelled) throw core::StorageError("the place", "is cancelled");
    moved();
    const std::int64_t step = checkpoint.manifest().step;
    if (shared_.failures > 0) {
      --shared_.failures;
      shared_.log += fmt::format("fail {}; ", step);
      throw core::StorageError("the place", "does not answer");
    }
    shared_.log += fmt::format("put {}; ", step);
    return checkpoint.bytes();
  }
  void retain(std::int64_t newest, const format::Retention& retention) override {
    const std::lock_guard lock(shared_.mutex);
    shared_.log += fmt::format("keep {} of {}; ", retention.last, newest);
  }
  void cancel() override { shared_.set(&Shared::is_cancelled, true); }

 private:
  Shared& shared_;
};

struct Setting {
  test::TemporaryFolder run;
  FakePlace::Shared place;

  std::unique_ptr<Mirror> mirror(milliseconds first_wait = milliseconds(1)) {
    return std::make_unique<Mirror>(std::make_unique<FakePlace>(place),
                                    format::Retention{.last = 2}, first_wait);
  }
  fs::path checkpoint(int step) const { return test::publish_sensible(run.path, step); }
};

// What next() gives until there is nothing: "3 behind 0; " or "failed; ".
std::string outcomes_of(Mirror& mirror) {
  std::string said;
  for (;;) {
    try {
      const auto copied = mirror.next();
      if (!copied) return said;
      CHECK(copied->seconds >= 0);
      said += fmt::format("{} behind {}; ", copied->step, copied->behind);
    } catch (const core::Error& error) {
      said += fmt::format("failed: {}; ", error.found());
    }
  }
}

bool finished(Mirror& mirror, Doubles limit = kEver, Doubles still = kEver) {
  return mirror.finish([] {}, limit, still);
}

}  // namespace

TEST_CASE("a checkpoint is copied, then what is not kept goes") {
  Setting setting;
  const auto mirror = setting.mirror();
  CHECK_FALSE(mirror->next().has_value());
  mirror->add(setting.checkpoint(1), 1);
  CHECK(finished(*mirror));
  CHECK(setting.place.said() == "put 1; keep 2 of 1; ");
  const auto copied = mirror->next();
  REQUIRE(copied.has_value());
  CHECK(copied->bytes == OpenCheckpoint(setting.checkpoint(1)).bytes());
}

TEST_CASE(
    "of checkpoints that are added during a copy only the newest is copied, and add() never "
    "waits") {
  Setting setting;
  const auto mirror = setting.mirror();
  setting.place.set(&FakePlace::Shared::is_closed, true);
  mirror->add(setting.checkpoint(1), 1);
  setting.place.wait_for(&FakePlace::Shared::is_at_it);
  for (const int step : {2, 3, 4}) mirror->add(setting.checkpoint(step), step);
  CHECK(outcomes_of(*mirror).empty());
  setting.place.set(&FakePlace::Shared::is_closed, false);
  CHECK(finished(*mirror));
  CHECK(setting.place.said() == "put 1; keep 2 of 1; put 4; keep 2 of 4; ");
  CHECK(outcomes_of(*mirror) == "1 behind 3; 4 behind 0; ");
}

TEST_CASE("a copy that fails is tried again, with the newest") {
  Setting setting;
  setting.place.failures = 3;
  const auto mirror = setting.mirror();
  mirror->add(setting.checkpoint(1), 1);
  std::string said;
  while (said.find("behind") == std::string::npos) said += outcomes_of(*mirror);
  CHECK(setting.place.said() == "fail 1; fail 1; fail 1; put 1; keep 2 of 1; ");
  CHECK(said ==
        "failed: does not answer; failed: does not answer; failed: does not answer; 1 behind 0; ");
}

TEST_CASE("the tries are further and further apart, and the end does not wait for the next one") {
  Setting setting;
  setting.place.failures = 1000;
  const auto mirror = setting.mirror(std::chrono::hours(1));
  mirror->add(setting.checkpoint(1), 1);
  std::string said;
  while (said.empty()) said += outcomes_of(*mirror);
  mirror->add(setting.checkpoint(2), 2);
  CHECK(setting.place.said() == "fail 1; ");
  CHECK(finished(*mirror));
  CHECK(setting.place.said() == "fail 1; fail 2; ");
  CHECK(outcomes_of(*mirror) == "failed: does not answer; ");
}

TEST_CASE("the end waits no longer than it may, nor for a place where nothing moves") {
  Setting setting;
  const auto mirror = setting.mirror();
  setting.place.set(&FakePlace::Shared::is_closed, true);
  mirror->add(setting.checkpoint(1), 1);
  CHECK_FALSE(finished(*mirror, milliseconds(80)));
  CHECK_FALSE(finished(*mirror, kEver, milliseconds(80)));
  int beats = 0;
  CHECK_FALSE(mirror->finish([&] { ++beats; }, milliseconds(120), kEver));
  CHECK(beats > 1);
}

TEST_CASE("a mirror that is given up ends what is under way") {
  Setting setting;
  setting.place.set(&FakePlace::Shared::is_closed, true);
  auto mirror = setting.mirror();
  mirror->add(setting.checkpoint(1), 1);
  setting.place.wait_for(&FakePlace::Shared::is_at_it);
  mirror.reset();
  CHECK(setting.place.said().empty());
}

TEST_CASE("a checkpoint that the run has removed is left out, a damaged one is reported once") {
  Setting setting;
  const auto mirror = setting.mirror();
  mirror->add(setting.run.path / "checkpoints/step-00000001", 1);
  CHECK(finished(*mirror));
  CHECK(outcomes_of(*mirror).empty());
  const fs::path damaged = setting.checkpoint(2);
  test::write_bytes(damaged / "state.json", "{}");
  mirror->add(damaged, 2);
  CHECK(finished(*mirror));
  CHECK(outcomes_of(*mirror).starts_with("failed: has 2 bytes"));
  CHECK(setting.place.said().empty());
}

}  // namespace scaletrain::mirror
