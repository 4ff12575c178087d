// Small files of weights, of either kind.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/format/pt/pt_write.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/temporary_folder.h"

namespace scaletrain::test {

using NamedText = std::vector<std::pair<std::string, std::string>>;  // a tensor of U8 and its bytes

inline std::string write_weights(const TemporaryFolder& folder, const std::string& name,
                                 const NamedText& tensors) {
  std::vector<format::TensorBytes> described;
  for (const auto& [tensor, text] : tensors) {
    described.push_back(
        {tensor, "U8", {static_cast<std::int64_t>(text.size())}, std::as_bytes(std::span(text))});
  }
  format::write_safetensors(core::system_disk(), folder.file(name), std::move(described), {});
  return folder.file(name);
}

inline std::string write_pt(const TemporaryFolder& folder, const std::string& name,
                            const NamedText& tensors) {
  format::PtWriter writer(core::system_disk(), folder.file(name));
  for (const auto& [tensor, text] : tensors) {
    writer.add(tensor, "U8", {static_cast<std::int64_t>(text.size())},
               std::as_bytes(std::span(text)));
  }
  writer.finish();
  return folder.file(name);
}

}  // namespace scaletrain::test
