#include "launcher/jobs/checks/data_cards.h"

#include <set>
#include <system_error>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/url.h"
#include "lib/exchange/companion_files.h"
#include "lib/format/tokens/token_card.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxCardBytes = 64 << 20;

constexpr const char* kCardName = "card.json";

void add_folders(const recipe::Source& source, std::set<fs::path>& folders) {
  for (const std::string& shard : source.shards) {
    if (!core::is_url(shard)) folders.insert(fs::path(shard).parent_path());
  }
  if (!source.folder.empty()) folders.insert(source.folder);
  for (const recipe::Source& inner : source.sources) add_folders(inner, folders);
}

fs::path card_of(const recipe::Source& source) {
  if (!source.tokens.empty()) return format::token_card_path(source.tokens[0]).value_or("");
  if (!source.shards.empty()) return fs::path(source.shards[0]).parent_path() / kCardName;
  return source.folder.empty() ? fs::path() : fs::path(source.folder) / kCardName;
}

bool has_card(const recipe::Source& source) {
  std::error_code ignored;
  return fs::is_regular_file(card_of(source), ignored);
}

void record_card(const recipe::Source& source, const fs::path& to) {
  if (!has_card(source)) return;
  core::Disk& disk = core::system_disk();
  disk.make_folders(to.parent_path());
  core::write_durably(disk, to,
                      core::read_file(card_of(source), kMaxCardBytes, core::ExitCode::kData));
}

}  // namespace

void check_cards(const recipe::Data& data) {
  std::set<fs::path> folders;
  add_folders(data.train, folders);
  for (const auto& [name, source] : recipe::held_out(data)) add_folders(*source, folders);
  std::error_code ignored;
  for (const fs::path& folder : folders) {
    const fs::path card = folder / kCardName;
    if (fs::is_regular_file(card, ignored)) core::refuse_placeholder_file(card.string());
  }
}

void record_cards(const recipe::Data& data, const fs::path& output, bool is_resumed) {
  const fs::path cards = output / "cards", trained = cards / "train.json";
  const bool stays = is_resumed && !data.train.tokens.empty() && !has_card(data.train);
  std::vector<fs::path> old;
  std::error_code ignored;
  for (fs::directory_iterator entry(cards, ignored), end; entry != end; entry.increment(ignored)) {
    if (!stays || entry->path() != trained) old.push_back(entry->path());
  }
  for (const fs::path& card : old) core::system_disk().remove_all(card);
  record_card(data.train, trained);
  for (const auto& [name, source] : recipe::held_out(data)) {
    record_card(*source, cards / (name + ".json"));
  }
}

void record_companions(const recipe::Model& model, const fs::path& output) {
  if (!model.weights || !recipe::reads_tokens(model)) return;
  const auto files = exchange::files_to_keep(exchange::companions_of_weights(model.weights->path));
  if (files.empty()) return;  // a resumed run's weights may be gone
  core::Disk& disk = core::system_disk();
  disk.make_folders(output / exchange::kCompanionFolder);
  for (const auto& [name, text] : files) {
    core::write_durably(disk, output / exchange::kCompanionFolder / name, text);
  }
}

}  // namespace scaletrain::launcher
