#include "lib/optim/swa_lr.h"

#include <doctest/doctest.h>

// tests/parity/schedule_test.py compares it with PyTorch's SWALR.
namespace scaletrain::optim {

TEST_CASE("the rate leaves the schedule's at the start and is another after the annealing") {
  SwaLr plan{.lr = 0.1, .start = 10, .anneal = 4};
  CHECK(swa_lr(plan, 0.5, 9) == 0.5);
  CHECK(swa_lr(plan, 0.5, 10) == 0.5);
  CHECK(swa_lr(plan, 0.5, 11) == doctest::Approx(0.441421));  // 0.1 + 0.4 * (1 + cos(pi / 4)) / 2
  CHECK(swa_lr(plan, 0.5, 12) == doctest::Approx(0.3));
  CHECK(swa_lr(plan, 0.5, 14) == doctest::Approx(0.1));
  CHECK(swa_lr(plan, 0.5, 99) == doctest::Approx(0.1));
  plan.is_linear = true;
  CHECK(swa_lr(plan, 0.5, 11) == doctest::Approx(0.4));
  plan.anneal = 0;
  CHECK(swa_lr(plan, 0.5, 10) == 0.1);
}

}  // namespace scaletrain::optim
