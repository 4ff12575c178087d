#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "tests/parallel/compress/bucket_job.h"

namespace {

using namespace scaletrain;
using namespace testing;

// Of a matrix and what the ranks have of it, in doubles by LAPACK's QR of each factor.
at::Tensor low_rank_mean(const std::vector<at::Tensor>& of_ranks, at::Tensor& q) {
  const auto orthonormal = [](const at::Tensor& factor) {
    return std::get<0>(at::linalg_qr(factor));
  };
  const at::Tensor mean = at::stack(of_ranks).mean(0);
  const at::Tensor p = orthonormal(mean.mm(orthonormal(q)));
  q = mean.t().mm(p);
  return p.mm(q.t());
}

TEST_CASE("powersgd sends two factors of each matrix that is worth it, and the rest later") {
  check_ranks(
      [](const core::WorkerEnv& env) -> std::string {
        BucketJob job(env, "powersgd");
        const auto state = job.bucket->state();
        if (state.size() != 4) return fmt::format("{} tensors", state.size());
        std::map<std::string, at::Tensor> q;
        std::map<std::string, std::vector<at::Tensor>> errors;
        for (const Slot& slot : slots()) {
          if (!state.contains("q/" + slot.name)) continue;
          q[slot.name] = state.at("q/" + slot.name).tensor.to(at::kDouble);
          errors[slot.name].resize(static_cast<std::size_t>(env.world_size),
                                   at::zeros({slot.rows, slot.columns()}, at::kDouble));
        }
        for (int step = 0; step < 4; ++step) {
          const at::Tensor flat = gradient(env.rank, step);
          exchange(*job.bucket, flat);
          for (const Slot& slot : slots()) {
            std::vector<at::Tensor> of_ranks;
            for (int rank = 0; rank < env.world_size; ++rank) {
              of_ranks.push_back(
                  gradient(rank, step).narrow(0, slot.begin, slot.elements).to(at::kDouble));
            }
            at::Tensor expected = at::stack(of_ranks).mean(0);
            if (q.contains(slot.name)) {
              auto& own = errors.at(slot.name);
              for (std::size_t i = 0; i < own.size(); ++i)
                own[i] = own[i] + of_ranks[i].view_as(own[i]);
              expected = low_rank_mean(own, q.at(slot.name));
              for (at::Tensor& error : own) error = error - expected;
            }
            const double difference =
                largest_difference(flat.narrow(0, slot.begin, slot.elements), numbers(expected));
            if (!(difference < 1e-5)) {
              return fmt::format("step {}, {}: {} apart", step, slot.name, difference);
            }
          }
        }
        return "same";
      },
      "same");
}

TEST_CASE("powersgd gives the mean of matrices of its rank as it is") {
  check_ranks(
      [](const core::WorkerEnv& env) -> std::string {
        BucketJob job(env, "powersgd");
        const at::Tensor flat = gradient(env.rank, 0);
        const at::Tensor left = gradient(0, 1).narrow(0, 0, 80).view({40, 2});
        at::Tensor mean = at::zeros({40, 30});
        for (int rank = 0; rank < env.world_size; ++rank) {
          const at::Tensor own = left.mm(gradient(rank, 2).narrow(0, 0, 60).view({2, 30}));
          mean += own / env.world_size;
          if (rank == env.rank) flat.narrow(0, 0, 1200).view({40, 30}).copy_(own);
        }
        exchange(*job.bucket, flat);
        const double difference = largest_difference(flat.narrow(0, 0, 1200), numbers(mean));
        return difference < 1e-5 ? "same" : fmt::format("{} apart", difference);
      },
      "same");
}

// Factors of 3 x 7 have 10 elements, twice of which are one less than 21; of 4 x 4 they have 8.
TEST_CASE("powersgd is worth it where the factors are less than half of the matrix") {
  const std::vector<Slot> matrices{{.name = "worth", .begin = 0, .elements = 21, .rows = 3},
                                   {.name = "not", .begin = 21, .elements = 16, .rows = 4}};
  const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    BucketJob job(env, "powersgd");
    const auto bucket = parallel::make_power_sgd(job.wire, matrices, at::kCPU, 1, 7);
    std::string names;
    for (const auto& [name, tensor] : bucket->state()) names += name + " ";
    job.group.end("end");
    return names;
  });
  for (const auto& result : results) CHECK(result.text == "error/worth q/worth ");
}

TEST_CASE("what powersgd begins with depends on the seed and the name alone") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    BucketJob job(env, "powersgd");
    std::vector<Slot> moved = slots();
    std::swap(moved[0], moved[2]);
    const auto q = [&](std::uint64_t seed, const std::vector<Slot>& of) {
      return parallel::make_power_sgd(job.wire, of, at::kCPU, 2, seed)
          ->state()
          .at("q/fc.weight")
          .tensor;
    };
    std::string text = fmt::format("{} {}", at::equal(q(7, slots()), q(7, moved)),
                                   at::equal(q(7, slots()), q(8, slots())));
    job.group.end("end");
    return text;
  });
  for (const auto& result : results) CHECK(result.text == "true false");
}

}  // namespace
