// Any bytes as a file of torch.save, or as the pickle in a sound one: refused, or every tensor is
// read within the file.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/format/pt/pt_file.h"
#include "lib/format/pt/pt_part.h"
#include "tests/format/pt/pt_support.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)
using namespace scaletrain::test;    // NOLINT(google-build-using-namespace)

constexpr std::size_t kStored = 48;  // bytes of each of two storages

std::string around(const std::string& pickle) {
  return pt_of(pickle, {{"0", std::string(kStored, 'v')}, {"1", std::string(kStored, 'w')}});
}

void read_all(const std::string& path, bool is_sound) {
  const PtFile file(path);
  for (const PtTensor& tensor : file.tensors()) {
    std::string bytes(static_cast<std::size_t>(pt_tensor_bytes(tensor)), '\0');
    file.read(tensor, std::as_writable_bytes(std::span(bytes)));
    // In the sound archive there is nothing else that a tensor may show.
    if (is_sound && bytes.find_first_not_of("vw") != std::string::npos)
      fuzz_failed("bytes of another place");
  }
  choose_pt_part(file.tensors(), path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool is_sound = (data[0] & 1U) != 0;
  if (is_sound) bytes = around(bytes);
  const scaletrain::core::Descriptor file(::memfd_create("pt", MFD_CLOEXEC));
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return 0;
  }
  try {
    read_all(fmt::format("/proc/self/fd/{}", file.get()), is_sound);
  } catch (const scaletrain::core::CheckpointError&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string view = pickled_view({.elements = 12, .shape = {3, 4}, .strides = {4, 1}});
  const std::string transposed =
      pickled_view({.elements = 12, .first = 1, .shape = {4, 2}, .strides = {1, 4}});
  const std::string bytes = pickled_view(
      {.key = "1", .type = "ByteStorage", .elements = 48, .shape = {48}, .strides = {1}});
  const std::string parameter = pickled_global("torch._utils", "_rebuild_parameter") + "(" + view +
                                "\x88" + pickled_global("collections", "OrderedDict") + ")RtR";
  const std::string wide =
      pickled_global("torch._utils", "_rebuild_tensor_v3") + "((" + pickled_text("storage") +
      pickled_global("torch.storage", "UntypedStorage") + pickled_text("1") + pickled_text("cpu") +
      "K\x30tQK\1K\6\x85K\2\x85\x89}" + pickled_global("torch", "uint16") + "tR";
  std::vector<std::string> seeds;
  for (const std::string& value :
       {view, pickled_dict({{"a", view}, {"b", transposed}}), parameter + bytes + "\x86",
        pickled_dict({{"state_dict", pickled_dict({{"module.x", parameter}, {"module.y", wide}})},
                      {"optimizer", pickled_dict({{"state", "}K\1" + bytes + "s"}})}}),
        "](K\1\x8a\2\1\1G" + std::string(8, 'g') + "C\3abcNet\x94" + view + "\x86"}) {
    seeds.push_back("\x01" + pickle_of(value));
    seeds.push_back(std::string(1, '\0') + around(pickle_of(value)));
  }
  return seeds;
}
