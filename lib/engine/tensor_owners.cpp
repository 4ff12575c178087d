#include "lib/engine/tensor_owners.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "lib/core/error.h"
#include "lib/parallel/flat_memory.h"

namespace scaletrain::engine {
namespace {

using units::NamedParameter;

constexpr std::int64_t kPortion = 8 << 20;  // most elements of all ranks in one all-to-all

// A parameter that is sharded over the ranks.
struct SharedTensor {
  NamedParameter part;
  std::vector<std::int64_t> counts;  // elements of each rank's shard
  int owner = 0;
  at::Tensor whole;  // full tensor, on its owner only; without memory between steps
};

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// True if the shard is not a range of the full parameter's elements.
bool is_tensor_parallel(const NamedParameter& part) {
  return part.shard && std::ranges::any_of(part.shard->slices, [&](const format::Piece& slice) {
           return slice.size != part.shard->shape;
         });
}

// Assigns the largest tensors first, each to the rank that owns the fewest elements.
void choose_owners(std::vector<SharedTensor>& tensors, int ranks) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sum_of(tensors[a].counts) > sum_of(tensors[b].counts);
  });
  std::vector<std::int64_t> owned(static_cast<std::size_t>(ranks));
  for (const std::size_t i : order) {
    const auto least = std::min_element(owned.begin(), owned.end());
    tensors[i].owner = static_cast<int>(least - owned.begin());
    *least += sum_of(tensors[i].counts);
  }
}

class TensorOwners : public optim::Optimizer {
 public:
  TensorOwners(const optim::MakeOptimizer& make, const std::vector<NamedParameter>& parts,
               dist::Group& ranks)
      : ranks_(ranks), tensors_(share(parts, ranks)) {
    std::vector<NamedParameter> owned;
    for (SharedTensor& one : tensors_) {
      if (one.owner != ranks_.rank()) continue;
      one.whole = at::empty(one.part.shape(), one.part.tensor.options().requires_grad(false));
      owned.push_back(one.part);
      owned.back().tensor = one.whole;
      owned.back().shard.reset();
      owned.back().begin = 0;
    }
    inner_ = make(std::move(owned));
    share_names(inner_->state());
    for (const SharedTensor& one : tensors_) {
      if (one.whole.defined()) parallel::give_memory_back(one.whole);
    }
  }

  using Optimizer::step;
  void step(double lr, const std::optional<at::Tensor>& found_inf) override {
    const at::NoGradGuard no_grad;
    for (const SharedTensor& one : tensors_) {
      if (!one.whole.defined()) continue;
      parallel::take_memory(one.whole);
      one.whole.mutable_grad() = at::empty(one.whole.sizes(), one.whole.options());
    }
    const auto whole_weights = [](const SharedTensor& one) { return one.whole; };
    in_portions([&](std::size_t begin, std::size_t end) {
      bring(begin, end, weights_of_part, whole_weights);
      bring(begin, end, gradient_of_part, [](const SharedTensor& one) { return one.whole.grad(); });
    });
    inner_->step(lr, found_inf);
    inner_->settle();
    for (const SharedTensor& one : tensors_) {
      if (one.whole.defined()) one.whole.mutable_grad().reset();
    }
    in_portions([&](std::size_t begin, std::size_t end) {
      give_out(begin, end, whole_weights, weights_of_part);
    });
    for (const SharedTensor& one : tensors_) {
      if (one.whole.defined()) parallel::give_memory_back(one.whole);
    }
  }

  void set_weight_decay(double weight_decay) override { inner_->set_weight_decay(weight_decay); }
  units::Shards state() override {
    units::Shards named = inner_->state();
    for (const std::string& name : of_owners_) named.try_emplace(name);
    for (const SharedTensor& one : tensors_) {
      const auto names = own_weights_.find(one.part.name);
      if (names == own_weights_.end()) continue;
      for (const std::string& name : names->second) {
        named[name] = one.part.state();
      }
    }
    return named;
  }
  void resume_at(std::int64_t step) override { inner_->resume_at(step); }
  bool has_evaluation_weights() const override { return inner_->has_evaluation_weights(); }

