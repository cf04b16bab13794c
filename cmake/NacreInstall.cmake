# `cmake --install` and find_package(nacre). Static libraries, so an application needs the
# packages of the library too; the config file looks for them. `--component development` leaves out
# binaries and adapters.

include(CMakePackageConfigHelpers)

set(nacre_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nacre)
set(nacre_installed_libraries
  nacre_build_version nacre_util nacre_metrics nacre_rdma nacre_table nacre_pool_proto nacre_pool
  nacre_jobs nacre_memnode_proto nacre_memnode nacre_db nacre_transactions nacre_sharding_proto
  nacre_sharding nacre_archive)
install(TARGETS ${nacre_installed_libraries} EXPORT nacreTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/nacre
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/generated/nacre/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nacre COMPONENT development)
install(EXPORT nacreTargets NAMESPACE nacre:: DESTINATION ${nacre_package_dir}
        COMPONENT development)
if(NACRE_BUILD_ETCD)
  # A file of its own: applications without etcd need no gRPC.
  install(TARGETS nacre_etcd_proto nacre_etcd
          EXPORT nacreEtcdTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(EXPORT nacreEtcdTargets NAMESPACE nacre:: DESTINATION ${nacre_package_dir}
          COMPONENT development)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/nacreConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/nacreConfig.cmake
              ${PROJECT_SOURCE_DIR}/cmake/NacreDependencies.cmake
              ${PROJECT_BINARY_DIR}/nacreConfigVersion.cmake
        DESTINATION ${nacre_package_dir} COMPONENT development)
