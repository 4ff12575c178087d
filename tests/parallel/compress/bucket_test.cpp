#include "lib/parallel/compress/bucket.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/core/error.h"
#include "tests/parallel/compress/bucket_job.h"

namespace {

using namespace scaletrain;
using namespace testing;

// References: what each method is, written with loops over numbers of all ranks, in doubles.

// The matrices of a bucket, one behind the other.
Numbers matrices_of(const Numbers& flat) {
  Numbers result(flat.begin(), flat.begin() + 1200);
  result.insert(result.end(), flat.begin() + 1240, flat.end());
  return result;
}

// What stands for `block` when it is sent.
using Rounded = Numbers (*)(const Numbers& block);

Numbers by_one_bit(const Numbers& block) {
  double high = 0, low = 0, highs = 0, lows = 0;
  for (const double value : block) {
    (value >= 0 ? high : low) += value;
    (value >= 0 ? highs : lows) += 1;
  }
  Numbers result;
  for (const double value : block) result.push_back(value >= 0 ? high / highs : low / lows);
  return result;
}

Numbers by_int8(const Numbers& block) {
  double largest = 0;
  for (const double value : block) largest = std::max(largest, std::abs(value));
  Numbers result;
  for (const double value : block) {
    result.push_back(std::nearbyint(value / (largest / 127)) * (largest / 127));
  }
  return result;
}

struct Rounding {
  std::size_t block;  // values
  Rounded rounded;
  double error_sent;  // of each rank's own, in its next step
};

// Among the elements of matrices_of() where the matrix of element `i` ends: it has its own blocks.
std::size_t end_of_matrix(std::size_t i) { return i < 1200 ? 1200 : i < 1416 ? 1416 : 1422; }

// All ranks' means of `steps` steps.
class RoundedReference {
 public:
  RoundedReference(int ranks, const Rounding& rounding)
      : rounding_(rounding), errors_(static_cast<std::size_t>(ranks)) {
    for (Numbers& error : errors_) error.resize(kMatrixElements);
  }

  Numbers step(int number) {
    Numbers mean(kBucketElements);
    for (std::size_t rank = 0; rank < errors_.size(); ++rank) {
      Numbers flat = numbers(gradient(static_cast<int>(rank), number));
      Numbers& errors = errors_[rank];
      const Numbers own = matrices_of(flat);
      for (std::size_t first = 0; first < own.size();) {
        const std::size_t last = std::min(first + rounding_.block, end_of_matrix(first));
        Numbers sent;
        for (std::size_t i = first; i < last; ++i) {
          sent.push_back(own[i] + rounding_.error_sent * errors[i]);
        }
        const Numbers stands = rounding_.rounded(sent);
        for (std::size_t i = first; i < last; ++i) {
          errors[i] += own[i] - stands[i - first];
          flat[i < 1200 ? i : i + kVectorElements] = stands[i - first];
        }
        first = last;
      }
      for (std::size_t i = 0; i < mean.size(); ++i) {
        mean[i] += flat[i] / static_cast<double>(errors_.size());
      }
    }
    return mean;
  }

 private:
  Rounding rounding_;
  std::vector<Numbers> errors_;
};

std::string compare_rounded(const core::WorkerEnv& env, const std::string& name,
                            const Rounding& rounding) {
  BucketJob job(env, name);
  RoundedReference reference(env.world_size, rounding);
  for (int step = 0; step < 4; ++step) {
    const at::Tensor flat = gradient(env.rank, step);
    exchange(*job.bucket, flat);
    const double difference = largest_difference(flat, reference.step(step));
    // fp32 against doubles; a value that falls on the other side of a border would differ by 0.01.
    if (!(difference < 2e-6)) return fmt::format("step {}: {} apart", step, difference);
  }
  return "same";
}

TEST_CASE("onebit sends the means of both signs of each block, and the rest little by little") {
  check_ranks(
      [](const core::WorkerEnv& env) {
        return compare_rounded(env, "onebit", {512, by_one_bit, 1.0 / 32});
      },
      "same");
}

TEST_CASE("int8 sends multiples of a 127th of each block's largest value, and the rest later") {
  check_ranks(
      [](const core::WorkerEnv& env) {
        return compare_rounded(env, "int8", {256, by_int8, 1});
      },
      "same");
}

TEST_CASE("bf16 and fp16 add what the ranks' shares are in that type") {
  for (const auto& [name, type] :
       {std::pair("bf16", at::kBFloat16), std::pair("fp16", at::kHalf)}) {
    CAPTURE(name);
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      BucketJob job(env, name);
      const at::Tensor flat = gradient(env.rank, 0);
      exchange(*job.bucket, flat);
      const auto share = [&, half = type](int rank) { return gradient(rank, 0).to(half).div_(2); };
      return at::equal(flat, (share(0) + share(1)).to(at::kFloat)) ? "same" : "other";
    });
    for (const auto& result : results) CHECK(result.text == "same");
  }
}

