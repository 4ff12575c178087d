#include "lib/parallel/data_parallel.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/units/memory_meter.h"
#include "tests/dist/ranks.h"
#include "tests/parallel/three_layers.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using parallel::BucketLayout;
using parallel::DataParallel;
using namespace testing;

void train(DataParallel& parallel, const std::vector<at::Tensor>& parameters, int rank, int begin,
           int end) {
  for (int step = begin; step < end; ++step) {
    parallel.zero_grad();
    micro_step(parallel, parameters, rank, step, true);
    update(parameters);
  }
}

void check_equal_digests(const std::vector<testing::RankResult>& results) {
  for (const auto& result : results) {
    CHECK(result.status == 0);
    CHECK(result.text.size() == 64);
    CHECK(result.text == results[0].text);
  }
}

// With two micro-steps a step: what the exchange must give, computed by one rank alone.
double largest_error(const std::vector<at::Tensor>& parameters, int world_size) {
  const std::vector<at::Tensor> got = gradients(parameters);
  std::vector<at::Tensor> alone = make_parameters();
  at::Tensor total = at::zeros({});
  for (int rank = 0; rank < world_size; ++rank) {
    total = total + loss_of(alone, rank, 0) + loss_of(alone, rank, 1);
  }
  (total / world_size).backward();
  double error = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const at::Tensor difference = (got[i] - alone[i].grad()).abs().max();
    error = std::max(error, (difference / alone[i].grad().abs().max()).item<double>());
  }
  return error;
}

TEST_CASE("replicated tensors are counted by the first rank of a model-parallel group") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    const auto parameters = make_parameters();
    Job job(env, parameters, {}, {.replica = {}, .shard = 2});
    int counted = 0;
    for (const units::NamedParameter& one : job.parallel.owned()) counted += one.counts ? 1 : 0;
    job.mesh.end("end");
    return std::to_string(counted);
  });
  CHECK(results[0].text == "6");
  CHECK(results[1].text == "0");
}

TEST_CASE("without compression a step ends without a state of its own") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    const auto parameters = make_parameters();
    Job job(env, parameters);
    job.parallel.begin_step(0);
    train(job.parallel, parameters, env.rank, 0, 1);
    job.parallel.end_step(at::zeros({}));
    const bool is_empty = job.parallel.state().empty();
    job.mesh.end("end");
    return std::string(is_empty ? "none" : "some");
  });
  for (const auto& result : results) CHECK(result.text == "none");
}

TEST_CASE(
    "gradients are the mean over ranks of the sums over micro-steps, the same bits everywhere") {
  for (const int world_size : {2, 4}) {
    CAPTURE(world_size);
    check_equal_digests(run_ranks({.world_size = world_size}, [](const core::WorkerEnv& env) {
      at::set_num_threads(1);
      const auto parameters = make_parameters();
      Job job(env, parameters);
      job.parallel.zero_grad();
      micro_step(job.parallel, parameters, env.rank, 0, false);
      micro_step(job.parallel, parameters, env.rank, 1, true);
      // Sums of up to 8 terms in another order: a few units in the last place of the largest.
      const double error = largest_error(parameters, env.world_size);
      return error < 2e-6 ? digest(gradients(parameters)) : fmt::format("error {}", error);
    }));
  }
}

// Tensor peers read the same samples; here the second one's loss is ten times the first one's, as
// another part of the model has other gradients.
TEST_CASE("gradients are exchanged in the data group alone") {
  const auto results = run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    at::Tensor parameter = at::ones({2}).requires_grad_(true);
    Job job(env, {parameter}, {}, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2});
    job.parallel.zero_grad();
    job.parallel.begin_micro_step(true);
    const int part = job.mesh.coordinate(core::Axis::kTensor) == 0 ? 1 : 10;
    const at::Tensor loss = parameter.sum() * (part * (1 + 2 * job.mesh.reader()));
    job.parallel.prepare_backward(loss);
    loss.backward();
    job.mesh.end("end");
    return fmt::format("{}, counts {}", parameter.grad()[0].item<float>(),
                       job.parallel.owned()[0].counts);  // as the parameter came
  });
  for (int rank = 0; rank < 4; ++rank) {  // (1 + 3) / 2
    CHECK(results[rank].text == (rank % 2 == 0 ? "2, counts true" : "20, counts true"));
  }
}

