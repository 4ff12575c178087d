#include "lib/local_sgd/weight_sync.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/dist/ranks.h"
#include "tests/local_sgd/replica_job.h"
#include "tests/local_sgd/sync_reference.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using local_sgd::WeightSync;
using testing::kReplicaElements;
using testing::learn;
using testing::replica_parameters;
using testing::ReplicaJob;
using testing::run_ranks;
using testing::SyncReference;

TEST_CASE("replicas train independently and synchronize by the formulas of local SGD and DiLoCo") {
  // The parameters of each fragment whose exchange begins behind a step; of two fragments, p0 and
  // p1 hold 32 of 68 elements, and the middle of p2 is behind the half.
  struct SyncCase {
    recipe::Sync sync;
    std::map<int, std::vector<std::size_t>> exchanged;
    std::optional<at::ScalarType> rounded_to = {};
  };
  const std::vector<std::size_t> all{0, 1, 2, 3}, first{0, 1}, second{2, 3};
  const std::vector<SyncCase> cases{
      {{.name = "periodic", .steps = 4}, {{4, all}, {8, all}, {10, all}}},
      {{.name = "periodic", .steps = 1},
       {{1, all},
        {2, all},
        {3, all},
        {4, all},
        {5, all},
        {6, all},
        {7, all},
        {8, all},
        {9, all},
        {10, all}}},
      {{.name = "diloco", .steps = 3}, {{3, all}, {6, all}, {9, all}, {10, all}}},
      {{.name = "diloco", .steps = 5, .outer = {.lr = 0.4, .momentum = 0.5}},
       {{5, all}, {10, all}}},
      {{.name = "diloco", .steps = 4, .outer = {.lr = 1, .momentum = 0}},
       {{4, all}, {8, all}, {10, all}}},
      {{.name = "diloco", .steps = 4, .fragments = 2},
       {{2, first}, {4, second}, {6, first}, {8, second}, {10, all}}},
      {{.name = "diloco", .steps = 4, .fragments = 2},
       {{2, first}, {4, second}, {6, first}, {8, second}, {10, all}},
       at::kBFloat16},
      {{.name = "diloco", .steps = 4, .overlap = 3, .mix = 0.25}, {{4, all}, {8, all}, {10, all}}},
      {{.name = "diloco", .steps = 4, .overlap = 1, .mix = 0}, {{4, all}, {8, all}, {10, all}}},
      {{.name = "diloco", .steps = 4, .fragments = 2, .overlap = 1},
       {{2, first}, {4, second}, {6, first}, {8, second}, {10, all}},
       at::kBFloat16},
  };
  constexpr int kSteps = 10;  // then all is exchanged
  for (const SyncCase& one : cases) {
    for (const int world_size : {1, 2, 4}) {
      CAPTURE(one.sync.name);
      CAPTURE(one.sync.steps);
      CAPTURE(world_size);
      const auto results =
          run_ranks({.world_size = world_size}, [&](const core::WorkerEnv& env) -> std::string {
            ReplicaJob job(env,
                           {.sync = one.sync, .total_steps = kSteps, .rounded_to = one.rounded_to});
            SyncReference reference(env.world_size, one.sync, one.rounded_to);
            const auto begun_after = [&](int steps) {
              const auto found = one.exchanged.find(steps);
              return found == one.exchanged.end() ? std::vector<std::size_t>{} : found->second;
            };
            for (int step = 0; step < kSteps; ++step) {
              learn(job.all, env.rank, step);
              reference.step(step);
              job.replicas->after_step(step);
              const int overlap = static_cast<int>(one.sync.overlap);
              const bool waits = overlap == 0 || step + 1 == kSteps;
              const auto ended = begun_after(waits ? step + 1 : step + 1 - overlap);
              if (job.replicas->is_synchronized() == ended.empty()) {
                return fmt::format("step {}: is_exchanged_after", step + 1);
              }
              for (const std::size_t parameter : ended) reference.end(parameter, one.sync.mix);
              for (const std::size_t parameter : begun_after(step + 1)) {
                waits ? reference.exchange(parameter) : reference.begin(parameter);
              }
              const double apart = reference.largest_difference(job.all, env.rank);
              if (!(apart < 1e-5)) return fmt::format("step {}: {} apart", step + 1, apart);
            }
            return job.replicas->weights_differ() ? "differs" : "same";
          });
      for (const auto& result : results) CHECK(result.text == "same");
    }
  }
}

