#include "lib/train/integrity/replica_check.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/core/text/json_text.h"
#include "lib/core/text/text.h"
#include "lib/train/integrity/bit_digest.h"
#include "lib/train/integrity/first_finding.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kParts = 64;  // that a range is divided into in the search for an element
constexpr std::size_t kShownRanks = 8;

// FNV-1a of the name and of the elements that the shard has.
std::int64_t item_key(const std::string& name, const units::Shard& shard) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const char letter : name) add(static_cast<unsigned char>(letter));
  for (const format::Piece& slice : shard.slices) {
    for (const std::int64_t corner : slice.begin) add(static_cast<std::uint64_t>(corner));
    for (const std::int64_t size : slice.size) add(static_cast<std::uint64_t>(size));
    add(static_cast<std::uint64_t>(slice.first));
    add(static_cast<std::uint64_t>(slice.last));
  }
  return static_cast<std::int64_t>(hash);
}

// Position in the full tensor of element `index` of a shard's tensor.
std::int64_t position_of(const units::Shard& shard, std::int64_t index) {
  for (const format::Piece& slice : shard.slices) {
    if (index >= slice.count()) {
      index -= slice.count();
      continue;
    }
    std::int64_t rest = slice.first + index, position = 0, stride = 1;
    for (std::size_t i = slice.size.size(); i-- > 0;) {
      position += (slice.begin[i] + rest % slice.size[i]) * stride;
      rest /= slice.size[i];
      stride *= shard.shape[i];
    }
    return position;
  }
  return index;
}

// The value that more than half of `values` have; nullopt if there is none.
std::optional<std::int64_t> majority(const std::vector<std::int64_t>& values) {
  for (const std::int64_t value : values) {
    if (2 * std::ranges::count(values, value) > std::ssize(values)) return value;
  }
  return std::nullopt;
}

bool all_equal(const std::vector<std::int64_t>& values) {
  return std::ranges::all_of(values, [&](std::int64_t value) { return value == values.front(); });
}

std::string json_of(const ReplicaDifference& difference) {
  // Values that are not finite have no JSON number.
  std::vector<std::pair<int, std::string>> values;
  for (const auto& [rank, value] : difference.values) {
    values.emplace_back(rank, fmt::format("{}", value));
  }
  return core::json_text(nlohmann::json{{"tensor", difference.tensor},
                                        {"element", difference.element},
                                        {"tensors", difference.tensors},
                                        {"values", values},
                                        {"wrong", difference.wrong}});
}

ReplicaDifference parsed(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  ReplicaDifference result{.tensor = json.at("tensor"),
                           .element = json.at("element"),
                           .tensors = json.at("tensors"),
                           .values = {},
                           .wrong = json.at("wrong")};
  for (const auto& value : json.at("values")) {
    result.values.emplace_back(value.at(0), std::stod(value.at(1).get<std::string>()));
  }
  return result;
}

dist::Group& comparable_ranks(const Run& run) {
  return run.recipe.sync.is_rare() ? run.mesh->copies_in_model() : run.mesh->copies();
}

}  // namespace

// Digests of the ranks that may own the same elements, by key.
class ReplicaCheck::Table {
 public:
  struct Row {
    std::int64_t key = 0;
    std::vector<std::size_t> holders;   // places in the group
    std::vector<std::int64_t> digests;  // of the holders
  };

  // `all`: [ranks, 1 + items, 2] on the host; a rank's first row is its number in the job and how
  // many items follow.
  explicit Table(const at::Tensor& all) {
    const auto values = all.accessor<std::int64_t, 3>();
    std::map<std::int64_t, std::size_t> rows;
    for (std::int64_t rank = 0; rank < all.size(0); ++rank) {
      job_ranks_.push_back(static_cast<int>(values[rank][0][0]));
      for (std::int64_t i = 1; i <= values[rank][0][1]; ++i) {
        const std::int64_t key = values[rank][i][0];
        const auto [row, is_new] = rows.try_emplace(key, rows_.size());
        if (is_new) rows_.push_back({.key = key, .holders = {}, .digests = {}});
        rows_[row->second].holders.push_back(static_cast<std::size_t>(rank));
        rows_[row->second].digests.push_back(values[rank][i][1]);
      }
    }
    std::erase_if(rows_, [](const Row& row) { return all_equal(row.digests); });
  }

