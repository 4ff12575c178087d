#include "lib/checkpoint/cut.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <memory>
#include <utility>

#include "lib/checkpoint/differences.h"
#include "lib/checkpoint/tensor_files.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/format/checkpoint/stored_tensors.h"

namespace scaletrain::checkpoint {
namespace {

namespace fs = std::filesystem;

// Adds tensors of one file to a share.
class ShareFile {
 public:
  ShareFile(const Cut& cut, const std::string& file, Contents& share)
      : cut_(cut), is_first_(cut.writes && cut.place == 0), whole_(file), share_(share) {
    const fs::path path(file);
    pieces_ = fmt::format("{}-{:05}-of-{:05}{}", path.stem().string(), cut.place + 1, cut.places,
                          path.extension().string());
  }

  const std::string& name() const { return pieces_; }

  void add(const Tensors& tensors, Tensors& to) {
    if (is_first_) share_.pieces[whole_];
    for (const auto& [name, tensor] : tensors) {
      const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
      const Part* const part = find_part(cut_.parts, name);
      share_.all_bytes += part != nullptr ? bytes * cut_.places : bytes;
      const bool is_written = part != nullptr ? part->writes && cut_.writes : is_first_;
      if (!is_written) continue;
      if (part == nullptr || is_whole(part, name)) {
        add_whole(name, tensor, to);
      } else {
        add_pieces(name, tensor, *part, to);
      }
    }
  }

 private:
  void add_pieces(const std::string& name, const at::Tensor& tensor, const Part& part,
                  Tensors& to) {
    if (tensor.numel() != count_of(part)) {
      throw core::InternalError("a share of a checkpoint",
                                fmt::format("{} has {} elements, and its pieces {}", name,
                                            tensor.numel(), count_of(part)));
    }
    add(name, tensor, part.shape, part.pieces, to);
  }

  void add_whole(const std::string& name, const at::Tensor& tensor, Tensors& to) {
    const std::vector<std::int64_t> shape = tensor.sizes().vec();
    add(name, tensor, shape, {format::whole_piece(shape)}, to);
  }

  void add(const std::string& name, const at::Tensor& tensor,
           const std::vector<std::int64_t>& shape, const std::vector<format::Piece>& pieces,
           Tensors& to) {
    if (pieces.size() > 1) {  // only files of pieces, linked ones too, have one each
      throw core::InternalError("a share of a checkpoint",
                                fmt::format("{} has {} pieces in one file", name, pieces.size()));
    }
    format::CutTensor& entry = share_.pieces[whole_][name];
    entry.dtype = dtype_name(name, tensor.scalar_type());
    entry.shape = shape;
    if (tensor.numel() == 0) return;
    to.emplace(name, tensor);
    for (const format::Piece& piece : pieces) {
      entry.pieces.push_back({.piece = piece, .file = pieces_});
    }
  }

  const Cut& cut_;
  bool is_first_;
  std::string whole_, pieces_;  // names of files
  Contents& share_;
};

// One file of a checkpoint, compared with what this rank wants of it.
class PartSource {
 public:
  // `others`: there may be tensors that this rank does not know.
  PartSource(const fs::path& path, const Tensors& wanted, const Parts& parts, Types types,
             bool others = false);

  void copy_to(const Tensors& tensors, const Progress& progress) const {
    const at::NoGradGuard no_grad;
    for (const format::TensorInfo& info : file_.tensors()) {
      const auto target = tensors.find(info.name);
      if (target == tensors.end()) continue;  // another rank's
      progress();
      copy(info, target->second);
    }
  }

 private:
  void copy(const format::TensorInfo& info, const at::Tensor& target) const;

