// Errors that say where, what was found and what to do, and decide the exit code.
//
// Throw the subclass that fits; `main` of each program catches core::Error, prints what() and exits
// with exit_code(). Foreign exceptions are wrapped where they enter.
#pragma once

#include <stdexcept>
#include <string>

namespace scaletrain::core {

// What a program's exit status means; "worth a restart" is what the launcher retries.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,        // a foreign program failed, or an error of our own
  kUsage = 2,          // the command or the recipe is wrong, a fixed port is in use
  kData = 65,          // bad or missing data or checkpoint
  kMemory = 71,        // out of device or host memory
  kStorage = 74,       // output not writable, disk full; worth a restart
  kTemporary = 75,     // stopped, lost a peer, hang, rendezvous timed out; worth a restart
  kDiverged = 76,      // not finite, or a limit that the recipe sets
  kInterrupted = 130,  // Ctrl-C
};

class Error : public std::runtime_error {
 public:
  // what() reads "PLACE: FOUND", then, where `remedy` is not empty, a new line with two spaces and
  // the remedy.
  Error(ExitCode code, std::string place, std::string found, std::string remedy = "");

  ExitCode exit_code() const { return code_; }
  const std::string& place() const { return place_; }
  const std::string& found() const { return found_; }
  const std::string& remedy() const { return remedy_; }

 private:
  ExitCode code_;
  std::string place_, found_, remedy_;
};

#define SCALETRAIN_ERROR_TYPE(Name, code)                                       \
  class Name : public Error {                                                   \
   public:                                                                      \
    Name(std::string place, std::string found, std::string remedy = "")         \
        : Error(code, std::move(place), std::move(found), std::move(remedy)) {} \
  }

SCALETRAIN_ERROR_TYPE(UsageError, ExitCode::kUsage);         // place: the option or command
SCALETRAIN_ERROR_TYPE(RecipeError, ExitCode::kUsage);        // place: file:line: /pointer
SCALETRAIN_ERROR_TYPE(DataError, ExitCode::kData);           // place: shard, member, byte
SCALETRAIN_ERROR_TYPE(CheckpointError, ExitCode::kData);     // place: the file
SCALETRAIN_ERROR_TYPE(OutOfMemoryError, ExitCode::kMemory);  // place: rank and device
SCALETRAIN_ERROR_TYPE(StorageError, ExitCode::kStorage);     // place: the path
SCALETRAIN_ERROR_TYPE(StoppedError, ExitCode::kTemporary);   // place: rank; a lost peer, a time-out
SCALETRAIN_ERROR_TYPE(DivergedError, ExitCode::kDiverged);   // place: the step
SCALETRAIN_ERROR_TYPE(InternalError, ExitCode::kFailure);    // place: the function

#undef SCALETRAIN_ERROR_TYPE

// "Permission denied (EACCES)" for errno value `error`.
std::string errno_text(int error);

// What to print at the end of a program for any exception, and its exit code: a core::Error as it
// is; std::bad_alloc as kMemory; anything else as kFailure.
std::string describe(const std::exception& error);
ExitCode exit_code_of(const std::exception& error);

}  // namespace scaletrain::core
