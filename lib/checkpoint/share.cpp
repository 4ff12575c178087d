#include "lib/checkpoint/share.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <utility>

#include "lib/checkpoint/cut.h"
#include "lib/checkpoint/tensors.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/checkpoint/piece_division.h"

namespace scaletrain::checkpoint {
namespace {

// A tensor of a file that all ranks have alike, and where its piece goes.
struct Shared {
  const std::string* file;
  const std::string* name;
  const at::Tensor* tensor;
  Tensors* to;
};

void list(const std::string& file, const Tensors& tensors, Tensors& to, std::vector<Shared>& all) {
  for (const auto& [name, tensor] : tensors) all.push_back({&file, &name, &tensor, &to});
}

std::vector<format::Extent> extents_of(const std::vector<Shared>& all) {
  std::vector<format::Extent> extents;
  extents.reserve(all.size());
  for (const Shared& one : all) {
    extents.push_back({.elements = one.tensor->numel(),
                       .element_bytes = static_cast<std::int64_t>(one.tensor->element_size())});
  }
  return extents;
}

// How the files of pieces are called: of each whole file and writer, those without a share left
// out. "model-00002-of-00003.safetensors".
std::map<std::pair<std::string, int>, std::string> names_of(
    const std::vector<Shared>& all, const std::vector<std::vector<format::Portion>>& portions) {
  std::map<std::string, std::set<int>> writers;  // key: file
  for (int writer = 0; writer < static_cast<int>(portions.size()); ++writer) {
    for (const format::Portion& portion : portions[static_cast<std::size_t>(writer)]) {
      writers[*all[portion.tensor].file].insert(writer);
    }
  }
  std::map<std::pair<std::string, int>, std::string> names;
  for (const auto& [file, its] : writers) {
    const std::filesystem::path whole(file);
    int number = 0;
    for (const int writer : its) {
      names[{file, writer}] = fmt::format("{}-{:05}-of-{:05}{}", whole.stem().string(), ++number,
                                          its.size(), whole.extension().string());
    }
  }
  return names;
}

// Returns the tensor's entry in the tables, with its dtype and shape set.
format::CutTensor& entry_for(format::PieceTables& tables, const Shared& one) {
  format::CutTensor& entry = tables[*one.file][*one.name];
  entry.dtype = dtype_name(*one.name, one.tensor->scalar_type());
  entry.shape = one.tensor->sizes().vec();
  return entry;
}

at::Tensor piece_of(const at::Tensor& tensor, const format::Portion& portion) {
  if (portion.first == 0 && portion.last == tensor.numel()) return tensor;
  return tensor.detach().contiguous().view({-1}).narrow(0, portion.first,
                                                        portion.last - portion.first);
}

}  // namespace

Contents share_of(const Contents& contents, int writer, int writers) {
  if (contents.cut) return share_of_cut(contents);
  const at::NoGradGuard no_grad;
  const bool is_first = writer == 0;
  Contents share;
  share.is_share = true;
  share.stands = contents.stands;
  share.state = contents.state;
  std::vector<Shared> all;
  const std::string model = format::kModelFile, optimizer = format::kOptimizerFile;
  list(model, contents.model, share.model, all);
  std::map<std::string, std::string> mean_files;  // `all` points to these
  for (const auto& [name, mean] : contents.means) mean_files[name] = format::mean_file(name);
  for (const auto& [name, mean] : contents.means) {
    MeanContents& to = share.means[name];
    if (is_first) to.buffers = mean.buffers;
    list(mean_files.at(name), mean.tensors, to.tensors, all);
  }
  list(optimizer, contents.optimizer, share.optimizer, all);
  if (is_first) {
    share.buffers = contents.buffers;
    share.ranks = contents.ranks;
    share.classes = contents.classes;
    share.recipe = contents.recipe;
  }

  const std::vector<std::vector<format::Portion>> portions =
      format::divide(extents_of(all), writers);
  const auto names = names_of(all, portions);
  if (is_first) {
    // Tensors without elements, which no piece would name.
    share.pieces[model];
    share.pieces[optimizer];
    for (const Shared& one : all) {
      if (one.tensor->numel() == 0) entry_for(share.pieces, one);
    }
  }
  for (const Shared& one : all) share.all_bytes += static_cast<std::int64_t>(one.tensor->nbytes());
  for (const format::Portion& portion : portions[static_cast<std::size_t>(writer)]) {
    const Shared& one = all[portion.tensor];
    one.to->emplace(*one.name, piece_of(*one.tensor, portion));
    entry_for(share.pieces, one)
        .pieces.push_back(
            {.piece = format::range_piece(one.tensor->sizes().vec(), portion.first, portion.last),
             .file = names.at({*one.file, writer})});
  }
  return share;
}

}  // namespace scaletrain::checkpoint