  format::StoredTensors file_;
  const Parts& parts_;
};

PartSource::PartSource(const fs::path& path, const Tensors& wanted, const Parts& parts, Types types,
                       bool others)
    : file_(path), parts_(parts) {
  Differences missing("missing"), left_over("left over"), misshapen("of another shape"),
      other_dtype("of another dtype");
  Tensors absent = wanted;
  for (const format::TensorInfo& info : file_.tensors()) {
    const Part* const part = find_part(parts, info.name);
    const auto found = wanted.find(info.name);
    if (found == wanted.end()) {
      if (others) continue;
      const bool is_others = is_whole(part, info.name);
      if (!is_others && (part == nullptr || count_of(*part) > 0)) left_over.add(info.name);
      continue;
    }
    absent.erase(info.name);
    const at::Tensor& tensor = found->second;
    const bool is_own_shape = part == nullptr || is_whole(part, info.name);
    const at::IntArrayRef shape = is_own_shape ? tensor.sizes() : at::IntArrayRef(part->shape);
    const std::optional<at::ScalarType> type = type_of(info.dtype);
    const bool fits =
        type == tensor.scalar_type() || (types == Types::kAnyFloating && type &&
                                         at::isFloatingType(*type) && tensor.is_floating_point());
    if (shape != at::IntArrayRef(info.shape)) {
      misshapen.add(fmt::format("{}: {} instead of {}", info.name, shape_text(info.shape),
                                shape_text(shape)));
    } else if (!fits) {
      other_dtype.add(fmt::format("{}: {} instead of {}", info.name, info.dtype,
                                  dtype_name(info.name, tensor.scalar_type())));
    }
  }
  for (const auto& [name, tensor] : absent) missing.add(name);
  std::vector<std::string> kinds;
  for (const Differences* kind : {&missing, &left_over, &misshapen, &other_dtype}) {
    kind->list(kinds);
  }
  if (kinds.empty()) return;
  throw core::CheckpointError(
      path.string(), fmt::format("does not fit: tensors {}", fmt::join(kinds, "; ")),
      "resume with the recipe that the checkpoint was made with (its recipe.json)");
}

void PartSource::copy(const format::TensorInfo& info, const at::Tensor& target) const {
  const Part* const part = find_part(parts_, info.name);
  const at::ScalarType type = type_of(info.dtype).value_or(target.scalar_type());
  const bool is_direct = target.is_cpu() && target.is_contiguous() && type == target.scalar_type();
  const at::Tensor host = is_direct ? target : at::empty(target.sizes(), at::TensorOptions(type));
  std::span<std::byte> left = bytes_of(host);
  const auto read = [&](const format::Piece& piece) {
    const auto bytes = static_cast<std::size_t>(piece.count()) * host.element_size();
    file_.read(info, piece, left.first(bytes));
    left = left.subspan(bytes);
  };
  if (part == nullptr || is_whole(part, info.name)) {
    read(format::whole_piece(info.shape));
  } else {
    for (const format::Piece& piece : part->pieces) read(piece);
  }
  if (!is_direct) target.copy_(host);
}

}  // namespace

const Part* find_part(const Parts& parts, const std::string& name) {
  const auto found = parts.find(name.substr(name.find('/') + 1));  // all of it where there is none
  return found == parts.end() ? nullptr : &found->second;
}

bool is_whole(const Part* part, const std::string& name) {
  const std::size_t kind = name.find('/');
  return part != nullptr && kind != std::string::npos && part->whole.contains(name.substr(0, kind));
}

std::int64_t count_of(const Part& part) {
  std::int64_t count = 0;
  for (const format::Piece& piece : part.pieces) count += piece.count();
  return count;
}

Contents share_of_cut(const Contents& contents) {
  const Cut& cut = *contents.cut;
  Contents share;
  share.is_share = true;
  share.stands = contents.stands;
  share.state = contents.state;
  ShareFile(cut, format::kModelFile, share).add(contents.model, share.model);
  for (const auto& [name, mean] : contents.means) {
    MeanContents& to = share.means[name];
    ShareFile(cut, format::mean_file(name), share).add(mean.tensors, to.tensors);
    to.buffers = mean.buffers;  // rank 0 alone has them
  }
  ShareFile(cut, format::kOptimizerFile, share).add(contents.optimizer, share.optimizer);
  for (const OwnRows& rows : contents.own_rows) {
    const std::int64_t before = share.all_bytes;
    OwnRows& to = share.own_rows.emplace_back();
    ShareFile file(rows.cut, kRanks, share);
    file.add(rows.tensors, to.tensors);
    if (&rows == &contents.own_rows.front()) continue;  // its bytes are those of all ranks
    to.file = file.name();
    share.all_bytes = before;
  }
  if (!cut.writes || cut.place != 0) return share;
  share.buffers = contents.buffers;
  share.classes = contents.classes;
  share.recipe = contents.recipe;
  return share;
}

void load_cut(const fs::path& checkpoint, const Contents& contents, const Progress& progress) {
  const Parts& parts = contents.cut->parts;
  // Everything is compared before anything is changed.
  const PartSource model(checkpoint / format::kModelFile, contents.model, parts, Types::kSame);
  const PartSource optimizer(checkpoint / format::kOptimizerFile, contents.optimizer, parts,
                             Types::kSame);
  model.copy_to(contents.model, progress);
  optimizer.copy_to(contents.optimizer, progress);
}

void load_cut_model(const fs::path& checkpoint, const Tensors& tensors, const Parts& parts,
                    const Progress& progress, std::string_view weights) {
  const PartSource source(format::weights_file(checkpoint, weights), tensors, parts,
                          Types::kAnyFloating);
  source.copy_to(tensors, progress);
}

std::function<void()> prepare_cut_ranks(const fs::path& checkpoint, const Tensors& tensors,
                                        const Parts& parts) {
  const fs::path path = checkpoint / kRanks;
  if (!format::has_tensors(path)) {
    throw core::CheckpointError(path.string(), "the checkpoint has none", "use another one");
  }
  const auto source =
      std::make_shared<PartSource>(path, tensors, parts, Types::kSame, /*others=*/true);
  return [source, &tensors] { source->copy_to(tensors, [] {}); };
}

}  // namespace scaletrain::checkpoint
