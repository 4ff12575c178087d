#include "lib/format/pt/pickle.h"

#include <fmt/format.h>

#include <cstring>
#include <unordered_map>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"
#include "lib/format/pt/pickle_opcodes.h"

namespace scaletrain::format {
namespace {

constexpr std::size_t kMaxValues = 4'000'000;
constexpr int kOldestProtocol = 2, kNewestProtocol = 5;

// The stack machine that a pickle is a program for, without its power to call.
class PickleMachine {
 public:
  PickleMachine(std::string bytes, const std::string& place) {
    pickle_.place = place;
    pickle_.bytes = std::move(bytes);
  }

  Pickle run() {
    if (static_cast<std::int64_t>(pickle_.bytes.size()) > kMaxPickleBytes) {
      refuse("has {} bytes, where at most {} are read", pickle_.bytes.size(), kMaxPickleBytes);
    }
    if (take(1) != static_cast<unsigned char>(PickleOpcode::kProtocol)) {
      refuse("does not begin as a pickle of protocol {} or later", kOldestProtocol);
    }
    const std::uint64_t protocol = take(1);
    if (protocol < kOldestProtocol || protocol > kNewestProtocol) {
      refuse("is a pickle of protocol {}, where {} to {} are read", protocol, kOldestProtocol,
             kNewestProtocol);
    }
    // Values that need to exist only once; their id is their index here.
    for (const PickleKind kind : {PickleKind::kNone, PickleKind::kBool, PickleKind::kBool,
                                  PickleKind::kTuple, PickleKind::kFloat}) {
      add(kind);
    }
    pickle_.values[kTrue].integer = 1;
    while (!stopped_) step();
    if (position_ != pickle_.bytes.size()) {
      refuse("has data after its end at byte {}", position_);
    }
    return std::move(pickle_);
  }

 private:
  static constexpr PickleId kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3, kFloat = 4;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw core::CheckpointError(pickle_.place, fmt::format(format, std::forward<Args>(args)...),
                                kPickleRemedy);
  }

  // An unsigned little-endian number of `bytes` bytes, which are taken.
  std::uint64_t take(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::size_t begin = skip(bytes);
    std::memcpy(&value, pickle_.bytes.data() + begin, bytes);
    return value;
  }

  // Skips `bytes` bytes and returns their position.
  std::size_t skip(std::uint64_t bytes) {
    if (bytes > pickle_.bytes.size() - position_) {
      const std::uint64_t missing = bytes - (pickle_.bytes.size() - position_);
      refuse("is truncated: the opcode at byte {} needs {} {} more", at_, missing,
             missing == 1 ? "byte" : "bytes");
    }
    const std::size_t begin = position_;
    position_ += bytes;
    return begin;
  }

  std::string_view take_line() {
    const std::size_t end = pickle_.bytes.find('\n', position_);
    if (end == std::string::npos) refuse("is truncated in the name at byte {}", at_);
    const std::string_view line =
        std::string_view(pickle_.bytes).substr(position_, end - position_);
    position_ = end + 1;
    return line;
  }

  PickleValue& add(PickleKind kind) {
    if (pickle_.values.size() >= kMaxValues) {
      refuse("has more than {} values at byte {}", kMaxValues, at_);
    }
    PickleValue& value = pickle_.values.emplace_back();
    value.kind = kind;
    value.at = static_cast<std::uint32_t>(at_);
    return value;
  }

  // Adds a value and puts it on the stack.
  PickleValue& push(PickleKind kind) {
    PickleValue& value = add(kind);
    stack_.push_back(static_cast<PickleId>(pickle_.values.size() - 1));
    return value;
  }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  PickleId top() const {
    if (stack_.size() <= floor()) refuse("uses a missing value at byte {}", at_);
    return stack_.back();
  }

  PickleId pop() {
    const PickleId id = top();
    stack_.pop_back();
    return id;
  }

