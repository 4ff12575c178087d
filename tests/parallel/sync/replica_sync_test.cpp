#include "lib/parallel/sync/replica_sync.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <csignal>

#include "tests/dist/ranks.h"
#include "tests/parallel/sync/replica_job.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using parallel::ReplicaSync;
using testing::kReplicaElements;
using testing::learn;
using testing::learned;
using testing::replica_parameters;
using testing::ReplicaJob;
using testing::run_ranks;

// Weights of all replicas, each trained by itself here, and what they exchange: PyTorch's SGD on
// the outer weights, in doubles.
class SyncReference {
 public:
  SyncReference(int ranks, const recipe::Sync& sync) : sync_(sync) {
    for (const auto& parameter : replica_parameters()) {
      outer_.push_back(parameter.tensor.detach().to(at::kDouble).requires_grad_(true));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<at::Tensor> weights;
      for (const auto& one : outer_) weights.push_back(one.detach().clone());
      replicas_.push_back(weights);
    }
    auto options = torch::optim::SGDOptions(sync.outer.lr);
    options.momentum(sync.outer.momentum).nesterov(sync.outer.momentum > 0);
    for (const at::Tensor& one : outer_) {
      optimizers_.push_back(
          std::make_unique<torch::optim::SGD>(std::vector<at::Tensor>{one}, options));
    }
  }

  void step(int number) {
    for (std::size_t rank = 0; rank < replicas_.size(); ++rank) {
      for (at::Tensor& one : replicas_[rank]) {
        one = learned(one, static_cast<int>(rank), number);
      }
    }
  }

  void exchange(std::size_t parameter) {
    at::Tensor mean = at::zeros_like(outer_[parameter].detach());
    for (const auto& replica : replicas_) mean += replica[parameter];
    mean /= static_cast<double>(replicas_.size());
    if (sync_.name == "diloco") {
      outer_[parameter].mutable_grad() = outer_[parameter].detach() - mean;
      optimizers_[parameter]->step();
      mean = outer_[parameter].detach().clone();
    }
    for (auto& replica : replicas_) replica[parameter] = mean.clone();
  }

  double largest_difference(const std::vector<units::NamedParameter>& all, int rank) const {
    double largest = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const at::Tensor apart =
          all[i].tensor.detach().to(at::kDouble) - replicas_[static_cast<std::size_t>(rank)][i];
      largest = std::max(largest, apart.abs().max().item<double>());
    }
    return largest;
  }

 private:
  recipe::Sync sync_;
  std::vector<at::Tensor> outer_;
  std::vector<std::unique_ptr<torch::optim::SGD>> optimizers_;
  std::vector<std::vector<at::Tensor>> replicas_;
};

TEST_CASE("replicas train alone and meet as local SGD and DiLoCo say") {
  // The parameters of each fragment that is exchanged behind a step; of two fragments, p0 and p1
  // hold 32 of 68 elements, and the middle of p2 is behind the half.
  struct SyncCase {
    recipe::Sync sync;
    std::map<int, std::vector<std::size_t>> exchanged;
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
  };
  for (const SyncCase& one : cases) {
    for (const int world_size : {1, 2, 4}) {
      CAPTURE(one.sync.name);
      CAPTURE(one.sync.steps);
      CAPTURE(world_size);
      const auto results =
          run_ranks({.world_size = world_size}, [&](const core::WorkerEnv& env) -> std::string {
            ReplicaJob job(env, one.sync, 10);  // at the end all is exchanged
            SyncReference reference(env.world_size, one.sync);
            for (int step = 0; step < 10; ++step) {
              learn(job.all, env.rank, step);
              reference.step(step);
              job.exchange.after_step(step);
              const auto found = one.exchanged.find(step + 1);
              if (job.exchange.is_exchanged_after(step + 1) != (found != one.exchanged.end())) {
                return fmt::format("step {}: is_exchanged_after", step + 1);
              }
              if (found != one.exchanged.end()) {
                for (const std::size_t parameter : found->second) reference.exchange(parameter);
              }
              const double apart = reference.largest_difference(job.all, env.rank);
              if (!(apart < 1e-5)) return fmt::format("step {}: {} apart", step + 1, apart);
            }
            return job.exchange.differs() ? "differs" : "same";
          });
      for (const auto& result : results) CHECK(result.text == "same");
    }
  }
}