// Rank = replica x 2 + context.
TEST_CASE("replicas that exchange weights now and then add up the gradients of their own ranks") {
  for (const bool every_step : {true, false}) {
    const auto results = run_ranks({.world_size = 4}, [every_step](const core::WorkerEnv& env) {
      at::Tensor parameter = at::ones({2}).requires_grad_(true);
      Job job(env, {parameter}, {}, {.pipe = 1, .replica = {}, .shard = 1, .context = 2},
              dist::CpuExchange::kAuto, {.every_step = every_step});
      job.parallel.zero_grad();
      job.parallel.begin_micro_step(true);
      const at::Tensor loss = parameter.sum() * (10 * env.rank);
      job.parallel.prepare_backward(loss);
      loss.backward();
      job.mesh.end("end");
      return fmt::format("{}", parameter.grad()[0].item<float>());
    });
    for (std::size_t rank = 0; rank < 4; ++rank) {
      CHECK(results[rank].text == (every_step ? "15" : rank < 2 ? "5" : "25"));
    }
  }
}

TEST_CASE("gradients that accumulate are in memory once, and start from zero in each step") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) -> std::string {
    at::set_num_threads(1);
    const auto parameters = make_parameters();
    const auto meter = std::make_shared<units::MemoryMeter>(at::kCPU);
    const units::MemoryWatch watch(meter);
    Job job(env, parameters);
    std::string first;
    for (int step = 0; step < 3; ++step) {
      job.parallel.zero_grad();
      for (int number = 0; number < 3; ++number) {
        micro_step(job.parallel, parameters, env.rank, number, number == 2);
      }
      const std::string now = digest(gradients(parameters));
      if (step == 0) first = now;
      if (now != first) return fmt::format("step {} has other gradients", step);
    }
    std::size_t bytes = 0;
    for (const at::Tensor& parameter : parameters) bytes += parameter.nbytes();
    // The buckets, a layer's gradient before it is added (a third), and small activations.
    const double held = static_cast<double>(meter->peak().total()) / static_cast<double>(bytes);
    job.mesh.end("end");
    return held > 1 && held < 1.5 ? "once" : fmt::format("{} times", held);
  });
  for (const auto& result : results) CHECK(result.text == "once");
}

TEST_CASE("only the last micro-step of a step talks, once a bucket") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    const auto parameters = make_parameters();
    Job job(env, parameters, {}, {}, dist::CpuExchange::kGloo);
    DataParallel& parallel = job.parallel;
    std::string counts = fmt::format("{} buckets:", parallel.layout().size());
    // Gloo numbers its collectives.
    const auto talked = [&] { return job.group.process_group()->getSequenceNumberForGroup(); };
    for (int step = 0; step < 3; ++step) {
      parallel.zero_grad();
      for (int number = 0; number < 3; ++number) {
        const auto before = talked();
        micro_step(parallel, parameters, env.rank, number, number == 2);
        counts += fmt::format(" {}", talked() - before);
      }
      update(parameters);
    }
    return counts;
  });
  for (const auto& result : results) CHECK(result.text == "2 buckets: 0 0 2 0 0 2 0 0 2");
}

TEST_CASE("a step leaves nothing behind that grows: no order of arrival is recorded") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    const auto parameters = make_parameters();
    Job job(env, parameters);
    train(job.parallel, parameters, env.rank, 0, 2);
    const auto before = parameters[0].use_count();
    train(job.parallel, parameters, env.rank, 2, 5);
    job.mesh.end("end");
    return fmt::format("{} more", parameters[0].use_count() - before);
  });
  for (const auto& result : results) CHECK(result.text == "0 more");
}

TEST_CASE("a saved layout that is of another model is refused") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) -> std::string {
    dist::Group group(env, at::kCPU, kTimeout);
    const dist::Mesh mesh(group, core::MeshPlan(env.world_size));
    DataParallel parallel(named({at::ones({2}).requires_grad_(true)}), mesh);
    try {
      parallel.start({{0, 1}});
      return "started";
    } catch (const core::CheckpointError& error) {
      group.barrier("refused");  // whose connections may be under way
      return error.what();
    }
  });
  for (const auto& result : results) {
    CHECK(result.text.starts_with(
        "bucket layout: does not name each of the model's 1 parameters once (1 mistakes)"));
  }
}

