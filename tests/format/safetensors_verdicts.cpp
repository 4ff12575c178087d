// Whether files are safetensors: for tests/parity/safetensors_test.py.
//   safetensors_verdicts
// Standard input: of each file its size, four bytes, little-endian, and its bytes. Prints a line
// for each: 1 where every tensor was read, 0 where the file was refused.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/format/safetensors/safetensors.h"

namespace {

bool is_sound(const std::string& bytes) {
  const scaletrain::core::Descriptor file(::memfd_create("safetensors", MFD_CLOEXEC));
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("memory does not take a file");
  }
  try {
    const scaletrain::format::SafetensorsFile opened(fmt::format("/proc/self/fd/{}", file.get()));
    for (const auto& tensor : opened.tensors()) {
      std::string values(static_cast<std::size_t>(tensor.end - tensor.begin), '\0');
      opened.read(tensor, std::as_writable_bytes(std::span(values)));
    }
    return true;
  } catch (const scaletrain::core::CheckpointError&) {
    return false;
  }
}

}  // namespace

int main() {
  std::uint32_t size = 0;
  std::string bytes;
  while (std::fread(&size, sizeof size, 1, stdin) == 1) {
    bytes.resize(size);
    if (std::fread(bytes.data(), 1, size, stdin) != size) return 2;
    std::puts(is_sound(bytes) ? "1" : "0");
  }
  return 0;
}
