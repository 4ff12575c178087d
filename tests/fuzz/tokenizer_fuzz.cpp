// Any text as a tokenizer.json: refused, or it encodes a text.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app/tokenizer/bpe_files.h"
#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const scaletrain::core::Descriptor file(::memfd_create("tokenizer", MFD_CLOEXEC));
  if (::write(file.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  try {
    const auto tokenizer =
        scaletrain::app::load_bpe_tokenizer(fmt::format("/proc/self/fd/{}", file.get()), "");
    for (const std::uint32_t token : tokenizer->encode("a ab  12 \xc3\xa9 <eos>")) {
      static_cast<void>(tokenizer->bytes_of(token));
    }
  } catch (const scaletrain::core::Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string model =
      R"("model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "merges": ["a b", ["▁", "a"]],
          "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "▁": 4, "▁a": 5}},
          "added_tokens": [{"id": 6, "content": "<eos>", "special": true}])";
  return {"{" + model + "}",
          "{" + model + R"(, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"},
          {"type": "Prepend", "prepend": "▁"},
          {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}})",
          "{" + model + R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
          {"type": "Digits", "individual_digits": true},
          {"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s"}, "behavior": "Isolated"},
          {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}]}})"};
}
