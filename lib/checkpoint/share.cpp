#include "lib/checkpoint/share.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
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
};

// All of them, and the portions of each writer.
struct Division {
  std::vector<Replicated> tensors = {};
  std::vector<std::vector<format::Portion>> portions = {};
};

bool is_divided(const TensorFile& file) {
  return file.part.empty() && file.kind != TensorFile::Kind::kPerRank;
}

Division divide(const Contents& contents, int writers) {
  Division division;
  std::vector<format::Extent> extents;
  for (const TensorFile& file : contents.files) {
    if (!is_divided(file)) continue;
    for (const auto& [name, shard] : file.shards) {
      division.tensors.push_back({&file, &name, &shard});
      extents.push_back({.elements = shard.tensor.numel(),
                         .element_bytes = static_cast<std::int64_t>(shard.tensor.element_size())});
    }
  }
  division.portions = format::divide(extents, writers);
  return division;
}

// Returns the name of the writer's part of `file`; parts are numbered among the writers that have
// one. A writer without a portion gets the first name and writes nothing.
std::string name_of_part(const TensorFile& file, const Division& division, int writer) {
  int number = 0, count = 0;
  for (int one = 0; one < static_cast<int>(division.portions.size()); ++one) {
    const bool has_some = std::ranges::any_of(
        division.portions[static_cast<std::size_t>(one)],
        [&](const auto& portion) { return division.tensors[portion.tensor].file == &file; });
    if (has_some && one < writer) ++number;
    if (has_some) ++count;
  }
  return part_name(file.name, number, count);
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
  const Division division = divide(contents, writers);
  for (const TensorFile& file : contents.files) {
    if (!file.part.empty()) {
      share.files.push_back(owned_of(file));
    } else if (!is_divided(file)) {
      if (is_first) share.files.push_back(file);
    } else {
      TensorFile& own = share.files.emplace_back(TensorFile{
          .name = file.name, .kind = file.kind, .part = name_of_part(file, division, writer)});
      for (const auto& [name, shard] : file.shards) {
        own.bytes_of_all += static_cast<std::int64_t>(shard.tensor.nbytes());
        // No portion has tensors without elements, which the table must name too.
        if (is_first && shard.tensor.numel() == 0) own.shards.emplace(name, shard);
      }
      for (const format::Portion& portion : division.portions[static_cast<std::size_t>(writer)]) {
        const Replicated& one = division.tensors[portion.tensor];
        if (one.file == &file) {
          own.shards.emplace(*one.name, range_of(*one.shard, portion.first, portion.last));
        }
      }
    }
  }
  return share;
}

}  // namespace scaletrain::checkpoint
