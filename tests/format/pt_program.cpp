// What the Python tests ask of the reader and the writer of PyTorch's files:
//   pt_program read FILE OUT       writes all tensors, contiguous, as safetensors
//   pt_program part FILE [PART]    one JSON object: the part that is a model's, and its names
//   pt_program write IN OUT        a safetensors file as PyTorch's
//   pt_program mutate FILE RUNS SEED   changes FILE so many times at random; each must be refused
//                                  or give the same tensors; prints how many were refused
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/format/pt/pt_file.h"
#include "lib/format/pt/pt_part.h"
#include "lib/format/pt/pt_write.h"
#include "lib/format/safetensors/safetensors.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

using Arguments = std::vector<std::string>;

std::vector<std::byte> bytes_of(const PtFile& file, const PtTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(pt_tensor_bytes(tensor)));
  file.read(tensor, bytes);
  return bytes;
}

void read(const Arguments& arguments) {
  const PtFile file(arguments.at(1));
  std::vector<std::vector<std::byte>> data;
  std::vector<TensorBytes> tensors;
  data.reserve(file.tensors().size());
  tensors.reserve(file.tensors().size());
  for (const PtTensor& tensor : file.tensors()) {
    data.push_back(bytes_of(file, tensor));
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape, data.back()});
  }
  write_safetensors(core::system_disk(), arguments.at(2), std::move(tensors), {});
}

void part(const Arguments& arguments) {
  const PtFile file(arguments.at(1));
  const PtPart found = choose_pt_part(file.tensors(), arguments.at(1),
                                      arguments.size() > 2 ? arguments[2] : std::string());
  nlohmann::json names = nlohmann::json::array();
  for (const auto& each : found.tensors) names.push_back(each.first);
  const nlohmann::json json = {{"part", found.name},
                               {"stripped", found.stripped},
                               {"others", found.others},
                               {"names", names}};
  std::puts(json.dump().c_str());
}

void write(const Arguments& arguments) {
  const SafetensorsFile file(arguments.at(1));
  PtWriter writer(core::system_disk(), arguments.at(2));
  for (const TensorInfo& tensor : file.tensors()) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.end - tensor.begin));
    file.read(tensor, bytes);
    writer.add(tensor.name, tensor.dtype, tensor.shape, bytes);
  }
  writer.finish();
}

using Contents = std::map<std::string, std::vector<std::byte>>;

Contents contents_of(const std::string& bytes) {
  const core::Descriptor file(::memfd_create("pt", MFD_CLOEXEC));
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("no memory file");
  }
  const PtFile opened(fmt::format("/proc/self/fd/{}", file.get()));
  Contents contents;
  for (const PtTensor& tensor : opened.tensors()) {
    const std::string key = fmt::format("{} {} {}", tensor.name, tensor.dtype, tensor.shape.size());
    contents[key] = bytes_of(opened, tensor);
  }
  return contents;
}

std::string mutated(std::string bytes, std::mt19937_64& random) {
  for (std::uint64_t count = random() % 3 + 1; count > 0 && !bytes.empty(); --count) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.erase(at, random() % 16 + 1);
        break;
      case 3:
        bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 64));
        break;
      case 4:
        bytes.resize(at);
        break;
      default: {
        const std::string piece = bytes.substr(random() % bytes.size(), random() % 64);
        bytes.replace(at, std::min(piece.size(), bytes.size() - at), piece);
      }
    }
  }
  return bytes;
}

void mutate(const Arguments& arguments) {
  std::ifstream stream(arguments.at(1), std::ios::binary);
  const std::string sound{std::istreambuf_iterator<char>(stream), {}};
  const Contents expected = contents_of(sound);
  std::mt19937_64 random(std::stoull(arguments.at(3)));
  int refused = 0;
  for (int runs = std::stoi(arguments.at(2)); runs > 0; --runs) {
    try {
      if (contents_of(mutated(sound, random)) != expected) {
        throw std::runtime_error("a changed file was read otherwise");
      }
    } catch (const core::CheckpointError&) {
      ++refused;
    }
  }
  std::printf("%d\n", refused);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments(argv + 1, argv + argc);
  const std::map<std::string, void (*)(const Arguments&)> commands{
      {"read", read}, {"part", part}, {"write", write}, {"mutate", mutate}};
  try {
    commands.at(arguments.at(0))(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", core::describe(error).c_str());
    return static_cast<int>(core::exit_code_of(error));
  }
}