  const std::vector<Row>& different() const { return rows_; }
  int job_rank(std::size_t place) const { return job_ranks_.at(place); }

  // Ranks of the job that differ from a majority; empty if one of the rows has none.
  std::vector<int> wrong() const {
    std::set<int> ranks;
    for (const Row& row : rows_) {
      const std::optional<std::int64_t> right = majority(row.digests);
      if (!right) return {};
      for (std::size_t i = 0; i < row.holders.size(); ++i) {
        if (row.digests[i] != *right) ranks.insert(job_rank(row.holders[i]));
      }
    }
    return {ranks.begin(), ranks.end()};
  }

 private:
  std::vector<int> job_ranks_;
  std::vector<Row> rows_;
};

std::string ReplicaDifference::text() const {
  std::vector<std::string> of_ranks;
  for (const auto& [rank, value] : values) {
    if (of_ranks.size() == kShownRanks) break;
    of_ranks.push_back(fmt::format("{:.9g} on rank {}", value, rank));
  }
  const std::string more = values.size() > kShownRanks ? ", ..." : "";
  return fmt::format("{}, element {}: {}{}; {} {}", tensor, element, fmt::join(of_ranks, ", "),
                     more, core::counted(tensors, "tensor"), tensors == 1 ? "differs" : "differ");
}

std::string ReplicaDifference::verdict() const {
  if (wrong.empty()) {
    return values.size() == 2 ? "between two replicas no majority shows which rank is wrong"
                              : "no majority of the replicas shows which rank is wrong";
  }
  return fmt::format("{} {} {} wrong: the other replicas agree",
                     wrong.size() == 1 ? "rank" : "ranks", fmt::join(wrong, ", "),
                     wrong.size() == 1 ? "is" : "are");
}

ReplicaCheck::ReplicaCheck(Run& run) : run_(run), replicas_(comparable_ranks(run)) {}

std::string ReplicaCheck::not_applicable() const {
  if (replicas_.world_size() > 1) return "";
  if (run_.group->world_size() == 1) return "one rank has no replica to compare with";
  if (run_.recipe.sync.is_rare()) return "replicas of local SGD differ between synchronizations";
  return "each rank owns elements of its own, as parallel.shard leaves no replica";
}

std::vector<ReplicaCheck::Item> ReplicaCheck::items() const {
  std::vector<Item> result;
  const auto add = [&](const std::string& name, units::Shard shard) {
    if (!shard.is_here() || !shard.tensor.defined() || shard.tensor.numel() == 0) return;
    const std::int64_t key = item_key(name, shard);
    result.push_back({.key = key, .name = name, .shard = std::move(shard)});
  };
  for (const auto& [name, shard] : run_.trained()) add(name, shard);
  for (const auto& [name, shard] : run_.learner.optimizer->state()) add(name, shard);
  return result;
}

ReplicaCheck::Table ReplicaCheck::gather(const std::vector<Item>& own) {
  const at::Device device = replicas_.device();
  const auto options = at::TensorOptions(at::kLong);
  if (most_items_ == 0) {
    const at::Tensor most = at::full({1}, std::ssize(own), options.device(device));
    replicas_.all_reduce_max(most, "number of compared tensors").wait();
    most_items_ = replicas_.to_host(most).item<std::int64_t>();
  }
  const at::Tensor keys = at::zeros({1 + most_items_}, options);
  auto key = keys.accessor<std::int64_t, 1>();
  key[0] = replicas_.job_rank();
  std::vector<at::Tensor> digests{at::full({}, std::ssize(own), options.device(device))};
  for (const Item& item : own) {
    key[std::ssize(digests)] = item.key;
    digests.push_back(bit_digest(item.shard.tensor).to(device));
  }
  while (std::ssize(digests) <= most_items_) digests.push_back(at::zeros_like(digests.front()));
  const at::Tensor part = at::stack({keys.to(device), at::stack(digests)}, 1).unsqueeze(0);
  const at::Tensor all = at::empty({replicas_.world_size(), 1 + most_items_, 2}, part.options());
  replicas_.all_gather(all, part.contiguous(), "digests of replicas").wait();
  return Table(replicas_.to_host(all));
}

