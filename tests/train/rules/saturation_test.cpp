#include "lib/train/rules/saturation.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>

#include "lib/core/philox.h"

namespace scaletrain::train {
namespace {

struct Watched {
  double loss = 0, norm = 0;
};

// A healthy run: the loss falls from 2.3 to 0.3 with 10 % of noise, the norm from 3 to 0.5.
Watched healthy(int step, core::Philox& draws) {
  const auto noise = [&] {
    constexpr double kRange = 18446744073709551616.0;  // 2^64
    return 0.9 + 0.2 * static_cast<double>(draws.next_u64()) / kRange;
  };
  const double left = std::exp(-step / 300.0);
  return {(0.3 + 2 * left) * noise(), (0.5 + 2.5 * left) * noise()};
}

// The step of the first warning, and its text up to "has" or "have"; "" without one. From
// `planted` on `change` is made.
std::string first_warning(int number, int planted, const std::function<Watched(Watched)>& change) {
  constexpr int kSteps = 1000;
  Saturation saturation(saturation_steps(0, kSteps));
  core::Philox draws(1, core::DrawPurpose::kInit, 0, static_cast<std::uint64_t>(number));
  for (int step = 1; step <= kSteps; ++step) {
    Watched values = healthy(step, draws);
    if (step >= planted) values = change(values);
    const std::string text = saturation.step(step, values.loss, values.norm);
    if (text.empty()) continue;
    return fmt::format("{} {}", step - planted + 1, text.substr(9, text.find(" ha") - 9));
  }
  return "";
}

}  // namespace

TEST_CASE("a run without a change is noticed within 2 % of its steps, by its loss or its norm") {
  // 1 % of 1000 steps are 10: 20 is the fewest, which is 2 %.
  CHECK(first_warning(0, 500, [](Watched v) { return Watched{0.69, v.norm}; }) == "20 the loss");
  CHECK(first_warning(0, 500, [](Watched v) { return Watched{0, v.norm}; }) == "20 the loss");
  CHECK(first_warning(0, 500, [](Watched v) { return Watched{v.loss, 0}; }) == "20 the gradients");
  CHECK(first_warning(0, 500, [](Watched v) {
          return Watched{v.loss, 1e-4 * v.norm};
        }) == "20 the gradients");
  CHECK(first_warning(0, 500, [](Watched v) {
          return Watched{v.loss, 1};
        }) == "20 the gradient norm");
}

TEST_CASE("no healthy run of 50 is warned of") {
  for (int number = 0; number < 50; ++number) {
    CHECK(first_warning(number, 1001, nullptr) == "");
  }
}

TEST_CASE("gradients that vanish with the loss are a run that has learned its data") {
  const auto fitted = [](Watched v) { return Watched{1e-3 * v.loss, 1e-4 * v.norm}; };
  CHECK(first_warning(0, 500, fitted) == "");
}

TEST_CASE("each cause is warned of once, with its values") {
  Saturation saturation(3);
  std::string said;
  for (int step = 1; step <= 9; ++step) said += saturation.step(step, 0.5, step);
  CHECK(said ==
        "warning: the loss has not changed in 3 steps up to step 3: it is 0.5; look at the "
        "learning rate, frozen parameters and the targets");
  CHECK(saturation.step(10, std::numeric_limits<double>::quiet_NaN(), 0) == "");
}

TEST_CASE("nothing is looked for with 0 steps; 1 % of the run, at least 20, is the default") {
  Saturation saturation(0);
  for (int step = 1; step <= 100; ++step) CHECK(saturation.step(step, 1, 1) == "");
  CHECK(saturation_steps(0, 100) == 20);
  CHECK(saturation_steps(0, 90000) == 900);
  CHECK(saturation_steps(7, 90000) == 7);
}

}  // namespace scaletrain::train
