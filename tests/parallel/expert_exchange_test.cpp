#include "lib/parallel/expert_exchange.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>

#include "tests/dist/ranks.h"

namespace scaletrain::parallel {
namespace {

using namespace std::chrono_literals;
using Counts = units::ExpertCut::Counts;

}  // namespace

TEST_CASE("rows go to their ranks and gradients the way back, over memory and over the network") {
  for (const dist::CpuExchange exchange : {dist::CpuExchange::kShm, dist::CpuExchange::kGloo}) {
    CAPTURE(static_cast<int>(exchange));
    const auto results = testing::run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
      dist::Group group(env, at::kCPU, 30s, core::Beat(), {}, exchange);
      const units::ExpertCut cut = expert_cut(group);
      // Rank r has i rows for rank i, all of them r; rank 0 gets none.
      const Counts send{0, 1, 2}, receive(3, env.rank);
      const at::Tensor counts = cut.exchange_counts(at::tensor(send).view({3, 1}));
      std::string text = at::equal(counts, at::full({3, 1}, env.rank, at::kLong)) ? "" : "counts ";
      const at::Tensor rows = at::full({3, 2}, static_cast<float>(env.rank)).requires_grad_();
      const at::Tensor moved = cut.move(rows, send, receive);
      const at::Tensor expected = at::arange(3).repeat_interleave(env.rank).to(at::kFloat);
      if (!at::equal(moved, expected.unsqueeze(1).expand({-1, 2}))) text += "moved ";
      // Each rank weighs what it has got by its number.
      (moved * env.rank).sum().backward();
      const at::Tensor weights = at::tensor({1.0, 2.0, 2.0}, at::kFloat);
      if (!at::equal(rows.grad(), weights.unsqueeze(1).expand({3, 2}))) text += "gradient ";
      group.end("end");
      return text + "done";
    });
    for (const auto& result : results) CHECK(result.text == "done");
  }
}

}  // namespace scaletrain::parallel
