// Errors that say where, what was found and what to do, and decide the exit code.
//
// Throw the subclass that fits; `main` of each program catches core::Error, prints what() and exits
// with exit_code(). Foreign exceptions are wrapped where they enter.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace scaletrain::core {

// Exit status of a program; "worth a restart" is what the launcher retries.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,        // a foreign program failed, or an error of our own
  kUsage = 2,          // the command or the recipe is wrong, a fixed port is in use
  kData = 65,          // bad or missing data or checkpoint
  kMemory = 71,        // out of device or host memory, open files or processes
  kStorage = 74,       // output not writable, disk full; worth a restart
  kTemporary = 75,     // stopped, lost a peer, hang, rendezvous timed out; worth a restart
  kDiverged = 76,      // loss or gradients not finite
  kInterrupted = 130,  // Ctrl-C
};

class Error : public std::runtime_error {
 public:
  // Formats what() as "PLACE: FOUND", then, where `remedy` is not empty, a new line with two spaces
  // and the remedy.
  Error(ExitCode code, std::string place, std::string found, std::string remedy = "");

  ExitCode exit_code() const { return code_; }
  const std::string& place() const { return place_; }
  const std::string& found() const { return found_; }
  const std::string& remedy() const { return remedy_; }

 private:
  ExitCode code_;
  std::string place_, found_, remedy_;
};

// An error whose type decides the exit code.
template <ExitCode kCode>
class ErrorWithCode : public Error {
 public:
  explicit ErrorWithCode(std::string place, std::string found, std::string remedy = "")
      : Error(kCode, std::move(place), std::move(found), std::move(remedy)) {}
};

// A comment beside each error type says what its `place` is.
struct UsageError : ErrorWithCode<ExitCode::kUsage> {  // the option or command
  using ErrorWithCode::ErrorWithCode;
};
struct RecipeError : ErrorWithCode<ExitCode::kUsage> {  // file:line: /pointer
  using ErrorWithCode::ErrorWithCode;
};
struct DataError : ErrorWithCode<ExitCode::kData> {  // shard, member, byte
  using ErrorWithCode::ErrorWithCode;
};
struct CheckpointError : ErrorWithCode<ExitCode::kData> {  // the file
  using ErrorWithCode::ErrorWithCode;
};
struct OutOfMemoryError : ErrorWithCode<ExitCode::kMemory> {  // rank and device
  using ErrorWithCode::ErrorWithCode;
};
struct StorageError : ErrorWithCode<ExitCode::kStorage> {  // the path
  using ErrorWithCode::ErrorWithCode;
};
struct StoppedError : ErrorWithCode<ExitCode::kTemporary> {  // rank: a lost peer, a time-out
  using ErrorWithCode::ErrorWithCode;
};
struct DivergedError : ErrorWithCode<ExitCode::kDiverged> {  // the step
  using ErrorWithCode::ErrorWithCode;
};
struct InternalError : ErrorWithCode<ExitCode::kFailure> {  // the function
  using ErrorWithCode::ErrorWithCode;
};

// "Permission denied (EACCES)" for errno value `error`.
std::string errno_text(int error);

// Text to print at the end of a program for any exception, and its exit code: a core::Error as it
// is; std::bad_alloc as kMemory; anything else as kFailure.
std::string describe(const std::exception& error);
ExitCode exit_code_of(const std::exception& error);

}  // namespace scaletrain::core
