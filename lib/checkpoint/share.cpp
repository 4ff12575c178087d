#include "lib/checkpoint/share.h"

#include <ATen/core/grad_mode.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/checkpoint/piece_division.h"

namespace scaletrain::checkpoint {
namespace {

// A tensor that every rank holds in full.
struct Replicated {
  const TensorFile* file;
  const std::string* name;
  const units::Shard* shard;

  std::int64_t element_bytes() const {
    return static_cast<std::int64_t>(shard->tensor.element_size());
  }
};

bool is_divided(const TensorFile& file) {
  return file.part.empty() && file.kind != TensorFile::Kind::kPerRank;
}

std::vector<Replicated> replicated_of(const Contents& contents) {
  std::vector<Replicated> all;
  for (const TensorFile& file : contents.files) {
    if (!is_divided(file)) continue;
    for (const auto& [name, shard] : file.shards) all.push_back({&file, &name, &shard});
  }
  return all;
}

using Portions = std::vector<std::vector<format::Portion>>;  // by writer

Portions divide(const std::vector<Replicated>& all, int writers) {
  std::vector<format::Extent> extents;
  extents.reserve(all.size());
  for (const Replicated& one : all) {
    extents.push_back(
        {.elements = one.shard->tensor.numel(), .element_bytes = one.element_bytes()});
  }
  return format::divide(extents, writers);
}

// Returns the name of the writer's part of `file`; parts are numbered among the writers that have
// one. A writer without a portion gets the first name and writes nothing.
std::string name_of_part(const TensorFile& file, const std::vector<Replicated>& all,
                         const Portions& portions, int writer) {
  std::set<int> writers;
  for (int one = 0; one < static_cast<int>(portions.size()); ++one) {
    for (const format::Portion& portion : portions[static_cast<std::size_t>(one)]) {
      if (all[portion.tensor].file == &file) writers.insert(one);
    }
  }
  const auto number = std::distance(writers.begin(), writers.lower_bound(writer));
  return part_name(file.name, static_cast<int>(number), static_cast<int>(writers.size()));
}

TensorFile owned_of(const TensorFile& file) {
  TensorFile own = file;
  std::erase_if(own.shards,
                [](const auto& one) { return !one.second.owned || !one.second.is_here(); });
  return own;
}

}  // namespace

Contents share_of(const Contents& contents, int writer, int writers) {
  const at::NoGradGuard no_grad;
  const bool is_first = writer == 0;
  Contents share{.files = {}, .state = contents.state, .stands = contents.stands};
  if (is_first) {
    share.classes = contents.classes;
    share.recipe = contents.recipe;
  }
  const std::vector<Replicated> all = replicated_of(contents);
  const Portions portions = divide(all, writers);
  for (const TensorFile& file : contents.files) {
    if (!file.part.empty()) {
      share.files.push_back(owned_of(file));
    } else if (!is_divided(file)) {
      if (is_first) share.files.push_back(file);
    } else {
      TensorFile& own = share.files.emplace_back(TensorFile{
          .name = file.name, .kind = file.kind, .part = name_of_part(file, all, portions, writer)});
      for (const auto& [name, shard] : file.shards) {
        own.bytes_of_all += static_cast<std::int64_t>(shard.tensor.nbytes());
        // No portion has tensors without elements, which the table must name too.
        if (is_first && shard.tensor.numel() == 0) own.shards.emplace(name, shard);
      }
      for (const format::Portion& portion : portions[static_cast<std::size_t>(writer)]) {
        const Replicated& one = all[portion.tensor];
        if (one.file == &file) {
          own.shards.emplace(*one.name, range_of(*one.shard, portion.first, portion.last));
        }
      }
    }
  }
  return share;
}

}  // namespace scaletrain::checkpoint