std::vector<double> ReplicaCheck::values_at(const Item* item, std::int64_t element) {
  const auto options = at::TensorOptions(at::kDouble).device(replicas_.device());
  const at::Tensor own = at::zeros({1}, options);
  if (item != nullptr) {
    own.copy_(item->shard.tensor.detach().contiguous().view({-1}).narrow(0, element, 1));
  }
  const at::Tensor all = at::empty({replicas_.world_size()}, options);
  replicas_.all_gather(all, own, "values of replicas").wait();
  const at::Tensor host = replicas_.to_host(all);
  const auto* const first = host.const_data_ptr<double>();
  return {first, first + host.numel()};
}

std::optional<ReplicaDifference> ReplicaCheck::locate(const Table& table,
                                                      const std::vector<Item>& own) {
  const Table::Row& row = table.different().front();
  const auto found = std::ranges::find(own, row.key, &Item::key);
  const Item* const item = found == own.end() ? nullptr : &*found;
  const auto options = at::TensorOptions(at::kLong).device(replicas_.device());
  const at::Tensor size = at::full({1}, item == nullptr ? 0 : item->shard.tensor.numel(), options);
  replicas_.all_reduce_max(size, "size of a tensor that differs").wait();

  // Each round finds the first of kParts parts of the range in which the holders differ.
  std::int64_t begin = 0, end = replicas_.to_host(size).item<std::int64_t>();
  while (end - begin > 1) {
    const at::Tensor digests =
        item == nullptr
            ? at::zeros({kParts}, options)
            : part_digests(item->shard.tensor, begin, end, kParts).to(replicas_.device());
    const at::Tensor all = at::empty({replicas_.world_size(), kParts}, options);
    replicas_.all_gather(all, digests.unsqueeze(0), "digests of parts").wait();
    const at::Tensor host = replicas_.to_host(all);
    const auto values = host.accessor<std::int64_t, 2>();
    std::int64_t part = 0;
    const auto differs = [&] {
      std::vector<std::int64_t> of_holders;
      for (const std::size_t place : row.holders) {
        of_holders.push_back(values[static_cast<std::int64_t>(place)][part]);
      }
      return !all_equal(of_holders);
    };
    while (part + 1 < kParts && !differs()) ++part;
    const std::int64_t step = (end - begin + kParts - 1) / kParts;
    begin += part * step;
    end = std::min(begin + step, end);
  }

  const std::vector<double> values = values_at(item, begin);
  if (item == nullptr) return std::nullopt;
  ReplicaDifference result{.tensor = item->name,
                           .element = position_of(item->shard, begin),
                           .tensors = std::ssize(table.different()),
                           .values = {},
                           .wrong = table.wrong()};
  for (const std::size_t place : row.holders) {
    result.values.emplace_back(table.job_rank(place), values.at(place));
  }
  return result;
}

std::optional<ReplicaDifference> ReplicaCheck::compare() {
  run_.engine->settle();
  run_.learner.optimizer->settle();
  const std::vector<Item> own = items();
  const Table table = gather(own);
  std::optional<ReplicaDifference> difference;
  if (!table.different().empty()) difference = locate(table, own);

  // Other ranks of the run may own other elements: the lowest rank that found a difference reports.
  const std::string found =
      first_finding(*run_.group, difference ? json_of(*difference) : "", "ranks that differ");
  return found.empty() ? std::nullopt : std::optional(parsed(found));
}

}  // namespace scaletrain::train