// 6 steps; where `resume` says so, a new DataParallel is built after the third with the saved
// layout.
std::string train_six_steps(const core::WorkerEnv& env, dist::CpuExchange exchange,
                            const BucketLayout& layout, bool resume) {
  at::set_num_threads(1);
  dist::Group group(env, at::kCPU, kTimeout, core::Beat(), {}, exchange);
  const dist::Mesh mesh(group, core::MeshPlan(env.world_size));
  const auto parameters = make_parameters();
  BucketLayout saved;
  {
    DataParallel first(named(parameters), mesh);
    first.start(layout);
    train(first, parameters, env.rank, 0, resume ? 3 : 6);
    saved = first.layout();
    if (!layout.empty() && saved != layout) return "the layout was changed";
    first.zero_grad();
  }
  if (resume) {
    auto copies = parameters;  // a new process has parameters without history
    for (at::Tensor& copy : copies) copy = copy.detach().clone().requires_grad_(true);
    DataParallel second(named(copies), mesh);
    second.start(saved);
    train(second, copies, env.rank, 3, 6);
    return digest(copies);
  }
  return digest(parameters);
}

std::string six_steps_of_four(dist::CpuExchange exchange, const BucketLayout& layout, bool resume) {
  const auto results = run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) {
    return train_six_steps(env, exchange, layout, resume);
  });
  check_equal_digests(results);
  return results[0].text;
}

TEST_CASE("a resume with the saved layout goes on to the same bits, over Gloo with no other one") {
  const BucketLayout other{{0, 5, 2}, {1, 4, 3}};
  for (const auto exchange : {dist::CpuExchange::kGloo, dist::CpuExchange::kShm}) {
    const bool gloo = exchange == dist::CpuExchange::kGloo;
    CAPTURE(gloo);
    const std::string fresh = six_steps_of_four(exchange, {}, false);
    const std::string unlike = six_steps_of_four(exchange, other, false);
    CHECK(six_steps_of_four(exchange, {}, true) == fresh);
    CHECK(six_steps_of_four(exchange, other, true) == unlike);
    // At 4 ranks the layout decides in which order Gloo adds; in shared memory it is the ranks'.
    CHECK((unlike != fresh) == gloo);
  }
}

TEST_CASE("a peer that is killed during backward stops the others within seconds") {
  const auto results = run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) -> std::string {
    at::set_num_threads(1);
    const auto parameters = make_parameters();
    Job job(env, parameters);
    DataParallel& parallel = job.parallel;
    train(parallel, parameters, env.rank, 0, 2);
    if (env.rank == 2) raise(SIGKILL);
    try {
      try {
        train(parallel, parameters, env.rank, 2, 4);
      } catch (...) {
        dist::rethrow_as_stopped(env.rank, "the exchange of gradients was");
      }
    } catch (const core::StoppedError& error) {
      const bool named = error.found().starts_with(
          "the exchange of gradients was not completed: a peer was lost or the timeout expired (");
      return named ? "stopped" : error.what();
    }
    return "completed";
  });
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    CHECK(results[rank].text == (rank == 2 ? "" : "stopped"));
    CHECK(results[rank].seconds < 20);
  }
}

TEST_CASE("replicas that exchange weights exchange no gradients") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    at::Tensor parameter = at::ones({2}).requires_grad_(true);
    Job job(env, {parameter}, {}, {}, dist::CpuExchange::kAuto, {.every_step = false});
    job.parallel.zero_grad();
    job.parallel.begin_micro_step(true);
    const at::Tensor loss = parameter.sum() * (env.rank + 1);
    job.parallel.prepare_backward(loss);
    loss.backward();
    job.mesh.end("end");
    return fmt::format("{}, {} bytes, {} buckets", parameter.grad()[0].item<float>(),
                       job.parallel.exchanged_bytes(), job.parallel.layout().size());
  });
  CHECK(results[0].text == "1, 0 bytes, 0 buckets");
  CHECK(results[1].text == "2, 0 bytes, 0 buckets");
}

TEST_CASE("one rank has no buckets; gradients are taken away") {
  at::Tensor parameter = at::ones({2}).requires_grad_(true);
  Job job({}, {parameter});
  job.parallel.begin_micro_step(true);
  parameter.mutable_grad() = at::ones({2});
  job.parallel.zero_grad();
  CHECK(!parameter.grad().defined());
  CHECK(job.parallel.layout().empty());
}

}  // namespace