TEST_CASE("replicas have the same bits after an exchange, for the bytes of the weights or half") {
  for (const std::string name : {"periodic", "diloco", "diloco as bf16"}) {
    CAPTURE(name);
    const bool is_rounded = name.ends_with("bf16");
    const auto results = run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) {
      ReplicaJob job(env, {.sync = {.name = name.substr(0, name.find(' ')), .steps = 50},
                           .rounded_to = is_rounded ? std::optional(at::kBFloat16) : std::nullopt});
      std::string said;
      for (int step = 0; step < 100; ++step) {
        learn(job.all, env.rank, step);
        job.replicas->after_step(step);
        if (step == 48) said += fmt::format("{} bytes, ", job.replicas->communicated_bytes());
      }
      for (const auto& parameter : job.all) {
        const at::Tensor other = parameter.tensor.detach().clone();
        job.group.broadcast(other, 0, "compare").wait();
        if (!at::equal(other, parameter.tensor)) said += "another " + parameter.name + ", ";
      }
      return said + fmt::format("{} bytes, {} tensors of its own",
                                job.replicas->communicated_bytes(), job.replicas->state().size());
    });
    // Of gradients it would be 100 times as many, every step, in place of 2.
    for (const auto& result : results) {
      CHECK(result.text == fmt::format("0 bytes, {} bytes, {} tensors of its own",
                                       2 * (is_rounded ? 2 : 4) * kReplicaElements,
                                       name == "periodic" ? 0 : 8));
    }
  }
}

TEST_CASE("a stop exchanges once what differs") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = {.name = "diloco", .steps = 4, .fragments = 2}});
    std::string said;
    for (int step = 0; step < 2; ++step) {
      learn(job.all, env.rank, step);
      job.replicas->after_step(step);
    }
    said +=
        fmt::format("{} {}, ", job.replicas->weights_differ(), job.replicas->communicated_bytes());
    const at::Tensor first = job.all[0].tensor.detach().clone();
    job.replicas->stop();
    const bool is_kept = at::equal(first, job.all[0].tensor);  // was exchanged in this step
    const std::int64_t bytes = job.replicas->communicated_bytes();
    job.replicas->stop();
    return said + fmt::format("{} {} {} {}", job.replicas->weights_differ(), is_kept, bytes,
                              job.replicas->communicated_bytes());
  });
  for (const auto& result : results) {
    CHECK(result.text == fmt::format("true {}, false true {} {}", 4 * 32, 4 * kReplicaElements,
                                     4 * kReplicaElements));
  }
}

TEST_CASE("a stop ends what training overlaps, and exchanges what was learned meanwhile") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = {.name = "diloco", .steps = 4, .overlap = 3}});
    for (int step = 0; step < 5; ++step) {
      learn(job.all, env.rank, step);
      job.replicas->after_step(step);
    }
    std::string said =
        fmt::format("{} {}", job.replicas->communicated_bytes(), job.replicas->is_synchronized());
    job.replicas->stop();
    for (const auto& parameter : job.all) {
      const at::Tensor other = parameter.tensor.detach().clone();
      job.group.broadcast(other, 0, "compare").wait();
      if (!at::equal(other, parameter.tensor)) said += " another " + parameter.name;
    }
    return said + fmt::format(" {} {}", job.replicas->communicated_bytes(),
                              job.replicas->weights_differ());
  });
  for (const auto& result : results) {
    CHECK(result.text ==
          fmt::format("{} false {} false", 4 * kReplicaElements, 8 * kReplicaElements));
  }
}

TEST_CASE("outer weights are those that training begins with, or a checkpoint's") {
  for (const bool resumes : {false, true}) {
    CAPTURE(resumes);
    const auto results = run_ranks({.world_size = 1}, [&](const core::WorkerEnv& env) {
      at::set_num_threads(1);
      dist::Group group(env, at::kCPU, 30s);
      const std::vector<units::NamedParameter> all = replica_parameters();
      // An exchange takes all back to the outer weights.
      dist::Mesh mesh(group, core::MeshPlan(1));
      WeightSync exchange(
          {.sync = {.name = "diloco", .steps = 1, .outer = {.lr = 0, .momentum = 0}},
           .total_steps = 1000},
          all, local_sgd::divide_in_fragments(all, 1), mesh);
      for (const auto& parameter : all) parameter.tensor.detach().fill_(5);
      if (resumes) {
        for (const auto& [name, tensor] : local_tensors(exchange.state())) tensor.fill_(7);
        exchange.resume();
      }
      exchange.start();
      learn(all, 0, 0);
      exchange.after_step(0);
      std::string said;
      for (const auto& parameter : all) {
        said += fmt::format("{} {} ", parameter.tensor.min().item<double>(),
                            parameter.tensor.max().item<double>());
      }
      return said;
    });
    CHECK(results[0].text == (resumes ? "7 7 7 7 7 7 7 7 " : "5 5 5 5 5 5 5 5 "));
  }
}