  // Owners compute them from the full weights; each rank gets its shards.
  std::map<std::string, at::Tensor> evaluation_weights() override {
    if (!has_evaluation_weights()) return {};
    const at::NoGradGuard no_grad;
    for (const SharedTensor& one : tensors_) {
      if (one.whole.defined()) parallel::take_memory(one.whole);
    }
    in_portions([&](std::size_t begin, std::size_t end) {
      bring(begin, end, weights_of_part, [](const SharedTensor& one) { return one.whole; });
    });
    const std::map<std::string, at::Tensor> wholes = inner_->evaluation_weights();
    std::map<std::string, at::Tensor> parts;
    for (const SharedTensor& one : tensors_) {
      if (one.whole.defined()) parallel::give_memory_back(one.whole);
      if (one.part.tensor.numel() == 0) continue;
      parts.emplace(one.part.name, at::empty_like(one.part.tensor.detach()));
    }
    in_portions([&](std::size_t begin, std::size_t end) {
      give_out(
          begin, end, [&](const SharedTensor& one) { return wholes.at(one.part.name); },
          [&](const SharedTensor& one) { return parts.at(one.part.name); });
    });
    return parts;
  }

 private:
  static std::vector<SharedTensor> share(const std::vector<NamedParameter>& parts,
                                         dist::Group& ranks) {
    std::vector<SharedTensor> tensors;
    for (const NamedParameter& part : parts) {
      if (is_tensor_parallel(part)) {
        throw core::InternalError("an owner for each tensor",
                                  fmt::format("{} is cut in another way too", part.name));
      }
      if (part.tensor.requires_grad()) tensors.push_back({.part = part, .counts = {}, .whole = {}});
    }
    const auto count = static_cast<std::int64_t>(tensors.size());
    at::Tensor all =
        at::zeros({ranks.world_size(), count}, at::TensorOptions(at::kLong).device(ranks.device()));
    for (std::int64_t i = 0; i < count; ++i) {
      all[ranks.rank()][i].fill_(tensors[static_cast<std::size_t>(i)].part.tensor.numel());
    }
    ranks.all_reduce_sum(all, "parts of the parameters").wait();
    all = ranks.to_host(all);
    for (std::int64_t i = 0; i < count; ++i) {
      SharedTensor& one = tensors[static_cast<std::size_t>(i)];
      for (std::int64_t rank = 0; rank < ranks.world_size(); ++rank) {
        one.counts.push_back(all.const_data_ptr<std::int64_t>()[rank * count + i]);
      }
    }
    choose_owners(tensors, ranks.world_size());
    return tensors;
  }

  static at::Tensor weights_of_part(const SharedTensor& one) { return one.part.tensor.detach(); }

  // Exchanges the names of per-parameter state tensors of all ranks: "=NAME" if the tensor is the
  // weights themselves, "+NAME" otherwise.
  void share_names(const units::Shards& state) {
    std::set<const c10::StorageImpl*> wholes;
    for (const SharedTensor& one : tensors_) {
      if (one.whole.defined()) wholes.insert(one.whole.storage().unsafeGetStorageImpl());
    }
    std::string own;
    for (const auto& [name, shard] : state) {
      if (name.find('/') == std::string::npos) continue;
      const bool is_weight = wholes.contains(shard.tensor.storage().unsafeGetStorageImpl());
      own.append(is_weight ? "=" : "+").append(name).append("\n");
    }
    for (int rank = 0; rank < ranks_.world_size(); ++rank) {
      std::istringstream lines(ranks_.broadcast_text(rank == ranks_.rank() ? own : "", rank,
                                                     "names of optimizer state"));
      for (std::string line; std::getline(lines, line);) {
        const std::string name = line.substr(1);
        if (line.front() == '=') {
          own_weights_[name.substr(name.find('/') + 1)].insert(name);
        } else {
          of_owners_.insert(name);
        }
      }
    }
  }

  static at::Tensor gradient_of_part(const SharedTensor& one) {
    const at::Tensor gradient = one.part.tensor.grad();
    if (gradient.defined() || one.part.tensor.numel() == 0) return gradient;
    throw core::InternalError(one.part.name, "has no gradient");
  }