TEST_CASE("all ranks have the same bits, and have given the bytes that are said") {
  struct Case {
    std::string name;
    std::int64_t bytes;
  };
  const std::vector<Case> cases{
      {"bf16", 2 * kBucketElements},
      {"fp16", 2 * kBucketElements},
      // Two numbers and 512 bits a block; the matrices have three, one and one.
      {"onebit", 4 * kVectorElements + 5 * (2 * 4 + 512 / 8)},
      // A number and 256 bytes; five, one and one.
      {"int8", 4 * kVectorElements + 7 * (4 + 256)},
      // Factors of rank 2 of 40 x 30 and of 8 x 27; 3 x 2 and the bias as they are.
      {"powersgd", 4 * (kVectorElements + 6 + 2 * (40 + 30) + 2 * (8 + 27))},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    for (const int world_size : {2, 4}) {
      const auto results =
          run_ranks({.world_size = world_size}, [&](const core::WorkerEnv& env) -> std::string {
            BucketJob job(env, one.name);
            std::string all;
            for (int step = 0; step < 3; ++step) {
              const at::Tensor flat = gradient(env.rank, step);
              exchange(*job.bucket, flat);
              all += digest_of(flat);
            }
            return fmt::format("{} {}", job.wire.bytes(), all);
          });
      for (const auto& result : results) {
        CHECK(result.text == results[0].text);
        CHECK(result.text.starts_with(fmt::format("{} ", 3 * one.bytes)));
      }
    }
  }
}

TEST_CASE("a bucket of vectors alone travels as it is, and has no state") {
  const std::vector<Slot> vectors{{.name = "a", .begin = 0, .elements = 30},
                                  {.name = "b", .begin = 30, .elements = 10}};
  for (const std::string name : {"onebit", "int8", "powersgd"}) {
    CAPTURE(name);
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      BucketJob job(env, name);
      const auto bucket =
          parallel::make_bucket({.name = name, .rank = 2}, 7, job.wire, vectors, at::kCPU);
      const at::Tensor flat = gradient(env.rank, 0).narrow(0, 0, 40).clone();
      exchange(*bucket, flat);
      const at::Tensor mean =
          (gradient(0, 0).narrow(0, 0, 40) + gradient(1, 0).narrow(0, 0, 40)) / 2;
      return fmt::format("{} {} {}", at::equal(flat, mean), job.wire.bytes(),
                         bucket->state().size());
    });
    for (const auto& result : results) CHECK(result.text == "true 160 0");
  }
}

TEST_CASE("a name that is no compression is a mistake of the program") {
  for (const auto& result : run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
         BucketJob job(env, "bf16");
         std::string said = "made";
         try {
           parallel::make_bucket({.name = "zip"}, 7, job.wire, slots(), at::kCPU);
         } catch (const core::InternalError& error) {
           said = error.what();
         }
         job.group.end("end");
         return said;
       })) {
    CHECK(result.text == "compress: zip is not known");
  }
}

std::string digests(BucketExchange& bucket) {
  std::string all;
  for (const auto& [name, shard] : bucket.state()) {
    all += name + " " + digest_of(shard.tensor) + "\n";
  }
  return all;
}

TEST_CASE("a step that is left out shows what is not finite and changes no state") {
  for (const std::string name : {"onebit", "int8", "powersgd"}) {
    CAPTURE(name);
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      BucketJob job(env, name);
      exchange(*job.bucket, gradient(env.rank, 0));
      const std::string before = digests(*job.bucket);
      const at::Tensor flat = gradient(env.rank, 1);
      if (env.rank == 1) flat[3] = std::numeric_limits<float>::infinity();
      exchange(*job.bucket, flat, at::ones({}));
      const bool is_seen = !at::isfinite(flat).all().item<bool>();
      exchange(*job.bucket, gradient(env.rank, 2));
      const std::string after = digests(*job.bucket);

      const auto other =  // that never saw the step
          parallel::make_bucket({.name = name, .rank = 2}, 7, job.wire, slots(), at::kCPU);
      exchange(*other, gradient(env.rank, 0));
      const bool is_kept = digests(*other) == before;
      exchange(*other, gradient(env.rank, 2));
      return fmt::format("seen {}, kept {}, went on {}", is_seen, is_kept,
                         digests(*other) == after);
    });
    for (const auto& result : results) CHECK(result.text == "seen true, kept true, went on true");
  }
}

TEST_CASE("with its state copied another bucket goes on to the same bits") {
  for (const std::string name : {"onebit", "int8", "powersgd"}) {
    CAPTURE(name);
    const auto results = run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) {
      BucketJob job(env, name);
      for (int step = 0; step < 3; ++step) exchange(*job.bucket, gradient(env.rank, step));
      const auto second =
          parallel::make_bucket({.name = name, .rank = 2}, 99, job.wire, slots(), at::kCPU);
      const auto saved = job.bucket->state();
      for (const auto& [key, shard] : second->state()) shard.tensor.copy_(saved.at(key).tensor);
      const at::Tensor one = gradient(env.rank, 3), other = gradient(env.rank, 3);
      exchange(*job.bucket, one);
      exchange(*second, other);
      return at::equal(one, other) ? "same" : "other";
    });
    for (const auto& result : results) CHECK(result.text == "same");
  }
}

}  // namespace
