#include "lib/core/process/time_ledger.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

using scaletrain::core::kTimeRows;
using scaletrain::core::LedgerOfThread;
using scaletrain::core::RowSeconds;
using scaletrain::core::sum_of;
using scaletrain::core::TimeLedger;
using scaletrain::core::TimeMarks;
using scaletrain::core::TimeRow;
using scaletrain::core::TimeScope;

namespace {

std::int64_t fake_ns = 0;  // read by the ledgers of this file

std::int64_t read_fake_clock() { return fake_ns; }

void let_pass(int seconds) { fake_ns += seconds * std::int64_t{1000000000}; }

// "start_up 1, forward 2": the rows that are not 0.
std::string rows_text(const RowSeconds& seconds) {
  std::string text;
  for (std::size_t i = 0; i < kTimeRows; ++i) {
    if (seconds[i] == 0) continue;
    text += fmt::format("{}{} {:g}", text.empty() ? "" : ", ",
                        scaletrain::core::to_text(static_cast<TimeRow>(i)), seconds[i]);
  }
  return text;
}

// A queue whose marks are at the times of `passed`; those behind it are not known yet.
struct FakeQueue {
  std::vector<double> placed;  // times at which the device passes the marks
  std::size_t passed = 0;      // marks that it has passed
  double next_mark = 0;
};

class FakeMarks : public TimeMarks {
 public:
  explicit FakeMarks(FakeQueue& queue) : queue_(queue) {}
  void place() override { queue_.placed.push_back(queue_.next_mark); }
  std::optional<double> next(bool waits) override {
    if (waits) queue_.passed = queue_.placed.size();
    if (first_ + 1 >= queue_.passed) return std::nullopt;
    ++first_;
    return queue_.placed[first_] - queue_.placed[first_ - 1];
  }

 private:
  FakeQueue& queue_;
  std::size_t first_ = 0;
};

}  // namespace

TEST_CASE("a scope interrupts the row around it, and rows sum to the wall time") {
  const std::int64_t begin = fake_ns;
  TimeLedger ledger(read_fake_clock);
  const LedgerOfThread use(&ledger);
  let_pass(1);
  ledger.leave(TimeRow::kOther);  // start-up is over
  let_pass(2);
  {
    const TimeScope forward(TimeRow::kForward);
    let_pass(4);
    {
      const TimeScope wait(TimeRow::kCommunication);
      let_pass(8);
    }
    let_pass(16);
  }
  let_pass(32);
  const RowSeconds total = ledger.total();
  CHECK(rows_text(total) == "start_up 1, forward 20, exposed_communication 8, other 34");
  CHECK(sum_of(total) == doctest::Approx(static_cast<double>(fake_ns - begin) * 1e-9));
}

TEST_CASE("start-up, evaluation and checkpoints cover what happens inside them") {
  for (const TimeRow row : {TimeRow::kStartUp, TimeRow::kEvaluation, TimeRow::kCheckpoint}) {
    TimeLedger ledger(read_fake_clock);
    const LedgerOfThread use(&ledger);
    if (row != TimeRow::kStartUp) ledger.leave(TimeRow::kOther);
    {
      const TimeScope covering(row);
      for (const TimeRow inner : {TimeRow::kDataWait, TimeRow::kForward, TimeRow::kCommunication}) {
        const TimeScope scope(inner);
        let_pass(1);
      }
    }
    CHECK(rows_text(ledger.total()) == fmt::format("{} 3", scaletrain::core::to_text(row)));
  }
}

TEST_CASE("each call of take() has the time since the last one") {
  TimeLedger ledger(read_fake_clock);
  const LedgerOfThread use(&ledger);
  let_pass(1);
  CHECK(rows_text(ledger.take()) == "start_up 1");
  ledger.leave(TimeRow::kOther);
  const TimeScope scope(TimeRow::kOptimizer);
  let_pass(2);
  CHECK(rows_text(ledger.take()) == "optimizer 2");
  CHECK(rows_text(ledger.take()).empty());
  CHECK(rows_text(ledger.total()) == "start_up 1, optimizer 2");
}

TEST_CASE("a thread has no ledger unless it is given one") {
  TimeLedger ledger(read_fake_clock);
  const LedgerOfThread use(&ledger);
  ledger.leave(TimeRow::kOther);
  std::thread([&] {
    CHECK(TimeLedger::of_thread() == nullptr);
    const TimeScope nothing(TimeRow::kForward);
    CHECK(ledger.row() == TimeRow::kOther);
    const LedgerOfThread adopted(&ledger);
    const TimeScope backward(TimeRow::kBackward);
    CHECK(ledger.row() == TimeRow::kBackward);
  }).join();
  CHECK(ledger.row() == TimeRow::kOther);
  {
    const LedgerOfThread none(nullptr);
    CHECK(TimeLedger::of_thread() == nullptr);
  }
  CHECK(TimeLedger::of_thread() == &ledger);
}

TEST_CASE("an exception ends its scopes") {
  TimeLedger ledger(read_fake_clock);
  const LedgerOfThread use(&ledger);
  ledger.leave(TimeRow::kOther);
  try {
    const TimeScope scope(TimeRow::kBackward);
    throw 1;
  } catch (int) {
  }
  CHECK(ledger.row() == TimeRow::kOther);
}

TEST_CASE(
    "times of a device are booked once it has passed the marks, on the rows that were queued") {
  FakeQueue queue;
  TimeLedger ledger(read_fake_clock);
  const LedgerOfThread use(&ledger);
  let_pass(3);
  ledger.use(std::make_unique<FakeMarks>(queue));
  ledger.leave(TimeRow::kOther);
  queue.next_mark = 1;
  {
    const TimeScope forward(TimeRow::kForward);
    let_pass(100);  // the host's time does not matter
    queue.next_mark = 5;
  }
  queue.next_mark = 7;
  const TimeScope optimizer(TimeRow::kOptimizer);
  CHECK(rows_text(ledger.take()) == "start_up 3");  // the device has passed no mark
  queue.passed = 4;                                 // the marks at 0, 0, 1 and 5
  CHECK(rows_text(ledger.take()) == "forward 4, other 1");
  queue.next_mark = 10;
  CHECK(rows_text(ledger.take(/*waits=*/true)) == "optimizer 3, other 2");
  CHECK(sum_of(ledger.total()) == 3 + 10);  // start-up by the host, then all of the device
}
