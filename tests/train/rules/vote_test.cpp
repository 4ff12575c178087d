#include "lib/train/rules/vote.h"

#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <vector>

#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;
using core::StopReason;
using train::Vote;
using train::VoteExchange;

struct Own {
  double loss_sum = 0;
  Vote vote;
};

std::string told(const train::Voted& voted) {
  const Vote& vote = voted.vote;
  return fmt::format("loss {} of {}, stop {}, digest {:016x}, {} skipped, {} s{}", voted.loss_sum,
                     vote.targets, static_cast<int>(vote.stop), vote.digest, vote.skipped,
                     vote.trained_s, vote.save ? ", a checkpoint" : "");
}

// What the ranks, which say `own` in their order, all hear.
std::string exchanged(const std::vector<Own>& own) {
  const auto results = testing::run_ranks(
      {.world_size = static_cast<int>(own.size())}, [&](const core::WorkerEnv& env) {
        dist::Group group(env, at::kCPU, std::chrono::seconds(30));
        const auto& [loss_sum, vote] = own[static_cast<std::size_t>(env.rank)];
        VoteExchange exchange(group, vote, at::full({}, loss_sum, at::kDouble));
        const at::Tensor& sums = exchange.sums();
        const std::span<const double> values(sums.const_data_ptr<double>(), VoteExchange::kSize);
        return told(train::read_votes(values));
      });
  for (const auto& result : results) CHECK(result.text == results[0].text);
  return results[0].text;
}

TEST_CASE("sums are of all ranks, the digest's over 64 bits, and the clock is rank 0's") {
  const Own one{1.5, {.targets = 32, .digest = 0xFEDCBA9876543211, .skipped = 3, .trained_s = 2.5}};
  CHECK(exchanged({one}) == "loss 1.5 of 32, stop 0, digest fedcba9876543211, 3 skipped, 2.5 s");
  // 0xfedcba9876543211 + 0x0123456789abcdf0 = 2^64 + 1: the low halves carry, the high ones
  // overflow.
  CHECK(exchanged({one,
                   {4, {.targets = 16, .digest = 0x0123456789ABCDF0, .trained_s = 9}},
                   {0.25, {.targets = 1, .skipped = 1, .trained_s = 7}}}) ==
        "loss 5.75 of 49, stop 0, digest 0000000000000001, 4 skipped, 2.5 s");
}

TEST_CASE("one rank's loss that is not finite is that of all, whichever it is") {
  for (std::size_t rank = 0; rank < 3; ++rank) {
    std::vector<Own> own(3);
    own[rank].loss_sum = HUGE_VAL;
    CHECK(exchanged(own) == "loss inf of 0, stop 0, digest 0000000000000000, 0 skipped, 0 s");
  }
}

TEST_CASE("a checkpoint that rank 0 asks for is asked for on all ranks") {
  CHECK(exchanged({{0, {.save = true}}, {}}) == exchanged({{}, {0, {.save = true}}}));
  CHECK(exchanged({{0, {.save = true}}, {}}).ends_with(" 0 s, a checkpoint"));
  CHECK(exchanged({{}, {}}).ends_with(" 0 s"));
}

TEST_CASE(
    "the bounds of a spike are rank 0's on all ranks, and say where loss and norm are above") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, std::chrono::seconds(30));
    std::string said;
    for (const double loss : {4.0, 3.0, HUGE_VAL}) {  // of each rank, over 2 targets together
      const Vote own{.targets = 1,
                     .bounds = train::SpikeBounds{3.5 + 9 * env.rank, 7 + 9.0 * env.rank}};
      VoteExchange exchange(group, own, at::full({}, loss, at::kDouble));
      const at::Tensor& sums = exchange.sums();
      const std::span<const double> values(sums.const_data_ptr<double>(),
                                           static_cast<std::size_t>(sums.numel()));
      const auto bounds = train::read_votes(values).vote.bounds.value();
      said += fmt::format("{} {} {}", bounds.loss, bounds.grad_norm,
                          train::norm_bound_among(sums).item<double>());
      for (const double norm : {7.0, 7.5, std::nan("")}) {
        const at::Tensor spikes = train::spikes_among(sums, at::full({}, norm, at::kDouble));
        said += fmt::format(" {}", spikes.item<double>());
      }
      said += "; ";
    }
    return said;
  });
  for (const auto& result : results)
    CHECK(result.text == "3.5 7 7 1 3 0; 3.5 7 7 0 2 0; 3.5 7 7 0 0 0; ");
}

TEST_CASE("a trace that rank 0 asks for is asked for on all ranks, with its number of steps") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, std::chrono::seconds(30));
    const Vote own{.trace_steps = env.rank == 0 ? 5 : 0};
    VoteExchange exchange(group, own, at::zeros({}, at::kDouble));
    const at::Tensor& sums = exchange.sums();
    const std::span<const double> values(sums.const_data_ptr<double>(), VoteExchange::kSize);
    return fmt::format("{}", train::read_votes(values).vote.trace_steps);
  });
  for (const auto& result : results) CHECK(result.text == "5");
}

TEST_CASE("the strongest stop reason of any rank applies to all") {
  const auto stops = [](std::vector<StopReason> reasons) {
    std::vector<Own> own;
    for (const StopReason reason : reasons) own.push_back({0, {.stop = reason}});
    const std::string text = exchanged(own);
    for (const StopReason reason :
         {StopReason::kNone, StopReason::kTerminate, StopReason::kInterrupt}) {
      if (text.find(fmt::format("stop {},", static_cast<int>(reason))) != std::string::npos) {
        return reason;
      }
    }
    FAIL("no reason in " << text);
    return StopReason::kNone;
  };
  const auto none = StopReason::kNone, terminate = StopReason::kTerminate,
             interrupt = StopReason::kInterrupt;
  CHECK(stops({none, none}) == none);
  CHECK(stops({none, terminate}) == terminate);
  CHECK(stops({terminate, terminate, none}) == terminate);
  CHECK(stops({terminate, interrupt, none}) == interrupt);
  CHECK(stops({interrupt, terminate}) == interrupt);
}

}  // namespace