TEST_CASE("replicas have the same bits after an exchange, for the bytes of the weights") {
  for (const std::string name : {"periodic", "diloco"}) {
    CAPTURE(name);
    const auto results = run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) {
      ReplicaJob job(env, {.name = name, .steps = 50});
      std::string said;
      for (int step = 0; step < 100; ++step) {
        learn(job.all, env.rank, step);
        job.exchange.after_step(step);
        if (step == 48) said += fmt::format("{} bytes, ", job.exchange.exchanged_bytes());
      }
      for (const auto& parameter : job.all) {
        const at::Tensor other = parameter.tensor.detach().clone();
        job.group.broadcast(other, 0, "compare").wait();
        if (!at::equal(other, parameter.tensor)) said += "another " + parameter.name + ", ";
      }
      return said + fmt::format("{} bytes", job.exchange.exchanged_bytes());
    });
    // Of gradients it would be 100 times as many, every step, in place of 2.
    for (const auto& result : results) {
      CHECK(result.text == fmt::format("0 bytes, {} bytes", 2 * 4 * kReplicaElements));
    }
  }
}

TEST_CASE("async replicas that wait for each other at each exchange have the mean") {
  const recipe::Sync sync{.name = "async", .steps = 4, .staleness = 0};
  const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, sync, 10);
    job.exchange.go_apart(0, "127.0.0.1");
    SyncReference reference(3, sync);
    double largest = 0;
    for (int step = 0; step < 10; ++step) {
      learn(job.all, env.rank, step);
      reference.step(step);
      job.exchange.after_step(step);
      const bool meets = step == 3 || step == 7 || step == 9;
      for (std::size_t i = 0; meets && i < job.all.size(); ++i) reference.exchange(i);
      largest = std::max(largest, reference.largest_difference(job.all, env.rank));
    }
    if (!(largest < 1e-5)) return fmt::format("{} apart", largest);
    return fmt::format("{} {}", job.exchange.differs(), job.exchange.exchanged_bytes());
  });
  for (const auto& result : results) {
    CHECK(result.text == fmt::format("false {}", 3 * 4 * kReplicaElements));
  }
}

TEST_CASE("async replicas go on without one that is killed") {
  const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.name = "async", .steps = 2, .staleness = 1}, 20);
    job.exchange.go_apart(0, "127.0.0.1");
    for (int step = 0; step < 20; ++step) {
      learn(job.all, env.rank, step);
      if (env.rank == 2 && step == 5) std::raise(SIGKILL);
      job.exchange.after_step(step);
    }
    std::string said = "trained";
    if (env.rank != 0) return said;
    for (const auto& place : job.exchange.places()) {
      said += fmt::format(", {} {} {}", place.steps, place.is_done, place.is_lost);
    }
    return said;
  });
  CHECK(results[0].text == "trained, 20 true false, 20 true false, 4 false true");
  CHECK(results[1].text == "trained");
  CHECK(results[2].status == 128 + SIGKILL);
}

TEST_CASE("where rank 0 stops, async replicas give what they have and hear that they shall stop") {
  const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.name = "async", .steps = 4, .staleness = 1}, 1000);
    job.exchange.go_apart(0, "127.0.0.1");
    int step = 0;
    for (; step < 1000 && !job.exchange.shall_stop(); ++step) {
      if (env.rank == 0 && step == 6) break;
      learn(job.all, env.rank, step);
      job.exchange.after_step(step);
    }
    job.exchange.exchange_all();
    if (env.rank != 0) return fmt::format("{}", step < 1000 && step % 4 == 0);
    std::string said;
    for (const auto& place : job.exchange.places()) {
      said += fmt::format("{} {} ", place.steps > 0, place.is_done);
    }
    return said;
  });
  CHECK(results[0].text == "true true true true true true ");
  CHECK(results[1].text == "true");
  CHECK(results[2].text == "true");
}