  // Returns the values after the last mark and removes the mark.
  std::vector<PickleId> pop_mark() {
    if (marks_.empty()) refuse("uses a missing mark at byte {}", at_);
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleId> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  void push_tuple(std::size_t count) {
    std::vector<PickleId> items(count);
    for (std::size_t i = count; i > 0; --i) items[i - 1] = pop();
    push(PickleKind::kTuple).items = std::move(items);
  }

  void push_text(std::uint64_t bytes) {
    const std::size_t begin = skip(bytes);
    if (!core::is_utf8(pickle_.bytes.substr(begin, bytes))) {
      refuse("has a text that is not UTF-8 at byte {}", at_);
    }
    PickleValue& value = push(PickleKind::kText);
    value.begin = static_cast<std::uint32_t>(begin);
    value.bytes = static_cast<std::uint32_t>(bytes);
  }

  void push_bytes(std::uint64_t bytes) {
    skip(bytes);
    push(PickleKind::kBytes);
  }

  void push_integer(std::int64_t number) { push(PickleKind::kInteger).integer = number; }

  // A number of `bytes` bytes in two's complement.
  void push_long(std::uint64_t bytes) {
    constexpr std::size_t kNumberBits = 64;
    if (bytes > sizeof(std::int64_t)) {
      skip(bytes);
      push(PickleKind::kBigInteger);
      return;
    }
    std::uint64_t number = take(bytes);
    const std::size_t above = kNumberBits - 8 * bytes;
    if (bytes > 0) {
      push_integer(static_cast<std::int64_t>(number << above) >> above);
    } else {
      push_integer(0);
    }
  }

  void push_global(const std::string& name) {
    const PickleGlobal* const global = find_pickle_global(name);
    if (global == nullptr) {
      constexpr std::size_t kShown = 200;
      refuse("refuses to run {} at byte {}", core::printable(name.substr(0, kShown)), at_);
    }
    push(PickleKind::kGlobal).global = global;
  }

  std::string text_of(PickleId id) const {
    const PickleValue& value = pickle_.at(id);
    if (value.kind != PickleKind::kText) refuse("has a name that is not a text at byte {}", at_);
    return std::string(pickle_.text(value));
  }

  void put(std::uint64_t number) { memo_[number] = top(); }

  void get(std::uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) refuse("reads value {} before it is stored at byte {}", number, at_);
    stack_.push_back(found->second);
  }

  void extend(const std::vector<PickleId>& items, PickleKind kind) {
    PickleValue& container = pickle_.values[top()];
    if (container.kind != kind) {
      refuse("adds to a value that is not a {} at byte {}",
             kind == PickleKind::kDict ? "dict" : "list", at_);
    }
    if (kind == PickleKind::kDict && items.size() % 2 != 0) {
      refuse("has a key without a value at byte {}", at_);
    }
    container.items.insert(container.items.end(), items.begin(), items.end());
  }

  void call() {
    const PickleId arguments = pop();
    const PickleId function = pop();
    const PickleGlobal* const global = pickle_.at(function).global;
    if (pickle_.at(function).kind != PickleKind::kGlobal ||
        pickle_.at(arguments).kind != PickleKind::kTuple) {
      refuse("calls a value that is not a name at byte {}", at_);
    }
    const std::vector<PickleId>& items = pickle_.at(arguments).items;
    const auto is = [&](std::size_t index, PickleKind kind) {
      return index < items.size() && pickle_.at(items[index]).kind == kind;
    };
    switch (global->kind) {
      case PickleGlobalKind::kOrderedDict:
        if (items.empty()) return static_cast<void>(push(PickleKind::kDict));
        break;
      case PickleGlobalKind::kEncode:
        if (items.size() == 2 && is(0, PickleKind::kText) && is(1, PickleKind::kText)) {
          return static_cast<void>(push(PickleKind::kBytes));
        }
        break;
      case PickleGlobalKind::kSize:
        if (items.size() == 1 && is(0, PickleKind::kTuple)) return stack_.push_back(items.front());
        break;
      case PickleGlobalKind::kDevice:
        if (is(0, PickleKind::kText)) return static_cast<void>(push(PickleKind::kDevice));
        break;
      case PickleGlobalKind::kRebuildTensor:
      case PickleGlobalKind::kRebuildAs:
      case PickleGlobalKind::kRebuildParameter: {
        PickleValue& value = push(PickleKind::kCall);
        value.global = global;
        value.items = {arguments};
        return;
      }
      case PickleGlobalKind::kStorage:
      case PickleGlobalKind::kDtype:
        break;
    }
    refuse("refuses to call {} with {} at byte {}", global->name,
           core::counted(std::ssize(items), "value"), at_);
  }

  // Ignores the attribute _metadata that module.state_dict() sets on its dict.
  void build() {
    const PickleId state = pop();
    if (pickle_.at(state).kind != PickleKind::kDict ||
        pickle_.at(top()).kind != PickleKind::kDict) {
      refuse("refuses to set the members of an object at byte {}", at_);
    }
  }

