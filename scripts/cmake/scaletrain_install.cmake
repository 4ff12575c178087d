# cmake --install: the programs with what they open beside them, the libraries with their headers,
# and a package for find_package(scaletrain) (docs/internals/own-model.md).
include(CMakePackageConfigHelpers)

set(package_dir lib/cmake/scaletrain)
install(TARGETS scaletrain scaletrain-data scaletrain-export RUNTIME DESTINATION bin)
if(TARGET scaletrain_parquet)
  set_target_properties(scaletrain_parquet PROPERTIES INSTALL_RPATH "${SCALETRAIN_ARROW_DIR}")
  install(TARGETS scaletrain_parquet LIBRARY DESTINATION bin)
endif()
if(NOT SCALETRAIN_WITH_TORCH)
  return()
endif()

install(TARGETS scaletrain-worker RUNTIME DESTINATION bin)
install(TARGETS scaletrain_pieces LIBRARY DESTINATION bin)
install(FILES "$<TARGET_FILE:scaletrain-worker>.registry.json" DESTINATION bin)
if(TARGET scaletrain_cuda)
  set_target_properties(scaletrain_cuda PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON
                        INSTALL_RPATH "${SCALETRAIN_TORCH_DIR}/lib")
  install(TARGETS scaletrain_cuda LIBRARY DESTINATION bin)
endif()

install(EXPORT scaletrain_libraries NAMESPACE scaletrain:: DESTINATION ${package_dir})
configure_file(scripts/cmake/scaletrain-config.cmake.in scaletrain-config.cmake @ONLY)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/scaletrain-config-version.cmake"
                                 COMPATIBILITY ExactVersion)
install(FILES "${PROJECT_BINARY_DIR}/scaletrain-config.cmake"
              "${PROJECT_BINARY_DIR}/scaletrain-config-version.cmake"
              scripts/cmake/scaletrain_worker.cmake third_party/finders.cmake
        DESTINATION ${package_dir})
install(FILES third_party/torch/torch.cmake DESTINATION ${package_dir}/torch)
