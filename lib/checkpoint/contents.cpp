#include "lib/checkpoint/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lib/format/checkpoint/checkpoint_folder_names.h"

namespace scaletrain::checkpoint {

TensorFile& Contents::file(const std::string& name, TensorFile::Kind kind) {
  const auto found = std::ranges::find(files, name, &TensorFile::name);
  return found != files.end() ? *found : files.emplace_back(TensorFile{.name = name, .kind = kind});
}

std::string buffers_file(const std::string& weights) {
  constexpr const char* kBuffers = "buffers.safetensors";
  if (weights == format::kModelFile) return kBuffers;
  return fmt::format("{}_{}", std::filesystem::path(weights).stem().string(), kBuffers);
}

std::string part_name(const std::string& name, int rank, int ranks) {
  const std::filesystem::path path(name);
  return fmt::format("{}-{:05}-of-{:05}{}", path.stem().string(), rank + 1, ranks,
                     path.extension().string());
}

}  // namespace scaletrain::checkpoint