TEST_CASE("with its state copied another goes on to the same bits") {
  for (const std::int64_t fragments : {1, 2}) {
    CAPTURE(fragments);
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      const recipe::Sync sync{.name = "diloco", .steps = 4, .fragments = fragments};
      ReplicaJob job(env, {.sync = sync});
      for (int step = 0; step < 8; ++step) {
        learn(job.all, env.rank, step);
        job.replicas->after_step(step);
      }
      const std::vector<units::NamedParameter> copies = replica_parameters();
      for (std::size_t i = 0; i < copies.size(); ++i) {
        copies[i].tensor.detach().copy_(job.all[i].tensor.detach());
      }
      WeightSync second({.sync = sync, .total_steps = 1000}, copies,
                        local_sgd::divide_in_fragments(copies, sync.fragments), job.mesh);
      const auto saved = local_tensors(job.replicas->state());
      for (const auto& [name, tensor] : local_tensors(second.state())) tensor.copy_(saved.at(name));
      second.resume();
      second.start();
      const bool differs = second.weights_differ();
      for (int step = 8; step < 16; ++step) {
        learn(job.all, env.rank, step);
        learn(copies, env.rank, step);
        job.replicas->after_step(step);
        second.after_step(step);
      }
      bool is_same = true;
      for (std::size_t i = 0; i < copies.size(); ++i) {
        is_same = is_same && at::equal(copies[i].tensor, job.all[i].tensor);
      }
      return fmt::format("{} of {} tensors, {}", is_same ? "same" : "other", saved.size(), differs);
    });
    // Replicas of several fragments differ where they begin again, too.
    for (const auto& result : results) {
      CHECK(result.text == fmt::format("same of 8 tensors, {}", fragments == 2));
    }
  }
}

TEST_CASE("a rank that owns nothing of a fragment knows of its exchanges") {
  dist::Group group({}, at::kCPU, 1s);
  const recipe::Sync sync{.name = "diloco", .steps = 4, .fragments = 2};
  const std::vector<units::NamedParameter> own{
      {.name = "here", .tensor = at::zeros({3}).requires_grad_()}};
  dist::Mesh mesh(group, core::MeshPlan(1));
  WeightSync exchange({.sync = sync, .total_steps = 10}, own,
                      {.message_of = {{"here", 0}, {"elsewhere", 1}}, .of_message = {0, 1}}, mesh);
  exchange.start();
  exchange.after_step(0);
  CHECK_FALSE(exchange.is_synchronized());
  exchange.after_step(1);
  CHECK(exchange.is_synchronized());
  CHECK(exchange.weights_differ());  // those that others own of fragment 1
  exchange.stop();
  CHECK_FALSE(exchange.weights_differ());
  exchange.after_step(2);
  CHECK_FALSE(exchange.is_synchronized());
  exchange.after_step(3);
  CHECK(exchange.is_synchronized());
  CHECK(exchange.state().size() == 2);
}

TEST_CASE("copies that two ranks of a replica exchange have the same bits") {
  // From three ranks on Gloo adds in an order that depends on the place in a message.
  const auto results = run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    dist::Group group(env, at::kCPU, 30s, {}, {}, dist::CpuExchange::kGloo);
    dist::Mesh mesh(group, core::MeshPlan(3));
    const auto random = [&](const char* name, std::int64_t elements, int seed) {
      auto generator = at::make_generator<at::CPUGeneratorImpl>(10 * seed + env.rank);
      return units::NamedParameter{.name = name,
                                   .tensor = at::randn({elements}, generator).requires_grad_()};
    };
    std::string text;
    for (const bool alone : {true, false}) {
      const recipe::Sync sync{.name = "periodic", .steps = 1};
      local_sgd::Fragments fragments{.message_of = {{"first", 0}, {"tied", 0}, {"last", 0}},
                                     .of_message = {0}};
      if (alone) {
        fragments = {.message_of = {{"first", 0}, {"tied", 1}, {"last", 2}},
                     .of_message = {0, 0, 0}};
      }
      const units::NamedParameter of_first = random("tied", 1000, 1),
                                  of_last = random("tied", 1000, 1);
      WeightSync first({.sync = sync, .total_steps = 10}, {of_first, random("first", 777, 2)},
                       fragments, mesh);
      WeightSync last({.sync = sync, .total_steps = 10}, {random("last", 333, 3), of_last},
                      fragments, mesh);
      first.after_step(0);
      last.after_step(0);
      text += at::equal(of_first.tensor, of_last.tensor) ? "same " : "other ";
    }
    group.end("end");
    return text;
  });
  for (const auto& result : results) CHECK(result.text == "same other ");
}

}  // namespace