  // Calls `body` with ranges of consecutive tensors of one dtype that travel together.
  template <class Body>
  void in_portions(const Body& body) const {
    std::size_t begin = 0;
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const bool is_other =
          tensors_[i].part.tensor.scalar_type() != tensors_[begin].part.tensor.scalar_type();
      if (i > begin && (elements >= kPortion || is_other)) {
        body(begin, i);
        begin = i;
        elements = 0;
      }
      elements += sum_of(tensors_[i].counts);
    }
    if (begin < tensors_.size()) body(begin, tensors_.size());
  }

  // Calls `body` with each tensor in the range that `rank` owns, in the order of the message.
  template <class Body>
  void for_each_owned_by(int rank, std::size_t begin, std::size_t end, const Body& body) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (tensors_[i].owner == rank) body(tensors_[i]);
    }
  }

  // Elements of a portion by rank: of_parts, this rank's shards of tensors that each rank owns;
  // of_wholes, each rank's shards of tensors that this rank owns.
  struct Counts {
    std::vector<std::int64_t> of_parts, of_wholes;
  };
  Counts count(std::size_t begin, std::size_t end) const {
    const auto ranks = static_cast<std::size_t>(ranks_.world_size());
    const auto own = static_cast<std::size_t>(ranks_.rank());
    Counts counts{std::vector<std::int64_t>(ranks), std::vector<std::int64_t>(ranks)};
    for (std::size_t i = begin; i < end; ++i) {
      const SharedTensor& one = tensors_[i];
      counts.of_parts[static_cast<std::size_t>(one.owner)] += one.counts[own];
      if (one.owner != ranks_.rank()) continue;
      for (std::size_t rank = 0; rank < ranks; ++rank) counts.of_wholes[rank] += one.counts[rank];
    }
    return counts;
  }

  at::Tensor message(std::size_t begin, const std::vector<std::int64_t>& counts) const {
    const at::TensorOptions type(tensors_[begin].part.tensor.scalar_type());
    return at::empty({sum_of(counts)}, type.device(ranks_.device()));
  }

  // Calls `body` with each shard of this rank and its slice of the message `sent`.
  template <class Part, class Body>
  void for_each_part(std::size_t begin, std::size_t end, const at::Tensor& sent, const Part& part,
                     const Body& body) const {
    std::int64_t at = 0;
    for (int rank = 0; rank < ranks_.world_size(); ++rank) {
      for_each_owned_by(rank, begin, end, [&](const SharedTensor& one) {
        const std::int64_t count = one.counts[static_cast<std::size_t>(ranks_.rank())];
        if (count > 0) body(part(one).view({-1}), sent.narrow(0, at, count));
        at += count;
      });
    }
  }

  // Calls `body` with each rank's shard of the tensors that this rank owns, and its slice of the
  // message `received`.
  template <class Whole, class Body>
  void for_each_piece(std::size_t begin, std::size_t end, const at::Tensor& received,
                      const Whole& whole, const Body& body) const {
    std::int64_t at = 0;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks_.world_size()); ++rank) {
      for_each_owned_by(ranks_.rank(), begin, end, [&](const SharedTensor& one) {
        const std::int64_t first = std::accumulate(
            one.counts.begin(), one.counts.begin() + static_cast<std::ptrdiff_t>(rank),
            std::int64_t{0});
        const std::int64_t count = one.counts[rank];
        if (count > 0) {
          body(whole(one).view({-1}).narrow(0, first, count), received.narrow(0, at, count));
        }
        at += count;
      });
    }
  }

  template <class Part, class Whole>
  void bring(std::size_t begin, std::size_t end, const Part& part, const Whole& whole) const {
    const Counts counts = count(begin, end);
    const at::Tensor sent = message(begin, counts.of_parts);
    const at::Tensor received = message(begin, counts.of_wholes);
    for_each_part(begin, end, sent, part,
                  [](const at::Tensor& own, const at::Tensor& place) { place.copy_(own); });
    ranks_.all_to_all(received, sent, counts.of_wholes, counts.of_parts, "tensors to their owners")
        .wait();
    for_each_piece(begin, end, received, whole,
                   [](const at::Tensor& own, const at::Tensor& place) { own.copy_(place); });
  }

  template <class Whole, class Part>
  void give_out(std::size_t begin, std::size_t end, const Whole& whole, const Part& part) const {
    const Counts counts = count(begin, end);
    const at::Tensor sent = message(begin, counts.of_wholes);
    const at::Tensor received = message(begin, counts.of_parts);
    for_each_piece(begin, end, sent, whole,
                   [](const at::Tensor& own, const at::Tensor& place) { place.copy_(own); });
    ranks_.all_to_all(received, sent, counts.of_parts, counts.of_wholes, "tensors of their owners")
        .wait();
    for_each_part(begin, end, received, part,
                  [](const at::Tensor& own, const at::Tensor& place) { own.copy_(place); });
  }

  dist::Group& ranks_;
  std::vector<SharedTensor> tensors_;
  std::set<std::string> of_owners_;  // names of state that one of the ranks holds
  // State names, by parameter, of state that is the weights themselves.
  std::map<std::string, std::set<std::string>> own_weights_;
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace

std::unique_ptr<optim::Optimizer> with_owners(const optim::MakeOptimizer& make,
                                              const std::vector<units::NamedParameter>& parts,
                                              dist::Group& ranks) {
  return std::make_unique<TensorOwners>(make, parts, ranks);
}

}  // namespace scaletrain::engine
