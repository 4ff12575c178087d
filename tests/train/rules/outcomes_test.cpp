#include "lib/train/rules/outcomes.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <thread>

#include "lib/core/error.h"
#include "lib/dist/device.h"
#include "tests/count_reads.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using train::Outcomes;

dist::Group alone(at::Device device = at::kCPU) { return {{}, device, std::chrono::seconds(1)}; }

// "3: 1.5 2.5" for facts 3 and these sums, "-" for nullopt.
template <class Optional>
std::string text_of(const Optional& outcome) {
  if (!outcome) return "-";
  std::string text = std::to_string(outcome->facts) + ":";
  for (const double value : outcome->sums) text += " " + std::to_string(value).substr(0, 3);
  return text;
}

void send(Outcomes<int>& outcomes, int step) {
  const at::Tensor sums = at::tensor({step + 0.5, 2.0 * step}, at::kDouble);
  outcomes.push(sums, step);
  sums.fill_(9);  // what comes later does not change what was sent
}

TEST_CASE("on a CPU an outcome is there at once") {
  dist::Group group = alone();
  Outcomes<int> outcomes(group);
  CHECK(text_of(outcomes.next()) == "-");
  for (const int step : {1, 2, 3}) {
    send(outcomes, step);
    CHECK(text_of(outcomes.next()) ==
          text_of(std::make_optional(Outcomes<int>::Outcome{step, {step + 0.5, 2.0 * step}})));
    CHECK(text_of(outcomes.next()) == "-");
  }
  CHECK(text_of(outcomes.drain()) == "-");
}

TEST_CASE("a late outcome comes one step later, and the last one when it is asked for") {
  dist::Group group = alone();
  Outcomes<int> outcomes(group, /*late=*/true);
  send(outcomes, 1);
  CHECK(text_of(outcomes.next()) == "-");
  send(outcomes, 2);
  CHECK(text_of(outcomes.next()) == "1: 1.5 2.0");
  CHECK(text_of(outcomes.next()) == "-");
  send(outcomes, 3);
  send(outcomes, 4);  // two at once: none is lost
  CHECK(text_of(outcomes.next()) == "2: 2.5 4.0");
  CHECK(text_of(outcomes.next()) == "3: 3.5 6.0");
  CHECK(text_of(outcomes.next()) == "-");
  CHECK(text_of(outcomes.drain()) == "4: 4.5 8.0");
  CHECK(text_of(outcomes.drain()) == "-");
  send(outcomes, 5);  // training goes on
  CHECK(text_of(outcomes.next()) == "-");
  CHECK(text_of(outcomes.drain()) == "5: 5.5 10.");
}

TEST_CASE("a buffer is used again where the length stays") {
  dist::Group group = alone();
  Outcomes<int> outcomes(group, /*late=*/true);
  std::vector<at::Tensor> all;
  all.reserve(6);
  for (int step = 0; step < 6; ++step) {
    all.push_back(at::full({step < 3 ? 2 : 4}, step + 0.5, at::kDouble));
  }
  const int buffers = testing::count_calls("aten::empty", [&] {
    for (int step = 0; step < 6; ++step) {
      outcomes.push(all[static_cast<std::size_t>(step)], step);
      const auto outcome = outcomes.next();
      CHECK(outcome.has_value() == (step > 0));
      if (outcome) CHECK(outcome->sums == std::vector<double>(step <= 3 ? 2 : 4, step - 0.5));
    }
  });
  CHECK(buffers == 4);  // two of each length
}

TEST_CASE("nothing is read to the host by way of a tensor, late or not") {
  dist::Group group = alone();
  for (const bool late : {false, true}) {
    Outcomes<int> outcomes(group, late);
    CHECK(testing::count_reads([&] {
            for (int step = 0; step < 3; ++step) {
              send(outcomes, step);
              (void)outcomes.next();
            }
            while (outcomes.drain()) {
            }
          }) == 0);
  }
  CHECK(testing::count_reads([] {
          (void)at::ones({}).item<float>();
          if (at::ones({}).ge(0).all().item<bool>()) (void)at::ones({2})[0].item<double>();
        }) == 3);
}

// On a device a collective that was aborted leaves anything in the tensors that it was to write.
TEST_CASE("after a failed collective no outcome is handed over") {
  const auto results = testing::run_ranks({}, [](const core::WorkerEnv& env) -> std::string {
    dist::Group group(env, at::kCPU, std::chrono::seconds(30));
    if (env.rank == 1) return "gone";
    Outcomes<int> outcomes(group);
    send(outcomes, 1);
    const dist::Pending lost = group.all_reduce_sum(at::ones({1}), "lost");
    const auto stopped = [](const auto& body) {
      try {
        body();
      } catch (const core::StoppedError&) {
        return true;
      }
      return false;
    };
    while (!stopped([&] { group.check(); })) std::this_thread::yield();
    return stopped([&] { (void)outcomes.next(); }) ? "stopped" : "handed over";
  });
  CHECK(results[0].text == "stopped");
}

TEST_CASE("on a device the values are those of the moment of the push" *
          doctest::skip(!std::filesystem::exists("/dev/nvidiactl"))) {
  dist::Group group = alone(dist::choose_device("cuda", {.rank = 0, .ranks = 1}));
  Outcomes<int> outcomes(group);
  const at::Tensor sums = at::zeros({2}, at::TensorOptions(at::kDouble).device(group.device()));
  for (int step = 0; step < 20; ++step) {
    sums.fill_(step);
    outcomes.push(sums, step);
    const auto outcome = outcomes.next();
    CHECK(outcome.has_value() == (step > 0));
    if (outcome) CHECK(outcome->sums == std::vector<double>(2, step - 1));
  }
  CHECK(outcomes.drain()->sums == std::vector<double>(2, 19));
}

}  // namespace
