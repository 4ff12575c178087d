// Any bytes as a label, a list of samples, a quarantine list or raw pixels: our own errors only,
// and what is taken is what it says.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "lib/core/error.h"
#include "lib/format/quarantine.h"
#include "lib/format/rgb8.h"
#include "lib/format/tar/sample_list.h"
#include "lib/format/tar/tar_samples.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

void try_label(std::string_view text) {
  const auto label = parse_label(text);
  if (!label) return;
  const std::string again = std::to_string(*label);
  if (*label < 0 || text.find(again) == std::string_view::npos) {
    fuzz_failed(fmt::format("label {} out of \"{}\"", *label, shown_name(text)));
  }
}

void try_labels(std::string_view text) {
  const auto labels = parse_labels(text);
  if (parse_label(text) && !labels) fuzz_failed("one class is no list of one");
  if (!labels) return;
  if (parse_labels(fmt::format("[{}]", fmt::join(*labels, ","))) != labels) {
    fuzz_failed(fmt::format("a list changed when it was written: \"{}\"", shown_name(text)));
  }
}

void try_lists(std::string_view text) {
  for (const auto parse : {parse_csv_list, parse_jsonl_list}) {
    try {
      for (const ListedSample& sample : parse(text, "list")) {
        if (sample.path.empty() || sample.label.empty() != sample.has_list || sample.line < 1) {
          fuzz_failed("an empty field was taken");
        }
      }
    } catch (const scaletrain::core::DataError&) {
    }
  }
}

void try_quarantine(std::string_view text) {
  try {
    const Quarantine list = parse_quarantine(text, "list");
    const Quarantine again = parse_quarantine(encode_quarantine(list), "again");
    if (again.entries() != list.entries()) fuzz_failed("a list changed when it was written");
  } catch (const scaletrain::core::CheckpointError&) {
  }
}

void try_pixels(std::string_view text) {
  try {
    const Rgb8Size size = parse_rgb8(text);
    if (16 + size.width * size.height * 3 != static_cast<std::int64_t>(text.size())) {
      fuzz_failed("pixels of another size");
    }
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_label(text);
  try_labels(text);
  try_lists(text);
  try_quarantine(text);
  try_pixels(text);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {"7",
          " 2147483647\r\n",
          "-1",
          "[1, 5, 7]\n",
          "1 5,7",
          "path,label\na.jpg,cat\n\"b, \"\"c\"\".jpg\",dog\r\n",
          "label,x,path\n1,,a\n\n2,\"y\nz\",b",
          "{\"path\": \"a.jpg\", \"label\": 3}\n{\"label\": \"cat\", \"path\": \"b.jpg\"}\n",
          "{\"path\": \"a\", \"label\": [1, \"cat\"]}",
          "{\"path\": \"a\", \"label\": 1e400}",  // once an exception of the JSON library
          encode_quarantine(Quarantine({{"a.tar", "", "damaged"}, {"b.tar", "k", "no label"}})),
          rgb8_header({2, 1}) + "rgbRGB"};
}
