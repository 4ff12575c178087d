#include "lib/train/rules/ledger_of_ranks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace scaletrain::train {
namespace {

// Rows of a rank that waited 1 s for data, computed for `compute` seconds and waited in collectives
// for the rest of 10 s.
core::RowSeconds rows_with(double compute) {
  core::RowSeconds rows{};
  rows[static_cast<std::size_t>(core::TimeRow::kDataWait)] = 1;
  rows[static_cast<std::size_t>(core::TimeRow::kBackward)] = compute;
  rows[static_cast<std::size_t>(core::TimeRow::kCommunication)] = 10 - 1 - compute;
  return rows;
}

// The maximum over the ranks of what each of them sends.
std::vector<double> sent_by(const std::vector<core::RowSeconds>& ranks) {
  std::vector<double> highest;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<double> own;
    append_for_ranks(own, ranks[rank], static_cast<int>(rank), static_cast<int>(ranks.size()));
    highest.resize(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) highest[i] = std::max(highest[i], own[i]);
  }
  return highest;
}

}  // namespace

TEST_CASE("the ledger's record is that of the slowest rank, with the mean") {
  const observe::LedgerRecord record =
      ledger_of_ranks(sent_by({rows_with(3), rows_with(8), rows_with(5)}));
  CHECK(record.rank == 1);
  CHECK(record.seconds == rows_with(8));
  REQUIRE(record.mean);
  CHECK((*record.mean)[static_cast<std::size_t>(core::TimeRow::kBackward)] ==
        doctest::Approx((3 + 8 + 5) / 3.0));
  CHECK(core::sum_of(*record.mean) == doctest::Approx(10));
  CHECK(record.straggler_s == 8 - 5);
}

TEST_CASE("a rank that starts or saves for longer is no straggler") {
  core::RowSeconds saves = rows_with(3);
  saves[static_cast<std::size_t>(core::TimeRow::kStartUp)] = 2;
  saves[static_cast<std::size_t>(core::TimeRow::kCheckpoint)] = 4;
  const observe::LedgerRecord record = ledger_of_ranks(sent_by({saves, rows_with(4)}));
  CHECK(record.rank == 0);
  CHECK(record.straggler_s == 4 - 3);
}

TEST_CASE("one rank is its own ledger, without a mean") {
  const observe::LedgerRecord record = ledger_of_ranks(sent_by({rows_with(3)}));
  CHECK(record.rank == 0);
  CHECK(record.seconds == rows_with(3));
  CHECK_FALSE(record.mean);
  CHECK_FALSE(record.straggler_s);
}

TEST_CASE("own times leave out exposed communication") {
  const observe::OwnTimes times = own_times(rows_with(3));
  CHECK(times.data == 1);
  CHECK(times.compute == 3);
  CHECK(times.checkpoint == 0);
  CHECK(take_own_times(/*waits=*/false) == core::RowSeconds{});  // this thread has no ledger
}

}  // namespace scaletrain::train