TEST_CASE("a stop exchanges once what differs") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.name = "diloco", .steps = 4, .fragments = 2});
    std::string said;
    for (int step = 0; step < 2; ++step) {
      learn(job.all, env.rank, step);
      job.exchange.after_step(step);
    }
    said += fmt::format("{} {}, ", job.exchange.differs(), job.exchange.exchanged_bytes());
    const at::Tensor first = job.all[0].tensor.detach().clone();
    job.exchange.exchange_all();
    const bool is_kept = at::equal(first, job.all[0].tensor);  // was exchanged in this step
    const std::int64_t bytes = job.exchange.exchanged_bytes();
    job.exchange.exchange_all();
    return said + fmt::format("{} {} {} {}", job.exchange.differs(), is_kept, bytes,
                              job.exchange.exchanged_bytes());
  });
  for (const auto& result : results) {
    CHECK(result.text == fmt::format("true {}, false true {} {}", 4 * 32, 4 * kReplicaElements,
                                     4 * kReplicaElements));
  }
}

TEST_CASE("with its state copied another goes on to the same bits") {
  for (const std::int64_t fragments : {1, 2}) {
    CAPTURE(fragments);
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      const recipe::Sync sync{.name = "diloco", .steps = 4, .fragments = fragments};
      ReplicaJob job(env, sync);
      for (int step = 0; step < 8; ++step) {
        learn(job.all, env.rank, step);
        job.exchange.after_step(step);
      }
      const std::vector<units::NamedParameter> copies = replica_parameters();
      for (std::size_t i = 0; i < copies.size(); ++i) {
        copies[i].tensor.detach().copy_(job.all[i].tensor.detach());
      }
      ReplicaSync second(sync, copies, parallel::divide_in_fragments(copies, sync.fragments),
                         job.group, 1000);
      const auto saved = job.exchange.state();
      for (const auto& [name, tensor] : second.state()) tensor.copy_(saved.at(name));
      second.resume();
      second.start();
      for (int step = 8; step < 16; ++step) {
        learn(job.all, env.rank, step);
        learn(copies, env.rank, step);
        job.exchange.after_step(step);
        second.after_step(step);
      }
      bool is_same = true;
      for (std::size_t i = 0; i < copies.size(); ++i) {
        is_same = is_same && at::equal(copies[i].tensor, job.all[i].tensor);
      }
      return fmt::format("{} of {} tensors", is_same ? "same" : "other", saved.size());
    });
    for (const auto& result : results) CHECK(result.text == "same of 8 tensors");
  }
}

TEST_CASE("a rank that owns nothing of a fragment knows of its exchanges") {
  dist::Group group({}, at::kCPU, 1s);
  const recipe::Sync sync{.name = "diloco", .steps = 4, .fragments = 2};
  const std::vector<units::NamedParameter> own{
      {.name = "here", .tensor = at::zeros({3}).requires_grad_()}};
  ReplicaSync exchange(sync, own, {.of = {{"here", 0}, {"elsewhere", 1}}}, group, 10);
  exchange.start();
  CHECK(exchange.is_exchanged_after(2));
  CHECK_FALSE(exchange.is_exchanged_after(3));
  CHECK(exchange.is_exchanged_after(4));
  exchange.after_step(0);
  exchange.after_step(1);
  CHECK(exchange.differs());  // what others own of fragment 1
  exchange.exchange_all();
  CHECK_FALSE(exchange.differs());
  CHECK(exchange.state().size() == 2);
}

TEST_CASE("copies that two ranks of a replica exchange have the same bits") {
  // From three ranks on Gloo adds in an order that depends on the place in a message.
  const auto results = run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) {
    at::set_num_threads(1);
    dist::Group group(env, at::kCPU, 30s, {}, {}, dist::CpuExchange::kGloo);
    const auto random = [&](const char* name, std::int64_t elements, int seed) {
      auto generator = at::make_generator<at::CPUGeneratorImpl>(10 * seed + env.rank);
      return units::NamedParameter{.name = name,
                                   .tensor = at::randn({elements}, generator).requires_grad_()};
    };
    std::string text;
    for (const bool alone : {true, false}) {
      const recipe::Sync sync{.name = "periodic", .steps = 1};
      parallel::Fragments fragments{.of = {{"first", 0}, {"tied", 0}, {"last", 0}}};
      if (alone) fragments.copied = {"tied"};
      const units::NamedParameter of_first = random("tied", 1000, 1),
                                  of_last = random("tied", 1000, 1);
      ReplicaSync first(sync, {of_first, random("first", 777, 2)}, fragments, group, 10);
      ReplicaSync last(sync, {random("last", 333, 3), of_last}, fragments, group, 10);
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
