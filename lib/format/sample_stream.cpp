#include "lib/format/sample_stream.h"

#include <fmt/format.h>

#include <utility>

#include "lib/core/error.h"

namespace scaletrain::format {
namespace {

constexpr std::int64_t kStreamWindowBytes = 1 << 19;
constexpr std::int64_t kMaxSampleBytes = std::int64_t{256} << 20;

// Where a member's extension begins in its path; npos where it is no part of a sample.
std::size_t extension_at(std::string_view path) {
  const std::size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  const std::size_t dot = path.find('.', base);
  return dot == base || dot == std::string_view::npos ? std::string_view::npos : dot + 1;
}

class Stream {
 public:
  Stream(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
         const std::function<void(const StreamedSample&)>& use)
      : name_(name),
        reader_(name, file_bytes, read, 0, kStreamWindowBytes, TarReader::Pattern::kEverything),
        use_(use) {}

  void run() {
    while (auto member = reader_.next()) {
      const std::size_t extension = extension_at(member->path);
      if (!member->regular || extension == std::string_view::npos) continue;
      const std::string_view key = std::string_view(member->path).substr(0, extension - 1);
      if (members_.empty() || key != current_key()) emit();
      extensions_.push_back(extension);
      members_.push_back(std::move(*member));
      hold();
    }
    emit();
  }

 private:
  std::string_view current_key() const {
    return std::string_view(members_.front().path).substr(0, extensions_.front() - 1);
  }

  // Has the whole sample so far in one piece, so that its next header is mostly there too.
  std::span<const std::byte> hold() {
    const std::int64_t begin = members_.front().data;
    const std::int64_t bytes = members_.back().data + members_.back().bytes - begin;
    if (bytes > kMaxSampleBytes) {
      throw core::DataError(fmt::format("{}: {}", name_, shown_name(current_key())),
                            fmt::format("a sample of {} bytes", bytes),
                            fmt::format("at most {} are allowed", kMaxSampleBytes));
    }
    return reader_.bytes(begin, bytes);
  }

  void emit() {
    if (members_.empty()) return;
    const std::span<const std::byte> bytes = hold();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    sample_.key = current_key();
    sample_.fields.clear();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const TarMember& member = members_[i];
      sample_.fields.push_back(
          {std::string_view(member.path).substr(extensions_[i]),
           text.substr(static_cast<std::size_t>(member.data - members_.front().data),
                       static_cast<std::size_t>(member.bytes))});
    }
    use_(sample_);
    members_.clear();
    extensions_.clear();
  }

  const std::string& name_;
  TarReader reader_;
  const std::function<void(const StreamedSample&)>& use_;
  std::vector<TarMember> members_;  // of the sample so far
  std::vector<std::size_t> extensions_;
  StreamedSample sample_;
};

}  // namespace

void for_each_streamed(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                       const std::function<void(const StreamedSample&)>& use) {
  Stream(name, file_bytes, read, use).run();
}

}  // namespace scaletrain::format
