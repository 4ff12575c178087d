#include "lib/parallel/compress/hook.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "tests/dist/ranks.h"
#include "tests/parallel/three_layers.h"

namespace {

using namespace scaletrain;
using namespace testing;

// With a compression; steps of two micro-steps.
std::string train_compressed(const core::WorkerEnv& env, const recipe::Compress& compress,
                             int steps) {
  at::set_num_threads(1);
  const auto parameters = make_parameters();
  Job job(env, parameters, {}, {}, dist::CpuExchange::kAuto, {.compress = compress, .seed = 1});
  std::string all;
  for (int step = 0; step < steps; ++step) {
    job.parallel.begin_step(step);
    job.parallel.zero_grad();
    micro_step(job.parallel, parameters, env.rank, 2 * step, false);
    micro_step(job.parallel, parameters, env.rank, 2 * step + 1, true);
    job.parallel.end_step(at::zeros({}));
    double norm = 0;
    for (const at::Tensor& one : gradients(parameters)) norm += one.square().sum().item<double>();
    all += fmt::format("{:.17g} {}\n", norm, job.parallel.exchanged_bytes());
    update(parameters);
  }
  job.mesh.end("end");
  return all + digest(parameters);
}

// Two buckets: three layers of 600 x 600 and their biases.
TEST_CASE("a warmup exchanges as without compression, and is counted so") {
  constexpr std::int64_t kAll = kLayers * (kWidth * kWidth + kWidth);
  for (const std::string name : {"bf16", "int8", "onebit", "powersgd"}) {
    CAPTURE(name);
    const auto compressed = [&](std::int64_t warmup, int steps) {
      const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
        return train_compressed(env, {.name = name, .rank = 2, .warmup = warmup}, steps);
      });
      CHECK(results[0].text == results[1].text);
      return results[0].text;
    };
    const auto plain =
        run_ranks({.world_size = 2},
                  [](const core::WorkerEnv& env) {
                    at::set_num_threads(1);
                    const auto parameters = make_parameters();
                    Job job(env, parameters);
                    for (int step = 0; step < 2; ++step) {
                      job.parallel.zero_grad();
                      micro_step(job.parallel, parameters, env.rank, 2 * step, false);
                      micro_step(job.parallel, parameters, env.rank, 2 * step + 1, true);
                      update(parameters);
                    }
                    job.mesh.end("end");
                    return fmt::format("{} {}", job.parallel.exchanged_bytes(), digest(parameters));
                  })[0]
            .text;
    CHECK(plain.starts_with(fmt::format("{} ", 2 * 4 * kAll)));
    const std::string warm = compressed(2, 2);
    CHECK(warm.substr(warm.size() - 64) == plain.substr(plain.size() - 64));
    CHECK(compressed(0, 2).substr(warm.size() - 64) != plain.substr(plain.size() - 64));
    CHECK(warm.find(fmt::format(" {}\n", 2 * 4 * kAll)) != std::string::npos);
    std::map<std::string, std::int64_t> bytes{{"bf16", 2 * kAll}};
    // Each of the three matrices has blocks of its own.
    const std::int64_t vectors = 4 * kLayers * kWidth, matrix = kWidth * kWidth;
    bytes["int8"] = vectors + kLayers * ((matrix + 255) / 256) * (4 + 256);
    bytes["onebit"] = vectors + kLayers * ((matrix + 511) / 512) * (8 + 64);
    bytes["powersgd"] = vectors + kLayers * 4 * 2 * (kWidth + kWidth);
    CHECK(compressed(2, 3).find(fmt::format(" {}\n", 2 * 4 * kAll + bytes.at(name))) !=
          std::string::npos);
  }
}

// What was kept back comes later: the sum of what was exchanged, and what is kept, is the sum of
// the gradients.
TEST_CASE("no part of a gradient is lost") {
  for (const std::string name : {"int8", "onebit", "powersgd"}) {
    CAPTURE(name);
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      at::set_num_threads(1);
      const auto parameters = make_parameters();
      Job job(env, parameters, {}, {}, dist::CpuExchange::kAuto,
              {.compress = recipe::Compress{.name = name, .rank = 2}, .seed = 1});
      at::Tensor exchanged = at::zeros({kWidth, kWidth}), all = at::zeros({kWidth, kWidth});
      for (int step = 0; step < 3; ++step) {
        job.parallel.begin_step(step);
        job.parallel.zero_grad();
        micro_step(job.parallel, parameters, env.rank, step, true);
        job.parallel.end_step(at::zeros({}));
        exchanged += parameters[2].grad();
        for (int rank = 0; rank < 2; ++rank) {
          const auto alone = make_parameters();
          loss_of(alone, rank, step).backward();
          all += alone[2].grad() / 2;
        }
      }
      at::Tensor kept = job.parallel.state().at("error/2").tensor.clone();
      job.group.all_reduce_sum(kept, "errors").wait();
      const at::Tensor apart = (exchanged + kept.view_as(all) / 2 - all).abs().max();
      const double relative = (apart / all.abs().max()).item<double>();
      job.mesh.end("end");
      return relative < 1e-5 ? "all" : fmt::format("{} apart", relative);
    });
    for (const auto& result : results) CHECK(result.text == "all");
  }
}

}  // namespace
