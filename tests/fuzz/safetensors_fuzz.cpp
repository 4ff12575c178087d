// Any bytes as a safetensors file: refused, or every tensor lies within the file, and no byte of
// the data in two of them.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/fuzz/fuzz.h"

namespace {

using scaletrain::format::SafetensorsFile;
using scaletrain::format::TensorInfo;

void read_all(const std::string& path, std::size_t size) {
  const SafetensorsFile file(path);
  std::int64_t bytes = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    std::string values(static_cast<std::size_t>(tensor.end - tensor.begin), '\0');
    file.read(tensor, std::as_writable_bytes(std::span(values)));
    bytes += std::ssize(values);
  }
  if (bytes > static_cast<std::int64_t>(size)) fuzz_failed("bytes in two tensors");
}

std::string file_of(const std::string& header, const std::string& data) {
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size());
  text[1] = static_cast<char>(header.size() >> 8);
  return text + header + data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const scaletrain::core::Descriptor file(::memfd_create("safetensors", MFD_CLOEXEC));
  if (::write(file.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  try {
    read_all(fmt::format("/proc/self/fd/{}", file.get()), size);
  } catch (const scaletrain::core::CheckpointError&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      file_of("{}", ""),
      file_of(R"({"__metadata__":{"format":"pt","step":"12"}})", ""),
      file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab"),
      file_of(R"({"b":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
              R"("a":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}})",
              "0123456789"),
      file_of(R"({"none":{"dtype":"I64","shape":[3,0],"data_offsets":[0,0]},)"
              R"("\u00e4":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}   )",
              "\1"),
  };
}
