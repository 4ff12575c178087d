#include "lib/dist/shm/exchange.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "tests/dist/shm/ranks_support.h"

namespace scaletrain::dist {
namespace {

using namespace std::chrono_literals;
using Operation = c10d::ReduceOp::RedOpType;
using Tensors = std::vector<at::Tensor>;
using testing::run_exchange;

ArenaShape shape_of(int ranks) { return {.ranks = ranks, .slots = 4, .slot_bytes = 1024}; }

Bytes bytes(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// What `rank` has; each number another.
at::Tensor own(int rank, std::int64_t count, at::ScalarType type) {
  const at::Tensor numbers = at::arange(count, at::kDouble).add(1.0 + rank).mul(0.37).sin();
  if (type == at::kBool) return numbers.gt(0.5);
  const bool floating = at::isFloatingType(type);
  const bool is_unsigned = type == at::kByte;
  return (floating ? numbers : numbers.mul(20).add(is_unsigned ? 20 : 0)).to(type);
}

at::Tensor sum_in_order(int ranks, std::int64_t count, at::ScalarType type) {
  const bool narrow = type == at::kBFloat16 || type == at::kHalf;
  at::Tensor sum = own(0, count, type).to(narrow ? at::kFloat : type);
  for (int rank = 1; rank < ranks; ++rank) {
    const at::Tensor one = own(rank, count, type);
    sum = type == at::kBool ? sum.logical_or(one) : sum.add(one.to(sum.scalar_type()));
  }
  return sum.to(type);
}

// Whether all ranks said nothing.
bool quiet(const std::vector<std::string>& said) {
  for (const std::string& text : said) CHECK(text.empty());
  return std::all_of(said.begin(), said.end(), [](const auto& text) { return text.empty(); });
}

constexpr std::array kTypes = {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf, at::kChar,
                               at::kByte,   at::kShort, at::kInt,      at::kLong, at::kBool};
// 1,024 bytes are a slot; from 16 kB on each rank adds up a part.
constexpr std::array<std::int64_t, 7> kCounts = {0, 1, 7, 257, 5000, 16384, 20011};

TEST_CASE("an all-reduce has the bits of the sum in the order of the ranks") {
  for (const int ranks : {2, 3, 4}) {
    std::atomic<int> wrong = 0;
    CHECK(quiet(run_exchange(shape_of(ranks), [&](ShmExchange& exchange) {
      for (const at::ScalarType type : kTypes) {
        for (const std::int64_t count : kCounts) {
          const at::Tensor data = own(exchange.rank(), count, type);
          exchange.all_reduce(bytes(data), {.type = type});
          if (!data.equal(sum_in_order(ranks, count, type))) ++wrong;
        }
      }
    })));
    CAPTURE(ranks);
    CHECK(wrong == 0);
  }
}

TEST_CASE("maxima, minima and means are those of all ranks") {
  std::atomic<int> wrong = 0;
  CHECK(quiet(run_exchange(shape_of(3), [&](ShmExchange& exchange) {
    for (const std::int64_t count : {5L, 9001L}) {
      const at::Tensor all = at::stack(
          {own(0, count, at::kFloat), own(1, count, at::kFloat), own(2, count, at::kFloat)});
      const auto reduced = [&](Operation operation) {
        at::Tensor data = own(exchange.rank(), count, at::kFloat);
        exchange.all_reduce(bytes(data), {.type = at::kFloat, .operation = operation});
        return data;
      };
      if (!reduced(Operation::MAX).equal(all.amax(0))) ++wrong;
      if (!reduced(Operation::MIN).equal(all.amin(0))) ++wrong;
      if (!reduced(Operation::AVG).allclose(all.mean(0), 1e-5, 1e-7)) ++wrong;
    }
  })));
  CHECK(wrong == 0);
}

TEST_CASE("a reduce-scatter has the bits of the all-reduce, also with other sizes for each rank") {
  for (const int ranks : {2, 3}) {
    std::atomic<int> wrong = 0;
    CHECK(quiet(run_exchange(shape_of(ranks), [&](ShmExchange& exchange) {
      for (const std::int64_t size : {0L, 1L, 600L, 3001L}) {
        for (const std::int64_t more : {0L, 5L}) {
          const auto rank = exchange.rank();
          std::vector<ConstBytes> inputs;
          std::int64_t begin = 0, own_begin = 0;
          const at::Tensor whole = own(rank, ranks * (size + more * ranks), at::kFloat);
          for (int peer = 0; peer < ranks; ++peer) {
            if (peer == rank) own_begin = begin;
            const at::Tensor part = whole.narrow(0, begin, size + more * peer);
            inputs.push_back(bytes(part));
            begin += part.numel();
          }
          const at::Tensor output = at::empty({size + more * rank});
          exchange.reduce_scatter(inputs, bytes(output), {});
          const at::Tensor expected = sum_in_order(ranks, whole.numel(), at::kFloat);
          if (!output.equal(expected.narrow(0, own_begin, output.numel()))) ++wrong;
        }
      }
    })));
    CHECK(wrong == 0);
  }
}

TEST_CASE("gathering brings what each rank has, to all or to the root alone; also in place") {
  std::atomic<int> wrong = 0;
  CHECK(quiet(run_exchange(shape_of(3), [&](ShmExchange& exchange) {
    for (const std::int64_t count : {0L, 1L, 1000L}) {
      const at::Tensor mine = own(exchange.rank(), count, at::kLong);
      const auto check = [&](const at::Tensor& all) {
        for (int peer = 0; peer < 3; ++peer) {
          if (!all[peer].equal(own(peer, count, at::kLong))) ++wrong;
        }
      };
      at::Tensor all = at::zeros({3, count}, at::kLong);
      exchange.all_gather(bytes(mine), {bytes(all[0]), bytes(all[1]), bytes(all[2])});
      check(all);
      all.zero_();
      all[exchange.rank()].copy_(mine);
      exchange.all_gather(bytes(all[exchange.rank()]),
                          {bytes(all[0]), bytes(all[1]), bytes(all[2])});
      check(all);
      for (int root = 0; root < 3; ++root) {
        all.zero_();
        exchange.gather(bytes(mine), {bytes(all[0]), bytes(all[1]), bytes(all[2])}, root);
        if (exchange.rank() == root) check(all);
        if (exchange.rank() != root && all.any().item<bool>()) ++wrong;
      }
    }
  })));
  CHECK(wrong == 0);
}

TEST_CASE("a broadcast brings what the root has") {
  std::atomic<int> wrong = 0;
  CHECK(quiet(run_exchange(shape_of(3), [&](ShmExchange& exchange) {
    for (const std::int64_t count : {0L, 1L, 5001L}) {
      for (int root = 0; root < 3; ++root) {
        const at::Tensor data = own(exchange.rank(), count, at::kByte);
        exchange.broadcast(bytes(data), root);
        if (!data.equal(own(root, count, at::kByte))) ++wrong;
      }
    }
  })));
  CHECK(wrong == 0);
}

TEST_CASE("an all-to-all brings each rank its part of each, of any size") {
  std::atomic<int> wrong = 0;
  CHECK(quiet(run_exchange(shape_of(3), [&](ShmExchange& exchange) {
    const int rank = exchange.rank();
    const auto size = [](int from, int to) { return (from * 3 + to) % 4 * 700; };  // some are 0
    const auto value = [](int from, int to) { return from * 10 + to; };
    Tensors sent, got;
    std::vector<ConstBytes> inputs;
    std::vector<Bytes> outputs;
    for (int peer = 0; peer < 3; ++peer) {
      sent.push_back(at::full({size(rank, peer)}, value(rank, peer), at::kByte));
      got.push_back(at::zeros({size(peer, rank)}, at::kByte));
      inputs.push_back(bytes(sent.back()));
      outputs.push_back(bytes(got.back()));
    }
    exchange.all_to_all(inputs, outputs);
    for (int peer = 0; peer < 3; ++peer) {
      if (!got[static_cast<std::size_t>(peer)].eq(value(peer, rank)).all().item<bool>()) ++wrong;
    }
  })));
  CHECK(wrong == 0);
}

TEST_CASE("an all-to-all of more than caches keep has the same bytes, wherever parts begin") {
  constexpr std::int64_t kParts = 5'000'001;  // 10 MB in all
  const auto sent = [](int from, int to) {
    return at::arange(kParts, at::kInt).mul(7).add(from * 3 + to).bitwise_and(255).to(at::kByte);
  };
  const ArenaShape shape{.ranks = 2, .slots = 4, .slot_bytes = 1 << 16};
  std::atomic<int> wrong = 0;
  CHECK(quiet(run_exchange(shape, [&](ShmExchange& exchange) {
    const int rank = exchange.rank();
    const at::Tensor to_all = at::cat({sent(rank, 0), sent(rank, 1)});
    const at::Tensor got = at::zeros_like(to_all);
    constexpr std::size_t kPart = kParts;
    exchange.all_to_all({bytes(to_all).first(kPart), bytes(to_all).last(kPart)},
                        {bytes(got).first(kPart), bytes(got).last(kPart)});
    if (!got.equal(at::cat({sent(0, rank), sent(1, rank)}))) ++wrong;
  })));
  CHECK(wrong == 0);
}

TEST_CASE("no rank leaves a barrier before all have come; thousands of small calls are right") {
  for (const int ranks : {2, 4}) {
    std::atomic<int> came = 0, wrong = 0;
    CHECK(quiet(run_exchange(shape_of(ranks), [&](ShmExchange& exchange) {
      for (int i = 1; i <= 1000; ++i) {
        ++came;
        exchange.barrier();
        if (came < i * ranks) ++wrong;
        const at::Tensor one = at::full({3}, i + exchange.rank(), at::kLong);
        exchange.all_reduce(bytes(one), {.type = at::kLong});
        if (!one.eq(i * ranks + ranks * (ranks - 1) / 2).all().item<bool>()) ++wrong;
      }
    })));
    CHECK(wrong == 0);
  }
}

TEST_CASE("ranks that ask for different things all get an error that names both") {
  const auto said = run_exchange(shape_of(3), [&](ShmExchange& exchange) {
    const at::Tensor mine = at::zeros({exchange.rank() == 2 ? 5 : 4});
    if (exchange.rank() == 1) {
      exchange.broadcast(bytes(mine), 1);
    } else {
      exchange.all_reduce(bytes(mine), {});
    }
  });
  CHECK(said[0] ==
        "rank 0 of the group: takes part in all-reduce of 16 bytes (Float, operation 0), and rank "
        "1 in broadcast of 16 bytes at rank 1");
  CHECK(said[1].starts_with("rank 1 of the group: takes part in broadcast of 16 bytes at rank 1"));
  CHECK(said[2] ==
        "rank 2 of the group: takes part in all-reduce of 20 bytes (Float, operation 0), and rank "
        "0 in all-reduce of 16 bytes (Float, operation 0)");
}

TEST_CASE("another type, another list or another count of rows is found, too; then all is over") {
  const auto by_type = run_exchange(shape_of(2), [&](ShmExchange& exchange) {
    const at::Tensor data = at::zeros({4});
    const bool first = exchange.rank() == 0;
    try {
      exchange.all_reduce(bytes(data), {.type = first ? at::kFloat : at::kInt});
    } catch (const std::exception&) {
      exchange.barrier();
    }
  });
  CHECK(by_type == std::vector<std::string>(2, "it was ended"));

  const auto by_list = run_exchange(shape_of(2), [&](ShmExchange& exchange) {
    const at::Tensor data = at::zeros({64});
    const std::size_t third = exchange.rank() == 0 ? 128 : 64;
    exchange.reduce_scatter({bytes(data).first(third), bytes(data).subspan(0, 128)},
                            bytes(data).first(exchange.rank() == 0 ? third : 128), {});
  });
  CHECK(by_list[0].ends_with("with other sizes in its list"));
  CHECK(by_list[1].ends_with("with other sizes in its list"));

  const auto by_rows = run_exchange(shape_of(2), [&](ShmExchange& exchange) {
    const at::Tensor data = at::zeros({4}), to = at::zeros({4});
    const std::size_t sends = exchange.rank() == 0 ? 12 : 4;  // rank 1 expects 4
    exchange.all_to_all({bytes(data).first(4), bytes(data).first(sends)},
                        {bytes(to).first(4), bytes(to).first(4)});
  });
  CHECK(by_rows[1] ==
        "rank 1 of the group: expects 4 bytes of rank 0 in an all-to-all, which sends 12");
  CHECK(!by_rows[0].empty());
}

TEST_CASE("a rank that does not come is waited for as long as was said") {
  const core::SteadyTime begin = core::now();
  const auto said = run_exchange(
      shape_of(2),
      [&](ShmExchange& exchange) {
        if (exchange.rank() == 0) exchange.barrier();
        while (core::seconds_since(begin) < 0.6) std::this_thread::yield();  // it is still there
      },
      200ms);
  CHECK(said[0] == "rank 1 of the group did not come in time");
  CHECK(core::seconds_since(begin) < 10);
}

}  // namespace
}  // namespace scaletrain::dist
