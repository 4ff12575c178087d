# cmake -DSOURCE=folder -DFILE=commit.cpp -P write_commit.cmake
# Writes a source with the commit that is checked out in SOURCE, "unknown" outside a git checkout, and leaves FILE
# alone while the commit is the same. A checkout around SOURCE, such as a folder of dotfiles, does not
# count.
set(commit unknown)
find_program(git git)
if(git)
  execute_process(COMMAND "${git}" -C "${SOURCE}" rev-parse --show-toplevel --short=12 HEAD
                  OUTPUT_VARIABLE output ERROR_QUIET RESULT_VARIABLE status
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" ";" lines "${output}")
  list(LENGTH lines count)
  if(status EQUAL 0 AND count EQUAL 2)
    list(GET lines 0 top)
    file(REAL_PATH "${top}" top)
    file(REAL_PATH "${SOURCE}" folder)
    if(top STREQUAL folder)
      list(GET lines 1 commit)
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT "${FILE}" @ONLY CONTENT [[
namespace scaletrain::launcher {
const char* commit();
const char* commit() { return "@commit@"; }
}  // namespace scaletrain::launcher
]])