  void stop() {
    if (stack_.size() != 1 || !marks_.empty()) {
      refuse("ends with {} and {}, where 1 value is expected",
             core::counted(std::ssize(stack_), "value"), core::counted(std::ssize(marks_), "mark"));
    }
    pickle_.root = stack_.back();
    stopped_ = true;
  }

  void step();

  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, PickleId> memo_;
  std::size_t position_ = 0, at_ = 0;  // offsets of the next byte and of the opcode
  bool stopped_ = false;
};

void PickleMachine::step() {
  using Opcode = PickleOpcode;
  at_ = position_;
  const auto opcode = static_cast<unsigned char>(take(1));
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::kMark:
      return marks_.push_back(stack_.size());
    case Opcode::kStop:
      return stop();
    case Opcode::kPop:
      return static_cast<void>(pop());
    case Opcode::kPopMark:
      return static_cast<void>(pop_mark());
    case Opcode::kNone:
      return stack_.push_back(kNone);
    case Opcode::kNewTrue:
      return stack_.push_back(kTrue);
    case Opcode::kNewFalse:
      return stack_.push_back(kFalse);
    case Opcode::kEmptyTuple:
      return stack_.push_back(kEmptyTuple);
    case Opcode::kBinFloat:
      skip(sizeof(double));
      return stack_.push_back(kFloat);
    case Opcode::kBinInt:
      return push_integer(static_cast<std::int32_t>(take(4)));
    case Opcode::kBinInt1:
      return push_integer(static_cast<std::int64_t>(take(1)));
    case Opcode::kBinInt2:
      return push_integer(static_cast<std::int64_t>(take(2)));
    case Opcode::kLong1:
      return push_long(take(1));
    case Opcode::kLong4:
      return push_long(take(4));
    case Opcode::kShortBinUnicode:
      return push_text(take(1));
    case Opcode::kBinUnicode:
      return push_text(take(4));
    case Opcode::kBinUnicode8:
      return push_text(take(8));
    case Opcode::kShortBinBytes:
      return push_bytes(take(1));
    case Opcode::kBinBytes:
      return push_bytes(take(4));
    case Opcode::kBinBytes8:
      return push_bytes(take(8));
    case Opcode::kEmptyList:
      return static_cast<void>(push(PickleKind::kList));
    case Opcode::kEmptyDict:
      return static_cast<void>(push(PickleKind::kDict));
    case Opcode::kTuple: {
      std::vector<PickleId> items = pop_mark();
      push(PickleKind::kTuple).items = std::move(items);
      return;
    }
    case Opcode::kTuple1:
      return push_tuple(1);
    case Opcode::kTuple2:
      return push_tuple(2);
    case Opcode::kTuple3:
      return push_tuple(3);
    case Opcode::kAppend: {
      const PickleId item = pop();
      return extend({item}, PickleKind::kList);
    }
    case Opcode::kAppends:
      return extend(pop_mark(), PickleKind::kList);
    case Opcode::kSetItem: {
      const PickleId value = pop();
      const PickleId key = pop();
      return extend({key, value}, PickleKind::kDict);
    }
    case Opcode::kSetItems:
      return extend(pop_mark(), PickleKind::kDict);
    case Opcode::kBinPut:
      return put(take(1));
    case Opcode::kLongBinPut:
      return put(take(4));
    case Opcode::kMemoize:
      return put(memo_.size());
    case Opcode::kBinGet:
      return get(take(1));
    case Opcode::kLongBinGet:
      return get(take(4));
    case Opcode::kFrame:  // what it frames is read as it comes
      return static_cast<void>(take(8));
    case Opcode::kGlobal: {
      const std::string_view module = take_line();
      return push_global(fmt::format("{}.{}", module, take_line()));
    }
    case Opcode::kStackGlobal: {
      const std::string name = text_of(pop());
      return push_global(fmt::format("{}.{}", text_of(pop()), name));
    }
    case Opcode::kReduce:
      return call();
    case Opcode::kBuild:
      return build();
    case Opcode::kBinPersistentId: {
      const PickleId id = pop();
      push(PickleKind::kPersistent).items = {id};
      return;
    }
    case Opcode::kProtocol:
      break;
  }
  refuse("refuses {} at byte {}", describe_refused_opcode(opcode), at_);
}

}  // namespace

Pickle read_pickle(std::string bytes, const std::string& place) {
  return PickleMachine(std::move(bytes), place).run();
}

}  // namespace scaletrain::format
